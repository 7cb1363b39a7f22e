//! The window of a call: what it waits for, what goes on behind it, and what a caller that leaves or calls again gets.

use std::time::Duration;

use e2e::{Desk, PATIENCE, Sig, eventually, measured, proc};
use serde_json::{Value, json};

#[track_caller]
fn there(argument: &str) {
    eventually(PATIENCE, || {
        if proc::with_argument(argument).is_empty() { Err(format!("no `{argument}`")) } else { Ok(()) }
    });
}

#[track_caller]
fn gone(argument: &str) {
    eventually(Duration::from_secs(10), || {
        let left = proc::with_argument(argument);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// F122: a handle within the window, and everything of `process` works with it.
#[test]
fn a_window_passes_and_the_session_is_at_hand() {
    let desk = Desk::new();
    desk.tool.exec("true", json!({})).has(json!({ "status": "completed" }));
    let (started, took) = measured(|| {
        desk.tool.exec("echo up; sleep 600; echo never", json!({ "host": "node", "yieldMs": 1000 }))
    });
    assert!((Duration::from_millis(950)..Duration::from_secs(4)).contains(&took), "{took:?}");
    started.has(json!({ "status": "running", "tail": "up\n", "node": "n", "onDisconnect": "keep" }));
    let id = started.session();
    assert_eq!(started["followUp"], format!("process poll {id}"));
    let pid = u32::try_from(started.number("pid")).unwrap();
    assert!(proc::is_alive(pid), "{started:?}");
    desk.tool.process("poll", &id, json!({})).has(json!({ "status": "running", "aggregated": "up\n" }));
    desk.tool
        .process("log", &id, json!({}))
        .has(json!({ "status": "running", "output": "up", "totalLines": 1 }));
    desk.tool.process("kill", &id, json!({})).has(json!({ "status": "completed", "sessionId": id }));
    desk.tool.end(&id).has(json!({ "status": "completed", "exitReason": "manual-cancel", "exitSignal": 15 }));
    assert!(!proc::is_alive(pid));
}

#[test]
fn a_window_has_bounds_and_background_has_none() {
    let desk = Desk::new();
    desk.tool.exec("true", json!({})).has(json!({ "status": "completed" }));
    for more in
        [json!({ "yieldMs": 1 }), json!({ "yieldMs": 0 }), json!({ "background": true, "yieldMs": 60_000 })]
    {
        let (started, took) = measured(|| desk.tool.exec("sleep 30", more.clone()));
        started.has(json!({ "status": "running" }));
        assert!(took < Duration::from_secs(3), "{more} took {took:?}");
        assert!(started.number("pid") > 0, "{started:?}");
        desk.tool.process("kill", &started.session(), json!({}));
    }
    // Background comes back at once also for a command that does not take long; its result is kept.
    let id = desk.tool.background("printf hi; exit 4", json!({}));
    desk.tool.end(&id).has(json!({ "status": "completed", "exitCode": 4, "aggregated": "hi" }));
}

/// F100: what came between the window and the end is in the log, and no poll misses any of it.
#[test]
fn nothing_is_lost_between_the_end_and_the_pipes() {
    let desk = Desk::new();
    let started = desk.tool.exec("sh -c 'sleep 1.2; seq 1 1200'", json!({ "yieldMs": 1000 }));
    let id = started.has(json!({ "status": "running" })).session();
    let mut polled = String::new();
    loop {
        let poll = desk.tool.process("poll", &id, json!({ "timeout": 500 }));
        polled.push_str(poll.string("aggregated"));
        if poll["status"] != "running" {
            poll.has(json!({ "status": "completed", "exitCode": 0 }));
            break;
        }
    }
    let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
    let wanted: Vec<u32> = (1..=1200).collect();
    let log = desk.tool.process("log", &id, json!({ "offset": 0 }));
    log.has(json!({ "totalLines": 1200, "truncated": false }));
    assert_eq!((numbers(&polled), numbers(log.string("output"))), (wanted.clone(), wanted));
    // Pieces put together are the whole.
    assert_eq!(desk.tool.end(&id).string("aggregated"), polled);
}

/// F101: a command that ends as its window passes has a result, one way or the other, two hundred times.
#[test]
fn an_end_at_the_very_moment_is_never_nobodys() {
    let desk = Desk::new();
    let mut behind = 0;
    for round in 0..200 {
        let answer = desk.tool.exec("sleep 0.012; echo hi", json!({ "yieldMs": 10 + round % 30 }));
        let answer = match answer.string("status") {
            "running" => {
                behind += 1;
                desk.tool.end(&answer.session())
            }
            _ => answer,
        };
        assert_eq!(
            (answer.string("status"), answer.number("exitCode"), answer.string("aggregated").trim()),
            ("completed", 0, "hi"),
            "round {round}"
        );
    }
    println!("{behind} of 200 ended behind their call");
}

/// F102: the first bytes are there, two hundred times.
#[test]
fn first_bytes_are_there() {
    let desk = Desk::new();
    for round in 0..200 {
        let answer = desk.tool.exec("printf hi", json!({ "pty": round % 4 == 0 }));
        assert_eq!((answer.string("aggregated"), answer.number("exitCode")), ("hi", 0), "round {round}");
    }
}

/// F105: input that was not asked for ends nothing early.
#[test]
fn bursts_come_to_the_last_one() {
    let desk = Desk::new();
    let command = "for i in 1 2 3; do echo burst $i; sleep 0.7; done";
    let tool = desk.tool.with(|call| call.updates = true);
    let mut calling = tool.begin(json!({ "tool": "exec", "command": command }));
    let first = calling.update("burst 1");
    first.has(json!({ "status": "running", "node": "n" }));
    assert!(first.number("pid") > 0 && first.string("cwd").starts_with('/'), "{first:?}");
    calling.update("burst 2");
    calling.finish().has(json!({
        "status": "completed", "exitCode": 0, "aggregated": "burst 1\nburst 2\nburst 3",
    }));
}

#[test]
fn a_turn_that_is_cancelled_ends_its_foreground_command() {
    let desk = Desk::new();
    let sleep = desk.unique(310);
    let tool = desk.tool.with(|call| call.updates = true);
    let command = format!("echo up; setsid sleep {sleep} & sleep {sleep}");
    let mut calling = tool.begin(json!({ "tool": "exec", "command": command, "yieldMs": 100_000 }));
    calling.update("up");
    there(&sleep);
    drop(calling);
    gone(&sleep);
    let listed = eventually(PATIENCE, || {
        let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
        let session = listed["sessions"][0].clone();
        if session["status"] == "killed" { Ok(session) } else { Err(format!("{listed:?}")) }
    });
    assert_eq!(
        (&listed["exitReason"], &listed["tail"]),
        (&json!("manual-cancel"), &json!("up\n")),
        "{listed}"
    );
}

/// F126: what went behind its call belongs to the session, not to the call, the caller, or the gateway.
#[test]
fn a_command_behind_its_call_outlives_everybody() {
    let mut desk = Desk::new();
    let file = desk.bed.path("go");
    let wait = format!("while ! test -e {}; do sleep 0.05; done; echo ok", file.display());
    // Behind at once, its caller gone before it heard of it; behind after its window; and by a caller that is killed.
    let named = desk.tool.with(|call| call.call_id = "run.early".to_owned());
    drop(named.begin(json!({ "tool": "exec", "command": wait, "background": true })));
    let late = desk.tool.exec(&wait, json!({ "yieldMs": 50 }));
    let late = late.has(json!({ "status": "running" })).session();
    let call = json!({ "tool": "exec", "command": wait, "background": true }).to_string();
    let by_cli =
        desk.bed.gateway_cli(["tool", &call]).json()["details"]["sessionId"].as_str().unwrap().to_owned();
    let early = eventually(PATIENCE, || {
        let found = desk.tool.process("poll", "run.early", json!({}));
        if found["status"] == "running" { Ok(found.session()) } else { Err(format!("{found:?}")) }
    });
    desk.bed.stop_gateway(Sig::Kill);
    desk.bed.start_gateway();
    desk.node.wait_connected(2);
    let tool = e2e::Tool::of(&desk.bed);
    for id in [&early, &late, &by_cli] {
        tool.process("poll", id, json!({})).has(json!({ "status": "running" }));
    }
    std::fs::write(&file, "").unwrap();
    for id in [&early, &late, &by_cli] {
        tool.end(id).has(json!({ "status": "completed", "exitCode": 0, "aggregated": "ok\n" }));
    }
}

/// F106: after the link came back a small answer arrives behind a large one.
#[test]
fn after_an_interruption_output_goes_on() {
    let mut desk = Desk::new();
    let script = "while read n; do head -c $n /dev/zero | tr '\\0' x; echo; done";
    let id = desk.tool.background(script, json!({ "stdin": true }));
    let ask = |tool: &e2e::Tool, count: usize| {
        tool.process("write", &id, json!({ "data": format!("{count}\n") }))
            .has(json!({ "status": "running" }));
        let line = format!("(?m)^x{{{count}}}$");
        tool.process("wait", &id, json!({ "pattern": line, "timeout": 30_000 }))
            .has(json!({ "reason": "pattern" }));
    };
    ask(&desk.tool, 1);
    desk.bed.stop_gateway(Sig::Kill);
    desk.bed.start_gateway();
    desk.node.wait_connected(2);
    let tool = e2e::Tool::of(&desk.bed);
    ask(&tool, 900);
    ask(&tool, 2);
    tool.process("write", &id, json!({ "data": "8000\n2\n" }));
    tool.process("wait", &id, json!({ "bytes": 8004, "timeout": 30_000 })).has(json!({ "reason": "bytes" }));
    tool.process("write", &id, json!({ "eof": true }));
    tool.end(&id).has(json!({ "exitCode": 0, "outputBytes": 2 + 901 + 3 + 8001 + 3 }));
}

#[test]
fn the_same_call_made_again_runs_once() {
    let desk = Desk::new();
    let count = desk.bed.path("count");
    let command = format!("echo x >> {}; echo out; exit 3", count.display());
    let call = |id: &str| desk.tool.with(|call| call.call_id = id.to_owned());
    let first = call("job.1").exec(&command, json!({}));
    first.has(json!({ "status": "completed", "exitCode": 3, "aggregated": "out", "runId": "job.1", "existing": null }));
    for _ in 0..3 {
        let again = call("job.1").exec(&command, json!({}));
        again.has(
            json!({ "existing": true, "sessionId": first["sessionId"], "exitCode": 3, "aggregated": "out" }),
        );
    }
    // Also behind it, as long as the command is the same.
    let behind = call("job.2").exec(&command, json!({ "background": true })).session();
    assert_eq!(call("job.2").exec(&command, json!({ "background": true })).session(), behind);
    desk.tool.end(&behind);
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
    for other in [json!({ "command": "echo other" }), json!({ "command": command, "workdir": "/" })] {
        let mut other = other;
        other["tool"] = "exec".into();
        let refused = call("job.1").ask(other);
        assert!(refused.is_error && refused["error"]["code"] == "RUN_ID_CONFLICT", "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
}

#[test]
fn a_call_id_is_its_agents_own() {
    let desk = Desk::new();
    let call = |agent: &str| {
        let tool =
            desk.tool.with(|call| (call.call_id, call.agent_id) = ("job.1".to_owned(), agent.to_owned()));
        tool.exec("echo secret", json!({}))
    };
    let first = call("a");
    first.has(json!({ "status": "completed", "aggregated": "secret" }));
    let other = call("b");
    assert!(other.is_error && other["error"]["code"] == "RUN_ID_CONFLICT", "{other:?}");
    assert!(
        !other.text.contains(&first.session()) && !other.details.to_string().contains(&first.session()),
        "{other:?}"
    );
}

/// A gateway that is killed in the middle of a call: the command line makes the same call again, and it is the same run.
#[test]
fn a_call_survives_its_gateway() {
    let mut desk = Desk::new();
    let (count, go) = (desk.bed.path("count"), desk.bed.path("go"));
    let command = format!(
        "echo x >> {}; echo up; while ! test -e {}; do sleep 0.05; done; echo done",
        count.display(),
        go.display()
    );
    let call = json!({ "tool": "exec", "command": command, "yieldMs": 100_000 }).to_string();
    let mut client = desk.bed.spawn_cli(["tool", "--updates", &call], e2e::Reading::Now);
    client.wait_stdout("up");
    desk.bed.stop_gateway(Sig::Kill);
    desk.bed.start_gateway();
    std::fs::write(&go, "").unwrap();
    let outcome = client.finish(PATIENCE);
    let text = outcome.ok().stdout_text();
    let at = text.find("{\n").unwrap_or_else(|| panic!("{text}"));
    let shown: Value = serde_json::from_str(&text[at..]).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(
        (&shown["details"]["aggregated"], &shown["details"]["existing"]),
        (&json!("up\ndone"), &json!(true)),
        "{text}"
    );
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
}
