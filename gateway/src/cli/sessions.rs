//! `gateway sessions`, `gateway kill`.

use clap::Args;
use fault::Fault;
use proto::v1 as pb;
use serde_json::json;

use super::Common;
use super::output::{exit_reason, moment, print_json, safe, session_json, table};
use crate::tools::on_disconnect;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this node.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct KillArgs {
    /// Session id, unique prefix of one, or run id.
    session: String,
    /// The node, where several know such a session.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Time between TERM and KILL, milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    grace_ms: u64,
    /// The run of this id may not have started yet: then it will not start any more.
    #[arg(long, requires = "node")]
    before_start: bool,
}

pub(super) async fn list(common: &Common, args: ListArgs) -> Result<u8, Fault> {
    let request = pb::ListRequest { node: args.node.unwrap_or_default() };
    let reply = common
        .connect()
        .await?
        .tools()
        .list_sessions(request)
        .await
        .map_err(|status| Fault::from_status(&status))?
        .into_inner();
    for missing in &reply.unreachable {
        let why = missing.fault.as_ref().map(|f| f.message.as_str()).unwrap_or_default();
        eprintln!("gateway: node {} could not be asked: {why}", safe(&missing.node_name));
    }
    if common.json {
        print_json(&json!({ "sessions": reply.sessions.iter().map(session_json).collect::<Vec<_>>() }));
        return Ok(0);
    }
    if reply.sessions.is_empty() {
        say_line!("no sessions");
        return Ok(0);
    }
    let rows: Vec<_> = reply
        .sessions
        .iter()
        .map(|s| {
            let state = match &s.exit {
                None => "running".to_owned(),
                Some(exit) => match exit.how {
                    Some(pb::exit::How::Code(code)) if !exit.timed_out => format!("exit {code}"),
                    Some(pb::exit::How::Signal(signal)) if !exit.timed_out => format!("signal {signal}"),
                    _ => exit_reason(exit).to_owned(),
                },
            };
            vec![
                s.session_id.clone(),
                safe(&s.node_name),
                state,
                moment(s.started_unix_ms),
                s.end_offset.to_string(),
                lease(s),
                safe(&s.label),
            ]
        })
        .collect();
    table(&["SESSION", "NODE", "STATE", "STARTED", "BYTES", "LEASE", "COMMAND"], &rows);
    Ok(0)
}

/// Who looks after it, and what becomes of it otherwise.
fn lease(session: &pb::SessionInfo) -> String {
    match &session.lease {
        Some(lease) if session.exit.is_none() => {
            let held = if lease.held { ", held" } else { "" };
            format!("{}{held}", on_disconnect(lease))
        }
        _ => String::new(),
    }
}

pub(super) async fn kill(common: &Common, args: KillArgs) -> Result<u8, Fault> {
    let request = pb::KillSessionRequest {
        session: args.session,
        node: args.node.unwrap_or_default(),
        grace_ms: args.grace_ms,
        before_start: args.before_start,
    };
    let reply = common
        .connect()
        .await?
        .tools()
        .kill(request)
        .await
        .map_err(|status| Fault::from_status(&status))?
        .into_inner();
    let Some(session) = reply.session else {
        if common.json {
            print_json(&json!({ "cancelled": true }));
        } else {
            say_line!("it has not started, and will not start any more");
        }
        return Ok(0);
    };
    if common.json {
        print_json(&json!({ "requested": true, "sessionId": session.session_id }));
    } else {
        say_line!("termination of {} was requested", session.session_id);
    }
    Ok(0)
}
