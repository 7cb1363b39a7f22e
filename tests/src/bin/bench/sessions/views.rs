//! Views of much output, and of a terminal that is drawn all the time.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::agent::Agent;
use super::row;
use crate::bed::Bed;
use crate::measure::Sides;
use crate::report::Row;
use crate::stats::ms;
use crate::targets::{
    VIEW_LOG, VIEW_LOG_PAGE, VIEW_NODE_RSS, VIEW_POLL_FIRST, VIEW_POLL_NEXT, VIEW_SCREEN, VIEW_SCREEN_FIRST,
    VIEW_SEARCH, VIEW_SEARCH_MANY,
};

/// Writes 60 MiB, less than what is kept: each number is there once.
const NUMBERS: u32 = 8_000_000;
const ONE: &str = "7654321";
const PAGE: u32 = 4_000_000;
/// Draws a screen five times a second.
const DRAWS: &str = "exec top -d 0.2";
const PAUSE: Duration = Duration::from_millis(30);

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let count = sides.scale.pick(10, 2);
    let before = bed.node().memory();
    let mut rows = bed.run(much(Agent::new(bed.tools()), count))?;
    let after = bed.node().memory();
    let note = format!("{:.0} KiB before; after the views of 60 MiB", before.rss);
    rows.push(row(VIEW_NODE_RSS, vec![after.rss], note));
    rows.extend(bed.run(screens(Agent::new(bed.tools()), sides.scale.pick(200, 20)))?);
    Ok(rows)
}

async fn much(mut agent: Agent, count: usize) -> anyhow::Result<Vec<Row>> {
    let session = agent.start(&format!("exec seq {NUMBERS}"), &[("stdin", true.into())]).await?;
    let details = agent.process("wait", &session, &[("offset", 0.into())]).await?;
    let bytes = details["outputBytes"].as_u64().context("a number of bytes")?;
    let mut rows = Vec::new();
    let all: [(_, &str, Vec<(&str, Value)>, _); 6] = [
        (VIEW_POLL_FIRST, "poll", vec![("offset", 0.into())], format!("{bytes} bytes, all unread")),
        (VIEW_POLL_NEXT, "poll", vec![("offset", bytes.into())], "nothing new".to_owned()),
        (VIEW_LOG, "log", vec![], "the last 200 lines".to_owned()),
        (
            VIEW_LOG_PAGE,
            "log",
            vec![("offset", PAGE.into()), ("limit", 200.into())],
            "200 lines in the middle".to_owned(),
        ),
        (VIEW_SEARCH, "search", vec![("pattern", ONE.into())], "one hit".to_owned()),
        (
            VIEW_SEARCH_MANY,
            "search",
            vec![("pattern", "[13579]7$".into())],
            "a regular expression, 400000 hits".to_owned(),
        ),
    ];
    for (metric, action, more, note) in all {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            let details = agent.process(action, &session, &more).await?;
            samples.push(ms(begun.elapsed()));
            let lost =
                details["omitted"].as_array().is_some_and(|all| all.iter().any(|one| one["lost"] == true));
            ensure!(!lost, "output was lost: {}", details["omitted"]);
            if action == "search" {
                let wanted = if more[0].1 == ONE { 1 } else { NUMBERS / 20 };
                ensure!(details["total"] == wanted, "{} hits", details["total"]);
            }
        }
        rows.push(row(metric, samples, note));
    }
    Ok(rows)
}

async fn screens(mut agent: Agent, count: usize) -> anyhow::Result<Vec<Row>> {
    let (mut first, mut next) = (Vec::new(), Vec::with_capacity(count));
    for _ in 0..count.div_ceil(20) {
        let session = agent.start(DRAWS, &[("pty", true.into())]).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for turn in 0..20 {
            let begun = Instant::now();
            let details = agent.process("screen", &session, &[]).await?;
            let took = ms(begun.elapsed());
            if turn == 0 {
                first.push(took)
            } else {
                next.push(took)
            }
            let lines = details["lines"].as_array().map_or(0, Vec::len);
            ensure!(lines > 5, "`top` draws {lines} lines: {}", details["lines"]);
            tokio::time::sleep(PAUSE).await;
        }
        agent.end(&session).await?;
    }
    Ok(vec![
        row(VIEW_SCREEN_FIRST, first, "`top`, drawn five times a second for a second"),
        row(VIEW_SCREEN, next, "every 30 ms"),
    ])
}
