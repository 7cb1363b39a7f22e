//! One session as its users see it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use session::{ByteOffset, Exit, Limits, OnDisconnect, RunId, SessionId};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc, watch};

use super::hold::{Hold, Wishes};
use super::leased::{self, Leased, Leases};
use super::reader::{LogReader, Read};
use super::store;
use crate::process::Mode;
use crate::process::journal::{self, Line, Owner, Receipt};
use crate::process::wire::{STDIN_WINDOW, StdinState, TerminalFacts, ToHolder};

/// Commands that may wait for a session's task. Input is bounded by its window on top; others are rare.
const COMMANDS: usize = 64;

/// Input bytes in one frame.
const INPUT_CHUNK: usize = 64 * 1024;

/// The byte that ends a terminal's input on an empty line (Ctrl-D).
const END_OF_INPUT: u8 = 0x04;

/// A command that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its process id.
    pub pid: i32,
}

/// How far a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Set when the command runs.
    pub started: Option<Started>,
    /// The offset behind the last byte that is known. Only grows.
    pub end: u64,
    /// Set when the session is over; `end` is final then.
    pub exit: Option<Arc<Exit>>,
    /// What is known of its terminal.
    pub terminal: Option<TerminalFacts>,
}

/// What lists show of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session.
    pub id: SessionId,
    /// The caller's name of the run.
    pub run_id: RunId,
    /// The command, at most 512 characters.
    pub label: String,
    /// When it was asked for, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Process id of the command, once it runs.
    pub pid: Option<i32>,
    /// Pipes or terminal.
    pub mode: Mode,
    /// Whether input can be written now.
    pub stdin_open: bool,
    /// The offset behind the last byte of output that is known.
    pub end_offset: ByteOffset,
    /// Set when it is over.
    pub exit: Option<Arc<Exit>>,
    /// Where it runs, as text; empty for a session of an older version.
    pub workdir: String,
    /// Whose it is.
    pub owner: Owner,
    /// What it may use.
    pub limits: Limits,
    /// Its holder answers where the program asks its terminal for the cursor.
    pub answers_queries: bool,
    /// Somebody holds its lease.
    pub held: bool,
    /// When it is ended unless somebody comes, in milliseconds since 1970.
    pub ends_unix_ms: Option<u64>,
}

/// Why input was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StdinError {
    /// The session was started without input.
    #[error("the session was started without input; start it with stdin open, or on a terminal")]
    NotOpened,
    /// The input was closed, by us or by the command.
    #[error("the session's input is closed")]
    Closed,
    /// The session is over.
    #[error("the session has ended")]
    Ended {
        /// Its end.
        exit: Arc<Exit>,
    },
}

/// Why a session did not take a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The session is over.
    #[error("the session has ended")]
    Ended {
        /// Its end.
        exit: Arc<Exit>,
    },
    /// Only terminals have a size.
    #[error("the session has no terminal")]
    NoTerminal,
    /// The node is stopping, or another one took the session over.
    #[error("this node does not look after the session any more")]
    Released,
}

/// One session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Session(pub(super) Arc<Inner>);

/// What all clones share. The session's task (`tether`) is the only one that moves `progress` and the input's state on.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) receipt: Receipt,
    pub(super) dir: PathBuf,
    pub(super) progress: watch::Sender<Progress>,
    commands: mpsc::Sender<ToHolder>,
    /// Input bytes that may be sent before the holder takes some.
    pub(super) room: Semaphore,
    pub(super) stdin: Mutex<StdinState>,
    /// Keeps one caller's input together.
    turn: AsyncMutex<()>,
    pub(super) wishes: Arc<Wishes>,
    /// Bytes on disk, measured once when it is over.
    disk: OnceLock<u64>,
    lease: Leased,
}

impl Session {
    /// A session that has no task yet, and the end of its commands for that task.
    pub(super) fn new(
        receipt: Receipt,
        dir: PathBuf,
        progress: Progress,
        leases: Arc<Leases>,
    ) -> (Session, mpsc::Receiver<ToHolder>) {
        let (commands, taken) = mpsc::channel(COMMANDS);
        let open = progress.exit.is_none();
        let stdin = match receipt.mode {
            Mode::Pipes { stdin: crate::process::Stdin::Null } => StdinState::NotOpened,
            Mode::Pipes { .. } | Mode::Terminal { .. } if open => StdinState::Open,
            Mode::Pipes { .. } | Mode::Terminal { .. } => StdinState::Closed,
        };
        let lease = Leased::new(receipt.owner.on_disconnect, leases);
        let inner = Inner {
            lease,
            receipt,
            dir,
            progress: watch::Sender::new(progress),
            commands,
            room: Semaphore::new(STDIN_WINDOW),
            stdin: Mutex::new(stdin),
            turn: AsyncMutex::new(()),
            wishes: Arc::new(Wishes::default()),
            disk: OnceLock::new(),
        };
        (Session(Arc::new(inner)), taken)
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.0.receipt.session_id
    }

