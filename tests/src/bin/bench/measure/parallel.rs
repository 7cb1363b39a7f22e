//! 32 callers at a time: ours on one client connection, OpenSSH's on four.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use tokio::task::JoinSet;

use super::{Sides, local_call};
use crate::bed::{Bed, call, shell};
use crate::mux;
use crate::report::{Row, Samples};
use crate::stats::ms;
use crate::targets::{PARALLEL, PARALLEL_EACH};

const CALLERS: usize = 32;
const ROUNDS: usize = 4;
const JOB: &str = "true";

/// One round of one side.
struct Round {
    calls_per_s: f64,
    each: Vec<f64>,
}

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let calls = sides.scale.pick(500, 64);
    let (mut rates, mut each) = (Samples::default(), Samples::default());
    // Every caller once, not counted.
    ours(&bed, CALLERS)?;
    for _ in 0..ROUNDS {
        let round = ours(&bed, calls)?;
        rates.ours.push(round.calls_per_s);
        each.ours.extend(round.each);
        if let Some(ssh) = sides.ssh {
            let round = threads(calls, |caller| mux::call(ssh.control(caller), &ssh.null, JOB).map(drop))?;
            rates.openssh.push(round.calls_per_s);
            each.openssh.extend(round.each);
        }
        let round = threads(calls, |_| local_call(JOB).map(drop))?;
        rates.local.push(round.calls_per_s);
        each.local.extend(round.each);
    }
    let note = format!("{} calls of `{JOB}`; ours on 1 connection, OpenSSH on 4", ROUNDS * calls);
    Ok(vec![Row::new(PARALLEL, &rates, note), Row::new(PARALLEL_EACH, &each, "")])
}

fn ours(bed: &Bed, calls: usize) -> anyhow::Result<Round> {
    let tools = bed.tools();
    bed.run(async move {
        let left = Arc::new(AtomicUsize::new(calls));
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        for _ in 0..CALLERS {
            let (mut tools, left) = (tools.clone(), Arc::clone(&left));
            callers.spawn(async move {
                let mut each = Vec::new();
                while take(&left) {
                    let begun = Instant::now();
                    call(&mut tools, shell(JOB)).await?;
                    each.push(ms(begun.elapsed()));
                }
                anyhow::Ok(each)
            });
        }
        let mut each = Vec::with_capacity(calls);
        while let Some(caller) = callers.join_next().await {
            each.extend(caller.context("a caller")??);
        }
        Ok(Round { calls_per_s: calls as f64 / begun.elapsed().as_secs_f64(), each })
    })
}

fn threads(calls: usize, job: impl Fn(usize) -> anyhow::Result<()> + Sync) -> anyhow::Result<Round> {
    let left = AtomicUsize::new(calls);
    let (job, left) = (&job, &left);
    let begun = Instant::now();
    let callers = std::thread::scope(|scope| {
        let spawn = |caller| {
            scope.spawn(move || {
                let mut each = Vec::new();
                while take(left) {
                    let begun = Instant::now();
                    job(caller)?;
                    each.push(ms(begun.elapsed()));
                }
                anyhow::Ok(each)
            })
        };
        let callers: Vec<_> = (0..CALLERS).map(spawn).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().map_err(|_| anyhow!("a caller panicked"))?)
            .collect::<Vec<_>>()
    });
    let elapsed = begun.elapsed();
    let mut each = Vec::with_capacity(calls);
    for caller in callers {
        each.extend(caller?);
    }
    Ok(Round { calls_per_s: calls as f64 / elapsed.as_secs_f64(), each })
}

/// Takes one call, if any is left.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
