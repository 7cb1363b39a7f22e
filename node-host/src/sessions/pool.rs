//! Holders kept ready, so that a start does not wait for a fork.

use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::process::{HolderSource, SpareHolder};

/// How long a start waits for a holder. A fork takes a fraction of a millisecond.
const WAIT: Duration = Duration::from_secs(5);

/// Holders kept whose session is over. Each takes about 0.3 MiB of its own.
const IDLE_MAX: usize = 8;

/// Pause after the system refused a fork.
const PAUSE: Duration = Duration::from_millis(100);

/// Holders that wait for a command.
#[derive(Debug)]
pub(super) struct Pool {
    /// Fresh ones.
    spares: Mutex<mpsc::Receiver<SpareHolder>>,
    /// Those that served before, the latest last.
    idle: parking_lot::Mutex<Vec<UnixStream>>,
}

/// No holder could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The launcher is gone. Running sessions go on, new ones need a restart of the node.
    #[error("the launcher is gone; restart the node host")]
    LauncherGone,
    /// The system does not fork for now.
    #[error("no process could be started in {} s; the system is out of processes or memory", WAIT.as_secs())]
    TooSlow,
}

impl Pool {
    /// Keeps `spares` holders ready until `over`.
    pub(super) fn start(source: HolderSource, spares: usize, over: CancellationToken) -> Pool {
        // The task has one more in its hands while the channel is full.
        let (ready, taken) = mpsc::channel(spares.saturating_sub(1).max(1));
        tokio::spawn(async move {
            tokio::select! {
                () = refill(source, ready) => {}
                () = over.cancelled() => {}
            }
        });
        Pool { spares: Mutex::new(taken), idle: parking_lot::Mutex::default() }
    }

    /// Takes back a holder whose session is over. One too many sees its connection close and leaves.
    pub(super) fn give_back(&self, holder: UnixStream) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(holder);
        }
    }

    /// A holder and the connection to it.
    pub(super) async fn take(&self) -> Result<UnixStream, PoolError> {
        let idle = self.idle.lock().pop();
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let spare = tokio::time::timeout(WAIT, async { self.spares.lock().await.recv().await });
        let spare = spare.await.map_err(|_| PoolError::TooSlow)?.ok_or(PoolError::LauncherGone)?;
        let stream = std::os::unix::net::UnixStream::from(spare.socket);
        let ready = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        ready.map_err(|error| {
            tracing::warn!(holder = spare.pid, %error, "a holder's socket could not be used");
            PoolError::TooSlow
        })
    }
}

async fn refill(mut source: HolderSource, ready: mpsc::Sender<SpareHolder>) {
    loop {
        match source.next().await {
            Ok(spare) => {
                if ready.send(spare).await.is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                tracing::error!("the launcher is gone; no new session can be started");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "no holder could be made");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
