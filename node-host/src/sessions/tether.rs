//! One task per live session: the connection to its holder.
//!
//! It is the only writer of the session's progress. It ends with the session, with the node, or when another node took
//! the session over.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use session::{ByteOffset, Ended, Exit, SessionId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::live::{Progress, Session, Started};
use super::registry::Registry;
use super::store;
use crate::process::holder::{SOCKET, unix_ms};
use crate::process::journal::{self, Line};
use crate::process::wire::{
    self, Afterwards, FrameBuffer, FromHolder, STDIN_WINDOW, Status, StdinState, ToHolder,
};

/// How far `end` may lag while nobody waits for output.
const LAG: Duration = Duration::from_millis(20);

/// A floor is told when it moved this far, or when the reader has read everything.
const FLOOR_STEP: u64 = 256 * 1024;

/// Commands that are sent in one write.
const BATCH: usize = 16;

/// Pause between the first two looks for a holder that hung up; doubled from look to look.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// The longest such pause.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a holder may take to greet. One that is stopped takes for ever.
const GREETING: Duration = Duration::from_secs(2);

/// Whether the holder owes us a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notice {
    Asked,
    /// Ask again then, unless a reader waits before.
    AskAt(Instant),
}

/// Who forked the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Our launcher.
    Ours,
    /// The launcher of a node before us, perhaps an older version. It must be able to leave.
    Adopted,
}

/// What a frame or its absence means for the task.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Over,
}

/// A session's end of the connection.
#[derive(Debug)]
pub(super) struct Tether {
    session: Session,
    stream: UnixStream,
    inbox: FrameBuffer,
    commands: mpsc::Receiver<ToHolder>,
    registry: Weak<Registry>,
    notice: Notice,
    told_floor: Option<ByteOffset>,
    origin: Origin,
    /// The holder reported the end, and waits for another session.
    reusable: bool,
    /// Input bytes sent and taken so far.
    sent: u64,
    taken: u64,
}

impl Tether {
    /// A connection on which [`ToHolder::Arm`] was sent already.
    pub(super) fn new(
        session: Session,
        stream: UnixStream,
        inbox: FrameBuffer,
        commands: mpsc::Receiver<ToHolder>,
        registry: Weak<Registry>,
    ) -> Tether {
        Tether {
            session,
            stream,
            inbox,
            commands,
            registry,
            notice: Notice::Asked,
            told_floor: None,
            origin: Origin::Ours,
            reusable: false,
            sent: 0,
            taken: 0,
        }
    }

    /// The floor that the holder was told together with the start.
    pub(super) fn told_floor(mut self, floor: Option<ByteOffset>) -> Tether {
        self.told_floor = floor;
        self
    }

    /// Takes over what an adopted session's holder reported.
    pub(super) fn adopt(&mut self, status: Option<&Status>) {
        self.origin = Origin::Adopted;
        let Some(status) = status else { return };
        (self.sent, self.taken) = (status.stdin_accepted, status.stdin_taken);
        let under_way = usize::try_from(self.sent - self.taken.min(self.sent)).unwrap_or(STDIN_WINDOW);
        self.session.0.room.forget_permits(under_way);
        self.on_status(status);
    }

    /// Serves the session until it, or the node, is over.
    pub(super) async fn run(mut self, over: CancellationToken) {
        let ended = tokio::select! {
            ended = self.serve() => ended,
            () = over.cancelled() => return,
        };
        if let Err(error) = ended {
            tracing::debug!(session = %self.session.id(), %error, "the connection to a holder broke");
        }
        drop(self.commands);
        self.session.0.close_input();
        if let Some(registry) = self.registry.upgrade() {
            if self.reusable {
                registry.give_back(self.stream);
            }
            registry.on_end(&self.session);
        }
    }

    async fn serve(&mut self) -> io::Result<()> {
        loop {
            match self.serve_connection().await {
                Ok(Next::Over) => return Ok(()),
                Ok(Next::GoOn) => {}
                Err(error) => tracing::debug!(session = %self.session.id(), %error, "a holder hung up"),
            }
            if self.after_hang_up().await? == Next::Over {
                return Ok(());
            }
        }
    }

