//! `gateway approvals pending` and `show`: what waits for a yes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, approval_event::Event};
use serde_json::{Value, json};
use tonic::Streaming;

use super::super::Common;
use super::super::output::{print_json, table};
use super::card::{self, Style};
use super::record::{self, cut, one_line, outcome, slug, time_left};
use crate::clock;

/// Widest command and reason in the table, in characters.
const COMMAND_MAX: usize = 72;
const WHY_MAX: usize = 60;
/// A gateway that went away may come back within this time.
const COME_BACK_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(in super::super) struct PendingArgs {
    /// Stay, and print each request in full as it comes and a line when it is closed. Who watches can be asked.
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, Args)]
pub(in super::super) struct ShowArgs {
    /// The request: its id, or a unique beginning of it.
    id: String,
}

pub(super) async fn run(common: &Common, args: &PendingArgs) -> Result<u8, Fault> {
    if args.watch {
        return watch(common).await;
    }
    let mut approvals = common.connect().await?.approvals();
    let reply = approvals.list(pb::ListApprovalsRequest {}).await;
    let open = reply.map_err(|status| Fault::from_status(&status))?.into_inner().approvals;
    let now = clock::now_ms();
    if common.json {
        print_json(&json!({ "approvals": open.iter().map(record::json).collect::<Vec<_>>() }));
    } else if open.is_empty() {
        say_line!("nothing waits for a yes");
    } else {
        let rows: Vec<_> = open.iter().map(|approval| row(approval, now)).collect();
        table(&["ID", "NODE", "COMMAND", "LEFT", "WHY"], &rows);
    }
    Ok(0)
}

pub(super) async fn show(common: &Common, args: ShowArgs) -> Result<u8, Fault> {
    let mut approvals = common.connect().await?.approvals();
    let reply = approvals.get(pb::ApprovalRef { id: args.id }).await;
    let approval = reply.map_err(|status| Fault::from_status(&status))?.into_inner();
    if common.json {
        print_json(&record::json(&approval));
    } else {
        let card = card::card(&approval, clock::now_ms(), Style::of_stdout());
        say_line!("{}", card.trim_end());
    }
    Ok(0)
}

fn row(approval: &pb::Approval, now_ms: i64) -> Vec<String> {
    let plan = approval.plan.clone().unwrap_or_default();
    vec![
        slug(approval),
        one_line(&approval.node_name),
        cut(&plan.command_text, COMMAND_MAX),
        time_left(approval, now_ms),
        cut(&plan.why, WHY_MAX),
    ]
}

async fn watch(common: &Common) -> Result<u8, Fault> {
    let mut connection = common.connect().await?;
    let mut watched = Watched::default();
    loop {
        // A refusal at the start is an answer; later the gateway may only have been restarted.
        let stream = connection.approvals().watch(pb::WatchApprovalsRequest {}).await;
        let mut events = stream.map_err(|status| Fault::from_status(&status))?.into_inner();
        let lost = follow(common, &mut events, &mut watched).await;
        eprintln!("gateway: the gateway went away ({lost}); nobody can be asked until it is back");
        connection = connection.again(COME_BACK_WITHIN).await?;
        watched.begin();
    }
}

/// Prints what comes, until the gateway is lost.
async fn follow(common: &Common, events: &mut Streaming<pb::ApprovalEvent>, watched: &mut Watched) -> Fault {
    loop {
        let event = match events.message().await {
            Ok(Some(event)) => event.event,
            Ok(None) => return Fault::new(ErrorCode::Disconnected, "the stream ended"),
            Err(status) => return Fault::from_status(&status),
        };
        for news in event.map(|event| watched.on(event)).unwrap_or_default() {
            if common.json {
                say_line!("{}", news.json());
            } else if let Some(text) = news.text(clock::now_ms(), Style::of_stdout()) {
                say_line!("{text}");
            }
        }
    }
}

/// Something to tell.
#[derive(Debug, PartialEq)]
enum News {
    Requested(Box<pb::Approval>),
    Closed(Box<pb::Approval>),
    /// It was open when the gateway was last heard, and is not any more.
    Gone(String),
    CaughtUp,
}

