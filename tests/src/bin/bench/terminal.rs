//! Typing into a terminal and waiting for what comes back: ours over
//! `Tools.Interact`, or any program in a local pseudo-terminal.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use proto::v1 as pb;
use proto::v1::client_frame::Frame;
use proto::v1::session_event::Event;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::bed::{Tools, shell};
use crate::procfs::Process;
use crate::program::Watchdog;
use crate::stats::ms;

const COLUMNS: u16 = 120;
const ROWS: u16 = 30;
/// Frames that may wait to be sent; the typist sends one at a time.
const FRAMES_MAX: usize = 4;
/// A terminal that is used for longer hangs.
const USED_WITHIN: Duration = Duration::from_secs(300);
/// Longest wait for the end of a killed command.
const END_WITHIN: Duration = Duration::from_secs(10);
/// A line in line mode holds 4095 bytes; lines are ended well before.
const LINE_MAX: usize = 1000;

/// Who echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// `cat`, in a terminal in raw mode.
    Program,
    /// The terminal itself, in line mode.
    Kernel,
}

impl Echo {
    /// What runs in the terminal.
    pub(crate) fn script(self) -> &'static str {
        match self {
            Self::Program => "stty raw -echo; echo READY; exec cat",
            Self::Kernel => "echo READY; exec cat",
        }
    }
}

/// A terminal that someone types into.
pub(crate) trait Terminal: Send {
    /// Sends bytes.
    fn write(&mut self, bytes: &'static [u8]) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// The next bytes, at least one.
    fn read(&mut self) -> impl Future<Output = anyhow::Result<Vec<u8>>> + Send;
}

/// Types one byte after the other.
#[derive(Debug)]
pub(crate) struct Typist<T> {
    terminal: T,
    echo: Echo,
    /// Bytes typed since the last end of line.
    typed: usize,
}

impl<T: Terminal> Typist<T> {
    /// Waits until the script is ready for bytes.
    pub(crate) async fn new(mut terminal: T, echo: Echo) -> anyhow::Result<Self> {
        let mut seen = Vec::new();
        while !(seen.ends_with(b"\n") && seen.windows(5).any(|part| part == b"READY")) {
            seen.extend(terminal.read().await?);
            ensure!(seen.len() < 4096, "no READY in {}", String::from_utf8_lossy(&seen));
        }
        Ok(Self { terminal, echo, typed: 0 })
    }

    /// Milliseconds from each byte to its echo.
    pub(crate) async fn samples(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            self.terminal.write(b"x").await?;
            let back = self.terminal.read().await?;
            samples.push(ms(begun.elapsed()));
            ensure!(back == b"x", "typed `x`, got {:?}", String::from_utf8_lossy(&back));
            self.typed += 1;
            if self.typed == LINE_MAX {
                self.end_line().await?;
            }
        }
        Ok(samples)
    }

    /// Ends the line and compares everything that comes back, so that an echo
    /// too many, which would make all later ones look fast, is a failure.
    async fn end_line(&mut self) -> anyhow::Result<()> {
        self.terminal.write(b"\n").await?;
        let expected = match self.echo {
            Echo::Program => "\n".to_owned(),
            // The end of the line, then `cat` prints the line.
            Echo::Kernel => format!("\r\n{}\r\n", "x".repeat(self.typed)),
        };
        let mut back = Vec::new();
        while back.len() < expected.len() {
            back.extend(self.terminal.read().await?);
        }
        ensure!(back == expected.as_bytes(), "wrong echo of a line: {:?}", String::from_utf8_lossy(&back));
        self.typed = 0;
        Ok(())
    }

    /// Checks the last line; yields the terminal.
    pub(crate) async fn finish(mut self) -> anyhow::Result<T> {
        self.end_line().await?;
        Ok(self.terminal)
    }
}

/// A terminal on the node.
#[derive(Debug)]
pub(crate) struct Remote {
    frames: mpsc::Sender<pb::ClientFrame>,
    events: Streaming<pb::SessionEvent>,
}

impl Remote {
    /// Starts `script` in a terminal.
    pub(crate) async fn open(mut tools: Tools, script: &str) -> anyhow::Result<Self> {
        let (frames, receiver) = mpsc::channel(FRAMES_MAX);
        let start = pb::ExecRequest {
            stdin: pb::Stdin::Open.into(),
            terminal: Some(pb::WindowSize { columns: COLUMNS.into(), rows: ROWS.into() }),
            ..shell(script)
        };
        frames.send(frame(Frame::Start(start))).await?;
        let events = tools.interact(ReceiverStream::new(receiver)).await?.into_inner();
        Ok(Self { frames, events })
    }

    /// Kills the command and sees it end.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        self.frames.send(frame(Frame::Kill(true))).await?;
        let end = async {
            while let Some(event) = self.events.message().await? {
                if let Some(Event::Exit(_)) = event.event {
                    break;
                }
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(END_WITHIN, end).await.context("the command in the terminal did not end")?
    }
}

impl Terminal for Remote {
    async fn write(&mut self, bytes: &'static [u8]) -> anyhow::Result<()> {
        Ok(self.frames.send(frame(Frame::Input(bytes.into()))).await?)
    }

    async fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        loop {
            match self.events.message().await?.and_then(|event| event.event) {
                Some(Event::Output(output)) => {
                    return Ok(output.records.iter().flat_map(|r| r.data.to_vec()).collect());
                }
                Some(Event::Started(_) | Event::InputProgress(_)) => {}
                other => bail!("the terminal sent no output but {other:?}"),
            }
        }
    }
}

fn frame(frame: Frame) -> pb::ClientFrame {
    pb::ClientFrame { frame: Some(frame) }
}

/// A program in a local pseudo-terminal. Killed when dropped. Its reads and
/// writes block; they are bounded by a watchdog.
pub(crate) struct Local {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    process: Process,
    _watchdog: Watchdog,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Local {
    /// Starts program and arguments.
    pub(crate) fn open(words: &[String]) -> anyhow::Result<Self> {
        let pair = native_pty_system().openpty(PtySize {
            rows: ROWS,
            cols: COLUMNS,
            pixel_width: 0,
            pixel_height: 0,
        })?;
        let mut command = CommandBuilder::from_argv(words.iter().map(Into::into).collect());
        command.cwd("/");
        let child = pair.slave.spawn_command(command)?;
        let process = child.process_id().and_then(Process::of).context("the program ended at once")?;
        Ok(Self {
            reader: pair.master.try_clone_reader()?,
            writer: pair.master.take_writer()?,
            child,
            process,
            _watchdog: Watchdog::new(USED_WITHIN, vec![process]),
        })
    }
}

impl Terminal for Local {
    async fn write(&mut self, bytes: &'static [u8]) -> anyhow::Result<()> {
        Ok(self.writer.write_all(bytes)?)
    }

    async fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut buffer = [0; 4096];
        let count = self.reader.read(&mut buffer)?;
        ensure!(count > 0, "the terminal was closed");
        Ok(buffer[..count].to_vec())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
        // It was killed; this only reaps it.
        let _ = self.child.wait();
    }
}
