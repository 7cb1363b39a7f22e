//! One record: a line of JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// What the canonical form of a record begins with.
const NAME: &[u8] = b"farrun audit v1";
/// The hash before the first record.
pub(crate) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Whether a text has the form of a hash.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == NO_HASH.len() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A record as it stands in a file. `data` is kept as the bytes that stand there: they are what is hashed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) time: i64,
    pub(crate) kind: String,
    pub(crate) data: Box<RawValue>,
    pub(crate) prev: String,
    pub(crate) hash: String,
}

impl Line {
    /// A record behind another one.
    pub(crate) fn new(seq: u64, time: i64, kind: &str, data: Box<RawValue>, prev: &str) -> Self {
        let mut line =
            Self { seq, time, kind: kind.to_owned(), data, prev: prev.to_owned(), hash: String::new() };
        line.hash = line.computed();
        line
    }

    /// The hash that it should have: over every other field, each with its length before it.
    pub(crate) fn computed(&self) -> String {
        let mut hash = Sha256::new();
        let mut field = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        field(NAME);
        field(&self.seq.to_le_bytes());
        field(&self.time.to_le_bytes());
        field(self.kind.as_bytes());
        field(self.data.get().as_bytes());
        field(self.prev.as_bytes());
        hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// A record as readers get it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Counts from 1.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub time: i64,
    /// What happened: `approval.decided`, `run.started`, …
    pub kind: String,
    /// The circumstances.
    pub data: Value,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
}

impl Record {
    pub(crate) fn of(line: &Line) -> Option<Self> {
        Some(Self {
            seq: line.seq,
            time: line.time,
            kind: line.kind.clone(),
            data: serde_json::from_str(line.data.get()).ok()?,
            hash: line.hash.clone(),
        })
    }
}

/// The circumstances of a record as one line for people: `key=value`, empty ones left out. A text that could be taken for
/// more than one word is quoted, so that a command cannot look like another field. May hold any character.
#[must_use]
pub fn shown(record: &Record) -> String {
    let Some(fields) = record.data.as_object() else { return record.data.to_string() };
    let mut parts = Vec::new();
    for (key, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => parts.push(format!("{key}={}", word(text))),
            Value::Array(items) if items.is_empty() => {}
            other => parts.push(format!("{key}={other}")),
        }
    }
    parts.join(" ")
}

fn word(text: &str) -> Cow<'_, str> {
    if text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '=')) {
        Cow::Owned(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
    } else {
        Cow::Borrowed(text)
    }
}
