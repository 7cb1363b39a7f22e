//! One caller following one session: output, interruptions, the end.
//!
//! The session belongs to its node, so nothing here is lost when this task
//! ends: it decides only what becomes of the command when the caller leaves.

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use proto::v1::{self as pb, session_event::Event};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::feed::{COME_BACK_WITHIN, FeedReader, Item};
use crate::gateway::Gateway;
use crate::kills;
use crate::start::{Started, comes_back};

/// Pause between two readings of a link that goes up and down.
const BREATH: Duration = Duration::from_millis(50);

/// What becomes of the command when its caller goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnClose {
    /// It is killed. Until then its output is never dropped: a slow caller
    /// slows the command.
    Kill,
    /// It goes on; output beyond the retention is dropped, with a named gap.
    Keep,
}

impl OnClose {
    /// The wish of a caller who starts a command. What it says about a disconnect counts before what it says about its
    /// own leaving: the two are the same to it.
    pub fn of_exec(request: &pb::ExecRequest) -> Self {
        match request.on_disconnect.as_ref().and_then(|on| on.policy.as_ref()) {
            Some(pb::on_disconnect::Policy::Kill(_)) => Self::Kill,
            Some(_) => Self::Keep,
            None => Self::of(request.on_close()),
        }
    }

    /// The wish of a caller who starts a command.
    pub fn of(wire: pb::OnClose) -> Self {
        match wire {
            pb::OnClose::Keep => Self::Keep,
            pb::OnClose::Kill | pb::OnClose::Unspecified => Self::Kill,
        }
    }
}

/// Sends to the caller.
pub type Events = mpsc::Sender<Result<pb::SessionEvent, Status>>;

/// What the input side needs of a follower.
#[derive(Debug, Clone)]
pub struct Handle {
    /// Cancel it to leave the session running.
    pub detach: CancellationToken,
    /// Cancelled when the follower is done.
    pub done: CancellationToken,
    /// For news about input.
    pub events: Events,
}

/// The follower.
#[derive(Debug)]
pub struct Follow {
    gateway: Arc<Gateway>,
    node: Fingerprint,
    session: String,
    reader: FeedReader,
    on_close: OnClose,
    events: Events,
    detach: CancellationToken,
    done: CancellationToken,
    /// Sent first.
    greeting: Option<pb::Started>,
}

/// How following ended.
enum Outcome {
    /// The caller has everything, or an error that says what it lacks.
    Finished,
    /// The caller asked to leave the session running.
    Detached,
    /// The caller is gone.
    Gone,
}

impl Follow {
    /// A follower of a started session, and its handle.
    pub fn new(
        gateway: Arc<Gateway>,
        started: Started,
        reader: FeedReader,
        on_close: OnClose,
        events: Events,
    ) -> (Self, Handle) {
        let (detach, done) = (CancellationToken::new(), CancellationToken::new());
        let handle = Handle { detach: detach.clone(), done: done.clone(), events: events.clone() };
        let node = started.link.node;
        let mut session = started.session;
        session.node_id = node.to_hex();
        session.node_name = gateway.registry.name(&node);
        let follow = Self {
            gateway,
            node,
            session: session.session_id.clone(),
            reader,
            on_close,
            events,
            detach,
            done,
            greeting: Some(pb::Started {
                session: Some(session),
                existing: started.existing,
                workdir: started.workdir,
                left_out_env: started.left_out_env,
                approval_id: started.approval_id,
                stored: started.stored,
                not_stored: started.not_stored,
            }),
        };
        (follow, handle)
    }

    /// Follows to the end.
    pub async fn run(mut self) {
        let outcome = self.follow().await;
        self.done.cancel();
        match outcome {
            Outcome::Finished => {}
            // From here on nobody looks after it, on purpose.
            Outcome::Detached if self.on_close == OnClose::Kill => {
                keep(&self.gateway, self.node, &self.session)
            }
            Outcome::Detached => {}
            // Asked to be left alone just before it hung up.
            Outcome::Gone if self.detach.is_cancelled() => keep(&self.gateway, self.node, &self.session),
            Outcome::Gone if self.on_close == OnClose::Keep => {}
            Outcome::Gone => {
                tracing::info!(session = self.session, "caller is gone, killing its command");
                kills::kill(&self.gateway, self.node, self.session.clone());
            }
        }
    }

