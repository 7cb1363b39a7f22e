//! How soon an agent that waits has what a program wrote: from the program's own time stamp to the answer.

use std::path::Path;

use anyhow::{Context as _, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::agent::Agent;
use super::row;
use crate::bed::Bed;
use crate::measure::Sides;
use crate::report::Row;
use crate::targets::{ANSWER_BYTES, ANSWER_PATTERN, ANSWER_POLL, ANSWER_TTY, Metric};

/// Time of the program before it answers: its reader waits by then, in milliseconds.
const AFTER_MS: u32 = 15;
const WARM_UP: usize = 20;
/// Longest wait for an answer, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
/// A stamp. It is written in one piece, so it is whole when it matches.
const PATTERN: &str = "[0-9]{10,}";

/// How it is waited for.
#[derive(Debug, Clone, Copy)]
enum Way {
    Poll,
    Pattern,
    Bytes,
    /// A poll of a terminal.
    Terminal,
}

const WAYS: [(Way, Metric); 4] = [
    (Way::Poll, ANSWER_POLL),
    (Way::Pattern, ANSWER_PATTERN),
    (Way::Bytes, ANSWER_BYTES),
    (Way::Terminal, ANSWER_TTY),
];

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let program = std::env::current_exe()?.with_file_name("stamp");
    ensure!(program.is_file(), "`stamp` is not beside this program; build it: cargo build --release -p e2e");
    let rounds = sides.scale.pick(1000, 50);
    let mut rows = Vec::new();
    for (way, metric) in WAYS {
        let agent = Agent::new(bed.tools());
        let (samples, late) = bed.run(samples(agent, program.clone(), way, rounds))?;
        let note =
            format!("{rounds} rounds; {late} answers were written before anybody waited, and do not count");
        rows.push(row(metric, samples, note));
    }
    Ok(rows)
}

async fn samples(
    mut agent: Agent,
    program: impl AsRef<Path>,
    way: Way,
    rounds: usize,
) -> anyhow::Result<(Vec<f64>, usize)> {
    let command = format!("exec {} --after-ms {AFTER_MS}", program.as_ref().display());
    let session = match way {
        Way::Terminal => agent.start(&format!("stty -echo; {command}"), &[("pty", true.into())]).await?,
        Way::Poll | Way::Pattern | Way::Bytes => agent.start(&command, &[("stdin", true.into())]).await?,
    };
    if matches!(way, Way::Terminal) {
        // Without echo, only the stamps are output.
        agent.process("wait", &session, &[("input", true.into())]).await?;
    }
    let (mut samples, mut late) = (Vec::with_capacity(rounds), 0);
    for round in 0..WARM_UP + rounds {
        agent.process("write", &session, &[("data", "x\n".into())]).await?;
        let asked = now_ns();
        let (action, more): (_, Vec<(&str, Value)>) = match way {
            Way::Poll | Way::Terminal => ("poll", vec![]),
            Way::Pattern => ("wait", vec![("pattern", PATTERN.into())]),
            Way::Bytes => ("wait", vec![("bytes", 1.into())]),
        };
        let more = [more, vec![("timeout", TIMEOUT_MS.into())]].concat();
        let details = agent.process(action, &session, &more).await?;
        let got = now_ns();
        let text = details["aggregated"].as_str().context("text")?;
        let stamp: u64 = text.trim().parse().with_context(|| format!("no stamp in {text:?}"))?;
        if stamp < asked {
            late += 1;
        } else if round >= WARM_UP {
            samples.push(got.saturating_sub(stamp) as f64 / 1e6);
        }
    }
    agent.end(&session).await?;
    Ok((samples, late))
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both are far below what 64 bits hold.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
