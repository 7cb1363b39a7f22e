//! From "needs a person's yes" to a started command, or to a refusal that says why (runtime spec §9).
//!
//! The node made the plan and decides; here is only who is asked, for how long, and what is told meanwhile.

use std::sync::Arc;

use config::ExecConfig;
use fault::{ErrorCode, Fault};
use policy::AutoReview;
use proto::v1::{self as pb, session_event::Event};

use crate::approvals::{NewApproval, Outcome, Ticket};
use crate::clock;
use crate::follow::{Events, OnClose};
use crate::gateway::Gateway;
use crate::node_link::Link;
use crate::review::Review;
use crate::runs;
use crate::start::Manner;
use crate::start::{self, Sent, Started};

/// Longest command in a text for people, in characters.
const COMMAND_SHOWN: usize = 400;

/// Who wants a command to run, and what they do while somebody else decides.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Tells them what happens.
    pub(crate) events: Events,
    /// What they asked for.
    pub(crate) wait: pb::ApprovalWait,
    /// The id that they chose; empty: none.
    pub(crate) approval_id: String,
    /// Who they are.
    pub(crate) name: String,
}

/// What a call leads to.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The command has a session.
    Started(Box<Started>),
    /// A person decides; the caller does not wait.
    Pending,
}

/// What is known of a command for which somebody is asked.
#[derive(Debug)]
struct Question {
    gateway: Arc<Gateway>,
    link: Arc<Link>,
    run: pb::RunRequest,
    plan: pb::Plan,
    manner: Manner,
    /// Who asked for the run.
    by: String,
}

/// Whether it is of use to have the node ask: somebody could answer.
pub(crate) fn can_ask(gateway: &Gateway, caller: &Caller, exec: &ExecConfig) -> bool {
    reaches_person(gateway, caller) || exec.auto_review == AutoReview::On
}

/// Whether a person can hear of a request: through who watches, or through the caller.
fn reaches_person(gateway: &Gateway, caller: &Caller) -> bool {
    match caller.wait {
        pb::ApprovalWait::Inline | pb::ApprovalWait::Pending => true,
        pb::ApprovalWait::Never => false,
        pb::ApprovalWait::Unspecified => gateway.approvals.reachable(),
    }
}

/// Asks about a plan, and runs it if the answer is yes.
pub(crate) async fn ask(
    gateway: &Arc<Gateway>,
    link: Arc<Link>,
    run: pb::RunRequest,
    plan: pb::Plan,
    manner: Manner,
    caller: Caller,
    exec: &ExecConfig,
) -> Result<Begun, Fault> {
    check_plan(&link, &run, &plan)?;
    let question =
        Question { gateway: Arc::clone(gateway), link, run, plan, manner, by: caller.name.clone() };
    let reviewed = tokio::select! {
        reviewed = question.reviewed(exec) => reviewed?,
        () = caller.events.closed() => return Err(gone()),
    };
    match reviewed {
        Reviewed::Run(permit) => return question.run_with(permit).await.map(|s| Begun::Started(Box::new(s))),
        Reviewed::Person => {}
    }
    if !reaches_person(gateway, &caller) {
        return question.fall_back("no-route").await.map(|started| Begun::Started(Box::new(started)));
    }
    let new = NewApproval {
        id: (!caller.approval_id.is_empty()).then(|| caller.approval_id.clone()),
        node: question.link.node,
        node_name: gateway.registry.name(&question.link.node),
        plan: question.plan.clone(),
        requested_by: caller.name.clone(),
    };
    let ticket = gateway.approvals.request(new)?;
    let pending = Event::ApprovalPending(ticket.approval().clone());
    if caller.events.send(Ok(pb::SessionEvent { event: Some(pending) })).await.is_err() {
        return Err(gone());
    }
    if caller.wait == pb::ApprovalWait::Pending {
        // A yes starts it with nobody there.
        let question = Question { manner: Manner { on_close: OnClose::Keep, ..question.manner }, ..question };
        tokio::spawn(async move {
            let id = ticket.approval().approval_id.clone();
            if let Err(fault) = question.decided(ticket, None).await {
                tracing::info!(approval = id, %fault, "a command that waited for a yes did not start");
            }
        });
        return Ok(Begun::Pending);
    }
    question.decided(ticket, Some(&caller.events)).await.map(|started| Begun::Started(Box::new(started)))
}

