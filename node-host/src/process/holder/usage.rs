//! What a tree of processes uses, read from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::process::tree::children;

/// The most processes that one walk looks at.
const WALK_MAX: usize = 16_384;

/// What a tree uses at one moment.
///
/// Nothing in it is ever too high for reasons of time: parents are read before their children, and so a process whose
/// end falls into the walk is missed this once rather than counted twice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Resident pages of each process, dead ones that nobody waited for included. What several share counts for each.
    pub(super) pages: HashMap<i32, u64>,
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Processor time in clock ticks, of the dead as well, as far as their parents waited for them.
    pub(super) ticks: u64,
}

/// Looks at everything below `root`; for `ticks`, at what `root` waited for, too. Stops when it has seen more than
/// `tasks_max`.
pub(super) fn below(root: Pid, tasks_max: Option<u64>) -> Usage {
    let mut usage = Usage { ticks: waited_for(root), ..Usage::default() };
    let mut queue = children(root.as_raw_pid());
    while let Some(pid) = queue.pop() {
        if usage.pages.len() >= WALK_MAX || tasks_max.is_some_and(|max| usage.tasks > max) {
            break;
        }
        // A child that changed its parent during the walk comes up twice.
        if usage.pages.contains_key(&pid) {
            continue;
        }
        let Some(stat) = fs::read(format!("/proc/{pid}/stat")).ok().and_then(|text| parse_stat(&text)) else {
            continue;
        };
        usage.pages.insert(pid, resident_pages(pid, &stat));
        usage.tasks += stat.threads;
        usage.ticks += stat.own_ticks + stat.children_ticks;
        queue.extend(children(pid));
    }
    usage
}

/// Clock ticks of the children that a process waited for, and of theirs.
pub(super) fn waited_for(pid: Pid) -> u64 {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok();
    text.and_then(|text| parse_stat(&text)).map_or(0, |stat| stat.children_ticks)
}

/// Resident memory in bytes, with shared pages counted in parts: exact, and dear. None where this user may not look.
pub(super) fn proportional_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Resident pages of a process as it is now; 0 for one that is gone.
pub(super) fn resident_now(pid: i32) -> u64 {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok().and_then(|text| parse_stat(&text));
    stat.map_or(0, |stat| resident_pages(pid, &stat))
}

fn resident_pages(pid: i32, stat: &Stat) -> u64 {
    let read = |at: &Path| fs::read(at.join("statm")).ok().and_then(|text| parse_statm(&text));
    let process = PathBuf::from(format!("/proc/{pid}"));
    if stat.state != b'Z' || stat.threads < 2 {
        return read(&process).unwrap_or(0);
    }
    // Its first thread ended and took the process's memory out of its files; the others still show it.
    let Ok(threads) = fs::read_dir(process.join("task")) else { return 0 };
    threads.flatten().filter_map(|thread| read(&thread.path())).max().unwrap_or(0)
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    own_ticks: u64,
    children_ticks: u64,
    threads: u64,
}

/// Fields 3, 14 to 17 and 20. The name in field 2 may hold anything, closing brackets included.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // The kernel gives the times of children as signed numbers.
    let mut times =
        fields.by_ref().skip(10).take(4).map(|field| field.parse::<i64>().unwrap_or(0).max(0) as u64);
    let own_ticks = times.next()?.saturating_add(times.next()?);
    let children_ticks = times.next()?.saturating_add(times.next()?);
    let threads = fields.nth(2)?.parse().ok()?;
    Some(Stat { state, own_ticks, children_ticks, threads })
}

/// The second field.
fn parse_statm(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_confuse_the_reader() {
        let line = b"42 (a) R 1 (x) Z 7 42 42 0 -1 4194560 1 0 0 0 11 22 33 -44 20 0 5 0 9876 1 2 3";
        let stat = Stat { state: b'Z', own_ticks: 33, children_ticks: 33, threads: 5 };
        assert_eq!(parse_stat(line), Some(stat));
        assert_eq!(parse_stat(b"42 (a"), None);
        assert_eq!(parse_stat(b"42 (a) S 1 2 3"), None);
        assert_eq!(parse_statm(b"100 23 4 5 0 6 0\n"), Some(23));
        assert_eq!(parse_statm(b"100"), None);
    }

    #[test]
    fn sees_a_child_and_what_it_uses() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = rustix::process::getpid();
        let pid = child.id() as i32;
        let usage = below(me, None);
        let pages = usage.pages[&pid];
        assert!(usage.tasks >= 1 && pages > 0, "{usage:?}");
        let exact = proportional_bytes(pid).unwrap();
        assert!(exact > 0 && exact <= pages * crate::sys::page_bytes() * 2, "{exact}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!below(me, None).pages.contains_key(&pid));
    }
}
