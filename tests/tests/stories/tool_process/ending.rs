//! `kill`, `clear`, `remove`, `signal`, `resize`: what they do to a session that runs, and to one that is over.

use std::time::Duration;

use e2e::{Answer, Desk, PATIENCE, eventually, proc};
use serde_json::{Value, json};

fn listed(desk: &Desk) -> Vec<Value> {
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    listed["sessions"].as_array().unwrap().clone()
}

#[track_caller]
fn failed(answer: &Answer, code: &str) {
    assert!(!answer.is_error, "nothing of `process` throws: {answer:?}");
    answer.has(json!({ "status": "failed", "code": code }));
    assert!(!answer.string("error").is_empty() && answer.text.contains(answer.string("error")), "{answer:?}");
}

/// Every action on an id that nobody has, on a session that runs, and on one that is over.
#[test]
fn each_action_in_each_state() {
    let desk = Desk::new();
    // Action, parameters, and its code for: a command that runs, in a terminal too, one that is over.
    let table = [
        ("poll", json!({}), [None, None, None]),
        ("wait", json!({ "timeout": 0 }), [None, None, None]),
        ("log", json!({}), [None, None, None]),
        ("search", json!({ "pattern": "up" }), [None, None, None]),
        ("screen", json!({}), [Some("NOT_A_TERMINAL"), None, Some("NOT_A_TERMINAL")]),
        ("write", json!({ "data": "x" }), [Some("STDIN_CLOSED"), None, Some("SESSION_ENDED")]),
        ("send-keys", json!({ "keys": ["x"] }), [Some("STDIN_CLOSED"), None, Some("SESSION_ENDED")]),
        ("submit", json!({}), [Some("STDIN_CLOSED"), None, Some("SESSION_ENDED")]),
        ("paste", json!({ "text": "x" }), [Some("STDIN_CLOSED"), None, Some("SESSION_ENDED")]),
        ("signal", json!({ "signal": "CONT" }), [None, None, Some("SESSION_ENDED")]),
        ("resize", json!({ "cols": 80, "rows": 24 }), [Some("NOT_A_TERMINAL"), None, Some("SESSION_ENDED")]),
        ("lease", json!({}), [None, None, None]),
        ("lease", json!({ "onDisconnect": "keep" }), [None, None, None]),
        ("clear", json!({}), [Some("SESSION_RUNNING"), Some("SESSION_RUNNING"), None]),
    ];
    let runs = desk.tool.background("echo up; sleep 600", json!({}));
    let tty = desk.tool.background("echo up; sleep 600", json!({ "pty": true }));
    for (action, more, codes) in table {
        let over = desk.tool.exec("echo up", json!({})).session();
        for (id, code) in [&runs, &tty, &over].into_iter().zip(codes) {
            let answer = desk.tool.process(action, id, more.clone());
            match code {
                Some(code) => failed(&answer, code),
                None => assert_ne!(answer["status"], "failed", "{action} {id}: {answer:?}"),
            }
            assert!(!answer.is_error);
        }
        let unknown = desk.tool.process(action, "no-such", more.clone());
        failed(&unknown, "UNKNOWN_SESSION");
        let missing = desk.tool.ask(json!({ "tool": "process", "action": action }));
        failed(&missing, "INVALID_REQUEST");
        assert!(missing.string("error").contains("`sessionId` is required"), "{missing:?}");
    }
    for action in ["kill", "remove"] {
        failed(&desk.tool.process(action, "no-such", json!({})), "UNKNOWN_SESSION");
    }
    let unknown = desk.tool.process("pol", &runs, json!({}));
    failed(&unknown, "INVALID_REQUEST");
    assert!(
        ["list", "poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"]
            .iter()
            .all(|action| unknown.text.contains(action)),
        "{unknown:?}"
    );
    failed(&desk.tool.process("poll", &runs, json!({ "timeuot": 5 })), "INVALID_REQUEST");
    failed(&desk.tool.process("poll", &runs, json!({ "timeout": "soon" })), "INVALID_REQUEST");
    failed(&desk.tool.process("signal", &runs, json!({ "signal": "LOUD" })), "INVALID_REQUEST");
    failed(&desk.tool.process("signal", &runs, json!({ "signal": 65 })), "INVALID_REQUEST");
    failed(&desk.tool.process("resize", &tty, json!({ "cols": 0, "rows": 24 })), "INVALID_REQUEST");
    failed(&desk.tool.process("log", &runs, json!({ "offset": 1, "from": 1 })), "INVALID_REQUEST");
    failed(&desk.tool.process("send-keys", &tty, json!({})), "INVALID_REQUEST");
    failed(&desk.tool.process("paste", &tty, json!({ "text": "", "bracketed": false })), "INVALID_REQUEST");
    failed(&desk.tool.process("search", &runs, json!({ "pattern": "(" })), "INVALID_REQUEST");
    failed(&desk.tool.process("wait", &runs, json!({ "pattern": "(" })), "INVALID_REQUEST");
}

#[test]
fn a_session_is_named_by_its_id_its_run_or_a_beginning() {
    let desk = Desk::new();
    let named = desk.tool.with(|call| call.call_id = "build.17".to_owned());
    let id = named.background("sleep 600", json!({}));
    let beginning = &id[..id.len() - 1];
    for reference in [id.as_str(), beginning, "build.17"] {
        desk.tool.process("poll", reference, json!({})).has(json!({ "status": "running", "sessionId": id }));
    }
}

