//! The plan: what would run, command by command, and what decided each (policy spec §3.9).
//!
//! A plan is made once, by `analyse`. What is launched and what is shown comes from it; the text is not read again.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range, path::PathBuf};

use crate::{
    command::Tag,
    inline_eval::InlineEval,
    resolve::File,
    shell::{Expansion, Join, quote},
};

/// What a caller wants to run.
#[derive(Clone, Copy, Debug)]
pub enum Invocation<'a> {
    /// A text for the shell.
    Shell(&'a str),
    /// Words that no shell sees.
    Argv(&'a [String]),
}

/// A command text that was read, or an argv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In order; not empty.
    pub segments: Vec<Segment>,
    /// It came as an argv: there is one segment and no shell.
    pub direct: bool,
}

/// One command of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How it follows the one before.
    pub join: Join,
    /// `!` stands before its pipeline.
    pub negated: bool,
    /// Variables set for it.
    pub assignments: Vec<Assigned>,
    /// The words, decoded.
    pub argv: Vec<String>,
    /// Words that are not launched: `builtin`, which POSIX shells without it would look for on PATH.
    pub omitted: Vec<usize>,
    /// What a shell would still do to some word, which therefore cannot be pinned.
    pub expands: Option<Expansion>,
    /// Where the words stand in the text that was read; empty for an argv.
    pub spans: Vec<Range<usize>>,
    /// The files that are started, by the index of the word that names each.
    pub programs: Vec<(usize, Started)>,
    /// The index of the word that was judged.
    pub subject: usize,
    /// The commands of a shell's text, and the index of the word that holds it.
    pub payload: Option<(usize, Vec<Segment>)>,
    /// It starts a shell with a text or a script.
    pub shell_wrapper: bool,
    /// It hands code to an interpreter.
    pub inline_eval: Option<InlineEval>,
    /// What decided.
    pub decided: Result<Grant, Miss>,
}

/// A file that is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The path that is launched. A link that the machine's owner put into a trusted directory, or into one that PATH
    /// names, is launched by its own name, since a program may act by that (§11 gap 18); one that the caller named by a
    /// path is not: it could lead elsewhere by then.
    pub path: PathBuf,
    /// What lies there.
    pub file: File,
}

/// A variable set before a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Why a command is satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// By an entry of the allowlist.
    Entry {
        /// Its place in the list.
        index: usize,
        /// Its pattern.
        pattern: String,
        /// Its arguments were matched too.
        by_args: bool,
    },
    /// As a safe bin (§4).
    SafeBin,
    /// As a builtin of the shell that does no harm (§3.8).
    Builtin,
    /// As the program of a skill (§8.1).
    Skill,
    /// Every command of the shell's text is satisfied.
    Payload,
}

/// Why a command is not satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// No program of that name was found.
    NotFound,
    /// The script of a shell was not found.
    NoScript {
        /// Its word.
        script: String,
    },
    /// Nothing allows the program with these arguments.
    NoEntry {
        /// It is a safe bin, or would be, but for this.
        safe_bin: Option<String>,
    },
    /// No rule can satisfy it.
    Held(Tag),
    /// A command of the shell's text is not satisfied.
    Payload,
}

/// What is given to the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// What the caller sent, unread.
    AsSent,
    /// These words; the first is an absolute path, unless `*` allowed a program that was not found.
    Argv(Vec<String>),
    /// This text, by the system's shell.
    Shell(String),
}

impl Plan {
    /// Whether every command is satisfied.
    #[must_use]
    pub fn is_satisfied(&self) -> bool {
        self.segments.iter().all(|segment| segment.decided.is_ok())
    }

    /// All segments, those of payloads after the one that holds them.
    pub fn each(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().flat_map(Segment::with_payload)
    }

    /// The first code that is handed to an interpreter.
    #[must_use]
    pub fn inline_eval(&self) -> Option<&InlineEval> {
        self.each().find_map(|segment| segment.inline_eval.as_ref())
    }

    /// Whether some shell is started with a text or a script: then only the reduced variables reach it (§6.4).
    #[must_use]
    pub fn starts_shell_wrapper(&self) -> bool {
        self.each().any(|segment| segment.shell_wrapper)
    }

    /// What is launched: every word quoted, every program by its absolute path.
    ///
    /// # Errors
    /// Some word would still be expanded by the shell (§3.9).
    pub fn launch(&self) -> Result<Launch, Expansion> {
        self.launch_bound(&BTreeMap::new())
    }

    /// As [`Self::launch`], with other words in the place of some: those of the files that a yes is bound to, so that what
    /// was verified is started and read, and not what lies at its path by then.
    ///
    /// A word is named by its segment, counted as [`Self::each`] does, and its place in that segment's argv. It may become
    /// several, such as a starter and its arguments. The text of a shell is always put together from its commands, a word
    /// that is not launched stays out, and no word goes without one in its place.
    ///
    /// # Errors
    /// As [`Self::launch`].
    pub fn launch_bound(&self, words: &BTreeMap<(usize, usize), Vec<String>>) -> Result<Launch, Expansion> {
        if let Some(expansion) = self.each().find_map(|segment| segment.expands) {
            return Err(expansion);
        }
        if let [only] = self.segments.as_slice() {
            let is_file = only.programs.first().is_some_and(|(at, _)| *at == 0);
            if self.direct || (is_file && !only.negated && only.assignments.is_empty()) {
                return Ok(Launch::Argv(only.pinned(0, words)));
            }
        }
        Ok(Launch::Shell(render(&self.segments, 0, words)))
    }
}

impl Segment {
    /// This segment, then those of its payload. There is one level of payload only (§3.6).
    fn with_payload(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.payload.iter().flat_map(|(_, inner)| inner))
    }

    /// The words as they are launched. `index` is the segment's own.
    fn pinned(&self, index: usize, given: &BTreeMap<(usize, usize), Vec<String>>) -> Vec<String> {
        let mut words = Vec::with_capacity(self.argv.len());
        for (at, word) in self.argv.iter().enumerate() {
            if self.omitted.contains(&at) {
                continue;
            }
            let path = || {
                let (_, program) = self.programs.iter().rev().find(|(program, _)| *program == at)?;
                program.path.to_str()
            };
            match (&self.payload, given.get(&(index, at)).filter(|words| !words.is_empty())) {
                (Some((text, inner)), _) if *text == at => words.push(render(inner, index + 1, given)),
                (_, Some(others)) => words.extend_from_slice(others),
                (_, None) => words.push(path().unwrap_or(word).to_owned()),
            }
        }
        words
    }
}

/// Commands as text, with the index of the first.
fn render(segments: &[Segment], first: usize, given: &BTreeMap<(usize, usize), Vec<String>>) -> String {
    let mut text = String::new();
    let mut index = first;
    for segment in segments {
        text.push_str(segment.join.canonical());
        if segment.negated {
            text.push_str("! ");
        }
        let mut separator = "";
        for assigned in &segment.assignments {
            text.push_str(separator);
            text.push_str(&assigned.name);
            text.push('=');
            text.push_str(&quote(&assigned.value));
            separator = " ";
        }
        for word in segment.pinned(index, given) {
            text.push_str(separator);
            text.push_str(&quote(&word));
            separator = " ";
        }
        index += segment.with_payload().count();
    }
    text
}
