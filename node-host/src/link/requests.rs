//! What the gateway asks for: run, prepare, which, approvals, lists, signals.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, gateway_frame, node_frame::Frame, reply::Answer, request::Command};
use session::{RunId, SessionId};
use tokio::sync::Semaphore;

use super::NodeOutbox;
use super::feeds::Feeds;
use super::inputs::Writers;
use crate::convert;
use crate::enforce::{self, invalid};
use crate::enforce::{Asked, Settled};
use crate::node::{Begun, Node, Outcome};
use crate::sessions::{Hold, Session};

/// Requests at work at one time; more than the gateway keeps open is refused.
const REQUESTS_MAX: usize = 4096;
/// The largest answer, in bytes: a frame of the link is at most 4 MiB.
const ANSWER_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;
/// Names in one `system.which`.
const BINS_MAX: usize = 256;
/// Longest grace of a kill.
const GRACE_MAX_MS: u64 = 60_000;

/// The serving side of one link.
#[derive(Debug)]
pub(super) struct Serving {
    node: Arc<Node>,
    outbox: NodeOutbox,
    feeds: Arc<Feeds>,
    writers: Writers,
    slots: Arc<Semaphore>,
}

impl Serving {
    pub(super) fn new(node: Arc<Node>, outbox: NodeOutbox) -> Self {
        let feeds = Arc::new(Feeds::new(Arc::clone(&node), outbox.clone()));
        Self {
            node,
            outbox,
            feeds,
            writers: Writers::default(),
            slots: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }
    }

    /// A frame of the gateway. An error ends the link.
    pub(super) fn on_frame(&self, frame: gateway_frame::Frame) -> Result<(), Fault> {
        match frame {
            gateway_frame::Frame::Request(request) => self.on_request(request),
            gateway_frame::Frame::Subscribe(subscribe) => self.feeds.subscribe(subscribe),
            gateway_frame::Frame::Credit(credit) => self.feeds.credit(&credit),
            gateway_frame::Frame::Unsubscribe(gone) => self.feeds.unsubscribe(gone.subscription),
            gateway_frame::Frame::Input(input) => self.writers.on_input(&self.node, &self.outbox, input),
            gateway_frame::Frame::SkillBins(skills) => self.node.door.name_skills(skills.names),
            gateway_frame::Frame::Ping(ping) => {
                return self.send(Frame::Pong(pb::Pong { nonce: ping.nonce }));
            }
            gateway_frame::Frame::Reject(pb::Reject { fault }) => {
                return Err(fault.map_or_else(|| invalid("the gateway rejected the link"), Fault::from));
            }
            gateway_frame::Frame::Pong(_)
            | gateway_frame::Frame::Welcome(_)
            | gateway_frame::Frame::Renewed(_)
            | gateway_frame::Frame::Draining(_)
            | gateway_frame::Frame::Replaced(_) => {}
        }
        Ok(())
    }

    fn on_request(&self, request: pb::Request) {
        let id = request.id;
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            let fault = Fault::new(ErrorCode::TooManyRequests, "too many requests at one time");
            // A full queue means a dead link.
            let _ = self.send(reply(id, Answer::Fault(fault.into())));
            return;
        };
        let (node, feeds, outbox) = (Arc::clone(&self.node), Arc::clone(&self.feeds), self.outbox.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let (answer, subscription) = match request.command {
                Some(Command::Run(run)) => node.run(run).await,
                Some(command) => (node.answer(command).await, None),
                None => (Answer::Fault(invalid("unknown node command").into()), None),
            };
            let answer = fitting(answer);
            // The answer is queued before the feed opens: a caller knows its
            // session before its output.
            let sent = outbox.control(pb::NodeFrame { frame: Some(reply(id, answer)) }).await;
            if let (Ok(()), Some(Started { subscribe, session, hold })) = (sent, subscription) {
                feeds.open(&subscribe, session, hold);
            }
        });
    }

    fn send(&self, frame: Frame) -> Result<(), Fault> {
        self.outbox
            .try_control(pb::NodeFrame { frame: Some(frame) })
            .map_err(|_| Fault::new(ErrorCode::Disconnected, "the gateway does not read"))
    }
}

