//! Processes that a command leaves behind, that do not listen, or that wait for what never comes.

use std::time::Duration;

use e2e::{Desk, PATIENCE, Sig, eventually, helper, measured, proc};
use serde_json::json;

/// Nothing of a command may live longer behind its end (issue: 2 s).
const AFTER_END: Duration = Duration::from_secs(2);

#[track_caller]
fn gone(within: Duration, argument: &str) {
    eventually(within, || {
        let left = proc::with_argument(argument);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[track_caller]
fn there(argument: &str) {
    eventually(PATIENCE, || {
        if proc::with_argument(argument).is_empty() { Err(format!("no `{argument}`")) } else { Ok(()) }
    });
}

/// F112: a grandchild that keeps the pipe open keeps nobody waiting. F138: a job that `kill %1` missed ends all the same.
#[test]
fn what_a_command_leaves_behind_ends_and_is_told() {
    let desk = Desk::new();
    let sleep = desk.unique(311);
    for (command, left) in [
        (format!("sleep {sleep} | cat &"), 2),
        (format!("sleep {sleep} & echo out"), 1),
        (format!("setsid sleep {sleep} & echo out"), 1),
        (format!("sh -c 'sleep {sleep} & exit 5'"), 1),
    ] {
        for pty in [false, true] {
            let (result, took) =
                measured(|| desk.tool.exec(&command, json!({ "pty": pty, "yieldMs": 60_000 })));
            assert_eq!(result["status"], "completed", "{result:?}");
            assert!(took < Duration::from_secs(6), "`{command}` took {took:?}");
            gone(AFTER_END, &sleep);
            // A terminal hangs up on its own jobs.
            if !pty {
                // Of two in a pipe the second may end by itself as soon as the first is gone.
                let killed = result["leftoversKilled"].as_u64().unwrap();
                assert!((1..=left).contains(&killed), "{result:?}");
            }
        }
    }
    let result = desk.tool.exec(&format!("sleep {sleep} & kill %1; wait"), json!({ "timeout": 2 }));
    gone(AFTER_END, &sleep);
    assert_ne!(result["status"], "running", "{result:?}");
}

/// F134: a time limit ends the whole tree, whoever is in it and whatever it ignores.
#[test]
fn a_time_limit_ends_the_whole_tree() {
    let desk = Desk::new();
    let sleep = desk.unique(312);
    for command in [
        format!("sh -c 'sleep {sleep} & wait'"),
        format!("setsid sh -c 'setsid sleep {sleep} & wait' & wait"),
        format!("trap '' TERM HUP; (trap '' TERM HUP; sleep {sleep}; true); true"),
    ] {
        for pty in [false, true] {
            let result = desk.tool.exec(&command, json!({ "timeout": 1, "pty": pty }));
            gone(AFTER_END, &sleep);
            result.has(json!({ "status": "failed", "failureKind": "overall-timeout", "timedOut": true }));
        }
    }
}

/// F137: a kill lets a command say good-bye, and says who asked.
#[test]
fn a_kill_is_polite_first() {
    let desk = Desk::new();
    let polite = "exec 2>/dev/null; trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done";
    let id = desk.tool.background(polite, json!({}));
    desk.tool.wait_for(&id, "up");
    let asked = desk.tool.process("kill", &id, json!({}));
    asked.has(json!({ "status": "completed", "sessionId": id }));
    assert!(asked.text.contains("requested"), "{asked:?}");
    let ended = desk.tool.end(&id);
    ended.has(json!({ "status": "completed", "exitReason": "manual-cancel", "exitCode": 3, "aggregated": "up\nbye\n" }));
    assert!(ended.text.contains("stopped by request"), "{ended:?}");

    let deaf = desk.tool.background(&format!("exec {}", helper("ignore-term")), json!({}));
    desk.tool.wait_for(&deaf, "ready");
    desk.tool.process("kill", &deaf, json!({ "graceMs": 200 }));
    desk.tool.end(&deaf).has(json!({ "exitReason": "manual-cancel", "exitSignal": 9 }));
}

/// F141: commands whose node host was killed go on, are listed when it is back, and can be used.
#[test]
fn commands_outlive_their_node_host() {
    let desk = Desk::new();
    let sleep = desk.unique(313);
    let cat = desk.tool.background("cat", json!({ "stdin": true }));
    let tty = desk.tool.background("cat", json!({ "pty": true }));
    let nap = desk.tool.background(&format!("sleep {sleep}"), json!({}));
    there(&sleep);
    desk.node.stop(Sig::Kill);
    let away = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    away.has(json!({ "status": "completed", "sessions": [], "unreachable": ["n"] }));
    assert!(!proc::with_argument(&sleep).is_empty());
    desk.node.restart();
    desk.node.wait_connected(1);
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    let ids: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().filter_map(|s| s["sessionId"].as_str()).collect();
    assert_eq!(ids, [nap.as_str(), tty.as_str(), cat.as_str()], "newest first: {listed:?}");
    for id in [&cat, &tty] {
        desk.tool.process("write", id, json!({ "data": "still here\n" })).has(json!({ "status": "running" }));
        desk.tool.wait_for(id, "still here");
        desk.tool.process("write", id, json!({ "eof": true }));
        desk.tool.end(id).has(json!({ "status": "completed", "exitCode": 0 }));
    }
    desk.tool.process("kill", &nap, json!({}));
    desk.tool.end(&nap).has(json!({ "exitReason": "manual-cancel" }));
    gone(AFTER_END, &sleep);
}

/// F113: without input asked for, a program that reads finds its end at once.
#[test]
fn nobody_waits_for_input_that_never_comes() {
    let desk = Desk::new();
    let command = "cat; grep x; read v; echo $?";
    let (front, took) = measured(|| desk.tool.exec(command, json!({ "timeout": 20 })));
    assert!(took < Duration::from_secs(5), "{took:?}");
    front.has(json!({ "status": "completed", "exitCode": 0, "aggregated": "1" }));
    desk.tool
        .end(&desk.tool.background(command, json!({})))
        .has(json!({ "exitCode": 0, "aggregated": "1\n" }));
}

/// F117: a program that leaves while it is written to has its own exit.
#[test]
fn an_exit_wins_over_input_that_nobody_takes() {
    let desk = Desk::new();
    let data = "x".repeat(200 * 1024 - 1);
    for round in 0..20 {
        let id = desk.tool.background("head -c 1 > /dev/null; exit 0", json!({ "stdin": true }));
        let written = desk.tool.process("write", &id, json!({ "data": data }));
        if written["status"] == "failed" {
            let code = written.string("code");
            assert!(["SESSION_ENDED", "STDIN_CLOSED"].contains(&code), "round {round}: {written:?}");
        }
        desk.tool.end(&id).has(json!({ "status": "completed", "exitCode": 0, "exitReason": "exit" }));
    }
}
