//! The result of a session that is over (runtime.md §1.10): one form for `exec` and `process`, for pipes and terminals.

use proto::v1::{self as pb, exit::How};
use serde_json::{Map, Value, json};

/// Guidance where a time limit ended a command: it may have done half of its work (§1.4).
pub(super) const VERIFY: &str = "It may have done part of its work: check the state before you run it again.";

/// How a session ended, in the words of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// `completed` or `failed`.
    pub(super) status: &'static str,
    pub(super) failure: Option<&'static str>,
    pub(super) reason: &'static str,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// The last line of the text; empty for an ordinary success.
    pub(super) line: String,
}

impl Ended {
    /// Reads an end. `timeout_s`: the limit that the command had, for its text.
    pub(super) fn of(exit: &pb::Exit, timeout_s: Option<f64>) -> Self {
        let (code, signal) = match exit.how {
            Some(How::Code(code)) => (Some(code), None),
            Some(How::Signal(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        let failed = |failure, reason, line: String| Self {
            status: "failed",
            failure: Some(failure),
            reason,
            code,
            signal,
            line,
        };
        if exit.timed_out {
            let after = timeout_s.map_or(String::new(), |s| format!(" after {s} seconds"));
            return failed(
                "overall-timeout",
                "overall-timeout",
                format!(
                    "(Command timed out{after}. {VERIFY} For long work use background: true or yieldMs, not `&`.)"
                ),
            );
        }
        if let Some(limit) = &exit.limit {
            let (what, unit) = match limit.kind() {
                pb::limit_hit::Kind::Memory => ("memory", " bytes"),
                pb::limit_hit::Kind::Pids => ("processes", ""),
                pb::limit_hit::Kind::Cpu => ("processor time", " ms"),
                pb::limit_hit::Kind::FileSize => ("file size", " bytes"),
                pb::limit_hit::Kind::Unspecified => ("resources", ""),
            };
            let used = if limit.used > 0 { format!(", {}{unit} used", limit.used) } else { String::new() };
            return failed(
                "resource-limit",
                "resource-limit",
                format!(
                    "(Command was ended: it went over its limit of {what}, {}{unit}{used}. {VERIFY})",
                    limit.allowed
                ),
            );
        }
        if !exit.note.is_empty() {
            return failed("runtime-error", "exit", format!("({})", exit.note));
        }
        if exit.cancelled {
            return failed("aborted", "manual-cancel", "(Command was stopped on request)".to_owned());
        }
        match &exit.how {
            Some(How::Code(126)) => failed(
                "shell-not-executable",
                "exit",
                "(Command exited with code 126: it cannot be executed)".to_owned(),
            ),
            Some(How::Code(127)) => failed(
                "shell-command-not-found",
                "exit",
                "(Command exited with code 127: command not found)".to_owned(),
            ),
            Some(How::Code(code)) => Self {
                status: "completed",
                failure: None,
                reason: "exit",
                code: Some(*code),
                signal: None,
                line: if *code == 0 { String::new() } else { format!("(Command exited with code {code})") },
            },
            Some(How::Signal(9)) => failed(
                "signal",
                "signal",
                "(Command was killed by signal 9, which nobody here sent: it may have run out of memory)"
                    .to_owned(),
            ),
            Some(How::Signal(signal)) => {
                failed("signal", "signal", format!("(Command was ended by signal {signal})"))
            }
            Some(How::CouldNotStart(failure)) => {
                failed("could-not-start", "exit", format!("(Command was not executed: {})", failure.detail))
            }
            Some(How::Unreaped(_)) => failed(
                "runtime-error",
                "exit",
                "(Command is stuck in the system: even a kill did not end it)".to_owned(),
            ),
            Some(How::Lost(_)) | None => failed(
                "lost",
                "exit",
                format!("(Nobody saw how the command ended: what looked after it died. {VERIFY})"),
            ),
        }
    }
}

/// The details that all results of an ended session have.
pub(super) fn details(state: &pb::SessionState, exit: &pb::Exit, ended: &Ended) -> Map<String, Value> {
    let session = state.session.clone().unwrap_or_default();
    let mut details = Map::new();
    details.insert("status".into(), ended.status.into());
    details.insert("exitCode".into(), ended.code.into());
    if let Some(signal) = ended.signal {
        details.insert("exitSignal".into(), signal.into());
    }
    if let Some(failure) = ended.failure {
        details.insert("failureKind".into(), failure.into());
    }
    details.insert("exitReason".into(), ended.reason.into());
    details.insert("durationMs".into(), exit.duration_ms.into());
    details.insert("timedOut".into(), exit.timed_out.into());
    details.insert("noOutputTimedOut".into(), false.into());
    details.insert("cwd".into(), session.workdir.into());
    details.insert("sessionId".into(), session.session_id.into());
    details.insert("runId".into(), session.run_id.into());
    details.insert("nodeId".into(), session.node_id.into());
    details.insert("node".into(), session.node_name.into());
    details.insert("outputBytes".into(), exit.final_offset.into());
    if exit.leftovers_killed > 0 {
        details.insert("leftoversKilled".into(), exit.leftovers_killed.into());
    }
    if let Some(limit) = &exit.limit {
        details.insert(
            "limit".into(),
            json!({ "kind": limit_name(limit.kind()), "allowed": limit.allowed, "used": limit.used }),
        );
    }
    details
}

fn limit_name(kind: pb::limit_hit::Kind) -> &'static str {
    match kind {
        pb::limit_hit::Kind::Memory => "memory",
        pb::limit_hit::Kind::Pids => "pids",
        pb::limit_hit::Kind::Cpu => "cpu",
        pb::limit_hit::Kind::FileSize => "fileSize",
        pb::limit_hit::Kind::Unspecified => "",
    }
}

/// Ranges of output that a text does not show.
pub(super) fn omitted(ranges: &[pb::Omitted]) -> Value {
    ranges.iter().map(|range| json!({ "from": range.from, "to": range.to, "lost": range.lost })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(how: How) -> pb::Exit {
        pb::Exit { how: Some(how), ..pb::Exit::default() }
    }

    #[test]
    fn every_end_has_its_own_words() {
        let cannot = pb::CouldNotStart { detail: "no directory /x".into(), ..pb::CouldNotStart::default() };
        let limit = pb::LimitHit { kind: pb::limit_hit::Kind::Memory.into(), allowed: 10, used: 12 };
        let rows: [(pb::Exit, &str, Option<&str>, &str, Option<i32>, Option<i32>); 14] = [
            (exit(How::Code(0)), "completed", None, "exit", Some(0), None),
            (exit(How::Code(7)), "completed", None, "exit", Some(7), None),
            (exit(How::Code(126)), "failed", Some("shell-not-executable"), "exit", Some(126), None),
            (exit(How::Code(127)), "failed", Some("shell-command-not-found"), "exit", Some(127), None),
            (exit(How::Signal(9)), "failed", Some("signal"), "signal", None, Some(9)),
            (exit(How::Signal(15)), "failed", Some("signal"), "signal", None, Some(15)),
            (exit(How::CouldNotStart(cannot)), "failed", Some("could-not-start"), "exit", None, None),
            (exit(How::Lost(pb::Lost {})), "failed", Some("lost"), "exit", None, None),
            (exit(How::Unreaped(pb::Unreaped {})), "failed", Some("runtime-error"), "exit", None, None),
            (pb::Exit::default(), "failed", Some("lost"), "exit", None, None),
            (
                pb::Exit { timed_out: true, ..exit(How::Signal(15)) },
                "failed",
                Some("overall-timeout"),
                "overall-timeout",
                None,
                Some(15),
            ),
            (
                pb::Exit { cancelled: true, ..exit(How::Signal(15)) },
                "failed",
                Some("aborted"),
                "manual-cancel",
                None,
                Some(15),
            ),
            (
                pb::Exit { limit: Some(limit), ..exit(How::Signal(9)) },
                "failed",
                Some("resource-limit"),
                "resource-limit",
                None,
                Some(9),
            ),
            (
                pb::Exit { note: "disk full".into(), ..exit(How::Signal(9)) },
                "failed",
                Some("runtime-error"),
                "exit",
                None,
                Some(9),
            ),
        ];
        for (exit, status, failure, reason, code, signal) in rows {
            let ended = Ended::of(&exit, Some(5.0));
            assert_eq!(
                (ended.status, ended.failure, ended.reason, ended.code, ended.signal),
                (status, failure, reason, code, signal),
                "{exit:?}"
            );
            assert_eq!(ended.line.is_empty(), code == Some(0), "{exit:?}");
        }
        let late = Ended::of(&pb::Exit { timed_out: true, ..exit(How::Code(0)) }, Some(1.5));
        assert!(
            late.line.starts_with("(Command timed out after 1.5 seconds. It may have done part"),
            "{}",
            late.line
        );
    }
}
