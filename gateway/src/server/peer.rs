//! A connection that knows who is at its other end and can be cut.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use identity::{Fingerprint, Subject};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::registry::Registry;

/// What the transport proved about the peer. In the extensions of each request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address; none on the Unix socket.
    pub address: Option<SocketAddr>,
    /// Its proof.
    pub proof: Proof,
}

/// How a peer proved who it is.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The Unix socket, with the credentials of this very user (or root).
    SameUser,
    /// A client certificate.
    Certificate(Subject),
    /// Nothing: enrolment only.
    Nothing,
}

/// A connection with its peer and its switch.
#[derive(Debug)]
pub struct Guarded<S> {
    stream: S,
    peer: Peer,
    /// Ends the connection, in the middle of whatever it does.
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Forgets the connection's registration.
    _registration: Option<Registration>,
}

/// A connection in the registry, until dropped.
#[derive(Debug)]
pub struct Registration {
    registry: Arc<Registry>,
    key: Fingerprint,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.forget_connection(&self.key, self.id);
    }
}

impl<S> Guarded<S> {
    /// A connection whose peer has no key that could be removed.
    pub fn plain(stream: S, peer: Peer, cut: CancellationToken) -> Self {
        Self { stream, peer, cut: Box::pin(cut.cancelled_owned()), _registration: None }
    }

    /// A connection under a key: cut as soon as the key is removed.
    pub fn keyed(stream: S, address: Option<SocketAddr>, subject: Subject, registry: &Arc<Registry>) -> Self {
        let key = subject.fingerprint;
        let (id, cut) = registry.register_connection(key);
        let registration = Registration { registry: Arc::clone(registry), key, id };
        let peer = Peer { address, proof: Proof::Certificate(subject) };
        Self { stream, peer, cut: Box::pin(cut.cancelled_owned()), _registration: Some(registration) }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the gateway")),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: Send + Sync + 'static> Connected for Guarded<S> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