    /// Until the connection ends: `Over` when the session does, `GoOn` when only the connection did.
    async fn serve_connection(&mut self) -> io::Result<Next> {
        loop {
            while let Some(frame) = self.inbox.next_frame().map_err(io::Error::other)? {
                if self.on_frame(frame).await? == Next::Over {
                    return Ok(Next::Over);
                }
            }
            let ask_at = match self.notice {
                Notice::Asked => None,
                Notice::AskAt(at) => Some(at),
            };
            tokio::select! {
                read = self.stream.read_buf(self.inbox.space()) => {
                    if read? == 0 {
                        return Ok(Next::GoOn);
                    }
                }
                Some(command) = self.commands.recv() => self.send_commands(command).await?,
                () = self.session.0.wishes.changed() => self.send_wishes().await?,
                () = tokio::time::sleep_until(ask_at.unwrap_or_else(Instant::now)), if ask_at.is_some() => {
                    self.ask().await?;
                }
            }
        }
    }

    async fn on_frame(&mut self, frame: FromHolder) -> io::Result<Next> {
        match frame {
            FromHolder::Started { pid, .. } => {
                self.session.0.progress.send_modify(|progress| progress.started = Some(Started { pid }));
            }
            FromHolder::Output { end } => {
                self.on_end_offset(end);
                self.notice = Notice::AskAt(Instant::now() + LAG);
                if self.session.0.wishes.take_waiting() {
                    self.ask().await?;
                }
                self.send_floor().await?;
            }
            FromHolder::StdinTaken { total } => self.on_taken(total),
            FromHolder::StdinClosed => self.session.0.close_input(),
            FromHolder::Status(status) => self.on_status(&status),
            FromHolder::Terminal(facts) => {
                self.session.0.progress.send_modify(|progress| progress.terminal = Some(facts));
            }
            FromHolder::Exited { exit, holder } => {
                self.reusable = self.origin == Origin::Ours && holder == Afterwards::Stays;
                self.session.0.set_exit(*exit);
                return Ok(Next::Over);
            }
            FromHolder::Replaced => return Ok(Next::Over),
        }
        Ok(Next::GoOn)
    }

    fn on_end_offset(&self, end: ByteOffset) {
        self.session.0.progress.send_if_modified(|progress| {
            let grown = end.0 > progress.end;
            progress.end = progress.end.max(end.0);
            grown
        });
    }

    fn on_taken(&mut self, total: u64) {
        let more = total.saturating_sub(self.taken);
        self.taken = self.taken.max(total);
        self.session.0.room.add_permits(usize::try_from(more).unwrap_or(STDIN_WINDOW).min(STDIN_WINDOW));
    }

    fn on_status(&self, status: &Status) {
        self.session.0.progress.send_modify(|progress| {
            progress.started = Some(Started { pid: status.pid });
            progress.end = progress.end.max(status.end.0);
        });
        if status.stdin != StdinState::Open {
            self.session.0.close_input();
        }
    }

