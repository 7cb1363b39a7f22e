//! Where the executable words of a text stand, for display (`commandHighlighting`, policy spec §8.4).

use std::ops::Range;

use crate::{
    command::{Form, read_command},
    shell::{Dialect, read},
};

/// The spans of the words that name programs in `text`, in UTF-16 units, sorted, without overlap. Empty where `shown`,
/// what the reader sees, is not the text itself, and where the text cannot be read. Presentation only.
#[must_use]
pub fn executable_spans(text: &str, shown: &str) -> Vec<Range<usize>> {
    if text != shown {
        return Vec::new();
    }
    let Ok(script) = read(text, Dialect::Bash) else { return Vec::new() };
    let mut spans = Vec::new();
    let (mut byte, mut unit) = (0, 0);
    // The words come in the order of the text, so one walk converts all offsets.
    let mut units_to = |to: usize| {
        unit += text.get(byte..to).map_or(0, |part| part.encode_utf16().count());
        byte = to;
        unit
    };
    for command in &script.commands {
        if command.words.is_empty() {
            continue;
        }
        let argv: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
        let started = read_command(&argv, Form::Shell, &|_| true);
        let mut at: Vec<usize> = started.wrappers.iter().map(|wrapper| wrapper.at).collect();
        at.push(started.program);
        for word in at.into_iter().filter_map(|at| command.words.get(at)) {
            let start = units_to(word.span.start);
            spans.push(start..units_to(word.span.end));
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_marked_and_nothing_else() {
        let text = "nice git log 'é𝄞' | head -n 1";
        let marked: Vec<String> = executable_spans(text, text)
            .into_iter()
            .map(|span| String::from_utf16(&text.encode_utf16().collect::<Vec<_>>()[span]).unwrap())
            .collect();
        assert_eq!(marked, ["nice", "git", "head"]);
    }

    #[test]
    fn an_altered_or_unreadable_text_has_no_marks() {
        assert!(executable_spans("git log", "git  log").is_empty());
        assert!(executable_spans("git $(id)", "git $(id)").is_empty());
    }
}
