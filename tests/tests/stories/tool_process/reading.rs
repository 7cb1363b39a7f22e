//! `list`, `poll`, `log` and `search`: what was read, by whom, and what is left.

use std::time::Duration;

use e2e::{Desk, PATIENCE, Tool, eventually, measured};
use serde_json::{Value, json};

#[test]
fn a_list_says_where_each_session_stands() {
    let desk = Desk::new();
    let over = desk.tool.exec("true --version extra; echo out; exit 3", json!({})).session();
    let tty = desk.tool.background("stty -echo; read line", json!({ "pty": true }));
    let runs = desk.tool.background("echo up; sleep 600", json!({ "workdir": "/" }));
    desk.tool.wait_for(&runs, "up");
    let (listed, sessions) = eventually(PATIENCE, || {
        let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
        let sessions = listed["sessions"].as_array().unwrap().clone();
        if sessions[1]["waitingForInput"] == true {
            Ok((listed, sessions))
        } else {
            Err(format!("{listed:?}"))
        }
    });
    listed.has(json!({ "status": "completed", "unreachable": [] }));
    let part = |session: &Value, names: &[&str]| -> Vec<Value> {
        names.iter().map(|n| session[*n].clone()).collect()
    };
    let common = ["sessionId", "status", "cwd", "command", "tail", "truncated", "node", "pty"];
    assert_eq!(
        part(&sessions[0], &common),
        [
            json!(runs),
            json!("running"),
            json!("/"),
            json!("echo up; sleep 600"),
            json!("up\n"),
            json!(false),
            json!("n"),
            json!(false)
        ]
    );
    assert_eq!(
        part(&sessions[0], &["stdinWritable", "waitingForInput", "onDisconnect", "exitCode", "outputBytes"]),
        [json!(false), json!(false), json!("keep"), Value::Null, json!(3)]
    );
    for number in ["pid", "startedAt", "runtimeMs", "idleMs", "lastOutputAt"] {
        assert!(sessions[0][number].is_u64(), "{number}: {}", sessions[0]);
    }
    assert_eq!(
        part(&sessions[1], &["sessionId", "stdinWritable", "pty", "tail", "lastOutputAt"]),
        [json!(tty), json!(true), json!(true), json!(""), Value::Null]
    );
    assert_eq!(
        part(
            &sessions[2],
            &["sessionId", "status", "exitCode", "exitReason", "timedOut", "name", "tail", "pid"]
        ),
        [
            json!(over),
            json!("completed"),
            json!(3),
            json!("exit"),
            json!(false),
            json!("true extra;"),
            json!("out\n"),
            Value::Null
        ]
    );
    assert!(sessions[2]["endedAt"].as_u64() >= sessions[2]["startedAt"].as_u64(), "{}", sessions[2]);
    let lines: Vec<&str> = listed.text.lines().collect();
    assert_eq!(lines.len(), 3, "{listed:?}");
    assert!(
        lines[0].starts_with(&format!("{runs} running  ")) && lines[0].ends_with(" :: echo up;"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains(" [input-wait] :: stty "), "{}", lines[1]);
    assert!(lines[2].starts_with(&format!("{over} completed ")), "{}", lines[2]);
}

#[test]
fn a_poll_has_what_is_new_and_once() {
    let desk = Desk::new();
    let id = desk.tool.background("echo one; cat", json!({ "stdin": true }));
    desk.tool.wait_for(&id, "one");
    let poll = |more: Value| desk.tool.process("poll", &id, more);
    let first = poll(json!({ "timeout": "200" }));
    first.has(json!({
        "status": "running", "aggregated": "one\n", "offset": 0, "nextOffset": 4, "omitted": [], "retryInMs": 5000,
        "stdinWritable": true, "name": "echo one;", "node": "n", "sessionId": id,
    }));
    assert!(first.text.starts_with("one\n\nProcess still running."), "{first:?}");
    // Advice grows while nothing comes (runtime.md §2.3), and starts anew when something did.
    for retry in [5000, 10_000, 30_000, 60_000, 60_000] {
        let empty = poll(json!({}));
        empty.has(json!({ "aggregated": "", "offset": 4, "nextOffset": 4, "retryInMs": retry }));
        assert!(empty.text.starts_with("(no new output)"), "{empty:?}");
    }
    let (waited, took) = measured(|| poll(json!({ "timeout": "400" })));
    waited.has(json!({ "aggregated": "" }));
    assert!((Duration::from_millis(350)..Duration::from_secs(5)).contains(&took), "{took:?}");
    desk.tool.process("write", &id, json!({ "data": "two\n" }));
    poll(json!({ "timeout": 30_000 }))
        .has(json!({ "aggregated": "two\n", "offset": 4, "nextOffset": 8, "retryInMs": 5000 }));
    poll(json!({})).has(json!({ "aggregated": "", "retryInMs": 5000 }));
    // One that waits hears at once.
    let late =
        desk.tool.begin(json!({ "tool": "process", "action": "poll", "sessionId": id, "timeout": 30_000 }));
    let (late, took) = measured(|| {
        desk.tool.process("write", &id, json!({ "data": "three\n", "eof": true }));
        late.finish()
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
    late.has(json!({ "aggregated": "three\n" }));
    let end = desk.tool.process("wait", &id, json!({}));
    end.has(json!({ "status": "completed", "exitCode": 0, "exitReason": "exit" }));
    let after = poll(json!({ "timeout": 30_000 }));
    after.has(json!({ "status": "completed", "exitCode": 0, "aggregated": "", "retryInMs": null }));
    assert!(after.text.ends_with("Process exited with code 0."), "{after:?}");
}

/// F107: who names an offset reads for itself, and what was read can be read again.
#[test]
fn two_readers_do_not_take_from_each_other() {
    let desk = Desk::new();
    let id = desk.tool.background("seq 1 1000; cat", json!({ "stdin": true }));
    desk.tool.wait_for(&id, "(?m)^1000$");
    let whole = desk.tool.process("poll", &id, json!({ "offset": 0 }));
    let wanted: String = (1..=1000).map(|n| format!("{n}\n")).collect();
    whole.has(json!({ "aggregated": wanted, "nextOffset": 3893 }));
    let other = Tool::of(&desk.bed);
    for reader in [&desk.tool, &other, &desk.tool] {
        reader
            .process("poll", &id, json!({ "offset": 0 }))
            .has(json!({ "aggregated": wanted, "nextOffset": 3893 }));
    }
    // What the agent itself has seen is another matter.
    desk.tool.process("poll", &id, json!({})).has(json!({ "aggregated": wanted }));
    desk.tool.process("poll", &id, json!({})).has(json!({ "aggregated": "" }));
    desk.tool
        .process("log", &id, json!({ "offset": 0 }))
        .has(json!({ "output": wanted.trim_end(), "totalLines": 1000 }));
    desk.tool
        .process("poll", &id, json!({ "offset": 3888 }))
        .has(json!({ "aggregated": "1000\n", "nextOffset": 3893 }));
    desk.tool.process("write", &id, json!({ "data": "new\n" }));
    for reader in [&desk.tool, &other] {
        let more = json!({ "offset": 3893, "timeout": 30_000 });
        reader.process("poll", &id, more).has(json!({ "aggregated": "new\n", "nextOffset": 3897 }));
    }
    desk.tool.process("poll", &id, json!({})).has(json!({ "aggregated": "new\n", "offset": 3893 }));
    // Behind the end there is nothing, and that is no error.
    desk.tool.process("poll", &id, json!({ "offset": 3897 })).has(json!({ "aggregated": "" }));
}

/// F118: nobody waits for a session that is not there.
#[test]
fn an_unknown_session_is_told_at_once() {
    let desk = Desk::new();
    desk.tool.exec("true", json!({}));
    for action in ["poll", "wait"] {
        let (unknown, took) = measured(|| desk.tool.process(action, "nope", json!({ "timeout": 600_000 })));
        unknown.has(json!({ "status": "failed", "code": "UNKNOWN_SESSION" }));
        assert!(took < Duration::from_secs(1), "{action} took {took:?}");
    }
}

#[test]
fn a_log_has_pages_of_lines() {
    let desk = Desk::new();
    let over = desk.tool.exec("seq 1 1000", json!({})).session();
    let runs = desk.tool.background("seq 1 1000; sleep 600", json!({}));
    desk.tool.wait_for(&runs, "(?m)^1000$");
    let lines =
        |range: std::ops::RangeInclusive<u32>| range.map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let table = [
        (json!({}), 801..=1000, true),
        (json!({ "limit": 5 }), 996..=1000, true),
        (json!({ "offset": 990 }), 991..=1000, true),
        (json!({ "offset": 0 }), 1..=1000, false),
        (json!({ "offset": 10, "limit": 3 }), 11..=13, true),
        (json!({ "offset": "998", "limit": "50" }), 999..=1000, true),
        (json!({ "limit": 5000 }), 1..=1000, false),
    ];
    for (id, status) in [(&over, "completed"), (&runs, "running")] {
        for (more, range, truncated) in table.clone() {
            let page = desk.tool.process("log", id, more.clone());
            page.has(json!({
                "status": status, "output": lines(range.clone()), "total": 1000, "totalLines": 1000,
                "firstLine": range.start() - 1, "lines": range.end() - range.start() + 1, "truncated": truncated,
                "omitted": [],
            }));
            let note = page.text.contains("[showing the last 200 of 1000 lines; page with offset and limit");
            assert_eq!(note, more == json!({}), "{more}: {}", page.text);
        }
        let beyond = desk.tool.process("log", id, json!({ "offset": 1000 }));
        beyond.has(json!({ "status": status, "output": "", "totalLines": 1000, "lines": 0 }));
        let none = desk.tool.process("log", id, json!({ "limit": 0 }));
        none.has(json!({ "status": status, "output": "", "totalLines": 1000, "lines": 0 }));
        let bytes = desk.tool.process("log", id, json!({ "from": 2, "to": 6 }));
        bytes.has(json!({ "output": "2\n3\n", "from": 2, "to": 6, "truncated": false }));
    }
    let backward = desk.tool.process("log", &over, json!({ "from": 6, "to": 2 }));
    backward.has(json!({ "status": "failed", "code": "INVALID_REQUEST" }));
    // It takes nothing from a poll.
    desk.tool.process("poll", &runs, json!({})).has(json!({ "offset": 0, "nextOffset": 3893 }));
}

#[test]
fn a_search_shows_lines_with_what_is_around_them() {
    let desk = Desk::new();
    let id = desk.tool.exec("seq 1 100; printf 'Error: a.b\\n'; seq 101 110", json!({})).session();
    let search = |more: Value| desk.tool.process("search", &id, more);
    let found = search(json!({ "pattern": "^Error", "context": 2 }));
    found.has(json!({ "total": 1, "totalLines": 111, "omitted": [], "status": "completed" }));
    let hit = &found["hits"][0];
    assert_eq!(
        (&hit["text"], &hit["before"], &hit["after"]),
        (&json!("Error: a.b"), &json!(["99", "100"]), &json!(["101", "102"])),
        "{found:?}"
    );
    let line = hit["line"].as_u64().unwrap();
    // The number of a line is the offset of `log`.
    desk.tool
        .process("log", &id, json!({ "offset": line, "limit": 1 }))
        .has(json!({ "output": "Error: a.b" }));
    let (from, to) = (hit["from"].as_u64().unwrap(), hit["to"].as_u64().unwrap());
    assert_eq!(desk.tool.raw(&id, from, to), b"Error", "{found:?}");
    assert!(found.text.contains("99") && found.text.contains(": Error: a.b"), "{found:?}");
    search(json!({ "pattern": "error" })).has(json!({ "total": 0, "hits": [] }));
    search(json!({ "pattern": "error", "ignoreCase": true })).has(json!({ "total": 1 }));
    search(json!({ "pattern": "a.b", "literal": true })).has(json!({ "total": 1 }));
    search(json!({ "pattern": "1.0", "literal": true })).has(json!({ "total": 0 }));
    let many = search(json!({ "pattern": "1", "limit": 3 }));
    assert_eq!(many["hits"].as_array().unwrap().len(), 3);
    assert!(many.number("total") == 30 && many.text.contains("[3 of 30 matching lines shown]"), "{many:?}");
    search(json!({ "pattern": "" })).has(json!({ "status": "failed", "code": "INVALID_REQUEST" }));
    search(json!({ "pattern": "nowhere" })).has(json!({ "status": "completed", "total": 0 }));
}
