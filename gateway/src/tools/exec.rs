//! `exec`: starts a command and waits for it for a while (runtime.md §1.3, §1.4, §1.10).

mod call;

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, request::Command, session_event::Event};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::args::Args;
use super::ended::{self, Ended, omitted};
use super::state::Found;
use super::{Answer, Call, locate};
use crate::asking::{Begun, Caller};
use crate::follow::OnClose;
use crate::gateway::Gateway;
use crate::kills;
use crate::start::{self, Manner, Started};
use crate::tasks::NotifyOnExit;
use call::ExecCall;
pub(crate) use call::parse_size;

/// Characters of a text for a model (runtime.md §1.11).
pub(super) const TEXT_CHARS: usize = 16_000;
/// Characters of `aggregated`.
const AGGREGATED_CHARS: usize = 200_000;
/// Characters of a tail.
const TAIL_CHARS: usize = 2000;
/// A node waits 30 s at most; a lease of a minute is renewed with each question.
const STEP: Duration = Duration::from_secs(20);
/// Time between two updates.
const UPDATE_EVERY: Duration = Duration::from_millis(250);
/// Events of a start that may wait.
const EVENTS: usize = 8;
/// How often, and with what pause, a node is asked for the process of a command that it has just begun.
const PID_TRIES: u32 = 50;
const PID_PAUSE: Duration = Duration::from_millis(5);

/// Runs a command as a call asks for it.
pub(super) async fn exec(gateway: &Arc<Gateway>, call: &Call, args: &Args<'_>) -> Result<Answer, Fault> {
    let config = gateway.config.load()?.exec(Some(&call.agent));
    let wanted = ExecCall::read(args, &config, call)?;
    let manner = Manner {
        on_close: if wanted.ends_with_call() { OnClose::Kill } else { OnClose::Keep },
        follow: false,
    };
    let begun_at = Instant::now();
    let started = match begin(gateway, call, wanted.request(call), manner).await? {
        Outcome::Started(started) => *started,
        Outcome::Pending(approval) => return Ok(pending(&approval)),
    };
    let found = Found { node: started.link.node, session: started.session.session_id.clone() };
    gateway.tools.note(&call.agent, &found);
    let session = started.session.session_id.clone();
    let run = Run { gateway, call, found, started, wanted };
    let answered = if run.wanted.background {
        match run.begun().await {
            Ok(state) => run.to_background(&state, "").await,
            Err(fault) => Err(fault),
        }
    } else {
        run.wait(begun_at).await
    };
    // It has started: whatever is not known now, it is not safe to run it again.
    answered.map_err(|fault| match fault.code {
        ErrorCode::Cancelled => fault,
        _ => Fault::new(
            ErrorCode::OutcomeUnknown,
            format!("session {session} was started, then: {}", fault.message),
        )
        .hint(format!("ask for it when its node is back: process poll {session}")),
    })
}

enum Outcome {
    Started(Box<Started>),
    Pending(Box<pb::Approval>),
}

/// Has it started. The caller hears of approvals; one that leaves takes its question along.
async fn begin(
    gateway: &Arc<Gateway>,
    call: &Call,
    request: pb::ExecRequest,
    manner: Manner,
) -> Result<Outcome, Fault> {
    let (events, mut news) = mpsc::channel(EVENTS);
    let caller = Caller { events, wait: call.wait, approval_id: String::new(), name: call.by.clone() };
    let starting = start::start(gateway, request, manner, caller);
    tokio::pin!(starting);
    let mut asked = None;
    loop {
        tokio::select! {
            biased;
            event = news.recv(), if !news.is_closed() => {
                let event = match event.and_then(Result::ok).and_then(|event| event.event) {
                    Some(Event::ApprovalPending(approval)) => {
                        asked = Some(Box::new(approval.clone()));
                        pb::tool_event::Event::ApprovalPending(approval)
                    }
                    Some(Event::ApprovalClosed(approval)) => pb::tool_event::Event::ApprovalClosed(approval),
                    _ => continue,
                };
                let _ = call.events.send(Ok(pb::ToolEvent { event: Some(event) })).await;
            }
            begun = &mut starting => match begun? {
                Begun::Started(started) => return Ok(Outcome::Started(started)),
                Begun::Pending => {
                    // Told before the start returned.
                    while let Ok(Ok(pb::SessionEvent { event: Some(Event::ApprovalPending(approval)) })) = news.try_recv() {
                        asked = Some(Box::new(approval));
                    }
                    return asked.map(Outcome::Pending).ok_or_else(locate::unexpected);
                }
            },
            // Closes the question; a start under way is waited for, so that nothing runs without an owner.
            () = call.events.closed(), if !news.is_closed() => news.close(),
        }
    }
}

/// A command under way, and its caller.
struct Run<'a> {
    gateway: &'a Arc<Gateway>,
    call: &'a Call,
    found: Found,
    started: Started,
    wanted: ExecCall,
}

