//! `gateway tool`: calls a tool as a model does, with the JSON of its arguments, and prints the result as JSON.

use std::io::Read as _;
use std::time::{Duration, Instant};

use clap::Args;
use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, tool_event::Event};
use serde_json::{Map, Value, json};

use super::Common;
use super::output::print_json;
use crate::start::new_run_id;

/// How long a gateway that went away is waited for.
const COME_BACK: Duration = Duration::from_secs(60);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);
/// What a call looks like.
const EXAMPLE: &str = r#"for example: {"tool":"exec","command":"ls"}"#;
/// Longest arguments, in bytes.
const ARGUMENTS_MAX: u64 = 3 * 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct ToolArgs {
    /// The call, a JSON object: `{"tool":"exec","command":"ls"}`; `-`: read from standard input.
    #[arg(value_name = "JSON")]
    call: String,
    /// The agent that calls; that of the credential unless given.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The agent's session: the ends of its background commands go there.
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,
    /// The node for a call that names none [default: tools.exec.node].
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// The same call made again with the same id finds the first one's command instead of running another.
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
    /// Print what a command wrote while it runs, one JSON object a line.
    #[arg(long)]
    updates: bool,
    /// Print the text for the model instead of JSON.
    #[arg(long)]
    text: bool,
    /// Do not wait for a person: a command that needs a yes ends with `approval-pending`.
    #[arg(long)]
    no_wait: bool,
}

pub(super) async fn run(common: &Common, args: ToolArgs) -> Result<u8, Fault> {
    let arguments = arguments(&args.call)?;
    let tool = match arguments.get("tool") {
        Some(Value::String(tool)) => tool.clone(),
        _ => {
            return Err(Fault::new(ErrorCode::InvalidRequest, "the call names no tool")
                .hint(r#"say it: {"tool":"exec","command":"ls"}"#));
        }
    };
    let repeatable = tool == "exec" || is_reading(&arguments);
    let call = pb::ToolCall {
        tool,
        arguments_json: Value::Object(arguments).to_string(),
        agent_id: args.agent.clone().unwrap_or_default(),
        session_key: args.session_key.clone().unwrap_or_default(),
        call_id: match &args.call_id {
            Some(id) => id.clone(),
            None => new_run_id()?,
        },
        approval_wait: if args.no_wait { pb::ApprovalWait::Pending } else { pb::ApprovalWait::Unspecified }
            .into(),
        node: args.node.clone().unwrap_or_default(),
        updates: args.updates,
    };
    let until = Instant::now() + COME_BACK;
    // Once a try was lost, its command may run: that a later one was not sent proves nothing.
    let mut may_run = false;
    loop {
        let lost = match attempt(common, &args, call.clone()).await {
            Ok(result) if may_run && details(&result)["failureKind"] == "not-dispatched" => Fault::new(
                ErrorCode::OutcomeUnknown,
                format!("the call `{}` may have run: {}", call.call_id, result.text),
            )
            .hint("look for it by its id before you repeat it: `gateway sessions`"),
            Ok(result) => return Ok(show(&args, &result)),
            Err(Attempt::Lost(fault)) if !repeatable => return Err(fault),
            Err(Attempt::Lost(fault)) => fault,
            Err(Attempt::Refused(fault)) => return Err(fault),
        };
        // The same call id finds what the first try started.
        if Instant::now() >= until {
            return Err(lost);
        }
        may_run = true;
        tokio::time::sleep(PAUSE).await;
    }
}

enum Attempt {
    /// The gateway went away before it answered.
    Lost(Fault),
    Refused(Fault),
}

async fn attempt(common: &Common, args: &ToolArgs, call: pb::ToolCall) -> Result<pb::ToolResult, Attempt> {
    let away = |fault: Fault| match fault.code {
        ErrorCode::GatewayUnreachable | ErrorCode::Draining | ErrorCode::Disconnected => Attempt::Lost(fault),
        _ => Attempt::Refused(fault),
    };
    let mut tools = common.connect().await.map_err(away)?.tools();
    let failed = |status: tonic::Status| away(Fault::from_status(&status));
    let mut events = tools.call_tool(call).await.map_err(failed)?.into_inner();
    while let Some(event) = events.message().await.map_err(failed)? {
        match event.event {
            Some(Event::Result(result)) => return Ok(result),
            Some(Event::Update(update)) => {
                if args.updates && !args.text {
                    say_line!("{}", json!({ "update": details(&update) }));
                }
            }
            Some(Event::ApprovalPending(approval)) => {
                tracing::warn!(id = approval.approval_id, "a person is asked: `gateway approvals pending`");
            }
            Some(Event::ApprovalClosed(_)) | None => {}
        }
    }
    Err(Attempt::Lost(Fault::new(ErrorCode::GatewayUnreachable, "the gateway went away before it answered")))
}

fn show(args: &ToolArgs, result: &pb::ToolResult) -> u8 {
    let details = details(result);
    let status = match result.is_error {
        false => 0,
        true => details["error"]["code"]
            .as_str()
            .and_then(|code| ErrorCode::ALL.iter().find(|known| known.as_str() == code))
            .map_or(1, |code| code.exit_class().status()),
    };
    if args.text {
        say_line!("{}", result.text);
        return status;
    }
    let mut shown = json!({ "content": [{ "type": "text", "text": result.text }], "details": details });
    if result.is_error {
        shown["isError"] = true.into();
    }
    print_json(&shown);
    status
}

fn details(result: &pb::ToolResult) -> Value {
    serde_json::from_str(&result.details_json).unwrap_or(Value::Null)
}

/// Whether a call of `process` only looks: it may be made twice.
fn is_reading(arguments: &Map<String, Value>) -> bool {
    let action = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
    ["list", "log", "search", "screen", "poll", "wait"].contains(&action)
}

fn arguments(given: &str) -> Result<Map<String, Value>, Fault> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        let read = std::io::stdin().lock().take(ARGUMENTS_MAX).read_to_string(&mut text);
        read.map_err(|e| Fault::new(ErrorCode::InvalidRequest, format!("standard input: {e}")))?;
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Fault::new(ErrorCode::InvalidRequest, "the call is not a JSON object").hint(EXAMPLE)),
        Err(error) => {
            Err(Fault::new(ErrorCode::InvalidRequest, format!("the call is not JSON: {error}")).hint(EXAMPLE))
        }
    }
}
