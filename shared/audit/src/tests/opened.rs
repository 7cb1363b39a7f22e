//! What a log says of itself when it is opened again.

use std::fs::File;

use serde_json::Value;

use super::*;
use crate::head::Head;

/// Opens a log, and closes it: what it wrote down of how it found it.
fn reopened(dir: &Path) -> Vec<Value> {
    drop(Log::open(dir).unwrap());
    let recovered = all(dir).into_iter().filter(|record| record.kind == "audit.recovered");
    recovered.map(|record| record.data).collect()
}

fn found(cut: u64, lost: u64, head: Option<&str>) -> Vec<Value> {
    vec![json!({ "cutBytes": cut, "lostRecords": lost, "head": head })]
}

#[test]
fn an_untouched_log_says_nothing() {
    for records in [0, 1, 3] {
        let dir = log(records);
        assert_eq!(verify(dir.path()).unwrap().records, records);
        assert_eq!(reopened(dir.path()), [Value::Null; 0]);
        assert_eq!(verify(dir.path()).unwrap().records, records);
    }
}

type Deed = fn(&Path);

#[test]
fn what_is_missing_at_a_start_is_written_down() {
    // The deed, what is written down, and the records that are there then, with the one that says so.
    let table: [(&str, Deed, Vec<Value>, u64); 8] = [
        ("the last record is gone", |dir| put(dir, &lines(dir)[..2]), found(0, 1, None), 3),
        ("all records are gone", |dir| put(dir, &[]), found(0, 3, None), 1),
        ("the file is gone", |dir| std::fs::remove_file(segment(dir)).unwrap(), found(0, 3, None), 1),
        (
            "the head is gone",
            |dir| std::fs::remove_file(dir.join("head")).unwrap(),
            found(0, 0, Some("missing")),
            4,
        ),
        (
            "the head is empty",
            |dir| std::fs::write(dir.join("head"), "").unwrap(),
            found(0, 0, Some("missing")),
            4,
        ),
        (
            "the head is text",
            |dir| std::fs::write(dir.join("head"), "text").unwrap(),
            found(0, 0, Some("damaged")),
            4,
        ),
        (
            "the head is of another log",
            |dir| assert!(std::fs::copy(log(2).path().join("head"), dir.join("head")).is_ok()),
            found(0, 0, Some("names another record")),
            4,
        ),
        (
            "head and last record are gone",
            |dir| {
                put(dir, &lines(dir)[..2]);
                std::fs::remove_file(dir.join("head")).unwrap();
            },
            found(0, 0, Some("missing")),
            3,
        ),
    ];
    for (what, deed, want, records) in table {
        let dir = log(3);
        deed(dir.path());
        assert!(verify(dir.path()).is_err(), "{what}");
        assert_eq!(reopened(dir.path()), want, "{what}");
        let verified = verify(dir.path()).unwrap();
        assert_eq!((verified.records, verified.recovered), (records, 1), "{what}");
        // Said once.
        assert_eq!(reopened(dir.path()).len(), 1, "{what}");
    }
}

#[test]
fn a_writer_can_be_killed_at_every_byte() {
    let dir = log(3);
    let good = std::fs::read(segment(dir.path())).unwrap();
    let head = Head::parse(&std::fs::read(dir.path().join("head")).unwrap()).unwrap();
    let hashes: Vec<_> = all(dir.path()).into_iter().map(|record| record.hash).collect();
    let knows = |seq: usize| Head { seq: seq as u64, hash: hashes[seq - 1].clone(), ..head.clone() };
    let third = good.len() - lines(dir.path())[2].len() - 1;
    for cut in third..=good.len() {
        let whole = if cut == good.len() { 3 } else { 2 };
        let torn = if cut == good.len() { 0 } else { cut - third };
        // `head` is written behind the whole line: it knows the record, or still the one before.
        let heads = if torn == 0 { vec![knows(whole), knows(whole - 1)] } else { vec![knows(whole)] };
        for head in heads {
            let killed = tempfile::tempdir().unwrap();
            std::fs::write(segment(killed.path()), &good[..cut]).unwrap();
            head.write(&File::create(killed.path().join("head")).unwrap()).unwrap();
            // Somebody may just be writing it.
            assert_eq!(verify(killed.path()).unwrap().records, whole as u64, "cut at {cut}");
            let want = if torn == 0 { Vec::new() } else { found(torn as u64, 0, None) };
            assert_eq!(reopened(killed.path()), want, "cut at {cut}");
            let verified = verify(killed.path()).unwrap();
            assert_eq!(verified.records, whole as u64 + u64::from(torn > 0), "cut at {cut}");
        }
    }
}

#[test]
fn a_line_that_is_no_record_stays_for_verify() {
    for (at, text) in [(2, "text"), (3, "text"), (0, "{}")] {
        let dir = log(3);
        let mut bad = lines(dir.path());
        if at < bad.len() {
            bad[at] = text.to_owned();
        } else {
            bad.push(text.to_owned());
        }
        put(dir.path(), &bad);
        let before = broken(dir.path());
        assert_eq!(before.0, at as u64 + 1);
        Log::open(dir.path()).unwrap().append("x", json!({})).unwrap();
        assert_eq!(broken(dir.path()), before);
        assert_eq!(all(dir.path()).last().unwrap().seq, 4);
        assert_eq!(lines(dir.path())[..bad.len()], bad[..]);
    }
}

#[test]
fn a_rotation_can_be_killed_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Log::with_segments(dir.path(), 300).unwrap();
    let first = segment(dir.path());
    let writer = open();
    for n in 0..64 {
        writer.append("x", json!({ "n": n })).unwrap();
    }
    let kept = std::fs::read(&first).unwrap();
    writer.append("x", json!({})).unwrap();
    drop(writer);
    let verified = verify(dir.path()).unwrap();
    assert_eq!((verified.first_seq, verified.last_seq), (2, 65));

    // The oldest segment was given up, and is still there.
    std::fs::write(&first, kept).unwrap();
    assert_eq!(verify(dir.path()).unwrap(), verified);
    drop(open());
    assert!(!first.exists());

    // The next segment was begun, or part of its first record written.
    let next = dir.path().join("audit-000000000066.jsonl");
    for (text, recovered) in [("", 0), ("{\"seq\":66", 1)] {
        std::fs::write(&next, text).unwrap();
        assert_eq!(verify(dir.path()).unwrap(), verified, "{text:?}");
        drop(open());
        let opened = verify(dir.path()).unwrap();
        assert_eq!((opened.last_seq, opened.recovered), (65 + recovered, recovered), "{text:?}");
    }
    // An empty segment that begins elsewhere holds nothing: it does not stop the chain.
    std::fs::write(dir.path().join("audit-000000000070.jsonl"), "").unwrap();
    open().append("x", json!({})).unwrap();
    assert_eq!(verify(dir.path()).unwrap().last_seq, 67);

    // Without `head` a log that lost its oldest segments is still one chain.
    std::fs::remove_file(dir.path().join("head")).unwrap();
    drop(open());
    let opened = verify(dir.path()).unwrap();
    assert_eq!((opened.last_seq, opened.recovered), (68, 2));
}
