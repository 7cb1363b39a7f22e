//! What a followed session looks like on this side: its bytes on stdout and
//! stderr, or one JSON line per event.
//!
//! Writing happens on a thread of its own, so that a slow pipe never stops the
//! connection's keepalive. The queue is bounded: a slow reader slows the
//! command.

use std::io;
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fault::Fault;
use proto::v1 as pb;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::output::{exit_json, exit_reason, safe, session_json};

/// Pieces that may wait for the pipe; each is at most 64 KiB.
const QUEUE_MAX: usize = 16;

#[derive(Debug)]
enum Piece {
    Out(Bytes),
    Err(Bytes),
}

/// Writes a session.
#[derive(Debug)]
pub(in super::super) struct Renderer {
    json: bool,
    pieces: mpsc::Sender<Piece>,
    thread: JoinHandle<io::Result<()>>,
}

/// Nobody reads our output any more.
#[derive(Debug)]
pub(in super::super) struct BrokenPipe;

impl Renderer {
    pub(in super::super) fn new(json: bool) -> Self {
        let (pieces, mut queue) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::spawn(move || {
            // Past the line buffer of the standard library, which would look
            // for line ends in every byte.
            let (out, err) = (io::stdout(), io::stderr());
            while let Some(piece) = queue.blocking_recv() {
                match piece {
                    Piece::Out(bytes) => write(&out, &bytes)?,
                    Piece::Err(bytes) => write(&err, &bytes)?,
                }
            }
            Ok(())
        });
        Self { json, pieces, thread }
    }

    pub(in super::super) async fn started(&self, started: &pb::Started) -> Result<(), BrokenPipe> {
        if !self.json {
            if started.left_out_env.is_empty() {
                return Ok(());
            }
            let names: Vec<_> = started.left_out_env.iter().map(|name| safe(name)).collect();
            let text = "note: not passed to the command, since it starts a shell in allowlist mode";
            return self.note(&format!("{text}: {}", names.join(", "))).await;
        }
        let session = started.session.as_ref().map(session_json);
        self.line(json!({
            "event": "started",
            "session": session,
            "existing": started.existing,
            "cwd": (!started.workdir.is_empty()).then_some(&started.workdir),
            "leftOutEnv": started.left_out_env,
        }))
        .await
    }

    pub(in super::super) async fn output(&self, records: Vec<pb::Record>) -> Result<(), BrokenPipe> {
        for record in records {
            let is_stderr = record.stream() == pb::Stream::Stderr;
            if self.json {
                let mut line = json!({
                    "event": "output",
                    "stream": if is_stderr { "stderr" } else { "stdout" },
                    "offset": record.offset,
                    "timeNs": record.time_ns,
                });
                // Bytes are the truth: text only where it is the same bytes.
                match std::str::from_utf8(&record.data) {
                    Ok(text) => line["text"] = text.into(),
                    Err(_) => line["base64"] = STANDARD.encode(&record.data).into(),
                }
                self.line(line).await?;
            } else if is_stderr {
                self.send(Piece::Err(record.data)).await?;
            } else {
                self.send(Piece::Out(record.data)).await?;
            }
        }
        Ok(())
    }

    pub(in super::super) async fn gap(&self, gap: &pb::Gap) -> Result<(), BrokenPipe> {
        if self.json {
            return self.line(json!({ "event": "gap", "from": gap.from, "to": gap.to })).await;
        }
        self.note(&format!(
            "{} bytes of output are no longer retained [{}, {})",
            gap.to - gap.from,
            gap.from,
            gap.to
        ))
        .await
    }

    pub(in super::super) async fn exit(&self, exit: &pb::Exit) -> Result<(), BrokenPipe> {
        if self.json {
            let mut line = exit_json(exit);
            line["event"] = "exit".into();
            return self.line(line).await;
        }
        use pb::exit::How;
        let text = match &exit.how {
            _ if exit.timed_out => {
                "the time limit passed and the command was killed; side effects may have happened, check before you repeat it"
                    .to_owned()
            }
            Some(How::CouldNotStart(failure)) => format!("the command could not be started: {}", failure.detail),
            Some(How::Lost(_)) | None => {
                "the session's holder died; the command was ended with it and nobody saw how".to_owned()
            }
            Some(How::Unreaped(_)) => "the command is stuck in the kernel and did not die".to_owned(),
            _ if !exit.note.is_empty() => exit.note.clone(),
            Some(How::Signal(signal)) if exit_reason(exit) == "signal" => format!("ended by signal {signal}"),
            Some(How::Signal(_) | How::Code(_)) => return Ok(()),
        };
        self.note(&text).await
    }

    pub(in super::super) async fn detached(&self, session: &str) -> Result<(), BrokenPipe> {
        if self.json {
            return self.line(json!({ "event": "detached", "sessionId": session })).await;
        }
        self.send(Piece::Out(Bytes::from(format!("{session}\n")))).await
    }

    /// A fault that does not end the session.
    pub(in super::super) async fn trouble(&self, event: &str, fault: &Fault) -> Result<(), BrokenPipe> {
        if self.json {
            return self.line(json!({ "event": event, "error": fault })).await;
        }
        let hint = fault.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
        self.note(&format!("{fault}{hint}")).await
    }

    /// A line of our own, on stderr.
    pub(in super::super) async fn note(&self, text: &str) -> Result<(), BrokenPipe> {
        // A terminal in raw mode needs the carriage return.
        self.send(Piece::Err(Bytes::from(format!("gateway: {text}\r\n").replace("\r\n", newline())))).await
    }

    /// Waits until everything is written.
    pub(in super::super) async fn finish(self) -> Result<(), BrokenPipe> {
        drop(self.pieces);
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        match joined {
            Ok(Ok(Ok(()))) => Ok(()),
            _ => Err(BrokenPipe),
        }
    }

    async fn line(&self, value: Value) -> Result<(), BrokenPipe> {
        self.send(Piece::Out(Bytes::from(format!("{value}\n")))).await
    }

    async fn send(&self, piece: Piece) -> Result<(), BrokenPipe> {
        self.pieces.send(piece).await.map_err(|_| BrokenPipe)
    }
}

fn newline() -> &'static str {
    use std::io::IsTerminal as _;
    if io::stderr().is_terminal() { "\r\n" } else { "\n" }
}

fn write(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Somebody shares the terminal and made it non-blocking.
            Err(Errno::AGAIN) => {
                let mut ready = [PollFd::new(&to, PollFlags::OUT)];
                poll(&mut ready, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
