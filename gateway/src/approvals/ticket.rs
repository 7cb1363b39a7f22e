//! The call that waits for a decision, and uses it.

use std::sync::Arc;
use std::time::Duration;

use approval::broker;
use proto::v1 as pb;
use tokio::sync::watch;

use super::{Approvals, State, close};
use crate::clock;

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Somebody said yes, and the yes was taken by this call just now. It is good for nobody else.
    Allowed(pb::Permit),
    /// Somebody said no.
    Denied,
    /// Nobody said anything in time.
    Expired,
    /// It was closed undecided, and why.
    Cancelled(String),
}

/// An open request, in the hands of the call that made it. When it is dropped undecided, the request is closed: a late
/// yes starts nothing.
#[derive(Debug)]
pub(crate) struct Ticket {
    approvals: Arc<Approvals>,
    approval: pb::Approval,
    closed: watch::Receiver<bool>,
}

impl Ticket {
    pub(super) fn new(
        approvals: Arc<Approvals>,
        approval: pb::Approval,
        closed: watch::Receiver<bool>,
    ) -> Self {
        Self { approvals, approval, closed }
    }

    /// As it is known to this call: after [`Ticket::decided`], with the decision.
    pub(crate) fn approval(&self) -> &pb::Approval {
        &self.approval
    }

    /// Waits for the decision, or the end of the time. May be dropped and called again.
    pub(crate) async fn decided(&mut self) -> Outcome {
        let left = self.approval.expires_unix_ms.saturating_sub(clock::now_ms());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        tokio::select! {
            _ = self.closed.wait_for(|closed| *closed) => {}
            () = tokio::time::sleep(left) => self.approvals.expire(&self.approval.approval_id),
        }
        let (approval, outcome) = self.approvals.pick_up(&self.approval);
        self.approval = approval;
        outcome
    }

    /// Notes what became of the command.
    pub(crate) fn close(mut self, outcome: &str) {
        outcome.clone_into(&mut self.approval.outcome);
        if let Err(error) = self.approvals.store.put_approval(&self.approval) {
            tracing::error!(id = self.approval.approval_id, %error, "the outcome of an approval was not stored");
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.approvals.give_up(&self.approval.approval_id);
    }
}

impl Approvals {
    /// Closes a request whose time is over.
    fn expire(&self, id: &str) {
        let id = id.to_lowercase();
        let mut state = self.state.lock();
        let Some(live) = state.live.get(&id) else { return };
        // A timer may be a moment early by the clock that people read.
        let now = clock::now_ms().max(live.approval.expires_unix_ms);
        if state.broker.state(&id, now) == Some(broker::State::Expired) {
            self.end(&mut state, &id, pb::ApprovalStatus::Expired, "timeout");
        }
    }

    /// Closes a request that nobody waits for any more.
    fn give_up(&self, id: &str) {
        let id = id.to_lowercase();
        let reason = if self.stopping.is_cancelled() { "gateway-restart" } else { "run-aborted" };
        let now = clock::now_ms();
        let mut state = self.state.lock();
        if state.broker.cancel(&id, now) {
            self.end(&mut state, &id, pb::ApprovalStatus::Cancelled, reason);
        } else if state.broker.state(&id, now) == Some(broker::State::Expired) {
            self.end(&mut state, &id, pb::ApprovalStatus::Expired, "timeout");
        }
        state.live.remove(&id);
    }

    /// Writes down that nobody decided, and tells it. The broker knows already. Nothing where it was told before.
    pub(super) fn end(&self, state: &mut State, id: &str, status: pb::ApprovalStatus, reason: &str) {
        let Some(live) = state.live.get_mut(id) else { return };
        if live.approval.status() != pb::ApprovalStatus::Pending {
            return;
        }
        close(&mut live.approval, status, reason, clock::now_ms());
        if let Err(error) = self.store.put_approval(&live.approval) {
            // At the next start it is open, and is closed then.
            tracing::error!(id, %error, "the end of an approval was not stored");
        }
        self.tell("approval.closed", &live.approval);
        live.closed.send_replace(true);
    }

    /// Takes the decision of a closed request, once.
    fn pick_up(&self, known: &pb::Approval) -> (pb::Approval, Outcome) {
        let id = known.approval_id.to_lowercase();
        let mut state = self.state.lock();
        let redeemed = state.broker.redeem(&id, clock::now_ms());
        let Some(live) = state.live.get_mut(&id) else {
            return (known.clone(), Outcome::Cancelled("the request is gone".to_owned()));
        };
        let outcome = match (live.approval.status(), redeemed) {
            (pb::ApprovalStatus::Denied, _) => Outcome::Denied,
            (pb::ApprovalStatus::Expired, _) => Outcome::Expired,
            (pb::ApprovalStatus::Allowed, Ok((decision, lasting))) => Outcome::Allowed(pb::Permit {
                approval_id: known.approval_id.clone(),
                plan_digest: known.plan.as_ref().map(|plan| plan.digest.clone()).unwrap_or_default(),
                decision,
                lasting,
                decided_by: live.approval.decided_by.clone(),
                decided_unix_ms: live.approval.closed_unix_ms,
                key: live.key.clone(),
                signature: live.signature.clone(),
            }),
            (pb::ApprovalStatus::Allowed, Err(late)) => Outcome::Cancelled(late.to_string()),
            (_, _) => Outcome::Cancelled(live.approval.reason.clone()),
        };
        live.approval.used = matches!(outcome, Outcome::Allowed(_) | Outcome::Denied);
        (live.approval.clone(), outcome)
    }
}
