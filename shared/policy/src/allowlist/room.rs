//! How much memory the expressions of one list may take: whoever may write a document must not be able to exhaust the
//! machine with it.

use std::cell::Cell;

use regex::{Regex, RegexBuilder};

/// Most that one expression takes when compiled, in bytes.
pub const MAX_EXPRESSION_BYTES: usize = 2 * 1024 * 1024;
/// Most that all expressions of a list take, in bytes: argument patterns, and patterns with wildcards.
pub const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// What an expression is counted as, from the usual to the largest: a compiled one does not tell its size.
const SIZES: [usize; 2] = [64 * 1024, MAX_EXPRESSION_BYTES];
/// Most that the table takes which a search builds as it goes, in bytes; a search that needs more is slower.
const TABLE_BYTES: usize = 256 * 1024;

/// An expression does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// It takes more than [`MAX_EXPRESSION_BYTES`].
    ForOne,
    /// Those before it left too little of [`MAX_LIST_BYTES`].
    InList,
}

/// What is left for the expressions of a list.
pub(super) struct Room(Cell<usize>);

impl Room {
    pub(super) fn new() -> Self {
        Self(Cell::new(MAX_LIST_BYTES))
    }

    /// Compiles an expression of this crate's own making; only its size can be wrong.
    pub(super) fn compile(&self, expression: &str) -> Result<Regex, NoRoom> {
        let left = self.0.get();
        for size in SIZES {
            let left = left.checked_sub(size).ok_or(NoRoom::InList)?;
            let built = RegexBuilder::new(expression).size_limit(size).dfa_size_limit(TABLE_BYTES).build();
            // One that does not fit counts too: to find that out took as long.
            self.0.set(left);
            if let Ok(built) = built {
                return Ok(built);
            }
        }
        Err(NoRoom::ForOne)
    }
}
