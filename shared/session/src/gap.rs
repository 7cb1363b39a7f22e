//! From a reading position and what is still there to what the reader gets next.

use crate::offset::ByteOffset;
use crate::retention::Segment;

/// What lies at a reading position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Bytes, in the segment with this index.
    Data(usize),
    /// The bytes from here to `to` are gone; reading goes on there.
    Gap {
        /// The reading position.
        from: ByteOffset,
        /// The first byte that is there again.
        to: ByteOffset,
    },
    /// Nothing is known at or behind this position yet.
    End,
}

/// Finds what lies at `position`. `segments` are in order and do not overlap; empty ones are passed over.
pub fn locate(segments: &[Segment], position: ByteOffset) -> Place {
    for (index, segment) in segments.iter().enumerate().filter(|(_, s)| s.len > 0) {
        if position < segment.start {
            return Place::Gap { from: position, to: segment.start };
        }
        if position < segment.end() {
            return Place::Data(index);
        }
    }
    Place::End
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(start: u64, len: u64) -> Segment {
        Segment { start: ByteOffset(start), len, disk: len }
    }

    #[test]
    fn places() {
        let kept = [segment(0, 10), segment(10, 0), segment(30, 5)];
        let gap = |from| Place::Gap { from: ByteOffset(from), to: ByteOffset(30) };
        for (position, want) in [
            (0, Place::Data(0)),
            (9, Place::Data(0)),
            (10, gap(10)),
            (29, gap(29)),
            (30, Place::Data(2)),
            (35, Place::End),
            (99, Place::End),
        ] {
            assert_eq!(locate(&kept, ByteOffset(position)), want, "at {position}");
        }
        assert_eq!(locate(&[], ByteOffset(3)), Place::End);
    }

    proptest! {
        /// Walking by `locate` meets each kept byte once and names everything else.
        #[test]
        fn a_walk_covers_the_log(parts in proptest::collection::vec((0_u64..5, 1_u64..5), 0..8)) {
            let mut at = 0;
            let segments: Vec<_> = parts.iter().map(|&(hole, len)| {
                at += hole;
                let s = segment(at, len);
                at += len;
                s
            }).collect();
            let (mut position, mut data, mut gone) = (ByteOffset(0), 0, 0);
            loop {
                match locate(&segments, position) {
                    Place::Data(index) => {
                        let end = segments[index].end();
                        data += end.0 - position.0;
                        position = end;
                    }
                    Place::Gap { from, to } => {
                        prop_assert_eq!(from, position);
                        prop_assert!(to > from);
                        gone += to.0 - from.0;
                        position = to;
                    }
                    Place::End => break,
                }
            }
            prop_assert_eq!(data, parts.iter().map(|p| p.1).sum::<u64>());
            prop_assert_eq!(gone, parts.iter().map(|p| p.0).sum::<u64>());
            prop_assert_eq!(position.0, at);
        }
    }
}