/// What was told, so that nothing is told twice: a gateway tells all that is open again after a gap.
#[derive(Debug, Default)]
struct Watched {
    /// Ids that are open as far as was told, and their short forms.
    open: BTreeMap<String, String>,
    /// Ids that were named since the gateway had told all that is open.
    named: BTreeSet<String>,
}

impl Watched {
    /// The gateway begins anew.
    fn begin(&mut self) {
        self.named.clear();
    }

    fn on(&mut self, event: Event) -> Vec<News> {
        match event {
            Event::Requested(approval) => {
                let id = approval.approval_id.clone();
                self.named.insert(id.clone());
                match self.open.insert(id, slug(&approval)) {
                    None => vec![News::Requested(Box::new(approval))],
                    Some(_) => Vec::new(),
                }
            }
            Event::Closed(approval) => {
                self.open.remove(&approval.approval_id);
                self.named.remove(&approval.approval_id);
                vec![News::Closed(Box::new(approval))]
            }
            Event::CaughtUp(_) => {
                let named = std::mem::take(&mut self.named);
                let (open, gone) =
                    std::mem::take(&mut self.open).into_iter().partition(|(id, _)| named.contains(id));
                self.open = open;
                let gone: BTreeMap<String, String> = gone;
                gone.into_values().map(News::Gone).chain([News::CaughtUp]).collect()
            }
        }
    }
}

impl News {
    fn json(&self) -> Value {
        match self {
            Self::Requested(approval) => json!({ "event": "requested", "approval": record::json(approval) }),
            Self::Closed(approval) => json!({ "event": "closed", "approval": record::json(approval) }),
            Self::Gone(slug) => json!({ "event": "gone", "approvalSlug": slug }),
            Self::CaughtUp => json!({ "event": "caught-up" }),
        }
    }

    fn text(&self, now_ms: i64, style: Style) -> Option<String> {
        match self {
            // The empty line after it parts one card from the next.
            Self::Requested(approval) => Some(card::card(approval, now_ms, style)),
            Self::Closed(approval) => Some(format!("{}: {}", slug(approval), outcome(approval))),
            Self::Gone(slug) => Some(format!("{slug}: closed meanwhile; see `gateway approvals history`")),
            Self::CaughtUp => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: &str) -> pb::Approval {
        pb::Approval {
            approval_id: id.to_owned(),
            status: pb::ApprovalStatus::Pending.into(),
            ..pb::Approval::default()
        }
    }

    fn caught_up() -> Event {
        Event::CaughtUp(pb::approval_event::Caught {})
    }

    #[test]
    fn each_is_told_once_also_when_the_gateway_begins_anew() {
        let mut watched = Watched::default();
        let requested = |id: &str| vec![News::Requested(Box::new(open(id)))];
        let steps = [
            (Event::Requested(open("a")), requested("a")),
            (Event::Requested(open("b")), requested("b")),
            (caught_up(), vec![News::CaughtUp]),
            // The gateway was too fast for us and tells all that is open again.
            (Event::Requested(open("a")), vec![]),
            (caught_up(), vec![News::Gone("b".to_owned()), News::CaughtUp]),
            (Event::Requested(open("b")), requested("b")),
            (Event::Closed(open("a")), vec![News::Closed(Box::new(open("a")))]),
        ];
        for (event, want) in steps {
            assert_eq!(watched.on(event.clone()), want, "{event:?}");
        }
        watched.begin();
        let steps = [
            (Event::Requested(open("c")), requested("c")),
            (caught_up(), vec![News::Gone("b".to_owned()), News::CaughtUp]),
            (Event::Requested(open("b")), requested("b")),
        ];
        for (event, want) in steps {
            assert_eq!(watched.on(event.clone()), want, "{event:?}");
        }
    }

    #[test]
    fn a_row_is_one_line_without_control_characters() {
        let plan = pb::Plan {
            command_text: "ls\n\u{1b}[2J".to_owned(),
            why: "`ls` is not allowed\u{202e}".to_owned(),
            ..pb::Plan::default()
        };
        let approval = pb::Approval {
            node_name: "n\r".to_owned(),
            plan: Some(plan),
            expires_unix_ms: 90_000,
            ..open("0123456789")
        };
        let want = ["01234567", "n\\u{d}", "ls\\n\\u{1b}[2J", "1 min 30 s", "`ls` is not allowed\\u{202e}"];
        assert_eq!(row(&approval, 0), want);
    }
}
