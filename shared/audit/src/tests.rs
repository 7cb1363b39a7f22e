use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::{AuditError, Broken, DATA_MAX, Filter, Log, Record, list, shown, verify};

fn log(records: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path()).unwrap();
    for number in 1..=records {
        log.append("run.started", json!({ "n": number, "command": "ls \"a\"" })).unwrap();
    }
    dir
}

fn segment(dir: &Path) -> PathBuf {
    dir.join("audit-000000000001.jsonl")
}

fn lines(dir: &Path) -> Vec<String> {
    std::fs::read_to_string(segment(dir)).unwrap().lines().map(str::to_owned).collect()
}

fn put(dir: &Path, lines: &[String]) {
    std::fs::write(segment(dir), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn broken_at(dir: &Path) -> u64 {
    let Broken { seq, .. } = verify(dir).unwrap_err();
    seq
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let dir = log(3);
    let verified = verify(dir.path()).unwrap();
    assert_eq!((verified.records, verified.first_seq, verified.last_seq), (3, 1, 3));
    let filter = |limit, kind: &str| Filter { limit, kinds: vec![kind.to_owned()], since_ms: 0 };
    let numbers =
        |records: Vec<Record>| records.iter().map(|r| r.data["n"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(list(dir.path(), &filter(2, "run")).unwrap()), [2, 3]);
    assert_eq!(numbers(list(dir.path(), &filter(9, "run.started")).unwrap()), [1, 2, 3]);
    assert_eq!(numbers(list(dir.path(), &filter(9, "approval")).unwrap()), [0_u64; 0]);
    let first = list(dir.path(), &filter(3, "")).unwrap().remove(0);
    assert_eq!(shown(&first), "command=ls \"a\" n=1");
    let late = Filter { limit: 9, kinds: Vec::new(), since_ms: i64::MAX };
    assert_eq!(list(dir.path(), &late).unwrap(), []);
}

#[test]
fn nothing_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    assert_eq!(verify(&gone).unwrap().records, 0);
    assert_eq!(list(&gone, &Filter { limit: 9, ..Filter::default() }).unwrap(), []);
}

#[test]
fn every_flipped_byte_is_named() {
    let dir = log(3);
    let good = std::fs::read(segment(dir.path())).unwrap();
    let ends: Vec<usize> = good.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at).collect();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(segment(dir.path()), &bad).unwrap();
        let record = ends.iter().filter(|end| **end < at).count() as u64 + 1;
        let found = broken_at(dir.path());
        // A line end that is gone joins two records: the first of them is named.
        assert_eq!(found, record, "byte {at}: {:?}", verify(dir.path()));
    }
}

#[test]
fn dropped_and_moved_records_are_named() {
    for dropped in 0..4 {
        let dir = log(4);
        let mut all = lines(dir.path());
        all.remove(dropped);
        put(dir.path(), &all);
        assert_eq!(broken_at(dir.path()), dropped as u64 + 1);
    }
    for (a, b) in [(0, 1), (0, 3), (1, 2), (2, 3)] {
        let dir = log(4);
        let mut all = lines(dir.path());
        all.swap(a, b);
        put(dir.path(), &all);
        assert_eq!(broken_at(dir.path()), a as u64 + 1);
    }
    let dir = log(4);
    put(dir.path(), &[]);
    assert_eq!(broken_at(dir.path()), 1);
    std::fs::remove_file(segment(dir.path())).unwrap();
    assert_eq!(broken_at(dir.path()), 1);
}

#[test]
fn records_of_another_log_are_named() {
    let (dir, other) = (log(3), tempfile::tempdir().unwrap());
    let writer = Log::open(other.path()).unwrap();
    for number in 0..4 {
        writer.append("run.started", json!({ "other": number })).unwrap();
    }
    put(dir.path(), &lines(other.path()));
    assert!(verify(dir.path()).is_err());
    std::fs::remove_file(dir.path().join("head")).unwrap();
    assert!(verify(dir.path()).is_err());
    let mut all = lines(log(2).path());
    all.push("{}".to_owned());
    let dir = log(2);
    put(dir.path(), &all);
    assert!(verify(dir.path()).is_err());
}

#[test]
fn a_torn_end_is_cut_off_and_written_down() {
    let dir = log(2);
    let mut bytes = std::fs::read(segment(dir.path())).unwrap();
    bytes.extend_from_slice(b"{\"seq\":3,");
    std::fs::write(segment(dir.path()), &bytes).unwrap();
    // Somebody may just be writing it.
    assert_eq!(verify(dir.path()).unwrap().records, 2);
    drop(Log::open(dir.path()).unwrap());
    let last = list(dir.path(), &Filter { limit: 1, ..Filter::default() }).unwrap().remove(0);
    assert_eq!(
        (last.kind.as_str(), last.data),
        ("audit.recovered", json!({ "cutBytes": 9, "lostRecords": 0 }))
    );
    assert_eq!(verify(dir.path()).unwrap().records, 3);
    // A whole record that is gone is written down too, and the log goes on.
    let mut all = lines(dir.path());
    all.pop();
    put(dir.path(), &all);
    assert_eq!(broken_at(dir.path()), 3);
    Log::open(dir.path()).unwrap().append("x", json!({})).unwrap();
    let last = list(dir.path(), &Filter { limit: 2, ..Filter::default() }).unwrap().remove(0);
    assert_eq!(last.data, json!({ "cutBytes": 0, "lostRecords": 1 }));
    assert_eq!(verify(dir.path()).unwrap().records, 4);
}

#[test]
fn one_process_writes_and_a_second_log_goes_on() {
    let dir = log(1);
    let first = Log::open(dir.path()).unwrap();
    assert!(matches!(Log::open(dir.path()), Err(AuditError::InUse(_))));
    first.append_durable("x", json!({})).unwrap();
    assert!(matches!(first.append("x", json!("x".repeat(DATA_MAX))), Err(AuditError::TooLong(_))));
    drop(first);
    Log::open(dir.path()).unwrap().append("x", json!({})).unwrap();
    assert_eq!(verify(dir.path()).unwrap().last_seq, 3);
}

#[test]
fn segments_are_bounded_and_a_missing_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::with_segments(dir.path(), 300).unwrap();
    for number in 0..200 {
        log.append("run.started", json!({ "n": number })).unwrap();
    }
    let verified = verify(dir.path()).unwrap();
    assert_eq!(verified.last_seq, 200);
    assert!(verified.first_seq > 1 && verified.records == 200 - verified.first_seq + 1, "{verified:?}");
    let all = crate::segments::all(dir.path()).unwrap();
    assert_eq!(all.len(), 64);
    assert_eq!(
        list(dir.path(), &Filter { limit: 1000, ..Filter::default() }).unwrap().len() as u64,
        verified.records
    );
    std::fs::remove_file(&all[5].1).unwrap();
    assert_eq!(broken_at(dir.path()), all[5].0);
}
