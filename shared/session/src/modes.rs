//! What the output of a terminal program switched on (runtime.md §2.5, §3).
//!
//! Reads every byte a program writes, so it only looks closely at escape sequences. Does **not** draw anything; see
//! [`crate::screen`] for that.

use serde::{Deserialize, Serialize};

/// The answer to a cursor query: the upper left corner, as for a terminal that was just opened (§3).
pub const CURSOR_ANSWER: &[u8] = b"\x1b[1;1R";

const ESC: u8 = 0x1b;

/// What a program switched on in its terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// Cursor keys are sent as in application mode; none: the program said nothing.
    pub application_cursor: Option<bool>,
    /// Pasted text is to be put in brackets.
    pub bracketed_paste: bool,
    /// The alternate screen is shown.
    pub alternate_screen: bool,
    /// Mouse events are reported.
    pub mouse: bool,
    /// The kitty keyboard protocol is on.
    pub kitty_keys: bool,
    /// The cursor is hidden.
    pub cursor_hidden: bool,
}

impl Modes {
    /// The bytes that put a viewer's terminal back after a program that left modes on (F161); none if it left none.
    pub fn reset(&self) -> Vec<u8> {
        let mut out = String::new();
        let mut add = |on: bool, bytes| {
            if on {
                out.push_str(bytes);
            }
        };
        // Each screen has its own keyboard flags: off on both. Popping first brings back what was there before.
        let keys_off = "\x1b[<u\x1b[=0;1u";
        add(self.kitty_keys, keys_off);
        add(self.mouse, "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l");
        add(self.bracketed_paste, "\x1b[?2004l");
        add(self.application_cursor == Some(true), "\x1b[?1l\x1b>");
        add(self.alternate_screen, "\x1b[?1049l");
        add(self.alternate_screen && self.kitty_keys, keys_off);
        add(self.cursor_hidden, "\x1b[?25h");
        if !out.is_empty() {
            // Such a program also leaves focus reports and colours behind, which nobody kept track of.
            out.push_str("\x1b[?1004l\x1b[m");
        }
        out.into_bytes()
    }
}

/// What a piece of output did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// A mode is not what it was before.
    pub changed: bool,
    /// Cursor queries (`ESC[6n`, `ESC[?6n`), each to be answered with [`CURSOR_ANSWER`].
    pub cursor_queries: u32,
}

/// Follows the modes through a program's output, whatever way it is cut into pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModeTracker {
    modes: Modes,
    state: State,
    sequence: Sequence,
    kitty: KittyFlags,
}

/// Where in an escape sequence the output stands. The content of strings (OSC, DCS) needs no state: only `ESC` ends
/// or starts anything that matters here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// Behind `ESC` and an intermediate byte, as in `ESC ( B`.
    EscapeIntermediate,
    /// Behind `ESC [`.
    Csi,
    /// In a control sequence that no terminal would obey.
    CsiIgnored,
}

/// A control sequence as far as it was read. All private modes in one sequence get the same value, so a set of those
/// named is enough, however many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sequence {
    /// One of `< = > ?`.
    marker: Option<u8>,
    /// One of `!` to `/`.
    intermediate: Option<u8>,
    /// The parameter that is being read.
    number: u16,
    /// Digits or separators were there.
    started: bool,
    /// The first two parameters; counts every one.
    first: [u16; 2],
    count: u8,
    named: u8,
}

const CURSOR_KEYS: u8 = 1;
const PASTE: u8 = 2;
const ALTERNATE: u8 = 4;
const MOUSE: u8 = 8;
const CURSOR: u8 = 16;

impl Sequence {
    fn close_parameter(&mut self) {
        if let Some(slot) = self.first.get_mut(usize::from(self.count)) {
            *slot = self.number;
        }
        self.count = self.count.saturating_add(1);
        self.named |= match self.number {
            1 => CURSOR_KEYS,
            9 | 1000..=1003 => MOUSE,
            25 => CURSOR,
            47 | 1047 | 1049 => ALTERNATE,
            2004 => PASTE,
            _ => 0,
        };
        self.number = 0;
    }
}

/// The flags that programs pushed onto the kitty keyboard stack, latest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KittyFlags([u8; 8]);

impl KittyFlags {
    fn push(&mut self, flags: u8) {
        self.0.rotate_right(1);
        self.0[0] = flags;
    }

    fn pop(&mut self, count: u16) {
        for _ in 0..usize::from(count).min(self.0.len()) {
            self.0[0] = 0;
            self.0.rotate_left(1);
        }
    }

    fn set(&mut self, flags: u8, how: u16) {
        match how {
            2 => self.0[0] |= flags,
            3 => self.0[0] &= !flags,
            _ => self.0[0] = flags,
        }
    }

    fn on(self) -> bool {
        self.0[0] != 0
    }
}

