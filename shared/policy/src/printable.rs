//! Text from outside as a message may show it.

use std::fmt::Write;

/// `text` with control and invisible characters escaped, cut after `max` characters.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut out = String::new();
    for (count, letter) in text.chars().enumerate() {
        if count == max {
            out.push_str("...");
            break;
        }
        if letter.is_control() || is_invisible(letter) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// Marks that reorder or hide the text around them.
const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
