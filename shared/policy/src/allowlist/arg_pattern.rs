//! Argument patterns that are expressions (policy spec §2.5).
//!
//! What is searched is the arguments joined by one space, so `^a b$` accepts both `rg a b` and `rg "a b"`. A pattern that
//! names NUL sees every argument followed by NUL instead (no arguments: two NULs), which keeps them apart.

use std::borrow::Cow;

use regex::Regex;

use super::{
    ecma::{self, ArgPatternError, ArgPatternFault},
    fault::EntryFault,
    room::{NoRoom, Room},
};

/// An expression for arguments, ready to match.
#[derive(Clone, Debug)]
pub(super) struct ArgPattern {
    expression: Regex,
    names_nul: bool,
}

impl ArgPattern {
    pub(super) fn new(pattern: &str, room: &Room) -> Result<Self, EntryFault> {
        let translated = ecma::translate(pattern)?;
        let expression = room.compile(&translated.expression).map_err(|no_room| match no_room {
            NoRoom::InList => EntryFault::TooMany,
            NoRoom::ForOne => ArgPatternError { fault: ArgPatternFault::TooLarge, at: 0 }.into(),
        })?;
        Ok(Self { expression, names_nul: translated.names_nul })
    }

    /// Whether it sees the arguments followed by NUL.
    pub(super) fn names_nul(&self) -> bool {
        self.names_nul
    }

    /// Searches a text that [`subject`] made.
    pub(super) fn matches(&self, subject: &str) -> bool {
        self.expression.is_match(subject)
    }
}

/// The arguments as patterns see them.
pub(super) fn subject(args: &[String], names_nul: bool) -> String {
    let text = if !names_nul {
        args.join(" ")
    } else if args.is_empty() {
        "\0\0".to_owned()
    } else {
        args.iter().flat_map(|arg| [&**arg, "\0"]).collect()
    };
    match ecma::as_units(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(units) => units,
    }
}
