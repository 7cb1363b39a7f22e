//! The output of one session, read from its node once and fanned out.
//!
//! A feed is one subscription on a link plus a ring of its newest items.
//! Readers share it, each at its own pace: the fastest one decides how much
//! the node may send, one that falls out of the ring is told so and opens a
//! feed of its own. The ring is a cache; the log on the node is the truth.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fault::Fault;
use link::CreditWindow;
use parking_lot::Mutex;
use proto::v1::{self as pb, gateway_frame::Frame};
use tokio::sync::watch;

use crate::node_link::Link;

/// Bytes of output kept for readers behind the fastest: two windows.
const RING_MAX: u64 = 2 * link::credit::MAX_WINDOW;
/// What a gap counts in the ring: its own size, generously.
const GAP_HOLDS: u64 = 64;
/// How far the floor on the node trails its reader here: what this process may
/// have on the way to a caller, and would lose if it were killed.
const FLOOR_TRAILS: u64 = 2 * 1024 * 1024;
/// Output handed over in one call at most.
const BATCH_MAX: usize = 64 * 1024;

/// What a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Output, in order.
    Records(Vec<pb::Record>),
    /// Output that the node does not have any more.
    Gap(pb::Gap),
    /// The command ended and all its output was read.
    Exit(pb::Exit),
    /// The link went down; the command goes on.
    Broken(Fault),
    /// The node refused to go on with this reading: asking again changes
    /// nothing.
    Refused(Fault),
    /// This reader was too slow for the ring and must open a feed of its own.
    Lagged,
}

#[derive(Debug, Clone)]
enum Piece {
    Record(pb::Record),
    Gap(pb::Gap),
}

impl Piece {
    fn end(&self) -> u64 {
        match self {
            Self::Record(record) => record.offset + record.data.len() as u64,
            Self::Gap(gap) => gap.to,
        }
    }

    /// Memory that it holds. A gap is wide and holds little.
    fn held(&self) -> u64 {
        match self {
            Self::Record(record) => record.data.len() as u64,
            Self::Gap(_) => GAP_HOLDS,
        }
    }
}

#[derive(Debug, Clone)]
enum End {
    Exit(pb::Exit),
    Broken(Fault),
    Refused(Fault),
}

/// One subscription.
#[derive(Debug)]
pub struct Feed {
    subscription: u64,
    state: Mutex<State>,
    /// Counts changes; readers wait for the next one.
    changed: watch::Sender<u64>,
    link: Arc<Link>,
    next_reader: AtomicU64,
}

#[derive(Debug)]
struct State {
    ring: VecDeque<Piece>,
    /// Bytes of output in the ring.
    held: u64,
    /// Offset of the first byte that is in the ring.
    start: u64,
    /// Offset after the newest byte that came.
    end: u64,
    finished: Option<End>,
    window: CreditWindow,
    /// How far each reader is.
    readers: BTreeMap<u64, u64>,
    /// The last reader left: nobody may join any more.
    closed: bool,
}

impl Feed {
    /// A feed whose subscription starts at `from`. Its first credit is the
    /// window's minimum, sent with the subscription.
    pub(crate) fn new(subscription: u64, from: u64, link: Arc<Link>) -> Self {
        Self {
            subscription,
            state: Mutex::new(State {
                ring: VecDeque::new(),
                held: 0,
                start: from,
                end: from,
                finished: None,
                window: CreditWindow::new(from, link.elapsed()),
                readers: BTreeMap::new(),
                closed: false,
            }),
            changed: watch::Sender::new(0),
            link,
            next_reader: AtomicU64::new(0),
        }
    }

    /// Adds a reader at `from`, if the feed can serve it from there on.
    pub(crate) fn join(self: &Arc<Self>, from: u64) -> Option<FeedReader> {
        let mut state = self.state.lock();
        let over = matches!(state.finished, Some(End::Broken(_) | End::Refused(_)));
        if from < state.start || from > state.end || over || state.closed {
            return None;
        }
        let id = self.next_reader.fetch_add(1, Ordering::Relaxed);
        state.readers.insert(id, from);
        drop(state);
        Some(FeedReader { feed: Arc::clone(self), id, at: from, changed: self.changed.subscribe() })
    }

    /// Output came in. What overlaps with earlier output is cut.
    pub(crate) fn push(&self, part: pb::output::Part) {
        let mut state = self.state.lock();
        match part {
            pb::output::Part::Records(records) => {
                for mut record in records.records {
                    let end = record.offset + record.data.len() as u64;
                    if end <= state.end || record.offset > state.end {
                        continue;
                    }
                    let seen = usize::try_from(state.end - record.offset).unwrap_or(usize::MAX);
                    record.data = record.data.slice(seen..);
                    record.offset = state.end;
                    state.end = end;
                    state.held += record.data.len() as u64;
                    state.ring.push_back(Piece::Record(record));
                }
            }
            pb::output::Part::Gap(gap) => {
                if gap.from == state.end && gap.to > gap.from {
                    state.end = gap.to;
                    state.held += GAP_HOLDS;
                    state.ring.push_back(Piece::Gap(gap));
                }
            }
        }
        state.trim();
        drop(state);
        self.changed.send_modify(|n| *n += 1);
    }

