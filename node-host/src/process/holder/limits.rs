//! What a command may use, without control groups: an ordinary user's node has none on many machines.
//!
//! Two nets. A walk over the tree in short rounds measures memory, tasks and processor time of all its processes
//! together. Below it lie limits of the kernel, which need no round: the size of a file, and the processor time of
//! each single process. There is none for memory: the kernel's bound what a process *reserves*, and a thread alone
//! reserves 8 MiB that it never touches; and whoever runs into one gets an error instead of an end that can be told.
//! The kernel prefers a command to everything else when memory runs out, which is the net here.
//!
//! What it cannot see: memory that is mapped by nobody (files in a tmpfs, what is in pipes and sockets); processor time
//! of children that their parent does not wait for because it ignores `SIGCHLD`, once they are dead. A program that
//! changes its user is measured, but cannot be given limits of the kernel or be killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, prlimit};
use session::{Death, LimitHit, LimitKind, Limits};

use super::usage::{self, Usage};
use crate::process::tree::children;
use crate::sys;

/// Time between two rounds while the command is young: what runs away does so at once.
const YOUNG_ROUND: Duration = Duration::from_millis(20);

/// How long it is young.
const YOUNG: Duration = Duration::from_secs(1);

/// Time between two rounds later on.
const ROUND: Duration = Duration::from_millis(100);

/// A round is followed by this many times its own length of rest, so that it never takes more than a fifth of the
/// holder's time.
const REST: u32 = 4;

/// Looks at what a tree uses.
#[derive(Debug)]
pub(super) struct Watch {
    limits: Limits,
    began: Instant,
    next: Instant,
    /// Clock ticks of what this process waited for before the command.
    ticks_before: u64,
}

impl Watch {
    /// None where nothing is to be measured.
    pub(super) fn begin(limits: Limits) -> Option<Watch> {
        let Limits { memory_bytes, pids, cpu_ms, file_bytes: _ } = limits;
        if (memory_bytes, pids, cpu_ms) == (None, None, None) {
            return None;
        }
        let began = Instant::now();
        Some(Watch { limits, began, next: began, ticks_before: usage::waited_for(getpid()) })
    }

    /// When [`Watch::look`] has to be called next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Measures, when it is time. Gives the first bound that is passed.
    pub(super) fn look(&mut self, now: Instant) -> Option<LimitHit> {
        if now < self.next {
            return None;
        }
        let hit = self.measure();
        let after = Instant::now();
        let round = if after.duration_since(self.began) < YOUNG { YOUNG_ROUND } else { ROUND };
        self.next = (now + round).max(after + after.duration_since(now) * REST);
        hit
    }

    fn measure(&self) -> Option<LimitHit> {
        let pids_max = self.limits.pids.map(u64::from);
        let usage = usage::below(getpid(), pids_max);
        let over = |kind, allowed: Option<u64>, used: u64| {
            allowed.filter(|&allowed| used > allowed).map(|allowed| LimitHit { kind, allowed, used })
        };
        over(LimitKind::Pids, pids_max, usage.tasks)
            .or_else(|| over(LimitKind::Memory, self.limits.memory_bytes, self.memory(&usage)))
            .or_else(|| {
                let ticks = usage.ticks.saturating_sub(self.ticks_before);
                over(LimitKind::Cpu, self.limits.cpu_ms, ticks.saturating_mul(1000) / sys::ticks_per_second())
            })
    }

    /// Bytes of resident memory. Only where the cheap sum, which counts shared pages for every process, is above the
    /// bound is the exact one worth its price.
    fn memory(&self, usage: &Usage) -> u64 {
        let bytes = |pages: u64| pages.saturating_mul(sys::page_bytes());
        let sum = bytes(usage.pages.values().fold(0, |sum, pages| sum.saturating_add(*pages)));
        let Some(allowed) = self.limits.memory_bytes.filter(|allowed| sum > *allowed) else { return sum };
        // Where it may not be looked at: what is resident now, nothing if it is gone.
        let one = |&pid| usage::proportional_bytes(pid).unwrap_or_else(|| bytes(usage::resident_now(pid)));
        let exact = || usage.pages.keys().map(one).fold(0, u64::saturating_add);
        match exact() {
            // Whoever ends in the middle of the sum leaves its share to those that are read later, so that it counts
            // twice: only what is seen twice is true.
            sum if sum > allowed => sum.min(exact()),
            sum => sum,
        }
    }
}

/// Gives everything below this process the limits that the kernel keeps. Called right behind the start: what is forked
/// later inherits them.
pub(super) fn impose(limits: &Limits) {
    let mut bounds = Vec::new();
    if let Some(bytes) = limits.file_bytes {
        bounds.push((Resource::Fsize, bytes, bytes));
    }
    if let Some(ms) = limits.cpu_ms {
        // Above what the watch allows, so that it comes second. A signal that can be told first, the end a second later.
        let seconds = ms.div_ceil(1000).saturating_add(1);
        bounds.push((Resource::Cpu, seconds, seconds.saturating_add(1)));
    }
    if bounds.is_empty() {
        return;
    }
    // A process gets its limits before its children are looked for: those that come after inherit them.
    let mut done = HashSet::new();
    let mut queue = children(getpid().as_raw_pid());
    while let Some(pid) = queue.pop() {
        if !done.insert(pid) {
            continue;
        }
        for &(resource, soft, hard) in &bounds {
            set(pid, resource, soft, hard);
        }
        queue.extend(children(pid));
    }
}

fn set(pid: i32, resource: Resource, soft: u64, hard: u64) {
    // Only lowered: our own limits are the command's.
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    // One that is gone needs none, and one that changed its user takes none.
    let _ = prlimit(Pid::from_raw(pid), resource, limit);
}

/// The bound that a death tells of: the kernel has a signal for some.
pub(super) fn told_by(death: Death, limits: &Limits) -> Option<LimitHit> {
    let Death::Signal(signal) = death else { return None };
    let (kind, allowed) = if signal == Signal::XFSZ.as_raw() {
        (LimitKind::FileSize, limits.file_bytes?)
    } else if signal == Signal::XCPU.as_raw() {
        (LimitKind::Cpu, limits.cpu_ms?)
    } else {
        return None;
    };
    Some(LimitHit { kind, allowed, used: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_of_a_bound_that_is_set_tells_of_it() {
        let none = Limits::default();
        let both = Limits { file_bytes: Some(10), cpu_ms: Some(20), ..none };
        let hit = |kind, allowed| Some(LimitHit { kind, allowed, used: 0 });
        let cases = [
            (Death::Signal(25), both, hit(LimitKind::FileSize, 10)),
            (Death::Signal(24), both, hit(LimitKind::Cpu, 20)),
            (Death::Signal(25), none, None),
            (Death::Signal(24), none, None),
            (Death::Signal(9), both, None),
            (Death::Code(153), both, None),
            (Death::Unreaped, both, None),
        ];
        for (death, limits, want) in cases {
            assert_eq!(told_by(death, &limits), want, "{death:?}");
        }
    }

    #[test]
    fn nothing_is_watched_that_the_kernel_bounds_alone() {
        let limits = Limits { file_bytes: Some(1), ..Limits::default() };
        assert!(Watch::begin(limits).is_none());
        assert!(Watch::begin(Limits::default()).is_none());
    }
}
