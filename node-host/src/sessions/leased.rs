//! One session's lease, by the clock of this process.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use parking_lot::Mutex;
use session::{Lease, OnDisconnect};
use tokio::sync::Notify;

use crate::process::holder::unix_ms;

/// What this process counts from: a clock that nobody sets.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds of that clock.
pub(super) fn now_ms() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A lease, and news of it for whoever ends what nobody looks after.
#[derive(Debug)]
pub(super) struct Leased {
    lease: Mutex<Lease>,
    news: Arc<Notify>,
}

impl Leased {
    /// Nobody holds it. After a restart of the node host that starts the time anew.
    pub(super) fn new(policy: OnDisconnect, news: Arc<Notify>) -> Self {
        if policy != OnDisconnect::Keep {
            news.notify_one();
        }
        Self { lease: Mutex::new(Lease::new(policy, now_ms())), news }
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
        self.news.notify_one();
    }

    /// When it ends, in milliseconds of this process's clock.
    pub(super) fn ends_at_ms(&self) -> Option<u64> {
        self.lease.lock().ends_at_ms()
    }

    /// The same as the world counts.
    pub(super) fn ends_unix_ms(&self) -> Option<u64> {
        self.ends_at_ms().map(|at| unix_ms().saturating_add(at.saturating_sub(now_ms())))
    }

    pub(super) fn hold(&self) {
        self.lease.lock().hold();
    }

    pub(super) fn release(&self) {
        self.lease.lock().release(now_ms());
        self.news.notify_one();
    }
}