    async fn send_commands(&mut self, first: ToHolder) -> io::Result<()> {
        let mut out = Vec::new();
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(command) = next else { break };
            if let ToHolder::Stdin(bytes) = &command {
                self.sent += bytes.len() as u64;
            }
            wire::encode(&command, &mut out).map_err(io::Error::other)?;
            next = self.commands.try_recv().ok();
        }
        if let Some(command) = next {
            wire::encode(&command, &mut out).map_err(io::Error::other)?;
            if let ToHolder::Stdin(bytes) = &command {
                self.sent += bytes.len() as u64;
            }
        }
        self.stream.write_all(&out).await
    }

    async fn send(&mut self, message: &ToHolder) -> io::Result<()> {
        let mut out = Vec::new();
        wire::encode(message, &mut out).map_err(io::Error::other)?;
        self.stream.write_all(&out).await
    }

    async fn send_wishes(&mut self) -> io::Result<()> {
        if self.notice != Notice::Asked && self.session.0.wishes.take_waiting() {
            self.ask().await?;
        }
        self.send_floor().await
    }

    async fn ask(&mut self) -> io::Result<()> {
        self.notice = Notice::Asked;
        self.send(&ToHolder::Arm).await
    }

    async fn send_floor(&mut self) -> io::Result<()> {
        let floor = self.session.0.wishes.floor();
        let end = self.session.0.progress.borrow().end;
        let tell = match (floor, self.told_floor) {
            (Some(floor), Some(told)) => {
                floor < told || floor.0 >= told.0 + FLOOR_STEP || (floor.0 >= end && floor > told)
            }
            (floor, told) => floor != told,
        };
        if tell {
            self.told_floor = floor;
            self.send(&ToHolder::Floor(floor)).await?;
        }
        Ok(())
    }

    /// The connection is gone without an exit: either the holder wrote one down, or it is there and dropped us, or it
    /// died.
    async fn after_hang_up(&mut self) -> io::Result<Next> {
        let dir = &self.session.0.dir;
        match look_again(dir, self.session.id()).await {
            Found::Alive(stream, inbox, status) => {
                (self.stream, self.inbox) = (stream, inbox);
                self.told_floor = None;
                // Input on its way is lost, and input with a hole is worse than none.
                if status.stdin_accepted != self.sent {
                    self.session.0.close_input();
                }
                self.on_taken(status.stdin_taken);
                self.on_status(&status);
                self.ask().await?;
                self.send_floor().await?;
                Ok(Next::GoOn)
            }
            Found::Gone => {
                self.session.0.set_exit(settle(dir, self.session.0.receipt.asked_unix_ms));
                Ok(Next::Over)
            }
        }
    }
}

/// What became of a holder that hung up.
#[derive(Debug)]
enum Found {
    Alive(UnixStream, FrameBuffer, Status),
    /// It ended, with or without a word.
    Gone,
}

/// Looks for a holder until it is clear whether it lives.
///
/// Not being able to ask it (no descriptor left, no permission, a holder that is stopped) says nothing about the command,
/// which must not be written down as lost. So there is no last look; the pause is bounded, and the wait ends with the
/// holder, its journal or this node.
async fn look_again(dir: &Path, session: &SessionId) -> Found {
    let mut pause = RECONNECT_PAUSE;
    loop {
        let reason = match connect(dir).await {
            Ok((stream, inbox, Some(status))) => return Found::Alive(stream, inbox, status),
            Ok((_, _, None)) => io::Error::new(io::ErrorKind::TimedOut, "it does not greet"),
            Err(error) if is_gone(&error) => return Found::Gone,
            Err(error) => error,
        };
        if journal::read(dir).is_ok_and(|journal| journal.exit.is_some()) {
            return Found::Gone;
        }
        tracing::warn!(%session, error = %reason, ?pause, "a holder cannot be reached");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
    }
}

/// Whether an error of [`connect`] means that no holder is there: no socket, or one that nobody listens on.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Connects to the holder of a session directory and waits for its greeting, for a bounded time.
///
/// # Errors
/// When nobody listens there.
pub(super) async fn connect(dir: &Path) -> io::Result<(UnixStream, FrameBuffer, Option<Status>)> {
    let directory = std::fs::File::open(dir)?;
    // A socket's path has 108 bytes at most; this one is short wherever the directory is.
    let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
    let mut stream = UnixStream::connect(path).await?;
    let mut inbox = FrameBuffer::default();
    let greeting = async {
        loop {
            match inbox.next_frame::<FromHolder>() {
                Ok(Some(FromHolder::Status(status))) => return Some(status),
                Ok(Some(_)) | Err(_) => return None,
                Ok(None) => {}
            }
            if stream.read_buf(inbox.space()).await.ok()? == 0 {
                return None;
            }
        }
    };
    let status = tokio::time::timeout(GREETING, greeting).await.ok().flatten();
    Ok((stream, inbox, status))
}

