//! A text as a card may show it (policy spec §7.7): what a reader could not see, or would take for something else, is
//! escaped. The binding stays on the text as it was.

use std::fmt::Write as _;

/// Longest text that is taken for a card, in characters.
pub const TEXT_MAX: usize = 262_144;
/// Longest text that is shown, in characters, after escaping. Nobody can read what is longer.
pub const SHOWN_MAX: usize = 16_384;

/// A text made fit to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The text. Invisible, reordering and look-alike characters stand as `\u{…}`.
    pub text: String,
    /// It is not the text as it was.
    pub altered: bool,
    /// A word mixes letters of scripts that look alike.
    pub mixed_scripts: bool,
}

/// Escapes what a reader could not see or would take for something else. None where it is longer than [`TEXT_MAX`], or
/// [`SHOWN_MAX`] after escaping.
#[must_use]
pub fn shown(text: &str) -> Option<Shown> {
    if text.chars().nth(TEXT_MAX).is_some() {
        return None;
    }
    let mut shown = Shown { text: String::with_capacity(text.len()), altered: false, mixed_scripts: false };
    let mut count = 0;
    for word in text.split_inclusive(is_break) {
        // Letters of another script are a word of that script, unless they stand beside Latin ones.
        let latin = word.chars().any(|letter| letter.is_ascii_alphabetic());
        for letter in word.chars() {
            let mixed = latin && looks_alike(letter);
            shown.mixed_scripts |= mixed;
            let before = shown.text.len();
            if mixed || hides(letter) || poses(letter) {
                shown.altered = true;
                // Writing to a string cannot fail.
                let _ = write!(shown.text, "\\u{{{:x}}}", u32::from(letter));
            } else {
                shown.text.push(letter);
            }
            count += shown.text.get(before..).map_or(0, |added| added.chars().count());
        }
        if count > SHOWN_MAX {
            return None;
        }
    }
    Some(shown)
}

/// Between words, for the question whether one mixes scripts.
fn is_break(letter: char) -> bool {
    letter.is_whitespace() || "/'\"=;|&<>(){}[],:".contains(letter)
}

/// Cannot be seen, moves what stands around it, or is taken for a blank.
fn hides(letter: char) -> bool {
    if matches!(letter, '\n' | '\t' | ' ') {
        return false;
    }
    letter.is_control()
        || letter.is_whitespace()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}'
            // Marks that join the letter before: they can strike it through or cover it.
            | '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Is another form of an ASCII character: it is read as that one, whatever stands beside it. Fullwidth and mathematical
/// letters, and what looks like a slash.
fn poses(letter: char) -> bool {
    matches!(letter,
        '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{2044}' | '\u{2215}' | '\u{29f8}')
}

/// Has letters that look like Latin ones.
fn looks_alike(letter: char) -> bool {
    matches!(letter,
        '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{530}'..='\u{58f}' | '\u{10a0}'..='\u{10ff}'
        | '\u{13a0}'..='\u{13ff}' | '\u{1c80}'..='\u{1c8f}' | '\u{1f00}'..='\u{1fff}' | '\u{2100}'..='\u{218f}'
        | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{a640}'..='\u{a69f}' | '\u{ab70}'..='\u{abbf}'
        | '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}' | '\u{10400}'..='\u{1044f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misleads_is_escaped_and_the_rest_is_not() {
        let table = [
            ("ls -l 'a b'", "ls -l 'a b'", false, false),
            ("grüße 日本語 привет", "grüße 日本語 привет", false, false),
            ("a\n\tb", "a\n\tb", false, false),
            ("cat a\u{202e}txt", "cat a\\u{202e}txt", true, false),
            ("rm\u{200b} x", "rm\\u{200b} x", true, false),
            ("\u{441}at x", "\\u{441}at x", true, true),
            ("/usr/b\u{456}n/ls", "/usr/b\\u{456}n/ls", true, true),
            ("a\u{e0041}b", "a\\u{e0041}b", true, false),
            ("ls\u{a0}-l", "ls\\u{a0}-l", true, false),
            ("\u{1b}[31mx\r", "\\u{1b}[31mx\\u{d}", true, false),
            ("\u{ff4c}s", "\\u{ff4c}s", true, true),
            ("e\u{301}x", "e\\u{301}x", true, false),
            ("\u{301}x", "\\u{301}x", true, false),
            ("x\u{1ab0}\u{fe0f}", "x\\u{1ab0}\\u{fe0f}", true, false),
            ("\u{1d42b}\u{1d426} x", "\\u{1d42b}\\u{1d426} x", true, false),
            ("ls \u{ff1b} id", "ls \\u{ff1b} id", true, false),
            ("rm a\u{2215}b", "rm a\\u{2215}b", true, false),
            ("\u{391}\u{3b2}\u{3b3} \u{13a0}s", "\u{391}\u{3b2}\u{3b3} \\u{13a0}s", true, true),
            ("a\u{2028}b\u{3000}c\u{85}", "a\\u{2028}b\\u{3000}c\\u{85}", true, false),
            ("ls ", "ls ", false, false),
        ];
        for (text, want, altered, mixed_scripts) in table {
            assert_eq!(
                shown(text),
                Some(Shown { text: want.to_owned(), altered, mixed_scripts }),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_nobody_could_read_is_not_shown() {
        assert!(shown(&"x".repeat(SHOWN_MAX)).is_some());
        assert!(shown(&"x".repeat(SHOWN_MAX + 1)).is_none());
        // One character takes eight when it is escaped.
        assert!(shown(&"\u{202e}".repeat(SHOWN_MAX / 8)).is_some());
        assert!(shown(&"\u{202e}".repeat(SHOWN_MAX / 8 + 1)).is_none());
        assert!(shown(&format!("echo ok{};id", " ".repeat(20_000))).is_none());
        assert!(shown(&"x".repeat(TEXT_MAX + 1)).is_none());
    }
}
