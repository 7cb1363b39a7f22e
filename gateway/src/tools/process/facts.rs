//! What results say about a session, and the list of sessions (runtime.md §2.2).

use std::sync::Arc;
use std::time::Duration;

use fault::Fault;
use proto::v1::{self as pb, reply::Answer as Reply, request::Command};
use serde_json::{Map, Value, json};

use super::super::ended::{self, Ended};
use super::super::{Answer, Call, on_disconnect};
use crate::gateway::Gateway;

/// Silence after which a session that takes input counts as waiting for it (§2.7), in milliseconds.
const INPUT_WAIT_MS: u64 = 15_000;
/// Characters of a tail in a list.
const TAIL_CHARS: u32 = 2000;
/// Answer of a node.
const ANSWER: Duration = Duration::from_secs(10);

/// `running`, `completed`, `failed`, or `killed` for one that was stopped on request (§2.2).
pub(super) fn status(state: &pb::SessionState) -> &'static str {
    match state.session.as_ref().and_then(|session| session.exit.as_ref()) {
        None => "running",
        Some(exit) if exit.cancelled && !exit.timed_out => "killed",
        Some(exit) => Ended::of(exit, None).status,
    }
}

/// Whether it seems to wait for input.
pub(super) fn waits_for_input(state: &pb::SessionState) -> bool {
    let writable = state.session.as_ref().is_some_and(|session| session.stdin_open && session.exit.is_none());
    writable && (state.reads_input == Some(true) || state.idle_ms >= INPUT_WAIT_MS)
}

/// The fields of a session that runs.
pub(super) fn input(state: &pb::SessionState, details: &mut Map<String, Value>) {
    let session = state.session.clone().unwrap_or_default();
    details.insert("stdinWritable".into(), (session.stdin_open && session.exit.is_none()).into());
    details.insert("waitingForInput".into(), waits_for_input(state).into());
    details.insert("readsInput".into(), state.reads_input.into());
    details.insert("idleMs".into(), state.idle_ms.into());
    let last = (state.last_output_unix_ms > 0).then_some(state.last_output_unix_ms);
    details.insert("lastOutputAt".into(), last.into());
}

/// Who looks after it.
pub(super) fn lease(state: &pb::SessionState, details: &mut Map<String, Value>) {
    let lease = state.session.as_ref().and_then(|session| session.lease).unwrap_or_default();
    details.insert("onDisconnect".into(), on_disconnect(&lease).to_string().into());
    details.insert("held".into(), lease.held.into());
    if lease.ends_unix_ms > 0 {
        details.insert("endsAt".into(), lease.ends_unix_ms.into());
    }
}

/// A line about input for people and models; empty where there is nothing to say.
pub(super) fn hint(state: &pb::SessionState) -> String {
    if state.reads_input == Some(true) {
        "\n(The program reads its input: use write, submit, paste or send-keys.)".to_owned()
    } else if waits_for_input(state) {
        format!("\n(No output for {} s; it may wait for input.)", state.idle_ms / 1000)
    } else {
        String::new()
    }
}

/// All sessions of the agent, newest first.
pub(super) async fn list(gateway: &Arc<Gateway>, call: &Call) -> Result<Answer, Fault> {
    let links = gateway.registry.links();
    let request =
        pb::StatesRequest { agent_id: call.agent.clone(), session: String::new(), tail_chars: TAIL_CHARS };
    let asked = links.iter().map(|link| {
        let command = Command::States(request.clone());
        async move { (link, link.request(command, ANSWER).await) }
    });
    let mut states = Vec::new();
    let mut left_out = 0;
    let mut unreachable: Vec<String> = gateway
        .registry
        .nodes()
        .into_iter()
        .filter(|node| !node.connected)
        .map(|node| node.display_name)
        .collect();
    for (link, answer) in futures_util::future::join_all(asked).await {
        let name = gateway.registry.name(&link.node);
        match answer {
            Ok(Reply::States(reply)) => {
                left_out += reply.left_out;
                states.extend(reply.states.into_iter().map(|mut state| {
                    if let Some(session) = &mut state.session {
                        (session.node_id, session.node_name) = (link.node.to_hex(), name.clone());
                    }
                    state
                }));
            }
            _ => unreachable.push(name),
        }
    }
    states.sort_by_key(|state| {
        std::cmp::Reverse(state.session.as_ref().map_or(0, |session| session.started_unix_ms))
    });
    let mut lines: Vec<String> = states.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("No running or recent sessions.".to_owned());
    }
    if left_out > 0 {
        lines.push(format!("{left_out} older sessions are not shown."));
    }
    if !unreachable.is_empty() {
        lines.push(format!("Not connected, their sessions are not shown: {}", unreachable.join(", ")));
    }
    let sessions: Vec<Value> = states.iter().map(|state| Value::Object(entry(state))).collect();
    Ok(Answer::new(
        lines.join("\n"),
        json!({ "status": "completed", "sessions": sessions, "leftOut": left_out, "unreachable": unreachable }),
    ))
}