impl Run<'_> {
    /// Until the command ends, its window passes, or the caller is gone.
    async fn wait(self, begun_at: Instant) -> Result<Answer, Fault> {
        let until = begun_at + self.wanted.window;
        let mut seen = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let looked = tokio::select! {
                looked = self.look(left.min(STEP), seen) => looked?,
                () = self.call.events.closed() => {
                    if !self.wanted.ends_with_call() {
                        return Err(Fault::new(ErrorCode::Cancelled, "the call was cancelled; its command goes on"));
                    }
                    tracing::info!(session = self.found.session, "caller is gone, killing its command");
                    kills::kill(self.gateway, self.found.node, self.found.session.clone());
                    return Err(Fault::new(ErrorCode::Cancelled, "the call was cancelled, and its command is ended"));
                }
            };
            let (state, text) = looked;
            if let Some(exit) = state.session.as_ref().and_then(|session| session.exit.clone()) {
                return self.ended(&state, &exit, text).await;
            }
            if until <= Instant::now() {
                // A short window may pass before the process is there.
                let state = if pid(&state) == 0 { self.begun().await? } else { state };
                return self.to_background(&state, last(&text.text, TAIL_CHARS)).await;
            }
            if self.call.updates && text.next_offset > seen {
                seen = text.next_offset;
                self.update(&state, last(&text.text, TAIL_CHARS)).await;
            }
        }
    }

    /// Where it stands once its process is there.
    async fn begun(&self) -> Result<pb::SessionState, Fault> {
        let mut tries = 0;
        loop {
            let now = pb::ReadView { from_offset: 0, to_offset: 0, wait: None };
            let (state, _) = locate::read(self.gateway, &self.call.agent, &self.found, 1, now).await?;
            let over = state.session.as_ref().is_some_and(|session| session.exit.is_some());
            tries += 1;
            if pid(&state) > 0 || over || tries >= PID_TRIES {
                return Ok(state);
            }
            tokio::time::sleep(PID_PAUSE).await;
        }
    }

    /// Waits a little: for the end, or for something to tell.
    async fn look(&self, most: Duration, seen: u64) -> Result<(pb::SessionState, pb::ReadText), Fault> {
        let read = |timeout: Duration, bytes| pb::ReadView {
            from_offset: 0,
            to_offset: 0,
            wait: Some(pb::Wait {
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                bytes,
                ..pb::Wait::default()
            }),
        };
        let ask = |wanted| locate::read(self.gateway, &self.call.agent, &self.found, TEXT_CHARS, wanted);
        if !self.call.updates {
            return ask(read(most, 0)).await;
        }
        if seen > 0 {
            // Not more often than a reader can take.
            let looked = ask(read(most.min(UPDATE_EVERY), 0)).await?;
            if looked.0.session.as_ref().is_some_and(|session| session.exit.is_some()) {
                return Ok(looked);
            }
        }
        ask(read(most.saturating_sub(if seen > 0 { UPDATE_EVERY } else { Duration::ZERO }), seen + 1)).await
    }

    async fn update(&self, state: &pb::SessionState, tail: &str) {
        let result = Answer::new(tail, Value::Object(self.running(state, tail)));
        let event = pb::tool_event::Event::Update(result.into());
        // A caller that is gone is noticed in the next round.
        let _ = self.call.events.send(Ok(pb::ToolEvent { event: Some(event) })).await;
    }

    async fn ended(
        self,
        state: &pb::SessionState,
        exit: &pb::Exit,
        text: pb::ReadText,
    ) -> Result<Answer, Fault> {
        let ended = Ended::of(exit, self.wanted.timeout_s);
        let mut details = ended::details(state, exit, &ended);
        let mut shown = text.clone();
        if text.chars > TEXT_CHARS as u64 {
            let whole = pb::ReadView { from_offset: 0, to_offset: 0, wait: None };
            shown =
                locate::read(self.gateway, &self.call.agent, &self.found, AGGREGATED_CHARS, whole).await?.1;
        }
        details.insert("aggregated".into(), shown.text.trim().into());
        details.insert("omitted".into(), omitted(&shown.omitted));
        self.common(&mut details);
        let mut lines = self.head();
        let body = text.text.trim();
        lines.push(if body.is_empty() { "(no output)".to_owned() } else { body.to_owned() });
        if !ended.line.is_empty() {
            lines.push(ended.line);
        }
        Ok(Answer::new(lines.join("\n"), Value::Object(details)))
    }

    /// The command goes on without its caller: it is entered in the ledger, and its end will be told.
    async fn to_background(&self, state: &pb::SessionState, tail: &str) -> Result<Answer, Fault> {
        if !self.wanted.background {
            let lease = pb::LeaseRequest {
                session_id: self.found.session.clone(),
                agent_id: self.call.agent.clone(),
                on_disconnect: Some(self.wanted.on_background()),
            };
            locate::act(self.gateway, &self.found, Command::Lease(lease)).await?;
        }
        let session = &self.started.session;
        let task = pb::Task {
            task_id: session.run_id.clone(),
            label: session::label::redacted(&self.wanted.command, 120),
            status: pb::task::Status::Running.into(),
            node_id: self.found.node.to_hex(),
            node_name: self.gateway.registry.name(&self.found.node),
            session_id: self.found.session.clone(),
            agent_id: self.call.agent.clone(),
            session_key: self.call.session_key.clone(),
            started_unix_ms: session.started_unix_ms,
            workdir: self.started.workdir.clone(),
            ..pb::Task::default()
        };
        let notify = NotifyOnExit {
            on_exit: self.wanted.notify_on_exit,
            empty_success: self.wanted.notify_empty_success,
        };
        self.gateway.tasks.begin(self.gateway, task, notify)?;
        let mut lines = self.head();
        lines.push(format!(
            "Command still running (session {}, pid {}). Use process (list/poll/log/wait/write/send-keys/submit/paste/screen/kill) for follow-up.",
            self.found.session,
            match pid(state) {
                0 => "n/a".to_owned(),
                pid => pid.to_string(),
            }
        ));
        if !tail.is_empty() {
            lines.push(tail.to_owned());
        }
        Ok(Answer::new(lines.join("\n"), Value::Object(self.running(state, tail))))
    }

    fn running(&self, state: &pb::SessionState, tail: &str) -> Map<String, Value> {
        let session = &self.started.session;
        let mut details = Map::new();
        details.insert("status".into(), "running".into());
        details.insert("sessionId".into(), session.session_id.clone().into());
        details.insert("runId".into(), session.run_id.clone().into());
        if pid(state) > 0 {
            details.insert("pid".into(), pid(state).into());
        }
        details.insert("startedAt".into(), session.started_unix_ms.into());
        let deadline = self.wanted.timeout_s.map(|s| session.started_unix_ms + (s * 1000.0) as i64);
        details.insert("deadlineAt".into(), deadline.into());
        details.insert("cwd".into(), self.started.workdir.clone().into());
        details.insert("nodeId".into(), self.found.node.to_hex().into());
        details.insert("node".into(), self.gateway.registry.name(&self.found.node).into());
        details.insert("onDisconnect".into(), self.wanted.on_disconnect_text().into());
        details.insert("tail".into(), tail.into());
        details.insert("followUp".into(), format!("process poll {}", session.session_id).into());
        self.common(&mut details);
        details
    }

    /// What results of a started command share.
    fn common(&self, details: &mut Map<String, Value>) {
        let started = &self.started;
        if !started.approval_id.is_empty() {
            details.insert("approvalId".into(), started.approval_id.clone().into());
        }
        if !started.stored.is_empty() {
            details.insert("stored".into(), started.stored.clone().into());
        }
        if !started.left_out_env.is_empty() {
            details.insert("leftOutEnv".into(), started.left_out_env.clone().into());
        }
        if started.existing {
            details.insert("existing".into(), true.into());
        }
    }

    /// The lines above the output: where it ran, and what the caller should know.
    fn head(&self) -> Vec<String> {
        let name = self.gateway.registry.name(&self.found.node);
        let id = self.found.node.to_hex();
        let mut lines = vec![format!("Node: {name} ({})", id.get(..12).unwrap_or(&id))];
        let started = &self.started;
        if !started.left_out_env.is_empty() {
            lines.push(format!(
                "Warning: these variables do not reach the command: {}",
                started.left_out_env.join(", ")
            ));
        }
        if !started.not_stored.is_empty() {
            lines.push(format!("Warning: allow-always stored nothing: {}", started.not_stored));
        }
        lines.extend(self.wanted.warnings.iter().map(|warning| format!("Warning: {warning}")));
        lines
    }
}

