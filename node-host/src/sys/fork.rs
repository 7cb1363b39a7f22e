//! Forking without exec, and signals as a descriptor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// Forks a process that owns exactly one descriptor besides 0, 1 and 2 (which become `/dev/null`), runs `body` with it
/// and exits with the code that `body` returns, or 70 when it panics. Only the parent returns.
///
/// # Errors
/// When the calling process has more than one thread (a fork would copy their locks as they are), or the system
/// refuses to fork.
pub(crate) fn fork_child(keep: OwnedFd, body: impl FnOnce(OwnedFd) -> u8) -> io::Result<Pid> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("fork needs a single-threaded process"));
    }
    // SAFETY: the process has one thread, so no lock of another thread is copied in a locked state, and the child may
    // go on using the allocator. The child never returns from this function, so nothing that the caller owns is
    // dropped twice.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = match isolate(&keep) {
                Ok(()) => catch_unwind(AssertUnwindSafe(|| body(keep))).unwrap_or(70),
                Err(_) => 71,
            };
            // SAFETY: `_exit` ends the process without running the parent's exit handlers in its copy.
            unsafe { libc::_exit(i32::from(code)) }
        }
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no pid")),
    }
}

/// Closes every descriptor but `keep` and points 0, 1, 2 at `/dev/null`.
fn isolate(keep: &OwnedFd) -> io::Result<()> {
    let keep = keep.as_raw_fd();
    close_range(3, keep - 1)?;
    close_range(keep.max(2) + 1, RawFd::MAX)?;
    // SAFETY: a constant path and constant flags; the result is checked.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null < 0 {
        return Err(io::Error::last_os_error());
    }
    for target in 0..=2 {
        // SAFETY: both are descriptor numbers; 0 to 2 are not owned by any Rust value in this process. `keep` is
        // never one of them, since Rust reopens closed standard descriptors at start.
        if target != keep && unsafe { libc::dup2(null, target) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if null > 2 {
        // SAFETY: `null` was opened above and is used no more.
        unsafe { libc::close(null) };
    }
    Ok(())
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: in a fresh child that owns none of these descriptors: the values that did belong to the parent's frames,
    // which the child never returns to.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Blocks `SIGCHLD` and `SIGTERM` for this process and returns a descriptor that becomes readable when one arrives.
///
/// # Errors
/// When the system is out of descriptors.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before any other use, the pointers are valid for the calls, and the
    // descriptor returned by `signalfd` is new and owned by nobody else.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Empties a descriptor of [`child_signals`]; says whether `SIGTERM` was among what arrived.
pub(crate) fn drain_signals(signals: &OwnedFd) -> Terminated {
    const ONE: usize = size_of::<libc::signalfd_siginfo>();
    let mut buffer = [0_u8; ONE * 4];
    let mut terminated = Terminated::No;
    while let Ok(len) = rustix::io::read(signals, &mut buffer) {
        for info in buffer[..len].chunks_exact(ONE) {
            // The signal number is the first field, in the machine's byte order.
            let number = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
            if number == libc::SIGTERM as u32 {
                terminated = Terminated::Yes;
            }
        }
        if len < buffer.len() {
            break;
        }
    }
    terminated
}

/// Whether somebody asked this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminated {
    /// `SIGTERM` arrived.
    Yes,
    /// It did not.
    No,
}

/// Ignores the signals of terminals, sessions and broken pipes. A child must get the defaults back.
pub(crate) fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: SIG_IGN is a valid disposition and runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Sends a signal of any number, real-time ones included, to a process group.
///
/// # Errors
/// When the system knows no such signal or group, or the group may not be signalled. Group 1 is refused, since `kill`
/// takes its negative for everybody.
pub(crate) fn signal_group(group: Pid, number: i32) -> io::Result<()> {
    if group.is_init() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: `kill` takes two numbers, checks both and touches no memory of ours.
    match unsafe { libc::kill(-group.as_raw_pid(), number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor of our own for an open one that somebody else owns.
///
/// # Errors
/// When `raw` is not open, or the system is out of descriptors.
pub(crate) fn duplicate(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `fcntl` checks the number itself; the descriptor that it returns is new and owned by nobody else.
    unsafe {
        let fd = libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Watches a descriptor on the runtime that is entered.
///
/// # Errors
/// When the runtime cannot watch it.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and stays the same descriptor as long as it lives, which is as long as the result.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}
