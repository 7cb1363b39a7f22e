//! A TCP proxy on loopback that breaks connections on demand.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::runtime;

/// Bytes that a stalled way keeps.
const KEPT_MAX: usize = 1 << 20;

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// RST on both sides.
    Reset,
    /// FIN on both sides.
    Close,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the one who dialled (a node) to the gateway.
    ToGateway,
    /// From the gateway to the one who dialled.
    ToNode,
}

/// What happens to bytes.
#[derive(Debug, Clone, Copy)]
struct Weather {
    stalled_to_gateway: bool,
    stalled_to_node: bool,
    /// While stalled, what comes is read and kept rather than left in the
    /// sender's way, so that a story can wait for it.
    keeping: bool,
    refusing: bool,
    delay: Duration,
    split: usize,
    /// Counts cuts; a connection older than the newest one ends.
    cuts: u64,
    how: Cut,
}

const FAIR: Weather = Weather {
    stalled_to_gateway: false,
    stalled_to_node: false,
    keeping: false,
    refusing: false,
    delay: Duration::ZERO,
    split: usize::MAX,
    cuts: 0,
    how: Cut::Reset,
};

/// A proxy in front of one address.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    kept: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// A proxy that passes everything on to `target`.
    pub fn new(target: SocketAddr) -> Self {
        let _entered = runtime().enter();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let listener = TcpListener::from_std(listener).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (weather, seen) = watch::channel(FAIR);
        let kept = Arc::new(AtomicUsize::new(0));
        let keep = Arc::clone(&kept);
        let accepting = runtime().spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let (seen, keep) = (seen.clone(), Arc::clone(&keep));
                if seen.borrow().refusing {
                    reset(&node);
                    continue;
                }
                tokio::spawn(async move {
                    // A target that is away looks like a refused connection.
                    match TcpStream::connect(target).await {
                        Ok(gateway) => carry(node, gateway, seen, &keep).await,
                        Err(_) => reset(&node),
                    }
                });
            }
        });
        Self { address, weather, kept, accepting }
    }

    /// Where to dial.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections that are there now.
    pub fn cut(&self, how: Cut) {
        self.weather.send_modify(|w| {
            w.cuts += 1;
            w.how = how;
        });
    }

    /// Ends all connections and lets no new one in.
    pub fn block(&self) {
        self.weather.send_modify(|w| w.refusing = true);
        self.cut(Cut::Reset);
    }

    /// Stops reading and writing both ways, without closing anything.
    pub fn stall(&self) {
        self.weather.send_modify(|w| (w.stalled_to_gateway, w.stalled_to_node) = (true, true));
    }

    /// Stops one way; what comes is kept, see [`Self::kept`].
    pub fn stall_way(&self, way: Direction) {
        self.weather.send_modify(|w| {
            w.keeping = true;
            match way {
                Direction::ToGateway => w.stalled_to_gateway = true,
                Direction::ToNode => w.stalled_to_node = true,
            }
        });
    }

    /// Bytes that arrived on the stalled way and were not passed on.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Holds each piece back for this long.
    pub fn delay(&self, delay: Duration) {
        self.weather.send_modify(|w| w.delay = delay);
    }

    /// Splits what passes into pieces of this many bytes.
    pub fn split(&self, bytes: usize) {
        self.weather.send_modify(|w| w.split = bytes.max(1));
    }

    /// Back to passing everything on; what was cut stays cut.
    pub fn heal(&self) {
        self.weather.send_modify(|w| *w = Weather { cuts: w.cuts, how: w.how, ..FAIR });
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut(Cut::Reset);
    }
}

async fn carry(
    mut node: TcpStream,
    mut gateway: TcpStream,
    mut weather: watch::Receiver<Weather>,
    kept: &AtomicUsize,
) {
    let born = weather.borrow().cuts;
    // The proxy must not add delays of its own.
    let _ = (node.set_nodelay(true), gateway.set_nodelay(true));
    let (to_gateway, to_node) = (weather.clone(), weather.clone());
    {
        let (node_read, node_write) = node.split();
        let (gateway_read, gateway_write) = gateway.split();
        let both = async {
            // A FIN one way leaves the other way open, a reset ends both.
            let _ = tokio::try_join!(
                pass(node_read, gateway_write, Direction::ToGateway, to_gateway, kept),
                pass(gateway_read, node_write, Direction::ToNode, to_node, kept),
            );
        };
        tokio::select! {
            () = both => return,
            _ = weather.wait_for(|w| w.cuts > born) => {}
        }
    }
    if weather.borrow().how == Cut::Reset {
        reset(&node);
        reset(&gateway);
    }
}

async fn pass(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    way: Direction,
    mut weather: watch::Receiver<Weather>,
    kept: &AtomicUsize,
) -> io::Result<()> {
    let moving = |w: &Weather| match way {
        Direction::ToGateway => !w.stalled_to_gateway,
        Direction::ToNode => !w.stalled_to_node,
    };
    let mut buffer = vec![0; 64 * 1024];
    let mut held = Vec::new();
    loop {
        let closed = |_| io::Error::other("the proxy is gone");
        weather.wait_for(|w| moving(w) || w.keeping).await.map_err(closed)?;
        let count = tokio::select! {
            count = from.read(&mut buffer) => count?,
            // What was kept goes on as soon as it may, not with the next byte.
            healed = weather.wait_for(moving), if !held.is_empty() => {
                healed.map_err(closed)?;
                usize::MAX
            }
        };
        if count != usize::MAX {
            held.extend_from_slice(&buffer[..count]);
        }
        // It may have begun to stall while this was on its way.
        let now = *weather.borrow();
        if !moving(&now) && now.keeping && count > 0 && held.len() < KEPT_MAX {
            kept.store(held.len(), Ordering::Relaxed);
            continue;
        }
        weather.wait_for(moving).await.map_err(closed)?;
        let Weather { delay, split, .. } = *weather.borrow();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        for piece in held.chunks(split.min(held.len().max(1))) {
            to.write_all(piece).await?;
            to.flush().await?;
        }
        held.clear();
        if count == 0 {
            return to.shutdown().await;
        }
    }
}

/// Makes the close that follows an RST.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}
