//! One session's lease, by the clock of this process.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use parking_lot::Mutex;
use session::{Lease, OnDisconnect};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

use crate::process::holder::unix_ms;

/// What this process counts from: a clock that nobody sets.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds of that clock.
pub(super) fn now_ms() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What all leases of a node share.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// For whoever ends what nobody looks after.
    pub(super) news: Notify,
    /// The node has a link, over which somebody could come.
    linked: AtomicBool,
}

impl Leases {
    pub(super) fn set_linked(&self, linked: bool) {
        self.linked.store(linked, Ordering::Release);
        self.news.notify_one();
    }
}

/// A lease, and what it shares with the others.
#[derive(Debug)]
pub(super) struct Leased {
    lease: Mutex<Lease>,
    all: Arc<Leases>,
}

impl Leased {
    /// Nobody holds it. After a restart of the node host that starts the time anew.
    pub(super) fn new(policy: OnDisconnect, all: Arc<Leases>) -> Self {
        if policy != OnDisconnect::Keep {
            all.news.notify_one();
        }
        Self { lease: Mutex::new(Lease::new(policy, now_ms())), all }
    }

    pub(super) fn policy(&self) -> OnDisconnect {
        self.lease.lock().policy()
    }

    pub(super) fn is_held(&self) -> bool {
        self.lease.lock().is_held()
    }

    pub(super) fn contact(&self) {
        self.lease.lock().contact(now_ms());
    }

    pub(super) fn change(&self, policy: OnDisconnect) {
        self.lease.lock().change(policy, now_ms());
        self.all.news.notify_one();
    }

    /// When it ends, in milliseconds of this process's clock.
    pub(super) fn ends_at_ms(&self) -> Option<u64> {
        self.lease.lock().ends_at_ms(self.all.linked.load(Ordering::Acquire))
    }

    /// The same as the world counts.
    pub(super) fn ends_unix_ms(&self) -> Option<u64> {
        self.ends_at_ms().map(|at| unix_ms().saturating_add(at.saturating_sub(now_ms())))
    }

    pub(super) fn hold(&self) {
        self.lease.lock().hold();
    }

    pub(super) fn release(&self) {
        let mut lease = self.lease.lock();
        lease.release(now_ms());
        if lease.policy() != OnDisconnect::Keep {
            self.all.news.notify_one();
        }
    }
}
