//! A person's answer.

use approval::broker::{Answer, Late, State};
use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, lasting::Until};

use super::{Approvals, close, late};
use crate::clock;
use crate::registry::store_fault;

/// Longest time that an allow-always may hold, in milliseconds.
const FOR_MAX_MS: u64 = 30 * 24 * 3600 * 1000;

/// An answer, and whose it is.
#[derive(Debug)]
pub(crate) struct Resolution {
    /// What was asked for.
    pub(crate) request: pb::ResolveRequest,
    /// Who answers.
    pub(crate) by: String,
    /// From where.
    pub(crate) from: String,
}

impl Approvals {
    /// Takes an answer. It is on disk before it counts.
    ///
    /// # Errors
    /// There is no such request, it is closed, the decision is not offered, or the store failed.
    pub(crate) fn resolve(&self, resolution: Resolution) -> Result<pb::Approval, Fault> {
        let Resolution { request, by, from } = resolution;
        let decision = request.decision();
        if decision == pb::Decision::Unspecified {
            return Err(Fault::new(ErrorCode::InvalidRequest, "this is no known decision")
                .hint("allow-once, allow-always or deny"));
        }
        let now = clock::now_ms();
        let mut state = self.state.lock();
        let id = match state.broker.find(&request.id) {
            Ok(id) => id,
            Err(Late::Ambiguous) => return Err(late(Late::Ambiguous)),
            Err(_) => return again(self.stored(&request.id)?, &request),
        };
        let Some(live) = state.live.get(&id) else {
            return again(self.stored(&id)?, &request);
        };
        let mut approval = live.approval.clone();
        let plan = approval.plan.clone().unwrap_or_default();
        check_digest(&request, &plan)?;
        let lasting = lasting(&request, &approval, &plan)?;
        let answer = (i32::from(decision), lasting);
        let standing = state.broker.state(&id, now);
        if standing == Some(State::Expired) {
            // Before the timer of who waits: they need not wait for it.
            self.end(&mut state, &id, pb::ApprovalStatus::Expired, "timeout");
        }
        if standing != Some(State::Open) {
            // Says what is in the way, or that it is the same answer.
            return state.broker.resolve(&id, answer, now).map(|_| approval).map_err(late);
        }
        check_signature(&request, &plan, decision)?;
        let allowed = decision != pb::Decision::Deny;
        let status = if allowed { pb::ApprovalStatus::Allowed } else { pb::ApprovalStatus::Denied };
        close(&mut approval, status, "user", now);
        approval.decision = decision.into();
        approval.lasting = lasting;
        approval.decided_by = by;
        approval.decided_from = from;
        self.store.put_approval(&approval).map_err(store_fault)?;
        match state.broker.resolve(&id, answer, now) {
            Ok(Answer::First | Answer::Same) => {}
            Err(error) => return Err(late(error)),
        }
        self.tell("approval.decided", &approval);
        if let Some(live) = state.live.get_mut(&id) {
            live.approval = approval.clone();
            live.key = request.key;
            live.signature = request.signature;
            live.closed.send_replace(true);
        }
        Ok(approval)
    }
}

/// The answer is about the plan that was shown, where it says which.
fn check_digest(request: &pb::ResolveRequest, plan: &pb::Plan) -> Result<(), Fault> {
    if request.plan_digest.is_empty() || request.plan_digest == plan.digest {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::ApprovalRequestMismatch, "the plan is not the one that was shown")
        .hint("look at it again: `gateway approvals show`"))
}

/// An answer to what was closed before.
fn again(approval: pb::Approval, request: &pb::ResolveRequest) -> Result<pb::Approval, Fault> {
    check_digest(request, approval.plan.as_ref().unwrap_or(&pb::Plan::default()))?;
    match approval.status() {
        pb::ApprovalStatus::Allowed | pb::ApprovalStatus::Denied => {
            let same_scope = request.lasting.is_none() || request.lasting == approval.lasting;
            if approval.decision == request.decision && same_scope {
                Ok(approval)
            } else {
                Err(late(Late::AlreadyResolved))
            }
        }
        pb::ApprovalStatus::Expired => Err(late(Late::Expired)),
        pb::ApprovalStatus::Cancelled => Err(late(Late::Cancelled)),
        // Of another process: it is closed at this one's next start at the latest.
        pb::ApprovalStatus::Pending | pb::ApprovalStatus::Unspecified => Err(late(Late::Unknown)),
    }
}

/// For what and how long an allow-always holds. Without a word it is the narrowest, for ever, or as long as it can.
fn lasting(
    request: &pb::ResolveRequest,
    approval: &pb::Approval,
    plan: &pb::Plan,
) -> Result<Option<pb::Lasting>, Fault> {
    let unavailable = |why: &str| {
        Fault::new(ErrorCode::AllowAlwaysUnavailable, format!("allow-always is not to be had: {why}"))
            .hint("allow-once; `gateway approvals show` says what can be kept")
    };
    if request.decision() != pb::Decision::AllowAlways {
        return match request.lasting {
            None => Ok(None),
            Some(_) => Err(Fault::new(ErrorCode::InvalidRequest, "only allow-always has a scope and a time")),
        };
    }
    if !approval.allowed.contains(&pb::Decision::AllowAlways.into()) {
        return Err(unavailable(&plan.always_unavailable));
    }
    let asked = request.lasting.unwrap_or_else(|| pb::Lasting {
        scope: plan.always.first().map_or(0, |scope| scope.scope),
        until: Some(Until::Forever(true)),
    });
    let offered = plan.always.iter().find(|offered| offered.scope == asked.scope);
    let offered = offered.ok_or_else(|| unavailable("this scope is not offered"))?;
    match asked.until {
        Some(Until::Forever(true)) if offered.not_durable.is_empty() => Ok(Some(asked)),
        Some(Until::Forever(true)) => {
            Err(unavailable(&offered.not_durable)
                .hint("for a time: `--for 1h`, or for the session: `--session`"))
        }
        Some(Until::ForMs(1..=FOR_MAX_MS)) => Ok(Some(asked)),
        Some(Until::Session(true)) if !plan.session_key.is_empty() => Ok(Some(asked)),
        Some(Until::Session(true)) => Err(unavailable("the run names no session")),
        Some(Until::Forever(false) | Until::ForMs(_) | Until::Session(false)) | None => {
            Err(Fault::new(ErrorCode::InvalidRequest, "it does not say for how long; at most 30 days"))
        }
    }
}

/// The node verifies; here is only seen whether it could.
fn check_signature(
    request: &pb::ResolveRequest,
    plan: &pb::Plan,
    decision: pb::Decision,
) -> Result<(), Fault> {
    let whole = request.key.len() == 32 && request.signature.len() == 64;
    let none = request.key.is_empty() && request.signature.is_empty();
    if !whole && !none {
        return Err(Fault::new(ErrorCode::ApprovalSignatureInvalid, "a key has 32 bytes and a signature 64"));
    }
    // A no needs no signature: nothing runs.
    if none && plan.signature_required && decision != pb::Decision::Deny {
        return Err(Fault::new(
            ErrorCode::ApprovalSignatureRequired,
            "the node takes only decisions that an enrolled approver signed",
        )
        .hint("`gateway approvals key` shows your key; the node's owner adds it: `node-host approvers add NAME KEY`"));
    }
    Ok(())
}
