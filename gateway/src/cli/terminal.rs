//! The terminal of the person at the command line: raw mode, its size, and the
//! key sequence that leaves a session.

mod viewer;

use std::io::{self, IsTerminal as _};

use proto::v1 as pb;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

pub(super) use viewer::Viewer;

/// Size of a terminal whose own is unknown (`runtime.md` §3).
const DEFAULT_SIZE: pb::WindowSize = pb::WindowSize { columns: 120, rows: 30 };

/// Raw mode until dropped. Nothing where stdin is no terminal.
#[derive(Debug)]
pub(super) struct RawMode {
    saved: Option<Termios>,
}

impl RawMode {
    /// Enters raw mode.
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(Self { saved: None });
        }
        let saved = tcgetattr(&stdin)?;
        let mut raw = saved.clone();
        raw.make_raw();
        // Not a flush: what was typed ahead is for the command.
        tcsetattr(&stdin, OptionalActions::Drain, &raw)?;
        Ok(Self { saved: Some(saved) })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            // The terminal may be gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, saved);
        }
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
    /// The bytes to send on, and whether the person wants to leave behind them.
    pub(super) fn filter(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut out = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            self.state = match (self.state, byte) {
                (At::LineStart, b'~') => At::Tilde,
                (At::Tilde, b'.') => return (out, true),
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
        (out, false)
    }
}

fn after(byte: u8) -> At {
    if byte == b'\r' || byte == b'\n' { At::LineStart } else { At::Inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequence() {
        let filter = |typed: &[&[u8]]| {
            let mut escape = Escape::default();
            let mut sent = Vec::new();
            for part in typed {
                let (bytes, leaves) = escape.filter(part);
                sent.extend(bytes);
                if leaves {
                    return (String::from_utf8(sent).unwrap(), true);
                }
            }
            (String::from_utf8(sent).unwrap(), false)
        };
        let table: [(&[&[u8]], &str, bool); 7] = [
            (&[b"ls ~.\r"], "ls ~.\r", false),
            (&[b"~."], "", true),
            (&[b"x\r", b"~", b"."], "x\r", true),
            // What stands before it is not lost.
            (&[b"too\r~.more"], "too\r", true),
            (&[b"x\r~~."], "x\r~.", false),
            (&[b"\r~a"], "\r~a", false),
            (&[b""], "", false),
        ];
        for (typed, sent, leaves) in table {
            assert_eq!(filter(typed), (sent.to_owned(), leaves), "{typed:?}");
        }
    }
}