#[test]
fn a_kill_is_for_what_runs() {
    let desk = Desk::new();
    let sleep = desk.unique(320);
    let id = desk.tool.background(&format!("setsid sleep {sleep} & sleep {sleep}"), json!({}));
    eventually(PATIENCE, || {
        if proc::with_argument(&sleep).len() == 2 { Ok(()) } else { Err("not yet".to_owned()) }
    });
    desk.tool.process("kill", &id, json!({})).has(json!({ "status": "completed", "sessionId": id }));
    let ended = desk.tool.end(&id);
    eventually(Duration::from_secs(2), || {
        let left = proc::with_argument(&sleep);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    ended.has(json!({ "status": "completed", "exitReason": "manual-cancel", "failureKind": null }));
    let again = desk.tool.process("kill", &id, json!({}));
    failed(&again, "SESSION_ENDED");
    assert!(again.text.contains("signal 15"), "{again:?}");
    let entry = &listed(&desk)[0];
    assert_eq!(
        (&entry["status"], &entry["exitReason"]),
        (&json!("killed"), &json!("manual-cancel")),
        "{entry}"
    );
}

#[test]
fn clear_is_for_what_is_over_and_remove_for_both() {
    let desk = Desk::new();
    let sleep = desk.unique(321);
    let (runs, also) =
        (format!("sleep {sleep}"), format!("trap '' TERM; echo up; sleep {sleep}; sleep {sleep}"));
    let runs = desk.tool.background(&runs, json!({}));
    let refused = desk.tool.process("clear", &runs, json!({}));
    failed(&refused, "SESSION_RUNNING");
    let over = desk.tool.exec("echo out", json!({})).session();
    desk.tool.process("clear", &over, json!({})).has(json!({ "status": "completed", "sessionId": over }));
    failed(&desk.tool.process("log", &over, json!({})), "UNKNOWN_SESSION");
    let over = desk.tool.exec("echo out", json!({})).session();
    desk.tool.process("remove", &over, json!({})).has(json!({ "status": "completed", "sessionId": over }));
    failed(&desk.tool.process("poll", &over, json!({})), "UNKNOWN_SESSION");

    let stubborn = desk.tool.background(&also, json!({}));
    desk.tool.wait_for(&stubborn, "up");
    for id in [&runs, &stubborn] {
        desk.tool.process("remove", id, json!({})).has(json!({ "status": "completed", "sessionId": id }));
    }
    eventually(PATIENCE, || {
        let left = (listed(&desk), proc::with_argument(&sleep));
        if left.0.is_empty() && left.1.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    failed(&desk.tool.process("poll", &runs, json!({})), "UNKNOWN_SESSION");
}

#[test]
fn a_signal_is_one_signal() {
    let desk = Desk::new();
    let script = "exec 2>/dev/null; trap 'n=$((n+1)); echo one$n' USR1; trap 'echo hup' HUP; trap 'echo int; exit 4' INT; echo up; \
                  while :; do sleep 0.05; done";
    let id = desk.tool.background(script, json!({}));
    desk.tool.wait_for(&id, "up");
    for (signal, seen) in
        [(json!("USR1"), "one1"), (json!("sighup"), "hup"), (json!(10), "one2"), (json!("SIGINT"), "int")]
    {
        desk.tool.process("signal", &id, json!({ "signal": signal })).has(json!({ "status": "completed" }));
        desk.tool.wait_for(&id, seen);
    }
    desk.tool
        .end(&id)
        .has(json!({ "status": "completed", "exitCode": 4, "aggregated": "up\none1\nhup\none2\nint\n" }));
    // One that nobody catches ends it, and was asked for by nobody but a signal.
    let id = desk.tool.background("sleep 600", json!({}));
    desk.tool.process("signal", &id, json!({ "signal": "KILL" }));
    desk.tool.end(&id).has(json!({ "exitSignal": 9 }));
}

/// F153: a terminal has a size, and says when it changes.
#[test]
fn a_terminal_is_resized() {
    let desk = Desk::new();
    let script = "stty size; trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done";
    let id = desk.tool.background(script, json!({ "pty": true }));
    desk.tool.wait_for(&id, "up");
    desk.tool
        .process("resize", &id, json!({ "cols": 120, "rows": 40 }))
        .has(json!({ "status": "completed" }));
    desk.tool.end(&id).has(json!({ "exitCode": 0, "aggregated": "30 120\nup\n40 120\n" }));
}

/// What is over stays for two minutes at least, more of them than the 50 that are kept longer: whoever lost an answer finds
/// it (F101). Which of them go after that is the table's own tests' affair.
#[test]
fn what_is_over_is_there_for_whoever_lost_the_answer() {
    /// Ended sessions that a node keeps beyond that time (runtime.md §2.7).
    const KEPT: usize = 50;
    let desk = Desk::new();
    let runs = desk.tool.background("sleep 600", json!({}));
    let over: Vec<String> =
        (0..KEPT + 10).map(|n| desk.tool.exec(&format!("echo {n}"), json!({})).session()).collect();
    let sessions = listed(&desk);
    let left: Vec<&str> = sessions.iter().filter_map(|session| session["sessionId"].as_str()).collect();
    let mut wanted: Vec<&str> = over.iter().rev().map(String::as_str).collect();
    wanted.push(&runs);
    assert_eq!(left, wanted);
    let first = desk.tool.process("log", &over[0], json!({}));
    first.has(json!({ "status": "completed", "output": "0" }));
}
