//! What a person's yes to a command is bound to, and what of it could be kept as a rule (policy spec §7.4, §3.10).
//!
//! Says which files of a plan must be the same when it runs, or why no such list can be made. Looking at them (content,
//! owner) is the caller's job. What a bound program loads by itself, such as libraries, modules and the files of a
//! project, is not bound.
//!
//! An allowlist that holds `*` does not count here: a command that `*` satisfies is bound as any other.

mod files;
mod interpreter;
mod keep;
mod packages;
mod scan;
mod shape;
mod syntax;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{
    AllowEntry, Ask,
    inline_eval::Input,
    plan::Plan,
    resolve::{File, Lookup},
};

/// A file that a yes is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToBind {
    /// Which segment, counted as [`Plan::each`] does.
    pub segment: usize,
    /// The word of it that names the file.
    pub word: usize,
    /// The path that is used, absolute.
    pub path: PathBuf,
    /// What lies there.
    pub file: File,
    /// What is done with it.
    pub role: Role,
}

/// What is done with a bound file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It is executed.
    Program,
    /// An interpreter or a shell reads it.
    Script,
    /// The command changes to it.
    Directory,
}

/// Why a command cannot be bound, so that nobody is asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbindable {
    /// The shape, a stable word.
    pub shape: &'static str,
    /// What is in the way, for people: a clause without a full stop.
    pub message: String,
    /// The way out.
    pub hint: String,
}

impl Unbindable {
    fn new(shape: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { shape, message: message.into(), hint: hint.into() }
    }
}

/// Most files that one yes is bound to.
pub const MAX_FILES: usize = 64;
/// Most commands of a plan that can be bound, those of payloads counted.
pub const MAX_SEGMENTS: usize = 256;

/// The files that a yes to this plan is bound to, each word at most once. `input` is what stands behind the first
/// command's standard input.
///
/// # Errors
/// What would run cannot be named.
pub fn bind(plan: &Plan, lookup: Lookup<'_>, input: Input) -> Result<Vec<ToBind>, Unbindable> {
    files::bind(plan, lookup, input)
}

/// How wide a kept rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// These programs with these arguments, in this directory.
    Exact,
    /// These programs with these arguments.
    ProgramArgs,
    /// These programs.
    Program,
}

/// Rules that would satisfy the same command again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keepable {
    /// How wide they are.
    pub width: Width,
    /// One for each command that is not satisfied; equal ones once.
    pub entries: Vec<AllowEntry>,
    /// Why they may be kept for a time or a session only, and not in the document.
    pub not_durable: Option<String>,
}

/// What an allow-always could keep, the narrowest first. After a change of directory in the text nothing can be bound to a
/// directory, so [`Width::Exact`] is missing then. Without arguments, [`Width::ProgramArgs`] covers two empty ones too: the
/// form of argument patterns cannot tell them apart (§2.5).
///
/// `changeable` says whether somebody who does not own the machine's rules could change the file.
///
/// # Errors
/// Nothing can be kept, and why: a clause without a full stop.
pub fn keepable(
    plan: &Plan,
    bound: &[ToBind],
    changeable: &dyn Fn(&ToBind) -> bool,
    workdir: &Path,
    ask: Ask,
    strict_inline_eval: bool,
) -> Result<Vec<Keepable>, String> {
    keep::keepable(plan, bound, changeable, workdir, ask, strict_inline_eval)
}
