use std::sync::Arc;

use bytes::Bytes;
use fault::ErrorCode;
use identity::Fingerprint;
use link::{Outbox, OutboxStream};
use proptest::prelude::*;

use super::*;

fn bed() -> (Arc<Link>, OutboxStream<pb::GatewayFrame>) {
    let (outbox, stream) = Outbox::new();
    (Link::new(Fingerprint([1; 32]), 1, outbox), stream)
}

/// The byte at an offset: a pattern in which every shift shows.
fn byte(offset: u64) -> u8 {
    u8::try_from(offset.wrapping_mul(31) % 251).unwrap()
}

fn records(from: u64, to: u64) -> pb::output::Part {
    let data: Vec<u8> = (from..to).map(byte).collect();
    let record =
        pb::Record { offset: from, stream: pb::Stream::Stdout.into(), time_ns: 0, data: Bytes::from(data) };
    pb::output::Part::Records(pb::Records { records: vec![record] })
}

fn exit(final_offset: u64) -> pb::Exit {
    pb::Exit { how: Some(pb::exit::How::Code(0)), final_offset, ..pb::Exit::default() }
}

/// Reads to the end of the feed; checks every byte; yields where it began to
/// miss something.
async fn read_all(mut reader: FeedReader) -> Item {
    let mut at = reader.offset();
    loop {
        match reader.next().await {
            Item::Records(records) => {
                for record in records {
                    assert_eq!(record.offset, at, "in order and without a hole");
                    for (i, b) in record.data.iter().enumerate() {
                        assert_eq!(*b, byte(at + i as u64));
                    }
                    at += record.data.len() as u64;
                }
            }
            Item::Gap(gap) => {
                assert_eq!(gap.from, at);
                at = gap.to;
            }
            end => {
                if let Item::Exit(exit) = &end {
                    assert_eq!(exit.final_offset, at, "the end comes after all output");
                }
                return end;
            }
        }
    }
}

#[tokio::test]
async fn a_late_reader_joins_and_an_end_comes_last() {
    let (link, _stream) = bed();
    let feed = Arc::new(Feed::new(7, 0, link));
    let first = feed.join(0).unwrap();
    feed.push(records(0, 100));
    let late = feed.join(50).unwrap();
    assert!(feed.join(101).is_none(), "nothing is there yet");
    feed.push(pb::output::Part::Gap(pb::Gap { from: 100, to: 150 }));
    feed.push(records(150, 200));
    feed.finish(Ok(exit(200)));
    assert_eq!(read_all(first).await, Item::Exit(exit(200)));
    assert_eq!(read_all(late).await, Item::Exit(exit(200)));
}

#[tokio::test]
async fn a_reader_that_fell_out_of_the_ring_is_told() {
    let (link, _stream) = bed();
    let feed = Arc::new(Feed::new(7, 0, link));
    let mut fast = feed.join(0).unwrap();
    let slow = feed.join(0).unwrap();
    let chunk = 64 * 1024;
    let mut at = 0;
    while at <= RING_MAX + chunk {
        feed.push(records(at, at + chunk));
        at += chunk;
        assert!(matches!(fast.next().await, Item::Records(_)));
    }
    assert_eq!(read_all(slow).await, Item::Lagged);
}

#[tokio::test]
async fn a_wide_gap_fills_no_ring() {
    let (link, _stream) = bed();
    let feed = Arc::new(Feed::new(7, 0, link));
    let mut reader = feed.join(0).unwrap();
    let gap = pb::Gap { from: 0, to: 100 * RING_MAX };
    feed.push(pb::output::Part::Gap(gap));
    feed.push(records(gap.to, gap.to + 10));
    feed.finish(Ok(exit(gap.to + 10)));
    assert_eq!(reader.next().await, Item::Gap(gap));
    assert_eq!(read_all(reader).await, Item::Exit(exit(gap.to + 10)));
}

#[tokio::test]
async fn a_broken_feed_gives_what_it_has_first() {
    let (link, _stream) = bed();
    let feed = Arc::new(Feed::new(7, 10, link));
    let mut reader = feed.join(10).unwrap();
    feed.push(records(10, 20));
    feed.link_ended(Fault::new(ErrorCode::Disconnected, "cut"));
    assert!(matches!(reader.next().await, Item::Records(_)));
    assert_eq!(reader.offset(), 20);
    assert!(matches!(reader.next().await, Item::Broken(fault) if fault.code == ErrorCode::Disconnected));
    assert!(feed.join(20).is_none(), "nobody joins a broken feed");
}

proptest! {
    /// Whatever order chunks come in, repeated, overlapping or too early: a
    /// reader gets a prefix of the truth, in order, each byte once.
    #[test]
    fn readers_get_the_truth_once(
        chunks in prop::collection::vec((0u64..400, 1u64..80), 1..60),
        starts in prop::collection::vec(0u64..50, 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (link, _stream) = bed();
            let feed = Arc::new(Feed::new(7, 0, link));
            let anchor = feed.join(0).unwrap();
            for (from, length) in chunks {
                feed.push(records(from, from + length));
            }
            let end = feed.state.lock().end;
            feed.finish(Ok(exit(end)));
            let readers: Vec<_> = starts.iter().filter_map(|from| feed.join(*from)).collect();
            for reader in readers.into_iter().chain([anchor]) {
                assert_eq!(read_all(reader).await, Item::Exit(exit(end)));
            }
        });
    }
}

