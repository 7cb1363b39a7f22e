//! Holders kept ready, so that a start does not wait for a fork.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::process::{HolderSource, SpareHolder};

/// How long a start waits for a holder. A fork takes a fraction of a millisecond.
const WAIT: Duration = Duration::from_secs(5);

/// Holders kept whose session is over, in a busy time. Each takes about 0.3 MiB of its own.
const IDLE_MAX: usize = 32;

/// After this long without a start only the spares stay.
const QUIET: Duration = Duration::from_secs(10);

/// Pause after the system refused a fork.
const PAUSE: Duration = Duration::from_millis(100);

/// Holders that wait for a command.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stock: Mutex<Stock>,
    /// One permit for each holder in stock. Starts are served in the order in which they came.
    available: Semaphore,
    /// A start took a holder, or waits for one.
    taken: Notify,
}

#[derive(Debug)]
struct Stock {
    /// The latest last: it is the warmest.
    holders: Vec<UnixStream>,
    /// Starts that want a holder and have none.
    waiting: usize,
    last_start: Instant,
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
        let shared = Arc::new(Shared {
            stock: Mutex::new(Stock { holders: Vec::new(), waiting: 0, last_start: Instant::now() }),
            available: Semaphore::new(0),
            taken: Notify::new(),
        });
        let filled = Arc::clone(&shared);
        tokio::spawn(async move {
            tokio::select! {
                () = refill(source, &filled, spares.max(1)) => {}
                () = over.cancelled() => {}
            }
            filled.available.close();
        });
        Pool { shared }
    }

    /// Takes back a holder whose session is over. One too many sees its connection close and leaves.
    pub(super) fn give_back(&self, holder: UnixStream) {
        self.shared.put(holder);
    }

    /// A holder and the connection to it.
    pub(super) async fn take(&self) -> Result<UnixStream, PoolError> {
        let _waits = Waits::new(&self.shared);
        let permit = tokio::time::timeout(WAIT, self.shared.available.acquire())
            .await
            .map_err(|_| PoolError::TooSlow)?
            .map_err(|_| PoolError::LauncherGone)?;
        permit.forget();
        // The permit stands for one of them.
        self.shared.stock.lock().holders.pop().ok_or(PoolError::TooSlow)
    }
}

/// Counts a start that wants a holder, also when its caller gives up.
struct Waits<'a>(&'a Shared);

impl<'a> Waits<'a> {
    fn new(shared: &'a Shared) -> Self {
        let mut stock = shared.stock.lock();
        stock.waiting += 1;
        stock.last_start = Instant::now();
        drop(stock);
        shared.taken.notify_one();
        Self(shared)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.stock.lock().waiting -= 1;
        self.0.taken.notify_one();
    }
}

impl Shared {
    fn put(&self, holder: UnixStream) {
        let mut stock = self.stock.lock();
        if stock.holders.len() < IDLE_MAX {
            stock.holders.push(holder);
            self.available.add_permits(1);
        }
    }

    /// Whether one more is wanted: for those that wait, and the spares.
    fn wants(&self, spares: usize) -> bool {
        let stock = self.stock.lock();
        // Those that wait have a claim on what is in stock.
        stock.holders.len() < stock.waiting.max(spares)
    }

    /// Lets all but the spares go after a quiet time.
    fn trim(&self, spares: usize) {
        let mut stock = self.stock.lock();
        if stock.waiting > 0 || stock.last_start.elapsed() < QUIET {
            return;
        }
        while stock.holders.len() > spares {
            let Ok(permit) = self.available.try_acquire() else { return };
            permit.forget();
            stock.holders.pop();
        }
    }
}

async fn refill(mut source: HolderSource, shared: &Shared, spares: usize) {
    loop {
        while shared.wants(spares) {
            match source.next().await {
                Ok(SpareHolder { pid, socket }) => match connection(socket) {
                    Ok(holder) => shared.put(holder),
                    Err(error) => {
                        tracing::warn!(holder = pid, %error, "a holder's socket could not be used");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
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
        if tokio::time::timeout(QUIET, shared.taken.notified()).await.is_err() {
            shared.trim(spares);
        }
    }
}

fn connection(socket: OwnedFd) -> std::io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
