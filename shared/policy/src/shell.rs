//! Shell text, read once: what is decided, launched and shown comes from the [`Script`] that [`read`] yields (policy
//! spec §3.1 to §3.3).
//!
//! The reader accepts a small subset in which every word is known before anything runs, and refuses the rest with a
//! stable label. It takes linear time, does not recurse, and never panics, whatever the text.

mod label;
mod lexer;
mod parser;
mod quote;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use label::{Label, Unreadable};
pub use quote::quote;

/// Longest text that is read, in characters (§3.1).
pub const MAX_CHARS: usize = 131_072;

/// Most commands that a text may have. Each one is looked up and judged.
pub const MAX_COMMANDS: usize = 1024;

/// Whose grammar a text is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// What `dash` and bash in POSIX mode share. `$'…'`, `|&` and `NAME+=value` are refused.
    Posix,
    /// With `$'…'`, `|&` and `NAME+=value`.
    Bash,
}

/// A text whose every word is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// In the order of the text; never empty.
    pub commands: Vec<SimpleCommand>,
}

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// It is the first.
    Start,
    /// After `;` or a newline.
    Then,
    /// After `&&`.
    And,
    /// After `||`.
    Or,
    /// It reads the output of the one before, after `|`.
    Pipe,
    /// It reads both outputs of the one before, after `|&`.
    PipeBoth,
}

/// One command of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// How it follows the one before.
    pub join: Join,
    /// `!` stands before the pipeline that begins with it.
    pub negated: bool,
    /// `NAME=value` before the words.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments; empty where there are only assignments.
    pub words: Vec<Word>,
}

/// A variable set before a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name.
    pub name: String,
    /// The value, decoded. Its span begins after the `=`.
    pub value: Word,
}

/// One word, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What the program gets, unless [`Word::expands`].
    pub text: String,
    /// Where it stands in the source, quotes included, in bytes.
    pub span: Range<usize>,
    /// What a shell would do to it: the text is then not what the program gets.
    pub expands: Option<Expansion>,
}

/// An expansion that the text leaves to the shell. Harmless to read, impossible to pin (§3.9). Of several in one word
/// the first here is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expansion {
    /// An unquoted `*`, `?` or `[`.
    Glob,
    /// Unquoted `{` or `}`.
    Brace,
    /// An unquoted `~` where a shell looks for one. A program's word then begins with `~/`.
    Tilde,
}

/// Reads a text.
///
/// # Errors
/// The text holds something whose effect is not known before it runs, or is no shell text at all; the label says what.
pub fn read(text: &str, dialect: Dialect) -> Result<Script, Unreadable> {
    parser::parse(text, dialect)
}

impl Join {
    /// The operator in canonical text, with spaces; empty for [`Join::Start`].
    #[must_use]
    pub const fn canonical(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Then => "; ",
            Self::And => " && ",
            Self::Or => " || ",
            Self::Pipe => " | ",
            // Every POSIX shell reads this one; `|&` only some do.
            Self::PipeBoth => " 2>&1 | ",
        }
    }

    /// Whether the command reads the output of the one before.
    #[must_use]
    pub const fn is_pipe(self) -> bool {
        matches!(self, Self::Pipe | Self::PipeBoth)
    }
}

impl Expansion {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Tilde => "tilde",
            Self::Brace => "brace",
        }
    }
}
