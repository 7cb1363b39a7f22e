//! One entry, made ready or out of force.

use std::path::{Path, PathBuf};

use super::{
    arg_pattern::ArgPattern,
    fault::EntryFault,
    glob::{Glob, Pattern},
    hash::{COMMAND, CWD_ARGV, NODE_COMMAND, is_hex},
    room::{NoRoom, Room},
    seen::Seen,
};
use crate::AllowEntry;

/// Longest pattern, in characters.
pub const MAX_PATTERN_CHARS: usize = 4096;

/// What an argument pattern begins with that is no expression.
const BINDING: &str = "sha256:";
/// The older binding, which names no directory.
const LEGACY_BINDING: &str = "sha256:argv:";
/// Hex digits of a binding.
const BINDING_DIGITS: usize = 64;

/// How wide an entry is: what a list of entries should show (the widest look the most harmless).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every program with all arguments.
    Everything,
    /// A program, or several, with all arguments.
    Program,
    /// With arguments that match an expression.
    Arguments,
    /// With exactly one argv in one directory.
    Invocation,
    /// One exact command text.
    CommandText,
}

impl Scope {
    /// The scope that an entry asks for, in force or not.
    #[must_use]
    pub fn of(entry: &AllowEntry) -> Self {
        let pattern = entry.pattern.trim();
        match entry.arg_pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
            _ if is_marker(pattern) => Self::CommandText,
            None if pattern == "*" => Self::Everything,
            None => Self::Program,
            Some(binding) if binding.starts_with(BINDING) => Self::Invocation,
            Some(_) => Self::Arguments,
        }
    }

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Program => "program",
            Self::Arguments => "arguments",
            Self::Invocation => "invocation",
            Self::CommandText => "command-text",
        }
    }
}

/// The machine that entries are made ready for.
pub(super) struct Place<'a> {
    home: Option<&'a Path>,
    merged: &'a [(PathBuf, PathBuf)],
    room: Room,
}

impl<'a> Place<'a> {
    pub(super) fn new(home: Option<&'a Path>, merged: &'a [(PathBuf, PathBuf)]) -> Self {
        Self { home, merged, room: Room::new() }
    }
}

/// An entry in force.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) program: Program,
    pub(super) args: Args,
}

/// Which programs it is about.
#[derive(Debug)]
pub(super) enum Program {
    /// All, also those that are not found.
    Any,
    /// Those of a base name, started by that name alone.
    Name(Glob),
    /// Those at a real path. Several where directories are merged.
    Path(Vec<Glob>),
}

/// Which arguments.
#[derive(Debug)]
pub(super) enum Args {
    /// All.
    Any,
    /// One exact argv in one directory.
    Invocation(String),
    /// Those that match.
    Pattern(ArgPattern),
}

impl Rule {
    pub(super) fn new(entry: &AllowEntry, place: &Place<'_>) -> Result<Self, EntryFault> {
        let pattern = entry.pattern.trim();
        let arg_pattern = entry.arg_pattern.as_deref().filter(|pattern| !pattern.is_empty());
        if pattern.is_empty() {
            return Err(EntryFault::Blank);
        }
        if pattern.chars().nth(MAX_PATTERN_CHARS).is_some() {
            return Err(EntryFault::TooLong);
        }
        if is_marker(pattern) {
            return Err(EntryFault::CommandText);
        }
        if pattern == "*" {
            return match (arg_pattern, entry.source) {
                (None, None) => Ok(Self { program: Program::Any, args: Args::Any }),
                _ => Err(EntryFault::DeadStar),
            };
        }
        let program = Program::new(pattern, place)?;
        let args = match arg_pattern {
            Some(binding) if binding.starts_with(BINDING) => bound(binding)?,
            _ if entry.source.is_some() => return Err(EntryFault::Unbound),
            None => Args::Any,
            Some(expression) => Args::Pattern(ArgPattern::new(expression, &place.room)?),
        };
        Ok(Self { program, args })
    }

    pub(super) fn matches(&self, seen: &Seen<'_>) -> bool {
        self.program.matches(seen) && self.args.matches(seen)
    }
}

impl Program {
    fn new(pattern: &str, place: &Place<'_>) -> Result<Self, EntryFault> {
        let compile = |pattern: &Pattern| {
            pattern.compile(&place.room).map_err(|no_room| match no_room {
                NoRoom::ForOne => EntryFault::TooLong,
                NoRoom::InList => EntryFault::TooMany,
            })
        };
        // By its form `**` is a name, but it means every program that is found (§2.1).
        let is_path = pattern.contains(['/', '\\', '~']) || pattern == "**";
        if !is_path {
            return compile(&Pattern::of_name(pattern)).map(Self::Name);
        }
        let path = Pattern::of_path(pattern, place.home).ok_or(EntryFault::NoHome)?;
        if !path.can_match_a_path() {
            return Err(EntryFault::NeverMatches);
        }
        let behind = place.merged.iter().filter_map(|merged| path.behind(merged)).collect::<Vec<_>>();
        [path].iter().chain(&behind).map(compile).collect::<Result<_, _>>().map(Self::Path)
    }

    pub(super) fn matches(&self, seen: &Seen<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Name(glob) => seen.name.is_some_and(|name| glob.matches(name)),
            Self::Path(globs) => seen.real.is_some_and(|real| globs.iter().any(|glob| glob.matches(real))),
        }
    }
}

impl Args {
    pub(super) fn matches(&self, seen: &Seen<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Invocation(hash) => seen.invocation() == Some(&**hash),
            Self::Pattern(pattern) => pattern.matches(seen.subject(pattern)),
        }
    }
}

fn is_marker(pattern: &str) -> bool {
    pattern.starts_with(NODE_COMMAND) || pattern.starts_with(COMMAND)
}

fn bound(binding: &str) -> Result<Args, EntryFault> {
    if binding.starts_with(LEGACY_BINDING) {
        return Err(EntryFault::LegacyBinding);
    }
    match binding.strip_prefix(CWD_ARGV) {
        Some(digits) if is_hex(digits, BINDING_DIGITS) => Ok(Args::Invocation(binding.to_owned())),
        _ => Err(EntryFault::UnknownBinding),
    }
}
