//! A program that was started, its lines on stderr with the time of each, and
//! its end. Also the watchdog that ends what hangs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use crate::procfs::Process;

/// Lines that may wait to be looked at; later ones are dropped, so that the
/// program never blocks on its stderr.
const LINES_MAX: usize = 256;
/// A program that does not stop by itself within this time is killed.
const STOP_WITHIN: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(2);

/// A running program. Stopped when dropped.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    process: Process,
    begun: Instant,
    lines: Receiver<(Instant, String)>,
}

impl Program {
    /// Starts it with no stdin and no stdout.
    pub(crate) fn start(name: &'static str, mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        let (sender, lines) = sync_channel(LINES_MAX);
        let stderr = child.stderr.take().context("stderr is a pipe")?;
        std::thread::spawn(move || forward(BufReader::new(stderr), &sender));
        let process = Process::of(child.id()).with_context(|| format!("{name} is not in /proc"))?;
        Ok(Self { name, child, process, begun, lines })
    }

    /// The process.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// Waits for a line that starts with `prefix`; yields it, and the time from
    /// the start of the program to the line.
    pub(crate) fn line(&self, prefix: &str, within: Duration) -> anyhow::Result<(Duration, String)> {
        let deadline = Instant::now() + within;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((at, line)) if line.starts_with(prefix) => return Ok((at - self.begun, line)),
                Ok((_, line)) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{} did not print `{prefix}…` within {within:?}: {}", self.name, seen.join(" | "))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{} ended before it printed `{prefix}…`: {}", self.name, seen.join(" | "))
                }
            }
        }
    }

    /// TERM, and KILL when that is not enough.
    pub(crate) fn stop(&mut self) {
        stop(&mut self.child);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

fn forward(stderr: impl BufRead, lines: &SyncSender<(Instant, String)>) {
    for line in stderr.lines().map_while(Result::ok) {
        // Full or nobody listens: the line is not needed.
        let _ = lines.try_send((Instant::now(), line));
    }
}

/// TERM, a bounded wait, KILL.
pub(crate) fn stop(child: &mut Child) {
    if let (Ok(None), Some(process)) = (child.try_wait(), Process::of(child.id())) {
        process.signal(Signal::TERM);
    }
    let deadline = Instant::now() + STOP_WITHIN;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            // An error means that it has ended.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Kills processes when it is not dropped in time, so that a blocking read on
/// one of them ends.
#[derive(Debug)]
pub(crate) struct Watchdog {
    _dropped: Sender<()>,
}

impl Watchdog {
    /// Guards `processes` for `limit`.
    pub(crate) fn new(limit: Duration, processes: Vec<Process>) -> Self {
        let (sender, dropped) = channel::<()>();
        std::thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                for process in processes {
                    process.signal(Signal::KILL);
                }
            }
        });
        Self { _dropped: sender }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_end() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo one >&2; echo two three >&2; exec sleep 60"]);
        let mut program = Program::start("a shell", command).expect("starts");
        let (_, line) = program.line("two", Duration::from_secs(10)).expect("prints");
        assert_eq!(line, "two three");
        program.stop();
        assert!(!program.process().is_alive());
        let missing = program.line("four", Duration::from_secs(10)).expect_err("it ended");
        assert_eq!(missing.to_string(), "a shell ended before it printed `four…`: ");
    }

    #[test]
    fn the_watchdog_bites() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("starts");
        let process = Process::of(child.id()).expect("runs");
        let _watchdog = Watchdog::new(Duration::from_millis(1), vec![process]);
        assert!(!child.wait().expect("ends").success());
    }
}
