//! Variables that a command sets for the program it starts (policy spec §6.2, last paragraph).

use super::{
    dispatch::{env_takes_value, split_text},
    kind::kind_of,
    name::fold,
};
use crate::{EnvRejection, check_overrides};

/// Looks for assignments of `env`, `sudo` and `doas` that a request's variables could not have either. Looks behind
/// everything that starts commands; an ordinary program's arguments are its own business.
#[must_use]
pub fn blocked_env_assignments(argv: &[String]) -> Option<EnvRejection> {
    kind_of(&fold(argv.first()?))?;
    let mut found = EnvRejection::default();
    let mut words = argv.iter();
    while let Some(word) = words.next() {
        let takes_value: fn(&str) -> bool = match &*fold(word) {
            "env" => env_takes_value,
            "sudo" | "doas" => sudo_takes_value,
            _ => continue,
        };
        // Stops at the command, which is looked at by the loop around: it may be `env` again.
        while let Some(word) = words.as_slice().first().filter(|word| is_option(word) || word.contains('=')) {
            words.next();
            match split_text(word) {
                Some("") => words.next().into_iter().for_each(|text| check_text(&mut found, text)),
                Some(text) => check_text(&mut found, text),
                None if takes_value(word) => drop(words.next()),
                None if is_option(word) => {}
                None => check(&mut found, word),
            }
        }
    }
    for names in [&mut found.blocked, &mut found.invalid, &mut found.nul_values] {
        names.sort_unstable();
        names.dedup();
    }
    (found != EnvRejection::default()).then_some(found)
}

fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

fn sudo_takes_value(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.len() == 1 && letters.contains(['C', 'D', 'R', 'T', 'U', 'a', 'c', 'g', 'h', 'p', 'r', 't', 'u'])
}

/// One by one: the same name twice is no fault here, and there may be any number.
fn check(found: &mut EnvRejection, assignment: &str) {
    let Some(pair) = assignment.split_once('=') else { return };
    if let Err(rejection) = check_overrides([pair]) {
        found.blocked.extend(rejection.blocked);
        found.invalid.extend(rejection.invalid);
        found.nul_values.extend(rejection.nul_values);
    }
}

/// The text of `env -S`. Its quotes and escapes are not followed: whatever could be an assignment is one.
fn check_text(found: &mut EnvRejection, text: &str) {
    let plain: String =
        text.replace("\\_", " ").chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    for word in plain.split_whitespace() {
        let mut word = word;
        while let Some(rest) = split_text(word).filter(|rest| !rest.is_empty()) {
            word = rest;
        }
        if !is_option(word) {
            check(found, word);
        }
    }
}
