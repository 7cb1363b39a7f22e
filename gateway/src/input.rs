//! What a caller sends to a running session: bytes, half-close, sizes, signals.
//!
//! Each caller is one writer with its own offsets. What the node has not
//! confirmed is kept and sent again after a lost link; the node skips what it
//! has taken already, so nothing is typed twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use identity::Fingerprint;
use proto::v1::{self as pb, client_frame, request::Command, session_event::Event};
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::feed::COME_BACK_WITHIN;
use crate::follow::Handle;
use crate::gateway::Gateway;
use crate::node_link::Link;
use crate::start::comes_back;

/// Bytes on their way to a node, unconfirmed. The caller is not read beyond it.
const UNCONFIRMED_MAX: usize = 256 * 1024;
/// Bytes in one frame.
const CHUNK_MAX: usize = 64 * 1024;
/// Answer to a resize, signal or kill.
const QUICK: Duration = Duration::from_secs(10);

/// Passes a caller's frames on until the session or the caller ends.
pub(crate) async fn pump(
    gateway: Arc<Gateway>,
    node: Fingerprint,
    session: String,
    mut frames: Streaming<pb::ClientFrame>,
    follow: Handle,
) {
    let mut writer = Writer::new(session.clone());
    let mut connection: Option<(Arc<Link>, mpsc::Receiver<pb::InputTaken>)> = None;
    let mut reading = true;
    loop {
        if writer.has_unsent() && connection.as_ref().is_none_or(|(link, _)| link.is_closed()) {
            let link = tokio::select! {
                () = follow.done.cancelled() => return,
                link = comes_back(&gateway, &node, COME_BACK_WITHIN) => link,
            };
            let Ok(link) = link else { return };
            writer.rewind();
            connection = link.open_writer(writer.id).ok().map(|taken| (link, taken));
            continue;
        }
        if let Some((link, _)) = &connection
            && let Some(input) = writer.next_frame()
        {
            if link.send_input(input).await.is_err() {
                link.end(crate::node_link::link_lost());
            }
            continue;
        }
        tokio::select! {
            () = follow.done.cancelled() => break,
            taken = next_taken(&mut connection) => match taken {
                Some(pb::InputTaken { fault: Some(fault), .. }) => {
                    writer.refused();
                    let event = pb::SessionEvent { event: Some(Event::InputRefused(fault)) };
                    if follow.events.send(Ok(event)).await.is_err() {
                        break;
                    }
                }
                Some(taken) => writer.confirmed(taken.total),
                // The link is over: what is unconfirmed goes over the next one.
                None => connection = None,
            },
            frame = frames.message(), if reading && writer.has_room() => match frame {
                Ok(Some(pb::ClientFrame { frame: Some(frame) })) => match frame {
                    client_frame::Frame::Input(data) => writer.push(data),
                    client_frame::Frame::InputEof(true) => writer.finish(),
                    client_frame::Frame::Detach(true) => {
                        follow.detach.cancel();
                        break;
                    }
                    other => command(&gateway, &node, &session, other),
                },
                Ok(Some(pb::ClientFrame { frame: None })) => {}
                // Half-closed, or gone: the follower notices the latter.
                Ok(None) | Err(_) => reading = false,
            },
        }
    }
    if let Some((link, _)) = connection {
        link.close_writer(writer.id);
    }
}

async fn next_taken(
    connection: &mut Option<(Arc<Link>, mpsc::Receiver<pb::InputTaken>)>,
) -> Option<pb::InputTaken> {
    match connection {
        Some((_, taken)) => taken.recv().await,
        None => std::future::pending().await,
    }
}

/// Resize, signal, kill: asked for without waiting, in the order of arrival.
fn command(gateway: &Gateway, node: &Fingerprint, session: &str, frame: client_frame::Frame) {
    let session_id = session.to_owned();
    let command = match frame {
        client_frame::Frame::Resize(size) => {
            Command::Resize(pb::ResizeRequest { session_id, size: Some(size) })
        }
        client_frame::Frame::Signal(signal) => Command::Signal(pb::SignalRequest { session_id, signal }),
        client_frame::Frame::Kill(true) => Command::Kill(pb::KillRequest { session_id, grace_ms: 0 }),
        _ => return,
    };
    let Some(link) = gateway.registry.link(node) else {
        if let Command::Kill(kill) = command {
            gateway.owe_kill(*node, kill.session_id);
        }
        return;
    };
    tokio::spawn(async move {
        if let Err(error) = link.request(command, QUICK).await {
            tracing::info!(fault = %error.fault(), "a command to a session did not succeed");
        }
    });
}

