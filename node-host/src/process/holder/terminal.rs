//! A session's terminal as its holder sees it: both ends, the size, and what the program switched on.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::termios::tcgetwinsize;
use session::modes::ModeTracker;

use crate::process::spawn;
use crate::process::wire::TerminalFacts;

/// The shortest time between two reports. A program that redraws its screen switches modes on and off again.
const PACE: Duration = Duration::from_millis(20);

/// Whether the holder answers for the person who is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queries {
    /// Where the program asks for the cursor.
    Answer,
    /// Somebody else does, or nobody.
    Leave,
}

/// A terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    master: OwnedFd,
    /// The command's side, open for as long as the command is there.
    line: Option<OwnedFd>,
    tracker: ModeTracker,
    queries: Queries,
    /// Something changed since the last report.
    changed: bool,
    told_at: Option<Instant>,
}

impl Terminal {
    pub(super) fn new(master: OwnedFd, line: Option<OwnedFd>, queries: Queries) -> Terminal {
        Terminal { master, line, tracker: ModeTracker::new(), queries, changed: true, told_at: None }
    }

    /// Looks at output. Gives how many answers are to be typed.
    pub(super) fn watch(&mut self, output: &[u8]) -> u32 {
        let seen = self.tracker.feed(output);
        self.changed |= seen.changed;
        match self.queries {
            Queries::Answer => seen.cursor_queries,
            Queries::Leave => 0,
        }
    }

    /// Gives it another size.
    pub(super) fn resize(&mut self, cols: u16, rows: u16) {
        spawn::resize(&self.master, cols, rows);
        self.changed = true;
    }

    pub(super) fn foreground_group(&self) -> Option<Pid> {
        spawn::foreground_group(&self.master)
    }

    /// From here on the terminal ends with the last of the others who have it open.
    pub(super) fn let_go_of_line(&mut self) {
        self.line = None;
    }

    /// When the next report is due; none when there is nothing new.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        self.changed.then(|| self.told_at.map_or(now, |at| at + PACE))
    }

    /// Whether something changed since the last report.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// The report. The size is asked of the system: the program may have set it as well.
    pub(super) fn report(&mut self, now: Instant) -> TerminalFacts {
        self.changed = false;
        self.told_at = Some(now);
        let (cols, rows) = tcgetwinsize(&self.master).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        TerminalFacts { cols, rows, modes: self.tracker.modes().clone() }
    }
}

#[cfg(test)]
mod tests {
    use portable_pty::{PtySize, native_pty_system};
    use session::modes::Modes;

    use super::*;
    use crate::sys;

    fn terminal(queries: Queries) -> Terminal {
        let size = PtySize { rows: 30, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let master = sys::duplicate(pair.master.as_raw_fd().unwrap()).unwrap();
        Terminal::new(master, None, queries)
    }

    #[test]
    fn reports_come_at_once_and_then_in_steps_and_the_newest_wins() {
        let mut terminal = terminal(Queries::Leave);
        let start = Instant::now();
        let soon = start + Duration::from_millis(1);
        let facts = |cols, rows, modes| TerminalFacts { cols, rows, modes };
        assert_eq!(terminal.due(start), Some(start));
        assert_eq!(terminal.report(start), facts(120, 30, Modes::default()));
        assert_eq!((terminal.due(soon), terminal.is_changed()), (None, false));

        terminal.watch(b"plain");
        assert_eq!(terminal.due(soon), None);
        terminal.watch(b"\x1b[?2004");
        terminal.watch(b"h\x1b[?1h");
        terminal.watch(b"\x1b[?1l");
        terminal.resize(80, 24);
        assert_eq!((terminal.due(soon), terminal.is_changed()), (Some(start + PACE), true));
        let modes = Modes { bracketed_paste: true, application_cursor: Some(false), ..Modes::default() };
        assert_eq!(terminal.report(start + PACE), facts(80, 24, modes));
        assert!(!terminal.is_changed());
    }

    #[test]
    fn queries_are_counted_only_where_they_are_answered() {
        let output = b"\x1b[6n and \x1b[6n";
        assert_eq!(terminal(Queries::Answer).watch(output), 2);
        assert_eq!(terminal(Queries::Leave).watch(output), 0);
    }
}
