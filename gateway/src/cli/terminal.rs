//! The terminal of the person at the command line: raw mode, its size, and the
//! key sequence that leaves a session.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};

use proto::v1 as pb;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Size of a terminal whose own is unknown (`runtime.md` §3).
const DEFAULT_SIZE: pb::WindowSize = pb::WindowSize { columns: 120, rows: 30 };

/// Raw mode until dropped. Nothing where stdin is no terminal.
#[derive(Debug)]
pub(super) struct RawMode {
    saved: Option<Termios>,
    modes: Modes,
}

impl RawMode {
    /// Enters raw mode.
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(Self { saved: None, modes: Modes::default() });
        }
        let saved = tcgetattr(&stdin)?;
        let mut raw = saved.clone();
        raw.make_raw();
        // Not a flush: what was typed ahead is for the command.
        tcsetattr(&stdin, OptionalActions::Drain, &raw)?;
        Ok(Self { saved: Some(saved), modes: Modes::default() })
    }

    /// Output of the command on its way to this terminal.
    pub(super) fn watch(&mut self, output: &[u8]) {
        self.modes.watch(output);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            let undo = self.modes.undo();
            if !undo.is_empty() && io::stdout().is_terminal() {
                let mut out = io::stdout().lock();
                let _ = out.write_all(&undo).and_then(|()| out.flush());
            }
            // The terminal may be gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, saved);
        }
    }
}

/// Modes that a command switched on in the person's terminal and that it may
/// leave on when it is killed: alternate screen, mouse, bracketed paste, hidden
/// cursor, keyboard protocol (field case F161).
#[derive(Debug, Default)]
struct Modes {
    at: Sequence,
    on: BTreeSet<u16>,
    keyboard: bool,
}

/// How far into `ESC [ …` the output is.
#[derive(Debug, Default)]
enum Sequence {
    #[default]
    Text,
    Escape,
    Control(Vec<u8>),
}

/// Private modes that are off in a terminal at rest; 25, the cursor, is on.
const RESTORED: [u16; 13] = [1, 9, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1047, 1049, 2004];
/// A longer control sequence sets no mode.
const CONTROL_MAX: usize = 64;
const CURSOR: u16 = 25;

impl Modes {
    fn watch(&mut self, output: &[u8]) {
        for &byte in output {
            self.at = match (std::mem::take(&mut self.at), byte) {
                (_, 0x1b) => Sequence::Escape,
                (Sequence::Escape, b'[') => Sequence::Control(Vec::new()),
                (Sequence::Control(mut parameters), 0x20..=0x3f) if parameters.len() < CONTROL_MAX => {
                    parameters.push(byte);
                    Sequence::Control(parameters)
                }
                (Sequence::Control(parameters), last) => {
                    self.end(&parameters, last);
                    Sequence::Text
                }
                (Sequence::Text | Sequence::Escape, _) => Sequence::Text,
            };
        }
    }

    fn end(&mut self, parameters: &[u8], last: u8) {
        match (parameters, last) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                let modes = String::from_utf8_lossy(modes).into_owned();
                for mode in modes.split(';').filter_map(|mode| mode.parse().ok()) {
                    // The cursor is the one that is on at rest.
                    let changed = (last == b'h') != (mode == CURSOR);
                    if changed && RESTORED.contains(&mode) {
                        self.on.insert(mode);
                    } else {
                        self.on.remove(&mode);
                    }
                }
            }
            ([b'>', ..], b'u') => self.keyboard = true,
            ([b'<', ..], b'u') => self.keyboard = false,
            _ => {}
        }
    }

    /// The bytes that bring the terminal back.
    fn undo(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.keyboard {
            bytes.extend(b"\x1b[<u");
        }
        for mode in &self.on {
            let last = if *mode == CURSOR { 'h' } else { 'l' };
            bytes.extend(format!("\x1b[?{mode}{last}").into_bytes());
        }
        bytes
    }
}

/// The size of the person's terminal.
pub(super) fn size() -> pb::WindowSize {
    match tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin())) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            pb::WindowSize { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        Ok(_) | Err(_) => DEFAULT_SIZE,
    }
}

/// Watches typed bytes for Enter `~` `.`, which leaves the session, as ssh
/// does. Enter `~` `~` types one `~`.
#[derive(Debug)]
pub(super) struct Escape {
    state: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    Tilde,
    Inside,
}

impl Default for Escape {
    fn default() -> Self {
        Self { state: At::LineStart }
    }
}

impl Escape {
    /// The bytes to send on; `None` when the person wants to leave.
    pub(super) fn filter(&mut self, typed: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            self.state = match (self.state, byte) {
                (At::LineStart, b'~') => At::Tilde,
                (At::Tilde, b'.') => return None,
                (At::Tilde, b'~') => {
                    out.push(b'~');
                    At::Inside
                }
                (At::Tilde, other) => {
                    out.extend([b'~', other]);
                    after(other)
                }
                (_, other) => {
                    out.push(other);
                    after(other)
                }
            };
        }
        Some(out)
    }
}

fn after(byte: u8) -> At {
    if byte == b'\r' || byte == b'\n' { At::LineStart } else { At::Inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_left_on_is_switched_off() {
        let undo = |parts: &[&[u8]]| {
            let mut modes = Modes::default();
            parts.iter().for_each(|part| modes.watch(part));
            String::from_utf8(modes.undo()).unwrap()
        };
        assert_eq!(undo(&[b"plain \x1b[31mred\x1b[0m"]), "");
        assert_eq!(undo(&[b"\x1b[?1049h\x1b[?25l", b"..", b"\x1b[?1049l\x1b[?25h"]), "");
        assert_eq!(
            undo(&[b"\x1b[?10", b"49h\x1b[?25l\x1b[?1;2004h"]),
            "\x1b[?1l\x1b[?25h\x1b[?1049l\x1b[?2004l"
        );
        assert_eq!(undo(&[b"\x1b[>1u"]), "\x1b[<u");
        assert_eq!(undo(&[b"\x1b[>1u\x1b[<u"]), "");
    }

    #[test]
    fn escape_sequence() {
        let filter = |typed: &[&[u8]]| {
            let mut escape = Escape::default();
            let mut out = Vec::new();
            for part in typed {
                out.extend(escape.filter(part)?);
            }
            Some(out)
        };
        assert_eq!(filter(&[b"ls ~.\r"]), Some(b"ls ~.\r".to_vec()));
        assert_eq!(filter(&[b"~."]), None);
        assert_eq!(filter(&[b"x\r", b"~", b"."]), None);
        assert_eq!(filter(&[b"x\r~~."]), Some(b"x\r~.".to_vec()));
        assert_eq!(filter(&[b"\r~a"]), Some(b"\r~a".to_vec()));
    }
}