/// The unconfirmed input of one caller.
#[derive(Debug)]
struct Writer {
    id: u64,
    session: String,
    /// Chunks that the node has not confirmed, the first at `base`.
    pending: VecDeque<Bytes>,
    /// Offset of the first pending byte.
    base: u64,
    /// How many of the pending chunks were sent on the current link.
    sent: usize,
    bytes: usize,
    eof: Eof,
    closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Eof {
    No,
    Wanted,
    Sent,
}

impl Writer {
    fn new(session: String) -> Self {
        let mut id = [0u8; 8];
        // Zero for want of entropy is still a valid writer; it only must not
        // meet another one of the same session.
        let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
        Self {
            id: u64::from_le_bytes(id),
            session,
            pending: VecDeque::new(),
            base: 0,
            sent: 0,
            bytes: 0,
            eof: Eof::No,
            closed: false,
        }
    }

    fn has_room(&self) -> bool {
        self.bytes < UNCONFIRMED_MAX
    }

    fn has_unsent(&self) -> bool {
        !self.closed
            && (self.sent < self.pending.len() || self.eof == Eof::Wanted || !self.pending.is_empty())
    }

    fn push(&mut self, mut data: Bytes) {
        if self.closed || self.eof != Eof::No {
            return;
        }
        self.bytes += data.len();
        while !data.is_empty() {
            self.pending.push_back(data.split_to(data.len().min(CHUNK_MAX)));
        }
    }

    fn finish(&mut self) {
        if self.eof == Eof::No {
            self.eof = Eof::Wanted;
        }
    }

    /// The next frame to send, if any.
    fn next_frame(&mut self) -> Option<pb::Input> {
        if self.closed {
            return None;
        }
        let offset = self.base + self.pending.iter().take(self.sent).map(|c| c.len() as u64).sum::<u64>();
        let input =
            |data, eof| pb::Input { session_id: self.session.clone(), writer: self.id, offset, data, eof };
        if let Some(data) = self.pending.get(self.sent) {
            let frame = input(data.clone(), false);
            self.sent += 1;
            return Some(frame);
        }
        if self.eof == Eof::Wanted {
            let frame = input(Bytes::new(), true);
            self.eof = Eof::Sent;
            return Some(frame);
        }
        None
    }

    fn confirmed(&mut self, total: u64) {
        while let Some(first) = self.pending.front() {
            let end = self.base + first.len() as u64;
            if end > total {
                break;
            }
            self.bytes -= first.len();
            self.base = end;
            self.pending.pop_front();
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// A new link: everything unconfirmed goes again.
    fn rewind(&mut self) {
        self.sent = 0;
        if self.eof == Eof::Sent {
            self.eof = Eof::Wanted;
        }
    }

    fn refused(&mut self) {
        self.closed = true;
        self.pending.clear();
        self.bytes = 0;
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_input_is_sent_again_and_only_that() {
        let mut writer = Writer::new("s".into());
        writer.push(Bytes::from_static(b"one"));
        writer.push(Bytes::from_static(b"two"));
        writer.finish();
        let sent = |writer: &mut Writer| -> Vec<(u64, Bytes, bool)> {
            std::iter::from_fn(|| writer.next_frame()).map(|f| (f.offset, f.data, f.eof)).collect()
        };
        let (one, two) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
        assert_eq!(sent(&mut writer), [(0, one, false), (3, two.clone(), false), (6, Bytes::new(), true)]);
        writer.confirmed(4);
        assert_eq!(writer.base, 3);
        writer.rewind();
        assert_eq!(sent(&mut writer), [(3, two, false), (6, Bytes::new(), true)]);
        writer.confirmed(6);
        assert_eq!((writer.base, writer.bytes, writer.pending.len()), (6, 0, 0));
    }

    #[test]
    fn room_is_bounded() {
        let mut writer = Writer::new("s".into());
        assert!(writer.has_room());
        writer.push(Bytes::from(vec![0; UNCONFIRMED_MAX]));
        assert!(!writer.has_room());
        writer.confirmed(CHUNK_MAX as u64);
        assert!(writer.has_room());
        writer.refused();
        assert_eq!(writer.next_frame(), None);
    }
}
