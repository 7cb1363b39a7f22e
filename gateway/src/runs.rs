//! The commands that this gateway had started and whose end it has not heard of: what is told and written down when it
//! does (runtime spec §5.5, policy spec §10.3).
//!
//! A node's word about an end counts only for a run that this gateway started on that node. What was started by an
//! earlier gateway process is not known here; its node has the record.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use identity::Fingerprint;
use parking_lot::Mutex;
use proto::v1 as pb;

use crate::gateway::Gateway;
use crate::start::Started;

/// Runs whose end is waited for. More than nodes run at one time; the end of the oldest is then not told.
const OPEN_MAX: usize = 16_384;
/// Ends that came before their start was known. The two cross on the link at most for a moment.
const EARLY_MAX: usize = 256;
/// Output in a notice, in characters (§5.5).
const TAIL_CHARS: usize = 180;
/// Command in a notice, in characters.
const COMMAND_SHOWN: usize = 120;
/// From the start of an approved command to the notice that it still runs, unless
/// `tools.exec.approvalRunningNoticeMs` says otherwise.
const RUNNING_NOTICE: Duration = Duration::from_secs(10);

type Key = (Fingerprint, String);

/// A run whose end is waited for.
#[derive(Debug, Clone)]
struct Run {
    node_name: String,
    command: String,
    /// The fields that its notices share; `approval_id` is empty where nobody had to be asked.
    notice: pb::Notice,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Key, Run>,
    /// Oldest first.
    order: VecDeque<Key>,
    early: VecDeque<(Key, pb::SessionEnded)>,
}

/// The runs of one gateway process.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<Table>);

impl Runs {
    fn begin(&self, key: Key, run: Run) -> Option<pb::SessionEnded> {
        let mut table = self.0.lock();
        if let Some(at) = table.early.iter().position(|(early, _)| *early == key) {
            return table.early.remove(at).map(|(_, ended)| ended);
        }
        if table.open.len() >= OPEN_MAX
            && let Some(oldest) = table.order.pop_front()
        {
            table.open.remove(&oldest);
        }
        if table.open.insert(key.clone(), run).is_none() {
            table.order.push_back(key);
        }
        None
    }

    fn is_open(&self, key: &Key) -> bool {
        self.0.lock().open.contains_key(key)
    }

    /// Takes the run that ended. One that is not known may become so in a moment.
    fn end(&self, key: Key, ended: &pb::SessionEnded) -> Option<Run> {
        let mut table = self.0.lock();
        let Some(run) = table.open.remove(&key) else {
            if table.early.len() >= EARLY_MAX {
                table.early.pop_front();
            }
            table.early.push_back((key, ended.clone()));
            return None;
        };
        if let Some(at) = table.order.iter().position(|open| *open == key) {
            table.order.remove(at);
        }
        Some(run)
    }
}

/// A command has a session: it is written down, and its end will be told.
pub(crate) fn started(gateway: &Arc<Gateway>, started: &Started, request: &pb::RunRequest, by: &str) {
    let node = started.link.node;
    let approval_id = request.permit.as_ref().map(|permit| permit.approval_id.clone()).unwrap_or_default();
    let run = Run {
        node_name: gateway.registry.name(&node),
        command: shown_command(&started.session.label, COMMAND_SHOWN),
        notice: pb::Notice {
            approval_id,
            run_id: request.run_id.clone(),
            node_id: node.to_hex(),
            session_id: started.session.session_id.clone(),
            agent_id: request.agent_id.clone(),
            session_key: request.session_key.clone(),
            ..pb::Notice::default()
        },
    };
    gateway.audit("run.started", || {
        serde_json::json!({
            "node": run.node_name, "nodeId": run.notice.node_id, "sessionId": run.notice.session_id, "runId": run.notice.run_id,
            "command": started.session.label, "agentId": run.notice.agent_id, "sessionKey": run.notice.session_key,
            "approvalId": run.notice.approval_id, "by": by,
        })
    });
    let key = (node, started.session.session_id.clone());
    let approved = !run.notice.approval_id.is_empty();
    if let Some(early) = gateway.runs.begin(key.clone(), run.clone()) {
        tell_end(gateway, &run, early);
    } else if approved {
        tell_if_it_lasts(gateway, key, run);
    }
}

/// A command did not start: it is written down.
pub(crate) fn denied(gateway: &Gateway, request: &pb::RunRequest, fault: &fault::Fault, by: &str) {
    gateway.audit("run.denied", || {
        serde_json::json!({
            "runId": request.run_id, "agentId": request.agent_id, "sessionKey": request.session_key,
            "code": fault.code.as_str(), "message": fault.message, "by": by,
        })
    });
}

/// A node says that a session ended.
pub(crate) fn ended(gateway: &Arc<Gateway>, node: Fingerprint, ended: pb::SessionEnded) {
    let Some(session) = &ended.session else { return };
    if session.exit.is_none() {
        return;
    }
    gateway.tasks.ended(gateway, &node.to_hex(), &ended);
    match gateway.runs.end((node, session.session_id.clone()), &ended) {
        Some(run) => tell_end(gateway, &run, ended),
        None => tracing::debug!(node = %node, session = session.session_id, "unmatched_exec_event"),
    }
}

