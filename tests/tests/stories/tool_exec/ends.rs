//! How commands end, and how results say it: the same in the foreground and behind it, with pipes and in a terminal.

use std::time::Duration;

use e2e::{Answer, Desk, measured};
use serde_json::{Value, json};

/// Details that tell one run from another, or one action from another.
const OF_ONE_CALL: [&str; 8] =
    ["durationMs", "sessionId", "runId", "name", "offset", "nextOffset", "reason", "outputBytes"];

fn comparable(answer: &Answer) -> Value {
    let mut details = answer.details.clone();
    // Pieces of `process` are exact; a result is trimmed.
    details["aggregated"] = answer.string("aggregated").trim_end().into();
    for name in OF_ONE_CALL {
        details.as_object_mut().unwrap().remove(name);
    }
    details
}

/// F110: each end has its own fields, whoever waits for it and whatever it is connected to.
#[test]
fn each_way_to_end_is_told_apart_and_the_same_everywhere() {
    let desk = Desk::new();
    let plain = desk.bed.path("plain");
    std::fs::write(&plain, "not a program").unwrap();
    let cwd = desk.tool.exec("pwd", json!({})).string("aggregated").to_owned();
    let node = desk.tool.exec("true", json!({})).string("nodeId").to_owned();
    let end = |members: Value| {
        let mut whole = json!({
            "status": "failed", "exitCode": null, "exitReason": "exit", "timedOut": false, "noOutputTimedOut": false,
            "cwd": cwd, "nodeId": node, "node": "n", "aggregated": "", "omitted": [],
        });
        whole.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        whole
    };
    let code = |code: u8| end(json!({ "status": "completed", "exitCode": code }));
    let signal =
        |signal: u8| end(json!({ "exitSignal": signal, "failureKind": "signal", "exitReason": "signal" }));
    let table = [
        ("true", json!({}), code(0), ""),
        ("exit 1", json!({}), code(1), "(Command exited with code 1)"),
        ("exit 7", json!({}), code(7), "(Command exited with code 7)"),
        ("exit 255", json!({}), code(255), "(Command exited with code 255)"),
        (
            &format!("{} 2>/dev/null", plain.display()),
            json!({}),
            end(json!({ "exitCode": 126, "failureKind": "shell-not-executable" })),
            "(Command exited with code 126",
        ),
        (
            "no-such-program 2>/dev/null",
            json!({}),
            end(json!({ "exitCode": 127, "failureKind": "shell-command-not-found" })),
            "(Command exited with code 127",
        ),
        ("kill -TERM $$", json!({}), signal(15), "(Command was ended by signal 15)"),
        ("kill -KILL $$", json!({}), signal(9), "(Command was killed by signal 9, which nobody here sent"),
        (
            "sleep 60",
            json!({ "timeout": 0.3 }),
            end(json!({
                "exitSignal": 15, "failureKind": "overall-timeout", "exitReason": "overall-timeout", "timedOut": true,
            })),
            "(Command timed out",
        ),
    ];
    for (command, more, wanted, line) in table {
        for pty in [false, true] {
            let mut more = more.clone();
            more["pty"] = pty.into();
            let front = desk.tool.exec(command, more.clone());
            let behind = desk.tool.end(&desk.tool.background(command, more));
            let told = |answer: &Answer| answer.text.contains(line);
            assert_eq!(comparable(&front), wanted, "`{command}`, pty {pty}, in the foreground");
            assert_eq!(comparable(&behind), wanted, "`{command}`, pty {pty}, behind");
            assert!(told(&front), "{front:?}");
            assert!(!front.is_error && !behind.is_error);
            // Codes of ordinary ends have words of their own in `process`.
            assert!(wanted["status"] == "completed" || told(&behind), "{behind:?}");
        }
    }
}

#[test]
fn output_is_the_same_in_all_four_ways() {
    let desk = Desk::new();
    // The order of two pipes is nobody's to know.
    for (command, pty) in ["printf 'one\\ntwo\\n'; exit 5", "printf 'one\\ntwo\\n' >&2; exit 5"]
        .into_iter()
        .flat_map(|c| [(c, false), (c, true)])
    {
        let front = desk.tool.exec(command, json!({ "pty": pty }));
        let behind = desk.tool.end(&desk.tool.background(command, json!({ "pty": pty })));
        front.has(json!({ "aggregated": "one\ntwo", "exitCode": 5 }));
        assert_eq!(comparable(&front), comparable(&behind));
        assert!(front.text.ends_with("\none\ntwo\n(Command exited with code 5)"), "{front:?}");
    }
}