enum Reviewed {
    Run(pb::Permit),
    Person,
}

impl Question {
    /// Asks the automatic reviewer first, where one is configured.
    async fn reviewed(&self, exec: &ExecConfig) -> Result<Reviewed, Fault> {
        let review = self.gateway.reviewer.review(exec, &self.plan, &self.session()).await;
        let (allowed, why) = match &review {
            Review::Off => return Ok(Reviewed::Person),
            // Why may hold parts of the command: it is no text for a log.
            Review::Person { .. } => {
                tracing::info!(run = self.run.run_id, "the reviewer leaves it to a person");
                return Ok(Reviewed::Person);
            }
            Review::Allow { rationale, .. } => (true, rationale),
            Review::Deny { rationale, .. } => (false, rationale),
        };
        let id = start::new_run_id()?;
        let now = clock::now_ms();
        let decision = if allowed { pb::Decision::AllowOnce } else { pb::Decision::Deny };
        let status = if allowed { pb::ApprovalStatus::Allowed } else { pb::ApprovalStatus::Denied };
        self.gateway.approvals.note(pb::Approval {
            approval_id: id.clone(),
            node_id: self.link.node.to_hex(),
            node_name: self.gateway.registry.name(&self.link.node),
            plan: Some(self.plan.clone()),
            created_unix_ms: now,
            closed_unix_ms: now,
            expires_unix_ms: now,
            requested_by: "auto-review".to_owned(),
            status: status.into(),
            reason: "auto-review".to_owned(),
            decision: decision.into(),
            decided_by: "auto-review".to_owned(),
            used: allowed,
            outcome: why.clone(),
            ..pb::Approval::default()
        });
        if !allowed {
            return Err(self.denied(&id, &format!("auto-review-denied: {why}")));
        }
        Ok(Reviewed::Run(pb::Permit {
            approval_id: id,
            plan_digest: self.plan.digest.clone(),
            decision: decision.into(),
            decided_by: "auto-review".to_owned(),
            decided_unix_ms: now,
            ..pb::Permit::default()
        }))
    }

    /// Waits for the decision, and does what it says. Without `events` nobody waits with us.
    async fn decided(self, mut ticket: Ticket, events: Option<&Events>) -> Result<Started, Fault> {
        let id = ticket.approval().approval_id.clone();
        let outcome = tokio::select! {
            outcome = ticket.decided() => outcome,
            // Dropping the ticket closes the request: a late yes starts nothing.
            () = left(events) => return Err(gone()),
            () = self.gateway.stopping.cancelled() => {
                return Err(Fault::new(ErrorCode::Draining, "the gateway is stopping; nothing ran")
                    .hint("run it again: the decision has to be taken anew"));
            }
        };
        if let Some(events) = events {
            let closed = Event::ApprovalClosed(ticket.approval().clone());
            // A caller that has just gone is noticed when the command starts.
            let _ = events.send(Ok(pb::SessionEvent { event: Some(closed) })).await;
        }
        let done = match outcome {
            Outcome::Allowed(permit) => {
                self.gateway.reviewer.answered_by_person(&self.session(), true);
                self.run_with(permit).await
            }
            Outcome::Denied => {
                self.gateway.reviewer.answered_by_person(&self.session(), false);
                Err(self.denied(&id, "user-denied"))
            }
            Outcome::Expired => self.fall_back_from(&id, "approval-timeout").await,
            Outcome::Cancelled(reason) => Err(self.denied(&id, &reason)),
        };
        ticket.close(&match &done {
            Ok(started) => format!("started as {}", started.session.session_id),
            Err(fault) => fault.message.clone(),
        });
        done
    }

    async fn run_with(&self, permit: pb::Permit) -> Result<Started, Fault> {
        let id = permit.approval_id.clone();
        let run = pb::RunRequest { permit: Some(permit), ..self.run.clone() };
        let sent = start::send(&self.gateway, Arc::clone(&self.link), &run, self.manner).await;
        match sent.map_err(|fault| self.failed(&id, fault))? {
            Sent::Started(started) => {
                runs::started(&self.gateway, &started, &run, &self.by);
                Ok(Started { approval_id: id, ..*started })
            }
            Sent::NeedsApproval(..) => Err(unexpected()),
        }
    }

