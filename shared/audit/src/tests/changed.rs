//! Whatever is done to a log, the record is named.

use super::*;
use crate::record::Line;

const SEGMENT: &str = "audit-000000000001.jsonl";

fn named(seq: u64, line: u64) -> (u64, String, u64) {
    (seq, SEGMENT.to_owned(), line)
}

#[test]
fn every_flipped_bit_of_a_record() {
    let dir = log(3);
    let good = std::fs::read(segment(dir.path())).unwrap();
    let mut record = 1;
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            std::fs::write(segment(dir.path()), &bad).unwrap();
            // A line end that is gone joins two records: the first of them is named.
            assert_eq!(broken(dir.path()), named(record, record), "bit {bit} of byte {at}");
        }
        record += u64::from(good[at] == b'\n');
    }
}

#[test]
fn every_flipped_bit_of_the_head() {
    for records in [0, 1, 3] {
        let dir = log(records);
        let path = dir.path().join("head");
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&path, &bad).unwrap();
                assert!(verify(dir.path()).is_err(), "bit {bit} of byte {at} with {records} records");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(broken(dir.path()), (0, "head".to_owned(), 0));
    }
}

#[test]
fn every_dropped_moved_repeated_or_foreign_record() {
    const RECORDS: usize = 5;
    let dir = log(RECORDS as u64);
    let good = lines(dir.path());
    for at in 0..RECORDS {
        let seq = at as u64 + 1;
        let mut bad = good.clone();
        bad.remove(at);
        put(dir.path(), &bad);
        // Behind the last one stands no line.
        let line = if at + 1 == RECORDS { 0 } else { seq };
        assert_eq!(broken(dir.path()), named(seq, line), "dropped");

        let mut bad = good.clone();
        bad.insert(at, good[at].clone());
        put(dir.path(), &bad);
        assert_eq!(broken(dir.path()), named(seq + 1, seq + 1), "repeated");

        for foreign in ["{}", "", "text", &good[at].replace("\"seq\"", " \"seq\""), &format!(" {}", good[at])]
        {
            let mut bad = good.clone();
            bad.insert(at, foreign.to_owned());
            put(dir.path(), &bad);
            assert_eq!(broken(dir.path()), named(seq, seq), "{foreign:?} before");
        }
        for other in at + 1..RECORDS {
            let mut bad = good.clone();
            bad.swap(at, other);
            put(dir.path(), &bad);
            assert_eq!(broken(dir.path()), named(seq, seq), "swapped with {other}");
        }
    }
    for kept in 0..RECORDS {
        put(dir.path(), &good[..kept]);
        assert_eq!(broken(dir.path()), named(kept as u64 + 1, 0), "only {kept} are left");
    }
    std::fs::remove_file(segment(dir.path())).unwrap();
    assert_eq!(broken(dir.path()).0, 1);
}

#[test]
fn a_record_with_a_hash_of_its_own() {
    let dir = log(3);
    let good = lines(dir.path());
    let parsed = |at: usize| serde_json::from_str::<Line>(&good[at]).unwrap();
    let put_line = |at: usize, line: &Line| {
        let mut bad = good.clone();
        bad[at] = serde_json::to_string(line).unwrap();
        put(dir.path(), &bad);
    };
    for at in 0..3 {
        let seq = at as u64 + 1;
        let old = parsed(at);
        // Other content behind the right record: the next one does not follow it; `head` knows the last one.
        put_line(at, &Line::new(seq, old.time, "run.denied", old.data.clone(), &old.prev));
        let broken_at = if at == 2 { 3 } else { seq + 1 };
        assert_eq!(broken(dir.path()), named(broken_at, broken_at), "content of {seq}");
        // The right content behind another record.
        put_line(at, &Line::new(seq, old.time, &old.kind, old.data.clone(), &old.hash));
        assert_eq!(broken(dir.path()), named(seq, seq), "what {seq} follows");
        // The right place with another number.
        put_line(at, &Line::new(u64::MAX, old.time, &old.kind, old.data, &old.prev));
        assert_eq!(broken(dir.path()), named(seq, seq), "number of {seq}");
    }
}

#[test]
fn records_of_another_log() {
    let (dir, other) = (log(3), log(0));
    let writer = Log::open(other.path()).unwrap();
    for number in 0..4 {
        writer.append("run.started", json!({ "other": number })).unwrap();
    }
    put(dir.path(), &lines(other.path()));
    assert_eq!(broken(dir.path()), named(3, 3));
}

#[test]
fn a_segment_under_another_name() {
    let dir = log(2);
    // Another way to write the number is no segment, and adds nothing.
    std::fs::write(dir.path().join("audit-1.jsonl"), "text\n").unwrap();
    std::fs::write(dir.path().join("audit-+00000000001.jsonl"), "text\n").unwrap();
    assert_eq!(verify(dir.path()).unwrap().records, 2);
    std::fs::write(dir.path().join("audit-000000000002.jsonl"), "").unwrap();
    assert_eq!(broken(dir.path()), (3, "audit-000000000002.jsonl".to_owned(), 0));
    std::fs::remove_file(dir.path().join("audit-000000000002.jsonl")).unwrap();
    std::fs::rename(segment(dir.path()), dir.path().join("audit-000000000002.jsonl")).unwrap();
    assert_eq!(broken(dir.path()), (1, "audit-000000000002.jsonl".to_owned(), 0));
}
