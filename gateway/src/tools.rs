//! The tools that agents call: JSON arguments in, a text for the model and details for programs out.
//!
//! `exec` starts a command and waits for a while; `process` is everything that can be done with a session afterwards. Both
//! ask the node that owns the session; nothing of a session is kept here but where it is (`locate`) and how far an agent
//! has read (the ledger's cursors).

mod args;
mod ended;
mod exec;
mod locate;
mod process;
mod state;
mod typing;

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, ExitClass, Fault};
use identity::Fingerprint;
use proto::v1::{self as pb, request::Command};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tonic::Status;

use crate::gateway::Gateway;
use args::Args;
pub(crate) use exec::parse_size;
pub(crate) use state::ToolState;

/// Longest arguments, in bytes.
const ARGUMENTS_MAX: usize = 3 * 1024 * 1024;
/// The tools there are.
const TOOLS: [&str; 2] = ["exec", "process"];

/// Sends to the caller.
pub(crate) type Events = mpsc::Sender<Result<pb::ToolEvent, Status>>;

/// A call: who makes it, and how it is answered.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The agent, by its credential.
    pub(crate) agent: String,
    /// Its name of its session; may be empty.
    pub(crate) session_key: String,
    /// For the log.
    pub(crate) by: String,
    /// The same call made again has the same one; may be empty.
    pub(crate) call_id: String,
    /// What happens where a person must be asked.
    pub(crate) wait: pb::ApprovalWait,
    /// The node for calls that name none; may be empty.
    pub(crate) node: String,
    /// Tell what a command writes.
    pub(crate) updates: bool,
    /// The caller.
    pub(crate) events: Events,
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// For the model.
    pub(crate) text: String,
    /// For programs.
    pub(crate) details: Value,
    /// It was refused before anything ran.
    pub(crate) is_error: bool,
}

impl Answer {
    fn new(text: impl Into<String>, details: Value) -> Self {
        Self { text: text.into(), details, is_error: false }
    }
}

impl From<Answer> for pb::ToolResult {
    fn from(answer: Answer) -> Self {
        Self { text: answer.text, details_json: answer.details.to_string(), is_error: answer.is_error }
    }
}

/// What becomes of a session when nobody looks after it.
pub(crate) fn on_disconnect(lease: &pb::Lease) -> session::OnDisconnect {
    use pb::on_disconnect::Policy;
    match lease.on_disconnect.as_ref().and_then(|on| on.policy.as_ref()) {
        Some(Policy::Kill(_)) => session::OnDisconnect::Kill,
        Some(Policy::KeepForMs(ms)) => session::OnDisconnect::KeepFor(*ms),
        Some(Policy::Keep(_)) | None => session::OnDisconnect::Keep,
    }
}

/// Changes a session's lease, once its node is there: at most as long as the node itself waits for a lost link.
pub(crate) async fn ask_when_back(
    gateway: &Gateway,
    node: Fingerprint,
    session: &str,
    lease: pb::LeaseRequest,
) -> Result<(), Fault> {
    crate::start::comes_back(gateway, &node, session::lease::AWAY_GRACE).await?;
    let found = state::Found { node, session: session.to_owned() };
    locate::ask(gateway, &found, Command::Lease(lease), Duration::ZERO).await.map(|_| ())
}

/// Calls a tool and tells its caller what comes of it.
pub(crate) async fn serve(gateway: Arc<Gateway>, call: Call, tool: String, arguments: String) {
    let answer = dispatch(&gateway, &call, &tool, &arguments).await;
    let event = pb::tool_event::Event::Result(answer.into());
    // A caller that is gone needs no answer.
    let _ = call.events.send(Ok(pb::ToolEvent { event: Some(event) })).await;
}

async fn dispatch(gateway: &Arc<Gateway>, call: &Call, tool: &str, arguments: &str) -> Answer {
    let arguments = match read(arguments) {
        Ok(arguments) => arguments,
        Err(fault) => return refused(&fault),
    };
    match tool {
        "exec" => {
            exec::exec(gateway, call, &Args::new(&arguments)).await.unwrap_or_else(|fault| refused(&fault))
        }
        // Nothing of it throws (runtime.md §2.1).
        "process" => process::process(gateway, call, &Args::new(&arguments))
            .await
            .unwrap_or_else(|fault| failed(&fault)),
        other => refused(&unknown_tool(other)),
    }
}

fn unknown_tool(name: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("unknown tool `{name}`; there are {}", TOOLS.join(", ")))
}

fn read(arguments: &str) -> Result<Map<String, Value>, Fault> {
    let invalid = |what: String| Fault::new(ErrorCode::InvalidRequest, what);
    if arguments.len() > ARGUMENTS_MAX {
        return Err(invalid(format!("the arguments are longer than {ARGUMENTS_MAX} bytes"))
            .hint("send data as input (`process write`) or write it to a file first"));
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(invalid("the arguments are not a JSON object".to_owned())),
        Err(error) => Err(invalid(format!("the arguments are not JSON: {error}"))),
    }
}

/// A fault as JSON.
fn fault_json(fault: &Fault) -> Value {
    json!({ "code": fault.code.as_str(), "message": fault.message, "hint": fault.hint })
}

fn fault_text(fault: &Fault) -> String {
    match &fault.hint {
        Some(hint) => format!("{fault}\nhint: {hint}"),
        None => fault.to_string(),
    }
}

/// A call of `exec` that came to nothing: who said so decides whether it may be made again (runtime.md §6.10).
fn refused(fault: &Fault) -> Answer {
    let kind = match fault.exit_class() {
        _ if fault.code == ErrorCode::SessionLimit => Some("not-dispatched"),
        // Refused, but by no policy.
        _ if matches!(
            fault.code,
            ErrorCode::RunIdConflict
                | ErrorCode::ResourceExhausted
                | ErrorCode::PermissionDenied
                | ErrorCode::Unauthenticated
        ) =>
        {
            None
        }
        ExitClass::Refused => Some("policy-denied"),
        ExitClass::NotDispatched => Some("not-dispatched"),
        ExitClass::OutcomeUnknown => Some("outcome-unknown"),
        ExitClass::CouldNotStart | ExitClass::CommandNotFound => Some("could-not-start"),
        _ => None,
    };
    let mut details = json!({ "status": "failed", "exitCode": null, "error": fault_json(fault) });
    if let Some(kind) = kind {
        details["failureKind"] = kind.into();
    }
    let mut text = fault_text(fault);
    match kind {
        Some("not-dispatched") => {
            text.push_str("\nThis call was not sent to any node; it is safe to make it again.")
        }
        Some("outcome-unknown") => {
            text.push_str("\nThe command may have run, or may still run: check before you repeat it.");
        }
        Some("could-not-start") if !text.contains("not run") => text.push_str("\nThe command was not run."),
        _ => {}
    }
    Answer { text, details, is_error: true }
}

/// A failure of `process`: an ordinary result (runtime.md §2.1).
fn failed(fault: &Fault) -> Answer {
    Answer::new(
        fault_text(fault),
        json!({ "status": "failed", "error": fault.message, "code": fault.code.as_str(), "hint": fault.hint }),
    )
}
