//! Why an argument pattern is not used.

use super::{MAX_ARG_PATTERN_CHARS, MAX_GROUP_DEPTH};

/// What is wrong with an argument pattern, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (at {at})")]
pub struct ArgPatternError {
    /// What stands there.
    pub fault: ArgPatternFault,
    /// Where: UTF-16 units before it.
    pub at: usize,
}

/// What is wrong with an argument pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ArgPatternFault {
    /// More than [`MAX_ARG_PATTERN_CHARS`].
    #[error("longer than {MAX_ARG_PATTERN_CHARS} characters")]
    TooLong,
    /// More than [`MAX_GROUP_DEPTH`] groups within each other.
    #[error("more than {MAX_GROUP_DEPTH} groups within each other")]
    TooDeep,
    /// Compiled it would be too large: mostly nested or high repeat counts.
    #[error("it repeats too much; use smaller counts")]
    TooLarge,
    /// Lookahead or lookbehind.
    #[error("lookahead and lookbehind are not supported; write what may follow, or use several entries")]
    Lookaround,
    /// `\1` or `\k`.
    #[error("back references are not supported")]
    Backreference,
    /// `(?i:…)`.
    #[error("modifiers are not supported")]
    Modifiers,
    /// An escape that means something else than it looks like.
    #[error("this escape is not supported; use `\\xHH`, `\\uHHHH` or the character itself")]
    UnclearEscape,
    /// Nothing follows a backslash.
    #[error("nothing follows the backslash")]
    LoneBackslash,
    /// A quantifier without anything before it.
    #[error("there is nothing to repeat")]
    NothingToRepeat,
    /// `{5,2}`.
    #[error("the counts are in the wrong order")]
    CountsOutOfOrder,
    /// `[z-a]`.
    #[error("the range is in the wrong order")]
    RangeOutOfOrder,
    /// `[` without `]`.
    #[error("the `[` is not closed")]
    UnclosedClass,
    /// `(` without `)`.
    #[error("a `(` is not closed")]
    UnclosedGroup,
    /// `)` without `(`.
    #[error("no `(` belongs to this `)`")]
    UnmatchedParenthesis,
    /// `(?` with anything unknown after it, or a name that is none or is there twice.
    #[error("no valid group")]
    BadGroup,
}

impl ArgPatternFault {
    /// What that makes of the pattern, in words.
    pub(in super::super) const fn verdict(self) -> &'static str {
        if self.is_unsupported() { "is not supported" } else { "is invalid" }
    }

    /// Whether ECMAScript would take it: valid there, not supported here.
    #[must_use]
    pub const fn is_unsupported(self) -> bool {
        match self {
            Self::TooLong
            | Self::TooDeep
            | Self::TooLarge
            | Self::Lookaround
            | Self::Backreference
            | Self::Modifiers
            | Self::UnclearEscape => true,
            Self::LoneBackslash
            | Self::NothingToRepeat
            | Self::CountsOutOfOrder
            | Self::RangeOutOfOrder
            | Self::UnclosedClass
            | Self::UnclosedGroup
            | Self::UnmatchedParenthesis
            | Self::BadGroup => false,
        }
    }
}
