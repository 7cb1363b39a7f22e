use audit::Log;
use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: AuditCommand,
}

fn text(dir: &Path, line: &str) -> Result<String, Fault> {
    let (words, json) = match line.strip_suffix(" --json") {
        Some(words) => (words, true),
        None => (line, false),
    };
    Line::try_parse_from(std::iter::once("audit").chain(words.split(' '))).unwrap().command.text(dir, json)
}

fn written(dir: &Path) {
    let log = Log::open(dir).unwrap();
    for (kind, data) in [
        ("approval.requested", json!({ "command": "ls\n\u{1b}[2J", "agent": "" })),
        ("run.started", json!({ "node": "n\u{202e}" })),
        ("run.ended", json!({ "code": 0 })),
    ] {
        log.append(kind, data).unwrap();
    }
}

#[test]
fn records_are_listed_oldest_first_one_on_a_line() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    let told = |line: &str| {
        let text = text(dir.path(), line).unwrap();
        // Behind the time.
        text.lines().map(|line| line.split_once("  ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let (asked, started, ended) = (
        "approval.requested  command=\"ls\\n\\u{1b}[2J\"",
        "run.started  node=n\\u{202e}",
        "run.ended  code=0",
    );
    let table: [(&str, &[&str]); 8] = [
        ("list", &[asked, started, ended]),
        ("list --limit 1", &[ended]),
        ("list --kind run", &[started, ended]),
        ("list --kind run.started --kind approval", &[asked, started]),
        ("list --since 1h", &[asked, started, ended]),
        ("list --kind run --limit 1 --since 30d", &[ended]),
        ("list --contains code=0", &[ended]),
        ("list --contains n --limit 1 --kind run.started", &[started]),
    ];
    for (line, want) in table {
        assert_eq!(told(line), want, "{line}");
    }
    let nothing = text(dir.path(), "list --kind other").unwrap();
    assert_eq!(nothing, format!("no such record in {}\n", dir.path().display()));
    assert_eq!(text(dir.path(), "list --kind other --json").unwrap(), "");

    let listed = text(dir.path(), "list --json").unwrap();
    let records: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<_> = records.iter().map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, [Some(1), Some(2), Some(3)]);
    assert_eq!(records[0]["data"]["command"], "ls\n\u{1b}[2J");
    assert!(Line::try_parse_from(["audit", "list", "--limit", "0"]).is_err());
}

#[test]
fn a_moment_is_always_one_word() {
    let table = [
        (0, "1970-01-01T00:00:00Z"),
        (1999, "1970-01-01T00:00:01Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (i64::MAX, "9223372036854775807 ms"),
    ];
    for (ms, want) in table {
        assert_eq!(moment(ms), want, "{ms}");
    }
}

#[test]
fn what_was_changed_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let none = format!("0 records, chain intact; nothing was written down in {place}\n");
    assert_eq!(text(dir.path(), "verify").unwrap(), none);
    written(dir.path());
    let intact = text(dir.path(), "verify").unwrap();
    assert!(intact.starts_with("3 records, chain intact, the last is 3 "), "{intact}");
    let intact: Value = serde_json::from_str(&text(dir.path(), "verify --json").unwrap()).unwrap();
    assert_eq!((&intact["intact"], &intact["records"]), (&json!(true), &json!(3)));

    // What was lost before a start is told beside the chain, which goes on without it.
    let file = dir.path().join("audit-000000000001.jsonl");
    let records = std::fs::read_to_string(&file).unwrap();
    let (cut, _) = records.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&file, format!("{cut}\n")).unwrap();
    let gone = text(dir.path(), "verify").unwrap_err().message;
    assert_eq!(gone, format!("record 3 ({}): it is missing: `head` knows records up to 3", file.display()));
    drop(Log::open(dir.path()).unwrap());
    let told = text(dir.path(), "verify").unwrap();
    let (chain, note) = told.split_once('\n').unwrap();
    assert!(chain.starts_with("3 records, chain intact, the last is 3 "), "{told}");
    assert!(note.starts_with("starts that found its end cut, lost or changed: 1; "), "{told}");
    let listed = text(dir.path(), "list --kind audit").unwrap();
    assert!(listed.ends_with("  audit.recovered  cutBytes=0 lostRecords=1\n"), "{listed}");

    let records = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, records.replace("run.started", "run.stirred")).unwrap();
    for line in ["verify", "verify --json"] {
        let fault = text(dir.path(), line).unwrap_err();
        assert_eq!(fault.code, ErrorCode::AuditBroken);
        let want = format!("record 2 ({}, line 2): it was changed: its hash does not fit it", file.display());
        assert_eq!(fault.message, want);
        assert!(fault.hint.unwrap().contains(&place.to_string()));
    }
}