impl ModeTracker {
    /// A terminal that was just opened.
    pub fn new() -> ModeTracker {
        ModeTracker::default()
    }

    /// The modes after everything that was fed.
    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// Reads the next bytes of output.
    pub fn feed(&mut self, bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        let mut rest = bytes;
        loop {
            if self.state == State::Ground {
                let Some(at) = rest.iter().position(|&b| b == ESC) else {
                    return seen;
                };
                rest = rest.get(at..).unwrap_or_default();
            }
            let Some((&byte, behind)) = rest.split_first() else {
                return seen;
            };
            self.state = self.step(byte, &mut seen);
            rest = behind;
        }
    }

    fn step(&mut self, byte: u8, seen: &mut Seen) -> State {
        match (self.state, byte) {
            (_, ESC) => State::Escape,
            // CAN and SUB give up a sequence; other controls are obeyed inside of it and change nothing here.
            (_, 0x18 | 0x1a) | (State::Ground, _) => State::Ground,
            (state, 0x00..=0x1f | 0x7f) => state,
            (_, 0x80..) => State::Ground,

            (State::Escape, b'[') => {
                self.sequence = Sequence::default();
                State::Csi
            }
            (State::Escape, b'c') => {
                self.kitty = KittyFlags::default();
                self.change(
                    |modes| *modes = Modes { application_cursor: Some(false), ..Modes::default() },
                    seen,
                );
                State::Ground
            }
            (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => State::EscapeIntermediate,
            (State::Escape | State::EscapeIntermediate, _) => State::Ground,

            (State::Csi, 0x20..=0x3f) => self.collect(byte),
            (State::Csi, _) => {
                self.dispatch(byte, seen);
                State::Ground
            }
            (State::CsiIgnored, 0x40..) => State::Ground,
            (State::CsiIgnored, _) => State::CsiIgnored,
        }
    }

    /// A byte between `ESC [` and the final byte.
    fn collect(&mut self, byte: u8) -> State {
        let sequence = &mut self.sequence;
        match byte {
            0x20..=0x2f => sequence.intermediate = Some(byte),
            _ if sequence.intermediate.is_some() => return State::CsiIgnored,
            b'0'..=b'9' => {
                sequence.started = true;
                sequence.number = sequence.number.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
            }
            b';' => {
                sequence.started = true;
                sequence.close_parameter();
            }
            b'<'..=b'?' if !sequence.started && sequence.marker.is_none() => sequence.marker = Some(byte),
            _ => return State::CsiIgnored,
        }
        State::Csi
    }

    /// A whole control sequence.
    fn dispatch(&mut self, end: u8, seen: &mut Seen) {
        self.sequence.close_parameter();
        let Sequence { marker, intermediate, first: [one, two], count, named, .. } = self.sequence;
        let one_flags = one.min(0xff) as u8;
        match (marker, intermediate, end) {
            (None | Some(b'?'), None, b'n') if one == 6 && count == 1 => {
                seen.cursor_queries = seen.cursor_queries.saturating_add(1);
            }
            (Some(b'?'), None, b'h' | b'l') => self.switch(named, end == b'h', seen),
            (Some(b'>'), None, b'u') => self.kitty.push(one_flags),
            (Some(b'<'), None, b'u') => self.kitty.pop(one.max(1)),
            (Some(b'='), None, b'u') => self.kitty.set(one_flags, two),
            // A soft reset keeps the screen that is shown.
            (None, Some(b'!'), b'p') => {
                self.kitty = KittyFlags::default();
                self.change(
                    |modes| {
                        *modes = Modes {
                            application_cursor: Some(false),
                            alternate_screen: modes.alternate_screen,
                            ..Modes::default()
                        };
                    },
                    seen,
                );
            }
            _ => {}
        }
        let kitty = self.kitty.on();
        self.change(|modes| modes.kitty_keys = kitty, seen);
    }

    fn switch(&mut self, named: u8, on: bool, seen: &mut Seen) {
        self.change(
            |modes| {
                let set = |mode, field: &mut bool, value| {
                    if named & mode != 0 {
                        *field = value;
                    }
                };
                set(PASTE, &mut modes.bracketed_paste, on);
                set(ALTERNATE, &mut modes.alternate_screen, on);
                // The kinds of mouse reports exclude each other: leaving any of them leaves all.
                set(MOUSE, &mut modes.mouse, on);
                set(CURSOR, &mut modes.cursor_hidden, !on);
                if named & CURSOR_KEYS != 0 {
                    modes.application_cursor = Some(on);
                }
            },
            seen,
        );
    }

    fn change(&mut self, change: impl FnOnce(&mut Modes), seen: &mut Seen) {
        let before = self.modes.clone();
        change(&mut self.modes);
        seen.changed |= before != self.modes;
    }
}

#[cfg(test)]
pub(crate) mod tests;
