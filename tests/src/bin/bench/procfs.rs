//! What `/proc` says: process trees, memory, load.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// Clock ticks since boot when it started.
    started: u64,
}

/// Resident memory in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Memory {
    /// VmRSS: pages shared with others count in full.
    pub(crate) rss: f64,
    /// Pages shared with others count in part.
    pub(crate) pss: f64,
    /// Pages that no other process has.
    pub(crate) private: f64,
}

impl Process {
    /// The process that has this number now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, started: stat.started })
    }

    /// Whether it is still there and no zombie.
    pub(crate) fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }

    /// Sends a signal unless the process is gone.
    pub(crate) fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (true, Some(pid)) = (self.is_alive(), pid) {
            // It may end in between.
            let _ = kill_process(pid, signal);
        }
    }

    /// Everything below it, parents before children.
    pub(crate) fn descendants(self) -> Vec<Self> {
        let mut children: HashMap<u32, Vec<Self>> = HashMap::new();
        for pid in numbers() {
            if let Some(stat) = stat(pid) {
                children.entry(stat.parent).or_default().push(Self { pid, started: stat.started });
            }
        }
        let mut found = children.remove(&self.pid).unwrap_or_default();
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            let below = children.remove(&parent.pid).unwrap_or_default();
            found.extend(below);
            next += 1;
        }
        found
    }

    /// Its short name; empty when it is gone.
    pub(crate) fn comm(self) -> String {
        fs::read_to_string(format!("/proc/{}/comm", self.pid))
            .map(|s| s.trim().to_owned())
            .unwrap_or_default()
    }

    /// Its parent's number.
    pub(crate) fn parent(self) -> Option<u32> {
        stat(self.pid).map(|stat| stat.parent)
    }

    /// Its resident memory; zero when it is gone.
    pub(crate) fn memory(self) -> Memory {
        let field = |file: &str, key: &str| {
            let text = fs::read_to_string(format!("/proc/{}/{file}", self.pid)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
        };
        Memory {
            rss: field("status", "VmRSS:"),
            pss: field("smaps_rollup", "Pss:"),
            private: field("smaps_rollup", "Private_Clean:") + field("smaps_rollup", "Private_Dirty:"),
        }
    }
}

impl std::ops::Add for Memory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { rss: self.rss + other.rss, pss: self.pss + other.pss, private: self.private + other.private }
    }
}

impl Memory {
    /// Of several processes.
    pub(crate) fn sum(processes: impl IntoIterator<Item = Process>) -> Self {
        processes.into_iter().fold(Self::default(), |sum, process| sum + process.memory())
    }

    /// What each of `count` things added since `before`.
    pub(crate) fn growth_each(self, before: Self, count: u32) -> Self {
        let count = f64::from(count.max(1));
        Self {
            rss: (self.rss - before.rss) / count,
            pss: (self.pss - before.pss) / count,
            private: (self.private - before.private) / count,
        }
    }
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold spaces and brackets.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22, counted from 1; the two before `state` are gone.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, started })
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The first line of `/proc/loadavg`.
pub(crate) fn load_average() -> String {
    fs::read_to_string("/proc/loadavg").map(|s| s.trim().to_owned()).unwrap_or_default()
}

/// Share of all cores that was busy during `window`, 0 to 1.
pub(crate) fn busy_share(window: Duration) -> f64 {
    let before = cpu_ticks();
    let begun = Instant::now();
    std::thread::sleep(window.saturating_sub(begun.elapsed()));
    let after = cpu_ticks();
    let (busy, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    busy as f64 / all.max(1) as f64
}

/// Busy and all ticks since boot.
fn cpu_ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    // user nice system idle iowait irq softirq steal; guest time is in user.
    let ticks: Vec<u64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

/// CPU, cores and kernel, for the record.
pub(crate) fn machine() -> serde_json::Value {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    serde_json::json!({ "cpu": cpu, "cores": cores(), "kernel": kernel.trim() })
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there() {
        let own = Process::of(std::process::id()).expect("it runs");
        assert!(own.is_alive());
        assert!(own.memory().rss > 0.0);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let found: Vec<u32> = own.descendants().iter().map(|p| p.pid).collect();
        let process = Process::of(child.id()).expect("it runs");
        process.signal(Signal::KILL);
        child.wait().expect("it ends");
        assert!(found.contains(&process.pid));
        assert!(!process.is_alive());
    }
}
