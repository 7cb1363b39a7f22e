//! A target as rules look at it.

use std::{
    cell::OnceCell,
    path::{Component, Path},
};

use super::{
    Target,
    arg_pattern::{ArgPattern, subject},
    hash::cwd_argv_hash,
};

/// A target. What few rules need is made when the first one does.
pub(super) struct Seen<'a> {
    /// Its base name, where it was found by a bare word.
    pub(super) name: Option<&'a str>,
    /// Its real path.
    pub(super) real: Option<&'a str>,
    target: &'a Target<'a>,
    joined: OnceCell<String>,
    ended_by_nul: OnceCell<String>,
    invocation: OnceCell<Option<String>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(target: &'a Target<'a>) -> Self {
        let is_bare = !target.word.contains(['/', '\\', '~']);
        Self {
            name: target.path.filter(|_| is_bare).and_then(Path::file_name).and_then(|name| name.to_str()),
            real: target.real.and_then(normal),
            target,
            joined: OnceCell::new(),
            ended_by_nul: OnceCell::new(),
            invocation: OnceCell::new(),
        }
    }

    /// The binding that would stand for it; `None` where the directory is not known.
    pub(super) fn invocation(&self) -> Option<&str> {
        let made =
            self.invocation.get_or_init(|| self.target.cwd.map(|cwd| cwd_argv_hash(cwd, self.target.args)));
        made.as_deref()
    }

    pub(super) fn subject(&self, pattern: &ArgPattern) -> &str {
        let made = if pattern.names_nul() { &self.ended_by_nul } else { &self.joined };
        made.get_or_init(|| subject(self.target.args, pattern.names_nul()))
    }
}

/// A path as text, if it is what a real path is: absolute, without empty, `.` or `..` parts. Any other was not looked up
/// properly, and normalising it here could name another file.
fn normal(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let parts = path.components().map(|part| match part {
        Component::RootDir => Some(0),
        Component::Normal(name) => Some(1 + name.len()),
        Component::Prefix(_) | Component::CurDir | Component::ParentDir => None,
    });
    // `components` skips what is doubled; then the lengths differ.
    let length = parts.sum::<Option<usize>>()?;
    (path.is_absolute() && length == text.len()).then_some(text)
}
