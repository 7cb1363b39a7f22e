//! The holder's connection to node-host, and the socket where a restarted node-host finds it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with};

use super::super::wire::{self, FrameBuffer, FromHolder, LaunchSpec, ToHolder};
use crate::sys::{self, Terminated};

/// The socket's name in the session directory.
pub(crate) const SOCKET: &str = "sock";

/// The most that waits for a node that does not read, in bytes. Everything sent is asked for by the node and small, so
/// a queue this long means a broken peer.
const OUTBOX_MAX: usize = 1 << 20;

/// How long the last frames may take to leave, in seconds. The journal has the exit in any case.
const FLUSH_SECONDS: i64 = 2;

/// One connection. Never blocks; what cannot be sent waits.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    inbox: FrameBuffer,
    outbox: Vec<u8>,
}

/// The peer is gone, or talks nonsense.
#[derive(Debug)]
pub(crate) struct Gone;

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Connection {
        // Cannot fail on a socket that is open.
        let _ = rustix::io::ioctl_fionbio(&socket, true);
        Connection { socket, inbox: FrameBuffer::default(), outbox: Vec::new() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether frames wait for room.
    pub(crate) fn wants_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Waits for the specification. A spare whose node is gone, or that is told to end, gets none.
    ///
    /// What the node said to the session before this one may still be under way; it is passed over.
    pub(crate) fn wait_for_start(&mut self, signals: &OwnedFd) -> Option<LaunchSpec> {
        loop {
            while let Some(message) = self.inbox.next_frame().ok()? {
                if let ToHolder::Start(spec) = message {
                    return Some(*spec);
                }
            }
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            let [socket, signal] = fds.map(|fd| !fd.revents().is_empty());
            if signal && sys::drain_signals(signals) == Terminated::Yes {
                return None;
            }
            if socket {
                self.fill().ok()?;
            }
        }
    }

    /// Reads what is there and gives the whole frames to `take`.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(ToHolder)) -> Result<(), Gone> {
        let ended = self.fill();
        while let Some(message) = self.inbox.next_frame().map_err(|_| Gone)? {
            take(message);
        }
        ended
    }

    fn fill(&mut self) -> Result<(), Gone> {
        match rustix::io::read(&self.socket, spare_capacity(self.inbox.space())) {
            Ok(0) => Err(Gone),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    /// Sends a frame, or keeps it until there is room.
    pub(crate) fn send(&mut self, message: &FromHolder) -> Result<(), Gone> {
        wire::encode(message, &mut self.outbox).map_err(|_| Gone)?;
        self.flush()
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        while !self.outbox.is_empty() {
            match rustix::net::send(&self.socket, &self.outbox, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.outbox.drain(..sent)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
        if self.outbox.len() > OUTBOX_MAX { Err(Gone) } else { Ok(()) }
    }

    /// Sends what waits, for a bounded time.
    pub(crate) fn flush_all(&mut self) {
        while self.flush().is_ok() && self.wants_write() {
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            match poll(&mut fds, Some(&Timespec { tv_sec: FLUSH_SECONDS, tv_nsec: 0 })) {
                Ok(1) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// Listens in the session directory. Goes through the working directory, since a socket's path has 108 bytes at most
/// and a state directory may be longer.
pub(crate) fn listen(dir: &Path) -> io::Result<UnixListener> {
    std::env::set_current_dir(dir)?;
    let listener = UnixListener::bind(SOCKET)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Takes a waiting connection.
pub(crate) fn accept(listener: &UnixListener) -> Option<Connection> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    accept_with(listener, flags).ok().map(Connection::new)
}
