//! A request for a person's yes in words and as JSON, as all commands show it.

use proto::v1::{self as pb, lasting::Until};
use serde_json::{Value, json};

pub(in super::super) use node_host::cli::text::one_line;

/// Characters of a slug (runtime spec §1.10).
const SLUG: usize = 8;

/// The short form of an id. It stands in command lines that people copy, so it has the letters of ids only.
pub(in super::super) fn slug(approval: &pb::Approval) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._:-".contains(c) { c } else { '_' };
    approval.approval_id.chars().take(SLUG).map(plain).collect()
}

/// The beginning of a text, on one line.
pub(in super::super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", one_line(text.get(..at).unwrap_or_default())),
        None => one_line(text),
    }
}

/// Words as they would be typed: quoted where they would not be read as one.
pub(in super::super) fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A span of time for people.
pub(in super::super) fn span(ms: i64) -> String {
    let seconds = ms / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// How long a request is still open.
pub(in super::super) fn time_left(approval: &pb::Approval, now_ms: i64) -> String {
    match approval.expires_unix_ms.saturating_sub(now_ms) {
        left @ 1.. => span(left),
        _ => "none".to_owned(),
    }
}

/// The stable word of a decision; empty for none.
pub(in super::super) fn decision_word(decision: pb::Decision) -> &'static str {
    match decision {
        pb::Decision::AllowOnce => "allow-once",
        pb::Decision::AllowAlways => "allow-always",
        pb::Decision::Deny => "deny",
        pb::Decision::Unspecified => "",
    }
}

/// The words of the decisions that are offered.
pub(in super::super) fn allowed_words(approval: &pb::Approval) -> Vec<&'static str> {
    approval.allowed().map(decision_word).filter(|word| !word.is_empty()).collect()
}

/// The word of a scope on the command line.
pub(in super::super) fn scope_word(scope: pb::Scope) -> &'static str {
    match scope {
        pb::Scope::Exact => "exact",
        pb::Scope::ProgramArgs => "args",
        pb::Scope::Program => "program",
        pb::Scope::Unspecified => "",
    }
}

fn status_word(status: pb::ApprovalStatus) -> &'static str {
    match status {
        pb::ApprovalStatus::Pending => "pending",
        pb::ApprovalStatus::Allowed => "allowed",
        pb::ApprovalStatus::Denied => "denied",
        pb::ApprovalStatus::Expired => "expired",
        pb::ApprovalStatus::Cancelled => "cancelled",
        pb::ApprovalStatus::Unspecified => "",
    }
}

/// For what and how long, in words.
pub(in super::super) fn lasting_words(lasting: &pb::Lasting) -> String {
    let until = match lasting.until {
        Some(Until::Forever(_)) => "until it is removed".to_owned(),
        Some(Until::ForMs(ms)) => format!("for {}", span(i64::try_from(ms).unwrap_or(i64::MAX))),
        Some(Until::Session(_)) => "for the session".to_owned(),
        None => "for no known time".to_owned(),
    };
    format!("{}, {until}", scope_word(lasting.scope()))
}

/// What became of a request: `approved by ann`, `nobody answered in time`.
pub(in super::super) fn outcome(approval: &pb::Approval) -> String {
    let by = one_line(&approval.decided_by);
    match approval.status() {
        pb::ApprovalStatus::Pending => "open".to_owned(),
        pb::ApprovalStatus::Allowed => match &approval.lasting {
            Some(lasting) => format!("approved always ({}) by {by}", lasting_words(lasting)),
            None => format!("approved by {by}"),
        },
        pb::ApprovalStatus::Denied => format!("denied by {by}"),
        pb::ApprovalStatus::Expired => "nobody answered in time".to_owned(),
        pb::ApprovalStatus::Cancelled => format!("closed undecided: {}", one_line(&approval.reason)),
        pb::ApprovalStatus::Unspecified => "closed in a way that is not known here".to_owned(),
    }
}

/// A request as JSON: texts as they are, escaped by JSON alone.
pub(in super::super) fn json(approval: &pb::Approval) -> Value {
    let plan = approval.plan.clone().unwrap_or_default();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "approvalId": approval.approval_id,
        "approvalSlug": slug(approval),
        "status": status_word(approval.status()),
        "host": "node",
        "nodeId": approval.node_id,
        "node": approval.node_name,
        "command": plan.command_text,
        "cwd": plan.workdir,
        "agentId": some(&plan.agent_id),
        "sessionKey": some(&plan.session_key),
        "runId": plan.run_id,
        "requestedBy": approval.requested_by,
        "security": super::super::output::security(plan.security),
        "ask": super::super::output::ask(plan.ask),
        "askedBy": plan.asked_by,
        "reasons": plan.reasons,
        "why": plan.why,
        "segments": plan.segments.iter().map(segment).collect::<Vec<_>>(),
        "envNames": plan.env_names,
        "stdinOpen": plan.stdin_open,
        "terminal": plan.terminal,
        "signatureRequired": plan.signature_required,
        "planDigest": hex(&plan.digest),
        "allowedDecisions": allowed_words(approval),
        "allowAlways": plan.always.iter().map(always).collect::<Vec<_>>(),
        "allowAlwaysUnavailable": some(&plan.always_unavailable),
        "createdAtMs": approval.created_unix_ms,
        "expiresAtMs": approval.expires_unix_ms,
        "reason": some(&approval.reason),
        "decision": some(decision_word(approval.decision())),
        "lasting": approval.lasting.as_ref().map(lasting_json),
        "decidedBy": some(&approval.decided_by),
        "decidedFrom": some(&approval.decided_from),
        "closedAtMs": (approval.closed_unix_ms != 0).then_some(approval.closed_unix_ms),
        "used": approval.used,
        "outcome": some(&approval.outcome),
        "cut": approval.cut,
    })
}

