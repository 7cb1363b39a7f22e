//! Requests as lists show them: short, and no more of them than a message holds.

use prost::Message as _;
use proto::v1 as pb;

/// Longest text in a list, in characters.
const LISTED_TEXT: usize = 512;
/// Longest list, in bytes. A client takes no message above 4 MiB.
const LIST_BYTES: usize = 3 * 1024 * 1024;
/// What a message adds to each, in bytes, at most.
const LISTED_EXTRA: usize = 8;

/// A text as a list shows it.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LISTED_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

/// As many from the front as one message holds.
pub(super) fn that_fit(mut list: Vec<pb::Approval>) -> Vec<pb::Approval> {
    let mut bytes = 0;
    let fit = list.iter().take_while(|approval| {
        bytes += approval.encoded_len() + LISTED_EXTRA;
        bytes <= LIST_BYTES
    });
    list.truncate(fit.count());
    list
}

/// An approval as a list shows it. Field by field: a plan may be large.
pub(super) fn cut(approval: &pb::Approval) -> pb::Approval {
    let plan = approval.plan.as_ref().map(|plan| pb::Plan {
        workdir: short(&plan.workdir),
        command_text: short(&plan.command_text),
        agent_id: short(&plan.agent_id),
        session_key: short(&plan.session_key),
        security: plan.security,
        ask: plan.ask,
        digest: plan.digest.clone(),
        needs_approval: plan.needs_approval,
        run_id: plan.run_id.clone(),
        reasons: plan.reasons.iter().map(|reason| short(reason)).collect(),
        why: short(&plan.why),
        asked_by: plan.asked_by.clone(),
        signature_required: plan.signature_required,
        ..pb::Plan::default()
    });
    pb::Approval {
        approval_id: approval.approval_id.clone(),
        node_id: approval.node_id.clone(),
        node_name: approval.node_name.clone(),
        plan,
        allowed: approval.allowed.clone(),
        requested_by: approval.requested_by.clone(),
        reason: approval.reason.clone(),
        lasting: approval.lasting,
        decided_by: approval.decided_by.clone(),
        decided_from: approval.decided_from.clone(),
        outcome: short(&approval.outcome),
        cut: true,
        ..*approval
    }
}
