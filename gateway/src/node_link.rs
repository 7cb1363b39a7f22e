//! The gateway's end of a node's link: requests with their answers, feeds,
//! input writers.
//!
//! One [`Link`] per connection. It does no I/O itself; frames leave through
//! its outbox and arrive through [`Link::on_frame`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use link::Outbox;
use parking_lot::Mutex;
use proto::v1::{self as pb, gateway_frame::Frame, node_frame, reply::Answer, request::Command};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::feed::{Feed, FeedReader};

/// Requests that may be open on one link.
const MAX_REQUESTS: usize = 4096;
/// Subscriptions that may be open on one link.
const MAX_FEEDS: usize = 4096;
/// Answers about input that may wait for their writer.
const INPUT_ANSWERS: usize = 64;
/// Round trip assumed until one was measured.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(1);

/// A live connection to a node.
#[derive(Debug)]
pub struct Link {
    /// The node.
    pub node: Fingerprint,
    /// Which connection of this gateway it is; newer ones have larger numbers.
    pub connection: u64,
    /// Empty once the link is over: the stream then ends after what is queued.
    outbox: Mutex<Option<Outbox<pb::GatewayFrame>>>,
    state: Mutex<State>,
    next: AtomicU64,
    /// Cancelled when the link is over.
    down: CancellationToken,
    born: Instant,
    round_trip_us: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    requests: HashMap<u64, oneshot::Sender<Answer>>,
    /// By subscription.
    feeds: HashMap<u64, Arc<Feed>>,
    /// Feeds that readers may join, by session.
    shared: HashMap<String, Arc<Feed>>,
    writers: HashMap<u64, mpsc::Sender<pb::InputTaken>>,
    /// Set once, with the reason, when the link is over.
    ended: Option<Fault>,
}

/// What happened to a request that got no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Unanswered {
    /// It never left: sending it again cannot run anything twice.
    NotSent(Fault),
    /// The node said no: nothing was done.
    Refused(Fault),
    /// It may have arrived.
    Lost(Fault),
}

impl Unanswered {
    /// The reason.
    pub fn fault(self) -> Fault {
        match self {
            Self::NotSent(fault) | Self::Refused(fault) | Self::Lost(fault) => fault,
        }
    }
}

/// The fault of everything that a lost link leaves without an answer.
pub(crate) fn link_lost() -> Fault {
    Fault::new(ErrorCode::Disconnected, "the link to the node was lost")
        .hint("sessions go on there; the node reconnects by itself")
}

impl Link {
    /// A link over an outbox whose stream the RPC layer already drains.
    pub fn new(node: Fingerprint, connection: u64, outbox: Outbox<pb::GatewayFrame>) -> Arc<Self> {
        Arc::new(Self {
            node,
            connection,
            outbox: Mutex::new(Some(outbox)),
            state: Mutex::default(),
            next: AtomicU64::new(1),
            down: CancellationToken::new(),
            born: Instant::now(),
            round_trip_us: AtomicU64::new(FIRST_ROUND_TRIP.as_micros() as u64),
        })
    }

    /// Monotonic time since the link came up.
    pub(crate) fn elapsed(&self) -> Duration {
        self.born.elapsed()
    }

