//! Listening: the TLS port for nodes and remote operators, the Unix socket for
//! the local command line.
//!
//! The accept loops are ours, because the RPC layer's own takes neither a
//! verifier nor a certificate resolver.

pub mod peer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::{ClientGate, server_config, subject_of};
use link::dial::{CONNECTION_WINDOW, FRAME_MAX, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, STREAM_WINDOW};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::gateway::Gateway;
use crate::grpc;
use peer::{Guarded, Peer, Proof};

/// A handshake that takes longer is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes at one time: a flood of them waits in the kernel's queue.
const HANDSHAKES_MAX: usize = 64;
/// Accepted connections that wait for the RPC layer.
const ACCEPTED_MAX: usize = 64;
/// Streams in one connection: callers in parallel.
const STREAMS_MAX: u32 = 4096;
/// How long a stop waits for connections to end by themselves.
const STOP_GRACE: Duration = Duration::from_secs(2);

type Incoming<S> = mpsc::Sender<io::Result<Guarded<S>>>;

/// Binds the TLS port.
pub async fn bind(listen: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(listen).await.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::AddrInUse => ErrorCode::PortInUse,
            _ => ErrorCode::InvalidRequest,
        };
        Fault::new(code, format!("cannot listen on {listen}: {error}"))
            .hint("choose another address with `--listen`, or stop what listens there")
    })
}

/// Serves both listeners until the gateway stops.
pub async fn serve(gateway: Arc<Gateway>, tcp: TcpListener, unix: UnixListener) -> Result<(), Fault> {
    let gate: Arc<dyn ClientGate> = Arc::clone(&gateway.registry) as _;
    let tls = server_config(gateway.authority.cert_der(), Arc::clone(&gateway.certificate), gate)
        .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
    let routes = grpc::routes(&gateway);
    let (tcp_tx, tcp_rx) = mpsc::channel(ACCEPTED_MAX);
    let (unix_tx, unix_rx) = mpsc::channel(ACCEPTED_MAX);
    let accept_tcp = tokio::spawn(accept_tcp(Arc::clone(&gateway), tcp, TlsAcceptor::from(tls), tcp_tx));
    let accept_unix = tokio::spawn(accept_unix(unix, unix_tx));
    let over_tcp = serve_incoming(routes.clone(), ReceiverStream::new(tcp_rx), gateway.stopping.clone());
    let over_unix = serve_incoming(routes, ReceiverStream::new(unix_rx), gateway.stopping.clone());
    let both = async { tokio::try_join!(over_tcp, over_unix).map(|_| ()) };
    let stopped = async {
        gateway.stopping.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    let outcome = tokio::select! {
        outcome = both => outcome.map_err(|e| Fault::new(ErrorCode::Internal, format!("serving failed: {e}"))),
        () = stopped => Ok(()),
    };
    accept_tcp.abort();
    accept_unix.abort();
    outcome
}

async fn serve_incoming<S>(
    routes: Routes,
    incoming: ReceiverStream<io::Result<Guarded<S>>>,
    stopping: CancellationToken,
) -> Result<(), tonic::transport::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + Sync + 'static,
{
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_adaptive_window(Some(false))
        .max_frame_size(FRAME_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, stopping.cancelled_owned())
        .await
}

async fn accept_tcp(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    tls: TlsAcceptor,
    accepted: Incoming<TlsStream<TcpStream>>,
) {
    let slots = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                accept_failed(&error).await;
                continue;
            }
        };
        let (gateway, tls, accepted) = (Arc::clone(&gateway), tls.clone(), accepted.clone());
        tokio::spawn(async move {
            let _slot = slot;
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(&gateway, &tls, stream, address)).await {
                Ok(Ok(connection)) => {
                    // Closed only when the server has stopped.
                    let _ = accepted.send(Ok(connection)).await;
                }
                Ok(Err(error)) => tracing::info!(%address, %error, "TLS handshake failed"),
                Err(_) => tracing::info!(%address, "TLS handshake timed out"),
            }
        });
    }
}

async fn handshake(
    gateway: &Gateway,
    tls: &TlsAcceptor,
    stream: TcpStream,
    address: SocketAddr,
) -> io::Result<Guarded<TlsStream<TcpStream>>> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(stream).await?;
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let Some(certificate) = certificate else {
        let peer = Peer { address: Some(address), proof: Proof::Nothing };
        return Ok(Guarded::plain(stream, peer, CancellationToken::new()));
    };
    let subject = subject_of(certificate).map_err(io::Error::other)?;
    // Registered first, checked then: a removal between the handshake's check
    // and the registration is seen here.
    let connection = Guarded::keyed(stream, Some(address), subject, &gateway.registry);
    if !gateway.registry.admits(&subject) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "removed during the handshake"));
    }
    Ok(connection)
}

async fn accept_unix(listener: UnixListener, accepted: Incoming<UnixStream>) {
    let own = rustix::process::geteuid().as_raw();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                accept_failed(&error).await;
                continue;
            }
        };
        match stream.peer_cred() {
            Ok(credentials) if credentials.uid() == own || credentials.uid() == 0 => {
                let peer = Peer { address: None, proof: Proof::SameUser };
                if accepted.send(Ok(Guarded::plain(stream, peer, CancellationToken::new()))).await.is_err() {
                    return;
                }
            }
            Ok(credentials) => {
                tracing::warn!(uid = credentials.uid(), "another user on the local socket: refused")
            }
            Err(error) => tracing::warn!(%error, "peer credentials unreadable: refused"),
        }
    }
}

/// Running out of descriptors must not turn the accept loop into a spin.
async fn accept_failed(error: &io::Error) {
    tracing::warn!(%error, "accept failed");
    tokio::time::sleep(Duration::from_millis(50)).await;
}
