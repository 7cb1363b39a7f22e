//! One member changed in the text, the rest of the text left alone.
//!
//! The editing library reads nearly the same language as the parser. So that a difference between the two cannot change
//! the policy, the edited text is read again and must say what was wanted and nothing else.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde_json::{Map, Value};

use super::{ConfigError, tree};

const EMPTY: &str = "{}\n";

pub(super) fn edit(text: &str, path: &[&str], value: Value) -> Result<String, ConfigError> {
    let refuse = |reason: String| ConfigError::Edit { key: path.join("."), reason };
    let text = if text.trim().is_empty() { EMPTY } else { text };
    let mut want = tree::parse(text)?;
    let Some((name, parents)) = path.split_last() else { return Err(refuse("no key was named".into())) };

    set_in_tree(&mut want, parents, name, &value).map_err(|reason| refuse(reason.into()))?;
    // The root must live as long as its nodes are used.
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let root = CstRootNode::parse(text, &options)
        .map_err(|error| refuse(format!("the editor cannot read this JSON5: {error}")))?;
    let object = root.object_value().ok_or_else(|| refuse("the file holds no object".into()))?;
    set_in_text(object, parents, name, value).map_err(|reason| refuse(reason.into()))?;

    let edited = root.to_string();
    if tree::parse(&edited)? == want {
        Ok(edited)
    } else {
        Err(refuse("the result would not say what was wanted".into()))
    }
}

fn set_in_tree(root: &mut Value, parents: &[&str], name: &str, value: &Value) -> Result<(), &'static str> {
    let mut object = root.as_object_mut().ok_or("the file holds no object")?;
    for parent in parents {
        if value.is_null() && !object.contains_key(*parent) {
            return Ok(());
        }
        let next = object.entry(*parent).or_insert_with(|| Value::Object(Map::new()));
        object = next.as_object_mut().ok_or("something else than an object is on the way")?;
    }
    if value.is_null() {
        object.remove(name);
    } else {
        object.insert(name.to_owned(), value.clone());
    }
    Ok(())
}

fn set_in_text(root: CstObject, parents: &[&str], name: &str, value: Value) -> Result<(), &'static str> {
    let mut object = root;
    for parent in parents {
        if value.is_null() && object.get(parent).is_none() {
            return Ok(());
        }
        object =
            object.object_value_or_create(parent).ok_or("something else than an object is on the way")?;
    }
    match (object.get(name), value) {
        (Some(member), Value::Null) => member.remove(),
        (None, Value::Null) => {}
        (Some(member), value) => {
            let same =
                member.value().as_ref().and_then(CstNode::to_serde_value).is_some_and(|old| old == value);
            if !same {
                member.set_value(input(value));
            }
        }
        (None, value) => {
            object.append(name, input(value));
        }
    }
    Ok(())
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text),
        Value::Array(items) => CstInputValue::Array(items.into_iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.into_iter().map(|(name, value)| (name, input(value))).collect())
        }
    }
}
