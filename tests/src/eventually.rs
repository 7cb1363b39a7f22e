//! Waiting for values. The only place that sleeps.

use std::time::{Duration, Instant};

/// Long enough for a busy two-core machine; a story that works needs far less.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Looks until `look` yields a value; panics with the last status when it does
/// not within `deadline`.
#[track_caller]
pub fn eventually<T>(deadline: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(status) if started.elapsed() >= deadline => {
                panic!("not within {deadline:?}; last status: {status}")
            }
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

/// A value and how long it took to come.
pub fn measured<T>(make: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let value = make();
    (value, started.elapsed())
}
