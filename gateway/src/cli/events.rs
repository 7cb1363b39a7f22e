//! `gateway events`: what happened to commands that waited for a yes, ran long, or ran in the background.

use clap::Args;
use fault::{ErrorCode, Fault};
use proto::v1 as pb;
use serde_json::{Value, json};

use super::Common;
use super::output::{exit_json, moment, safe};

#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Stay, and print what comes.
    #[arg(long)]
    follow: bool,
    /// Go on behind this number; from the oldest that is kept unless given.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    after: u64,
    /// Take the ends of background commands that wait for an agent. What was printed is not told again.
    #[arg(long, conflicts_with = "after")]
    take: bool,
    /// The agent whose ends are taken; the main one unless given.
    #[arg(long, value_name = "ID", requires = "take")]
    agent: Option<String>,
    /// The agent's session whose ends are taken.
    #[arg(long, value_name = "KEY", requires = "take")]
    session_key: Option<String>,
}

/// How long one request waits for an end, in milliseconds.
const WAIT_MS: u64 = 30_000;

pub(super) async fn run(common: &Common, args: EventsArgs) -> Result<u8, Fault> {
    if args.take {
        return take(common, args).await;
    }
    let request = pb::EventsRequest { after: args.after, follow: args.follow };
    let mut tools = common.connect().await?.tools();
    let stream = tools.events(request).await.map_err(|status| Fault::from_status(&status))?;
    let mut notices = stream.into_inner();
    while let Some(notice) = notices.message().await.map_err(|status| Fault::from_status(&status))? {
        say(common, &notice);
    }
    if args.follow {
        return Err(Fault::new(ErrorCode::GatewayUnreachable, "the gateway went away")
            .hint("its numbers begin anew at its next start"));
    }
    Ok(0)
}

/// Prints the ends that wait, and tells the gateway with the next request that they are printed.
async fn take(common: &Common, args: EventsArgs) -> Result<u8, Fault> {
    let mut tools = common.connect().await?.tools();
    let mut request = pb::TakeEventsRequest {
        agent_id: args.agent.unwrap_or_default(),
        session_key: args.session_key.unwrap_or_default(),
        taken: 0,
        wait_ms: if args.follow { WAIT_MS } else { 0 },
    };
    loop {
        let reply = tools.take_events(request.clone()).await;
        let notices = reply.map_err(|status| Fault::from_status(&status))?.into_inner().notices;
        let Some(newest) = notices.last() else {
            if args.follow {
                continue;
            }
            return Ok(0);
        };
        request.taken = newest.seq;
        for notice in &notices {
            say(common, notice);
        }
    }
}

fn say(common: &Common, notice: &pb::Notice) {
    if common.json {
        say_line!("{}", notice_json(notice));
    } else {
        say_line!("{}", line(notice));
    }
}

fn line(notice: &pb::Notice) -> String {
    format!("{:>4}  {}  {}", notice.seq, moment(notice.unix_ms), safe(&notice.text))
}

fn notice_json(notice: &pb::Notice) -> Value {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "seq": notice.seq,
        "atMs": notice.unix_ms,
        "kind": kind(notice.kind()),
        "text": notice.text,
        "approvalId": some(&notice.approval_id),
        "runId": some(&notice.run_id),
        "nodeId": some(&notice.node_id),
        "sessionId": some(&notice.session_id),
        "agentId": some(&notice.agent_id),
        "sessionKey": some(&notice.session_key),
        "exit": notice.exit.as_ref().map(exit_json),
        "reason": some(&notice.reason),
    })
}

fn kind(kind: pb::notice::Kind) -> &'static str {
    match kind {
        pb::notice::Kind::ExecRunning => "exec-running",
        pb::notice::Kind::ExecFinished => "exec-finished",
        pb::notice::Kind::ExecDenied => "exec-denied",
        pb::notice::Kind::ApprovalRequested => "approval-requested",
        pb::notice::Kind::ApprovalClosed => "approval-closed",
        pb::notice::Kind::BackgroundEnded => "background-ended",
        pb::notice::Kind::Unspecified => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_and_one_object() {
        let notice = pb::Notice {
            seq: 7,
            unix_ms: 1000,
            kind: pb::notice::Kind::ExecDenied.into(),
            text: "Exec denied (node=n id=a, user-denied): ls\n\u{1b}[2J".to_owned(),
            approval_id: "a".to_owned(),
            reason: "user-denied".to_owned(),
            ..pb::Notice::default()
        };
        let want = "   7  1970-01-01T00:00:01Z  Exec denied (node=n id=a, user-denied): ls\\n\\u{1b}[2J";
        assert_eq!(line(&notice), want);
        let want = json!({
            "seq": 7, "atMs": 1000, "kind": "exec-denied", "text": notice.text, "approvalId": "a", "runId": null,
            "nodeId": null, "sessionId": null, "agentId": null, "sessionKey": null, "exit": null,
            "reason": "user-denied",
        });
        assert_eq!(notice_json(&notice), want);
    }
}
