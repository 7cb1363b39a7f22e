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
