//! The holder's loop while a command runs: one `poll`, one step per thing that is ready.

mod talk;

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};
use session::modes::CURSOR_ANSWER;
use session::{ByteOffset, Death, Ended, Limits, RECORD_MAX, StreamTag};

use super::connection::{self, Connection};
use super::input::Input;
use super::limits::{self, Watch};
use super::log::LogWriter;
use super::stop::{Cause, HangUp, Leader, Stop};
use super::terminal::{Queries, Terminal};
use super::{Clock, prefer_for_oom, report, unix_ms};
use crate::process::journal::{self, Line};
use crate::process::spawn::Spawned;
use crate::process::tree::Identity;
use crate::process::wire::{Afterwards, FromHolder, LaunchSpec};
use crate::sys::{self, Terminated};

/// Output counts as over when nothing came for this long after the command's end, though somebody still holds the
/// pipe.
const IDLE: Duration = Duration::from_millis(250);

/// How long after the command's end others may go on writing.
const DRAIN: Duration = Duration::from_secs(2);

/// Reads from one stream in a row before the others get their turn.
const READS_IN_A_ROW: usize = 8;

/// How long after the start memory is given back: a session that is there for long mostly waits, and there may be many.
const SETTLED: Duration = Duration::from_millis(500);

/// How often that happens later on, while there is output. What the next output needs has to come back.
const TIDY: Duration = Duration::from_secs(2);

/// The longest time between TERM and KILL, in milliseconds (runtime.md §4.6).
const GRACE_MAX_MS: u64 = 60_000;

fn bounded_grace(ms: u64) -> Duration {
    Duration::from_millis(ms.min(GRACE_MAX_MS))
}

/// A command, its streams and everything that is known about it.
pub(super) struct Running<'a> {
    clock: Clock,
    dir: PathBuf,
    pid: Pid,
    started_unix_ms: u64,
    grace: Duration,
    deadline: Option<Instant>,
    limits: Limits,
    /// Set as long as the command's use of the machine is to be looked at.
    watch: Option<Watch>,

    signals: &'a OwnedFd,
    /// None when it cannot be written.
    journal: Option<File>,
    listener: Option<UnixListener>,
    connection: Option<Connection>,
    terminal: Option<Terminal>,
    /// Streams that have not ended.
    outputs: Vec<(OwnedFd, StreamTag)>,
    input: Input,
    log: LogWriter,
    /// Empty, or [`RECORD_MAX`] long.
    buffer: Vec<u8>,
    /// When memory is given back; none when there is none to give.
    tidy_at: Option<Instant>,

    /// The node wants to hear of the next output.
    armed: bool,
    /// The end offset that the node was told last.
    told_end: ByteOffset,
    told_taken: u64,
    told_closed: bool,

    death: Option<Death>,
    died_at: Option<Instant>,
    last_output: Instant,
    /// No process is left below this one.
    childless: bool,
    stop: Option<Stop>,
    cancelled: bool,
    /// Processes signalled after the command's own end.
    leftovers: HashSet<Identity>,
}

/// What is ready.
struct Ready {
    signals: bool,
    listener: bool,
    connection: bool,
    input: PollFlags,
    outputs: [bool; 2],
}

impl Ready {
    const NOTHING: Ready = Ready {
        signals: false,
        listener: false,
        connection: false,
        input: PollFlags::empty(),
        outputs: [false; 2],
    };
}

