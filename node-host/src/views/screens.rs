//! Terminals drawn as text. Drawing goes on where it stopped, for the few that were asked for last.

use std::collections::VecDeque;

use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use proto::v1 as pb;
use session::SessionId;
use session::screen::Screen;

use super::unreadable;
use crate::process::Mode;
use crate::sessions::{Read, Session};

/// Screens that are kept: each is some hundred KiB.
const KEPT: usize = 8;
/// Bytes read in one go.
const BLOCK: usize = 64 * 1024;

/// Screens that were drawn lately, newest last.
#[derive(Default)]
pub(crate) struct Screens(Mutex<VecDeque<Drawn>>);

struct Drawn {
    session: SessionId,
    screen: Screen,
    size: (u16, u16),
    offset: u64,
}

impl std::fmt::Debug for Screens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Screens").field(&self.0.lock().len()).finish()
    }
}

impl Screens {
    /// The screen as it is now.
    pub(super) fn draw(&self, session: &Session) -> Result<pb::TerminalScreen, Fault> {
        let Mode::Terminal { cols, rows } = session.info().mode else {
            return Err(Fault::new(
                ErrorCode::NotATerminal,
                format!("session {} has no terminal", session.id()),
            )
            .hint("start it with `pty: true`; `log` shows the output of any session"));
        };
        let size = session.terminal().map_or((cols, rows), |facts| (facts.cols, facts.rows));
        let mut drawn = self.take(session.id()).unwrap_or_else(|| Drawn {
            session: session.id().clone(),
            screen: Screen::new(cols, rows),
            size: (cols, rows),
            offset: 0,
        });
        drawn.advance(session, size)?;
        let shown = drawn.screen.render();
        let alternate_screen = shown.alternate;
        let view = pb::TerminalScreen {
            lines: shown.lines,
            cursor_row: shown.cursor_row.into(),
            cursor_column: shown.cursor_col.into(),
            cursor_visible: shown.cursor_visible,
            columns: shown.cols.into(),
            rows: shown.rows.into(),
            offset: drawn.offset,
            alternate_screen,
        };
        self.keep(drawn);
        Ok(view)
    }

    fn take(&self, session: &SessionId) -> Option<Drawn> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|drawn| drawn.session == *session)?;
        kept.remove(at)
    }

    fn keep(&self, drawn: Drawn) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(drawn);
    }
}

impl Drawn {
    fn advance(&mut self, session: &Session, size: (u16, u16)) -> Result<(), Fault> {
        let end = session.end();
        let mut reader = session.reader(self.offset);
        while self.offset < end {
            match reader.next(BLOCK).map_err(|error| unreadable(&error))? {
                Read::Data(records) => records.iter().for_each(|record| self.screen.feed(&record.bytes)),
                // What was drawn before the gap may be anything: draw what comes on an empty screen.
                Read::Gap { .. } => self.screen = Screen::new(self.size.0, self.size.1),
                Read::Empty | Read::End => break,
            }
            self.offset = reader.position();
        }
        // The log does not say when the size changed; programs draw anew after it.
        if self.size != size {
            self.screen.resize(size.0, size.1);
            self.size = size;
        }
        Ok(())
    }
}
