//! From raw bytes to characters that are safe to show: decoding, escape sequences, control and format characters.
//!
//! What is dropped is only what a terminal would take as a command. Everything else that cannot be shown as it is
//! appears escaped: `\x07` for a byte or a control character, `\u{202e}` for a character that would hide or reorder text.

use crate::offset::StreamTag;

/// The most bytes of a CSI or two-byte sequence, its ESC included.
const CSI_MAX: usize = 256;

/// The most bytes of an OSC, DCS, SOS, PM or APC string, its ESC included.
const STRING_MAX: usize = 4096;

/// How many merged bytes may pass while one stream stands in the middle of a character or sequence. Without a bound
/// half a character on one stream would keep [`Cleaner::settled`] from moving for as long as only the other one speaks.
const LAG_MAX: u64 = 64 * 1024;

/// The most tags behind a flag, without the one that ends them: the codes of regions are no longer. Tags are invisible, and
/// a text written in them is a known way to speak to a model behind a person's back.
const TAGS_MAX: u8 = 6;

const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// One character of cleaned output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyph {
    /// The character. Of the control characters only tab, newline, carriage return and backspace occur.
    pub ch: char,
    /// Merged offset of the first byte that it came from.
    pub from: u64,
    /// Merged offset behind the last byte that it came from. The characters of one escape (`\x07`) share their range.
    pub to: u64,
}

/// Cleans output. Each stream has its own decoder, since a character or an escape sequence may be split across records.
///
/// Glyphs come in the order in which they are complete. Where a character of one stream is split by bytes of the other,
/// its range holds theirs.
#[derive(Debug, Default)]
pub struct Cleaner {
    stdout: Decoder,
    stderr: Decoder,
    settled: u64,
}

impl Cleaner {
    /// Takes the next bytes of one stream, the first of which lies at `offset`. Offsets must rise from call to call; bytes
    /// that are passed over without [`gap`](Self::gap) count as bytes of a stream that is not looked at.
    pub fn push(&mut self, stream: StreamTag, offset: u64, bytes: &[u8], sink: &mut impl FnMut(Glyph)) {
        let (own, other) = match stream {
            StreamTag::Stdout => (&mut self.stdout, &mut self.stderr),
            StreamTag::Stderr => (&mut self.stderr, &mut self.stdout),
        };
        for (at, &byte) in (offset..).zip(bytes) {
            if other.since().is_some_and(|since| at.saturating_sub(since) >= LAG_MAX) {
                other.show(sink);
            }
            own.byte(at, byte, sink);
            if own.since().is_none() && other.since().is_none() {
                self.settled = at.saturating_add(1);
            }
        }
    }

    /// The bytes from `from` to `to` are not there: what was begun before is shown as it stands.
    pub fn gap(&mut self, from: u64, to: u64, sink: &mut impl FnMut(Glyph)) {
        self.finish(sink);
        self.settled = self.settled.max(from).max(to);
    }

    /// The last offset at which neither stream was in the middle of something. A reader that goes on there with a fresh
    /// cleaner sees the rest whole.
    ///
    /// Everything before it has been given out. While one stream stands in the middle of a character, glyphs of the
    /// other one behind this offset have been given out too; a reader that goes on here meets those again. It never
    /// lags by more than 64 KiB and one sequence.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Nothing more comes: shows what was begun, in the order in which it was begun. The bytes taken so far are settled.
    pub fn finish(&mut self, sink: &mut impl FnMut(Glyph)) {
        let end = self.stdout.end.max(self.stderr.end);
        if self.stderr.since() < self.stdout.since() {
            self.stderr.show(sink);
            self.stdout.show(sink);
        } else {
            self.stdout.show(sink);
            self.stderr.show(sink);
        }
        self.settled = self.settled.max(end);
    }
}

/// What a decoder is in the middle of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nothing; no bytes are held.
    #[default]
    Ground,
    /// A character of several bytes.
    Character,
    /// ESC was seen.
    Escape,
    /// ESC and intermediate bytes, such as the choice of a character set.
    Intermediate,
    /// `ESC [`.
    Csi,
    /// A string up to its terminator.
    String(Kind),
    /// A string, in which an ESC was seen: the first half of its terminator, or of the next sequence.
    StringEscape(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ended by BEL or ST; never holds a newline.
    Osc,
    /// DCS, SOS, PM, APC: ended by ST only.
    Other,
}

/// The state of one stream.
#[derive(Debug, Default)]
struct Decoder {
    state: State,
    /// The bytes of what was begun, with their offsets. At most [`STRING_MAX`].
    held: Vec<(u64, u8)>,
    /// The last character was a black flag or a tag behind one: where the flag lies, and how many tags it has.
    flag: Option<(u64, u8)>,
    /// Behind the last byte taken.
    end: u64,
}

impl Decoder {
    /// Where that began which is not finished.
    fn since(&self) -> Option<u64> {
        self.flag.map(|(at, _)| at).or(self.held.first().map(|&(at, _)| at))
    }

