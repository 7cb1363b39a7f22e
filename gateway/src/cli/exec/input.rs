//! Where a followed session's input comes from.

use std::io::{self, Read as _};

use bytes::Bytes;
use proto::v1::{self as pb, client_frame::Frame};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::super::terminal::{self, Escape};

/// Input frames that may wait for the gateway.
const QUEUE_MAX: usize = 4;
/// Bytes of one read.
const READ_MAX: usize = 64 * 1024;

/// What this process's stdin is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Source {
    /// It is not read.
    None,
    /// It is passed on, and its end is.
    Stream,
    /// It is a person at a terminal: raw mode, window sizes, `~.` leaves.
    Terminal,
    /// As the session needs: decided when it is known.
    Attached,
}

/// What comes from this side.
#[derive(Debug)]
pub(super) enum Typed {
    Bytes(Bytes),
    /// The end of the input.
    End,
    /// The person wants to leave.
    Leave,
}

/// Reads stdin on a thread of its own: a read cannot be cancelled.
pub(super) fn start(source: Source) -> mpsc::Receiver<Typed> {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    if source == Source::None {
        return receiver;
    }
    std::thread::spawn(move || {
        let mut escape = (source == Source::Terminal).then(Escape::default);
        let mut buffer = vec![0; READ_MAX];
        loop {
            let typed = match io::stdin().lock().read(&mut buffer) {
                Ok(0) => None,
                Ok(count) => Some(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => None,
            };
            let Some(typed) = typed else {
                // The receiver is gone when the session has ended.
                let _ = sender.blocking_send(Typed::End);
                return;
            };
            let (bytes, leaves) = match &mut escape {
                Some(escape) => escape.filter(typed),
                None => (typed.to_vec(), false),
            };
            if !bytes.is_empty() && sender.blocking_send(Typed::Bytes(Bytes::from(bytes))).is_err() {
                return;
            }
            if leaves {
                let _ = sender.blocking_send(Typed::Leave);
                return;
            }
        }
    });
    receiver
}

/// Signals of this process that mean something to the session.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    resize: Signal,
    interrupts: u32,
    watch_size: bool,
}

/// What a signal asks for.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, moved once")]
pub(super) enum Asked {
    Frame(Frame),
    /// Ctrl-C for the first time.
    Interrupt,
    /// Ctrl-C again: the command did not listen.
    Insist,
}

impl Signals {
    pub(super) fn new(source: Source) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            resize: signal(SignalKind::window_change())?,
            interrupts: 0,
            watch_size: source == Source::Terminal,
        })
    }

    /// Resolves at the next Ctrl-C.
    pub(super) async fn interrupted(&mut self) {
        self.interrupt.recv().await;
    }

    pub(super) async fn next(&mut self) -> Asked {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    self.interrupts += 1;
                    return if self.interrupts == 1 { Asked::Interrupt } else { Asked::Insist };
                }
                _ = self.resize.recv() => {
                    if self.watch_size {
                        let size: pb::WindowSize = terminal::size();
                        return Asked::Frame(Frame::Resize(size));
                    }
                }
            }
        }
    }
}
