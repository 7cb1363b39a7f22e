//! Dialling a gateway: TCP, mutual TLS, one HTTP/2 connection.
//!
//! The connection is made here and then handed to the RPC layer, so that a
//! failure is still a typed error and the presented certificates can be looked
//! at. A channel lives as long as its one connection; whoever dialled dials
//! again.

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use hyper_util::rt::TokioIo;
use identity::{Fingerprint, TlsProblem};
use rustls::ClientConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};

/// A connection that is not there after this long is given up.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/2 pings, also while idle.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// A ping unanswered for this long means a dead peer: with the interval, one
/// is noticed within 15 s.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest HTTP/2 frame: a whole chunk of output with its envelope in one frame, so in
/// few system calls.
pub const FRAME_MAX: u32 = 128 << 10;
/// Window of one HTTP/2 stream.
pub const STREAM_WINDOW: u32 = 1 << 20;
/// Window of the connection: above the sum of what stalled streams can hold.
pub const CONNECTION_WINDOW: u32 = 16 << 20;

/// Why a gateway could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No such address, nobody listening, no route.
    #[error("cannot connect to {address}")]
    Connect {
        /// HOST:PORT as given.
        address: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Nothing answered in time.
    #[error("no answer from {address} within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout {
        /// HOST:PORT as given.
        address: String,
    },
    /// The TLS handshake failed.
    #[error("TLS handshake with {address} failed")]
    Tls {
        /// HOST:PORT as given.
        address: String,
        /// Whose fault it is.
        problem: TlsProblem,
    },
    /// The HTTP/2 connection could not be set up.
    #[error("HTTP/2 set-up with {address} failed")]
    Http {
        /// HOST:PORT as given.
        address: String,
        /// What the RPC layer said.
        #[source]
        source: tonic::transport::Error,
    },
}

impl From<&DialError> for Fault {
    fn from(error: &DialError) -> Self {
        let because = |source: &dyn std::error::Error| format!("{error}: {source}");
        match error {
            DialError::Connect { source, .. } => Fault::new(ErrorCode::GatewayUnreachable, because(source))
                .hint("is the gateway running there, and is the port right?"),
            DialError::Timeout { .. } => Fault::new(ErrorCode::GatewayUnreachable, error.to_string())
                .hint("a firewall may be dropping the packets"),
            DialError::Http { source, .. } => Fault::new(ErrorCode::GatewayUnreachable, because(source)),
            DialError::Tls { problem, .. } => match problem {
                TlsProblem::OtherAuthority => {
                    Fault::new(ErrorCode::OtherAuthority, format!("{error}: the gateway has another identity than the pinned one"))
                        .hint("if the gateway was really set up anew, remove this node's state directory and pair again; otherwise somebody is in between")
                }
                TlsProblem::Clock { detail } => Fault::new(ErrorCode::ClockSkew, format!("{error}: {detail}"))
                    .hint("compare the clocks of both machines"),
                TlsProblem::Refused => {
                    Fault::new(ErrorCode::Unauthenticated, format!("{error}: the gateway refused this certificate"))
                }
                TlsProblem::Other(detail) => Fault::new(ErrorCode::GatewayUnreachable, format!("{error}: {detail}")),
                other => Fault::new(ErrorCode::GatewayUnreachable, format!("{error}: {other:?}")),
            },
        }
    }
}

/// A connection to a gateway.
#[derive(Debug)]
pub struct Dialled {
    /// For the generated clients.
    pub channel: Channel,
    /// The authority that the gateway presented: its identity.
    pub authority: Fingerprint,
}

/// Connects to `address` (HOST:PORT).
pub async fn dial(address: &str, tls: Arc<ClientConfig>) -> Result<Dialled, DialError> {
    let address_owned = || address.to_owned();
    let tcp = timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
        .await
        .map_err(|_| DialError::Timeout { address: address_owned() })?
        .map_err(|source| DialError::Connect { address: address_owned(), source })?;
    tcp.set_nodelay(true).map_err(|source| DialError::Connect { address: address_owned(), source })?;
    let tls_failed = |error: &std::io::Error| DialError::Tls {
        address: address_owned(),
        problem: TlsProblem::of_io(error).unwrap_or_else(|| TlsProblem::Other(error.to_string())),
    };
    let mut stream = timeout(CONNECT_TIMEOUT, TlsConnector::from(tls).connect(identity::server_name(), tcp))
        .await
        .map_err(|_| DialError::Timeout { address: address_owned() })?
        .map_err(|e| tls_failed(&e))?;
    // In TLS 1.3 our side is done before the server has looked at our
    // certificate: its refusal comes in place of its first frame, and further
    // up it would only be a connection that closed. Looked at, not taken.
    let first = timeout(CONNECT_TIMEOUT, stream.fill_buf())
        .await
        .map_err(|_| DialError::Timeout { address: address_owned() })?
        .map_err(|e| tls_failed(&e))?;
    if first.is_empty() {
        return Err(tls_failed(&std::io::Error::other("closed before the first frame")));
    }
    let authority = stream
        .get_ref()
        .1
        .peer_certificates()
        .ok_or_else(|| std::io::Error::other("no certificate presented"))
        .and_then(|certs| identity::presented_authority(certs).map_err(std::io::Error::other))
        .map_err(|e| tls_failed(&e))?;
    let channel =
        channel_over(stream).await.map_err(|source| DialError::Http { address: address_owned(), source })?;
    Ok(Dialled { channel, authority })
}

/// A channel over one connection that is already there (a TLS stream, a Unix
/// socket). When it breaks, calls fail; nothing reconnects behind the caller.
pub async fn channel_over<S>(stream: S) -> Result<Channel, tonic::transport::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut once = Some(TokioIo::new(stream));
    Endpoint::from_static("http://gateway.farrun.internal")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_adaptive_window(false)
        .max_frame_size(FRAME_MAX)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_with_connector(tower::service_fn(move |_| {
            let stream = once.take().ok_or_else(|| std::io::Error::other("the connection was lost"));
            std::future::ready(stream)
        }))
        .await
}
