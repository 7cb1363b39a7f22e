//! 1 GiB of output to a reader that throws it away.
//!
//! Timed from the first byte to the last, so that OpenSSH's key exchange, which
//! our open connection does not need, is not counted against it.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use proto::v1 as pb;
use proto::v1::session_event::Event;

use super::{Sides, local_shell};
use crate::bed::{Bed, Tools, shell};
use crate::procfs::Process;
use crate::program::Watchdog;
use crate::report::{Row, Samples};
use crate::stats::mb_per_s;
use crate::targets::STREAM;

const READ_WITHIN: Duration = Duration::from_secs(120);
const BUFFER: usize = 256 * 1024;

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let bytes: u64 = sides.scale.pick(1 << 30, 1 << 26);
    let command = format!("head -c {bytes} /dev/zero");
    let mut samples = Samples::default();
    for _ in 0..sides.scale.pick(3, 1) {
        let (tools, text) = (bed.tools(), command.clone());
        let elapsed = bed.run(async move { ours(tools, &text, bytes).await })?;
        samples.ours.push(mb_per_s(bytes, elapsed));
        if let Some(ssh) = sides.ssh {
            let mut client = ssh.client();
            client.args(["h", &command]);
            samples.openssh.push(mb_per_s(bytes, drained(client, bytes)?));
        }
        samples.local.push(mb_per_s(bytes, drained(local_shell(&command), bytes)?));
    }
    Ok(vec![Row::new(STREAM, &samples, format!("{bytes} bytes each, counted; first byte to last"))])
}

async fn ours(mut tools: Tools, command: &str, bytes: u64) -> anyhow::Result<Duration> {
    let mut events = tools.exec(shell(command)).await?.into_inner();
    let (mut got, mut first) = (0, None);
    while let Some(event) = events.message().await? {
        match event.event {
            Some(Event::Output(output)) => {
                first.get_or_insert_with(Instant::now);
                got += output.records.iter().map(|record| record.data.len() as u64).sum::<u64>();
            }
            Some(Event::Exit(pb::Exit { how: Some(pb::exit::How::Code(0)), .. })) => {
                ensure!(got == bytes, "{got} of {bytes} bytes arrived");
                return Ok(first.context("there was output")?.elapsed());
            }
            Some(Event::Started(_)) => {}
            other => bail!("a flood without loss was expected, not {other:?}"),
        }
    }
    bail!("the stream ended before the command did")
}

fn drained(mut command: Command, bytes: u64) -> anyhow::Result<Duration> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let _watchdog = Watchdog::new(READ_WITHIN, Process::of(child.id()).into_iter().collect());
    let elapsed = drain(&mut child, bytes);
    let status = child.wait()?;
    ensure!(status.success(), "the reader's program ended with {status}");
    elapsed
}

fn drain(child: &mut Child, bytes: u64) -> anyhow::Result<Duration> {
    let mut output = child.stdout.take().context("stdout is a pipe")?;
    let (mut buffer, mut got, mut first) = (vec![0; BUFFER], 0, None);
    loop {
        let count = output.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        first.get_or_insert_with(Instant::now);
        got += count as u64;
    }
    ensure!(got == bytes, "{got} of {bytes} bytes arrived");
    Ok(first.context("there was output")?.elapsed())
}
