//! What `/proc` says about processes.

use std::path::PathBuf;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// Its short name.
    pub name: String,
    /// `R`, `S`, `Z`, …
    pub state: char,
}

/// All processes.
pub fn all() -> Vec<Process> {
    let Ok(dir) = std::fs::read_dir("/proc") else { return Vec::new() };
    dir.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(of).collect()
}

/// One process by its id.
pub fn of(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may hold anything.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, name, state })
}

/// All below `pid`.
pub fn descendants(pid: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|p| p.parent == parent) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// Open descriptors of a process.
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map(|dir| dir.count()).unwrap_or_default()
}

/// Bytes that wait to be read in the TCP sockets of a process.
pub fn unread(pid: u32) -> u64 {
    let Ok(dir) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let sockets: Vec<String> = dir
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    // sl, local, remote, state, tx:rx in hex, …, and the inode as the tenth.
    let waiting = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (queues, inode) = (fields.get(4)?, fields.get(9)?);
        let (_, rx) = queues.split_once(':')?;
        sockets.iter().any(|s| s == inode).then(|| u64::from_str_radix(rx, 16).ok())?
    };
    table.lines().skip(1).filter_map(waiting).sum()
}

/// Processes whose first environment holds `entry`, zombies left out.
pub fn with_environment(entry: &str) -> Vec<Process> {
    all()
        .into_iter()
        .filter(|p| {
            std::fs::read(PathBuf::from(format!("/proc/{}/environ", p.pid)))
                .is_ok_and(|env| env.split(|b| *b == 0).any(|e| e == entry.as_bytes()))
        })
        .collect()
}

/// Whether a process is there and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    of(pid).is_some_and(|p| p.state != 'Z' && p.state != 'X')
}

/// Processes that were started with exactly this argument.
pub fn with_argument(argument: &str) -> Vec<Process> {
    all()
        .into_iter()
        .filter(|p| {
            std::fs::read(format!("/proc/{}/cmdline", p.pid))
                .is_ok_and(|line| line.split(|b| *b == 0).any(|a| a == argument.as_bytes()))
        })
        .collect()
}
