//! The unconfirmed input of one writer: what to send, what to send again.
//!
//! Pure. The gateway uses it towards a node, the command line towards the
//! gateway, so that input survives the loss of either connection.

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes in one piece.
const CHUNK_MAX: usize = 64 * 1024;

/// Bytes to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes of this writer before it.
    pub(crate) offset: u64,
    /// The bytes.
    pub(crate) data: Bytes,
    /// Nothing comes after.
    pub(crate) eof: bool,
}

/// The unconfirmed input of one writer.
#[derive(Debug)]
pub(crate) struct Writer {
    id: u64,
    /// Bytes that may be unconfirmed before [`has_room`](Self::has_room) says no.
    window: usize,
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
    Confirmed,
}

impl Writer {
    /// The writer `id` (0: a new one), of whose input everything below `base`
    /// was confirmed before.
    pub(crate) fn new(id: u64, base: u64, window: usize) -> Self {
        Self {
            id: if id == 0 { random_id() } else { id },
            window,
            pending: VecDeque::new(),
            base,
            sent: 0,
            bytes: 0,
            eof: Eof::No,
            closed: false,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Everything below was confirmed.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Whether more should be taken from whoever types.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < self.window
    }

    /// Whether there is something to send on the current connection.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.closed && (self.sent < self.pending.len() || self.eof == Eof::Wanted)
    }

    /// Whether anything still depends on a connection.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        !self.closed && (!self.pending.is_empty() || matches!(self.eof, Eof::Wanted | Eof::Sent))
    }

    /// Takes bytes that were typed.
    pub(crate) fn push(&mut self, mut data: Bytes) {
        if self.closed || self.eof != Eof::No {
            return;
        }
        self.bytes += data.len();
        while !data.is_empty() {
            self.pending.push_back(data.split_to(data.len().min(CHUNK_MAX)));
        }
    }

    /// No more will be typed.
    pub(crate) fn finish(&mut self) {
        if self.eof == Eof::No {
            self.eof = Eof::Wanted;
        }
    }

    /// The next piece to send, if any.
    pub(crate) fn next_piece(&mut self) -> Option<Piece> {
        if self.closed {
            return None;
        }
        let offset = self.base + self.pending.iter().take(self.sent).map(|c| c.len() as u64).sum::<u64>();
        if let Some(data) = self.pending.get(self.sent) {
            let piece = Piece { offset, data: data.clone(), eof: false };
            self.sent += 1;
            return Some(piece);
        }
        if self.eof == Eof::Wanted {
            self.eof = Eof::Sent;
            return Some(Piece { offset, data: Bytes::new(), eof: true });
        }
        None
    }

    /// The node has taken everything below `total`, and the end if `eof`.
    pub(crate) fn confirmed(&mut self, total: u64, eof: bool) {
        if eof {
            self.eof = Eof::Confirmed;
        }
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

    /// A new connection: everything unconfirmed goes again.
    pub(crate) fn rewind(&mut self) {
        self.sent = 0;
        if self.eof == Eof::Sent {
            self.eof = Eof::Wanted;
        }
    }

    /// The command takes no input: forgets all of it.
    pub(crate) fn refused(&mut self) {
        self.closed = true;
        self.pending.clear();
        self.bytes = 0;
        self.sent = 0;
    }
}

/// Zero for want of entropy would still be a writer; it only must not meet
/// another one of the same session.
fn random_id() -> u64 {
    let mut id = [0u8; 8];
    let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
    u64::from_le_bytes(id).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_input_is_sent_again_and_only_that() {
        let mut writer = Writer::new(7, 0, 256 * 1024);
        writer.push(Bytes::from_static(b"one"));
        writer.push(Bytes::from_static(b"two"));
        writer.finish();
        let sent = |writer: &mut Writer| -> Vec<(u64, Bytes, bool)> {
            std::iter::from_fn(|| writer.next_piece()).map(|f| (f.offset, f.data, f.eof)).collect()
        };
        let (one, two) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
        assert_eq!(sent(&mut writer), [(0, one, false), (3, two.clone(), false), (6, Bytes::new(), true)]);
        writer.confirmed(4, false);
        assert_eq!(writer.base, 3);
        writer.rewind();
        assert_eq!(sent(&mut writer), [(3, two, false), (6, Bytes::new(), true)]);
        assert!(writer.is_unconfirmed(), "the end was not confirmed");
        writer.confirmed(6, true);
        assert!(!writer.is_unconfirmed());
        assert_eq!((writer.base, writer.bytes, writer.pending.len()), (6, 0, 0));
    }

    #[test]
    fn room_is_bounded() {
        let mut writer = Writer::new(7, 0, 256 * 1024);
        assert!(writer.has_room());
        writer.push(Bytes::from(vec![0; 256 * 1024]));
        assert!(!writer.has_room());
        writer.confirmed(CHUNK_MAX as u64, false);
        assert!(writer.has_room());
        writer.refused();
        assert_eq!(writer.next_piece(), None);
    }
}