#[test]
fn a_time_limit_says_what_to_check_also_when_the_call_is_long_over() {
    let desk = Desk::new();
    let (limited, took) = measured(|| desk.tool.exec("echo up; sleep 60", json!({ "timeout": 1 })));
    assert!(took < Duration::from_secs(8), "{took:?}");
    limited.has(json!({ "failureKind": "overall-timeout", "timedOut": true, "aggregated": "up" }));
    for part in ["timed out after 1 seconds", "check the state before you run it again", "background: true"] {
        assert!(limited.text.contains(part), "no `{part}`: {limited:?}");
    }
    let id = desk.tool.background("echo up; sleep 60", json!({ "timeout": 1 }));
    let late = desk.tool.end(&id);
    late.has(
        json!({ "status": "failed", "failureKind": "overall-timeout", "timedOut": true, "aggregated": "up\n" }),
    );
    assert!(late.text.contains("check the state before you run it again"), "{late:?}");
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    assert!(
        listed.text.lines().any(|line| line.starts_with(&id) && line.contains("[overall-timeout]")),
        "{listed:?}"
    );
    // TERM is no way out.
    let deaf = desk.tool.exec(&format!("exec {}", e2e::helper("ignore-term")), json!({ "timeout": 0.5 }));
    deaf.has(json!({ "timedOut": true, "exitSignal": 9, "aggregated": "ready" }));
}

#[test]
fn no_limit_is_none_on_every_hop() {
    let desk = Desk::new();
    for timeout in [json!(0), json!(-5), json!("0")] {
        let started = desk.tool.exec("sleep 1.5; echo done", json!({ "timeout": timeout, "yieldMs": 100 }));
        started.has(json!({ "status": "running", "deadlineAt": null }));
        desk.tool.end(&started.session()).has(json!({ "exitCode": 0, "aggregated": "done\n" }));
    }
}

/// F120, scaled: a limit of 2400 s; the command takes longer than a default window and a transport's patience.
#[test]
fn a_long_run_is_no_matter_for_the_transport() {
    let desk = Desk::new();
    let call = |more: Value| {
        let mut call = json!({ "tool": "exec", "command": "sleep 35; echo done", "timeout": 2400 });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.tool.begin(call)
    };
    let whole = call(json!({ "yieldMs": 100_000 }));
    let ((), waited) = measured(|| {
        call(json!({})).finish().has(json!({ "status": "running" }));
    });
    assert!(
        (Duration::from_secs(9)..Duration::from_secs(20)).contains(&waited),
        "10 s by default: {waited:?}"
    );
    whole.finish().has(json!({ "status": "completed", "exitCode": 0, "aggregated": "done" }));
}

#[test]
fn a_directory_is_taken_as_given_or_nothing_runs() {
    let desk = Desk::new();
    let base = desk.bed.path("").canonicalize().unwrap();
    let base = base.to_str().unwrap();
    let home = format!("{base}/home");
    std::fs::create_dir_all(desk.bed.path("home/sub")).unwrap();
    std::fs::write(desk.bed.path("file"), "").unwrap();
    let ran = desk.bed.path("ran");
    let command = format!("pwd; echo x >> {}", ran.display());
    let up = format!("{home}/sub/..");
    for (given, wanted) in [
        (json!(null), base),
        (json!(""), base),
        (json!("/"), "/"),
        (json!("home"), &home),
        (json!("~"), &home),
        (json!("~/sub"), &format!("{home}/sub")),
        (json!(up), &home),
    ] {
        let answer = desk.tool.exec(&command, json!({ "workdir": given }));
        answer.has(json!({ "status": "completed", "aggregated": wanted, "cwd": wanted }));
    }
    std::fs::remove_file(&ran).unwrap();
    for (given, code) in [
        ("/no/such", "WORKDIR_NOT_FOUND"),
        ("no/such", "WORKDIR_NOT_FOUND"),
        ("~/no", "WORKDIR_NOT_FOUND"),
        ("file", "WORKDIR_NOT_DIRECTORY"),
    ] {
        for background in [false, true] {
            let refused = desk.tool.exec(&command, json!({ "workdir": given, "background": background }));
            assert!(refused.is_error && refused["error"]["code"] == code, "{given:?}: {refused:?}");
            refused.has(json!({ "status": "failed", "exitCode": null, "failureKind": "could-not-start" }));
            assert!(refused.text.contains("command was not run"), "{given:?}: {refused:?}");
        }
    }
    let blank = desk.tool.exec(&command, json!({ "workdir": "   " }));
    assert!(blank.is_error && blank["error"]["code"] == "INVALID_REQUEST", "{blank:?}");
    assert!(!ran.exists(), "a command ran that had no directory");
}

/// F203: the longest text that the system takes runs, one byte more is told before anything starts. F168: so is a NUL.
#[test]
fn what_no_system_takes_is_told_before_it_starts() {
    let desk = Desk::new();
    let text = |length: usize| format!("echo {}", "x".repeat(length - 5));
    let longest = desk.tool.exec(&text(131_071), json!({}));
    longest.has(json!({ "status": "completed", "exitCode": 0, "outputBytes": 131_071 - 5 + 1 }));
    let too_long = desk.tool.exec(&text(131_072), json!({}));
    assert!(too_long.is_error && too_long["error"]["code"] == "COMMAND_TOO_LONG", "{}", too_long.text);
    assert!(too_long.text.contains("131071") && too_long.text.contains("hint: "), "{}", too_long.text);
    let nul = desk.tool.exec("echo a\0b", json!({}));
    assert!(nul.is_error && nul["error"]["code"] == "COMMAND_NUL", "{nul:?}");
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "refused commands leave no session");
}
