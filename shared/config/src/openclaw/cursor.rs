//! A place in the tree: reads what is expected there, or says where it is not.

use std::str::FromStr;

use policy::UnknownPolicyWord;
use serde_json::Value;

use super::{ConfigError, tree::line_of};

/// A value, and the names that led to it.
pub(super) struct Cursor<'a> {
    path: Vec<String>,
    value: &'a Value,
}

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Refusal {
    path: Vec<String>,
    reason: String,
}

impl Refusal {
    /// The error, with the line in the text.
    pub(super) fn locate(self, text: &str) -> ConfigError {
        let key = self.path.join(".").escape_debug().to_string();
        let line = line_of(text, &self.path);
        ConfigError::Invalid { file: None, key, line, reason: self.reason }
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { path: Vec::new(), value: root }
    }

    fn below(&self, name: String, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.push(name);
        Self { path, value }
    }

    pub(super) fn refuse(&self, reason: impl Into<String>) -> Refusal {
        Refusal { path: self.path.clone(), reason: reason.into() }
    }

    /// The member of an object.
    pub(super) fn member(&self, name: &str) -> Result<Option<Self>, Refusal> {
        let object = self.value.as_object().ok_or_else(|| self.refuse("expected an object"))?;
        Ok(object.get(name).map(|value| self.below(name.to_owned(), value)))
    }

    /// All members of an object.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Self)>, Refusal> {
        let object = self.value.as_object().ok_or_else(|| self.refuse("expected an object"))?;
        Ok(object.iter().map(|(name, value)| (name.as_str(), self.below(name.clone(), value))).collect())
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<Self>, Refusal> {
        let list = self.value.as_array().ok_or_else(|| self.refuse("expected a list"))?;
        Ok(list.iter().enumerate().map(|(index, value)| self.below(index.to_string(), value)).collect())
    }

    /// A text that is not blank.
    pub(super) fn text(&self) -> Result<&'a str, Refusal> {
        let text = self.value.as_str().ok_or_else(|| self.refuse("expected a text"))?.trim();
        if text.is_empty() { Err(self.refuse("the text is blank")) } else { Ok(text) }
    }

    /// A list of texts that are not blank.
    pub(super) fn texts(&self) -> Result<Vec<String>, Refusal> {
        self.items()?.iter().map(|item| item.text().map(str::to_owned)).collect()
    }

    /// A word of one of the policy scales, spelled exactly.
    pub(super) fn word<T: FromStr<Err = UnknownPolicyWord>>(&self) -> Result<T, Refusal> {
        let word = self.value.as_str().ok_or_else(|| self.refuse("expected a text"))?;
        word.parse().map_err(|unknown: UnknownPolicyWord| self.refuse(unknown.to_string()))
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, Refusal> {
        self.value.as_bool().ok_or_else(|| self.refuse("expected true or false"))
    }

    /// A whole number.
    pub(super) fn integer(&self) -> Result<i64, Refusal> {
        self.value.as_i64().ok_or_else(|| self.refuse("expected a whole number"))
    }

    /// A whole number that is not negative.
    pub(super) fn count(&self) -> Result<usize, Refusal> {
        let count = self.value.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.refuse("expected a whole number, 0 or more"))
    }
}
