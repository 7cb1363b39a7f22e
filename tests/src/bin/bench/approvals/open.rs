//! Many requests that wait for an answer: how long it takes to list them, and how much memory they take.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use proto::v1 as pb;
use proto::v1::session_event::Event;

use super::{ASKS, bed_with};
use crate::bed::{Bed, argv};
use crate::measure::Sides;
use crate::procfs::Memory;
use crate::report::{Row, Samples};
use crate::stats::ms;
use crate::targets::{LISTED, LISTED_CLI, Metric, OPEN_GATEWAY_RSS, OPEN_NODE_RSS};

const OPEN: u32 = 1000;
/// Requests before memory is read for the first time.
const WARM_UP: u32 = 20;

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = bed_with(sides, ASKS)?;
    ask(&bed, 0, WARM_UP)?;
    let (gateway, node) = (bed.gateway().memory(), bed.node().memory());
    ask(&bed, WARM_UP, OPEN)?;
    // Read before anything is listed: an answer of a megabyte is no part of what is kept.
    let kept = (bed.gateway().memory(), bed.node().memory());
    let listed = list(&bed, sides.scale.pick(100, 20))?;
    let after = bed.gateway().memory();
    let shown = pending(&bed, sides.scale.pick(100, 20))?;

    let times = |metric, ours, note| Row::new(metric, &Samples { ours, ..Samples::default() }, note);
    let memory = |metric: Metric, before: Memory, with: Memory, more: String| {
        let each = with.growth_each(before, OPEN - WARM_UP);
        let note = format!(
            "{:.0} KiB before; {:.2} KiB RSS, {:.2} KiB PSS each{more}",
            before.rss, each.rss, each.pss
        );
        Row::value(metric, with.rss, note)
    };
    Ok(vec![
        times(LISTED, listed, "one call, decoded"),
        times(LISTED_CLI, shown, "its process from start to end, output read"),
        memory(OPEN_GATEWAY_RSS, gateway, kept.0, format!("; {:.0} KiB after the lists", after.rss)),
        memory(OPEN_NODE_RSS, node, kept.1, String::new()),
    ])
}

/// Leaves requests open, each for another command.
fn ask(bed: &Bed, from: u32, to: u32) -> anyhow::Result<()> {
    let mut tools = bed.tools();
    bed.run(async move {
        for number in from..to {
            let request = pb::ExecRequest {
                approval_wait: pb::ApprovalWait::Pending.into(),
                ..argv(&["/bin/echo", &number.to_string()])
            };
            let mut events = tools.exec(request).await?.into_inner();
            match events.message().await?.and_then(|event| event.event) {
                Some(Event::ApprovalPending(_)) => {}
                other => bail!("nobody was asked: {other:?}"),
            }
            ensure!(events.message().await?.is_none(), "the call goes on");
        }
        Ok(())
    })
}

fn list(bed: &Bed, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut approvals = bed.approvals();
    bed.run(async move {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            let listed = approvals.list(pb::ListApprovalsRequest {}).await?.into_inner().approvals;
            samples.push(ms(begun.elapsed()));
            ensure!(listed.len() == OPEN as usize, "{} requests are open", listed.len());
        }
        Ok(samples)
    })
}

fn pending(bed: &Bed, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let mut command = Command::new(&bed.binaries.gateway);
        command.arg("--state-dir").arg(bed.gateway_dir()).args(["approvals", "pending", "--json"]);
        let begun = Instant::now();
        let output = command.stdin(Stdio::null()).output()?;
        samples.push(ms(begun.elapsed()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`approvals pending` ended with {}: {stderr}", output.status);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let listed = document.get("approvals").and_then(|list| list.as_array()).context("a list")?;
        ensure!(listed.len() == OPEN as usize, "{} requests are shown", listed.len());
    }
    Ok(samples)
}
