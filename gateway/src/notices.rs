//! What happened to commands, for agents and people who were not there: a bounded list that can be read from any point
//! and followed (runtime spec §5).

use std::collections::VecDeque;

use parking_lot::Mutex;
use proto::v1 as pb;
use tokio::sync::watch;

use crate::clock;

/// Notices that are kept. The oldest go first; their numbers show the gap.
const KEPT: usize = 2000;

/// The notices of one gateway process.
#[derive(Debug)]
pub(crate) struct Notices {
    kept: Mutex<VecDeque<pb::Notice>>,
    newest: watch::Sender<u64>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { kept: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

impl Notices {
    /// Adds one; its number and time are filled in.
    pub(crate) fn add(&self, notice: pb::Notice) {
        let mut kept = self.kept.lock();
        let seq = *self.newest.borrow() + 1;
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(pb::Notice { seq, unix_ms: clock::now_ms(), ..notice });
        // Under the lock: the number never runs ahead of the list.
        self.newest.send_replace(seq);
    }

    /// The oldest one behind `after` that is kept.
    pub(crate) fn next(&self, after: u64) -> Option<pb::Notice> {
        let kept = self.kept.lock();
        let first = kept.front()?.seq;
        let index = usize::try_from(after.saturating_add(1).saturating_sub(first)).ok()?;
        kept.get(index).cloned()
    }

    /// The number of the newest, and news of it.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_from_any_point_and_bounded() {
        let notices = Notices::default();
        assert_eq!(notices.next(0), None);
        for number in 0..KEPT + 2 {
            notices.add(pb::Notice { run_id: number.to_string(), ..pb::Notice::default() });
        }
        let read = |after| notices.next(after).map(|notice| (notice.seq, notice.run_id));
        assert_eq!(read(0), Some((3, "2".to_owned())));
        assert_eq!(read(3), Some((4, "3".to_owned())));
        let last = KEPT as u64 + 2;
        assert_eq!(read(last - 1), Some((last, (last - 1).to_string())));
        assert_eq!((read(last), read(u64::MAX)), (None, None));
        assert_eq!(*notices.newest().borrow(), last);
    }
}