fn tell_end(gateway: &Gateway, run: &Run, ended: pb::SessionEnded) {
    let exit = ended.session.and_then(|session| session.exit).unwrap_or_default();
    gateway.audit("run.ended", || {
        serde_json::json!({
            "node": run.node_name, "sessionId": run.notice.session_id, "runId": run.notice.run_id,
            "approvalId": run.notice.approval_id, "end": how(&exit), "durationMs": exit.duration_ms,
        })
    });
    if run.notice.approval_id.is_empty() {
        return;
    }
    let detail = match &exit.how {
        Some(pb::exit::How::CouldNotStart(failure)) => failure.detail.clone(),
        _ => last_characters(&String::from_utf8_lossy(&ended.tail), TAIL_CHARS),
    };
    let line = if detail.is_empty() { String::new() } else { format!("\n{detail}") };
    gateway.notices.add(pb::Notice {
        kind: pb::notice::Kind::ExecFinished.into(),
        text: format!(
            "Exec finished (node={} id={}, {}){line}",
            run.node_name,
            run.notice.approval_id,
            how(&exit)
        ),
        exit: Some(exit),
        ..run.notice.clone()
    });
}

fn tell_if_it_lasts(gateway: &Arc<Gateway>, key: Key, run: Run) {
    let agent = (!run.notice.agent_id.is_empty()).then_some(run.notice.agent_id.as_str());
    let configured =
        gateway.config.load().ok().and_then(|config| config.exec(agent).approval_running_notice_ms);
    let after = configured.map_or(RUNNING_NOTICE, Duration::from_millis);
    // 0 switches it off.
    if after.is_zero() {
        return;
    }
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            () = gateway.stopping.cancelled() => return,
        }
        if gateway.runs.is_open(&key) {
            gateway.notices.add(pb::Notice {
                kind: pb::notice::Kind::ExecRunning.into(),
                text: format!(
                    "Exec running (node={} id={}, session={}, >{}s): {}",
                    run.node_name,
                    run.notice.approval_id,
                    run.notice.session_id,
                    after.as_secs_f64(),
                    run.command
                ),
                ..run.notice
            });
        }
    });
}

/// An end in a few words: `code 7`, `signal 9`, `timeout`.
fn how(exit: &pb::Exit) -> String {
    match &exit.how {
        _ if exit.timed_out => "timeout".to_owned(),
        Some(pb::exit::How::Code(code)) => format!("code {code}"),
        Some(pb::exit::How::Signal(signal)) => format!("signal {signal}"),
        Some(pb::exit::How::CouldNotStart(_)) => "could not start".to_owned(),
        Some(pb::exit::How::Lost(_) | pb::exit::How::Unreaped(_)) | None => "end unknown".to_owned(),
    }
}

/// A command as one line of a text for people, cut.
pub(crate) fn shown_command(command: &str, max: usize) -> String {
    let one_line: String = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", one_line.get(..at).unwrap_or_default()),
        None => one_line,
    }
}

fn last_characters(text: &str, max: usize) -> String {
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(max);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> Run {
        let notice = pb::Notice { run_id: id.to_owned(), ..pb::Notice::default() };
        Run { node_name: String::new(), command: String::new(), notice }
    }

    fn ended(tail: &str) -> pb::SessionEnded {
        pb::SessionEnded { tail: tail.as_bytes().to_vec().into(), session: None }
    }

    #[test]
    fn an_end_counts_once_and_only_from_the_node_of_its_run() {
        let (runs, a, b) = (Runs::default(), Fingerprint([1; 32]), Fingerprint([2; 32]));
        let key = |node| (node, "s".to_owned());
        assert!(runs.begin(key(a), run("r")).is_none());
        assert!(runs.end(key(b), &ended("forged")).is_none());
        assert!(runs.is_open(&key(a)));
        assert_eq!(runs.end(key(a), &ended("")).map(|run| run.notice.run_id), Some("r".to_owned()));
        assert!(runs.end(key(a), &ended("again")).is_none());
        assert!(!runs.is_open(&key(a)));
    }

    #[test]
    fn an_end_may_come_before_its_start_and_both_are_bounded() {
        let (runs, node) = (Runs::default(), Fingerprint([1; 32]));
        assert!(runs.end((node, "s".to_owned()), &ended("early")).is_none());
        assert_eq!(runs.begin((node, "s".to_owned()), run("r")), Some(ended("early")));
        for number in 0..OPEN_MAX + 2 {
            runs.begin((node, number.to_string()), run("r"));
            runs.end((node, format!("x{number}")), &ended(""));
        }
        let table = runs.0.lock();
        assert_eq!((table.open.len(), table.order.len(), table.early.len()), (OPEN_MAX, OPEN_MAX, EARLY_MAX));
    }

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(shown_command("a\n  b\tc", 10), "a b c");
        assert_eq!(shown_command("äöüäöü", 3), "äöü…");
        assert_eq!(last_characters("äöüäöü\n", 2), "öü");
        assert_eq!(last_characters("", 2), "");
    }
}
