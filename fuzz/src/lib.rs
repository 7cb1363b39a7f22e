//! What the fuzzers check. The replay of the corpus (`shared/policy/tests/corpus.rs`) includes this file, so that both
//! check the same.

mod canonical;
pub mod document;
pub mod long;
pub mod reader;
pub mod verdict;
mod world;

use std::time::{Duration, Instant};

/// A check. It panics where something does not hold.
pub type Check = fn(&[u8], Pace);

/// The checks, by the names of the fuzz targets and of the directories of the corpus.
pub const TARGETS: [(&str, Check); 4] = [
    ("document", document::check),
    ("long", long::check),
    ("reader", reader::check),
    ("verdict", verdict::check),
];

/// What may be expected of a build.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many times longer than an ordinary release build it may take.
    pub slowness: u32,
}

impl Pace {
    /// An optimised build that counts what it reaches and checks its memory, at the lowest priority.
    pub const FUZZER: Self = Self { slowness: 25 };
    /// A build without optimisation, on a machine that does other things too.
    pub const TESTS: Self = Self { slowness: 50 };

    /// What a text of so many bytes may take: 100 ms for 128 KiB. Short ones are not worth measuring that closely.
    fn limit(self, bytes: usize) -> Duration {
        let text = Duration::from_millis(100).as_nanos() * bytes as u128 / (128 * 1024);
        let text = Duration::from_nanos(u64::try_from(text).unwrap_or(u64::MAX));
        (text + Duration::from_millis(5)) * self.slowness
    }

    /// Does some work on a text of so many bytes, and checks the time it takes. Work that takes too long by the clock is
    /// done again, and then only the time of the processor counts: the machine may have been busy.
    fn timed<T>(self, what: &str, bytes: usize, mut work: impl FnMut() -> T) -> T {
        let limit = self.limit(bytes);
        let start = Instant::now();
        let made = work();
        if start.elapsed() <= limit {
            return made;
        }
        let mut fastest = Duration::MAX;
        for _ in 0..3 {
            let (start, used) = (Instant::now(), processor_time());
            drop(work());
            let time = processor_time().zip(used).map(|(now, before)| now.saturating_sub(before));
            fastest = fastest.min(time.unwrap_or_else(|| start.elapsed()));
        }
        assert!(fastest <= limit, "{what}: {bytes} bytes take {fastest:?}, more than {limit:?}");
        made
    }
}

/// What this thread has used of a processor. None where the system does not say.
fn processor_time() -> Option<Duration> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counts.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
