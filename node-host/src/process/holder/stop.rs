//! Ending a tree: TERM, grace, KILL in rounds, and a bound on all of it (runtime.md §4.6).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process_group};

use session::LimitHit;

use super::super::tree::{self, Identity};

/// Time between two KILL rounds. A round catches what was forked during the one before.
const ROUND: Duration = Duration::from_millis(20);

/// How long after the first KILL the session is settled in any case.
const GIVE_UP: Duration = Duration::from_secs(4);

/// Why a tree is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked.
    Cancel,
    /// The deadline passed.
    Deadline,
    /// It used more than it may.
    Limit(LimitHit),
    /// The log could not be written.
    LogFailed(String),
    /// The command itself is over; these are what it left behind.
    Leftovers,
}

/// A kill under way.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) cause: Cause,
    kill_at: Instant,
    /// When the first KILL was sent.
    killed_at: Option<Instant>,
}

/// The command itself, as long as it was not reaped. Its number is then its own, and so is its group's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leader {
    pub(super) pid: Pid,
    /// A terminal's programs expect a hang-up; interactive shells ignore TERM.
    pub(super) hang_up: HangUp,
}

/// Whether to send HUP beside TERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HangUp {
    /// On a terminal.
    Send,
    /// On pipes.
    Omit,
}

impl Stop {
    /// Sends TERM to everything below this process, unless the KILL follows at once.
    pub(super) fn begin(
        cause: Cause,
        grace: Duration,
        leader: Option<Leader>,
        hit: &mut HashSet<Identity>,
    ) -> Stop {
        if !grace.is_zero() {
            tree::visit(getpid(), |process| {
                process.signal(Signal::TERM);
                if leader.is_some_and(|l| l.hang_up == HangUp::Send) {
                    process.signal(Signal::HUP);
                }
                // A stopped process acts on TERM only when it goes on.
                process.signal(Signal::CONT);
                hit.insert(process.identity);
            });
        }
        Stop { cause, kill_at: Instant::now() + grace, killed_at: None }
    }

    /// Brings the KILL forward to `grace` from now.
    pub(super) fn hurry(&mut self, grace: Duration) {
        if self.killed_at.is_none() {
            self.kill_at = self.kill_at.min(Instant::now() + grace);
        }
    }

    /// When [`Stop::round`] has to be called next.
    pub(super) fn next(&self) -> Instant {
        self.kill_at
    }

    /// Kills what is there, when it is time.
    pub(super) fn round(&mut self, now: Instant, leader: Option<Leader>, hit: &mut HashSet<Identity>) {
        if now < self.kill_at {
            return;
        }
        tree::visit(getpid(), |process| {
            process.signal(Signal::KILL);
            hit.insert(process.identity);
        });
        if let Some(leader) = leader {
            // Not reaped, so neither its number nor its group's can be a stranger's.
            let _ = kill_process_group(leader.pid, Signal::KILL);
        }
        self.killed_at.get_or_insert(now);
        self.kill_at = now + ROUND;
    }

    /// Whether waiting longer is of no use.
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
        self.killed_at.is_some_and(|at| now >= at + GIVE_UP)
    }
}
