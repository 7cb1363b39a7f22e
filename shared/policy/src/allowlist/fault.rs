//! Why an entry is out of force.

use super::ecma::ArgPatternError;

/// Why an entry is out of force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryFault {
    /// The pattern is blank.
    #[error("the pattern is blank")]
    Blank,
    /// The pattern is longer than [`super::MAX_PATTERN_CHARS`], or too large when compiled.
    #[error("the pattern is too long")]
    TooLong,
    /// The expressions before it take all but too little of [`super::MAX_LIST_BYTES`].
    #[error("the list has too many or too large argument patterns and wildcards before it; remove some")]
    TooMany,
    /// `*` with an argument pattern, or from `allow-always`.
    #[error(
        "`*` never matches with an argument pattern or from allow-always; name a program, or leave them out"
    )]
    DeadStar,
    /// The pattern is no absolute path, or has an empty, `.` or `..` part.
    #[error("it never matches: programs are compared by their absolute paths, so write the absolute path")]
    NeverMatches,
    /// The pattern begins with `~`, and no home directory is known.
    #[error("the home directory that `~` stands for is not known; write the absolute path")]
    NoHome,
    /// The argument pattern is no expression, or one that is not supported.
    #[error("the argument pattern {}: {error}", .error.fault.verdict())]
    ArgPattern {
        /// What is wrong with it.
        #[from]
        error: ArgPatternError,
    },
    /// The argument pattern begins with `sha256:` and is no binding that is known.
    #[error("the argument pattern is no binding that this version knows")]
    UnknownBinding,
    /// The argument pattern is a binding without a directory.
    #[error("inactive: it is bound to no directory; allow the command again")]
    LegacyBinding,
    /// `allow-always` without a bound argument pattern.
    #[error(
        "inactive: an allow-always entry must be bound to its arguments and directory; allow the command again"
    )]
    Unbound,
    /// It stands for a whole command text.
    #[error(
        "inactive: the hash of a command's text binds neither its directory nor its programs; allow the command again"
    )]
    CommandText,
    /// An example does not hold.
    #[error("{0}")]
    Example(#[source] ExampleFault),
}

/// Why an example of an entry does not hold. The texts are printable and cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExampleFault {
    /// It stands under `match` and is not allowed.
    #[error("the `match` example `{0}` is not matched")]
    NotMatched(String),
    /// It stands under `noMatch` and is allowed.
    #[error("the `noMatch` example `{0}` is matched")]
    Matched(String),
    /// It is not one command whose words are all known.
    #[error("the example `{text}` cannot be read as one command: {reason}")]
    Unreadable {
        /// The example.
        text: String,
        /// Why.
        reason: String,
    },
}
