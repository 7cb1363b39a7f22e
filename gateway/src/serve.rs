//! `gateway serve`: a gateway from start to stop.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

use config::StateDir;
use fault::{ErrorCode, Fault};
use rustix::fs::{FlockOperation, flock};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};

use crate::gateway::{Gateway, Settings};
use crate::server;

/// A gateway that listens and does not serve yet.
#[derive(Debug)]
pub struct Ready {
    /// Its state; `settings.listen` has the real port.
    pub gateway: Arc<Gateway>,
    tcp: TcpListener,
    unix: UnixListener,
    /// One gateway for one state directory.
    _lock: File,
}

/// Opens the state and binds both listeners.
pub async fn prepare(mut settings: Settings) -> Result<Ready, Fault> {
    identity::install_crypto_provider();
    settings.state.open().map_err(|e| Fault::new(e.code(), e.to_string()).hint(e.hint()))?;
    let lock = lock(&settings.state)?;
    let tcp = server::bind(settings.listen).await?;
    settings.listen = tcp
        .local_addr()
        .map_err(|e| Fault::new(ErrorCode::Internal, format!("the bound address is unknown: {e}")))?;
    let gateway = Gateway::open(settings)?;
    let socket = gateway.settings.state.gateway_socket();
    let unix = link::unix::bind(&socket).map_err(|e| {
        Fault::new(ErrorCode::StateDirUnusable, format!("cannot listen on {}: {e}", socket.display()))
    })?;
    Ok(Ready { gateway, tcp, unix, _lock: lock })
}

impl Ready {
    /// HOST:PORT that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.gateway.settings.listen
    }

    /// Serves until [`Gateway::stopping`] is cancelled.
    pub async fn serve(self) -> Result<(), Fault> {
        let fresh = tokio::spawn(Arc::clone(&self.gateway).keep_certificate_fresh());
        let gateway = Arc::clone(&self.gateway);
        let reading = tokio::spawn(async move { gateway.config.keep_fresh(&gateway.stopping).await });
        let socket = self.gateway.settings.state.gateway_socket();
        let outcome = Box::pin(server::serve(self.gateway, self.tcp, self.unix)).await;
        fresh.abort();
        reading.abort();
        // A stale socket is replaced at the next start anyway.
        let _ = std::fs::remove_file(socket);
        outcome
    }
}

/// Serves until a signal; yields the exit code for it.
pub async fn run(settings: Settings) -> Result<u8, Fault> {
    let ready = prepare(settings).await?;
    let no_signals = |e: std::io::Error| Fault::new(ErrorCode::Internal, format!("no signal handler: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let stopping = ready.gateway.stopping.clone();
    let stopped = tokio::spawn(async move {
        let code = tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
        };
        stopping.cancel();
        code
    });
    eprintln!(
        "gateway: ready on {} fingerprint {}",
        ready.address(),
        ready.gateway.authority.fingerprint().to_hex()
    );
    ready.serve().await?;
    stopped.await.map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))
}

fn lock(state: &StateDir) -> Result<File, Fault> {
    let path = state.gateway_lock();
    let unusable = |e: std::io::Error| {
        Fault::new(ErrorCode::StateDirUnusable, format!("{} cannot be locked: {e}", path.display()))
    };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        if errno == rustix::io::Errno::WOULDBLOCK {
            Fault::new(
                ErrorCode::AlreadyRunning,
                format!("another gateway is using {}", state.path().display()),
            )
            .hint("stop it, or use another `--state-dir`")
        } else {
            unusable(errno.into())
        }
    })?;
    Ok(file)
}
