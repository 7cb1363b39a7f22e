//! Words of both command lines, in and out.

use std::time::Duration;

use approval::shown;

/// Characters that are escaped at one time: each of them takes ten at most, and so much can always be shown.
const PIECE: usize = 1024;

/// A text from elsewhere on one line, however long. What cannot be seen, or looks like something else, is escaped.
#[must_use]
pub fn one_line(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let safe = |piece: &[char]| {
        let piece: String = piece.iter().collect();
        shown(&piece).map_or_else(|| piece.escape_unicode().to_string(), |shown| shown.text)
    };
    letters.chunks(PIECE).map(safe).collect::<String>().replace('\n', "\\n").replace('\t', "\\t")
}

/// `90`, `90s`, `10m`, `2h`, `30d`; bare numbers are seconds.
///
/// # Errors
/// Says what is wrong with it. Nothing is no duration either.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u64 =
        number.parse().map_err(|_| format!("`{text}` is no duration, as in 90s, 10m, 2h, 30d"))?;
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        other => return Err(format!("unknown unit `{other}`; use s, m, h or d")),
    };
    number
        .checked_mul(seconds)
        .filter(|s| *s > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_elsewhere_stay_on_one_line_and_visible() {
        let table = [
            ("ls -l", "ls -l"),
            ("a\nb\tc\r", "a\\nb\\tc\\u{d}"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("a\u{202e}b \u{441}at", "a\\u{202e}b \\u{441}at"),
        ];
        for (text, want) in table {
            assert_eq!(one_line(text), want, "{text:?}");
        }
        let long = "\u{202e}".repeat(5000);
        assert_eq!(one_line(&long), "\\u{202e}".repeat(5000));
    }

    #[test]
    fn durations() {
        let table = [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("30d", 2_592_000)];
        for (text, seconds) in table {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "s", "-1", "1w", "0", "1.5s", "99999999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
