//! Examples that stand in an entry: commands that it must match or must not match, alone.

use std::path::Path;

use super::{
    Target,
    fault::ExampleFault,
    rule::{Program, Rule},
    seen::Seen,
};
use crate::{
    AllowEntry,
    printable::printable,
    shell::{self, Dialect},
};

/// Longest part of an example that a problem shows, in characters.
const MAX_SHOWN: usize = 200;

/// Checks the examples of an entry.
pub(super) fn check(entry: &AllowEntry, rule: &Rule) -> Result<(), ExampleFault> {
    for text in &entry.examples_match {
        if !is_matched(text, rule)? {
            return Err(ExampleFault::NotMatched(shown(text)));
        }
    }
    for text in &entry.examples_no_match {
        if is_matched(text, rule)? {
            return Err(ExampleFault::Matched(shown(text)));
        }
    }
    Ok(())
}

/// Whether the rule matches the command. A bare first word stands for a program that was found under that name, an
/// absolute path for itself.
fn is_matched(text: &str, rule: &Rule) -> Result<bool, ExampleFault> {
    let unreadable = |reason: &str| ExampleFault::Unreadable { text: shown(text), reason: reason.to_owned() };
    let mut words = words(text).map_err(|reason| unreadable(&reason))?;
    if words.is_empty() {
        return Err(unreadable("there is no program"));
    }
    let args = words.split_off(1);
    let word = words.pop().unwrap_or_default();
    // What a path means here can be said of absolute paths alone; else every `noMatch` would hold for nothing.
    if matches!(rule.program, Program::Path(_)) && !word.starts_with('/') {
        return Err(unreadable("the entry names a path, so the program must be written as an absolute path"));
    }
    let path = Path::new(&word);
    let target = Target {
        word: &word,
        path: Some(path),
        real: path.is_absolute().then_some(path),
        args: &args,
        cwd: None,
    };
    Ok(rule.matches(&Seen::new(&target)))
}

/// The words of a text that is one command.
fn words(text: &str) -> Result<Vec<String>, String> {
    let script = shell::read(text, Dialect::Bash).map_err(|unreadable| unreadable.to_string())?;
    let Ok([command]) = <[_; 1]>::try_from(script.commands) else {
        return Err("it is more than one".to_owned());
    };
    if command.negated || !command.assignments.is_empty() {
        return Err("something stands before the program".to_owned());
    }
    if command.words.iter().any(|word| word.expands.is_some()) {
        return Err("a shell would expand some of it; quote it".to_owned());
    }
    Ok(command.words.into_iter().map(|word| word.text).collect())
}

fn shown(text: &str) -> String {
    printable(text, MAX_SHOWN)
}
