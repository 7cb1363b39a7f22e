//! One byte typed into a terminal until it comes back.

use super::Sides;
use crate::bed::Bed;
use crate::report::{Row, Samples};
use crate::targets::{ECHO_COOKED, ECHO_RAW};
use crate::terminal::{Echo, Local, Remote, Typist};

const ROUNDS: usize = 20;
const WARM_UP: usize = 50;

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let raw = samples(sides, &bed, Echo::Program)?;
    let cooked = samples(sides, &bed, Echo::Kernel)?;
    let note = "OpenSSH is `ssh -tt` in a local pty, so it has one pty more to pass";
    Ok(vec![Row::new(ECHO_RAW, &raw, note), Row::new(ECHO_COOKED, &cooked, note)])
}

fn samples(sides: Sides<'_>, bed: &Bed, echo: Echo) -> anyhow::Result<Samples> {
    let tools = bed.tools();
    let mut ours =
        bed.run(async move { Typist::new(Remote::open(tools, echo.script()).await?, echo).await })?;
    // The local ones block, so their futures never wait: any executor will do.
    let blocking = tokio::runtime::Builder::new_current_thread().build()?;
    let open = |words: &[String]| blocking.block_on(Typist::new(Local::open(words)?, echo));
    let mut openssh = match sides.ssh {
        Some(ssh) => {
            let mut words = ssh.client_words();
            words.extend(["-tt", "h", echo.script()].map(str::to_owned));
            Some(open(&words)?)
        }
        None => None,
    };
    let mut local = open(&["/bin/sh", "-c", echo.script()].map(str::to_owned))?;

    let each = sides.scale.pick(100, 10);
    let mut samples = Samples::default();
    for round in 0..=ROUNDS {
        let count = if round == 0 { WARM_UP } else { each };
        let typed;
        (ours, typed) = bed.run(async move {
            let typed = ours.samples(count).await?;
            Ok((ours, typed))
        })?;
        let over_ssh = match &mut openssh {
            Some(typist) => blocking.block_on(typist.samples(count))?,
            None => Vec::new(),
        };
        let here = blocking.block_on(local.samples(count))?;
        if round > 0 {
            samples.ours.extend(typed);
            samples.openssh.extend(over_ssh);
            samples.local.extend(here);
        }
    }
    bed.run(async move { ours.finish().await?.close().await })?;
    if let Some(typist) = openssh {
        blocking.block_on(typist.finish())?;
    }
    blocking.block_on(local.finish())?;
    Ok(samples)
}