    /// The working directory, as text; empty for a session of an older version.
    pub fn workdir(&self) -> &str {
        &self.0.receipt.workdir
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.progress.borrow().exit.is_some()
    }

    /// When it ended, in milliseconds since 1970; none while it runs.
    pub(super) fn ended_unix_ms(&self) -> Option<u64> {
        self.0.progress.borrow().exit.as_ref().map(|exit| exit.ended_unix_ms)
    }

    /// The offset behind the last byte that is known.
    pub(crate) fn end(&self) -> u64 {
        self.0.progress.borrow().end
    }

    /// Whether it is over and its output ends here.
    pub(crate) fn is_over_at(&self, offset: u64) -> bool {
        let progress = self.0.progress.borrow();
        progress.exit.is_some() && progress.end <= offset
    }

    /// What is known of its terminal.
    pub(crate) fn terminal(&self) -> Option<TerminalFacts> {
        self.0.progress.borrow().terminal.clone()
    }

    /// Whoever read all until `seen` wants to hear of the next byte.
    pub(crate) fn want_output(&self, seen: u64) {
        if self.end() <= seen {
            self.0.wishes.want_output();
        }
    }

    /// When it wrote last, in milliseconds since 1970; none: never.
    pub(crate) fn last_output_unix_ms(&self) -> Option<u64> {
        (self.end() > 0).then(|| store::last_write_unix_ms(&self.0.dir)).flatten()
    }

    /// What lists show.
    pub fn info(&self) -> SessionInfo {
        let receipt = &self.0.receipt;
        let progress = self.0.progress.borrow();
        SessionInfo {
            id: receipt.session_id.clone(),
            run_id: receipt.run_id.clone(),
            label: receipt.label.clone(),
            started_unix_ms: receipt.asked_unix_ms,
            pid: progress.started.map(|started| started.pid),
            mode: receipt.mode,
            stdin_open: *self.0.stdin.lock() == StdinState::Open,
            end_offset: ByteOffset(progress.end),
            exit: progress.exit.clone(),
            workdir: receipt.workdir.clone(),
            owner: Owner { on_disconnect: self.0.lease.policy(), ..receipt.owner.clone() },
            limits: receipt.limits,
            answers_queries: receipt.answer_queries,
            held: self.0.lease.is_held(),
            ends_unix_ms: self.0.lease.ends_unix_ms().filter(|_| progress.exit.is_none()),
        }
    }

