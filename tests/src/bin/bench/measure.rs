//! The measurements. Each alternates between the sides in rounds, so that all
//! of them meet the same load.

mod echo;
mod memory;
mod parallel;
mod start;
mod stream;
mod warm;

use std::process::{Command, Stdio};

use anyhow::ensure;
use clap::ValueEnum;

use crate::approvals;
use crate::bed::Binaries;
use crate::report::Row;
use crate::sessions;
use crate::sshd::Sshd;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measurement {
    /// One call after the other.
    Warm,
    /// 32 calls at a time.
    Parallel,
    /// 1 GiB of output.
    Stream,
    /// A byte echoed by a terminal.
    Echo,
    /// Resident memory.
    Memory,
    /// Start of the programs.
    Start,
    /// A person's yes: how soon it holds, and what asking costs.
    Approvals,
    /// Agents' sessions: many, floods, waits, readers that stop.
    Sessions,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Figures to publish.
    Full,
    /// Only to see that it works.
    Quick,
}

impl Scale {
    /// One of two counts.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// The sides. Each measurement starts our programs afresh, so that none sees
/// what another left behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// Ours.
    pub(crate) binaries: &'a Binaries,
    /// None where OpenSSH is not installed.
    pub(crate) ssh: Option<&'a Sshd>,
    /// How much.
    pub(crate) scale: Scale,
}

impl Measurement {
    /// Measures.
    pub(crate) fn run(self, sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
        let _watchdog = sides.ssh.map(Sshd::watchdog);
        match self {
            Self::Warm => warm::run(sides),
            Self::Parallel => parallel::run(sides),
            Self::Stream => stream::run(sides),
            Self::Echo => echo::run(sides),
            Self::Memory => memory::run(sides),
            Self::Start => start::run(sides),
            Self::Approvals => approvals::run(sides),
            Self::Sessions => sessions::run(sides),
        }
    }
}

/// `/bin/sh -c TEXT` here. The standard library takes `posix_spawn` for it.
fn local_shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", text]).stdin(Stdio::null());
    command
}

/// The job that all sides do, without a network.
fn local_call(text: &str) -> anyhow::Result<Vec<u8>> {
    let output = local_shell(text).stderr(Stdio::null()).output()?;
    ensure!(output.status.success(), "`{text}` ended with {}", output.status);
    Ok(output.stdout)
}
