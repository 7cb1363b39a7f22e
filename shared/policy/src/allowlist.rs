//! The allowlist: which entry, if any, allows a program with its arguments (policy spec §2).
//!
//! An entry that cannot be honoured is out of force and named in [`Allowlist::problems`]; it never widens into something
//! simpler. Case counts everywhere: the rules of Windows (§2.1, §2.2) are not here, so that a name in another case is a
//! miss. What shells, wrappers and carriers start is worked out before, see `command`.

mod arg_pattern;
mod ecma;
mod example;
mod fault;
mod glob;
mod hash;
mod index;
mod room;
mod rule;
mod seen;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{AllowEntry, printable::printable};
use index::Index;
use rule::{Place, Rule};

pub use ecma::{ArgPatternError, ArgPatternFault, MAX_ARG_PATTERN_CHARS, MAX_GROUP_DEPTH};
pub use fault::{EntryFault, ExampleFault};
pub use hash::{cwd_argv_hash, env_hash, node_command_marker};
pub use room::{MAX_EXPRESSION_BYTES, MAX_LIST_BYTES};
pub use rule::{MAX_PATTERN_CHARS, Scope};

/// Longest pattern that a problem shows, in characters.
const MAX_SHOWN: usize = 120;

/// A program with its arguments, as the entries see it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The word that names the program, as written.
    pub word: &'a str,
    /// The path it is started by: absolute, links not followed. None: nothing was found.
    pub path: Option<&'a Path>,
    /// The file behind it, links followed.
    pub real: Option<&'a Path>,
    /// The arguments, without the program.
    pub args: &'a [String],
    /// The working directory. None where a command before may have changed it.
    pub cwd: Option<&'a str>,
}

/// Which entry matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// Its place among the entries that the list was made from.
    pub index: usize,
    /// It is `*`, which allows everything.
    pub star: bool,
    /// Its arguments were matched too.
    pub by_args: bool,
}

/// Why an entry is out of force. It matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowlist entry {} (`{pattern}`): {reason}", .index + 1)]
pub struct EntryProblem {
    /// Its place among the entries, from 0.
    pub index: usize,
    /// Its pattern, printable and cut.
    pub pattern: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
    /// The same, to tell apart.
    pub fault: EntryFault,
}

impl EntryProblem {
    fn new(index: usize, entry: &AllowEntry, fault: EntryFault) -> Self {
        Self { index, pattern: printable(&entry.pattern, MAX_SHOWN), reason: fault.to_string(), fault }
    }
}

/// The entries in force for one agent.
#[derive(Debug, Default)]
pub struct Allowlist {
    entries: Vec<AllowEntry>,
    problems: Vec<EntryProblem>,
    index: Index,
}

impl Allowlist {
    /// Makes entries ready. `home` is what `~` at the start of a pattern stands for. `merged` are directories that are
    /// links on this machine, with what lies behind them, such as `/bin` and `/usr/bin`: programs are known by their
    /// real paths, and a pattern that begins with such a link means the directory behind it too.
    #[must_use]
    pub fn compile(entries: &[AllowEntry], home: Option<&Path>, merged: &[(PathBuf, PathBuf)]) -> Self {
        let place = Place::new(home, merged);
        let mut list = Self { entries: entries.to_vec(), ..Self::default() };
        for (at, entry) in entries.iter().enumerate() {
            let checked = Rule::new(entry, &place)
                .and_then(|rule| example::check(entry, &rule).map(|()| rule).map_err(EntryFault::Example));
            match checked {
                Ok(rule) => list.index.insert(at, rule),
                Err(fault) => list.problems.push(EntryProblem::new(at, entry, fault)),
            }
        }
        list
    }

    /// The entry that allows the target: the first whose argument pattern matches, otherwise the first that is content
    /// with the program (§2.5).
    #[must_use]
    pub fn find(&self, target: &Target<'_>) -> Option<Matched> {
        self.index.find(target)
    }

    /// The entry `*` without an argument pattern, if it is there: it allows everything that is not held.
    #[must_use]
    pub fn star(&self) -> Option<Matched> {
        self.index.star()
    }

    /// The entries it was made from.
    #[must_use]
    pub fn entries(&self) -> &[AllowEntry] {
        &self.entries
    }

    /// The entries that are out of force.
    #[must_use]
    pub fn problems(&self) -> &[EntryProblem] {
        &self.problems
    }
}

/// Whether an entry may be added: one that could never be in force is refused there rather than reported later.
///
/// Knows no machine. So `~` counts as known, the examples of an entry that begins with it are left to the load, and a
/// path in an example must be written as the pattern writes it.
///
/// # Errors
/// What [`Allowlist::problems`] would say, as entry 0.
pub fn check_entry(entry: &AllowEntry) -> Result<(), EntryProblem> {
    let needs_home = entry.pattern.trim_start().starts_with('~');
    let place = Place::new(Some(Path::new("/")), &[]);
    let checked = Rule::new(entry, &place).and_then(|rule| {
        if needs_home { Ok(()) } else { example::check(entry, &rule).map_err(EntryFault::Example) }
    });
    checked.map_err(|fault| EntryProblem::new(0, entry, fault))
}
