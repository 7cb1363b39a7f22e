//! Following a session from the command line, across a gateway that restarts.

use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, client_frame::Frame, session_event::Event};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::super::client::Connection;
use super::super::output::BROKEN_PIPE;
use super::super::terminal::{RawMode, Viewer, size};
use super::input::{self, Asked, Signals, Source, Typed};
use super::render::{BrokenPipe, Renderer};
use crate::input::Writer;

/// A gateway that went away may come back within this time, and its node too.
const COME_BACK_WITHIN: Duration = Duration::from_secs(30);
/// Unconfirmed input: less than the gateway takes before it stops reading us,
/// so that a Ctrl-C always gets through.
const INPUT_WINDOW: usize = 128 * 1024;
/// Frames that may wait for the gateway.
const FRAMES_MAX: usize = 4;
/// How long a person who leaves waits for what they typed to be taken.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Exit code of a person who left: 128 + SIGINT.
const LEFT: u8 = 130;
/// SIGINT.
const INTERRUPT: i32 = 2;
/// Ctrl-C, as a terminal in raw mode gives it.
const CTRL_C: u8 = 3;

/// What leaving does to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Leave {
    /// It ends: a command in the foreground.
    KillsIt,
    /// It goes on: somebody else's session.
    KeepsIt,
    /// It goes on, and we leave as soon as it started.
    AtOnce,
}

/// One followed session.
#[derive(Debug)]
pub(in super::super) struct Follower {
    pub(in super::super) connection: Connection,
    pub(in super::super) renderer: Renderer,
    pub(in super::super) source: Source,
    pub(in super::super) leave: Leave,
}

/// How one connection's worth of following ended.
enum Outcome {
    Code(u8),
    /// The gateway went away; the session did not.
    Lost(Fault),
    Failed(Fault),
}

/// What is known of the session, to find it again.
#[derive(Debug)]
struct Known {
    session: String,
    node: String,
    /// Merged offset of the first byte that was not written out yet.
    offset: u64,
    /// Set from the loss of the gateway until something is heard again.
    away: Option<Away>,
    /// What this caller does while a person is asked.
    wait: pb::ApprovalWait,
    /// A person is asked; nothing runs yet.
    asked: bool,
    /// Input that the node has not confirmed.
    input: Writer,
    /// The person's terminal.
    viewer: Viewer,
}

/// A gateway that is away: until when it is waited for, and how patiently.
#[derive(Debug)]
struct Away {
    until: Instant,
    backoff: link::Backoff,
}

impl Follower {
    /// Follows to the end; yields the exit code.
    pub(in super::super) async fn run(mut self, first: Frame) -> Result<u8, Fault> {
        let terminal_error = |e: std::io::Error| Fault::new(ErrorCode::Internal, format!("terminal: {e}"));
        let mut raw = match self.source {
            Source::Terminal => Some(RawMode::enter().map_err(terminal_error)?),
            Source::None | Source::Stream | Source::Attached => None,
        };
        // The sender lives on: a queue without one is the end of typing.
        let (_undecided, nothing_yet) = mpsc::channel(1);
        let mut typed = match self.source {
            Source::Attached => nothing_yet,
            source => input::start(source),
        };
        let mut signals = Signals::new(self.source).map_err(terminal_error)?;
        let mut known = Known::new();
        if let Frame::Start(request) = &first {
            known.wait = request.approval_wait();
        }
        let first = known.as_writer(first);
        let mut frame = first.clone();
        let outcome = loop {
            let outcome = self.once(frame, &mut known, &mut typed, &mut signals, &mut raw).await;
            let fault = match outcome {
                Ok(Outcome::Code(code)) => break Ok(code),
                Ok(Outcome::Failed(fault)) => break Err(fault),
                Ok(Outcome::Lost(fault)) => fault,
                Err(BrokenPipe) => break Ok(BROKEN_PIPE),
            };
            if known.away.is_none() {
                let note = format!("the gateway went away ({fault}); trying to find the session again");
                if self.renderer.note(&note).await.is_err() {
                    break Ok(BROKEN_PIPE);
                }
            }
            let Some((pause, left)) = known.away.get_or_insert_with(Away::begin).next() else {
                break Err(unknown(&known, &fault));
            };
            let back = async {
                tokio::time::sleep(pause).await;
                self.connection.again(left).await
            };
            let back = tokio::select! {
                back = back => back,
                () = signals.interrupted() => Err(fault),
            };
            match back {
                Ok(connection) => self.connection = connection,
                Err(fault) => break Err(unknown(&known, &fault)),
            }
            known.input.rewind();
            // It closed what was open; the run is asked about anew.
            known.asked = false;
            frame = known.again(&first, self.leave);
        };
        // All output first, then the terminal as it was.
        let finished = self.renderer.finish().await;
        drop(known.viewer);
        drop(raw.take());
        match finished {
            Ok(()) => outcome,
            Err(BrokenPipe) => outcome.map(|_| BROKEN_PIPE),
        }
    }

