//! The reader of shell text, in both dialects. The input is the text.

use std::ops::Range;

use policy::{
    highlight::executable_spans,
    shell::{Dialect, Join, MAX_CHARS, Script, Unreadable, Word, quote, read},
};

use super::Pace;

/// Arguments of a text that are also read alone.
const MAX_ALONE: usize = 32;

pub fn check(data: &[u8], pace: Pace) {
    let text = String::from_utf8_lossy(data);
    let [posix, bash] = [Dialect::Posix, Dialect::Bash].map(|dialect| {
        let found = pace.timed("read", text.len(), || read(&text, dialect));
        match &found {
            Ok(script) => check_script(&text, script, dialect),
            Err(Unreadable { at, .. }) => assert!(text.is_char_boundary(*at), "refused at byte {at}"),
        }
        found
    });
    if posix.is_ok() {
        assert_eq!(posix, bash, "both shells read what the simpler one reads");
    }
    check_highlighting(&text, bash.ok().as_ref());
}

fn check_script(text: &str, script: &Script, dialect: Dialect) {
    assert!(text.chars().count() <= MAX_CHARS, "a text that is too long was read");
    assert!(!script.commands.is_empty(), "a text without commands was read");
    check_spans(text, script);
    check_alone(text, script, dialect);
    let again = canonical(script);
    if again.chars().count() > MAX_CHARS {
        return;
    }
    match read(&again, dialect) {
        Ok(found) => {
            assert_eq!(without_source(&found), without_source(script), "{again:?} reads otherwise");
            assert!(words(&found).all(|word| word.expands.is_none()), "{again:?} expands");
            assert_eq!(canonical(&found), again);
        }
        Err(unreadable) => panic!("{again:?} is not read: {unreadable}"),
    }
}

fn check_spans(text: &str, script: &Script) {
    let mut end = 0;
    for word in words(script) {
        let span = &word.span;
        assert!(span.start >= end && span.start <= span.end, "{span:?} after {end}");
        assert!(text.get(span.clone()).is_some(), "{span:?} is no part of the text");
        end = span.end;
    }
    // Only a value may be empty.
    let all = script.commands.iter().flat_map(|command| &command.words);
    assert!(all.map(|word| &word.span).all(|span| !span.is_empty()), "a word has no source");
}

/// An argument means the same behind any other program.
fn check_alone(text: &str, script: &Script, dialect: Dialect) {
    let arguments = script.commands.iter().flat_map(|command| command.words.iter().skip(1));
    for word in arguments.take(MAX_ALONE) {
        let source = text.get(word.span.clone()).unwrap_or_default();
        let alone = read(&format!("x {source}"), dialect).map(|script| script.commands);
        let found = alone.as_deref().map(|commands| match commands {
            [only] => only.words.get(1..).unwrap_or_default().iter().map(meaning).collect(),
            _ => Vec::new(),
        });
        assert_eq!(found, Ok(vec![meaning(word)]), "{source:?} alone");
    }
}

fn check_highlighting(text: &str, script: Option<&Script>) {
    let spans = executable_spans(text, text);
    let units = text.encode_utf16().count();
    let mut end = 0;
    for Range { start, end: next } in spans.clone() {
        assert!(start >= end && start < next && next <= units, "{spans:?} of {units} units");
        end = next;
    }
    let programs =
        script.map_or(0, |script| script.commands.iter().filter(|command| !command.words.is_empty()).count());
    assert!(
        spans.len() >= programs && (programs > 0 || spans.is_empty()),
        "{spans:?} for {programs} commands"
    );
}

/// The text of a script with every word in single quotes.
fn canonical(script: &Script) -> String {
    let mut text = String::new();
    for command in &script.commands {
        // What stands for it at launch is a redirection to the reader.
        text.push_str(if command.join == Join::PipeBoth { " |& " } else { command.join.canonical() });
        text.push_str(if command.negated { "! " } else { "" });
        let assignments = command
            .assignments
            .iter()
            .map(|assignment| format!("{}={}", assignment.name, quote(&assignment.value.text)));
        let words = command.words.iter().map(|word| quote(&word.text));
        text.push_str(&assignments.chain(words).collect::<Vec<_>>().join(" "));
    }
    text
}

/// The script without what depends on how it was written.
fn without_source(script: &Script) -> Script {
    let mut script = script.clone();
    for command in &mut script.commands {
        let values = command.assignments.iter_mut().map(|assignment| &mut assignment.value);
        for word in values.chain(&mut command.words) {
            (word.span, word.expands) = (0..0, None);
        }
    }
    script
}

/// All words in the order of the text.
fn words(script: &Script) -> impl Iterator<Item = &Word> {
    script.commands.iter().flat_map(|command| {
        command.assignments.iter().map(|assignment| &assignment.value).chain(&command.words)
    })
}

fn meaning(word: &Word) -> (&str, Option<policy::shell::Expansion>) {
    (&word.text, word.expands)
}
