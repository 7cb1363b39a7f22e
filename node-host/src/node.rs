//! What all links of one node host share, and the way of a run through it.

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1 as pb;
use session::OnDisconnect;
use tokio::sync::{Semaphore, broadcast};

use crate::convert;
use crate::enforce::{
    Asked, Decided, Door, KILL_GRACE_MS, Kept, Permit, Settled, ask_to_wire, security_to_wire,
};
use crate::link::{Absent, Inputs};
use crate::sessions::{Hold, Session, Sessions, StartError};
use crate::views::Views;

/// Ends that may wait for a link to take them. A link that is slower comes back and says hello.
const ENDS_MAX: usize = 4096;
/// Decisions that look at files at one time: each may read as much as a program is large.
const SETTLING_MAX: usize = 4;
/// Output at the end of a command that is told with its end, in bytes.
const TAIL_BYTES: u64 = 1024;

/// One node host.
#[derive(Debug)]
pub struct Node {
    /// Its own name; the gateway may know it under another.
    pub display_name: String,
    /// What decides.
    pub door: Arc<Door>,
    /// What runs.
    pub sessions: Sessions,
    /// What was typed.
    pub(crate) inputs: Inputs,
    /// Who was cut off while reading.
    pub(crate) absent: Absent,
    /// What has just ended.
    ends: broadcast::Sender<pb::SessionEnded>,
    /// Who may look at files for a decision.
    settling: Semaphore,
    /// Who reads logs.
    pub(crate) views: Views,
}

/// The session of a run.
#[derive(Debug)]
pub struct Begun {
    /// Started now, or before under the same run id.
    pub session: Session,
    /// Set where the starter reads everything and the command waits for it.
    pub hold: Option<Hold>,
    /// The run had been started before.
    pub existing: bool,
    /// Variables of the request that do not reach the command.
    pub left_out_env: Vec<String>,
    /// What its allow-always kept.
    pub kept: Kept,
}

/// What became of a run.
#[derive(Debug)]
pub enum Outcome {
    /// It has a session.
    Begun(Begun),
    /// A person must say yes to this first. Nothing runs.
    NeedsApproval(Box<pb::Plan>),
}

impl Node {
    /// A node host that no link serves yet.
    pub fn new(display_name: String, door: Door, sessions: Sessions) -> Self {
        Self {
            display_name,
            door: Arc::new(door),
            sessions,
            inputs: Inputs::default(),
            absent: Absent::default(),
            ends: broadcast::Sender::new(ENDS_MAX),
            settling: Semaphore::new(SETTLING_MAX),
            views: Views::default(),
        }
    }

    /// Starts what the door permits. A run that had started is answered from its receipt, before the policy and the
    /// machine are looked at: they may have changed since, its command has run all the same.
    ///
    /// # Errors
    /// When a field is of no use, the run id is taken or its session gone, or the door or the system says no.
    pub async fn start(&self, run: &pb::RunRequest) -> Result<Outcome, Fault> {
        let pause = run.subscribe.as_ref().is_some_and(|subscribe| subscribe.pause_command);
        let asked = Asked::read(run)?;
        let known = self.sessions.find_retry(asked.run_id(), asked.input_digest(), &asked.owner());
        if let Some(session) = known.map_err(|error| start_fault(&error))? {
            let hold = pause.then(|| session.hold(0));
            let (left_out_env, kept) = (Vec::new(), Kept::default());
            return Ok(Outcome::Begun(Begun { session, hold, existing: true, left_out_env, kept }));
        }
        let permit = match self.decide(asked).await {
            Ok(Settled::Run(permit)) => permit,
            Ok(Settled::Ask(plan)) => return Ok(Outcome::NeedsApproval(plan)),
            Err(fault) => {
                self.door.note_denied(run, &fault);
                return Err(fault);
            }
        };
        self.begin(*permit, pause).await.map(Outcome::Begun)
    }

    /// What the door says. What takes a look at files takes it on a thread of its own.
    ///
    /// # Errors
    /// The door's, and a thread that cannot be had.
    pub async fn decide(&self, asked: Asked) -> Result<Settled, Fault> {
        match self.door.decide(asked)? {
            Decided::Run(permit) => Ok(Settled::Run(permit)),
            Decided::Later(asked) => {
                let internal =
                    |error: &dyn std::fmt::Display| Fault::new(ErrorCode::Internal, error.to_string());
                let _turn = self.settling.acquire().await.map_err(|error| internal(&error))?;
                let door = Arc::clone(&self.door);
                tokio::task::spawn_blocking(move || door.settle(*asked))
                    .await
                    .map_err(|error| internal(&error))?
            }
        }
    }

