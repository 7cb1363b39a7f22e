//! The named keys (runtime.md §2.5).

/// How a key takes modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Only alt, as a prefix.
    Plain,
    /// Shift makes it the back tab.
    Tab,
    /// Control makes it NUL, as on every terminal.
    Space,
    /// In the sequence; in application mode `ESC O` and this letter.
    Cursor(char),
    /// In the sequence.
    Edit,
    /// Shift and control in the sequence, alt alone as a prefix.
    Function,
}

/// A key: what people call it, and its bytes without modifiers.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) names: &'static [&'static str],
    pub(super) bytes: &'static str,
    pub(super) form: Form,
}

impl Key {
    /// The key's sequence with xterm's modifier number in it: `ESC [ <number> ; <code> <final>`.
    pub(super) fn with_code(&self, code: u8) -> Vec<u8> {
        let body = self.bytes.strip_prefix("\x1b[").or_else(|| self.bytes.strip_prefix("\x1bO"));
        let body = body.unwrap_or(self.bytes);
        let number = body.trim_end_matches(|c: char| !c.is_ascii_digit());
        let end = body.get(number.len()..).unwrap_or_default();
        let number = if number.is_empty() { "1" } else { number };
        format!("\x1b[{number};{code}{end}").into_bytes()
    }
}

const fn key(names: &'static [&'static str], bytes: &'static str, form: Form) -> Key {
    Key { names, bytes, form }
}

pub(super) const KEYS: &[Key] = &[
    key(&["enter", "return"], "\r", Form::Plain),
    key(&["tab"], "\t", Form::Tab),
    key(&["btab"], "\x1b[Z", Form::Plain),
    key(&["escape", "esc"], "\x1b", Form::Plain),
    key(&["space"], " ", Form::Space),
    key(&["bspace", "backspace"], "\x7f", Form::Plain),
    key(&["up"], "\x1b[A", Form::Cursor('A')),
    key(&["down"], "\x1b[B", Form::Cursor('B')),
    key(&["right"], "\x1b[C", Form::Cursor('C')),
    key(&["left"], "\x1b[D", Form::Cursor('D')),
    key(&["home"], "\x1b[1~", Form::Cursor('H')),
    key(&["end"], "\x1b[4~", Form::Cursor('F')),
    key(&["pageup", "pgup", "ppage"], "\x1b[5~", Form::Edit),
    key(&["pagedown", "pgdn", "npage"], "\x1b[6~", Form::Edit),
    key(&["insert", "ic"], "\x1b[2~", Form::Edit),
    key(&["delete", "del", "dc"], "\x1b[3~", Form::Edit),
    key(&["f1"], "\x1bOP", Form::Function),
    key(&["f2"], "\x1bOQ", Form::Function),
    key(&["f3"], "\x1bOR", Form::Function),
    key(&["f4"], "\x1bOS", Form::Function),
    key(&["f5"], "\x1b[15~", Form::Function),
    key(&["f6"], "\x1b[17~", Form::Function),
    key(&["f7"], "\x1b[18~", Form::Function),
    key(&["f8"], "\x1b[19~", Form::Function),
    key(&["f9"], "\x1b[20~", Form::Function),
    key(&["f10"], "\x1b[21~", Form::Function),
    key(&["f11"], "\x1b[23~", Form::Function),
    key(&["f12"], "\x1b[24~", Form::Function),
    key(&["kp0"], "\x1bOp", Form::Plain),
    key(&["kp1"], "\x1bOq", Form::Plain),
    key(&["kp2"], "\x1bOr", Form::Plain),
    key(&["kp3"], "\x1bOs", Form::Plain),
    key(&["kp4"], "\x1bOt", Form::Plain),
    key(&["kp5"], "\x1bOu", Form::Plain),
    key(&["kp6"], "\x1bOv", Form::Plain),
    key(&["kp7"], "\x1bOw", Form::Plain),
    key(&["kp8"], "\x1bOx", Form::Plain),
    key(&["kp9"], "\x1bOy", Form::Plain),
    key(&["kp/"], "\x1bOo", Form::Plain),
    key(&["kp*"], "\x1bOj", Form::Plain),
    key(&["kp-"], "\x1bOm", Form::Plain),
    key(&["kp+"], "\x1bOk", Form::Plain),
    key(&["kp."], "\x1bOn", Form::Plain),
    key(&["kpenter"], "\x1bOM", Form::Plain),
];

/// The key of that name, in any case.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// The name that was most likely meant: one slip for short names, two for names of six letters and more.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    // No known name is longer than nine letters.
    if !(3..=11).contains(&name.len()) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let allowed = if name.len() < 6 { 1 } else { 2 };
    let (slips, near) =
        super::names().map(|known| (slips(&name, known), known)).min_by_key(|&(slips, _)| slips)?;
    (slips <= allowed).then_some(near)
}

/// Levenshtein distance in bytes.
fn slips(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut left = i + 1;
        let mut diagonal = i;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let above = *cell;
            left = (diagonal + usize::from(x != y)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
    }
    // `row[0]` is never read: the first column is `i` and starts `diagonal`.
    row.last().copied().unwrap_or(0)
}
