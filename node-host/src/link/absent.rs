//! Readers that lost their link: what they still need is kept for a while, so that they come back and read on.
//!
//! One for all links of a node host, so that links that come and go do not add up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::sessions::Hold;

/// How long a hold outlives its link.
const KEEP: Duration = Duration::from_secs(60);
/// Holds that are kept; as many as one link can have.
const HOLDS_MAX: usize = 4096;

/// Holds without a link, each with the time when it goes. Generic for the tests only.
#[derive(Debug)]
pub(crate) struct Absent<H = Hold>(Arc<Mutex<VecDeque<(Instant, H)>>>);

impl<H> Default for Absent<H> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<H: Send + 'static> Absent<H> {
    /// Keeps a hold for a minute. The oldest goes where there are too many.
    pub(super) fn keep(&self, hold: H) {
        self.keep_until(Instant::now() + KEEP, hold);
    }

    /// Times do not go back from one call to the next.
    fn keep_until(&self, until: Instant, hold: H) {
        let mut holds = self.0.lock();
        // Whoever finds it empty looks after it: there is one task at most.
        if holds.is_empty() {
            tokio::spawn(expire(Arc::clone(&self.0)));
        }
        holds.push_back((until, hold));
        let surplus = if holds.len() > HOLDS_MAX { holds.pop_front() } else { None };
        drop(holds);
        drop(surplus);
    }
}

/// Releases holds when their time has come, until none is left.
async fn expire<H>(holds: Arc<Mutex<VecDeque<(Instant, H)>>>) {
    loop {
        let Some(until) = holds.lock().front().map(|(until, _)| *until) else { return };
        tokio::time::sleep_until(until).await;
        let mut holds = holds.lock();
        while holds.front().is_some_and(|(until, _)| *until <= Instant::now()) {
            holds.pop_front();
        }
        if holds.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(hold: &Arc<()>) -> usize {
        Arc::strong_count(hold) - 1
    }

    #[tokio::test]
    async fn the_oldest_goes_where_there_are_too_many() {
        let absent = Absent::<Arc<()>>::default();
        let (first, later) = (Arc::new(()), Arc::new(()));
        absent.keep(Arc::clone(&first));
        for _ in 1..HOLDS_MAX {
            absent.keep(Arc::clone(&later));
        }
        assert_eq!((kept(&first), kept(&later)), (1, HOLDS_MAX - 1));
        absent.keep(Arc::clone(&later));
        assert_eq!((kept(&first), kept(&later)), (0, HOLDS_MAX));
    }

    #[tokio::test]
    async fn each_goes_when_its_time_has_come() {
        let absent = Absent::<Arc<()>>::default();
        let (first, later) = (Arc::new(()), Arc::new(()));
        let gone = async |hold: &Arc<()>| {
            let gone = async {
                while kept(hold) > 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
        };
        // Twice: the second time nobody looks after them yet.
        for _ in 0..2 {
            absent.keep_until(Instant::now() + Duration::from_millis(5), Arc::clone(&first));
            gone(&first).await;
        }
        absent.keep_until(Instant::now() + Duration::from_millis(5), Arc::clone(&first));
        absent.keep(Arc::clone(&later));
        gone(&first).await;
        assert_eq!(kept(&later), 1);
    }
}
