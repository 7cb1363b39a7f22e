//! Reconnect delays: full jitter between zero and a doubling ceiling.

use std::time::Duration;

/// Smallest ceiling of a delay.
pub const FIRST: Duration = Duration::from_millis(250);
/// Largest ceiling of a delay.
pub const LAST: Duration = Duration::from_secs(30);

/// The delays of one reconnecting dialler. Attempts never end; the delay is
/// what is bounded.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// Ceiling of the next delay.
    ceiling: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { ceiling: FIRST }
    }
}

impl Backoff {
    /// The next delay. `random` is uniform over `u64`, so that a fleet whose
    /// gateway restarts does not come back in step.
    pub fn next(&mut self, random: u64) -> Duration {
        let ceiling = self.ceiling;
        self.ceiling = (ceiling * 2).min(LAST);
        // The low end is kept off zero: a refused connection answers at once,
        // and a zero delay would spin.
        let floor = FIRST / 10;
        let span = u64::try_from((ceiling - floor).as_micros()).unwrap_or(u64::MAX).max(1);
        floor + Duration::from_micros(random % span)
    }

    /// Starts over after a connection that worked.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_to_the_last() {
        let mut backoff = Backoff::default();
        let longest: Vec<u128> = (0..9).map(|_| backoff.next(u64::MAX - 1).as_millis()).collect();
        for (delay, ceiling) in longest.iter().zip([250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]) {
            assert!(*delay <= ceiling, "{delay} above {ceiling}");
        }
        backoff.reset();
        assert!(backoff.next(u64::MAX - 1) <= FIRST);
    }

    proptest::proptest! {
        #[test]
        fn never_zero_never_above_the_last(random: Vec<u64>) {
            let mut backoff = Backoff::default();
            for r in random {
                let delay = backoff.next(r);
                proptest::prop_assert!(delay >= FIRST / 10 && delay <= LAST);
            }
        }
    }
}