    async fn once(
        &mut self,
        first: Frame,
        known: &mut Known,
        typed: &mut mpsc::Receiver<Typed>,
        signals: &mut Signals,
        raw: &mut Option<RawMode>,
    ) -> Result<Outcome, BrokenPipe> {
        let (frames, stream) = mpsc::channel(FRAMES_MAX);
        // The queue is new and empty.
        let _ = frames.try_send(pb::ClientFrame { frame: Some(first) });
        let opened = self.connection.tools().interact(ReceiverStream::new(stream)).await;
        let mut events = match opened {
            Ok(reply) => reply.into_inner(),
            Err(status) => return Ok(failed(&status, known)),
        };
        let mut typing = true;
        // The person leaves when what they typed before is taken.
        let mut leave_by: Option<Instant> = None;
        loop {
            if leave_by.is_some() && !known.input.is_unconfirmed() {
                return self.leave(known).await;
            }
            tokio::select! {
                () = tokio::time::sleep_until(leave_by.unwrap_or_else(Instant::now)), if leave_by.is_some() => {
                    return self.leave(known).await;
                }
                event = events.message() => {
                    let event = match event {
                        Ok(Some(event)) => event.event,
                        Ok(None) if self.leave == Leave::AtOnce && !known.session.is_empty() => return Ok(Outcome::Code(0)),
                        Ok(None) => return Ok(Outcome::Lost(Fault::new(ErrorCode::Disconnected, "the stream ended"))),
                        Err(status) => return Ok(failed(&status, known)),
                    };
                    known.away = None;
                    if let Some(outcome) = self.on_event(event, known, &frames, typed, signals, raw).await? {
                        return Ok(outcome);
                    }
                }
                permit = frames.reserve(), if known.input.has_unsent() => {
                    // A closed stream shows as the end of the events.
                    if let (Ok(permit), Some(piece)) = (permit, known.input.next_piece()) {
                        let frame = if piece.eof { Frame::InputEof(true) } else { Frame::Input(piece.data) };
                        permit.send(pb::ClientFrame { frame: Some(frame) });
                    }
                }
                typed = typed.recv(), if typing && known.input.has_room() => match typed {
                    // There is no command yet that could take it.
                    Some(Typed::Bytes(bytes)) if self.gives_up(known, &bytes) => return self.leave(known).await,
                    Some(Typed::Bytes(bytes)) => known.input.push(bytes),
                    Some(Typed::End) => known.input.finish(),
                    Some(Typed::Leave) => {
                        typing = false;
                        leave_by = Some(Instant::now() + LAST_WORDS);
                    }
                    None => typing = false,
                },
                asked = signals.next() => match (asked, self.leave) {
                    (Asked::Frame(frame), _) => {
                        let _ = frames.send(pb::ClientFrame { frame: Some(frame) }).await;
                    }
                    (Asked::Interrupt | Asked::Insist, Leave::KeepsIt) => return self.leave(known).await,
                    (Asked::Interrupt | Asked::Insist, _) if known.asked => return self.leave(known).await,
                    (Asked::Interrupt, _) => {
                        let _ = frames.send(pb::ClientFrame { frame: Some(Frame::Signal(INTERRUPT)) }).await;
                    }
                    (Asked::Insist, _) if known.session.is_empty() => return self.leave(known).await,
                    (Asked::Insist, _) => {
                        let _ = frames.send(pb::ClientFrame { frame: Some(Frame::Kill(true)) }).await;
                    }
                },
            }
        }
    }

