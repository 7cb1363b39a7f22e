//! `process`: everything that can be done with a session (runtime.md §2), and what goes beyond: `wait`, `screen`, `search`,
//! `signal`, `resize`, `lease`.
//!
//! Every action finds the session among the agent's own, on whatever node it is, and asks that node.

mod facts;
mod input;
mod reading;

use std::sync::Arc;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, request::Command};
use serde_json::{Map, Value, json};

use super::args::Args;
use super::locate::{self, locate};
use super::state::Found;
use super::{Answer, Call};
use crate::gateway::Gateway;

/// The actions of the tool, those of the seeds first.
pub(super) const ACTIONS: [&str; 16] = [
    "list",
    "poll",
    "log",
    "write",
    "send-keys",
    "submit",
    "paste",
    "kill",
    "clear",
    "remove",
    "wait",
    "screen",
    "search",
    "signal",
    "resize",
    "lease",
];

/// Does what a call asks for. A fault becomes an ordinary result.
pub(super) async fn process(gateway: &Arc<Gateway>, call: &Call, args: &Args<'_>) -> Result<Answer, Fault> {
    let action = args.text("action")?.unwrap_or_default().trim().to_owned();
    if !ACTIONS.contains(&action.as_str()) {
        return Err(invalid(format!("unknown action `{action}`; there are {}", ACTIONS.join(", "))));
    }
    if action == "list" {
        args.finish()?;
        return facts::list(gateway, call).await;
    }
    let reference = args.text("sessionId")?.map(str::trim).unwrap_or_default().to_owned();
    if reference.is_empty() {
        return Err(
            invalid(format!("`sessionId` is required for {action}")).hint("`list` shows the sessions")
        );
    }
    let found = locate(gateway, &call.agent, &reference).await?;
    let target = Target { gateway, call, found };
    match action.as_str() {
        "poll" => reading::poll(&target, args).await,
        "wait" => reading::wait(&target, args).await,
        "log" => reading::log(&target, args).await,
        "search" => reading::search(&target, args).await,
        "screen" => reading::screen(&target, args).await,
        "write" => input::write(&target, args).await,
        "send-keys" => input::send_keys(&target, args).await,
        "submit" => input::submit(&target, args).await,
        "paste" => input::paste(&target, args).await,
        "signal" => target.signal(args).await,
        "resize" => target.resize(args).await,
        "lease" => target.lease(args).await,
        "kill" => target.kill(args).await,
        "clear" => target.clear(args).await,
        _ => target.remove(args).await,
    }
}

/// The session of a call.
struct Target<'a> {
    gateway: &'a Arc<Gateway>,
    call: &'a Call,
    found: Found,
}

