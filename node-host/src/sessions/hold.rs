//! What readers of one session wish: the lowest offset that they need, and to hear of the next output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use session::ByteOffset;
use tokio::sync::Notify;

/// The wishes of all readers of one session. The session's task waits for `changed` and tells the holder.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    holds: Mutex<Holds>,
    /// A reader has read everything and waits.
    waiting: AtomicBool,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Holds {
    next: u64,
    floors: BTreeMap<u64, u64>,
}

impl Wishes {
    /// A reader wants to hear of the next output.
    pub(super) fn want_output(&self) {
        if !self.waiting.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        }
    }

    /// Whether somebody waits; asking takes the wish.
    pub(super) fn take_waiting(&self) -> bool {
        self.waiting.swap(false, Ordering::AcqRel)
    }

    /// The lowest offset that a reader needs.
    pub(super) fn floor(&self) -> Option<ByteOffset> {
        self.holds.lock().floors.values().min().copied().map(ByteOffset)
    }

    /// Resolves after a wish changed. One waiter only: the session's task.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Registers a reader that needs everything from `from` on.
    pub(super) fn hold(self: &Arc<Self>, from: u64) -> Hold {
        let id = {
            let mut holds = self.holds.lock();
            let id = holds.next;
            holds.next += 1;
            holds.floors.insert(id, from);
            id
        };
        self.changed.notify_one();
        Hold { wishes: Arc::clone(self), id }
    }
}

/// A reader's claim on a session's output: nothing from its offset on is dropped, the command waits instead. Released
/// when dropped.
#[derive(Debug)]
pub struct Hold {
    wishes: Arc<Wishes>,
    id: u64,
}

impl Hold {
    /// Everything before `offset` was read. Going back has no effect.
    pub fn advance(&self, offset: u64) {
        let moved = self.wishes.holds.lock().floors.get_mut(&self.id).is_some_and(|floor| {
            let moved = offset > *floor;
            *floor = offset.max(*floor);
            moved
        });
        if moved {
            self.wishes.changed.notify_one();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.wishes.holds.lock().floors.remove(&self.id);
        self.wishes.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_reader_counts_until_it_leaves() {
        let wishes = Arc::new(Wishes::default());
        assert_eq!(wishes.floor(), None);
        let slow = wishes.hold(10);
        let fast = wishes.hold(10);
        fast.advance(50);
        assert_eq!(wishes.floor(), Some(ByteOffset(10)));
        slow.advance(30);
        slow.advance(20);
        assert_eq!(wishes.floor(), Some(ByteOffset(30)));
        drop(slow);
        assert_eq!(wishes.floor(), Some(ByteOffset(50)));
        drop(fast);
        assert_eq!(wishes.floor(), None);
    }
}