/// An answer that a frame can carry: one that is too large would end the link, and everything on it.
fn fitting(answer: Answer) -> Answer {
    let size = answer.encoded_len();
    if size <= ANSWER_MAX {
        return answer;
    }
    let fault = Fault::new(
        ErrorCode::ResourceExhausted,
        format!("the answer has {size} bytes, too many for one message"),
    );
    Answer::Fault(fault.hint("ask for less").into())
}

fn reply(id: u64, answer: Answer) -> Frame {
    Frame::Reply(pb::Reply { id, answer: Some(answer) })
}

/// A started session whose starter reads it.
struct Started {
    subscribe: pb::Subscribe,
    session: Session,
    hold: Option<Hold>,
}

impl Node {
    /// `system.run`.
    async fn run(&self, run: pb::RunRequest) -> (Answer, Option<Started>) {
        let answer = |outcome| Answer::Run(pb::RunReply { outcome: Some(outcome) });
        match self.start(&run).await {
            Ok(Outcome::NeedsApproval(plan)) => (answer(pb::run_reply::Outcome::NeedsApproval(*plan)), None),
            Ok(Outcome::Begun(Begun { session, hold, existing, left_out_env, kept })) => {
                let started = pb::RunStarted {
                    session: Some(convert::session(&session.info())),
                    existing,
                    workdir: session.workdir().to_owned(),
                    left_out_env,
                    stored: kept.stored,
                    not_stored: kept.not_stored,
                };
                let subscription = run.subscribe.map(|subscribe| Started { subscribe, session, hold });
                (answer(pb::run_reply::Outcome::Started(started)), subscription)
            }
            Err(fault) => (answer(pb::run_reply::Outcome::Refused(fault.into())), None),
        }
    }

    /// Everything but `system.run`.
    async fn answer(&self, command: Command) -> Answer {
        self.try_answer(command).await.unwrap_or_else(|fault| Answer::Fault(fault.into()))
    }

