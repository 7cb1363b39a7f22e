//! Subscriptions: output of one session to one reader, under credit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use proto::v1::{self as pb, node_frame::Frame, output::Part, subscription_end::Why};
use session::SessionId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::NodeOutbox;
use crate::convert;
use crate::node::Node;
use crate::sessions::{Hold, LookedAfter, Read, Session};

/// Output bytes in one frame.
const CHUNK_MAX: u64 = 64 * 1024;
/// Subscriptions on one link.
const FEEDS_MAX: usize = 4096;

/// All subscriptions of one link. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Feeds {
    node: Arc<Node>,
    outbox: NodeOutbox,
    live: Arc<Mutex<HashMap<u64, Live>>>,
    /// Readers that left before their run was answered, newest last.
    left_early: Mutex<VecDeque<u64>>,
    over: CancellationToken,
}

#[derive(Debug)]
struct Live {
    /// The offset below which the reader takes output.
    granted: watch::Sender<u64>,
    /// Whoever reads it looks after it.
    _looked_after: LookedAfter,
    /// Set for a reader that pauses the command rather than lose output.
    hold: Option<Hold>,
    cancel: CancellationToken,
}

impl Feeds {
    pub(super) fn new(node: Arc<Node>, outbox: NodeOutbox) -> Self {
        Self {
            node,
            outbox,
            live: Arc::default(),
            left_early: Mutex::default(),
            over: CancellationToken::new(),
        }
    }

    /// A subscription by session id.
    pub(super) fn subscribe(&self, subscribe: pb::Subscribe) {
        let found = SessionId::parse(&subscribe.session_id).ok().and_then(|id| self.node.sessions.find(&id));
        match found {
            Some(session) => {
                let hold = subscribe.pause_command.then(|| session.hold(subscribe.from_offset));
                self.open(&subscribe, session, hold);
            }
            None => self.refuse(
                subscribe.subscription,
                Fault::new(
                    ErrorCode::UnknownSession,
                    format!("this node has no session `{}`", subscribe.session_id),
                ),
            ),
        }
    }

    /// A subscription to a session that is at hand.
    pub(super) fn open(&self, subscribe: &pb::Subscribe, session: Session, hold: Option<Hold>) {
        let id = subscribe.subscription;
        if self.left_early.lock().contains(&id) {
            return;
        }
        let mut live = self.live.lock();
        if live.len() >= FEEDS_MAX {
            drop(live);
            self.refuse(id, Fault::new(ErrorCode::ResourceExhausted, "too many readers on this link"));
            return;
        }
        let from = subscribe.from_offset;
        let (granted, grants) = watch::channel(from.saturating_add(subscribe.credit));
        let cancel = self.over.child_token();
        let looked_after = session.look_after();
        live.insert(id, Live { granted, hold, _looked_after: looked_after, cancel: cancel.clone() });
        drop(live);
        let feed = Feed { id, session, from, grants, outbox: self.outbox.clone() };
        let (all, node) = (Arc::clone(&self.live), Arc::clone(&self.node));
        tokio::spawn(async move {
            let end = tokio::select! {
                end = feed.run() => end,
                () = cancel.cancelled() => Err(link::Closed),
            };
            let ended = all.lock().remove(&id);
            // Lost with its link rather than ended: its reader may come back.
            if let (Some(Live { hold: Some(hold), .. }), Err(link::Closed)) = (ended, end) {
                node.absent.keep(hold);
            }
        });
    }

    pub(super) fn credit(&self, credit: &pb::Credit) {
        let mut live = self.live.lock();
        if let Some(feed) = live.get_mut(&credit.subscription) {
            feed.granted.send_modify(|granted| *granted = granted.saturating_add(credit.bytes));
            if let Some(hold) = &mut feed.hold {
                hold.advance(credit.read_offset);
            }
        }
    }

    pub(super) fn unsubscribe(&self, subscription: u64) {
        let feed = self.live.lock().remove(&subscription);
        match feed {
            Some(feed) => feed.cancel.cancel(),
            None => {
                let mut left = self.left_early.lock();
                left.push_back(subscription);
                if left.len() > FEEDS_MAX {
                    left.pop_front();
                }
            }
        }
    }

    fn refuse(&self, subscription: u64, fault: Fault) {
        let end = pb::SubscriptionEnd { subscription, why: Some(Why::Fault(fault.into())) };
        // A full queue means a dead link, whose readers learn it from that.
        let _ = self.outbox.try_control(pb::NodeFrame { frame: Some(Frame::End(end)) });
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// One subscription at work.
struct Feed {
    id: u64,
    session: Session,
    from: u64,
    grants: watch::Receiver<u64>,
    outbox: NodeOutbox,
}

impl Feed {
    /// Sends all of it and the end. An error is a closed link.
    async fn run(mut self) -> Result<(), link::Closed> {
        let mut progress = self.session.progress();
        let mut reader = self.session.reader(self.from);
        let mut at = self.from;
        loop {
            // Seen before reading, so that what is appended in between wakes
            // us again.
            let exit = progress.borrow_and_update().exit.clone();
            let granted = *self.grants.borrow_and_update();
            let room = granted.saturating_sub(at).min(CHUNK_MAX);
            if room == 0 && exit.as_ref().is_none_or(|exit| at < exit.final_offset.0) {
                self.grants.changed().await.map_err(|_| link::Closed)?;
                continue;
            }
            let part = match reader.next(usize::try_from(room).unwrap_or(usize::MAX)) {
                Ok(Read::Data(records)) => {
                    let records: Vec<_> = records.into_iter().map(convert::record).collect();
                    at = records.last().map_or(at, |r| r.offset + r.data.len() as u64);
                    Part::Records(pb::Records { records })
                }
                Ok(Read::Gap { from, to }) => {
                    at = to;
                    Part::Gap(pb::Gap { from, to })
                }
                Ok(Read::Empty) => {
                    progress.changed().await.map_err(|_| link::Closed)?;
                    continue;
                }
                Ok(Read::End) => {
                    let Some(exit) = exit else {
                        progress.changed().await.map_err(|_| link::Closed)?;
                        continue;
                    };
                    return self.end(Why::Exit(convert::exit(&exit))).await;
                }
                Err(error) => {
                    let fault =
                        Fault::new(ErrorCode::Internal, format!("the output log cannot be read: {error}"));
                    return self.end(Why::Fault(fault.into())).await;
                }
            };
            let output = pb::Output { subscription: self.id, part: Some(part) };
            self.outbox.bulk(pb::NodeFrame { frame: Some(Frame::Output(output)) }).await?;
        }
    }

    /// Through the bulk queue: the end comes after all output.
    async fn end(&self, why: Why) -> Result<(), link::Closed> {
        let end = pb::SubscriptionEnd { subscription: self.id, why: Some(why) };
        self.outbox.bulk(pb::NodeFrame { frame: Some(Frame::End(end)) }).await
    }
}
