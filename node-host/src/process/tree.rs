//! The processes below one of ours, and signals that cannot hit a stranger.
//!
//! A process group alone leaks (`setsid`, double forks). A subreaper keeps every orphan below itself, so walking
//! `/proc` from there finds all of them. Each is opened as a pidfd and checked by start time before it is signalled: a
//! number that the system gave to somebody else in between is never hit.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The most processes that one walk shows. What is above comes in the next round.
const WALK_MAX: usize = 4096;

/// A process, told apart from later ones with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// Clock ticks from boot to its start.
    pub(crate) start: u64,
}

/// A live process found by a walk.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) identity: Identity,
    handle: OwnedFd,
}

impl Process {
    /// Signals it. A process that is gone already is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        // Nothing can be done about a refusal (another user's process): the caller counts who is left.
        let _ = pidfd_send_signal(&self.handle, signal);
    }
}

/// Every live process below `root`, parents before their children. Zombies count as gone.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    let mut order = Vec::new();
    visit(root, |process| order.push(process));
    order
}

/// Shows every live process below `root` as soon as it is found, parents before their children: what is ended while it
/// is shown starts no others while the walk goes on. Its children are known by then, whatever becomes of it.
pub(crate) fn visit(root: Pid, mut see: impl FnMut(Process)) {
    let root = root.as_raw_pid();
    let mut found = BTreeSet::new();
    let mut queue = vec![(root, children(root))];
    while let Some((parent, children_of_it)) = queue.pop() {
        for child in children_of_it {
            if found.len() >= WALK_MAX || !found.insert(child) {
                continue;
            }
            queue.push((child, children(child)));
            // A child whose parent died between the two looks is a child of the root now.
            let belongs = |stat: &Stat| stat.parent == parent || stat.parent == root;
            if let Some(process) = open(child, belongs) {
                see(process);
            }
        }
    }
}

fn open(pid: i32, belongs: impl Fn(&Stat) -> bool) -> Option<Process> {
    let before = stat(pid).filter(|s| belongs(s) && s.is_alive())?;
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let after = stat(pid)?;
    (before.start == after.start)
        .then_some(Process { identity: Identity { pid, start: before.start }, handle })
}

/// The direct children of a process, of all its threads.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(|n| n.parse::<i32>().ok())),
            // The file needs a kernel option; without it every process is asked for its parent.
            Err(_) if !std::path::Path::new("/proc/thread-self/children").exists() => {
                children.extend(children_by_parent(pid));
            }
            Err(_) => {}
        }
    }
    children
}

fn children_by_parent(parent: i32) -> Vec<i32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| stat(pid).is_some_and(|s| s.parent == parent))
        .collect()
}

/// The process group of a process.
pub(crate) fn group(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.group)
}

/// The foreground group of a process's terminal; none: it has no terminal.
pub(crate) fn terminal_group(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.terminal_group).filter(|group| *group > 0)
}

struct Stat {
    state: u8,
    parent: i32,
    group: i32,
    terminal_group: i32,
    threads: u32,
    start: u64,
}

impl Stat {
    /// A process whose first thread alone has ended looks like a zombie and runs on.
    fn is_alive(&self) -> bool {
        self.threads > 1 || !matches!(self.state, b'Z' | b'X')
    }
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 3, 4, 5, 8, 20 and 22. The name in field 2 may hold anything, closing brackets included.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let terminal_group = fields.nth(2)?.parse().ok()?;
    let threads = fields.nth(11)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, parent, group, terminal_group, threads, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_confuse_the_stat_reader() {
        let line = b"42 (a) R 1 (x) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 9876 1 2 3";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.start), (b'S', 7, 9876));
        assert!(parse_stat(b"42 (a").is_none());
    }

    #[test]
    fn finds_a_child_by_both_ways() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = std::process::id() as i32;
        let pid = child.id() as i32;
        assert!(children(me).contains(&pid));
        assert!(children_by_parent(me).contains(&pid));
        let found = descendants(rustix::process::getpid());
        found.iter().find(|p| p.identity.pid == pid).unwrap().signal(Signal::KILL);
        child.wait().unwrap();
        assert!(descendants(rustix::process::getpid()).iter().all(|p| p.identity.pid != pid));
    }
}
