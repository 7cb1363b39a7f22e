//! Many sessions at one time: the memory of each program, and how long an agent waits beside them.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use super::agent::Agent;
use super::row;
use crate::bed::Bed;
use crate::measure::Sides;
use crate::procfs::{Memory, Process};
use crate::report::Row;
use crate::stats::{Summary, ms};
use crate::targets::{
    LIVE_GATEWAY_RSS, LIVE_HOLDER_OWN, LIVE_HOLDER_PSS, LIVE_HOLDER_RSS, LIVE_LIST, LIVE_NODE_RSS, LIVE_POLL,
    LIVE_START, LIVE_TTY_GATEWAY_RSS, LIVE_TTY_HOLDER_OWN, LIVE_TTY_HOLDER_PSS, LIVE_TTY_HOLDER_RSS,
    LIVE_TTY_LIST, LIVE_TTY_NODE_RSS, LIVE_TTY_POLL, LIVE_TTY_START, Metric,
};

/// What a session runs; its shell is gone.
const COMMAND: &str = "exec sleep 600";
const SLEEPER: &str = "sleep";
/// A holder gives back what its start needed half a second later.
const SETTLE: Duration = Duration::from_secs(2);

/// The rows of one kind of session.
struct Rows {
    start: Metric,
    node: Metric,
    gateway: Metric,
    holder: [Metric; 3],
    list: Metric,
    poll: Metric,
}

const PIPES: Rows = Rows {
    start: LIVE_START,
    node: LIVE_NODE_RSS,
    gateway: LIVE_GATEWAY_RSS,
    holder: [LIVE_HOLDER_RSS, LIVE_HOLDER_PSS, LIVE_HOLDER_OWN],
    list: LIVE_LIST,
    poll: LIVE_POLL,
};
const TERMINALS: Rows = Rows {
    start: LIVE_TTY_START,
    node: LIVE_TTY_NODE_RSS,
    gateway: LIVE_TTY_GATEWAY_RSS,
    holder: [LIVE_TTY_HOLDER_RSS, LIVE_TTY_HOLDER_PSS, LIVE_TTY_HOLDER_OWN],
    list: LIVE_TTY_LIST,
    poll: LIVE_TTY_POLL,
};

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = many(sides, sides.scale.pick(1000, 50), &PIPES, Vec::new())?;
    rows.extend(many(sides, sides.scale.pick(200, 20), &TERMINALS, vec![("pty", true.into())])?);
    Ok(rows)
}

fn many(
    sides: Sides<'_>,
    count: usize,
    rows: &Rows,
    more: Vec<(&'static str, Value)>,
) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start_with(sides.binaries, &["--max-sessions", "2000"])?;
    let before = (bed.gateway().memory(), bed.node().memory());
    let agent = Agent::new(bed.tools());
    let (sessions, starts) = bed.run(start(agent.clone(), count, more))?;
    std::thread::sleep(SETTLE);
    // Before anything is listed: an answer of a megabyte is no part of what is kept.
    let (gateway, node) = (bed.gateway().memory(), bed.node().memory());
    let holders: Vec<Memory> = holders(&bed).into_iter().map(Process::memory).collect();
    ensure!(holders.len() == count, "{} of {count} sessions have a holder", holders.len());
    let (lists, polls) = bed.run(look(agent, sessions, sides.scale.pick(100, 20)))?;
    let after = (bed.gateway().memory(), bed.node().memory());

    let program = |metric, before: Memory, live: Memory, after: Memory| {
        let each = (live.rss - before.rss) / count as f64;
        let note = format!(
            "{:.0} KiB before, {each:.1} KiB a session; PSS {:.0}, its own {:.0}; RSS {:.0} after the lists and polls",
            before.rss, live.pss, live.private, after.rss
        );
        row(metric, vec![live.rss], note)
    };
    let holder = |metric, pick: fn(&Memory) -> f64| {
        let samples: Vec<f64> = holders.iter().map(pick).collect();
        let max = Summary::of(&samples).map_or(f64::NAN, |summary| summary.max);
        row(metric, samples, format!("{count} holders, the largest {max:.0} KiB"))
    };
    let [rss, pss, own] = rows.holder;
    Ok(vec![
        row(rows.start, starts, format!("{count} of them, one after the other, by the tool")),
        program(rows.node, before.1, node, after.1),
        program(rows.gateway, before.0, gateway, after.0),
        holder(rss, |memory| memory.rss),
        holder(pss, |memory| memory.pss),
        holder(own, |memory| memory.private),
        row(rows.list, lists, "`process list`, decoded"),
        row(rows.poll, polls, "`process poll` of one of them, timeout 0"),
    ])
}

async fn start(
    mut agent: Agent,
    count: usize,
    more: Vec<(&'static str, Value)>,
) -> anyhow::Result<(Vec<String>, Vec<f64>)> {
    let (mut sessions, mut samples) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _ in 0..count {
        let begun = Instant::now();
        sessions.push(agent.start(COMMAND, &more).await?);
        samples.push(ms(begun.elapsed()));
    }
    Ok((sessions, samples))
}

async fn look(mut agent: Agent, sessions: Vec<String>, count: usize) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let (mut lists, mut polls) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for session in sessions.iter().cycle().take(count) {
        let begun = Instant::now();
        let details = agent.call("process", &json!({ "action": "list" })).await?;
        lists.push(ms(begun.elapsed()));
        let listed = details["sessions"].as_array().map_or(0, Vec::len);
        ensure!(listed == sessions.len(), "{listed} sessions are listed");
        let begun = Instant::now();
        agent.process("poll", session, &[]).await?;
        polls.push(ms(begun.elapsed()));
    }
    Ok((lists, polls))
}

/// The parents of the commands.
fn holders(bed: &Bed) -> Vec<Process> {
    let below = bed.node().descendants();
    let by_pid: HashMap<u32, Process> = below.iter().map(|process| (process.pid, *process)).collect();
    let commands = below.iter().filter(|process| process.comm() == SLEEPER);
    let parents: HashSet<u32> = commands.filter_map(|process| process.parent()).collect();
    parents.iter().filter_map(|pid| by_pid.get(pid).copied()).collect()
}