fn segment(segment: &pb::PlanSegment) -> Value {
    let file = |file: &pb::BoundFile| {
        json!({
            "role": role_word(file.role()),
            "word": file.word,
            "path": file.path,
            "realPath": file.real_path,
            "sha256": (!file.sha256.is_empty()).then(|| hex(&file.sha256)),
        })
    };
    json!({
        "argv": segment.argv,
        "join": segment.join,
        "nested": segment.nested,
        "files": segment.files.iter().map(file).collect::<Vec<_>>(),
    })
}

/// What a bound file is to the command.
pub(super) fn role_word(role: pb::bound_file::Role) -> &'static str {
    match role {
        pb::bound_file::Role::Program => "program",
        pb::bound_file::Role::Script => "script",
        pb::bound_file::Role::Directory => "directory",
        pb::bound_file::Role::Unspecified => "file",
    }
}

fn always(scope: &pb::AlwaysScope) -> Value {
    let rule = |rule: &pb::ScopeRule| json!({ "pattern": rule.pattern, "argPattern": rule.arg_pattern, "text": rule.text });
    json!({
        "scope": scope_word(scope.scope()),
        "rules": scope.rules.iter().map(rule).collect::<Vec<_>>(),
        "notDurable": (!scope.not_durable.is_empty()).then_some(&scope.not_durable),
    })
}

fn lasting_json(lasting: &pb::Lasting) -> Value {
    let (forever, for_ms, session) = match lasting.until {
        Some(Until::Forever(forever)) => (forever, None, false),
        Some(Until::ForMs(ms)) => (false, Some(ms), false),
        Some(Until::Session(session)) => (false, None, session),
        None => (false, None, false),
    };
    json!({ "scope": scope_word(lasting.scope()), "forever": forever, "forMs": for_ms, "session": session })
}

/// Bytes in lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_before_it_is_escaped() {
        assert_eq!(cut(&"x".repeat(9), 8), format!("{}…", "x".repeat(8)));
        assert_eq!(cut("ä\n", 2), "ä\\n");
    }

    #[test]
    fn a_slug_is_one_harmless_word() {
        let table =
            [("0123456789", "01234567"), ("a.b_C:-", "a.b_C:-"), ("$(id)\n;x", "__id___x"), ("ä", "_")];
        for (id, want) in table {
            let approval = pb::Approval { approval_id: id.to_owned(), ..pb::Approval::default() };
            assert_eq!(slug(&approval), want, "{id:?}");
        }
    }

    #[test]
    fn words_are_quoted_where_that_matters() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(quoted(&words(&["ls", "-l", "a.b/c"])), "ls -l a.b/c");
        assert_eq!(quoted(&words(&["ls ", "", "it's"])), r"'ls ' '' 'it'\''s'");
    }

    #[test]
    fn times() {
        let table = [
            (0, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (5_400_000, "1 h 30 min"),
        ];
        for (ms, want) in table {
            assert_eq!(span(ms), want, "{ms}");
        }
    }

    #[test]
    fn ends_in_words() {
        let closed = |status: pb::ApprovalStatus, lasting, reason: &str| {
            outcome(&pb::Approval {
                status: status.into(),
                lasting,
                reason: reason.to_owned(),
                decided_by: "a\u{1b}nn".to_owned(),
                ..pb::Approval::default()
            })
        };
        let lasting = |until| Some(pb::Lasting { scope: pb::Scope::ProgramArgs.into(), until: Some(until) });
        let table = [
            (pb::ApprovalStatus::Allowed, None, "user", "approved by a\\u{1b}nn"),
            (
                pb::ApprovalStatus::Allowed,
                lasting(Until::Forever(true)),
                "user",
                "approved always (args, until it is removed) by a\\u{1b}nn",
            ),
            (
                pb::ApprovalStatus::Allowed,
                lasting(Until::ForMs(3_600_000)),
                "user",
                "approved always (args, for 1 h) by a\\u{1b}nn",
            ),
            (pb::ApprovalStatus::Denied, None, "user", "denied by a\\u{1b}nn"),
            (pb::ApprovalStatus::Expired, None, "timeout", "nobody answered in time"),
            (pb::ApprovalStatus::Cancelled, None, "gateway-restart", "closed undecided: gateway-restart"),
        ];
        for (status, lasting, reason, want) in table {
            assert_eq!(closed(status, lasting, reason), want);
        }
    }
}
