//! Does a command wait for input? Asked of the system: which call is each of its processes in?
//!
//! A process that reads its terminal or its input sits in `read` on it, or in a call that waits for several things while
//! it has it open and is in the terminal's foreground. Where the system does not tell (the process belongs to somebody
//! else, or the kernel was built without the file), the answer is that nobody knows.

use std::path::PathBuf;

use super::tree;

/// Processes that are looked at.
const PROCESSES_MAX: usize = 256;

/// Whether a process of the command waits in a read of its terminal or of its standard input. None: cannot be told.
pub(crate) fn reads_input(pid: i32) -> Option<bool> {
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).ok();
    let terminal_group = tree::terminal_group(pid);
    let mut known = false;
    let mut queue = vec![pid];
    let mut seen = 0;
    while let Some(pid) = queue.pop() {
        seen += 1;
        if seen > PROCESSES_MAX {
            break;
        }
        queue.extend(tree::children(pid));
        let in_front = terminal_group.is_none_or(|group| tree::group(pid) == Some(group));
        if !in_front {
            continue;
        }
        match call(pid) {
            Some(Call::Read(fd)) => {
                known = true;
                if is_input(pid, fd, input.as_ref()) {
                    return Some(true);
                }
            }
            Some(Call::Wait) => {
                known = true;
                // What it waits for is not shown. In front of a terminal that it has as its input, that is it.
                if terminal_group.is_some() && is_input(pid, 0, input.as_ref()) {
                    return Some(true);
                }
            }
            Some(Call::Other) => known = true,
            None => {}
        }
    }
    known.then_some(false)
}

/// What a process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// It reads this descriptor.
    Read(i32),
    /// It waits for one of several descriptors.
    Wait,
    /// Something else, or it runs.
    Other,
}

fn call(pid: i32) -> Option<Call> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?)
}

/// The first field is the number of the call or `running`, the next ones are its arguments.
fn parse(text: &str) -> Option<Call> {
    let mut fields = text.split_ascii_whitespace();
    let Ok(number) = fields.next()?.parse::<i64>() else { return Some(Call::Other) };
    Some(match number {
        libc::SYS_read | libc::SYS_readv => {
            let fd = i64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok()?;
            Call::Read(i32::try_from(fd).ok()?)
        }
        libc::SYS_pselect6 | libc::SYS_ppoll | libc::SYS_epoll_pwait => Call::Wait,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select | libc::SYS_poll | libc::SYS_epoll_wait => Call::Wait,
        _ => Call::Other,
    })
}

/// Whether a descriptor of a process is the command's input.
fn is_input(pid: i32, fd: i32, input: Option<&PathBuf>) -> bool {
    let Ok(link) = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")) else { return false };
    // A program may open its terminal anew.
    Some(&link) == input || link.as_os_str() == "/dev/tty"
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn lines_of_the_system() {
        let read = format!("{} 0x3 0x7ffd 0x400 0x0 0x0 0x0 0x7ffd 0x7f00\n", libc::SYS_read);
        assert_eq!(parse(&read), Some(Call::Read(3)));
        let wait = format!("{} 0x1 0x0 0x0 0x0 0x0 0x0 0x0 0x0", libc::SYS_pselect6);
        assert_eq!(parse(&wait), Some(Call::Wait));
        assert_eq!(parse("running\n"), Some(Call::Other));
        assert_eq!(parse("-1 0x7ffd 0x7f00\n"), Some(Call::Other));
        assert_eq!((parse(""), parse(&format!("{}", libc::SYS_read))), (None, None));
    }

    /// Waits until it says so.
    fn becomes(pid: i32, want: bool) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if reads_input(pid) == Some(want) {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    #[test]
    fn a_reader_and_one_that_does_not_read() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        assert!(becomes(cat.id() as i32, true));
        // Below a shell that waits for it.
        let mut shell = Command::new("sh")
            .args(["-c", "cat; exit 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(becomes(shell.id() as i32, true));
        let mut sleep = Command::new("sleep").arg("60").stdin(Stdio::piped()).spawn().unwrap();
        assert!(becomes(sleep.id() as i32, false));
        for child in [&mut cat, &mut shell, &mut sleep] {
            drop(child.stdin.take());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(reads_input(cat.id() as i32), None);
    }
}