/// `<id> <status padded to 9> <runtime>[ [overall-timeout]][ [input-wait]] :: <label>`
fn line(state: &pb::SessionState) -> String {
    let session = state.session.clone().unwrap_or_default();
    let mut marks = String::new();
    if session.exit.as_ref().is_some_and(|exit| exit.timed_out) {
        marks.push_str(" [overall-timeout]");
    }
    if waits_for_input(state) {
        marks.push_str(" [input-wait]");
    }
    let name = session::label::name(&session.label);
    let label = if name.is_empty() {
        session::label::middle(&session.label, 120)
    } else {
        session::label::middle(&name, 80)
    };
    format!("{} {:9} {}{marks} :: {label}", session.session_id, status(state), span(runtime_ms(state)))
}

fn entry(state: &pb::SessionState) -> Map<String, Value> {
    let session = state.session.clone().unwrap_or_default();
    let mut details = match &session.exit {
        Some(exit) => {
            let ended = Ended::of(exit, None);
            let mut details = ended::details(state, exit, &ended);
            details.insert("endedAt".into(), exit.ended_unix_ms.into());
            details
        }
        None => {
            let mut details = Map::new();
            details.insert("sessionId".into(), session.session_id.clone().into());
            details.insert("runId".into(), session.run_id.clone().into());
            details.insert("cwd".into(), session.workdir.clone().into());
            details.insert("nodeId".into(), session.node_id.clone().into());
            details.insert("node".into(), session.node_name.clone().into());
            if session.pid > 0 {
                details.insert("pid".into(), session.pid.into());
            }
            details.insert("outputBytes".into(), session.end_offset.into());
            input(state, &mut details);
            lease(state, &mut details);
            details
        }
    };
    details.insert("status".into(), status(state).into());
    details.insert("startedAt".into(), session.started_unix_ms.into());
    details.insert("runtimeMs".into(), runtime_ms(state).into());
    details.insert("name".into(), session::label::name(&session.label).into());
    details.insert("command".into(), session.label.into());
    details.insert("tail".into(), state.tail.clone().into());
    details.insert("truncated".into(), state.tail_cut.into());
    details.insert("pty".into(), session.terminal.into());
    details
}

fn runtime_ms(state: &pb::SessionState) -> u64 {
    let Some(session) = &state.session else { return 0 };
    match &session.exit {
        Some(exit) => exit.duration_ms,
        None => u64::try_from(crate::clock::now_ms() - session.started_unix_ms).unwrap_or_default(),
    }
}

/// A time in a few characters: `850ms`, `12s`, `3m04s`, `2h05m`.
fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}s", ms / 1000),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list() {
        let session = pb::SessionInfo {
            session_id: "calm-reef".into(),
            label: "npm run build --if-present".into(),
            stdin_open: true,
            ..pb::SessionInfo::default()
        };
        let exit = pb::Exit {
            how: Some(pb::exit::How::Signal(15)),
            timed_out: true,
            duration_ms: 184_000,
            ..pb::Exit::default()
        };
        let over = pb::SessionState {
            session: Some(pb::SessionInfo { exit: Some(exit), ..session.clone() }),
            ..pb::SessionState::default()
        };
        assert_eq!(line(&over), "calm-reef failed    3m04s [overall-timeout] :: npm run");
        let waits = pb::SessionState {
            session: Some(pb::SessionInfo { started_unix_ms: crate::clock::now_ms() + 1000, ..session }),
            reads_input: Some(true),
            ..pb::SessionState::default()
        };
        assert_eq!(line(&waits), "calm-reef running   0ms [input-wait] :: npm run");
        assert_eq!(
            (span(999), span(59_999), span(7_500_000)),
            ("999ms".into(), "59s".into(), "2h05m".into())
        );
    }
}