/// A command that waits for a person (§1.10).
fn pending(approval: &pb::Approval) -> Answer {
    let plan = approval.plan.clone().unwrap_or_default();
    let slug = approval.approval_id.chars().take(8).collect::<String>();
    let mut decisions = vec!["allow-once", "deny"];
    if !plan.always.is_empty() {
        decisions.insert(1, "allow-always");
    }
    let text = format!(
        "Approval required (id {slug}, full {}).\nHost: node\nNode: {}\nCWD: {}\nCommand:\n```\n{}\n```\nReply with: /approve {slug} {}",
        approval.approval_id,
        approval.node_name,
        plan.workdir,
        plan.command_text,
        decisions.join("|")
    );
    Answer::new(
        text,
        json!({
            "status": "approval-pending", "approvalId": approval.approval_id, "approvalSlug": slug,
            "expiresAtMs": approval.expires_unix_ms, "allowedDecisions": decisions, "host": "node",
            "command": plan.command_text, "cwd": plan.workdir, "nodeId": approval.node_id,
        }),
    )
}

/// The process of a command; 0: not there yet.
fn pid(state: &pb::SessionState) -> u32 {
    state.session.as_ref().map_or(0, |session| session.pid)
}

/// The last characters of a text.
pub(super) fn last(text: &str, max: usize) -> &str {
    let at = text.char_indices().rev().nth(max.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.get(at..).unwrap_or_default()
}
