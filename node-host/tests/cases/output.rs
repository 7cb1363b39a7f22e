//! Not a byte lost, doubled or out of order, and where bytes were dropped the gap has a name.

use std::time::Duration;

use node_host::sessions::{Limits, Read};
use session::{Death, Ended, LogLimits, StreamTag};
use sha2::{Digest, Sha256};

use super::Case;
use crate::bed::{self, Bed, concat, read_all, request, within};

pub(crate) const CASES: &[Case] = &[
    ("output::small_outputs_arrive_whole", small_outputs),
    ("output::sixty_four_mebibytes_are_equal", large_output),
    ("output::streams_are_tagged_and_ordered", streams),
    ("output::reading_again_from_anywhere_gives_the_same", reread),
    ("output::a_slow_reader_with_a_hold_loses_nothing", slow_with_hold),
    ("output::a_hold_that_is_dropped_frees_the_command", dropped_hold),
    ("output::without_a_hold_the_gap_is_named", gap_without_hold),
    ("output::bursts_arrive_while_it_runs", bursts),
];

fn small_outputs(bed: &mut Bed) {
    for n in 0..300 {
        let (exit, output) = bed.run(&format!("printf hi{n}"), |_| {});
        assert_eq!((exit.ended, output), (Ended::Died(Death::Code(0)), format!("hi{n}").into_bytes()));
    }
}

fn large_output(bed: &mut Bed) {
    let text = "seq 1 9000000 | head -c 67108864";
    let want = std::process::Command::new("sh").args(["-c", text]).output().unwrap().stdout;
    let (exit, got) = bed.run(text, |_| {});
    assert_eq!(exit.final_offset.0, 64 << 20);
    assert_eq!(Sha256::digest(&got), Sha256::digest(&want));
}

fn streams(bed: &mut Bed) {
    for _ in 0..30 {
        let session = bed.start("echo a; echo b >&2; echo c; echo d >&2", |_| {});
        let records = bed.runtime.block_on(read_all(&session, 0));
        let of = |tag| concat(&records.iter().filter(|r| r.stream == tag).cloned().collect::<Vec<_>>());
        assert_eq!(of(StreamTag::Stdout), b"a\nc\n");
        assert_eq!(of(StreamTag::Stderr), b"b\nd\n");
        let mut at = 0;
        let mut time = 0;
        for record in &records {
            assert_eq!(record.offset, at);
            assert!(record.time_ns >= time);
            at += record.bytes.len() as u64;
            time = record.time_ns;
        }
    }
}

fn reread(bed: &mut Bed) {
    let session = bed.start("seq 1 600000; printf x; sleep 0.05; printf y", |_| {});
    let (exit, all) = bed.end_of(&session);
    let end = exit.final_offset.0;
    assert_eq!(all.len() as u64, end);
    bed.runtime.block_on(async {
        for from in [0, 1, 4095, 65_536, 1 << 20, (1 << 20) + 1, 2_345_678, end - 2, end - 1, end] {
            assert_eq!(concat(&read_all(&session, from).await), all[from as usize..], "from {from}");
        }
    });
    let mut reader = session.reader(5);
    for n in 5..2000 {
        match reader.next(1).unwrap() {
            Read::Data(records) => assert_eq!(concat(&records), all[n..=n]),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(session.reader(end + 9).next(1).unwrap(), Read::End);
}

/// Sessions whose logs hold one mebibyte.
fn small_cap(bed: &Bed) -> (tempfile::TempDir, node_host::sessions::Sessions) {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { log: LogLimits::capped(1 << 20), ..Limits::default() };
    let launcher = bed.spare_launcher();
    let sessions = bed
        .runtime
        .block_on(node_host::sessions::Sessions::open(dir.path().join("s"), launcher, limits))
        .unwrap();
    (dir, sessions)
}

fn slow_with_hold(bed: &mut Bed) {
    let (_dir, sessions) = small_cap(bed);
    bed.runtime.block_on(async {
        let (session, hold) = sessions.start_held(request(&["seq", "1", "1500000"])).await.unwrap();
        let (mut reader, mut progress) = (session.reader(0), session.progress());
        let mut output = Vec::new();
        let mut pauses = 0;
        within(async {
            loop {
                progress.borrow_and_update();
                match reader.next(64 << 10).unwrap() {
                    Read::Data(records) => {
                        output.extend(concat(&records));
                        hold.advance(reader.position());
                        pauses += 1;
                        if pauses % 8 == 0 {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                    Read::Empty => progress.changed().await.unwrap(),
                    Read::End => return,
                    Read::Gap { from, to } => panic!("a gap from {from} to {to}"),
                }
            }
        })
        .await;
        let want: String = (1..=1_500_000).map(|n| format!("{n}\n")).collect();
        assert!(output == want.as_bytes(), "{} of {} bytes", output.len(), want.len());
        assert_eq!(bed::exit_of(&session).await.ended, Ended::Died(Death::Code(0)));
    });
}

fn dropped_hold(bed: &mut Bed) {
    let (_dir, sessions) = small_cap(bed);
    bed.runtime.block_on(async {
        for _ in 0..5 {
            let (session, hold) = sessions.start_held(request(&["seq", "1", "1500000"])).await.unwrap();
            drop(hold);
            assert_eq!(bed::exit_of(&session).await.ended, Ended::Died(Death::Code(0)));
        }
    });
}

fn gap_without_hold(bed: &mut Bed) {
    let (_dir, sessions) = small_cap(bed);
    bed.runtime.block_on(async {
        let session = sessions.start(request(&["seq", "1", "1500000"])).await.unwrap();
        let exit = bed::exit_of(&session).await;
        let want: String = (1..=1_500_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(exit.final_offset.0, want.len() as u64);
        let mut reader = session.reader(0);
        let (mut at, mut gaps) = (0, Vec::new());
        loop {
            match reader.next(64 << 10).unwrap() {
                Read::Data(records) => {
                    let bytes = concat(&records);
                    assert!(bytes == want.as_bytes()[at..at + bytes.len()], "at {at}");
                    at += bytes.len();
                }
                Read::Gap { from, to } => {
                    assert_eq!(from, at as u64);
                    gaps.push((from, to));
                    at = to as usize;
                }
                Read::End => break,
                Read::Empty => panic!("the session is over"),
            }
        }
        assert_eq!(at, want.len());
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert!(gaps[0].0 >= 128 << 10, "{gaps:?}");
        let inside = gaps[0].0 + 1;
        assert_eq!(session.reader(inside).next(1).unwrap(), Read::Gap { from: inside, to: gaps[0].1 });
    });
}

fn bursts(bed: &mut Bed) {
    let session = bed
        .start("for i in 1 2 3; do echo burst $i; sleep 0.2; done; head -c 8000 /dev/zero; echo ok", |_| {});
    bed.read_until(&session, "burst 1\n");
    bed.read_until(&session, "burst 2\n");
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.final_offset.0, 24 + 8000 + 3);
    assert!(output.ends_with(b"\0ok\n"));
}
