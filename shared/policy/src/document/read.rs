//! From text to document, in both forms, with the place of whatever is wrong.
//!
//! The text is read straight into the types (no tree in between), so that every refusal, also of a word, has the line
//! and column where the parser stood. `object` reads the braces, `members` knows which member means what.

mod members;
mod object;

use serde::de::DeserializeSeed;

use super::{ApprovalsDocument, DocumentError, MAX_DOCUMENT_BYTES, SanitisedUpdate};
use crate::printable::printable;

/// Longest reason that an error bears, in characters.
const MAX_REASON: usize = 400;

/// Which of the two forms is read (policy spec §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The file: unknown members stay, unknown words are refused.
    Stored,
    /// The RPC: unknown members are refused, unknown words of `security` and `ask` count as absent.
    Update,
}

/// Where the reader stands and what it left out.
struct Reading {
    form: Form,
    path: Vec<String>,
    unset: Vec<String>,
}

impl Reading {
    /// The path of the member that is being read, such as `agents.main.security`, printable and cut.
    fn place(&self) -> String {
        printable(&self.path.join("."), MAX_REASON)
    }

    /// An error at the member that is being read.
    fn refuse<E: serde::de::Error>(&self, reason: impl std::fmt::Display) -> E {
        if self.path.is_empty() {
            return E::custom(reason);
        }
        E::custom(format!("{}: {reason}", self.place()))
    }
}

pub(super) fn read(text: &str, form: Form) -> Result<SanitisedUpdate, DocumentError> {
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge { bytes: text.len() });
    }
    let mut reading = Reading { form, path: Vec::new(), unset: Vec::new() };
    let mut parser = serde_json::Deserializer::from_str(text);
    let whole =
        object::Object::<members::Whole>::new(&mut reading).deserialize(&mut parser).map_err(malformed)?;
    parser.end().map_err(malformed)?;
    let mut document = ApprovalsDocument::from(whole);
    document.fold_old_main();
    Ok(SanitisedUpdate { document, unset: reading.unset })
}

fn malformed(error: serde_json::Error) -> DocumentError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    DocumentError::Malformed { line, column, reason: printable(reason, MAX_REASON) }
}
