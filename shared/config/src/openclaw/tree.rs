//! From JSON5 text to a tree, with bounds; and from a key to its line.

use std::fmt;

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{ConfigError, MAX_CONFIG_BYTES};

/// Deepest nesting. The parser calls itself for each level, so this bounds its stack.
const MAX_DEPTH: u32 = 64;

pub(super) fn parse(text: &str) -> Result<Value, ConfigError> {
    if text.len() as u64 > MAX_CONFIG_BYTES {
        let reason = format!("the text is longer than {MAX_CONFIG_BYTES} bytes");
        return Err(ConfigError::Malformed { file: None, line: 1, column: 1, reason });
    }
    let tree: Tree = json5::from_str(text).map_err(|error| malformed(text, &error))?;
    Ok(tree.0)
}

fn malformed(text: &str, error: &json5::Error) -> ConfigError {
    let (line, column) = match error.position() {
        Some(position) => (position.line + 1, position.column + 1),
        // It ended too early.
        None => (text.lines().count().max(1), text.lines().last().map_or(0, |line| line.chars().count()) + 1),
    };
    let reason = error.to_string();
    let reason = reason.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&reason);
    ConfigError::Malformed { file: None, line, column, reason: reason.escape_debug().to_string() }
}

/// The line of a value, from 1. Best effort, for messages.
pub(super) fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let mut value = parsed.value.as_ref()?;
    let mut start = None;
    for name in path {
        value = match value {
            ast::Value::Object(object) => {
                let member = object.properties.iter().find(|member| member.name.as_str() == name)?;
                start = Some(member.range.start);
                &member.value
            }
            ast::Value::Array(array) => {
                let item = array.elements.get(name.parse::<usize>().ok()?)?;
                start = None;
                item
            }
            _ => return None,
        };
    }
    let before = text.get(..start.unwrap_or(start_of(value)))?;
    Some(before.matches('\n').count() + 1)
}

fn start_of(value: &ast::Value<'_>) -> usize {
    match value {
        ast::Value::StringLit(found) => found.range.start,
        ast::Value::NumberLit(found) => found.range.start,
        ast::Value::BooleanLit(found) => found.range.start,
        ast::Value::Object(found) => found.range.start,
        ast::Value::Array(found) => found.range.start,
        ast::Value::NullKeyword(found) => found.range.start,
    }
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Below(MAX_DEPTH).deserialize(deserializer).map(Self)
    }
}

/// Reads a value that may hold this many levels of others.
#[derive(Clone, Copy)]
struct Below(u32);

impl Below {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        self.0
            .checked_sub(1)
            .map(Self)
            .ok_or_else(|| E::custom(format!("nested more than {MAX_DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Below {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Below {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON5 value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    // No number that decides something is as large as these or has a fraction, so the nearest one will do.
    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // `Infinity` and `NaN` become null, which no key takes.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let below = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(below)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let below = self.deeper()?;
        let mut members = Map::new();
        while let Some(name) = map.next_key_seed(NewName(&members))? {
            members.insert(name, map.next_value_seed(below)?);
        }
        Ok(members.into())
    }
}

/// Reads the name of a member that is not there yet: which of two counts is not the reader's to guess.
struct NewName<'a>(&'a Map<String, Value>);

impl<'de> DeserializeSeed<'de> for NewName<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NewName<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<String, E> {
        if self.0.contains_key(name) {
            return Err(E::custom(format!("the member `{name}` is there twice")));
        }
        Ok(name.to_owned())
    }
}