    /// The node ended the reading: nothing more will come.
    pub(crate) fn finish(&self, why: Result<pb::Exit, Fault>) {
        self.end(match why {
            Ok(exit) => End::Exit(exit),
            Err(fault) => End::Refused(fault),
        });
    }

    /// The link went down: nothing more will come over it.
    pub(crate) fn link_ended(&self, why: Fault) {
        self.end(End::Broken(why));
    }

    fn end(&self, end: End) {
        self.state.lock().finished.get_or_insert(end);
        self.changed.send_modify(|n| *n += 1);
    }

    fn taken(&self, reader: u64, at: u64) {
        let mut state = self.state.lock();
        state.readers.insert(reader, at);
        let fastest = state.readers.values().copied().max().unwrap_or(at);
        let slowest = state.readers.values().copied().min().unwrap_or(at);
        let grant = state.window.consumed(fastest, self.link.elapsed(), self.link.round_trip());
        let ended = state.finished.is_some();
        state.trim();
        drop(state);
        if let (Some(bytes), false) = (grant, ended) {
            self.link.send(Frame::Credit(pb::Credit {
                subscription: self.subscription,
                bytes,
                read_offset: slowest.saturating_sub(FLOOR_TRAILS),
            }));
        }
    }

    fn leave(&self, reader: u64) {
        let mut state = self.state.lock();
        state.readers.remove(&reader);
        let last = state.readers.is_empty();
        state.closed |= last;
        let ended = state.finished.is_some();
        drop(state);
        if last {
            self.link.close_feed(self.subscription, ended);
        }
    }
}

impl State {
    /// Drops what every reader has and what is beyond the ring's bound.
    fn trim(&mut self) {
        let slowest = self.readers.values().copied().min().unwrap_or(self.end);
        while let Some(piece) = self.ring.front() {
            let end = piece.end();
            if end > slowest && self.held <= RING_MAX {
                break;
            }
            self.held -= piece.held();
            self.start = end;
            self.ring.pop_front();
        }
    }
}

/// One reader of a feed. Dropping it leaves the feed; the last one to leave
/// ends the subscription.
#[derive(Debug)]
pub struct FeedReader {
    feed: Arc<Feed>,
    id: u64,
    at: u64,
    changed: watch::Receiver<u64>,
}

impl FeedReader {
    /// Merged offset of the next byte that this reader has not got.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// The next item. Taking it counts as having read it: credit follows.
    /// Safe to cancel.
    pub async fn next(&mut self) -> Item {
        loop {
            self.changed.borrow_and_update();
            if let Some(item) = self.ready() {
                return item;
            }
            if self.changed.changed().await.is_err() {
                return Item::Broken(crate::node_link::link_lost());
            }
        }
    }

    fn ready(&mut self) -> Option<Item> {
        let state = self.feed.state.lock();
        if self.at < state.start {
            return Some(Item::Lagged);
        }
        if self.at >= state.end {
            return state.finished.clone().map(|end| match end {
                End::Exit(exit) => Item::Exit(exit),
                End::Broken(fault) => Item::Broken(fault),
                End::Refused(fault) => Item::Refused(fault),
            });
        }
        let first = state.ring.partition_point(|piece| piece.end() <= self.at);
        let mut records = Vec::new();
        let (mut bytes, mut at) = (0, self.at);
        for piece in state.ring.range(first..) {
            match piece {
                Piece::Gap(gap) if records.is_empty() => {
                    let gap = pb::Gap { from: at, to: gap.to };
                    drop(state);
                    self.advance(gap.to);
                    return Some(Item::Gap(gap));
                }
                Piece::Gap(_) => break,
                Piece::Record(record) => {
                    if bytes > 0 && bytes + record.data.len() > BATCH_MAX {
                        break;
                    }
                    let mut record = record.clone();
                    let seen = usize::try_from(at - record.offset).unwrap_or(usize::MAX);
                    record.data = record.data.slice(seen..);
                    record.offset = at;
                    bytes += record.data.len();
                    at += record.data.len() as u64;
                    records.push(record);
                }
            }
        }
        drop(state);
        self.advance(at);
        Some(Item::Records(records))
    }

    fn advance(&mut self, at: u64) {
        self.at = at;
        self.feed.taken(self.id, at);
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.feed.leave(self.id);
    }
}

/// Longest that a reader waits for a node to come back before it gives up and
/// says that the outcome is unknown.
pub const COME_BACK_WITHIN: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests;
