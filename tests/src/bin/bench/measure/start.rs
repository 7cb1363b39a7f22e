//! From the start of a process to the line that says it serves.

use super::Sides;
use crate::bed::{Bed, GATEWAY_READY, NODE_READY, READY_WITHIN};
use crate::program::Program;
use crate::report::{Row, Samples};
use crate::stats::ms;
use crate::targets::{START_FRESH, START_GATEWAY, START_NODE};

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let (bed, starts) = (Bed::start(sides.binaries)?, sides.scale.pick(10, 3));
    let kept = bed.scratch().join("start");
    until(bed.binaries.start_gateway(&kept)?, GATEWAY_READY)?;
    let paired = bed.scratch().join("start-node");
    let link = bed.invite("bench-start")?;
    until(bed.binaries.start_node(&paired, Some(&link))?, NODE_READY)?;

    let (mut existing, mut fresh, mut node) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..starts {
        existing.push(until(bed.binaries.start_gateway(&kept)?, GATEWAY_READY)?);
        let new = bed.scratch().join(format!("start-{round}"));
        fresh.push(until(bed.binaries.start_gateway(&new)?, GATEWAY_READY)?);
        node.push(until(bed.binaries.start_node(&paired, None)?, NODE_READY)?);
    }
    let row = |metric, ours, note: &str| Row::new(metric, &Samples { ours, ..Samples::default() }, note);
    Ok(vec![
        row(START_GATEWAY, existing, "existing state, process start to ready line"),
        row(START_FRESH, fresh, ""),
        row(START_NODE, node, "existing pairing, process start to connected line"),
    ])
}

/// Milliseconds to the line; the program is stopped then.
fn until(mut program: Program, line: &str) -> anyhow::Result<f64> {
    let (elapsed, _) = program.line(line, READY_WITHIN)?;
    program.stop();
    Ok(ms(elapsed))
}
