//! Key names, hexadecimal bytes and pasted text as the bytes that a terminal would send (runtime.md §2.5).
//!
//! Does **not** know when a program is ready for the next key: the bytes come back stroke by stroke, and the caller
//! waits between them if it was asked to.

mod table;

use table::{Form, Key};

/// The most bytes that one call sends.
pub const MAX_BYTES: usize = 64 * 1024;

/// What the action `submit` sends: the Enter key.
pub const SUBMIT: &[u8] = b"\r";

/// More warnings than this are counted, not listed.
const MAX_WARNINGS: usize = 16;

const PASTE_START: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// How a program's terminal wants its cursor keys. A program that said nothing counts as [`CursorKeys::Normal`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CursorKeys {
    /// `ESC [ A` and the like.
    #[default]
    Normal,
    /// `ESC O A` and the like (DECCKM).
    Application,
}

/// What is to be typed, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// Text, sent as it is.
    pub literal: String,
    /// Bytes of one or two hexadecimal digits, with or without `0x`.
    pub hex: Vec<String>,
    /// Key names with modifiers, such as `C-c`, `M-x`, `S-tab`, `^D`, `up`.
    pub keys: Vec<String>,
}

/// What to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoded {
    /// One for the text, one for all hexadecimal bytes, one per key: a delay goes between them.
    pub strokes: Vec<Vec<u8>>,
    /// What was skipped or sent otherwise than its name says, for the caller to read.
    pub warnings: Vec<String>,
}

/// Why there is nothing to send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Neither text nor bytes nor keys.
    #[error("no keys given: name at least one of literal, hex and keys")]
    NoKeys,
    /// An empty paste without brackets would send no byte.
    #[error("nothing to paste")]
    NothingToPaste,
    /// More than [`MAX_BYTES`].
    #[error("this is more than {max} bytes of input; send it in parts")]
    TooLong {
        /// The most bytes that one call sends.
        max: usize,
    },
}

/// Turns names into bytes. What cannot be read is skipped and named in a warning.
///
/// # Errors
/// [`KeyError::NoKeys`] when all three lists are empty, [`KeyError::TooLong`] beyond [`MAX_BYTES`].
pub fn encode(keys: &Keys, cursor: CursorKeys) -> Result<Encoded, KeyError> {
    if keys.literal.is_empty() && keys.hex.is_empty() && keys.keys.is_empty() {
        return Err(KeyError::NoKeys);
    }
    let mut strokes = Strokes::default();
    let mut warnings = Warnings::default();
    strokes.push(keys.literal.clone().into_bytes())?;
    let mut bytes = Vec::new();
    for entry in &keys.hex {
        match hex_byte(entry) {
            Some(byte) => bytes.push(byte),
            None => warnings.add(|| format!("{} is not one or two hex digits; skipped", shown(entry))),
        }
    }
    strokes.push(bytes)?;
    for name in &keys.keys {
        strokes.push(key(name, cursor, &mut warnings))?;
    }
    Ok(Encoded { strokes: strokes.list, warnings: warnings.list() })
}

/// Text as a terminal pastes it: line ends become the Enter key.
///
/// In brackets the program is told where the paste starts and ends. Control characters other than tab and line end
/// are left out there, so that a text can neither close its brackets early nor send an interrupt (F154).
///
/// # Errors
/// [`KeyError::NothingToPaste`] for an empty text without brackets, [`KeyError::TooLong`] beyond [`MAX_BYTES`].
pub fn paste(text: &str, bracketed: bool) -> Result<Vec<u8>, KeyError> {
    if text.is_empty() && !bracketed {
        return Err(KeyError::NothingToPaste);
    }
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    let typed = if bracketed {
        let inner: String = text.chars().filter(|&c| matches!(c, '\t' | '\r') || !c.is_control()).collect();
        format!("{PASTE_START}{inner}{PASTE_END}")
    } else {
        text
    };
    if typed.len() > MAX_BYTES {
        return Err(KeyError::TooLong { max: MAX_BYTES });
    }
    Ok(typed.into_bytes())
}

/// Every key name, aliases included.
pub fn names() -> impl Iterator<Item = &'static str> {
    table::KEYS.iter().flat_map(|key| key.names).copied()
}

/// Strokes that stay within [`MAX_BYTES`].
#[derive(Default)]
struct Strokes {
    list: Vec<Vec<u8>>,
    bytes: usize,
}