/// A node that sends from where it is asked to, in pieces, some of them twice or cut together with what came before.
#[derive(Debug, Clone)]
enum Step {
    /// So many bytes more, the first of them repeated.
    Send(u64, u64),
    /// So many bytes that are not kept.
    Lose(u64),
    /// A reader takes what is there.
    Take(usize),
    /// The link is cut; each reader goes on at its own offset over the next one.
    Cut,
    /// A reader leaves, another one begins at its offset.
    Change(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1_u64..5000, 0_u64..300).prop_map(|(more, again)| Step::Send(more, again)),
        1 => (1_u64..100).prop_map(Step::Lose),
        6 => (0_usize..3).prop_map(Step::Take),
        1 => Just(Step::Cut),
        1 => (0_usize..3).prop_map(Step::Change),
    ];
    proptest::collection::vec(step, 1..120)
}

/// What one reader has, over all its links.
struct Mirror {
    reader: Option<FeedReader>,
    at: u64,
}

impl Mirror {
    /// Takes what is there; yields whether the end came.
    fn take(&mut self) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        while let Some(item) = reader.ready() {
            match item {
                Item::Records(records) => {
                    for record in records {
                        assert_eq!(record.offset, self.at, "in order, nothing twice");
                        assert!(record.data.iter().zip(self.at..).all(|(got, offset)| *got == byte(offset)));
                        self.at += record.data.len() as u64;
                    }
                }
                Item::Gap(gap) => {
                    assert_eq!(gap.from, self.at);
                    self.at = gap.to;
                }
                Item::Exit(exit) => {
                    assert_eq!(exit.final_offset, self.at, "the end comes last");
                    return true;
                }
                // It opens a feed of its own at its offset, as after a cut.
                Item::Lagged | Item::Broken(_) => {
                    self.reader = None;
                    return false;
                }
                Item::Refused(fault) => panic!("{fault}"),
            }
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn readers_have_all_of_it_once_over_any_number_of_links(steps in steps()) {
        let (link, _stream) = bed();
        let mut feed = Arc::new(Feed::new(0, 0, Arc::clone(&link)));
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        let mut end = 0;
        let mut mirrors: Vec<Mirror> = (0..3).map(|_| Mirror { reader: feed.join(0), at: 0 }).collect();
        // What the node has of [from, to), as it would send it to a new subscription.
        let send = |feed: &Feed, gaps: &[(u64, u64)], from: u64, to: u64| {
            let mut at = from;
            for &(start, stop) in gaps.iter().filter(|(_, stop)| *stop > from) {
                if start >= to {
                    break;
                }
                if start > at {
                    feed.push(records(at, start));
                }
                feed.push(pb::output::Part::Gap(pb::Gap { from: start.max(at), to: stop.min(to) }));
                at = stop.min(to);
            }
            if at < to {
                feed.push(records(at, to));
            }
        };
        for step in steps {
            match step {
                Step::Send(more, again) => {
                    let from = end - again.min(end);
                    // A repeat never reaches back over a gap: the node sends that as a gap.
                    let from = gaps.last().map_or(from, |(_, stop)| from.max(*stop));
                    feed.push(records(from, end + more));
                    end += more;
                }
                Step::Lose(more) => {
                    feed.push(pb::output::Part::Gap(pb::Gap { from: end, to: end + more }));
                    gaps.push((end, end + more));
                    end += more;
                }
                Step::Take(who) => {
                    mirrors[who].take();
                }
                Step::Cut => {
                    // Every reader starts over at the lowest place and skips what it has.
                    feed.link_ended(Fault::new(ErrorCode::Disconnected, "cut"));
                    for mirror in &mut mirrors {
                        mirror.take();
                        let next = Arc::new(Feed::new(1, mirror.at, Arc::clone(&link)));
                        mirror.reader = next.join(mirror.at);
                        send(&next, &gaps, mirror.at, end);
                        mirror.take();
                    }
                    feed = Arc::new(Feed::new(2, end, Arc::clone(&link)));
                    for mirror in &mut mirrors {
                        prop_assert_eq!(mirror.at, end);
                        mirror.reader = feed.join(end);
                    }
                }
                Step::Change(who) => {
                    mirrors[who].take();
                    let at = mirrors[who].at;
                    if let Some(reader) = feed.join(at) {
                        mirrors[who].reader = Some(reader);
                    }
                }
            }
            for mirror in &mirrors {
                prop_assert!(mirror.at <= end);
            }
        }
        feed.finish(Ok(exit(end)));
        for mirror in &mut mirrors {
            if !mirror.take() {
                // It lagged behind the ring: its own feed has the rest.
                let next = Arc::new(Feed::new(3, mirror.at, Arc::clone(&link)));
                mirror.reader = next.join(mirror.at);
                send(&next, &gaps, mirror.at, end);
                next.finish(Ok(exit(end)));
                prop_assert!(mirror.take());
            }
            prop_assert_eq!(mirror.at, end);
        }
    }
}
