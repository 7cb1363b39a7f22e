//! Waiting for something in a session.

use std::time::Duration;

use fault::Fault;
use proto::v1::{self as pb, read_text::Fired};
use session::view::Cleaner;
use session::view::Watcher;
use tokio::time::Instant;

use super::{unreadable, watcher};
use crate::process::holder::unix_ms;
use crate::process::reads;
use crate::sessions::{LogReader, Read, Session};

/// The longest wait; a caller who wants more asks again.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether a process reads its input.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(200);
/// Looks in a row that must say so, without output in between: a program that reads in passing does not wait.
const LOOKS: u32 = 2;
/// Bytes read in one go.
const BLOCK: usize = 64 * 1024;

/// How a wait ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) fired: Fired,
    /// What matched, and the offsets of its bytes.
    pub(super) matched: Option<(u64, u64, String)>,
}

impl From<Fired> for Ended {
    fn from(fired: Fired) -> Self {
        Self { fired, matched: None }
    }
}

/// Waits for the first of what is asked for, seen from `from` on. Where nothing is asked for, only time and the end of
/// the session count.
pub(super) async fn until(session: &Session, from: u64, wait: &pb::Wait) -> Result<Ended, Fault> {
    let deadline = Instant::now() + Duration::from_millis(wait.timeout_ms).min(WAIT_MAX);
    let mut pattern = watcher(wait)?.map(|watcher| Pattern::new(session, from, watcher));
    let mut progress = session.progress();
    let mut heard = Heard::new(session);
    let mut looks = 0;
    let began = Instant::now();
    loop {
        let (end, over) = {
            let progress = progress.borrow_and_update();
            (progress.end, progress.exit.is_some())
        };
        if heard.to(end) {
            looks = 0;
        }
        if let Some(pattern) = &mut pattern {
            // Piece by piece: a long backlog must not keep the link from its other work.
            while pattern.is_behind(end) {
                match pattern.look()? {
                    Looked::Matched(matched) => {
                        return Ok(Ended { fired: Fired::Pattern, matched: Some(matched) });
                    }
                    Looked::NotYet => {}
                    Looked::AtEnd => break,
                }
                if deadline <= Instant::now() {
                    return Ok(Fired::Timeout.into());
                }
                tokio::task::yield_now().await;
            }
        }
        if over {
            return Ok(Fired::Exit.into());
        }
        if wait.bytes > 0 && end.saturating_sub(from) >= wait.bytes {
            return Ok(Fired::Bytes.into());
        }
        let now = Instant::now();
        let idle_at = (wait.idle_ms > 0).then(|| heard.at + Duration::from_millis(wait.idle_ms));
        if idle_at.is_some_and(|at| at <= now) {
            return Ok(Fired::Idle.into());
        }
        if wait.reads_input {
            let info = session.info();
            looks = if info.stdin_open && info.pid.and_then(reads::reads_input) == Some(true) {
                looks + 1
            } else {
                0
            };
            if looks >= LOOKS {
                return Ok(Fired::ReadsInput.into());
            }
        }
        if deadline <= now {
            return Ok(Fired::Timeout.into());
        }
        // The holder tells at once where somebody waits for the next byte.
        session.want_output(end);
        // A program that has been at work for long need not be looked at so often.
        let pause = (now - began).div_f32(50.0).clamp(LOOK, LOOK_MAX);
        let look_at = wait.reads_input.then(|| now + pause);
        let next = [Some(deadline), idle_at, look_at].into_iter().flatten().min().unwrap_or(deadline);
        tokio::select! {
            changed = progress.changed() => if changed.is_err() {
                return Ok(Fired::Exit.into());
            },
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

/// When the last output was.
struct Heard {
    end: u64,
    at: Instant,
}

impl Heard {
    fn new(session: &Session) -> Self {
        let since = session.last_output_unix_ms().unwrap_or(session.info().started_unix_ms);
        let ago = Duration::from_millis(unix_ms().saturating_sub(since));
        let now = Instant::now();
        Self { end: session.end(), at: now.checked_sub(ago).unwrap_or(now) }
    }

    /// Whether there is more than before.
    fn to(&mut self, end: u64) -> bool {
        let more = end > self.end;
        if more {
            (self.end, self.at) = (end, Instant::now());
        }
        more
    }
}

/// A pattern in what is new.
struct Pattern {
    reader: LogReader,
    cleaner: Cleaner,
    watcher: Watcher,
}

impl Pattern {
    fn new(session: &Session, from: u64, watcher: Watcher) -> Self {
        Self { reader: session.reader(from), cleaner: Cleaner::default(), watcher }
    }

    fn is_behind(&self, end: u64) -> bool {
        self.reader.position() < end
    }

    /// Looks at the next piece.
    fn look(&mut self) -> Result<Looked, Fault> {
        let watcher = &mut self.watcher;
        match self.reader.next(BLOCK).map_err(|error| unreadable(&error))? {
            Read::Data(records) => {
                for record in records {
                    self.cleaner
                        .push(record.stream, record.offset, &record.bytes, &mut |glyph| watcher.push(glyph));
                }
                Ok(self.watcher.matched().map_or(Looked::NotYet, Looked::Matched))
            }
            Read::Gap { from, to } => {
                self.cleaner.gap(from, to, &mut |glyph| watcher.push(glyph));
                Ok(Looked::NotYet)
            }
            Read::Empty | Read::End => Ok(Looked::AtEnd),
        }
    }
}

/// What a look at a piece came to.
enum Looked {
    Matched((u64, u64, String)),
    NotYet,
    AtEnd,
}
