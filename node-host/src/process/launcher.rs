//! The launcher: a small process, forked first, that forks holders on demand.
//!
//! A fork copies page tables; the launcher has few, node-host may have many. It also outlives node-host, so that holders
//! keep a parent that reaps them, and it is the subreaper above them: when a holder dies without having ended its
//! command, the command's processes come here and are killed. It does not know sessions.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, setsid, wait, waitpid};
use tokio::io::unix::AsyncFd;

use super::{holder, tree};
use crate::sys;

/// One request: "a holder, please".
const REQUEST: [u8; 1] = [1];

/// How often processes whose holder died are looked for again until they are gone.
const STRAY_ROUND: Duration = Duration::from_millis(20);

/// Starts the launcher.
#[derive(Debug)]
pub struct Launcher(Infallible);

impl Launcher {
    /// Forks the launcher. Must be the first thing that a program does: before any thread, and before it opens
    /// anything large.
    ///
    /// # Errors
    /// When the process already has a second thread, or the system refuses.
    pub fn fork() -> io::Result<LauncherHandle> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let pid = sys::fork_child(theirs, serve)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(LauncherHandle { socket: ours, pid })
    }
}

/// The node's end of the launcher. When it is dropped the launcher stays until its last holder is gone.
#[derive(Debug)]
pub struct LauncherHandle {
    socket: OwnedFd,
    pid: Pid,
}

impl LauncherHandle {
    /// The launcher's process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Makes the handle usable on a runtime.
    pub(crate) fn into_async(self) -> io::Result<HolderSource> {
        Ok(HolderSource { socket: sys::watch(self.socket)?, pid: self.pid })
    }
}

/// A holder that waits for its command.
#[derive(Debug)]
pub(crate) struct SpareHolder {
    /// Its process id.
    pub(crate) pid: i32,
    /// The stream socket to it.
    pub(crate) socket: OwnedFd,
}

/// Asks the launcher for holders, one at a time.
#[derive(Debug)]
pub(crate) struct HolderSource {
    socket: AsyncFd<OwnedFd>,
    pid: Pid,
}

impl HolderSource {
    /// One new holder. Not safe to cancel: an answer that nobody waits for would be taken by the next call, which is
    /// harmless, as one holder is as good as another.
    pub(crate) async fn next(&mut self) -> io::Result<SpareHolder> {
        let request = |socket: &AsyncFd<OwnedFd>| {
            rustix::net::send(socket.get_ref(), &REQUEST, SendFlags::NOSIGNAL).map_err(io::Error::from)
        };
        loop {
            let mut guard = self.socket.writable().await?;
            if let Ok(sent) = guard.try_io(request) {
                sent?;
                break;
            }
        }
        loop {
            let mut guard = self.socket.readable().await?;
            if let Ok(answer) = guard.try_io(|socket| receive_holder(socket.get_ref())) {
                if answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                    // Nobody else waits for it.
                    let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
                }
                return answer;
            }
        }
    }
}

fn receive_holder(socket: &OwnedFd) -> io::Result<SpareHolder> {
    let mut answer = [0_u8; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(&mut answer)];
    let got = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the launcher is gone"));
    }
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let (pid, errno) = (number(&answer, 0), number(&answer, 4));
    match descriptor {
        Some(socket) if errno == 0 => Ok(SpareHolder { pid, socket }),
        _ => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn number(answer: &[u8; 8], at: usize) -> i32 {
    i32::from_le_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]])
}

/// The launcher's life.
fn serve(socket: OwnedFd) -> u8 {
    match Service::new(socket).and_then(Service::run) {
        Ok(()) => 0,
        // Nobody to tell: node-host sees the socket close.
        Err(_) => 1,
    }
}

struct Service {
    /// None when node-host is gone.
    socket: Option<OwnedFd>,
    signals: OwnedFd,
    holders: HashSet<i32>,
    /// Whether processes may be below us that no holder looks after.
    strays: Strays,
}

#[derive(PartialEq, Eq)]
enum Strays {
    None,
    Possible,
}

impl Service {
    fn new(socket: OwnedFd) -> io::Result<Service> {
        setsid()?;
        // Best effort: only seen in process lists.
        let _ = rustix::thread::set_name(c"farrun-launch");
        let _ = std::env::set_current_dir("/");
        set_child_subreaper(Some(getpid()))?;
        sys::ignore_signals();
        let signals = sys::child_signals()?;
        Ok(Service { socket: Some(socket), signals, holders: HashSet::new(), strays: Strays::None })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            if self.socket.is_none() && self.holders.is_empty() && self.strays == Strays::None {
                return Ok(());
            }
            let (asked, signalled) = self.wait()?;
            if signalled {
                // SIGTERM is no reason to leave: holders need their parent, and end with their own SIGTERM.
                sys::drain_signals(&self.signals);
            }
            self.reap();
            if self.strays == Strays::Possible {
                self.kill_strays();
            }
            if asked {
                self.answer();
            }
        }
    }

    /// Waits for a request or a signal: which came.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let round = Timespec { tv_sec: 0, tv_nsec: i64::from(STRAY_ROUND.subsec_nanos()) };
        let timeout = (self.strays == Strays::Possible).then_some(&round);
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(self.socket.as_ref().map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        Ok((ready(fds.get(1)), ready(fds.first())))
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
            if self.holders.remove(&pid.as_raw_pid()) {
                self.strays = Strays::Possible;
            }
        }
    }

    /// Kills what came here from a dead holder; what is left is looked at again in the next round.
    fn kill_strays(&mut self) {
        let me = getpid();
        let strays: Vec<i32> =
            tree::children(me.as_raw_pid()).into_iter().filter(|pid| !self.holders.contains(pid)).collect();
        if strays.is_empty() {
            self.strays = Strays::None;
            return;
        }
        for pid in strays.into_iter().filter_map(Pid::from_raw) {
            for process in tree::descendants(pid) {
                process.signal(Signal::KILL);
            }
            // A child of ours that was not reaped: its number cannot belong to anybody else.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        self.reap();
    }

    fn answer(&mut self) {
        let Some(socket) = &self.socket else { return };
        let mut request = [0; 1];
        match rustix::io::read(socket, &mut request) {
            Ok(1) => {}
            Err(Errno::INTR | Errno::AGAIN) => return,
            Ok(_) | Err(_) => {
                self.socket = None;
                return;
            }
        }
        let (answer, made) = match fork_holder() {
            Ok((pid, end)) => {
                self.holders.insert(pid.as_raw_pid());
                ([pid.as_raw_pid(), 0], Some(end))
            }
            Err(error) => ([0, error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())], None),
        };
        if send_holder(socket, answer, made.as_ref()).is_err() {
            // The holder sees its socket close and leaves.
            self.socket = None;
        }
    }
}

fn fork_holder() -> io::Result<(Pid, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let pid = sys::fork_child(theirs, holder::run)?;
    Ok((pid, ours))
}

fn send_holder(socket: &OwnedFd, answer: [i32; 2], end: Option<&OwnedFd>) -> io::Result<()> {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&answer[0].to_le_bytes());
    bytes[4..].copy_from_slice(&answer[1].to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let rights = end.map(|end| [end.as_fd()]);
    if let Some(rights) = &rights {
        ancillary.push(SendAncillaryMessage::ScmRights(rights));
    }
    sendmsg(socket, &[io::IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
