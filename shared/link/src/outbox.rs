//! The writer of a frame stream: control before bulk.
//!
//! Two bounded queues feed one stream. A frame in the control queue always
//! leaves before any frame of the bulk queue, so a flood of output delays an
//! answer by one bulk frame, not by a queue of them.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_stream::Stream;

/// Control frames that may wait: more than requests that may be open (4096) with
/// a grant for each, so that a full queue means a peer that does not read.
const CONTROL_DEPTH: usize = 16 * 1024;
/// Bulk frames that may wait: enough to keep the encoder busy, few enough that
/// sessions share the connection evenly.
const BULK_DEPTH: usize = 4;

/// The stream was dropped: the connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// The sending half. Clones share the queues.
#[derive(Debug)]
pub struct Outbox<T> {
    control: mpsc::Sender<T>,
    bulk: mpsc::Sender<T>,
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self { control: self.control.clone(), bulk: self.bulk.clone() }
    }
}

/// The stream that the RPC layer pulls frames from. Ends when all senders are
/// gone, or after [`Outbox`] clones were dropped.
#[derive(Debug)]
pub struct OutboxStream<T> {
    control: mpsc::Receiver<T>,
    bulk: mpsc::Receiver<T>,
}

impl<T> Outbox<T> {
    /// A sender and its stream.
    pub fn new() -> (Self, OutboxStream<T>) {
        let (control, control_rx) = mpsc::channel(CONTROL_DEPTH);
        let (bulk, bulk_rx) = mpsc::channel(BULK_DEPTH);
        (Self { control, bulk }, OutboxStream { control: control_rx, bulk: bulk_rx })
    }

    /// Queues a control frame, waiting for room.
    pub async fn control(&self, frame: T) -> Result<(), Closed> {
        self.control.send(frame).await.map_err(|_| Closed)
    }

    /// Queues a control frame if there is room now; `Err` also when the queue
    /// is full, which only a stuck peer causes.
    pub fn try_control(&self, frame: T) -> Result<(), Closed> {
        self.control.try_send(frame).map_err(|_| Closed)
    }

    /// Queues a bulk frame, waiting for room.
    pub async fn bulk(&self, frame: T) -> Result<(), Closed> {
        self.bulk.send(frame).await.map_err(|_| Closed)
    }

    /// Resolves when the stream was dropped.
    pub async fn closed(&self) {
        self.control.closed().await;
    }
}

impl<T> Stream for OutboxStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let control = self.control.poll_recv(cx);
        if let Poll::Ready(Some(frame)) = control {
            return Poll::Ready(Some(frame));
        }
        match self.bulk.poll_recv(cx) {
            Poll::Ready(Some(frame)) => Poll::Ready(Some(frame)),
            Poll::Ready(None) if control.is_ready() => Poll::Ready(None),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_stream::StreamExt as _;

    #[tokio::test]
    async fn control_overtakes_bulk_and_the_end_comes_last() {
        let (outbox, mut stream) = Outbox::new();
        outbox.bulk("bulk 1").await.unwrap();
        outbox.bulk("bulk 2").await.unwrap();
        outbox.control("control 1").await.unwrap();
        outbox.control("control 2").await.unwrap();
        drop(outbox);
        let mut seen = Vec::new();
        while let Some(frame) = stream.next().await {
            seen.push(frame);
        }
        assert_eq!(seen, ["control 1", "control 2", "bulk 1", "bulk 2"]);
    }

    #[tokio::test]
    async fn a_dropped_stream_is_told() {
        let (outbox, stream) = Outbox::new();
        drop(stream);
        assert_eq!(outbox.control(1).await, Err(Closed));
        assert_eq!(outbox.bulk(1).await, Err(Closed));
        outbox.closed().await;
    }
}
