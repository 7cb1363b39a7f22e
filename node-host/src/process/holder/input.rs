//! What waits to be typed into a command.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::super::wire::{STDIN_WINDOW, StdinState};

/// A bounded queue in front of a command's standard input. Written without blocking, so that output goes on while the
/// command does not read.
#[derive(Debug)]
pub(super) struct Input {
    fd: Option<OwnedFd>,
    queue: VecDeque<u8>,
    /// No more bytes will come; close when the queue is empty.
    ending: bool,
    opened: bool,
    accepted: u64,
    taken: u64,
}

/// The node sent more than the window allows.
#[derive(Debug)]
pub(super) struct Overrun;

impl Input {
    pub(super) fn new(fd: Option<OwnedFd>) -> Input {
        let opened = fd.is_some();
        Input { fd, queue: VecDeque::new(), ending: false, opened, accepted: 0, taken: 0 }
    }

    pub(super) fn state(&self) -> StdinState {
        match (&self.fd, self.opened) {
            (Some(_), _) if !self.ending => StdinState::Open,
            (_, true) => StdinState::Closed,
            (_, false) => StdinState::NotOpened,
        }
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The descriptor, and whether there is something to write.
    pub(super) fn poll(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.fd.as_ref().map(|fd| (fd.as_fd(), !self.queue.is_empty()))
    }

    /// Queues bytes. After the end, or into a closed input, they are counted as taken and dropped: the node knows that
    /// the input is closed, or is about to hear it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Overrun> {
        self.accepted += bytes.len() as u64;
        if self.fd.is_none() || self.ending {
            self.taken += bytes.len() as u64;
            return Ok(());
        }
        if self.queue.len() + bytes.len() > STDIN_WINDOW {
            return Err(Overrun);
        }
        self.queue.extend(bytes);
        Ok(())
    }

    /// Closes the input behind what is queued.
    pub(super) fn end(&mut self) {
        self.ending = true;
        self.close_if_done();
    }

    /// Writes as much as the command takes.
    pub(super) fn write(&mut self) {
        while let Some(fd) = &self.fd {
            let (front, _) = self.queue.as_slices();
            if front.is_empty() {
                break;
            }
            match rustix::io::write(fd, front) {
                Ok(written) => {
                    self.queue.drain(..written);
                    self.taken += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // EPIPE, or EIO of a terminal: nobody reads any more. The exit tells the rest.
                Err(_) => self.close(),
            }
        }
        self.close_if_done();
    }

    /// Nobody has the other end open. What is queued is left to the next write, which gets the error.
    pub(super) fn on_hang_up(&mut self) {
        if self.queue.is_empty() {
            self.close();
        }
    }

    fn close_if_done(&mut self) {
        if self.ending && self.queue.is_empty() {
            self.close();
        }
    }

    /// Closes at once; what is queued is lost with its reader.
    pub(super) fn close(&mut self) {
        self.fd = None;
        self.taken = self.accepted;
        self.queue = VecDeque::new();
    }
}
