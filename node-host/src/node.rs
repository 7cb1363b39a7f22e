//! What all links of one node host share, and the way of a run through it.

use fault::{ErrorCode, Fault};
use proto::v1 as pb;

use crate::enforce::{Asked, Door, ask_to_wire, security_to_wire};
use crate::link::{Absent, Inputs};
use crate::sessions::{Hold, Session, Sessions, StartError};

/// One node host.
#[derive(Debug)]
pub struct Node {
    /// Its own name; the gateway may know it under another.
    pub display_name: String,
    /// What decides.
    pub door: Door,
    /// What runs.
    pub sessions: Sessions,
    /// What was typed.
    pub(crate) inputs: Inputs,
    /// Who was cut off while reading.
    pub(crate) absent: Absent,
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
}

impl Node {
    /// A node host that no link serves yet.
    pub fn new(display_name: String, door: Door, sessions: Sessions) -> Self {
        Self { display_name, door, sessions, inputs: Inputs::default(), absent: Absent::default() }
    }

    /// Starts what the door permits. A run that had started is answered from its receipt, before the policy and the
    /// machine are looked at: they may have changed since, its command has run all the same.
    ///
    /// # Errors
    /// When a field is of no use, the run id is taken or its session gone, or the door or the system says no.
    pub async fn start(&self, run: &pb::RunRequest) -> Result<Begun, Fault> {
        let pause = run.subscribe.as_ref().is_some_and(|subscribe| subscribe.pause_command);
        let asked = Asked::read(run)?;
        let known = self.sessions.find_retry(asked.run_id(), asked.input_digest());
        if let Some(session) = known.map_err(|error| start_fault(&error))? {
            let hold = pause.then(|| session.hold(0));
            return Ok(Begun { session, hold, existing: true, left_out_env: Vec::new() });
        }
        let mut permit = self.door.decide(asked)?;
        let (left_out_env, used) = permit.take_notes();
        let request = permit.into_request();
        let started = if pause {
            self.sessions.start_held(request).await.map(|(session, hold)| (session, Some(hold)))
        } else {
            self.sessions.start(request).await.map(|session| (session, None))
        };
        let (session, hold) = started.map_err(|error| start_fault(&error))?;
        self.door.approvals().note(used);
        Ok(Begun { session, hold, existing: false, left_out_env })
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
