//! The last part of a card: what may be answered, and the command line of each answer.

use proto::v1 as pb;

use super::super::record::{hex, one_line, scope_word, slug};
use super::{Card, is_sealed};

/// Digits of a plan's digest that a command line names.
pub(in super::super) const PLAN_DIGITS: usize = 16;

/// Every decision that is offered. Those that allow something name the plan too: an id, or the beginning of one, could
/// mean another request by the time it is typed, a digest cannot.
pub(super) fn decisions(card: &mut Card, approval: &pb::Approval, plan: &pb::Plan) {
    let id = slug(approval);
    let digest = hex(&plan.digest);
    let digest = digest.get(..PLAN_DIGITS).unwrap_or(&digest);
    let line = |words: &str| format!("gateway approvals resolve {id} {words}");
    let offers = |decision: pb::Decision| approval.allowed().any(|offered| offered == decision);
    let readable = is_sealed(plan) && approval::shown(&plan.command_text).is_some();
    let mut name = "Decide";
    if readable && offers(pb::Decision::AllowOnce) {
        card.command_line(name, &line(&format!("allow-once --plan {digest}")));
        name = "";
    }
    if offers(pb::Decision::Deny) {
        card.command_line(name, &line("deny"));
    }
    if !readable {
        return;
    }
    if !offers(pb::Decision::AllowAlways) {
        let why = if plan.always_unavailable.is_empty() {
            "nothing can be kept".to_owned()
        } else {
            one_line(&plan.always_unavailable)
        };
        card.field("Always", &format!("not offered: {why}"));
        return;
    }
    let mut name = "Always";
    for scope in &plan.always {
        let durable = scope.not_durable.is_empty();
        let time = if durable { "" } else { " --for 1h" };
        let words = format!("allow-always --scope {}{time} --plan {digest}", scope_word(scope.scope()));
        card.command_line(name, &line(&words));
        name = "";
        for rule in &scope.rules {
            card.more(&format!("  {} {}", if durable { "stores:" } else { "allows:" }, one_line(&rule.text)));
        }
        if !durable {
            let why = one_line(&scope.not_durable);
            card.more(&format!("  for a time or a session only: {why}"));
        }
    }
    let session = if plan.session_key.is_empty() { "" } else { ", or --session for this session" };
    card.more(&format!("add --for 1h for an hour only{session}"));
}
