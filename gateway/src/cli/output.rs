//! Shared pieces of what commands print.

use std::io::Write as _;

use crate::tools::on_disconnect;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use proto::v1 as pb;

/// Exit code of a process whose reader went away: 128 + SIGPIPE.
pub(super) const BROKEN_PIPE: u8 = 141;

/// See `say_line!`.
pub(super) fn print_line(text: std::fmt::Arguments<'_>) {
    // Formatted first: a long document would be written piece by piece, a call to the system for each line.
    let line = format!("{text}\n");
    let mut out = std::io::stdout().lock();
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(i32::from(BROKEN_PIPE));
    }
}

/// A table with aligned columns; empty cells stay empty.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = header.iter().map(|h| h.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        say_line!("{}", padded.join("  ").trim_end());
    };
    line(&header.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
    for row in rows {
        line(row);
    }
}

/// A JSON document on stdout.
pub(super) fn print_json(value: &Value) {
    say_line!("{value:#}");
}

/// A warning, on stderr. It may hold text from elsewhere.
pub(super) fn warn(text: &str) {
    eprintln!("gateway: warning: {}", safe(text));
}

/// A moment for people; empty for none.
pub(super) fn moment(unix_ms: i64) -> String {
    if unix_ms == 0 {
        return String::new();
    }
    OffsetDateTime::from_unix_timestamp(unix_ms / 1000)
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// Text from elsewhere made safe for a terminal: control characters and
/// characters that reorder or hide text are escaped.
pub(super) fn safe(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// The first characters of an id: enough to name it.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// `full`, `allowlist`, `deny`.
pub(super) fn security(value: i32) -> &'static str {
    match pb::Security::try_from(value) {
        Ok(pb::Security::Deny) => "deny",
        Ok(pb::Security::Allowlist) => "allowlist",
        Ok(pb::Security::Full) => "full",
        Ok(pb::Security::Unspecified) | Err(_) => "",
    }
}

/// `off`, `on-miss`, `always`.
pub(super) fn ask(value: i32) -> &'static str {
    match pb::Ask::try_from(value) {
        Ok(pb::Ask::Off) => "off",
        Ok(pb::Ask::OnMiss) => "on-miss",
        Ok(pb::Ask::Always) => "always",
        Ok(pb::Ask::Unspecified) | Err(_) => "",
    }
}

/// An end as JSON: the fields of a tool result (`runtime.md` §1.10).
pub(super) fn exit_json(exit: &pb::Exit) -> Value {
    use pb::exit::How;
    let (code, signal, detail) = match &exit.how {
        Some(How::Code(code)) => (Some(*code), None, None),
        Some(How::Signal(signal)) => (None, Some(*signal), None),
        Some(How::CouldNotStart(failure)) => (None, None, Some(failure.detail.clone())),
        Some(How::Lost(_)) => (None, None, Some("the session's holder died, nobody saw the end".to_owned())),
        Some(How::Unreaped(_)) => (None, None, Some("still there after SIGKILL".to_owned())),
        None => (None, None, None),
    };
    json!({
        "status": if exit_reason(exit) == "exit" { "completed" } else { "failed" },
        "exitCode": code,
        "exitSignal": signal,
        "exitReason": exit_reason(exit),
        "timedOut": exit.timed_out,
        "durationMs": exit.duration_ms,
        "finalOffset": exit.final_offset,
        "leftoversKilled": exit.leftovers_killed,
        "detail": detail.or_else(|| (!exit.note.is_empty()).then(|| exit.note.clone())),
    })
}

/// Why it ended, as one word.
pub(super) fn exit_reason(exit: &pb::Exit) -> &'static str {
    use pb::exit::How;
    match &exit.how {
        _ if exit.timed_out => "overall-timeout",
        Some(How::CouldNotStart(_)) => "could-not-start",
        Some(How::Lost(_)) | None => "lost",
        _ if !exit.note.is_empty() => "runtime-error",
        _ if exit.cancelled => "manual-cancel",
        Some(How::Signal(_)) => "signal",
        Some(How::Unreaped(_)) => "unreaped",
        Some(How::Code(_)) => "exit",
    }
}

/// A session as JSON.
pub(super) fn session_json(session: &pb::SessionInfo) -> Value {
    json!({
        "sessionId": session.session_id,
        "runId": session.run_id,
        "nodeId": session.node_id,
        "nodeName": session.node_name,
        "status": if session.exit.is_none() { "running" } else { "ended" },
        "command": session.label,
        "startedAtMs": session.started_unix_ms,
        "pid": (session.pid != 0).then_some(session.pid),
        "terminal": session.terminal,
        "stdinWritable": session.stdin_open,
        "endOffset": session.end_offset,
        "exit": session.exit.as_ref().map(exit_json),
        "workdir": session.workdir,
        "agentId": session.agent_id,
        "sessionKey": session.session_key,
        "lease": session.lease.as_ref().map(lease_json),
        "limits": session.limits.as_ref().map(|limits| json!({
            "memoryBytes": limits.memory_bytes, "pids": limits.pids, "cpuMs": limits.cpu_ms,
            "fileBytes": limits.file_bytes,
        })),
    })
}

/// What becomes of a session when nobody looks after it.
fn lease_json(lease: &pb::Lease) -> Value {
    json!({
        "onDisconnect": on_disconnect(lease).to_string(), "held": lease.held,
        "endsAtMs": (lease.ends_unix_ms != 0).then_some(lease.ends_unix_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_nodes_cannot_play_with_the_terminal() {
        assert_eq!(safe("a\u{1b}[31mb\u{202e}c"), "a\\u{1b}[31mb\\u{202e}c");
        assert_eq!(safe("ünïcode ok"), "ünïcode ok");
    }
}