impl<'a> Running<'a> {
    pub(super) fn new(
        spec: &LaunchSpec,
        clock: Clock,
        spawned: Spawned,
        signals: &'a OwnedFd,
        connection: Connection,
        journal: Option<File>,
    ) -> Running<'a> {
        let started_unix_ms = unix_ms();
        let pid = spawned.pid.as_raw_pid();
        let told_closed = spawned.input.is_none();
        limits::impose(&spec.limits);
        let mut running = Running {
            clock,
            dir: spec.dir.clone(),
            pid: spawned.pid,
            started_unix_ms,
            grace: bounded_grace(spec.kill_grace_ms),
            deadline: spec.deadline_ms.and_then(|ms| clock.started.checked_add(Duration::from_millis(ms))),
            limits: spec.limits,
            watch: Watch::begin(spec.limits),
            signals,
            journal,
            // Without the socket the session works, but a restarted node cannot find it.
            listener: connection::listen(&spec.dir).ok(),
            connection: Some(connection),
            terminal: spawned.terminal.map(|master| {
                let queries = if spec.answer_queries { Queries::Answer } else { Queries::Leave };
                Terminal::new(master, spawned.line, queries)
            }),
            outputs: spawned.outputs,
            input: Input::new(spawned.input),
            log: LogWriter::new(&spec.dir, spec.log),
            buffer: Vec::new(),
            tidy_at: Some(Instant::now() + SETTLED),
            armed: false,
            told_end: ByteOffset::START,
            told_taken: 0,
            // Nobody waits for the end of an input that never was.
            told_closed,
            death: None,
            died_at: None,
            last_output: Instant::now(),
            childless: false,
            stop: None,
            cancelled: false,
            leftovers: HashSet::new(),
        };
        running.tell(&FromHolder::Started { pid, unix_ms: started_unix_ms });
        running.tell_terminal();
        // A disk that does not take this line will not take output either, and is noticed there.
        if let Some(journal) = &mut running.journal {
            let _ = journal::write_line(journal, &Line::Started { pid, unix_ms: started_unix_ms });
        }
        prefer_for_oom(pid, spec);
        running
    }

    /// Until the session is over. Gives the connection back when this process can serve another session.
    pub(super) fn run(mut self) -> Option<Connection> {
        // What came together with the start is in the buffer, where `poll` does not see it.
        self.serve_connection();
        loop {
            let ready = self.wait();
            if ready.signals && sys::drain_signals(self.signals) == Terminated::Yes {
                self.kill(Cause::Cancel, self.grace);
            }
            if ready.listener {
                self.accept();
            }
            if ready.connection {
                self.serve_connection();
            }
            // Reported whether or not it was asked for: an input that stayed open would be ready for ever.
            if ready.input.intersects(PollFlags::ERR | PollFlags::HUP) {
                self.input.on_hang_up();
            }
            if !ready.input.is_empty() || !self.told_closed {
                self.feed();
            }
            self.read_outputs(&ready);
            if ready.signals || self.stop.is_some() {
                self.reap();
            }
            self.tell_end();
            let now = Instant::now();
            if self.terminal.as_ref().and_then(|t| t.due(now)).is_some_and(|due| now >= due) {
                self.tell_terminal();
            }
            self.look_at_limits(now);
            if self.tidy_at.is_some_and(|at| now >= at) {
                self.tidy();
            }
            if self.step(now) {
                return self.finish();
            }
        }
    }

    fn wait(&self) -> Ready {
        let mut fds = Vec::with_capacity(7);
        fds.push(PollFd::new(self.signals, PollFlags::IN));
        let mut add = |fd| {
            fds.push(fd);
            fds.len() - 1
        };
        let listener = self.listener.as_ref().map(|l| add(PollFd::new(l, PollFlags::IN)));
        let connection = self.connection.as_ref().map(|c| {
            let out = if c.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
            add(PollFd::from_borrowed_fd(c.fd(), PollFlags::IN | out))
        });
        let input = self.input.poll().map(|(fd, pending)| {
            // Without something to write only the loss of the reader is of interest.
            let events = if pending { PollFlags::OUT } else { PollFlags::empty() };
            add(PollFd::from_borrowed_fd(fd, events))
        });
        let mut outputs = [None; 2];
        if !self.is_paused() {
            for (slot, (fd, _)) in outputs.iter_mut().zip(&self.outputs) {
                *slot = Some(add(PollFd::new(fd, PollFlags::IN)));
            }
        }
        let timeout = self.next_moment().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            // Interrupted or out of memory: nothing is known to be ready, the next round asks again.
            Err(_) => return Ready::NOTHING,
        }
        let events = |at: Option<usize>| at.map_or(PollFlags::empty(), |at| fds[at].revents());
        let ready = |at: Option<usize>| !events(at).is_empty();
        Ready {
            signals: ready(Some(0)),
            listener: ready(listener),
            connection: ready(connection),
            input: events(input),
            outputs: outputs.map(ready),
        }
    }

    /// Whether reading waits for a reader of the log. Not when all writers are gone: the rest is what the pipes hold.
    fn is_paused(&self) -> bool {
        self.log.must_wait() && !(self.death.is_some() && self.childless)
    }

    fn next_moment(&self) -> Option<Instant> {
        let deadline = self.deadline.filter(|_| self.stop.is_none() && self.death.is_none());
        let stop = self.stop.as_ref().map(Stop::next);
        let drained =
            self.died_at.filter(|_| self.stop.is_none() || self.childless).map(|_| self.drained_at());
        let terminal = self.terminal.as_ref().and_then(|terminal| terminal.due(Instant::now()));
        let watch = self.watch.as_ref().map(Watch::next);
        [deadline, stop, drained, terminal, watch, self.tidy_at].into_iter().flatten().min()
    }

    /// When output counts as over after the command's end.
    fn drained_at(&self) -> Instant {
        let died = self.died_at.unwrap_or(self.last_output);
        // Silence means nothing while nobody listens.
        if self.is_paused() { died + DRAIN } else { (died.max(self.last_output) + IDLE).min(died + DRAIN) }
    }

    fn look_at_limits(&mut self, now: Instant) {
        let Some(hit) = self.watch.as_mut().and_then(|watch| watch.look(now)) else { return };
        self.watch = None;
        // The command's own end stays what it was; what it left behind ends a little sooner.
        let cause = if self.death.is_none() { Cause::Limit(hit) } else { Cause::Leftovers };
        self.kill(cause, Duration::ZERO);
    }

    /// Gives back what the start and much output needed and waiting does not.
    fn tidy(&mut self) {
        self.tidy_at = None;
        self.buffer = Vec::new();
        sys::let_go_of_program();
        sys::give_back_heap();
    }

    /// Moves on by the clock. True when the session is over.
    fn step(&mut self, now: Instant) -> bool {
        if self.death.is_none() {
            if self.stop.is_none() && self.deadline.is_some_and(|at| now >= at) {
                self.kill(Cause::Deadline, self.grace);
            }
        } else {
            let drained = self.outputs.is_empty() || now >= self.drained_at();
            if drained && self.childless {
                return true;
            }
            if drained && self.stop.is_none() {
                self.kill(Cause::Leftovers, self.grace);
            }
        }
        let leader = self.leader();
        let Some(stop) = &mut self.stop else { return false };
        let mut hit = HashSet::new();
        stop.round(now, leader, &mut hit);
        let hopeless = stop.is_hopeless(now);
        if leader.is_none() {
            self.leftovers.extend(hit);
        }
        hopeless
    }

    fn leader(&self) -> Option<Leader> {
        let hang_up = if self.terminal.is_some() { HangUp::Send } else { HangUp::Omit };
        self.death.is_none().then_some(Leader { pid: self.pid, hang_up })
    }

    fn kill(&mut self, cause: Cause, grace: Duration) {
        let leader = self.leader();
        if cause == Cause::Cancel {
            self.cancelled = true;
        }
        match &mut self.stop {
            // Asked twice: no grace any more (runtime.md §4.6).
            Some(stop) if cause == Cause::Cancel && stop.cause == Cause::Cancel => stop.hurry(Duration::ZERO),
            Some(stop) => stop.hurry(grace),
            None => {
                let mut hit = HashSet::new();
                self.stop = Some(Stop::begin(cause, grace, leader, &mut hit));
                if leader.is_none() {
                    self.leftovers.extend(hit);
                }
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    self.death = Some(match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Death::Code(code as u8),
                        (None, Some(signal)) => Death::Signal(signal),
                        (None, None) => Death::Unreaped,
                    });
                    self.died_at = Some(Instant::now());
                    if let Some(terminal) = &mut self.terminal {
                        terminal.let_go_of_line();
                    }
                }
                // An orphan of the command, or an interruption.
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn read_outputs(&mut self, ready: &Ready) {
        // Output before errors where both are there: most programs wrote them in that order.
        let mut ended = [false; 2];
        for (index, ended) in ended.iter_mut().enumerate().take(self.outputs.len()) {
            *ended = ready.outputs[index] && self.read_output(index);
        }
        let mut ended = ended.into_iter();
        self.outputs.retain(|_| ended.next() != Some(true));
    }

    /// Reads one stream into the log. True when it has ended.
    fn read_output(&mut self, index: usize) -> bool {
        if self.buffer.is_empty() {
            self.buffer = vec![0; RECORD_MAX];
        }
        for _ in 0..READS_IN_A_ROW {
            let (fd, tag) = &self.outputs[index];
            let len = match rustix::io::read(fd, &mut self.buffer[..]) {
                // A terminal ends with EIO on Linux; any other error ends the stream too, the command goes on.
                Ok(0) => return true,
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return false,
                Err(_) => return true,
            };
            self.last_output = Instant::now();
            self.tidy_at.get_or_insert(self.last_output + TIDY);
            if let Err(error) = self.log.append(*tag, self.clock.elapsed_ns(), &self.buffer[..len]) {
                return self.log_failed(&error);
            }
            if let Some(terminal) = &mut self.terminal {
                let queries = terminal.watch(&self.buffer[..len]);
                self.answer(queries);
            }
            if len < self.buffer.len() || self.is_paused() {
                return false;
            }
        }
        false
    }

    /// Bytes cannot be kept: end the command rather than lose them without a word. The stream is closed, since what
    /// comes now has no place to go.
    fn log_failed(&mut self, error: &std::io::Error) -> bool {
        let cause = Cause::LogFailed(error.to_string());
        match &mut self.stop {
            Some(stop) if !matches!(stop.cause, Cause::LogFailed(_)) => stop.cause = cause,
            Some(_) => {}
            None => self.kill(cause, self.grace),
        }
        true
    }

    /// Types what a terminal answers where it is asked for its cursor.
    fn answer(&mut self, queries: u32) {
        for _ in 0..queries {
            self.input.answer(CURSOR_ANSWER);
        }
        if queries > 0 {
            self.feed();
        }
    }

    fn feed(&mut self) {
        self.input.write();
        let taken = self.input.taken();
        if taken > self.told_taken {
            self.told_taken = taken;
            self.tell(&FromHolder::StdinTaken { total: taken });
        }
        if self.input.poll().is_none() && !self.told_closed {
            self.told_closed = true;
            self.tell(&FromHolder::StdinClosed);
        }
    }

    fn finish(mut self) -> Option<Connection> {
        let then = self.death.unwrap_or(Death::Unreaped);
        let ended = match self.stop.take().map(|stop| stop.cause) {
            Some(Cause::Deadline) => Ended::TimedOut { then },
            Some(Cause::LogFailed(detail)) => Ended::LogFailed { detail, then },
            Some(Cause::Limit(hit)) => Ended::LimitHit { hit, then },
            Some(Cause::Leftovers) | None => match limits::told_by(then, &self.limits) {
                Some(hit) => Ended::LimitHit { hit, then },
                None => Ended::Died(then),
            },
            Some(Cause::Cancel) => Ended::Died(then),
        };
        if self.terminal.as_ref().is_some_and(Terminal::is_changed) {
            self.tell_terminal();
        }
        let mut exit = self.clock.exit(ended, self.log.end());
        exit.cancelled = self.cancelled;
        exit.leftovers_killed = u32::try_from(self.leftovers.len()).unwrap_or(u32::MAX);
        // What could not be killed is left to the launcher.
        let holder = if self.childless { Afterwards::Stays } else { Afterwards::Leaves };
        report(&self.dir, self.journal.take(), self.connection.take(), exit, holder)
    }
}