    async fn try_answer(&self, command: Command) -> Result<Answer, Fault> {
        Ok(match command {
            Command::Run(_) => return Err(invalid("a run is answered by its own path")),
            Command::Prepare(request) => {
                let run = request.run.ok_or_else(|| invalid("nothing to prepare"))?;
                let prepared = match Asked::read(&run) {
                    Ok(asked) => self.decide(asked).await,
                    Err(fault) => Err(fault),
                };
                let outcome = match prepared {
                    Ok(Settled::Run(permit)) => pb::prepare_reply::Outcome::Plan(permit.plan(&run)),
                    Ok(Settled::Ask(plan)) => pb::prepare_reply::Outcome::Plan(*plan),
                    Err(fault) => pb::prepare_reply::Outcome::Refused(fault.into()),
                };
                Answer::Prepare(pb::PrepareReply { outcome: Some(outcome) })
            }
            Command::Which(request) => Answer::Which(self.which(&request)),
            Command::ApprovalsGet(_) => {
                let outcome = match self.door.approvals().show() {
                    Ok(document) => pb::approvals_get_reply::Outcome::Document(document),
                    Err(fault) => pb::approvals_get_reply::Outcome::Refused(fault.into()),
                };
                Answer::ApprovalsGet(pb::ApprovalsGetReply { outcome: Some(outcome) })
            }
            Command::ApprovalsSet(request) => {
                // It may wait for the disk, and for another writer.
                let approvals = Arc::clone(self.door.approvals());
                let replaced =
                    tokio::task::spawn_blocking(move || approvals.replace(&request.file, &request.base_hash));
                let replaced = replaced.await.map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
                let outcome = match replaced {
                    Ok(document) => pb::approvals_set_reply::Outcome::Document(document),
                    Err(fault) => pb::approvals_set_reply::Outcome::Refused(fault.into()),
                };
                Answer::ApprovalsSet(pb::ApprovalsSetReply { outcome: Some(outcome) })
            }
            Command::ListSessions(_) => Answer::ListSessions(pb::ListSessionsReply {
                sessions: convert::sessions(&self.sessions.list()),
            }),
            Command::Resize(request) => {
                let size = request.size.unwrap_or_default();
                let cells = |n: u32| u16::try_from(n).ok().filter(|n| *n > 0);
                let (Some(cols), Some(rows)) = (cells(size.columns), cells(size.rows)) else {
                    return Err(invalid("a terminal has 1 to 65535 columns and rows"));
                };
                self.session(&request.session_id)?.resize(cols, rows).await.map_err(|e| control_fault(&e))?;
                Answer::Done(pb::Done {})
            }
            Command::Signal(request) => {
                if !(1..=64).contains(&request.signal) {
                    return Err(invalid(format!("no signal {}", request.signal)));
                }
                self.session(&request.session_id)?
                    .signal(request.signal)
                    .await
                    .map_err(|e| control_fault(&e))?;
                Answer::Done(pb::Done {})
            }
            Command::States(request) => Answer::States(self.states(&request).await?),
            Command::View(request) => Answer::View(self.view(request).await?),
            Command::Lease(request) => {
                let session = self.session_of(&request.session_id, &request.agent_id)?;
                let policy = convert::on_disconnect(request.on_disconnect.as_ref())?;
                session
                    .set_on_disconnect(policy)
                    .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
                Answer::Done(pb::Done {})
            }
            Command::Forget(request) => {
                let session = self.session_of(&request.session_id, &request.agent_id)?;
                if session.info().exit.is_none() {
                    return Err(Fault::new(
                        ErrorCode::SessionRunning,
                        format!("session {} runs", session.id()),
                    )
                    .hint("end it first: `kill`"));
                }
                self.sessions.forget(session.id());
                Answer::Done(pb::Done {})
            }
            Command::Kill(request) => {
                let grace_ms = if request.grace_ms == 0 { enforce::KILL_GRACE_MS } else { request.grace_ms };
                let grace = Duration::from_millis(grace_ms.min(GRACE_MAX_MS));
                let session = if request.run_id.is_empty() {
                    Some(self.session(&request.session_id)?)
                } else {
                    let run = RunId::parse(&request.run_id).map_err(|e| invalid(format!("run id: {e}")))?;
                    self.sessions.cancel(&run, &request.agent_id)
                };
                if let Some(session) = session {
                    session.kill(grace).await.map_err(|e| control_fault(&e))?;
                }
                Answer::Done(pb::Done {})
            }
        })
    }

    /// The session, if it is this agent's; empty: whoever's it is.
    pub(crate) fn session_of(&self, id: &str, agent: &str) -> Result<Session, Fault> {
        let session = self.session(id)?;
        if agent.is_empty() || session.owner().is_of(agent) {
            return Ok(session);
        }
        // The same as where there is none: what others run is nobody's business.
        Err(Fault::new(ErrorCode::UnknownSession, format!("this node has no session `{id}`")))
    }

    fn session(&self, id: &str) -> Result<Session, Fault> {
        SessionId::parse(id)
            .ok()
            .and_then(|id| self.sessions.find(&id))
            .ok_or_else(|| Fault::new(ErrorCode::UnknownSession, format!("this node has no session `{id}`")))
    }

    /// `system.which`: names with a slash are ignored (`runtime.md` §6.11).
    fn which(&self, request: &pb::WhichRequest) -> pb::WhichReply {
        let path = self.door.path_env();
        let found = |name: &String| {
            if name.is_empty() || name.contains('/') {
                return None;
            }
            std::env::split_paths(&path)
                .map(|dir| dir.join(name))
                .find(|candidate| candidate.is_absolute() && is_executable(candidate))
                .map(|path| (name.clone(), path.display().to_string()))
        };
        pb::WhichReply { bins: request.bins.iter().take(BINS_MAX).filter_map(found).collect() }
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn control_fault(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::new(ErrorCode::SessionEnded, error.to_string())
}