    async fn begin(&self, mut permit: Permit, pause: bool) -> Result<Begun, Fault> {
        let notes = permit.take_notes();
        let request = permit.into_request();
        let (run_id, label, cwd) = (request.run_id.clone(), request.label.clone(), request.cwd.clone());
        let started = if pause {
            self.sessions.start_held(request).await.map(|(session, hold)| (session, Some(hold)))
        } else {
            self.sessions.start(request).await.map(|session| (session, None))
        };
        let (session, hold) = started.map_err(|error| start_fault(&error))?;
        self.door.approvals().note(notes.used);
        self.door.note("run.started", || {
            serde_json::json!({
                "sessionId": session.id().as_str(), "runId": run_id.as_str(), "command": label, "cwd": cwd,
                "approvalId": notes.approval_id,
            })
        });
        self.note_end(session.clone(), notes.approval_id.is_some());
        Ok(Begun { session, hold, existing: false, left_out_env: notes.left_out_env, kept: notes.kept })
    }

    /// Has the end of a session written down and told. `tail`: with the end of its output.
    pub fn note_end(&self, session: Session, tail: bool) {
        let (door, ends) = (Arc::clone(&self.door), self.ends.clone());
        tokio::spawn(async move {
            let mut progress = session.progress();
            let Ok(over) = progress.wait_for(|progress| progress.exit.is_some()).await else { return };
            let exit = over.exit.clone();
            drop(over);
            let info = session.info();
            door.note("run.ended", || {
                serde_json::json!({
                    "sessionId": info.id.as_str(), "runId": info.run_id.as_str(), "end": exit.map(|exit| exit.to_string()),
                })
            });
            // Whoever started it in the background hears of its end, and what it said last.
            let tail = tail || info.owner.on_disconnect != OnDisconnect::Kill;
            let tail = if tail { session.tail(TAIL_BYTES) } else { Vec::new() };
            // Without a link nobody listens; the next hello says it.
            let _ = ends.send(pb::SessionEnded { session: Some(convert::session(&info)), tail: tail.into() });
        });
    }

    /// The same for sessions that an earlier process of this node host started.
    pub fn note_ends_of_old_sessions(&self) {
        for info in self.sessions.list().into_iter().filter(|info| info.exit.is_none()) {
            if let Some(session) = self.sessions.find(&info.id) {
                self.note_end(session, true);
            }
        }
    }

    /// Ends what nobody looks after, for as long as this node host runs.
    pub async fn end_abandoned(self: Arc<Self>) {
        loop {
            for session in self.sessions.abandoned().await {
                let info = session.info();
                tracing::info!(session = %info.id, policy = %info.owner.on_disconnect, "nobody looks after it, it is ended");
                self.door.note("run.abandoned", || {
                    serde_json::json!({
                        "sessionId": info.id.as_str(), "runId": info.run_id.as_str(), "onDisconnect": info.owner.on_disconnect.to_string(),
                    })
                });
                if let Err(error) = session.kill(Duration::from_millis(KILL_GRACE_MS)).await {
                    tracing::info!(session = %info.id, %error, "it could not be ended");
                }
                // Looked at again after its time, should it still be there.
                session.contact();
            }
        }
    }

    /// What ends from now on.
    pub(crate) fn ends(&self) -> broadcast::Receiver<pb::SessionEnded> {
        self.ends.subscribe()
    }

    /// The policy for an agent that no rule names, for display. A document
    /// that cannot be used denies.
    pub fn default_policy(&self) -> (pb::Security, pb::Ask) {
        match self.door.policy(None) {
            Ok((policy, _)) => (security_to_wire(policy.security), ask_to_wire(policy.ask)),
            Err(_) => (pb::Security::Deny, pb::Ask::Off),
        }
    }

    /// Tells the person at the terminal, or the service's journal.
    pub fn announce(&self, line: &str) {
        eprintln!("{line}");
    }
}

fn start_fault(error: &StartError) -> Fault {
    match error {
        StartError::RunIdConflict { .. } => Fault::new(ErrorCode::RunIdConflict, error.to_string())
            .hint("a run id belongs to one input; use a new id for another command"),
        StartError::Forgotten { .. } => Fault::new(ErrorCode::SessionEnded, error.to_string())
            .hint("use a new run id to run the command once more"),
        StartError::Cancelled { .. } => Fault::new(ErrorCode::Cancelled, error.to_string())
            .hint("nothing ran; use a new run id to run the command"),
        StartError::TooManySessions { .. } => Fault::new(ErrorCode::SessionLimit, error.to_string())
            .hint("end some: `gateway sessions`, `gateway kill`"),
        StartError::Record(_) | StartError::Holder(_) | StartError::TooLong(_) | StartError::HandOver(_) => {
            Fault::new(ErrorCode::CouldNotStart, with_cause(error))
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