    /// What holds where nobody answers: the node applies its `askFallback`.
    async fn fall_back(&self, reason: &str) -> Result<Started, Fault> {
        self.fall_back_from("", reason).await
    }

    async fn fall_back_from(&self, id: &str, reason: &str) -> Result<Started, Fault> {
        let run = pb::RunRequest { can_ask: false, permit: None, ..self.run.clone() };
        match start::send(&self.gateway, Arc::clone(&self.link), &run, self.manner).await {
            Ok(Sent::Started(started)) => {
                runs::started(&self.gateway, &started, &run, &self.by);
                Ok(*started)
            }
            Ok(Sent::NeedsApproval(..)) => Err(unexpected()),
            Err(fault) if refused(&fault) => {
                let missed = self.plan.reasons.iter().any(|reason| reason == "allowlist-miss");
                let miss = if missed { ": allowlist-miss" } else { "" };
                let denied = self.denied(id, &format!("{reason}{miss}"));
                Err(match fault.hint {
                    Some(hint) => denied.hint(hint),
                    None => denied,
                })
            }
            Err(fault) => Err(fault),
        }
    }

    /// The node did not take the decision.
    fn failed(&self, id: &str, fault: Fault) -> Fault {
        if refused(&fault) {
            self.tell_denied(id, &fault.message);
        }
        fault
    }

    fn denied(&self, id: &str, reason: &str) -> Fault {
        self.tell_denied(id, reason);
        Fault::new(ErrorCode::SystemRunDenied, denied_text(&self.place(id), reason, &self.plan.command_text))
    }

    fn tell_denied(&self, id: &str, reason: &str) {
        let fault = Fault::new(ErrorCode::SystemRunDenied, reason);
        runs::denied(&self.gateway, &self.run, &fault, &self.by);
        self.gateway.notices.add(pb::Notice {
            kind: pb::notice::Kind::ExecDenied.into(),
            text: denied_text(&self.place(id), reason, &self.plan.command_text),
            approval_id: id.to_owned(),
            run_id: self.run.run_id.clone(),
            node_id: self.link.node.to_hex(),
            agent_id: self.run.agent_id.clone(),
            session_key: self.run.session_key.clone(),
            reason: reason.to_owned(),
            ..pb::Notice::default()
        });
    }

    fn place(&self, id: &str) -> String {
        let id = if id.is_empty() { &self.run.run_id } else { id };
        format!("node={} id={id}", self.gateway.registry.name(&self.link.node))
    }

    /// Whose row of denials it is.
    fn session(&self) -> String {
        if self.run.session_key.is_empty() { self.run.agent_id.clone() } else { self.run.session_key.clone() }
    }
}

/// `Exec denied (node=… id=…, reason): command`.
fn denied_text(place: &str, reason: &str, command: &str) -> String {
    format!("Exec denied ({place}, {reason}): {}", runs::shown_command(command, COMMAND_SHOWN))
}

/// The caller is not there any more; without one, never.
async fn left(events: Option<&Events>) {
    match events {
        Some(events) => events.closed().await,
        None => std::future::pending().await,
    }
}

/// A node that shows one thing and asks for another is not asked about.
fn check_plan(link: &Link, run: &pb::RunRequest, plan: &pb::Plan) -> Result<(), Fault> {
    let ours = plan.node_id == link.node.to_hex() && plan.run_id == run.run_id && plan.needs_approval;
    if ours && approval::plan_digest(plan).as_slice() == plan.digest.as_ref() {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::Internal, "the node's plan is not one of this run; nothing ran"))
}

fn refused(fault: &Fault) -> bool {
    fault.exit_class() == fault::ExitClass::Refused
}

fn gone() -> Fault {
    Fault::new(ErrorCode::Cancelled, "the caller left before the decision; nothing ran")
}

fn unexpected() -> Fault {
    Fault::new(ErrorCode::Internal, "the node asked again; nothing ran")
}
