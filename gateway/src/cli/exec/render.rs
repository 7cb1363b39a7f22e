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

use super::super::approvals::record;
use super::super::output::{exit_json, exit_reason, safe, session_json};
use crate::clock;

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
            for note in started_notes(started) {
                self.note(&note).await?;
            }
            return Ok(());
        }
        let session = started.session.as_ref().map(session_json);
        self.line(json!({
            "event": "started",
            "session": session,
            "existing": started.existing,
            "cwd": (!started.workdir.is_empty()).then_some(&started.workdir),
            "leftOutEnv": started.left_out_env,
            "approvalId": (!started.approval_id.is_empty()).then_some(&started.approval_id),
            "stored": started.stored,
            "notStored": (!started.not_stored.is_empty()).then_some(&started.not_stored),
        }))
        .await
    }

    /// A person is asked. Nothing runs yet.
    pub(in super::super) async fn approval_pending(&self, approval: &pb::Approval) -> Result<(), BrokenPipe> {
        if self.json {
            return self.line(pending_json(approval)).await;
        }
        for note in pending_notes(approval, clock::now_ms()) {
            self.note(&note).await?;
        }
        Ok(())
    }

    /// The id of a request that nobody here waits for. As JSON it was told already.
    pub(in super::super) async fn approval_id(&self, id: &str) -> Result<(), BrokenPipe> {
        if self.json {
            return Ok(());
        }
        self.send(Piece::Out(Bytes::from(format!("{}\n", safe(id))))).await
    }

    /// It was decided, or closed undecided.
    pub(in super::super) async fn approval_closed(&self, approval: &pb::Approval) -> Result<(), BrokenPipe> {
        if self.json {
            let mut line = record::json(approval);
            line["event"] = "approval-resolved".into();
            return self.line(line).await;
        }
        self.note(&record::outcome(approval)).await
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
        self.note(&safe(&format!("{fault}{hint}"))).await
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

/// What a person is told when their command starts.
fn started_notes(started: &pb::Started) -> Vec<String> {
    let mut notes = Vec::new();
    if !started.left_out_env.is_empty() {
        let names: Vec<_> = started.left_out_env.iter().map(|name| safe(name)).collect();
        let text = "note: not passed to the command, since it starts a shell in allowlist mode";
        notes.push(format!("{text}: {}", names.join(", ")));
    }
    notes.extend(started.stored.iter().map(|rule| format!("note: allowed from now on: {}", safe(rule))));
    if !started.not_stored.is_empty() {
        notes.push(format!("note: allowed this once, nothing was kept: {}", safe(&started.not_stored)));
    }
    notes
}

/// What a person is told while somebody else is asked.
fn pending_notes(approval: &pb::Approval, now_ms: i64) -> [String; 3] {
    let plan = approval.plan.clone().unwrap_or_default();
    let why = if plan.why.is_empty() { plan.reasons.join(", ") } else { plan.why };
    let slug = record::slug(approval);
    [
        format!("needs approval {}: {}", record::one_line(&approval.approval_id), record::one_line(&why)),
        format!("open for {}", record::time_left(approval, now_ms)),
        format!("gateway approvals show {slug}; gateway approvals resolve {slug} allow-once|deny"),
    ]
}

/// The tool result of a command that waits for a yes (runtime spec §1.10), and what else is known of it.
fn pending_json(approval: &pb::Approval) -> Value {
    let mut line = record::json(approval);
    line["event"] = "approval-pending".into();
    line["status"] = "approval-pending".into();
    let plan = approval.plan.clone().unwrap_or_default();
    if plan.terminal || plan.stdin_open {
        line["warningText"] = "the caller can type into the command".into();
    }
    line
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_while_somebody_is_asked() {
        let plan = pb::Plan {
            command_text: "ls".to_owned(),
            workdir: "/w".to_owned(),
            why: "`ls` is not allowed\u{1b}[2J".to_owned(),
            stdin_open: true,
            ..pb::Plan::default()
        };
        let approval = pb::Approval {
            approval_id: "0123456789abcdef".to_owned(),
            node_id: "n1".to_owned(),
            plan: Some(plan),
            allowed: vec![pb::Decision::AllowOnce.into(), pb::Decision::Deny.into(), 77],
            expires_unix_ms: 1_800_000,
            ..pb::Approval::default()
        };
        let want = [
            "needs approval 0123456789abcdef: `ls` is not allowed\\u{1b}[2J",
            "open for 30 min",
            "gateway approvals show 01234567; gateway approvals resolve 01234567 allow-once|deny",
        ];
        assert_eq!(pending_notes(&approval, 0), want);
        let line = pending_json(&approval);
        let want = [
            ("event", json!("approval-pending")),
            ("status", json!("approval-pending")),
            ("approvalId", json!("0123456789abcdef")),
            ("approvalSlug", json!("01234567")),
            ("expiresAtMs", json!(1_800_000)),
            ("allowedDecisions", json!(["allow-once", "deny"])),
            ("host", json!("node")),
            ("nodeId", json!("n1")),
            ("command", json!("ls")),
            ("cwd", json!("/w")),
            ("warningText", json!("the caller can type into the command")),
        ];
        for (key, value) in want {
            assert_eq!(line[key], value, "{key}");
        }
    }

    #[test]
    fn notes_about_a_start() {
        let started = pb::Started {
            left_out_env: vec!["A\n".to_owned()],
            stored: vec!["/usr/bin/git with any arguments".to_owned()],
            not_stored: "no\u{202e}".to_owned(),
            ..pb::Started::default()
        };
        let want = [
            "note: not passed to the command, since it starts a shell in allowlist mode: A\\n",
            "note: allowed from now on: /usr/bin/git with any arguments",
            "note: allowed this once, nothing was kept: no\\u{202e}",
        ];
        assert_eq!(started_notes(&started), want);
        assert_eq!(started_notes(&pb::Started::default()), [""; 0]);
    }
}
