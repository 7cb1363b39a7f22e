//! Views of sessions for readers far away: where they stand, what is new, lines, hits, screens, bytes.
//!
//! Everything here is computed from the output log when it is asked for; nothing is kept but a few drawn screens. What
//! reads much of a log does so on a thread of its own.

mod pages;
mod screens;
mod state;
mod text;
mod wait;

use std::sync::Arc;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, view_reply::View as Shown, view_request::View as Wanted};
use session::view::{Search, Watcher};
use tokio::sync::Semaphore;

use crate::convert;
use crate::enforce::invalid;
use crate::node::Node;
use crate::sessions::{Read, Session};
pub(crate) use screens::Screens;

/// Logs that are read through at one time.
const READING_MAX: usize = 4;
/// Bound on a text where the caller names none, in characters.
const CHARS: usize = 30_000;
/// Bound on every text: far below what a frame carries, whatever the characters are.
const CHARS_MAX: usize = 200_000;
/// Bytes of a raw view.
const RAW_MAX: usize = 128 * 1024;
/// Hits of a search where the caller names no number, and at most.
const HITS: usize = 50;
const HITS_MAX: usize = 500;
/// Lines around a hit.
const AROUND_MAX: u32 = 20;
/// Sessions in one list.
const STATES_MAX: usize = 1000;
/// Output that is read at once on the way of other requests, in bytes; more is read elsewhere.
const QUICK_BYTES: u64 = 64 * 1024;

/// What views of all links share.
#[derive(Debug)]
pub(crate) struct Views {
    reading: Semaphore,
    screens: Arc<Screens>,
}

impl Default for Views {
    fn default() -> Self {
        Self { reading: Semaphore::new(READING_MAX), screens: Arc::default() }
    }
}

impl Node {
    /// Where sessions stand, newest first.
    pub(crate) async fn states(&self, request: &pb::StatesRequest) -> Result<pb::StatesReply, Fault> {
        let wanted = |info: &crate::sessions::SessionInfo| {
            (request.agent_id.is_empty() || info.owner.is_of(&request.agent_id))
                && (request.session.is_empty()
                    || info.run_id.as_str() == request.session
                    || info.id.as_str().starts_with(&request.session))
        };
        let found = self.sessions.list().into_iter().rev().filter(wanted);
        let mut found: Vec<_> = found.filter_map(|info| self.sessions.find(&info.id)).collect();
        let left_out = u32::try_from(found.len().saturating_sub(STATES_MAX)).unwrap_or(u32::MAX);
        found.truncate(STATES_MAX);
        let wanted = usize::try_from(request.tail_chars).unwrap_or(CHARS_MAX).min(state::TAIL_MAX);
        // All tails together are one frame.
        let tail = wanted.min(CHARS_MAX / found.len().max(1));
        self.aside(move || {
            let mut states: Vec<_> = found.iter().map(|session| state::with_tail(session, tail)).collect();
            convert::fit_in_a_frame(states.iter_mut().filter_map(|state| state.session.as_mut()));
            Ok(pb::StatesReply { states, left_out })
        })
        .await
    }

    /// One view of one session. Asking for it is looking after it.
    pub(crate) async fn view(&self, request: pb::ViewRequest) -> Result<pb::ViewReply, Fault> {
        let session = self.session_of(&request.session_id, &request.agent_id)?;
        let _there = session.look_after();
        let max = match usize::try_from(request.max_chars).unwrap_or(CHARS_MAX) {
            0 => CHARS,
            chars => chars.min(CHARS_MAX),
        };
        let view = match request.view {
            Some(Wanted::Read(read)) => Shown::Read(self.read(&session, &read, max).await?),
            Some(Wanted::Log(log)) => {
                let session = session.clone();
                Shown::Log(self.aside(move || pages::log(&session, &log, max)).await?)
            }
            Some(Wanted::Search(search)) => {
                let wanted = search_of(&search);
                let session = session.clone();
                Shown::Search(self.aside(move || pages::search(&session, &wanted)).await?)
            }
            Some(Wanted::Screen(_)) => {
                let (session, screens) = (session.clone(), Arc::clone(&self.views.screens));
                Shown::Screen(self.aside(move || screens.draw(&session)).await?)
            }
            Some(Wanted::Raw(raw)) => Shown::Raw(raw_bytes(&session, &raw)?),
            None => return Err(invalid("the request names no known view")),
        };
        Ok(pb::ViewReply { state: Some(state::of(&session)), view: Some(view) })
    }

    async fn read(&self, session: &Session, read: &pb::ReadView, max: usize) -> Result<pb::ReadText, Fault> {
        let from = read.from_offset;
        if from > session.end() {
            return Err(invalid(format!("session {} has {} bytes so far", session.id(), session.end())));
        }
        let ended = match &read.wait {
            Some(wait) => wait::until(session, from, wait).await?,
            None => wait::Ended::default(),
        };
        let end = session.end();
        let to = if read.to_offset == 0 { end } else { read.to_offset.min(end).max(from) };
        let mut text = if to - from <= QUICK_BYTES {
            text::between(session, from, to, max)?
        } else {
            let session = session.clone();
            self.aside(move || text::between(&session, from, to, max)).await?
        };
        text.fired = ended.fired.into();
        if let Some((from, to, matched)) = ended.matched {
            (text.matched_from, text.matched_to, text.matched) = (from, to, matched);
        }
        Ok(text)
    }

    /// On a thread of its own, a few at a time.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let internal = |error: &dyn std::fmt::Display| Fault::new(ErrorCode::Internal, error.to_string());
        let _turn = self.views.reading.acquire().await.map_err(|error| internal(&error))?;
        tokio::task::spawn_blocking(work).await.map_err(|error| internal(&error))?
    }
}

fn search_of(view: &pb::SearchView) -> Search {
    let around = |lines: u32| lines.min(AROUND_MAX) as usize;
    Search {
        pattern: view.pattern.clone(),
        ignore_case: view.ignore_case,
        literal: view.literal,
        before: around(view.before),
        after: around(view.after),
        max: match view.limit as usize {
            0 => HITS,
            limit => limit.min(HITS_MAX),
        },
    }
}

fn raw_bytes(session: &Session, view: &pb::RawView) -> Result<pb::RawBytes, Fault> {
    let mut room = match view.max_bytes as usize {
        0 => RAW_MAX,
        bytes => bytes.min(RAW_MAX),
    };
    let mut reader = session.reader(view.from_offset);
    let mut raw = pb::RawBytes { next_offset: view.from_offset, ..pb::RawBytes::default() };
    while room > 0 {
        match reader.next(room).map_err(|error| unreadable(&error))? {
            Read::Data(records) => {
                for record in records {
                    room = room.saturating_sub(record.bytes.len());
                    raw.records.push(convert::record(record));
                }
            }
            Read::Gap { from, to } => raw.omitted.push(pb::Omitted { from, to, lost: true }),
            Read::Empty | Read::End => break,
        }
        raw.next_offset = reader.position();
    }
    Ok(raw)
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(ErrorCode::Internal, format!("the output log cannot be read: {error}"))
}

/// A pattern that a wait looks for.
fn watcher(wait: &pb::Wait) -> Result<Option<Watcher>, Fault> {
    if wait.pattern.is_empty() {
        return Ok(None);
    }
    Watcher::new(&wait.pattern, wait.ignore_case).map(Some).map_err(|error| invalid(error.to_string()))
}
