//! Text from outside, as people and models may see it.

use std::fmt::Write as _;

/// Letters that a reader does not see, or that change the order of those around them.
pub(super) const fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// `text` with what cannot be seen written as `\u{…}`.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_invisible(letter) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// JSON in ASCII and without angle brackets: a model sees each hidden letter by its number, and nothing in it can look
/// like the marks around it.
pub(super) fn plain_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        // Outside its strings JSON has neither, so every escape stands inside one.
        if letter.is_ascii() && !matches!(letter, '<' | '>' | '\u{7f}') {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_hidden() {
        let table = [
            ("plain text, ä", "plain text, ä"),
            ("a\u{1b}[2Jb\nc", "a\\u{1b}[2Jb\\u{a}c"),
            ("\u{202e}x\u{200b}y\u{e0041}", "\\u{202e}x\\u{200b}y\\u{e0041}"),
        ];
        for (text, want) in table {
            assert_eq!(escaped(text), want);
        }
    }

    #[test]
    fn plain_json_says_the_same() {
        let table = [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#"["</x>","ä","😀"]"#, r#"["\u003c/x\u003e","\u00e4","\ud83d\ude00"]"#),
        ];
        for (json, want) in table {
            let plain = plain_json(json);
            assert_eq!(plain, want);
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&plain), read(json));
        }
    }
}