    async fn on_event(
        &mut self,
        event: Option<Event>,
        known: &mut Known,
        frames: &mpsc::Sender<pb::ClientFrame>,
        typed: &mut mpsc::Receiver<Typed>,
        signals: &mut Signals,
        raw: &mut Option<RawMode>,
    ) -> Result<Option<Outcome>, BrokenPipe> {
        match event {
            Some(Event::Started(started)) => {
                known.asked = false;
                self.renderer.started(&started).await?;
                let session = started.session.unwrap_or_default();
                known.session.clone_from(&session.session_id);
                known.node.clone_from(&session.node_id);
                let replayed = if started.existing { session.end_offset } else { 0 };
                known.viewer.begin(session.answers_queries, replayed);
                if self.leave == Leave::AtOnce {
                    self.renderer.detached(&session.session_id).await?;
                    let _ = frames.send(pb::ClientFrame { frame: Some(Frame::Detach(true)) }).await;
                    return Ok(Some(Outcome::Code(0)));
                }
                if self.source == Source::Attached {
                    self.source = if session.terminal { Source::Terminal } else { Source::Stream };
                    if session.terminal {
                        *raw = RawMode::enter().ok();
                        let _ = frames.send(pb::ClientFrame { frame: Some(Frame::Resize(size())) }).await;
                    }
                    *typed = input::start(self.source);
                    if let Ok(fresh) = Signals::new(self.source) {
                        *signals = fresh;
                    }
                }
            }
            Some(Event::Output(output)) => {
                let mut records = output.records;
                let end = records.last().map(|r| r.offset + r.data.len() as u64);
                for record in &mut records {
                    record.data = known.viewer.show(record.offset, std::mem::take(&mut record.data));
                }
                self.renderer.output(records).await?;
                known.offset = end.unwrap_or(known.offset);
            }
            Some(Event::Gap(gap)) => {
                self.renderer.gap(&gap).await?;
                known.offset = gap.to;
            }
            Some(Event::Exit(exit)) => {
                self.renderer.exit(&exit).await?;
                return Ok(Some(Outcome::Code(exit_code(&exit))));
            }
            Some(Event::InputProgress(taken)) => known.input.confirmed(taken.total, taken.eof),
            Some(Event::InputRefused(fault)) => {
                known.input.refused();
                self.renderer.trouble("inputRefused", &fault.into()).await?;
            }
            Some(Event::Interrupted(interrupted)) => {
                let fault = interrupted.why.map(Fault::from);
                let fault = fault.unwrap_or_else(|| Fault::new(ErrorCode::Disconnected, "the node is away"));
                self.renderer.trouble("interrupted", &fault).await?;
            }
            Some(Event::Resumed(_)) => self.renderer.note("the node is back, output goes on").await?,
            Some(Event::ApprovalPending(approval)) => {
                self.renderer.approval_pending(&approval).await?;
                if known.wait == pb::ApprovalWait::Pending {
                    self.renderer.approval_id(&approval.approval_id).await?;
                    return Ok(Some(Outcome::Code(0)));
                }
                known.asked = true;
            }
            Some(Event::ApprovalClosed(approval)) => {
                known.asked = false;
                self.renderer.approval_closed(&approval).await?;
            }
            None => {}
        }
        Ok(None)
    }

    /// Whether these keys mean that the person does not wait for the answer.
    fn gives_up(&self, known: &Known, typed: &[u8]) -> bool {
        known.asked && self.source == Source::Terminal && typed.contains(&CTRL_C)
    }

    async fn leave(&self, known: &Known) -> Result<Outcome, BrokenPipe> {
        if known.asked {
            self.renderer.note("left; the request for approval is given up and nothing runs").await?;
            return Ok(Outcome::Code(LEFT));
        }
        if self.leave == Leave::KillsIt {
            self.renderer.note("left; the command is ended").await?;
            return Ok(Outcome::Code(LEFT));
        }
        self.renderer.note(&format!("left {}; it goes on", known.session)).await?;
        Ok(Outcome::Code(0))
    }
}

