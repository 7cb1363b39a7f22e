//! How often agents are woken (runtime spec §5.4). Pure: it is told the time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// At least between two wakes of one session.
const BETWEEN: Duration = Duration::from_secs(30);
/// In any time of this length …
const WINDOW: Duration = Duration::from_secs(60);
/// … there are at most so many wakes over all.
const IN_WINDOW: usize = 5;

/// An agent and the key of its session.
pub(super) type Key = (String, String);

/// When the wakes of late were. Times count from any one moment.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The last ones, oldest first; never more than count.
    recent: VecDeque<Duration>,
    last: HashMap<Key, Duration>,
}

impl Pace {
    /// Takes leave to wake a session now.
    ///
    /// # Errors
    /// It is too early; the error says when to ask again.
    pub(super) fn take(&mut self, key: &Key, now: Duration) -> Result<(), Duration> {
        self.last.retain(|_, at| *at + BETWEEN > now);
        while self.recent.front().is_some_and(|at| *at + WINDOW <= now) {
            self.recent.pop_front();
        }
        if let Some(last) = self.last.get(key) {
            return Err(*last + BETWEEN);
        }
        match self.recent.front() {
            Some(oldest) if self.recent.len() >= IN_WINDOW => Err(*oldest + WINDOW),
            _ => {
                self.recent.push_back(now);
                self.last.insert(key.clone(), now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_wait_for_themselves_and_for_all() {
        let mut pace = Pace::default();
        // Second, session, and when it may ask again.
        let table = [
            (0, "a", Ok(())),
            (0, "a", Err(30)),
            (1, "b", Ok(())),
            (2, "c", Ok(())),
            (29, "a", Err(30)),
            (30, "a", Ok(())),
            (31, "d", Ok(())),
            // Five in the last minute.
            (32, "e", Err(60)),
            (59, "b", Err(60)),
            (60, "e", Ok(())),
            (60, "b", Err(61)),
            (61, "b", Ok(())),
            (61, "f", Err(62)),
            // Its own pause first, although all have to wait.
            (61, "e", Err(90)),
            (200, "e", Ok(())),
        ];
        for (second, session, want) in table {
            let key = ("main".to_owned(), session.to_owned());
            let found = pace.take(&key, Duration::from_secs(second));
            assert_eq!(found, want.map_err(Duration::from_secs), "{session} at {second}");
        }
        assert_eq!((pace.recent.len(), pace.last.len()), (1, 1), "old ones are forgotten");
    }

    proptest::proptest! {
        #[test]
        fn never_more_than_allowed_and_never_for_ever(steps in proptest::collection::vec((0_u64..8, 0_u64..20), 1..200)) {
            let mut pace = Pace::default();
            let mut now = Duration::ZERO;
            let mut taken: Vec<(u64, Duration)> = Vec::new();
            for (session, pause) in steps {
                now += Duration::from_secs(pause);
                let key = (String::new(), session.to_string());
                match pace.take(&key, now) {
                    Ok(()) => taken.push((session, now)),
                    Err(again) => proptest::prop_assert!(again > now && again <= now + WINDOW),
                }
            }
            for (at, (session, time)) in taken.iter().enumerate() {
                let later = &taken[at + 1..];
                proptest::prop_assert!(later.iter().filter(|(_, t)| *t < *time + WINDOW).count() < IN_WINDOW);
                let again = later.iter().find(|(s, _)| s == session);
                proptest::prop_assert!(again.is_none_or(|(_, t)| *t >= *time + BETWEEN));
            }
        }
    }
}
