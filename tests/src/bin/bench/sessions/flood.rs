//! A flood in the background: what it does to the memory of gateway and node host, and to the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::agent::Agent;
use super::row;
use crate::bed::Bed;
use crate::measure::Sides;
use crate::procfs::Process;
use crate::report::Row;
use crate::targets::{
    FLOOD_DISK, FLOOD_GATEWAY, FLOOD_HOLDER, FLOOD_NODE, FLOOD_POLLED_GATEWAY, FLOOD_POLLED_NODE, POLL_FLOOD,
};

const SAMPLE: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(500);

/// The largest values that were seen, in KiB.
#[derive(Debug, Clone, Copy, Default)]
struct Peak {
    gateway: f64,
    node: f64,
    holder: f64,
    /// Files of the session.
    disk: f64,
}

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let seconds = sides.scale.pick(10, 2);
    let (unread, mib, _) = flood(sides, seconds, None)?;
    let (polled, polled_mib, polls) = flood(sides, seconds, Some(POLL))?;
    let note = |mib: f64| format!("`yes` for {seconds} s, {mib:.0} MiB of output; from idle to the peak");
    Ok(vec![
        row(FLOOD_NODE, vec![unread.node], note(mib)),
        row(FLOOD_GATEWAY, vec![unread.gateway], ""),
        row(FLOOD_POLLED_NODE, vec![polled.node], note(polled_mib)),
        row(FLOOD_POLLED_GATEWAY, vec![polled.gateway], ""),
        row(FLOOD_HOLDER, vec![unread.holder.max(polled.holder)], "peak RSS, of both runs"),
        row(
            FLOOD_DISK,
            vec![unread.disk.max(polled.disk)],
            "peak of both runs; the bound is 64 MiB and one segment of 8",
        ),
        row(POLL_FLOOD, polls, ""),
    ])
}

/// How far the programs grow, MiB of output, and how long polls took.
fn flood(sides: Sides<'_>, seconds: u64, every: Option<Duration>) -> anyhow::Result<(Peak, f64, Vec<f64>)> {
    let bed = Bed::start(sides.binaries)?;
    let (gateway, node) = (bed.gateway(), bed.node());
    let before = (gateway.memory().rss, node.memory().rss);
    let over = Arc::new(AtomicBool::new(false));
    let (stop, sessions) = (Arc::clone(&over), bed.node_dir().join("node/sessions"));
    let sampler = std::thread::spawn(move || sample(gateway, node, &sessions, &stop));

    let agent = Agent::new(bed.tools());
    let outcome = bed.run(watched(agent, seconds, every));
    over.store(true, Ordering::Relaxed);
    let peak = sampler.join().ok().context("the sampler failed")?;
    let (bytes, polls) = outcome?;
    let peak = Peak { gateway: peak.gateway - before.0, node: peak.node - before.1, ..peak };
    Ok((peak, bytes as f64 / f64::from(1 << 20), polls))
}

/// Follows one flood to its end.
async fn watched(mut agent: Agent, seconds: u64, every: Option<Duration>) -> anyhow::Result<(u64, Vec<f64>)> {
    let session = agent.start(&format!("exec timeout {seconds} yes"), &[]).await?;
    let mut polls = Vec::new();
    if let Some(every) = every {
        loop {
            tokio::time::sleep(every).await;
            let begun = std::time::Instant::now();
            let details = agent.process("poll", &session, &[]).await?;
            polls.push(crate::stats::ms(begun.elapsed()));
            if details["status"] != "running" {
                break;
            }
        }
    } else {
        // A list looks at the session without reading it.
        tokio::time::sleep(Duration::from_secs(seconds) + POLL).await;
    }
    let details = agent.process("wait", &session, &[("timeout", 20_000.into())]).await?;
    ensure!(details["status"] != "running", "the flood goes on");
    Ok((details["outputBytes"].as_u64().context("a number of bytes")?, polls))
}

fn sample(gateway: Process, node: Process, sessions: &Path, over: &AtomicBool) -> Peak {
    let mut peak = Peak::default();
    while !over.load(Ordering::Relaxed) {
        peak.gateway = peak.gateway.max(gateway.memory().rss);
        peak.node = peak.node.max(node.memory().rss);
        let below = node.descendants();
        let holders =
            below.iter().filter(|process| process.parent() == below.first().map(|launcher| launcher.pid));
        peak.holder = holders.map(|holder| holder.memory().rss).fold(peak.holder, f64::max);
        peak.disk = peak.disk.max(bytes_below(sessions) as f64 / 1024.0);
        std::thread::sleep(SAMPLE);
    }
    peak
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    // A segment may go while it is looked at.
    let sizes = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        Some(if meta.is_dir() { bytes_below(&entry.path()) } else { meta.len() })
    });
    sizes.sum()
}
