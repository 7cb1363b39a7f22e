//! A holder: one small process that owns one command from its start to its end.
//!
//! It owns the pipes or the terminal, the log, the deadline and the kill; it does not decide what may run, and needs
//! nobody: with node-host gone it goes on, and a new node-host finds it by the socket in the session directory.

mod connection;
mod input;
mod limits;
mod log;
mod running;
mod stop;
mod terminal;
mod usage;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{getpid, set_child_subreaper};
use session::{ByteOffset, Ended, Exit};

pub(crate) use connection::SOCKET;
pub(crate) use log::segment_name;

use self::connection::Connection;
use self::running::Running;
use super::journal::{self, Line};
use super::spawn;
use super::wire::{Afterwards, FromHolder, LaunchSpec};
use crate::sys;

/// The clocks of a session, both started when its specification arrived.
#[derive(Debug, Clone, Copy)]
struct Clock {
    started: Instant,
    started_unix_ms: u64,
}

impl Clock {
    fn start() -> Clock {
        Clock { started: Instant::now(), started_unix_ms: unix_ms() }
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn exit(&self, ended: Ended, final_offset: ByteOffset) -> Exit {
        Exit {
            ended,
            cancelled: false,
            final_offset,
            leftovers_killed: 0,
            started_unix_ms: self.started_unix_ms,
            ended_unix_ms: unix_ms(),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The life of a holder, in its own process; the launcher forks into this.
///
/// A holder whose session ended cleanly waits for the next one on the same connection: a fork and an exit cost more
/// than a short command.
pub(crate) fn run(socket: OwnedFd) -> u8 {
    // Best effort: only seen in process lists.
    let _ = rustix::thread::set_name(c"farrun-hold");
    sys::keep_large_apart();
    let prepared =
        set_child_subreaper(Some(getpid())).map_err(Into::into).and_then(|()| sys::child_signals());
    let Ok(signals) = prepared else { return 1 };
    let mut connection = Connection::new(socket);
    while let Some(spec) = connection.wait_for_start(&signals) {
        match hold(&spec, &signals, connection) {
            Some(next) => connection = next,
            None => return 0,
        }
    }
    0
}

/// One session. Gives the connection back when it can serve another.
fn hold(spec: &LaunchSpec, signals: &OwnedFd, connection: Connection) -> Option<Connection> {
    let clock = Clock::start();
    let journal = journal::open(&spec.dir).ok();
    match spawn::spawn(spec) {
        Ok(spawned) => Running::new(spec, clock, spawned, signals, connection, journal).run(),
        Err(failure) => {
            let ended =
                Ended::CouldNotStart { kind: failure.kind, errno: failure.errno, detail: failure.detail };
            let exit = clock.exit(ended, ByteOffset::START);
            report(&spec.dir, journal, Some(connection), exit, Afterwards::Stays)
        }
    }
}

/// Writes the exit down, then tells it. The last act of a session; gives the connection back if the node took all of
/// it.
fn report(
    dir: &Path,
    journal: Option<File>,
    connection: Option<Connection>,
    exit: Exit,
    holder: Afterwards,
) -> Option<Connection> {
    // With a full disk the line may be missing; then the connection is the only way, and after it the session counts
    // as lost.
    if let Some(mut journal) = journal {
        let _ = journal::write_line(&mut journal, &Line::Exit(exit.clone()));
    }
    let told = connection.and_then(|mut connection| {
        connection.send(&FromHolder::Exited { exit: Box::new(exit), holder }).ok()?;
        connection.flush_all();
        (holder == Afterwards::Stays && !connection.wants_write()).then_some(connection)
    });
    let _ = std::fs::remove_file(dir.join(SOCKET));
    // The directory is the node's to remove.
    let _ = std::env::set_current_dir("/");
    told
}

/// Lets the kernel prefer the command to the node when memory runs out (runtime.md §4.6). The command's own
/// environment can turn it off.
fn prefer_for_oom(pid: i32, spec: &LaunchSpec) {
    let off = spec.env.iter().any(|(key, value)| key == b"OPENCLAW_CHILD_OOM_SCORE_ADJ" && value == b"0");
    if !off {
        // Best effort: a kernel without it simply picks by size.
        let _ = OpenOptions::new()
            .write(true)
            .open(format!("/proc/{pid}/oom_score_adj"))
            .and_then(|mut file| file.write_all(b"1000"));
    }
}
