//! Which parts of a log may go, and when its writer must wait.
//!
//! Pure: takes the list of segments, answers what to drop. The first segment (the head) and the latest always stay,
//! what goes is the oldest in between. A reader that holds its place (a *floor*) is never robbed: then the writer
//! waits, and with it the command.

use serde::{Deserialize, Serialize};

use crate::offset::ByteOffset;

/// One file of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first output byte.
    pub start: ByteOffset,
    /// Output bytes in it.
    pub len: u64,
    /// Bytes it takes on disk, record headers included.
    pub disk: u64,
}

impl Segment {
    /// The offset behind its last byte.
    pub fn end(&self) -> ByteOffset {
        self.start.after(self.len)
    }
}

/// How much of a session's output stays, in bytes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Size of the first segment, which is kept.
    pub head: u64,
    /// Bound on the whole log.
    pub cap: u64,
    /// Size at which a later segment is closed.
    pub segment: u64,
}

impl LogLimits {
    /// The smallest cap that still has room for a head, a latest part and one largest record.
    pub const MIN_CAP: u64 = 256 * 1024;

    /// Limits for a log of `cap` bytes, raised to [`Self::MIN_CAP`].
    pub fn capped(cap: u64) -> LogLimits {
        let cap = cap.max(Self::MIN_CAP);
        LogLimits { head: (cap / 8).min(1 << 20), cap, segment: (cap / 8).min(8 << 20) }
    }

    /// The size at which a segment is closed. The first one is the head.
    pub fn segment_size(&self, start: ByteOffset) -> u64 {
        if start == ByteOffset::START { self.head } else { self.segment }
    }
}

impl Default for LogLimits {
    /// 64 MiB, of which the first 1 MiB is kept.
    fn default() -> Self {
        LogLimits::capped(64 << 20)
    }
}

/// What to do with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Indices of segments to drop, ascending.
    pub drop: Vec<usize>,
    /// Whether the writer may go on.
    pub writer: Writer,
}

/// Whether more output may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Room, or nobody to wait for.
    MayGoOn,
    /// A reader has not yet read what would have to go.
    MustWait,
}

/// Decides about a log. `segments` are in order, the last one is being written; `floor` is the lowest position that a
/// reader still needs.
pub fn decide(segments: &[Segment], limits: &LogLimits, floor: Option<ByteOffset>) -> Decision {
    let mut total: u64 = segments.iter().map(|s| s.disk).sum();
    let mut drop = Vec::new();
    let last = segments.len().saturating_sub(1);
    for (index, segment) in segments.iter().enumerate().take(last).skip(1) {
        if total <= limits.cap || floor.is_some_and(|floor| segment.end() > floor) {
            break;
        }
        total -= segment.disk;
        drop.push(index);
    }
    // What the reader still needs counts alone: the head is kept whether it was read or not, and must not stop a
    // reader that is just behind the writer.
    let needed: u64 = match floor {
        None => 0,
        Some(floor) => segments.iter().filter(|s| s.end() > floor).map(|s| s.disk).sum(),
    };
    let writer = if needed > limits.cap { Writer::MustWait } else { Writer::MayGoOn };
    Decision { drop, writer }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: LogLimits = LogLimits { head: 10, cap: 50, segment: 10 };

    fn log(count: u64) -> Vec<Segment> {
        (0..count).map(|n| Segment { start: ByteOffset(n * 10), len: 10, disk: 10 }).collect()
    }

    #[test]
    fn without_a_reader_the_middle_goes() {
        let drops = |drop| Decision { drop, writer: Writer::MayGoOn };
        assert_eq!(decide(&log(5), &LIMITS, None), drops(vec![]));
        assert_eq!(decide(&log(7), &LIMITS, None), drops(vec![1, 2]));
        assert_eq!(decide(&[], &LIMITS, None), drops(vec![]));
    }

    #[test]
    fn a_reader_stops_the_writer_and_frees_it_again() {
        let at = |floor, count| decide(&log(count), &LIMITS, Some(ByteOffset(floor)));
        assert_eq!(at(0, 6), Decision { drop: vec![], writer: Writer::MustWait });
        assert_eq!(at(15, 7), Decision { drop: vec![], writer: Writer::MustWait });
        assert_eq!(at(20, 7), Decision { drop: vec![1], writer: Writer::MayGoOn });
        assert_eq!(at(70, 7), Decision { drop: vec![1, 2], writer: Writer::MayGoOn });
    }

    #[test]
    fn limits_leave_room_to_move() {
        for cap in [0, 1, 300_000, 1 << 20, 64 << 20, 1 << 40] {
            let limits = LogLimits::capped(cap);
            assert!(limits.head + 2 * limits.segment < limits.cap, "{limits:?}");
        }
    }

    proptest! {
        /// A writer that obeys: bounded disk, nothing dropped that a reader needs, head and latest always there,
        /// and a reader that catches up always frees the writer.
        #[test]
        fn random_writers_and_readers(steps in proptest::collection::vec((0_u8..4, 1_u64..10), 1..200)) {
            let mut segments = vec![Segment { start: ByteOffset(0), len: 0, disk: 0 }];
            let mut floor: Option<ByteOffset> = None;
            let mut writer = Writer::MayGoOn;
            for (what, amount) in steps {
                let end = segments.last().map_or(ByteOffset(0), Segment::end);
                match what {
                    0 => floor = match floor { Some(_) => None, None => Some(end) },
                    1 => floor = floor.map(|f| ByteOffset((f.0 + amount * 3).min(end.0))),
                    _ if writer == Writer::MayGoOn => {
                        let last = segments.last_mut().unwrap();
                        if last.disk >= LIMITS.segment_size(last.start) {
                            segments.push(Segment { start: end, len: amount, disk: amount + 1 });
                        } else {
                            last.len += amount;
                            last.disk += amount + 1;
                        }
                    }
                    _ => {}
                }
                let decision = decide(&segments, &LIMITS, floor);
                for &index in decision.drop.iter().rev() {
                    prop_assert!(index > 0 && index < segments.len() - 1);
                    let gone = segments.remove(index);
                    prop_assert!(floor.is_none_or(|f| gone.end() <= f));
                }
                writer = decision.writer;
                let disk: u64 = segments.iter().map(|s| s.disk).sum();
                // One head of 20 and one overshoot above the cap.
                prop_assert!(disk <= LIMITS.cap + 20 + 20, "{disk}");
                prop_assert_eq!(segments[0].start, ByteOffset(0));
                let end = segments.last().map_or(ByteOffset(0), Segment::end);
                prop_assert_eq!(decide(&segments, &LIMITS, Some(end)).writer, Writer::MayGoOn);
            }
        }
    }
}
