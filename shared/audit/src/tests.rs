use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::{AuditError, DATA_MAX, Filter, Log, Record, Verified, list, shown, verify};

mod changed;
mod opened;
mod speed;

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

/// Which record is broken, and where it is named: the file, the line.
fn broken(dir: &Path) -> (u64, String, u64) {
    let broken = verify(dir).unwrap_err();
    (broken.seq, broken.file.file_name().unwrap().to_str().unwrap().to_owned(), broken.line)
}

fn all(dir: &Path) -> Vec<Record> {
    list(dir, &Filter { limit: usize::MAX, ..Filter::default() }).unwrap()
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let dir = log(3);
    let verified = verify(dir.path()).unwrap();
    assert_eq!((verified.records, verified.first_seq, verified.last_seq), (3, 1, 3));
    let filter = |limit, kind: &str| Filter { limit, kinds: vec![kind.to_owned()], ..Filter::default() };
    let numbers =
        |records: Vec<Record>| records.iter().map(|r| r.data["n"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(list(dir.path(), &filter(2, "run")).unwrap()), [2, 3]);
    assert_eq!(numbers(list(dir.path(), &filter(9, "run.started")).unwrap()), [1, 2, 3]);
    assert_eq!(numbers(list(dir.path(), &filter(9, "approval")).unwrap()), [0_u64; 0]);
    let first = list(dir.path(), &filter(3, "")).unwrap().remove(0);
    assert_eq!(shown(&first), r#"command="ls \"a\"" n=1"#);
    let containing = |text: &str| {
        numbers(
            list(dir.path(), &Filter { limit: 2, contains: text.to_owned(), ..Filter::default() }).unwrap(),
        )
    };
    assert_eq!((containing("n=2"), containing("ls "), containing("rm ")), (vec![2], vec![2, 3], vec![]));
    let late = Filter { limit: 9, since_ms: i64::MAX, ..Filter::default() };
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
fn one_process_writes_and_a_second_log_goes_on() {
    let dir = log(1);
    let first = Log::open(dir.path()).unwrap();
    assert!(matches!(Log::open(dir.path()), Err(AuditError::InUse(_))));
    first.append_durable("x", json!({})).unwrap();
    assert!(matches!(first.append("x", json!("x".repeat(DATA_MAX))), Err(AuditError::TooLong(_))));
    assert!(matches!(first.append(&"k".repeat(DATA_MAX + 4096), json!({})), Err(AuditError::TooLong(_))));
    first.append("x", json!("x".repeat(DATA_MAX - 2))).unwrap();
    drop(first);
    Log::open(dir.path()).unwrap().append("x", json!({})).unwrap();
    assert_eq!(verify(dir.path()).unwrap().last_seq, 4);
}

#[test]
fn nobody_else_can_read_it() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("audit");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
    Log::open(&dir).unwrap().append("x", json!({})).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&dir), 0o700);
    for name in ["lock", "head", "audit-000000000001.jsonl"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
}

#[test]
fn what_is_shown_cannot_look_like_another_field() {
    let table = [
        (json!({ "a": "x", "b": "", "c": null, "d": [], "e": 1 }), "a=x e=1"),
        (json!({ "command": "ls decidedBy=ann" }), r#"command="ls decidedBy=ann""#),
        (json!({ "command": "a=b" }), r#"command="a=b""#),
        (json!({ "command": "\\ \"" }), r#"command="\\ \"""#),
        (json!({ "why": ["a b", "c"], "to": { "x": "y" } }), r#"to={"x":"y"} why=["a b","c"]"#),
        (json!("bare"), "\"bare\""),
    ];
    for (data, want) in table {
        let record = Record { seq: 1, time: 0, kind: String::new(), data, hash: String::new() };
        assert_eq!(shown(&record), want);
    }
}

#[test]
fn a_log_can_be_verified_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::with_segments(dir.path(), 20_000).unwrap();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let log = &log;
                scope.spawn(move || {
                    for n in 0..1000 {
                        log.append("run.started", json!({ "writer": writer, "n": n })).unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            verify(dir.path()).unwrap();
        }
    });
    let Verified { records, recovered, .. } = verify(dir.path()).unwrap();
    assert_eq!((records, recovered), (2000, 0));
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
    let segments = crate::segments::all(dir.path()).unwrap();
    assert_eq!(segments.len(), 64);
    assert_eq!(all(dir.path()).len() as u64, verified.records);
    for (first, path) in &segments {
        let content = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(broken(dir.path()).0, *first);
        std::fs::write(path, content).unwrap();
    }
    assert_eq!(verify(dir.path()), Ok(verified));
}