    /// How far it is, and news of it. While nobody reads, `end` may be 20 ms behind the truth.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.0.progress.subscribe()
    }

    /// Reads output from an offset on.
    pub fn reader(&self, from: u64) -> LogReader {
        LogReader::new(self.clone(), from)
    }

    /// The last bytes of output that can be read, at most `max`.
    pub fn tail(&self, max: u64) -> Vec<u8> {
        let end = self.0.progress.borrow().end;
        let mut reader = self.reader(end.saturating_sub(max));
        let mut tail = Vec::new();
        loop {
            match reader.next(usize::try_from(max).unwrap_or(usize::MAX)) {
                Ok(Read::Data(records)) => {
                    records.iter().for_each(|record| tail.extend_from_slice(&record.bytes));
                }
                Ok(Read::Gap { .. }) => {}
                Ok(Read::Empty | Read::End) | Err(_) => return tail,
            }
        }
    }

    /// Whose it is, with the policy of its start.
    pub fn owner(&self) -> &Owner {
        &self.0.receipt.owner
    }

    /// Somebody looks after it from now on, until the value is dropped.
    pub fn look_after(&self) -> LookedAfter {
        self.0.lease.hold();
        LookedAfter(self.clone())
    }

    /// Somebody looked in.
    pub fn contact(&self) {
        self.0.lease.contact();
    }

    /// Another policy for when nobody looks after it. It is written down, so that it outlives this process.
    ///
    /// # Errors
    /// When it cannot be written down; nothing changes then.
    pub fn set_on_disconnect(&self, policy: OnDisconnect) -> std::io::Result<()> {
        if policy != self.0.lease.policy() {
            journal::append(&self.0.dir, &Line::OnDisconnect(policy))?;
        }
        self.0.lease.change(policy);
        Ok(())
    }

    /// Milliseconds until it is to be ended because nobody looks after it; 0: now. None: not at all.
    pub(super) fn abandoned_in_ms(&self) -> Option<u64> {
        let at = self.0.lease.ends_at_ms().filter(|_| !self.is_over())?;
        Some(at.saturating_sub(leased::now_ms()))
    }

    /// Keeps everything from `from` on until it was read: the command waits instead.
    pub fn hold(&self, from: u64) -> Hold {
        self.0.wishes.hold(from)
    }

    /// Writes input; waits while the command does not read.
    ///
    /// # Errors
    /// When the input was never open, is closed, or the session is over. Part of the data may have been written.
    pub async fn write_stdin(&self, data: Bytes) -> Result<(), StdinError> {
        let _turn = self.0.turn.lock().await;
        for chunk in data.chunks(INPUT_CHUNK) {
            self.check_stdin()?;
            // The chunk length is far below u32::MAX.
            let room = self.0.room.acquire_many(chunk.len() as u32).await;
            room.map_err(|_| self.stdin_closed())?.forget();
            let sent = self.0.commands.send(ToHolder::Stdin(chunk.to_vec())).await;
            sent.map_err(|_| self.stdin_closed())?;
        }
        Ok(())
    }

    /// Ends the input behind what was written. On a terminal this types Ctrl-D, which a program takes as the end only
    /// at the start of a line; there it may be used again.
    ///
    /// # Errors
    /// As [`Session::write_stdin`].
    pub async fn close_stdin(&self) -> Result<(), StdinError> {
        if matches!(self.0.receipt.mode, Mode::Terminal { .. }) {
            return self.write_stdin(Bytes::from_static(&[END_OF_INPUT])).await;
        }
        let _turn = self.0.turn.lock().await;
        self.check_stdin()?;
        *self.0.stdin.lock() = StdinState::Closed;
        self.0.commands.send(ToHolder::StdinEof).await.map_err(|_| self.stdin_closed())
    }

    fn check_stdin(&self) -> Result<(), StdinError> {
        match *self.0.stdin.lock() {
            StdinState::Open => Ok(()),
            StdinState::NotOpened => Err(StdinError::NotOpened),
            StdinState::Closed => Err(self.stdin_closed()),
        }
    }

    fn stdin_closed(&self) -> StdinError {
        match &self.0.progress.borrow().exit {
            Some(exit) => StdinError::Ended { exit: Arc::clone(exit) },
            None => StdinError::Closed,
        }
    }

    /// Gives the terminal a new size.
    ///
    /// # Errors
    /// Without a terminal, or when the session is over.
    pub async fn resize(&self, cols: u16, rows: u16) -> Result<(), ControlError> {
        match self.0.receipt.mode {
            Mode::Terminal { .. } => self.command(ToHolder::Resize { cols, rows }).await,
            Mode::Pipes { .. } => Err(ControlError::NoTerminal),
        }
    }

    /// Sends a signal to the foreground group of a terminal, else to the command's group.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn signal(&self, signal: i32) -> Result<(), ControlError> {
        self.command(ToHolder::Signal(signal)).await
    }

    /// Ends the whole tree: TERM, `grace` (60 s at most), KILL. A second call does not wait for the grace.
    ///
    /// # Errors
    /// When the session is over; the error has its end.
    pub async fn kill(&self, grace: Duration) -> Result<(), ControlError> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.command(ToHolder::Kill { grace_ms }).await
    }

    async fn command(&self, command: ToHolder) -> Result<(), ControlError> {
        if let Some(exit) = &self.0.progress.borrow().exit {
            return Err(ControlError::Ended { exit: Arc::clone(exit) });
        }
        let sent = self.0.commands.send(command).await;
        sent.map_err(|_| match &self.0.progress.borrow().exit {
            Some(exit) => ControlError::Ended { exit: Arc::clone(exit) },
            None => ControlError::Released,
        })
    }
}

impl Inner {
    /// Bytes that a finished session takes on disk.
    pub(super) fn disk_use(&self) -> u64 {
        *self.disk.get_or_init(|| store::disk_use(&self.dir))
    }

    /// The command takes no more input.
    pub(super) fn close_input(&self) {
        let mut stdin = self.stdin.lock();
        if *stdin == StdinState::Open {
            *stdin = StdinState::Closed;
        }
        drop(stdin);
        self.room.close();
    }

    /// The end. Everything before it is in the log.
    pub(super) fn set_exit(&self, exit: Exit) {
        self.close_input();
        self.progress.send_modify(|progress| {
            progress.end = progress.end.max(exit.final_offset.0);
            progress.exit = Some(Arc::new(exit));
        });
    }
}

/// Somebody looks after a session.
#[derive(Debug)]
pub struct LookedAfter(Session);

impl Drop for LookedAfter {
    fn drop(&mut self) {
        self.0.0.lease.release();
    }
}
