//! How far ahead of its reader a sender may run.
//!
//! Offsets are absolute, so a repeated or reordered call cannot inflate the
//! window: what may be sent is `granted`, whatever happened in between.

use std::time::Duration;

/// Smallest window: four chunks of 64 KiB.
pub const MIN_WINDOW: u64 = 4 * 64 * 1024;
/// Largest window of one subscription. Also what a reader may make the other
/// end buffer, so it stays well below the connection's own window.
pub const MAX_WINDOW: u64 = 4 * 1024 * 1024;
/// Two round trips of the measured rate keep the pipe full.
const ROUND_TRIPS: u64 = 2;

/// The receiving side of one subscription.
///
/// Pure: bytes and times come in, grants go out.
#[derive(Debug, Clone)]
pub struct CreditWindow {
    /// First offset of the current measuring span, and when it began.
    span_start: u64,
    span_at: Duration,
    /// Everything below was granted.
    granted: u64,
    /// Everything below was taken by the reader.
    consumed: u64,
    /// Bytes that may be outstanding.
    window: u64,
}

impl CreditWindow {
    /// A window whose first grant (of [`MIN_WINDOW`]) is sent with the
    /// subscription itself. `now` is any monotonic clock.
    pub fn new(from: u64, now: Duration) -> Self {
        Self {
            span_start: from,
            span_at: now,
            granted: from.saturating_add(MIN_WINDOW),
            consumed: from,
            window: MIN_WINDOW,
        }
    }

    /// The reader took everything below `offset`. Yields the bytes to grant,
    /// if it is time to: a grant is due when half the window is used up, so
    /// that grants are few and the sender still never waits for one.
    pub fn consumed(&mut self, offset: u64, now: Duration, round_trip: Duration) -> Option<u64> {
        self.consumed = self.consumed.max(offset);
        self.follow_rate(now, round_trip);
        let target = self.consumed.saturating_add(self.window);
        let due = target.saturating_sub(self.granted);
        (due >= self.window / 2).then(|| {
            self.granted = target;
            due
        })
    }

    /// The offset below which everything was granted.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Bytes that may be outstanding now.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Sets the window from the rate of the last span of at least one round
    /// trip. It grows at once and shrinks slowly, since a pause of the command
    /// says nothing about the next burst.
    fn follow_rate(&mut self, now: Duration, round_trip: Duration) {
        let elapsed = now.saturating_sub(self.span_at);
        let trip = round_trip.max(Duration::from_micros(500));
        if elapsed < trip {
            return;
        }
        let bytes = self.consumed - self.span_start;
        let per_trip = u128::from(bytes) * trip.as_nanos() / elapsed.as_nanos().max(1);
        let wanted = u64::try_from(per_trip).unwrap_or(MAX_WINDOW).saturating_mul(ROUND_TRIPS);
        let floor = self.window - self.window / 8;
        self.window = wanted.max(floor).clamp(MIN_WINDOW, MAX_WINDOW);
        self.span_start = self.consumed;
        self.span_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn grants_when_half_is_used() {
        let mut window = CreditWindow::new(100, Duration::ZERO);
        assert_eq!(window.granted(), 100 + MIN_WINDOW);
        assert_eq!(window.consumed(100 + MIN_WINDOW / 2 - 1, Duration::ZERO, MS), None);
        assert_eq!(window.consumed(100 + MIN_WINDOW / 2, Duration::ZERO, MS), Some(MIN_WINDOW / 2));
    }

    #[test]
    fn a_fast_reader_on_a_long_path_gets_a_large_window() {
        let mut window = CreditWindow::new(0, Duration::ZERO);
        let trip = Duration::from_millis(50);
        for step in 1..=10 {
            let _ = window.consumed(step * 10_000_000, trip * u32::try_from(step).unwrap(), trip);
        }
        assert_eq!(window.window(), MAX_WINDOW);
    }

    proptest! {
        #[test]
        fn outstanding_is_bounded_and_grants_never_shrink(
            steps in prop::collection::vec((0u64..2_000_000, 0u64..50_000), 1..200),
        ) {
            let mut window = CreditWindow::new(0, Duration::ZERO);
            let (mut consumed, mut now, mut granted) = (0u64, Duration::ZERO, MIN_WINDOW);
            for (bytes, micros) in steps {
                consumed = (consumed + bytes).min(granted);
                now += Duration::from_micros(micros);
                if let Some(more) = window.consumed(consumed, now, MS) {
                    granted += more;
                }
                prop_assert_eq!(granted, window.granted());
                prop_assert!(granted - consumed <= MAX_WINDOW);
                prop_assert!(granted > consumed, "a reader that took everything must have credit");
            }
        }
    }
}
