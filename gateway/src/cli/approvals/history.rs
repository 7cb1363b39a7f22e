//! `gateway approvals history`: what was decided, or closed undecided.

use clap::Args;
use fault::Fault;
use proto::v1 as pb;
use serde_json::json;

use super::super::Common;
use super::super::output::{moment, print_json, table};
use super::record::{self, cut, one_line, outcome, slug};

/// Widest command and note in the table, in characters.
const COMMAND_MAX: usize = 60;
const NOTE_MAX: usize = 80;

#[derive(Debug, Args)]
pub(in super::super) struct HistoryArgs {
    /// At most so many, the newest first; a thousand at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(super) async fn run(common: &Common, args: &HistoryArgs) -> Result<u8, Fault> {
    let request = pb::ApprovalHistoryRequest { limit: args.limit };
    let mut approvals = common.connect().await?.approvals();
    let reply = approvals.history(request).await.map_err(|status| Fault::from_status(&status))?;
    let closed = reply.into_inner().approvals;
    if common.json {
        print_json(&json!({ "approvals": closed.iter().map(record::json).collect::<Vec<_>>() }));
    } else if closed.is_empty() {
        say_line!("no approval was closed yet");
    } else {
        let rows: Vec<_> = closed.iter().map(row).collect();
        table(&["ID", "CLOSED", "NODE", "COMMAND", "DECISION", "FROM", "OUTCOME"], &rows);
    }
    Ok(0)
}

fn row(approval: &pb::Approval) -> Vec<String> {
    let command = approval.plan.as_ref().map(|plan| plan.command_text.as_str()).unwrap_or_default();
    vec![
        slug(approval),
        moment(approval.closed_unix_ms),
        one_line(&approval.node_name),
        cut(command, COMMAND_MAX),
        outcome(approval),
        one_line(&approval.decided_from),
        cut(&approval.outcome, NOTE_MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_who_from_where_and_what_became_of_it() {
        let plan = pb::Plan { command_text: format!("ls\n{}", "x".repeat(80)), ..pb::Plan::default() };
        let approval = pb::Approval {
            approval_id: "0123456789abcdef".to_owned(),
            node_name: "n\u{1b}1".to_owned(),
            plan: Some(plan),
            status: pb::ApprovalStatus::Denied.into(),
            decided_by: "ann".to_owned(),
            decided_from: "unix socket".to_owned(),
            closed_unix_ms: 1000,
            outcome: "Exec denied\r".to_owned(),
            ..pb::Approval::default()
        };
        let want = [
            "01234567",
            "1970-01-01T00:00:01Z",
            "n\\u{1b}1",
            &format!("ls\\n{}…", "x".repeat(57)),
            "denied by ann",
            "unix socket",
            "Exec denied\\u{d}",
        ];
        assert_eq!(row(&approval), want);
    }
}