    /// The newest measured round trip.
    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip_us.load(Ordering::Relaxed))
    }

    /// Resolves when the link is over.
    pub async fn closed(&self) {
        self.down.cancelled().await;
    }

    /// Whether the link is over.
    pub fn is_closed(&self) -> bool {
        self.down.is_cancelled()
    }

    /// Queues a control frame. A queue that is full (a peer that reads
    /// nothing) ends the link rather than the gateway's memory.
    pub(crate) fn send(&self, frame: Frame) {
        let frame = pb::GatewayFrame { frame: Some(frame) };
        let sent = self.outbox.lock().as_ref().map(|outbox| outbox.try_control(frame));
        if let Some(Err(_)) = sent {
            self.end(link_lost());
        }
    }

    /// Queues input for a session, behind all control frames.
    pub(crate) async fn send_input(&self, input: pb::Input) -> Result<(), Fault> {
        let outbox = self.outbox.lock().clone().ok_or_else(link_lost)?;
        outbox.bulk(pb::GatewayFrame { frame: Some(Frame::Input(input)) }).await.map_err(|_| link_lost())
    }

    /// Asks the node and waits for its answer.
    pub async fn request(&self, command: Command, within: Duration) -> Result<Answer, Unanswered> {
        let (id, answer) = self.register().map_err(Unanswered::NotSent)?;
        let forget = Forget { link: self, id };
        self.send(Frame::Request(pb::Request { id, command: Some(command) }));
        let outcome = tokio::time::timeout(within, answer).await;
        drop(forget);
        match outcome {
            Ok(Ok(Answer::Fault(fault))) => Err(Unanswered::Refused(fault.into())),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Unanswered::Lost(self.reason())),
            Err(_) => Err(Unanswered::Lost(Fault::new(
                ErrorCode::Timeout,
                format!("the node did not answer within {} s", within.as_secs()),
            ))),
        }
    }

    fn register(&self) -> Result<(u64, oneshot::Receiver<Answer>), Fault> {
        let mut state = self.state.lock();
        if let Some(fault) = &state.ended {
            return Err(fault.clone());
        }
        if state.requests.len() >= MAX_REQUESTS {
            return Err(Fault::new(ErrorCode::TooManyRequests, "too many requests to this node are open"));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        state.requests.insert(id, sender);
        Ok((id, receiver))
    }

    /// Registers a feed before anything is sent, so that output that comes at
    /// once has a place. Its readers ask for it with the returned message,
    /// alone or inside a run.
    pub(crate) fn open_feed(
        self: &Arc<Self>,
        session: Option<&str>,
        from: u64,
        pause_command: bool,
    ) -> Result<(FeedReader, pb::Subscribe), Fault> {
        let mut state = self.state.lock();
        if let Some(fault) = &state.ended {
            return Err(fault.clone());
        }
        if state.feeds.len() >= MAX_FEEDS {
            return Err(Fault::new(ErrorCode::ResourceExhausted, "too many readers on this node's link"));
        }
        let subscription = self.next.fetch_add(1, Ordering::Relaxed);
        let feed = Arc::new(Feed::new(subscription, from, Arc::clone(self)));
        state.feeds.insert(subscription, Arc::clone(&feed));
        // A guest must not be able to pause the owner's command.
        if let Some(session) = session.filter(|_| !pause_command) {
            state.shared.insert(session.to_owned(), Arc::clone(&feed));
        }
        drop(state);
        let subscribe = pb::Subscribe {
            subscription,
            session_id: session.unwrap_or_default().to_owned(),
            from_offset: from,
            credit: link::credit::MIN_WINDOW,
            pause_command,
        };
        let reader = feed.join(from).ok_or_else(link_lost)?;
        Ok((reader, subscribe))
    }

    /// Makes a feed known under its session, so that others can join it.
    pub(crate) fn share_feed(&self, subscription: u64, session: &str) {
        let mut state = self.state.lock();
        if let Some(feed) = state.feeds.get(&subscription).cloned() {
            state.shared.insert(session.to_owned(), feed);
        }
    }

    /// A reader of a session's output from `from`: joins the feed that is
    /// there, or opens one.
    pub fn read(
        self: &Arc<Self>,
        session: &str,
        from: u64,
        pause_command: bool,
    ) -> Result<FeedReader, Fault> {
        // A reader that can pause the command must have a subscription that
        // says so, hence joins nobody else's.
        if !pause_command {
            let shared = self.state.lock().shared.get(session).cloned();
            if let Some(reader) = shared.and_then(|feed| feed.join(from)) {
                return Ok(reader);
            }
        }
        let (reader, subscribe) = self.open_feed(Some(session), from, pause_command)?;
        self.send(Frame::Subscribe(subscribe));
        Ok(reader)
    }

    pub(crate) fn close_feed(&self, subscription: u64, ended: bool) {
        let mut state = self.state.lock();
        let feed = state.feeds.remove(&subscription);
        if let Some(feed) = &feed {
            state.shared.retain(|_, shared| !Arc::ptr_eq(shared, feed));
        }
        let alive = state.ended.is_none();
        drop(state);
        if feed.is_some() && alive && !ended {
            self.send(Frame::Unsubscribe(pb::Unsubscribe { subscription }));
        }
    }

    /// Registers an input writer; what the node says about it arrives on the
    /// receiver.
    pub(crate) fn open_writer(&self, writer: u64) -> Result<mpsc::Receiver<pb::InputTaken>, Fault> {
        let mut state = self.state.lock();
        if let Some(fault) = &state.ended {
            return Err(fault.clone());
        }
        let (sender, receiver) = mpsc::channel(INPUT_ANSWERS);
        state.writers.insert(writer, sender);
        Ok(receiver)
    }

    pub(crate) fn close_writer(&self, writer: u64) {
        self.state.lock().writers.remove(&writer);
    }

    /// A frame from the node, other than those that the service handles
    /// itself (hello, renewal, draining).
    pub fn on_frame(&self, frame: node_frame::Frame) {
        match frame {
            node_frame::Frame::Reply(pb::Reply { id, answer: Some(answer) }) => {
                if let Some(waiting) = self.state.lock().requests.remove(&id) {
                    // The asker may have given up: then nobody wants it.
                    let _ = waiting.send(answer);
                }
            }
            node_frame::Frame::Output(pb::Output { subscription, part: Some(part) }) => {
                if let Some(feed) = self.feed(subscription) {
                    feed.push(part);
                }
            }
            node_frame::Frame::End(end) => {
                if let Some(feed) = self.feed(end.subscription) {
                    feed.finish(match end.why {
                        Some(pb::subscription_end::Why::Exit(exit)) => Ok(exit),
                        Some(pb::subscription_end::Why::Fault(fault)) => Err(fault.into()),
                        None => Err(Fault::new(
                            ErrorCode::Internal,
                            "the node ended a reading without saying why",
                        )),
                    });
                }
            }
            node_frame::Frame::InputTaken(taken) => {
                let writer = self.state.lock().writers.get(&taken.writer).cloned();
                if let Some(writer) = writer {
                    // Totals only grow, so one that finds no room is made good
                    // by the next.
                    let _ = writer.try_send(taken);
                }
            }
            node_frame::Frame::Ping(ping) => self.send(Frame::Pong(pb::Pong { nonce: ping.nonce })),
            node_frame::Frame::Pong(pong) => {
                let now = self.elapsed().as_micros() as u64;
                self.round_trip_us.store(now.saturating_sub(pong.nonce).max(1), Ordering::Relaxed);
            }
            node_frame::Frame::Reply(_)
            | node_frame::Frame::Output(_)
            | node_frame::Frame::Hello(_)
            | node_frame::Frame::Renew(_)
            | node_frame::Frame::SessionEnded(_)
            | node_frame::Frame::Draining(_) => {}
        }
    }

    /// Measures the round trip; the answer comes as a pong.
    pub(crate) fn ping(&self) {
        self.send(Frame::Ping(pb::Ping { nonce: self.elapsed().as_micros() as u64 }));
    }

    fn feed(&self, subscription: u64) -> Option<Arc<Feed>> {
        self.state.lock().feeds.get(&subscription).cloned()
    }

    /// Ends the link: everybody who waits on it is told why. The first reason
    /// stays.
    pub fn end(&self, why: Fault) {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(why.clone());
        state.requests.clear();
        state.writers.clear();
        state.shared.clear();
        let feeds: Vec<_> = state.feeds.drain().collect();
        drop(state);
        for (_, feed) in feeds {
            feed.link_ended(why.clone());
        }
        self.outbox.lock().take();
        self.down.cancel();
    }

    fn reason(&self) -> Fault {
        self.state.lock().ended.clone().unwrap_or_else(link_lost)
    }
}

/// Forgets a request whose asker is gone.
struct Forget<'a> {
    link: &'a Link,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.link.state.lock().requests.remove(&self.id);
    }
}
