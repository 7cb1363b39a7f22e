//! Short names for commands: the derived name of a session and the label of a task (runtime.md §2.2, §5.6).
//!
//! A label is read by people who may not see the command, so what looks like a secret is masked. That is a guess,
//! **not** a boundary: a secret in no known form stays.

mod secrets;

use crate::screen::is_hidden;

/// The most characters of a name's verb and of its target.
const WORD_MAX: usize = 48;

/// Characters of a command that are looked at. A label has room for far fewer, and the masking must stay quick.
const SCANNED_MAX: usize = 16 * 1024;

/// The derived name of a command: its verb and its target, the first word behind it that is no option (§2.2).
/// Secrets are masked. Empty for a command of blanks only.
pub fn name(command: &str) -> String {
    let masked = one_line(&secrets::masked(&plain(command).0));
    let words = words(&masked);
    let Some((verb, rest)) = words.split_first() else {
        return String::new();
    };
    let verb = middle(verb, WORD_MAX);
    match rest.iter().find(|word| !word.starts_with('-')).or(rest.first()) {
        Some(target) => format!("{verb} {}", middle(target, WORD_MAX)),
        None => verb,
    }
}

/// At most `max` characters of a text: its start and its end with an ellipsis between.
pub fn middle(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let Some(kept) = max.checked_sub(1) else {
        return String::new();
    };
    let head = kept.div_ceil(2);
    let start = text.chars().take(head);
    let end = text.chars().skip(count - (kept - head));
    start.chain(['…']).chain(end).collect()
}

/// A command as a label: on one line, at most `max` characters, with `***` in the place of secrets (§5.6, F087).
pub fn redacted(command: &str, max: usize) -> String {
    let (plain, whole) = plain(command);
    let line = one_line(&secrets::masked(&plain));
    if whole {
        return middle(&line, max);
    }
    // The end of what was looked at is not the end of the command.
    let start = line.chars().take(max.saturating_sub(1));
    start.chain((max > 0).then_some('…')).collect()
}

/// The start of a command without characters that hide or reorder, and whether that is all of it.
fn plain(command: &str) -> (Vec<char>, bool) {
    let mut chars = command.chars();
    let start = chars.by_ref().take(SCANNED_MAX).filter(|&c| !is_hidden(c)).collect();
    (start, chars.next().is_none())
}

/// Blanks and line ends become one space, other control characters U+FFFD.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "\u{fffd}")
}

/// Words as a shell takes them, without their quotes. What is not closed ends with the text.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
