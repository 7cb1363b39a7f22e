//! What waits to be typed into a command.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::super::wire::{STDIN_WINDOW, StdinState};

/// Answers that may wait for a program that asks and does not read.
const ANSWERS_MAX: usize = 64;

/// A bounded queue in front of a command's standard input. Written without blocking, so that output goes on while the
/// command does not read.
#[derive(Debug)]
pub(super) struct Input {
    fd: Option<OwnedFd>,
    queue: VecDeque<u8>,
    /// Where the bytes of the queue come from, front to back, and how many they are.
    pieces: VecDeque<(Source, usize)>,
    /// No more bytes will come; close when the queue is empty.
    ending: bool,
    opened: bool,
    accepted: u64,
    taken: u64,
}

/// Who put bytes into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The node, which counts them.
    Node,
    /// The holder, for a terminal. The node knows nothing of them.
    Answer,
}

/// The node sent more than the window allows.
#[derive(Debug)]
pub(super) struct Overrun;

impl Input {
    pub(super) fn new(fd: Option<OwnedFd>) -> Input {
        let opened = fd.is_some();
        Input {
            fd,
            queue: VecDeque::new(),
            pieces: VecDeque::new(),
            ending: false,
            opened,
            accepted: 0,
            taken: 0,
        }
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
        if self.accepted - self.taken > STDIN_WINDOW as u64 {
            return Err(Overrun);
        }
        self.queue.extend(bytes);
        match self.pieces.back_mut() {
            Some((Source::Node, len)) => *len += bytes.len(),
            Some((Source::Answer, _)) | None => self.pieces.push_back((Source::Node, bytes.len())),
        }
        Ok(())
    }

    /// Queues what a terminal answers by itself, behind what was typed before. Not counted, and dropped where too many
    /// wait already.
    pub(super) fn answer(&mut self, bytes: &[u8]) {
        let waiting = self.pieces.iter().filter(|(source, _)| *source == Source::Answer).count();
        if self.fd.is_some() && !self.ending && waiting < ANSWERS_MAX {
            self.queue.extend(bytes);
            self.pieces.push_back((Source::Answer, bytes.len()));
        }
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
                Ok(written) => self.on_written(written),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // EPIPE, or EIO of a terminal: nobody reads any more. The exit tells the rest.
                Err(_) => self.close(),
            }
        }
        self.close_if_done();
    }

    fn on_written(&mut self, written: usize) {
        self.queue.drain(..written);
        let mut left = written;
        while let Some((source, len)) = self.pieces.front_mut()
            && left > 0
        {
            let part = left.min(*len);
            if *source == Source::Node {
                self.taken += part as u64;
            }
            left -= part;
            *len -= part;
            if *len == 0 {
                self.pieces.pop_front();
            }
        }
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
        self.pieces = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn answers_keep_their_place_and_are_not_counted() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(writer));
        input.push(b"one").unwrap();
        input.answer(b"<1>");
        input.answer(b"<2>");
        input.push(b"two").unwrap();
        assert_eq!((input.accepted(), input.taken()), (6, 0));
        input.write();
        assert_eq!((input.accepted(), input.taken()), (6, 6));
        let mut got = [0; 64];
        let len = rustix::io::read(&reader, &mut got).unwrap();
        assert_eq!(&got[..len], b"one<1><2>two");
    }

    #[test]
    fn parts_are_counted_wherever_a_write_ends() {
        let (_reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(writer));
        input.push(b"ab").unwrap();
        input.answer(b"xyz");
        input.push(b"cd").unwrap();
        let mut taken = Vec::new();
        for part in [1, 2, 1, 2, 1] {
            input.on_written(part);
            taken.push(input.taken());
        }
        assert_eq!(taken, [1, 2, 2, 3, 4]);
    }

    #[test]
    fn answers_are_bounded_and_leave_the_window_alone() {
        let (_reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(writer));
        for _ in 0..1000 {
            input.answer(b"1234");
        }
        assert_eq!(input.queue.len(), ANSWERS_MAX * 4);
        input.push(&[0; STDIN_WINDOW]).unwrap();
        assert!(input.push(b"x").is_err());
    }
}