/// The end of a session whose holder is gone: the one it wrote down, else [`Ended::Lost`], which is then written down.
pub(super) fn settle(dir: &Path, asked_unix_ms: u64) -> Exit {
    if let Some(exit) = journal::read(dir).ok().and_then(|journal| journal.exit) {
        return exit;
    }
    let now = unix_ms();
    let exit = Exit {
        ended: Ended::Lost,
        cancelled: false,
        final_offset: store::salvage_end(dir),
        leftovers_killed: 0,
        started_unix_ms: asked_unix_ms,
        ended_unix_ms: now,
        duration_ms: now.saturating_sub(asked_unix_ms),
    };
    // Without the line the next start comes to the same result.
    let _ = journal::append(dir, &Line::Exit(exit.clone()));
    exit
}

/// The progress of a session that is over.
pub(super) fn finished(exit: Exit, started: Option<(i32, u64)>) -> Progress {
    Progress {
        started: started.map(|(pid, _)| Started { pid }),
        end: exit.final_offset.0,
        exit: Some(std::sync::Arc::new(exit)),
        terminal: None,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use tokio::net::UnixListener;

    use super::*;

    fn status() -> Status {
        Status {
            pid: 7,
            started_unix_ms: 1,
            end: ByteOffset(3),
            stdin: StdinState::NotOpened,
            stdin_accepted: 0,
            stdin_taken: 0,
        }
    }

    async fn look(dir: &Path) -> Option<Status> {
        match look_again(dir, &"calm-reef".parse().unwrap()).await {
            Found::Alive(_, _, status) => Some(status),
            Found::Gone => None,
        }
    }

    #[test]
    fn only_an_absent_listener_means_that_the_holder_is_gone() {
        let cases = [
            (Errno::NOENT, true),
            (Errno::CONNREFUSED, true),
            (Errno::MFILE, false),
            (Errno::NFILE, false),
            (Errno::ACCESS, false),
            (Errno::AGAIN, false),
            (Errno::TIMEDOUT, false),
            (Errno::NOMEM, false),
        ];
        for (errno, gone) in cases {
            assert_eq!(is_gone(&errno.into()), gone, "{errno:?}");
        }
    }

    #[tokio::test]
    async fn a_holder_that_cannot_be_reached_is_looked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join(SOCKET);
        // Neither absent nor refused: a link to itself.
        std::os::unix::fs::symlink(SOCKET, &socket).unwrap();
        let holder = async {
            std::fs::remove_file(&socket).unwrap();
            let listener = UnixListener::bind(&socket).unwrap();
            // One that hangs up before it greets is looked for again, too.
            drop(listener.accept().await.unwrap());
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut greeting = Vec::new();
            wire::encode(&FromHolder::Status(status()), &mut greeting).unwrap();
            stream.write_all(&greeting).await.unwrap();
            stream
        };
        // The first look comes before the holder.
        let both = async { tokio::join!(biased; look(dir.path()), holder).0 };
        let found = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
        assert_eq!(found, Some(status()));
    }

    #[tokio::test]
    async fn a_holder_without_a_listener_or_with_an_exit_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path()).await, None);
        drop(UnixListener::bind(dir.path().join(SOCKET)).unwrap());
        assert_eq!(look(dir.path()).await, None);

        let over = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(SOCKET, over.path().join(SOCKET)).unwrap();
        let exit = Exit {
            ended: Ended::Lost,
            cancelled: false,
            final_offset: ByteOffset::START,
            leftovers_killed: 0,
            started_unix_ms: 1,
            ended_unix_ms: 2,
            duration_ms: 1,
        };
        std::fs::write(over.path().join(journal::JOURNAL), b"").unwrap();
        journal::append(over.path(), &Line::Exit(exit)).unwrap();
        assert_eq!(look(over.path()).await, None);
    }
}
