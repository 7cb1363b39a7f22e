//! Patterns for names and paths (policy spec §2.2): `**` is any run, `*` any run without `/`, `?` one character that is
//! no `/`. Nothing else is special. The whole text must match.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use regex::Regex;

use super::room::{NoRoom, Room};

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This character.
    Letter(char),
    /// `?`.
    One,
    /// `*`.
    Run,
    /// `**`.
    DeepRun,
}

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Part>);

/// A pattern, ready to match.
#[derive(Clone, Debug)]
pub(super) enum Glob {
    /// It is a plain text.
    Literal(String),
    /// It has wildcards.
    Wild {
        /// What every match begins with: cheaper to look at than the expression.
        prefix: String,
        /// What every match ends with.
        suffix: String,
        /// All of it.
        expression: Regex,
    },
}

impl Pattern {
    /// A pattern for base names.
    pub(super) fn of_name(text: &str) -> Self {
        Self(parts(text))
    }

    /// A pattern for paths. `None` where it begins with `~` and no home directory is known.
    pub(super) fn of_path(text: &str, home: Option<&Path>) -> Option<Self> {
        let text = text.replace(r"\\", "/").replace('\\', "/");
        let Some(rest) = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return Some(Self(parts(&text)));
        };
        // A `*` in the name of the home directory is no wildcard.
        let home = home?.to_str()?.trim_end_matches('/');
        Some(Self(home.chars().map(Part::Letter).chain(parts(rest)).collect()))
    }

    /// Whether a real path could match: those are absolute and have no empty, `.` or `..` part.
    pub(super) fn can_match_a_path(&self) -> bool {
        let mut segments = self.0.split(|part| *part == Part::Letter('/'));
        let first = segments.next().unwrap_or_default();
        let rest: Vec<&[Part]> = segments.collect();
        // Before the first slash stands nothing; a run may be empty, and `**` may hold the slash.
        let starts_well = first.first() == Some(&Part::DeepRun)
            || (!rest.is_empty() && first.iter().all(|part| *part == Part::Run));
        let dot = Part::Letter('.');
        starts_well && rest.iter().all(|part| !part.is_empty() && **part != [dot] && **part != [dot, dot])
    }

    /// The same pattern with the directory behind a link in its place, where it begins with that link.
    pub(super) fn behind(&self, (link, real): &(PathBuf, PathBuf)) -> Option<Self> {
        let link = letters(link)?;
        let rest = self.0.strip_prefix(&*link).filter(|rest| rest.first() == Some(&Part::Letter('/')))?;
        Some(Self(letters(real)?.into_iter().chain(rest.iter().copied()).collect()))
    }

    fn is_literal(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Letter(_)))
    }

    pub(super) fn compile(&self, room: &Room) -> Result<Glob, NoRoom> {
        let prefix = leading_letters(self.0.iter());
        if self.is_literal() {
            return Ok(Glob::Literal(prefix));
        }
        let suffix = leading_letters(self.0.iter().rev()).chars().rev().collect();
        let mut text = String::from(r"\A");
        for part in &self.0 {
            match part {
                Part::Letter(letter) => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, r"\x{{{:X}}}", u32::from(*letter));
                }
                Part::One => text.push_str("[^/]"),
                Part::Run => text.push_str("[^/]*"),
                Part::DeepRun => text.push_str("(?s:.)*"),
            }
        }
        text.push_str(r"\z");
        Ok(Glob::Wild { prefix, suffix, expression: room.compile(&text)? })
    }
}

impl Glob {
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == text,
            Self::Wild { prefix, suffix, expression } => {
                text.starts_with(&**prefix) && text.ends_with(&**suffix) && expression.is_match(text)
            }
        }
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut out = Vec::new();
    for letter in text.chars() {
        match letter {
            '*' if out.last() == Some(&Part::Run) => {
                out.pop();
                out.push(Part::DeepRun);
            }
            '*' => out.push(Part::Run),
            '?' => out.push(Part::One),
            _ => out.push(Part::Letter(letter)),
        }
    }
    out
}

fn letters(path: &Path) -> Option<Vec<Part>> {
    Some(path.to_str()?.trim_end_matches('/').chars().map(Part::Letter).collect())
}

fn leading_letters<'p>(parts: impl Iterator<Item = &'p Part>) -> String {
    parts
        .map_while(|part| match part {
            Part::Letter(letter) => Some(*letter),
            Part::One | Part::Run | Part::DeepRun => None,
        })
        .collect()
}