impl Strokes {
    fn push(&mut self, stroke: Vec<u8>) -> Result<(), KeyError> {
        self.bytes += stroke.len();
        if self.bytes > MAX_BYTES {
            return Err(KeyError::TooLong { max: MAX_BYTES });
        }
        if !stroke.is_empty() {
            self.list.push(stroke);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Warnings {
    listed: Vec<String>,
    more: usize,
}

impl Warnings {
    fn add(&mut self, text: impl FnOnce() -> String) {
        if self.listed.len() < MAX_WARNINGS {
            self.listed.push(text());
        } else {
            self.more += 1;
        }
    }

    fn list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.listed.push(format!("{} more warnings", self.more));
        }
        self.listed
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modifiers {
    shift: bool,
    alt: bool,
    control: bool,
}

impl Modifiers {
    const NONE: Modifiers = Modifiers { shift: false, alt: false, control: false };

    /// The number that xterm puts into a sequence.
    fn code(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

fn key(name: &str, cursor: CursorKeys, warnings: &mut Warnings) -> Vec<u8> {
    let name = name.trim();
    let (mut modifiers, mut base) = split_modifiers(name);
    if let Some(rest) = base.strip_prefix('^')
        && single(rest).is_some()
    {
        modifiers.control = true;
        base = rest;
    }
    if let Some(c) = single(base) {
        return character(c, modifiers, name, warnings);
    }
    if let Some(key) = table::find(base) {
        return named(key, modifiers, cursor, name, warnings);
    }
    warnings.add(|| match (name.is_empty(), table::nearest(base)) {
        (true, _) => "an empty key name; skipped (the space bar is \"space\")".to_owned(),
        (false, Some(near)) => format!("{} is no key, sent as text; did you mean {near:?}?", shown(name)),
        (false, None) => format!("{} is no key, sent as text", shown(name)),
    });
    name.as_bytes().to_vec()
}

/// Takes `C-`, `M-` and `S-` off the front, as often as they come and as long as something is left.
fn split_modifiers(name: &str) -> (Modifiers, &str) {
    let mut modifiers = Modifiers::NONE;
    let mut rest = name;
    while let [letter, b'-', _, ..] = rest.as_bytes() {
        match letter.to_ascii_uppercase() {
            b'C' => modifiers.control = true,
            b'M' => modifiers.alt = true,
            b'S' => modifiers.shift = true,
            _ => break,
        }
        rest = rest.get(2..).unwrap_or_default();
    }
    (modifiers, rest)
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

fn character(c: char, modifiers: Modifiers, name: &str, warnings: &mut Warnings) -> Vec<u8> {
    let c = if modifiers.shift { c.to_ascii_uppercase() } else { c };
    let mut out = Vec::new();
    if modifiers.alt {
        out.push(0x1b);
    }
    let controlled = match c.to_ascii_uppercase() {
        '?' => Some(0x7f),
        c @ '@'..='_' => Some(c as u8 & 0x1f),
        _ => None,
    };
    match controlled.filter(|_| modifiers.control) {
        Some(byte) => out.push(byte),
        None => {
            if modifiers.control {
                warnings.add(|| format!("{}: control has no effect on {c:?}", shown(name)));
            }
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out
}

fn named(
    key: &Key,
    modifiers: Modifiers,
    cursor: CursorKeys,
    name: &str,
    warnings: &mut Warnings,
) -> Vec<u8> {
    let Modifiers { shift, alt, control } = modifiers;
    match key.form {
        Form::Cursor(end) if modifiers == Modifiers::NONE && cursor == CursorKeys::Application => {
            return format!("\x1bO{end}").into_bytes();
        }
        Form::Cursor(_) | Form::Edit if modifiers != Modifiers::NONE => {
            return key.with_code(modifiers.code());
        }
        // Alt alone is the prefix that §2.5 asks for; nothing shorter carries the other two.
        Form::Function if shift || control => return key.with_code(modifiers.code()),
        _ => {}
    }
    let (bytes, understood) = match (key.form, shift, control) {
        (Form::Tab, true, false) => ("\x1b[Z", true),
        (Form::Space, false, true) => ("\0", true),
        (_, false, false) => (key.bytes, true),
        _ => (key.bytes, false),
    };
    if !understood {
        warnings
            .add(|| format!("{}: this key has no such form, sent without shift and control", shown(name)));
    }
    let prefix = if alt { "\x1b" } else { "" };
    format!("{prefix}{bytes}").into_bytes()
}

fn hex_byte(entry: &str) -> Option<u8> {
    let entry = entry.trim();
    let digits = entry.strip_prefix("0x").or_else(|| entry.strip_prefix("0X")).unwrap_or(entry);
    // `from_str_radix` would also take a sign.
    let plain = matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// A name for a warning: quoted, escaped, not longer than a line.
fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(40).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    format!("{short:?}")
}

#[cfg(test)]
mod tests;