    async fn follow(&mut self) -> Outcome {
        if let Some(greeting) = self.greeting.take()
            && self.tell(Event::Started(greeting)).await.is_err()
        {
            return Outcome::Gone;
        }
        loop {
            let item = tokio::select! {
                biased;
                () = self.detach.cancelled() => return Outcome::Detached,
                () = self.events.closed() => return Outcome::Gone,
                item = self.reader.next() => item,
            };
            let told = match item {
                Item::Records(records) => {
                    self.tell(Event::Output(pb::session_event::Records { records })).await
                }
                Item::Gap(gap) => self.tell(Event::Gap(gap)).await,
                Item::Exit(exit) => {
                    // Gone or not: the command has ended.
                    let _ = self.tell(Event::Exit(exit)).await;
                    return Outcome::Finished;
                }
                Item::Lagged => match self.read_again().await {
                    Ok(()) => Ok(()),
                    Err(outcome) => return outcome,
                },
                Item::Broken(why) => match self.resume(why).await {
                    Ok(()) => Ok(()),
                    Err(outcome) => return outcome,
                },
                Item::Refused(why) => {
                    self.unknown(&why).await;
                    return Outcome::Finished;
                }
            };
            if told.is_err() {
                return Outcome::Gone;
            }
        }
    }

    /// Opens a feed at this reader's own offset, over the link that is there
    /// or the next one.
    async fn read_again(&mut self) -> Result<(), Outcome> {
        let offset = self.reader.offset();
        let link = tokio::select! {
            () = self.events.closed() => return Err(Outcome::Gone),
            () = self.detach.cancelled() => return Err(Outcome::Detached),
            link = comes_back(&self.gateway, &self.node, COME_BACK_WITHIN) => link,
        };
        let reader = link.and_then(|link| link.read(&self.session, offset, self.on_close == OnClose::Kill));
        match reader {
            Ok(reader) => self.reader = reader,
            // The link went down again just now: the next one, after a breath.
            Err(fault) if fault.code == ErrorCode::Disconnected => tokio::time::sleep(BREATH).await,
            Err(fault) if fault.code == ErrorCode::Draining => {
                self.fail(self.draining()).await;
                return Err(Outcome::Finished);
            }
            Err(fault) => {
                self.unknown(&fault).await;
                return Err(Outcome::Finished);
            }
        }
        Ok(())
    }

    /// The link went down: waits for the node and reads on at the same offset.
    async fn resume(&mut self, why: Fault) -> Result<(), Outcome> {
        if self.gateway.stopping.is_cancelled() {
            self.fail(self.draining()).await;
            return Err(Outcome::Finished);
        }
        if why.code == ErrorCode::NodeRemoved {
            self.unknown(&why).await;
            return Err(Outcome::Finished);
        }
        tracing::info!(session = self.session, %why, offset = self.reader.offset(), "following interrupted");
        self.tell(Event::Interrupted(pb::Interrupted { why: Some(why.into()) }))
            .await
            .map_err(|Gone| Outcome::Gone)?;
        self.read_again().await?;
        self.tell(Event::Resumed(pb::Resumed {})).await.map_err(|Gone| Outcome::Gone)
    }

    fn draining(&self) -> Fault {
        Fault::new(ErrorCode::Draining, "the gateway is stopping; the session goes on")
            .hint(format!("gateway attach {}", self.session))
    }

    /// Says that the rest of the session cannot be followed.
    async fn unknown(&self, why: &Fault) {
        self.fail(
            Fault::new(ErrorCode::OutcomeUnknown, format!("session {}: {}", self.session, why.message))
                .hint(format!("gateway attach {} when the node is back", self.session)),
        )
        .await;
    }

    async fn tell(&self, event: Event) -> Result<(), Gone> {
        self.events.send(Ok(pb::SessionEvent { event: Some(event) })).await.map_err(|_| Gone)
    }

    async fn fail(&self, fault: Fault) {
        // A caller that is gone needs no error.
        let _ = self.events.send(Err(fault.into())).await;
    }
}

/// Tells the node that a session goes on without its caller; now, or as soon as it is back.
fn keep(gateway: &Arc<Gateway>, node: Fingerprint, session: &str) {
    let (gateway, session) = (Arc::clone(gateway), session.to_owned());
    tokio::spawn(async move {
        let policy = pb::OnDisconnect { policy: Some(pb::on_disconnect::Policy::Keep(true)) };
        let lease = pb::LeaseRequest {
            session_id: session.clone(),
            agent_id: String::new(),
            on_disconnect: Some(policy),
        };
        if let Err(fault) = crate::tools::ask_when_back(&gateway, node, &session, lease).await {
            tracing::warn!(session, %fault, "its node could not be told that it goes on");
        }
    });
}

/// The caller does not read any more.
#[derive(Debug)]
struct Gone;
