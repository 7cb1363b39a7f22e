//! One call after the other over connections that are there.

use std::time::Instant;

use anyhow::ensure;

use super::{Sides, local_call};
use crate::bed::{Bed, call, shell};
use crate::mux;
use crate::report::{Row, Samples};
use crate::stats::ms;
use crate::targets::{Metric, WARM_ECHO, WARM_TRUE};

const ROUNDS: usize = 20;
/// Calls before the first that counts.
const WARM_UP: usize = 20;

const JOBS: [(Metric, &str, &str); 2] = [(WARM_TRUE, "true", ""), (WARM_ECHO, "echo hi", "hi\n")];

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let each = sides.scale.pick(100, 10);
    let mut samples = [Samples::default(), Samples::default()];
    for ((_, text, output), _) in JOBS.iter().zip(&samples) {
        round(sides, &bed, text, output, WARM_UP)?;
    }
    for _ in 0..ROUNDS {
        for ((_, text, output), samples) in JOBS.iter().zip(&mut samples) {
            let round = round(sides, &bed, text, output, each)?;
            samples.ours.extend(round.ours);
            samples.openssh.extend(round.openssh);
            samples.local.extend(round.local);
        }
    }
    let note =
        "one client; OpenSSH over its control socket, in this process; local is posix_spawn of /bin/sh";
    Ok(JOBS.iter().zip(&samples).map(|((metric, ..), samples)| Row::new(*metric, samples, note)).collect())
}

/// `count` calls of each side.
fn round(
    sides: Sides<'_>,
    bed: &Bed,
    text: &'static str,
    output: &'static str,
    count: usize,
) -> anyhow::Result<Samples> {
    let mut tools = bed.tools();
    let ours = bed.run(async move {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            let bytes = call(&mut tools, shell(text)).await?;
            samples.push(ms(begun.elapsed()));
            ensure!(bytes == output.len() as u64, "`{text}` printed {bytes} bytes");
        }
        Ok(samples)
    })?;
    let openssh = match sides.ssh {
        Some(ssh) => blocking(count, output, || mux::call(ssh.control(0), &ssh.null, text))?,
        None => Vec::new(),
    };
    let local = blocking(count, output, || local_call(text))?;
    Ok(Samples { ours, openssh, local })
}

fn blocking(
    count: usize,
    output: &str,
    mut call: impl FnMut() -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        let got = call()?;
        samples.push(ms(begun.elapsed()));
        ensure!(got == output.as_bytes(), "wrong output: {:?}", String::from_utf8_lossy(&got));
    }
    Ok(samples)
}