impl Away {
    fn begin() -> Self {
        Self { until: Instant::now() + COME_BACK_WITHIN, backoff: link::Backoff::default() }
    }

    /// The pause before the next attempt and the time that is left, if any.
    fn next(&mut self) -> Option<(Duration, Duration)> {
        let left = self.until.checked_duration_since(Instant::now())?;
        // One caller on its own needs no jitter, and a person waits.
        Some((self.backoff.next(0).min(left), left))
    }
}

impl Known {
    fn new() -> Self {
        Self {
            session: String::new(),
            node: String::new(),
            offset: 0,
            away: None,
            wait: pb::ApprovalWait::Unspecified,
            asked: false,
            input: Writer::new(0, 0, INPUT_WINDOW),
            viewer: Viewer::new(),
        }
    }

    /// The first frame, with the writer that this process is.
    fn as_writer(&self, first: Frame) -> Frame {
        match first {
            Frame::Start(request) => {
                Frame::Start(pb::ExecRequest { input_writer: self.input.id(), ..request })
            }
            Frame::Attach(request) => {
                Frame::Attach(pb::AttachRequest { input_writer: self.input.id(), ..request })
            }
            other => other,
        }
    }

    /// The frame that finds the session again, or starts it if it never
    /// started: the run id makes that safe.
    fn again(&self, first: &Frame, leave: Leave) -> Frame {
        if self.session.is_empty() {
            return first.clone();
        }
        let on_close = if leave == Leave::KillsIt { pb::OnClose::Kill } else { pb::OnClose::Keep };
        Frame::Attach(pb::AttachRequest {
            session: self.session.clone(),
            node: self.node.clone(),
            from_offset: self.offset,
            on_close: on_close.into(),
            input_writer: self.input.id(),
            input_offset: self.input.base(),
            // As it was.
            on_disconnect: None,
        })
    }
}

fn unknown(known: &Known, fault: &Fault) -> Fault {
    let lost =
        Fault::new(ErrorCode::OutcomeUnknown, format!("the gateway did not come back: {}", fault.message));
    if known.session.is_empty() {
        lost.hint("nobody said whether the command started: `gateway sessions`")
    } else {
        lost.hint(format!("the session goes on: gateway attach {} --from {}", known.session, known.offset))
    }
}

fn failed(status: &Status, known: &Known) -> Outcome {
    let fault = Fault::from_status(status);
    match fault.code {
        // A gateway that has just come back may be ahead of its nodes.
        ErrorCode::NodeOffline if known.away.is_some() => Outcome::Lost(fault),
        ErrorCode::Draining | ErrorCode::GatewayUnreachable | ErrorCode::Disconnected => Outcome::Lost(fault),
        _ => Outcome::Failed(fault),
    }
}

/// The exit code for an end: the command's own where it has one.
fn exit_code(exit: &pb::Exit) -> u8 {
    use pb::exit::How;
    match &exit.how {
        _ if exit.timed_out => fault::ExitClass::TimedOut.status(),
        // Our own machinery ended it: its code says nothing.
        _ if !exit.note.is_empty() => fault::ExitClass::Internal.status(),
        Some(How::Code(code)) => u8::try_from(*code).unwrap_or(u8::MAX),
        Some(How::Signal(signal)) => fault::ExitClass::Signal(u8::try_from(*signal).unwrap_or(0)).status(),
        Some(How::CouldNotStart(failure)) => match failure.kind() {
            pb::could_not_start::Kind::NotFound => fault::ExitClass::CommandNotFound.status(),
            _ => fault::ExitClass::CouldNotStart.status(),
        },
        Some(How::Unreaped(_)) => fault::ExitClass::Internal.status(),
        Some(How::Lost(_)) | None => fault::ExitClass::OutcomeUnknown.status(),
    }
}

/// A random run id: the CLI chooses it, so that it can ask again safely.
pub(in super::super) fn new_run_id() -> Result<String, Fault> {
    crate::start::new_run_id()
}
