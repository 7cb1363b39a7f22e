//! Why a text cannot be read: the labels of policy spec §3.2.

use std::fmt;

/// What stands in the way. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// `$(…)`, backticks.
    CommandSubstitution,
    /// `<(…)`, `>(…)`.
    ProcessSubstitution,
    /// Any redirection.
    Redirect,
    /// `<<`, `<<-`.
    Heredoc,
    /// `<<<`.
    HereString,
    /// A parameter or arithmetic expansion in an argument.
    DynamicArgument,
    /// A parameter, glob or brace expansion in the command position.
    DynamicExecutable,
    /// Backslash-newline, also with CR before LF.
    LineContinuation,
    /// `&`.
    Background,
    /// `f() {…}`, `function f`.
    FunctionDefinition,
    /// `(…)`.
    Subshell,
    /// `{ …; }`.
    Group,
    /// `if`.
    If,
    /// `for`, `select`.
    For,
    /// `while`, `until`.
    While,
    /// `case`.
    Case,
    /// `[[ … ]]`: a language of its own.
    Conditional,
    /// No shell text, or a NUL byte.
    SyntaxError,
    /// It ends after `&&`, `||` or `|`.
    Incomplete,
    /// Nothing to run: empty, blanks, comments, only assignments.
    NoCommands,
    /// More than [`super::MAX_CHARS`] characters or [`super::MAX_COMMANDS`] commands.
    TooLong,
}

impl Label {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CommandSubstitution => "command-substitution",
            Self::ProcessSubstitution => "process-substitution",
            Self::Redirect => "redirect",
            Self::Heredoc => "heredoc",
            Self::HereString => "here-string",
            Self::DynamicArgument => "dynamic-argument",
            Self::DynamicExecutable => "dynamic-executable",
            Self::LineContinuation => "line-continuation",
            Self::Background => "background",
            Self::FunctionDefinition => "function-definition",
            Self::Subshell => "subshell",
            Self::Group => "group",
            Self::If => "if",
            Self::For => "for",
            Self::While => "while",
            Self::Case => "case",
            Self::Conditional => "conditional",
            Self::SyntaxError => "syntax-error",
            Self::Incomplete => "unable to parse command",
            Self::NoCommands => "no commands to authorize",
            Self::TooLong => "too-long",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{label} at byte {at}")]
pub struct Unreadable {
    /// What stands in the way.
    pub label: Label,
    /// Where in the text, in bytes.
    pub at: usize,
}
