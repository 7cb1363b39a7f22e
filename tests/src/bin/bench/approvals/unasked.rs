//! Runs that need nobody's yes: what being able to ask adds to them, and what `Prepare` does.

use std::time::Instant;

use anyhow::ensure;
use proto::v1 as pb;

use super::{ALLOWS_TRUE, bed_with};
use crate::bed::{Tools, argv, call};
use crate::measure::Sides;
use crate::report::{Row, Samples};
use crate::stats::{Summary, ms};
use crate::targets::{ADDED_INLINE, ADDED_PREPARED, Metric, UNASKED_INLINE, UNASKED_NEVER, UNASKED_PREPARED};

const WARM_UP: usize = 50;

/// How a run is called.
#[derive(Debug, Clone, Copy)]
enum Way {
    Never,
    Inline,
    /// `Prepare`, then as `Inline`.
    Prepared,
}

const WAYS: [Way; 3] = [Way::Never, Way::Inline, Way::Prepared];

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = bed_with(sides, ALLOWS_TRUE)?;
    let count = sides.scale.pick(2000, 50);
    let mut tools = bed.tools();
    let [never, inline, prepared] = bed.run(async move {
        let mut samples: [Vec<f64>; 3] = Default::default();
        for turn in 0..WARM_UP + count {
            // Each way comes first, second and last equally often.
            for place in 0..WAYS.len() {
                let index = (turn + place) % WAYS.len();
                let took = once(&mut tools, WAYS[index]).await?;
                if turn >= WARM_UP {
                    samples[index].push(took);
                }
            }
        }
        Ok(samples)
    })?;
    Ok(vec![
        added(ADDED_INLINE, &never, &inline),
        added(ADDED_PREPARED, &inline, &prepared),
        row(UNASKED_NEVER, never, ""),
        row(UNASKED_INLINE, inline, ""),
        row(UNASKED_PREPARED, prepared, ""),
    ])
}

fn row(metric: Metric, ours: Vec<f64>, note: impl Into<String>) -> Row {
    Row::new(metric, &Samples { ours, ..Samples::default() }, note)
}

/// The differences of the pairs; the difference of the medians beside them.
fn added(metric: Metric, without: &[f64], with: &[f64]) -> Row {
    let p50 = |samples: &[f64]| Summary::of(samples).map_or(f64::NAN, |summary| summary.p50);
    let note = format!("of the pairs; the medians differ by {:.3} ms", p50(with) - p50(without));
    row(metric, with.iter().zip(without).map(|(with, without)| with - without).collect(), note)
}

async fn once(tools: &mut Tools, way: Way) -> anyhow::Result<f64> {
    let wait = match way {
        Way::Never => pb::ApprovalWait::Never,
        Way::Inline | Way::Prepared => pb::ApprovalWait::Inline,
    };
    let request = pb::ExecRequest { approval_wait: wait.into(), ..argv(&["/bin/true"]) };
    let begun = Instant::now();
    if matches!(way, Way::Prepared) {
        let plan = tools.prepare(request.clone()).await?.into_inner();
        ensure!(!plan.needs_approval, "`/bin/true` is not allowed: {}", plan.why);
    }
    call(tools, request).await?;
    Ok(ms(begun.elapsed()))
}
