//! A session's output on its way to the person's terminal.
//!
//! What the program switches on there is put back at the end (field case F161), and questions that somebody else answers,
//! or that were asked long ago, are taken out: the person's terminal would type its answer into the program.

use std::io::{self, IsTerminal as _, Write as _};

use bytes::Bytes;
use session::modes::ModeTracker;

/// What a program may ask its terminal: where is the cursor?
const QUERIES: [&[u8]; 2] = [b"\x1b[6n", b"\x1b[?6n"];

/// The view of one session. Does nothing where stdout is no terminal.
#[derive(Debug)]
pub(in crate::cli) struct Viewer {
    is_terminal: bool,
    tracker: ModeTracker,
    questions: Questions,
}

impl Viewer {
    pub(in crate::cli) fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
            tracker: ModeTracker::new(),
            questions: Questions::default(),
        }
    }

    /// The session is known. `answered`: its node answers what the program asks. Output below `replayed` was there before
    /// this view.
    pub(in crate::cli) fn begin(&mut self, answered: bool, replayed: u64) {
        self.questions.below = if answered { u64::MAX } else { self.questions.below.max(replayed) };
    }

    /// What of a record is shown.
    pub(in crate::cli) fn show(&mut self, offset: u64, data: Bytes) -> Bytes {
        if !self.is_terminal {
            return data;
        }
        self.tracker.feed(&data);
        self.questions.take_out(offset, data)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let undo = self.tracker.modes().reset();
        if self.is_terminal && !undo.is_empty() {
            let mut out = io::stdout().lock();
            // The terminal may be gone.
            let _ = out.write_all(&undo).and_then(|()| out.flush());
        }
    }
}

/// Takes questions out of output, however it is cut into pieces.
#[derive(Debug, Default)]
struct Questions {
    /// Those that begin below this offset.
    below: u64,
    /// The beginning of what may be one.
    held: Vec<u8>,
}

impl Questions {
    fn take_out(&mut self, offset: u64, data: Bytes) -> Bytes {
        if self.held.is_empty() && (offset >= self.below || !data.contains(&0x1b)) {
            return data;
        }
        let mut out = Vec::with_capacity(data.len() + self.held.len());
        for (at, &byte) in (offset..).zip(data.iter()) {
            if self.held.is_empty() && (byte != 0x1b || at >= self.below) {
                out.push(byte);
                continue;
            }
            if byte == 0x1b {
                // Another sequence begins: the last one was none of them.
                out.append(&mut self.held);
            }
            self.held.push(byte);
            if QUERIES.contains(&self.held.as_slice()) {
                self.held.clear();
            } else if !QUERIES.iter().any(|query| query.starts_with(&self.held)) {
                out.append(&mut self.held);
            }
        }
        Bytes::from(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_taken_out_and_nothing_else() {
        let shown = |below: u64, parts: &[&str]| {
            let mut questions = Questions { below, held: Vec::new() };
            let mut offset = 0;
            let mut out = Vec::new();
            for part in parts {
                out.extend(questions.take_out(offset, Bytes::copy_from_slice(part.as_bytes())));
                offset += part.len() as u64;
            }
            String::from_utf8(out).unwrap()
        };
        let always = u64::MAX;
        assert_eq!(shown(always, &["a\u{1b}[6nb\u{1b}[?6nc"]), "abc");
        assert_eq!(shown(always, &["a\u{1b}", "[", "6", "nb"]), "ab");
        assert_eq!(shown(always, &["a\u{1b}[", "\u{1b}[?6", "nb\u{1b}[6;1H"]), "a\u{1b}[b\u{1b}[6;1H");
        assert_eq!(shown(always, &["\u{1b}[31m\u{1b}[?25l", "\u{1b}[5n"]), "\u{1b}[31m\u{1b}[?25l\u{1b}[5n");
        // The second one is asked of whoever watches now.
        assert_eq!(shown(5, &["\u{1b}[6nx", "\u{1b}[6ny"]), "x\u{1b}[6ny");
        assert_eq!(shown(0, &["\u{1b}[6n"]), "\u{1b}[6n");
    }
}
