//! From an approver's yes to the start and the exit at the caller that waits.

use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use proto::v1 as pb;
use proto::v1::session_event::Event;
use tonic::Streaming;

use super::{ASKS, bed_with};
use crate::bed::{Approvals, Bed, Tools, argv, shell};
use crate::measure::Sides;
use crate::report::{Row, Samples};
use crate::stats::ms;
use crate::targets::{
    ASKED, Metric, RESOLVED, YES_PIPELINE, YES_PIPELINE_EXIT, YES_PROGRAM, YES_PROGRAM_EXIT, YES_SCRIPT,
    YES_SCRIPT_EXIT,
};

/// The shapes take turns.
const ROUNDS: usize = 30;
const WARM_UP: usize = 5;
const SHAPES: [(Metric, Metric); 3] =
    [(YES_PROGRAM, YES_PROGRAM_EXIT), (YES_PIPELINE, YES_PIPELINE_EXIT), (YES_SCRIPT, YES_SCRIPT_EXIT)];

/// Times of one run, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Timed {
    /// From the call to the request.
    asked: f64,
    /// From the yes to its answer.
    resolved: f64,
    /// From the yes to `Started`.
    started: f64,
    /// From the yes to `Exit`.
    exited: f64,
}

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = bed_with(sides, ASKS)?;
    let script = bed.scratch().join("script.sh");
    std::fs::write(&script, "exit 0\n").context("a script")?;
    let script = script.to_str().context("a path in UTF-8")?;
    let requests = [
        argv(&["/bin/true"]),
        shell("/bin/echo hi | /bin/cat | /usr/bin/tr h H | /usr/bin/wc -c"),
        argv(&["/bin/sh", script]),
    ];
    let each = sides.scale.pick(10, 1);
    let mut timed: [Vec<Timed>; 3] = Default::default();
    for round in 0..=ROUNDS {
        for (request, timed) in requests.iter().zip(&mut timed) {
            let count = if round == 0 { WARM_UP } else { each };
            let samples = batch(&bed, request.clone(), count)?;
            if round > 0 {
                timed.extend(samples);
            }
        }
    }
    let row = |metric, timed: &mut dyn Iterator<Item = f64>| {
        Row::new(metric, &Samples { ours: timed.collect(), ..Samples::default() }, "")
    };
    let mut rows = Vec::new();
    for ((start, exit), timed) in SHAPES.into_iter().zip(&timed) {
        rows.push(row(start, &mut timed.iter().map(|t| t.started)));
        rows.push(row(exit, &mut timed.iter().map(|t| t.exited)));
    }
    rows.push(row(ASKED, &mut timed.iter().flatten().map(|t| t.asked)));
    rows.push(row(RESOLVED, &mut timed.iter().flatten().map(|t| t.resolved)));
    Ok(rows)
}

fn batch(bed: &Bed, request: pb::ExecRequest, count: usize) -> anyhow::Result<Vec<Timed>> {
    let (mut tools, mut approvals) = (bed.tools(), bed.approvals());
    let request = pb::ExecRequest { approval_wait: pb::ApprovalWait::Inline.into(), ..request };
    bed.run(async move {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            samples.push(once(&mut tools, &mut approvals, request.clone()).await?);
        }
        Ok(samples)
    })
}

async fn once(
    tools: &mut Tools,
    approvals: &mut Approvals,
    request: pb::ExecRequest,
) -> anyhow::Result<Timed> {
    let called = Instant::now();
    let mut events = tools.exec(request).await?.into_inner();
    let asked = match next(&mut events).await? {
        Event::ApprovalPending(approval) => approval,
        other => bail!("nobody was asked: {other:?}"),
    };
    let asked_after = ms(called.elapsed());
    let answer = pb::ResolveRequest {
        id: asked.approval_id,
        decision: pb::Decision::AllowOnce.into(),
        plan_digest: asked.plan.unwrap_or_default().digest,
        ..pb::ResolveRequest::default()
    };
    let said = Instant::now();
    let resolve = async {
        approvals.resolve(answer).await?;
        anyhow::Ok(ms(said.elapsed()))
    };
    // The caller reads meanwhile: the start may come before the answer to the yes.
    let (resolved, (started, exited)) = tokio::try_join!(resolve, followed(&mut events, said))?;
    Ok(Timed { asked: asked_after, resolved, started, exited })
}

/// Milliseconds since `said` at the start and at the exit, which must be code 0.
async fn followed(events: &mut Streaming<pb::SessionEvent>, said: Instant) -> anyhow::Result<(f64, f64)> {
    let mut started = None;
    loop {
        match next(events).await? {
            Event::Started(_) => started = Some(ms(said.elapsed())),
            Event::Exit(pb::Exit { how: Some(pb::exit::How::Code(0)), .. }) => {
                return Ok((started.context("an exit before the start")?, ms(said.elapsed())));
            }
            Event::Exit(exit) => bail!("the command ended badly: {exit:?}"),
            Event::ApprovalClosed(approval) => {
                let status = approval.status();
                ensure!(status == pb::ApprovalStatus::Allowed, "the request was closed as {status:?}");
            }
            Event::Output(_) => {}
            other @ (Event::ApprovalPending(_)
            | Event::Gap(_)
            | Event::InputProgress(_)
            | Event::InputRefused(_)
            | Event::Interrupted(_)
            | Event::Resumed(_)) => bail!("an event that does not belong here: {other:?}"),
        }
    }
}

async fn next(events: &mut Streaming<pb::SessionEvent>) -> anyhow::Result<Event> {
    let event = events.message().await?.context("the stream ended too early")?;
    event.event.context("an event of an unknown kind")
}
