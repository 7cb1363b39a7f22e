//! What the tool adds to a run: `exec` as models call it against `Tools.Exec`, in turns.

use std::time::Instant;

use anyhow::ensure;
use serde_json::json;

use super::agent::Agent;
use super::row;
use crate::bed::{Bed, call, shell};
use crate::measure::Sides;
use crate::report::Row;
use crate::stats::ms;
use crate::targets::{EXEC_CALL, EXEC_TOOL};

const WARM_UP: usize = 50;

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let count = sides.scale.pick(1000, 50);
    let (mut tools, mut agent) = (bed.tools(), Agent::new(bed.tools()));
    let (by_tool, by_call) = bed.run(async move {
        let arguments = json!({ "command": "true" });
        let (mut by_tool, mut by_call) = (Vec::new(), Vec::new());
        for turn in 0..WARM_UP + count {
            let begun = Instant::now();
            let details = agent.call("exec", &arguments).await?;
            let tool = ms(begun.elapsed());
            ensure!(details["exitCode"] == 0, "`true` ended with {}", details["exitCode"]);
            let begun = Instant::now();
            call(&mut tools, shell("true")).await?;
            if turn >= WARM_UP {
                by_tool.push(tool);
                by_call.push(ms(begun.elapsed()));
            }
        }
        Ok((by_tool, by_call))
    })?;
    Ok(vec![row(EXEC_TOOL, by_tool, ""), row(EXEC_CALL, by_call, "in turns with the tool")])
}
