//! `wait`: until something happens, and only what is new since.

use std::time::Duration;

use e2e::{Calling, Desk, PATIENCE, eventually, measured};
use serde_json::{Value, json};

/// A session that writes what is written to it.
fn echo(desk: &Desk) -> String {
    desk.tool.background("cat", json!({ "stdin": true }))
}

fn write(desk: &Desk, id: &str, data: &str) {
    desk.tool.process("write", id, json!({ "data": data })).has(json!({ "status": "running" }));
}

fn waiting(desk: &Desk, id: &str, more: Value) -> Calling {
    let mut call = json!({ "tool": "process", "action": "wait", "sessionId": id, "timeout": 30_000 });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.tool.begin(call)
}

#[test]
fn for_a_pattern_also_one_that_comes_in_pieces() {
    let desk = Desk::new();
    let id = echo(&desk);
    let wait = waiting(&desk, &id, json!({ "pattern": "hello w[a-z]+ld!" }));
    for piece in ["hel", "lo ", "wor", "ld", "! and more"] {
        write(&desk, &id, piece);
    }
    let found = wait.finish();
    found.has(json!({ "status": "running", "reason": "pattern", "offset": 0 }));
    assert_eq!(found["match"], json!({ "text": "hello world!", "from": 0, "to": 12 }), "{found:?}");
    assert!(
        found.string("aggregated").starts_with("hello world!") && found.number("nextOffset") >= 12,
        "{found:?}"
    );
    // Already there: for one who reads from the beginning at once, for one who has seen it no more.
    let rest = desk.tool.process(
        "wait",
        &id,
        json!({ "bytes": 1, "offset": found.number("nextOffset"), "timeout": 0 }),
    );
    let seen = found.string("aggregated").to_owned() + rest.string("aggregated");
    eventually(PATIENCE, || {
        let all = desk.tool.process("poll", &id, json!({ "offset": 0 }));
        if all["aggregated"] == "hello world! and more" { Ok(()) } else { Err(format!("{all:?} {seen}")) }
    });
    let (again, took) = measured(|| desk.tool.wait_for(&id, "(?i)HELLO"));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(again["match"]["text"], "hello");
    desk.tool.process("poll", &id, json!({}));
    let none = desk.tool.process("wait", &id, json!({ "pattern": "hello", "timeout": 300 }));
    none.has(json!({ "status": "running", "reason": "timeout", "aggregated": "" }));
    let case = desk.tool.process("wait", &id, json!({ "pattern": "HELLO", "ignoreCase": true, "offset": 0 }));
    case.has(json!({ "reason": "pattern" }));
}

#[test]
fn for_the_end() {
    let desk = Desk::new();
    for (command, more) in
        [("echo out; exit 6", json!({})), ("printf x; exit 6", json!({ "pattern": "never" }))]
    {
        let id = desk.tool.background(command, json!({}));
        let ended = waiting(&desk, &id, more).finish();
        ended.has(json!({ "status": "completed", "reason": "exit", "exitCode": 6 }));
        // Once more, at once, and with nothing new.
        let again = desk.tool.process("wait", &id, json!({ "exit": true }));
        again.has(json!({ "reason": "exit", "exitCode": 6, "aggregated": "" }));
    }
}

#[test]
fn for_silence() {
    let desk = Desk::new();
    let id = desk.tool.background("for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; sleep 600", json!({}));
    let idle = waiting(&desk, &id, json!({ "idleMs": 1000 })).finish();
    idle.has(
        json!({ "status": "running", "reason": "idle", "aggregated": "1\n2\n3\n4\n5\n", "nextOffset": 10 }),
    );
    assert!(idle.number("idleMs") >= 1000, "{idle:?}");
}

#[test]
fn for_a_program_that_reads() {
    let desk = Desk::new();
    let script = "stty -echo; sleep 0.5; printf 'name? '; read name; echo hello $name; sleep 600";
    let id = desk.tool.background(script, json!({ "pty": true }));
    let asks = waiting(&desk, &id, json!({ "input": true })).finish();
    asks.has(
        json!({ "status": "running", "reason": "input", "aggregated": "name? ", "waitingForInput": true }),
    );
    assert!(asks.text.contains("reads its input"), "{asks:?}");
    write(&desk, &id, "Ada\n");
    desk.tool.wait_for(&id, "hello Ada");
    let busy = desk.tool.process("wait", &id, json!({ "input": true, "timeout": 300 }));
    busy.has(json!({ "reason": "timeout", "waitingForInput": false }));
}

#[test]
fn for_bytes_and_for_a_time() {
    let desk = Desk::new();
    let id = echo(&desk);
    let wait = waiting(&desk, &id, json!({ "bytes": 6 }));
    write(&desk, &id, "abc");
    write(&desk, &id, "def");
    wait.finish().has(json!({ "reason": "bytes", "aggregated": "abcdef", "offset": 0, "nextOffset": 6 }));
    let (late, took) = measured(|| desk.tool.process("wait", &id, json!({ "timeout": 500 })));
    late.has(
        json!({ "status": "running", "reason": "timeout", "aggregated": "", "offset": 6, "nextOffset": 6 }),
    );
    assert!((Duration::from_millis(450)..Duration::from_secs(5)).contains(&took), "{took:?}");
    write(&desk, &id, "ghi");
    let wait = waiting(&desk, &id, json!({ "bytes": 3 }));
    wait.finish().has(json!({ "reason": "bytes", "aggregated": "ghi", "offset": 6, "nextOffset": 9 }));
}

#[test]
fn who_leaves_has_read_nothing() {
    let desk = Desk::new();
    let id = echo(&desk);
    drop(waiting(&desk, &id, json!({ "pattern": "later" })));
    write(&desk, &id, "later\n");
    desk.tool.wait_for(&id, "later");
    desk.tool
        .process("poll", &id, json!({}))
        .has(json!({ "status": "running", "aggregated": "later\n", "offset": 0 }));
}