    fn byte(&mut self, at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
        self.end = at.saturating_add(1);
        match (self.state, byte) {
            (State::Ground, _) => self.ground(at, byte, sink),
            (State::Character, _) => self.character(at, byte, sink),
            // Every sequence ends here, whatever it was.
            (_, CAN | SUB) => self.drop_held(),
            (State::Escape, b'[') => self.hold(State::Csi, at, byte, sink),
            (State::Escape, b']') => self.hold(State::String(Kind::Osc), at, byte, sink),
            (State::Escape, b'P' | b'X' | b'^' | b'_') => {
                self.hold(State::String(Kind::Other), at, byte, sink)
            }
            (State::Escape | State::Intermediate, b' '..=b'/') => {
                self.hold(State::Intermediate, at, byte, sink)
            }
            (State::Escape | State::Intermediate, b'0'..=b'~') => self.drop_held(),
            (State::Csi, b' '..=b'?') => self.hold(State::Csi, at, byte, sink),
            (State::Csi, b'@'..=b'~') => self.drop_held(),
            (State::Escape | State::Intermediate | State::Csi, _) => self.broken(at, byte, sink),
            (State::String(Kind::Osc), BEL) => self.drop_held(),
            // A forgotten terminator would otherwise hide the lines up to the next sequence.
            (State::String(Kind::Osc), b'\n') => self.broken(at, byte, sink),
            (State::String(kind), ESC) => self.hold(State::StringEscape(kind), at, byte, sink),
            (State::String(kind), _) => self.hold(State::String(kind), at, byte, sink),
            (State::StringEscape(_), b'\\') => self.drop_held(),
            (State::StringEscape(_), _) => {
                let escape = self.held.pop();
                self.drop_held();
                self.held.extend(escape);
                self.state = State::Escape;
                self.byte(at, byte, sink);
            }
        }
    }

    fn ground(&mut self, at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
        if !matches!(byte, 0xc2..=0xf4) {
            self.flag = None;
        }
        match byte {
            b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0x08 => {
                sink(Glyph { ch: char::from(byte), from: at, to: at.saturating_add(1) });
            }
            ESC => self.hold(State::Escape, at, byte, sink),
            // The first bytes of characters; what follows decides.
            0xc2..=0xf4 => self.hold(State::Character, at, byte, sink),
            _ => show_byte(at, byte, sink),
        }
    }

    fn character(&mut self, at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
        self.held.push((at, byte));
        let mut raw = [0; 4];
        let len = raw.iter_mut().zip(&self.held).map(|(to, &(_, byte))| *to = byte).count();
        match std::str::from_utf8(raw.get(..len).unwrap_or_default()) {
            Ok(text) => {
                let from = self.held.first().map_or(at, |&(at, _)| at);
                self.drop_held();
                for ch in text.chars() {
                    self.show_char(Glyph { ch, from, to: at.saturating_add(1) }, sink);
                }
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => {
                self.held.pop();
                self.broken(at, byte, sink);
            }
        }
    }

    fn show_char(&mut self, glyph: Glyph, sink: &mut impl FnMut(Glyph)) {
        let (visible, flag) = match (glyph.ch, self.flag) {
            ('\u{1f3f4}', _) => (true, Some((glyph.from, 0))),
            ('\u{e0020}'..='\u{e007e}', Some((at, tags))) if tags < TAGS_MAX => {
                (true, Some((at, tags.saturating_add(1))))
            }
            ('\u{e007f}', Some(_)) => (true, None),
            (ch, _) => (is_visible(ch), None),
        };
        self.flag = flag;
        if visible {
            sink(glyph);
        } else {
            glyph.ch.escape_unicode().for_each(|ch| sink(Glyph { ch, ..glyph }));
        }
    }

    fn hold(&mut self, state: State, at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
        self.state = state;
        self.held.push((at, byte));
        let max = match state {
            State::Ground | State::Character | State::Escape | State::Intermediate | State::Csi => CSI_MAX,
            State::String(_) | State::StringEscape(_) => STRING_MAX,
        };
        if self.held.len() >= max {
            self.unroll(sink);
        }
    }

    /// `byte` does not continue what was begun: that is shown, and `byte` stands for itself.
    fn broken(&mut self, at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
        self.show(sink);
        self.byte(at, byte, sink);
    }

    fn drop_held(&mut self) {
        self.state = State::Ground;
        self.held.clear();
    }

    /// Shows all of what was begun.
    fn show(&mut self, sink: &mut impl FnMut(Glyph)) {
        self.flag = None;
        while self.state != State::Ground {
            self.unroll(sink);
        }
    }

    /// Shows the first byte of what was begun and reads those behind it anew, which may begin something again.
    fn unroll(&mut self, sink: &mut impl FnMut(Glyph)) {
        let end = self.end;
        self.state = State::Ground;
        self.flag = None;
        let mut held = std::mem::take(&mut self.held).into_iter();
        if let Some((at, byte)) = held.next() {
            show_byte(at, byte, sink);
        }
        held.for_each(|(at, byte)| self.byte(at, byte, sink));
        self.end = end;
    }
}

/// Shows a byte that is no character, or one that must not be sent on as it is.
fn show_byte(at: u64, byte: u8, sink: &mut impl FnMut(Glyph)) {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('?');
    for ch in ['\\', 'x', digit(byte >> 4), digit(byte & 15)] {
        sink(Glyph { ch, from: at, to: at.saturating_add(1) });
    }
}

/// Whether a character beyond ASCII is shown as it is: no C1 control, no line or paragraph separator, no format character
/// (general category Cf, Unicode 17) but the joiners, which emoji and some scripts need.
fn is_visible(ch: char) -> bool {
    !matches!(ch,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests;