impl Target<'_> {
    fn id(&self) -> &str {
        &self.found.session
    }

    /// Where it stands.
    async fn state(&self) -> Result<pb::SessionState, Fault> {
        let look = pb::RawView { from_offset: 0, max_bytes: 1 };
        let view = pb::view_request::View::Raw(look);
        Ok(locate::view(self.gateway, &self.call.agent, &self.found, 1, view).await?.0)
    }

    async fn act(&self, command: Command) -> Result<(), Fault> {
        locate::act(self.gateway, &self.found, command).await
    }

    fn done(&self, state: &pb::SessionState, text: impl Into<String>) -> Answer {
        let session = state.session.clone().unwrap_or_default();
        Answer::new(
            text,
            json!({ "status": "completed", "sessionId": self.id(), "name": session::label::name(&session.label) }),
        )
    }

    /// Ends the whole tree: TERM, grace, KILL. Asked for, not waited for.
    async fn kill(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        let grace_ms = args.whole("graceMs")?.unwrap_or_default();
        args.finish()?;
        let state = self.state().await?;
        self.running(&state)?;
        let kill =
            pb::KillRequest { session_id: self.id().to_owned(), grace_ms, ..pb::KillRequest::default() };
        self.act(Command::Kill(kill)).await?;
        Ok(self.done(
            &state,
            format!("Termination of session {} was requested; poll it to see its end.", self.id()),
        ))
    }

    /// Sends one signal, without the rest of a kill.
    async fn signal(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        let wanted = match args.value("signal") {
            Some(Value::Number(number)) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
            Some(Value::String(name)) => signal_number(name),
            _ => None,
        };
        let Some(signal) = wanted.filter(|signal| (1..=64).contains(signal)) else {
            return Err(invalid(
                "`signal` is a name such as INT, TERM, HUP, USR1, WINCH, STOP, CONT, or a number from 1 to 64",
            ));
        };
        args.finish()?;
        let state = self.state().await?;
        self.running(&state)?;
        self.act(Command::Signal(pb::SignalRequest { session_id: self.id().to_owned(), signal })).await?;
        Ok(self.done(&state, format!("Sent signal {signal} to session {}.", self.id())))
    }

    async fn resize(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        let cell = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=1000).contains(n));
        let (columns, rows) = (cell(args.whole("cols")?), cell(args.whole("rows")?));
        let (Some(columns), Some(rows)) = (columns, rows) else {
            return Err(invalid("`cols` and `rows` are needed, each 1 to 1000"));
        };
        args.finish()?;
        let state = self.state().await?;
        self.running(&state)?;
        if state.terminal.is_none() {
            return Err(Fault::new(
                ErrorCode::NotATerminal,
                format!("session {} has no terminal", self.id()),
            )
            .hint("start it with `pty: true`"));
        }
        let size = Some(pb::WindowSize { columns, rows });
        self.act(Command::Resize(pb::ResizeRequest { session_id: self.id().to_owned(), size })).await?;
        Ok(self.done(&state, format!("Session {} has {columns} columns and {rows} rows now.", self.id())))
    }

    /// Shows what becomes of it when nobody looks after it, or says it anew.
    async fn lease(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        let policy = match args.text("onDisconnect")? {
            Some(text) => {
                Some(text.parse().map_err(|error: session::lease::BadPolicy| invalid(error.to_string()))?)
            }
            None => None,
        };
        args.finish()?;
        if let Some(policy) = policy {
            self.act(Command::Lease(pb::LeaseRequest {
                session_id: self.id().to_owned(),
                agent_id: self.call.agent.clone(),
                on_disconnect: Some(node_host::on_disconnect_to_wire(policy)),
            }))
            .await?;
        }
        let state = self.state().await?;
        let mut details = Map::new();
        details.insert("status".into(), facts::status(&state).into());
        details.insert("sessionId".into(), self.id().into());
        facts::lease(&state, &mut details);
        let policy = details.get("onDisconnect").and_then(Value::as_str).unwrap_or("keep").to_owned();
        Ok(Answer::new(format!("Session {}: onDisconnect {policy}.", self.id()), Value::Object(details)))
    }

    /// Takes an ended session out.
    async fn clear(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        args.finish()?;
        let state = self.state().await?;
        self.forget().await?;
        Ok(self.done(&state, format!("Session {} was cleared.", self.id())))
    }

    /// Takes a session out, whether it runs or not.
    async fn remove(&self, args: &Args<'_>) -> Result<Answer, Fault> {
        args.finish()?;
        let state = self.state().await?;
        if state.session.as_ref().is_some_and(|session| session.exit.is_some()) {
            self.forget().await?;
            return Ok(self.done(&state, format!("Session {} was removed.", self.id())));
        }
        let kill = pb::KillRequest { session_id: self.id().to_owned(), ..pb::KillRequest::default() };
        self.act(Command::Kill(kill)).await?;
        // It goes when its end is known; its end is told to nobody.
        self.gateway.tasks.end_was_read(&self.found.node.to_hex(), self.id());
        let (gateway, agent, found) = (Arc::clone(self.gateway), self.call.agent.clone(), self.found.clone());
        tokio::spawn(async move {
            let wait = pb::ReadView {
                from_offset: 0,
                to_offset: 0,
                wait: Some(pb::Wait { timeout_ms: 30_000, ..pb::Wait::default() }),
            };
            let ended = locate::read(&gateway, &agent, &found, 1, wait).await;
            if ended.is_ok_and(|(state, _)| state.session.is_some_and(|session| session.exit.is_some())) {
                let forget = pb::ForgetRequest { session_id: found.session.clone(), agent_id: agent.clone() };
                // Kept for half an hour otherwise, as all that ended.
                let _ = locate::act(&gateway, &found, Command::Forget(forget)).await;
                gateway.tools.forget(&agent, &found.session);
            }
        });
        Ok(self.done(&state, format!("Session {} is being ended and goes when it is over.", self.id())))
    }

    async fn forget(&self) -> Result<(), Fault> {
        let forget =
            pb::ForgetRequest { session_id: self.id().to_owned(), agent_id: self.call.agent.clone() };
        self.act(Command::Forget(forget)).await?;
        self.gateway.tasks.end_was_read(&self.found.node.to_hex(), self.id());
        self.gateway.tools.forget(&self.call.agent, self.id());
        Ok(())
    }

    /// Refuses what needs a command that runs.
    fn running(&self, state: &pb::SessionState) -> Result<(), Fault> {
        match state.session.as_ref().and_then(|session| session.exit.as_ref()) {
            None => Ok(()),
            Some(exit) => {
                let ended = super::ended::Ended::of(exit, None);
                let how = match (ended.code, ended.signal) {
                    (Some(code), _) => format!(" with code {code}"),
                    (None, Some(signal)) => format!(" by signal {signal}"),
                    (None, None) => String::new(),
                };
                Err(Fault::new(
                    ErrorCode::SessionEnded,
                    format!("session {} has ended already{how}", self.id()),
                )
                .hint("`poll` and `log` show what it wrote"))
            }
        }
    }
}

/// The number of a signal's name, with or without `SIG`.
fn signal_number(name: &str) -> Option<i32> {
    let upper = name.trim().to_uppercase();
    if let Ok(number) = upper.parse() {
        return Some(number);
    }
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    use rustix::process::Signal;
    let signal = match bare {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "ABRT" => Signal::ABORT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "PIPE" => Signal::PIPE,
        "ALRM" => Signal::ALARM,
        "TERM" => Signal::TERM,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TSTP" => Signal::TSTP,
        "TTIN" => Signal::TTIN,
        "TTOU" => Signal::TTOU,
        "WINCH" => Signal::WINCH,
        _ => return None,
    };
    Some(signal.as_raw())
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, what)
}
