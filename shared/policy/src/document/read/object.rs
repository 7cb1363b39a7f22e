//! The shapes of JSON that a document is made of: objects with known members, lists, words.

use std::{collections::BTreeSet, fmt, marker::PhantomData, str::FromStr};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Form, Reading};
use crate::{
    AllowEntry, UnknownPolicyWord,
    document::{MAX_EXAMPLE_CHARS, MAX_EXAMPLES},
};

/// Whether a type knows a member of its object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    /// It read the value.
    Known,
    /// It left the value unread.
    Unknown,
}

/// A type that is read from an object.
pub(super) trait Members: Default {
    /// Reads the value of a member if it is known.
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error>;

    /// Where unknown members go; `None` where every member is known.
    fn extra(&mut self) -> Option<&mut Map<String, Value>>;

    /// What is missing or contradictory once all members are read.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// Reads an object into `T`.
pub(super) struct Object<'r, T> {
    reading: &'r mut Reading,
    into: PhantomData<T>,
}

impl<'r, T> Object<'r, T> {
    pub(super) fn new(reading: &'r mut Reading) -> Self {
        Self { reading, into: PhantomData }
    }
}

impl<'de, T: Members> DeserializeSeed<'de> for Object<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Members> Visitor<'de> for Object<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let reading = self.reading;
        let mut value = T::default();
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            reading.path.push(name.clone());
            if name == "__proto__" {
                return Err(reading.refuse("this name is not allowed"));
            }
            if !seen.insert(name.clone()) {
                return Err(reading.refuse("the member is there twice"));
            }
            if value.read(&name, &mut map, reading)? == Member::Unknown {
                match value.extra() {
                    Some(extra) if reading.form == Form::Stored => {
                        extra.insert(name, map.next_value()?);
                    }
                    _ => return Err(reading.refuse("unknown member")),
                }
            }
            reading.path.pop();
        }
        value.check().map_err(|reason| reading.refuse::<A::Error>(reason))?;
        Ok(value)
    }
}

/// Reads a list of rules; a rule is an object or a bare pattern.
pub(super) struct Rules<'r>(pub(super) &'r mut Reading);

impl<'de> DeserializeSeed<'de> for Rules<'_> {
    type Value = Vec<AllowEntry>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rules<'_> {
    type Value = Vec<AllowEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rules")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rules = Vec::new();
        loop {
            self.0.path.push(rules.len().to_string());
            let Some(rule) = list.next_element_seed(Rule(self.0))? else { break };
            self.0.path.pop();
            rules.push(rule);
        }
        self.0.path.pop();
        Ok(rules)
    }
}

struct Rule<'r>(&'r mut Reading);

impl<'de> DeserializeSeed<'de> for Rule<'_> {
    type Value = AllowEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AllowEntry, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Rule<'_> {
    type Value = AllowEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern or an object with one")
    }

    fn visit_str<E: Error>(self, pattern: &str) -> Result<AllowEntry, E> {
        let rule = AllowEntry { pattern: pattern.to_owned(), ..AllowEntry::default() };
        rule.check().map_err(|reason| self.0.refuse::<E>(reason))?;
        Ok(rule)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AllowEntry, A::Error> {
        Object::new(self.0).visit_map(map)
    }
}

/// Reads the examples of a rule.
pub(super) struct Examples<'r>(pub(super) &'r mut Reading);

impl<'de> DeserializeSeed<'de> for Examples<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Examples<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of commands")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut examples: Vec<String> = Vec::new();
        while let Some(example) = list.next_element::<String>()? {
            if examples.len() == MAX_EXAMPLES {
                return Err(self.0.refuse(format_args!("more than {MAX_EXAMPLES} examples")));
            }
            if example.chars().nth(MAX_EXAMPLE_CHARS).is_some() {
                return Err(self
                    .0
                    .refuse(format_args!("an example of more than {MAX_EXAMPLE_CHARS} characters")));
            }
            examples.push(example);
        }
        Ok(examples)
    }
}

/// What an unknown word does to an update.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownWord {
    /// It is refused, as in a stored document.
    Refused,
    /// It counts as absent and its place is noted.
    Unset,
}

/// Reads a word of one of the policy scales.
pub(super) struct Word<'r, T> {
    pub(super) reading: &'r mut Reading,
    pub(super) in_updates: UnknownWord,
    pub(super) into: PhantomData<T>,
}

impl<'de, T: FromStr<Err = UnknownPolicyWord>> DeserializeSeed<'de> for Word<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: FromStr<Err = UnknownPolicyWord>> Visitor<'_> for Word<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Option<T>, E> {
        match word.parse() {
            Ok(word) => Ok(Some(word)),
            Err(_) if self.reading.form == Form::Update && self.in_updates == UnknownWord::Unset => {
                self.reading.unset.push(self.reading.place());
                Ok(None)
            }
            Err(unknown) => Err(self.reading.refuse(unknown)),
        }
    }
}
