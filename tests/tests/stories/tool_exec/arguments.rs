//! Calls as models write them: the seeds' examples as they stand, slips, hosts, and the command line that makes them.

use e2e::{Answer, Desk, NodeOptions, PATIENCE, Reading, TestBed, Tool, eventually};
use serde_json::{Value, json};

/// A program of the examples that is not on this machine.
const NPM: &str = "#!/bin/sh\necho \"building $*\"\nsleep 3\necho built\n";

fn cli(bed: &TestBed, call: &str) -> Answer {
    let shown = bed.gateway_cli(["tool", call]).json();
    let text = shown["content"][0]["text"].as_str().unwrap().to_owned();
    let whole = json!({ "content": [{ "type": "text", "text": text }], "details": shown["details"] });
    assert_eq!(shown, whole, "nothing else is printed");
    Answer { text, details: shown["details"].clone(), is_error: false }
}

#[test]
fn the_examples_of_exec_work_as_they_stand() {
    let desk = Desk::with(|bed| {
        bed.script("npm", NPM);
        let path = format!("{}:/usr/bin:/bin", bed.path("").display());
        NodeOptions { env: vec![("PATH".to_owned(), path)], ..NodeOptions::default() }
    });
    let listed = cli(&desk.bed, r#"{ "tool": "exec", "command": "ls -la" }"#);
    listed.has(json!({ "status": "completed", "exitCode": 0 }));
    assert!(listed.text.contains("npm"), "{listed:?}");

    let slow = cli(&desk.bed, r#"{ "tool": "exec", "command": "sleep 3 && echo done", "yieldMs": 1000 }"#);
    let short = cli(&desk.bed, r#"{"tool":"exec","command":"npm run build","yieldMs":1000}"#);
    let background = cli(&desk.bed, r#"{ "tool": "exec", "command": "npm run build", "background": true }"#);
    for (started, output) in [
        (slow, "done\n"),
        (short, "building run build\nbuilt\n"),
        (background, "building run build\nbuilt\n"),
    ] {
        started.has(json!({ "status": "running", "node": "n", "onDisconnect": "keep" }));
        let id = started.session();
        let pid = started.number("pid");
        assert!(started.text.contains(&format!("(session {id}, pid {pid})")), "{started:?}");
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-') && id.contains('-'), "{id}");
        let poll = r#"{ "tool": "process", "action": "poll", "sessionId": "<id>" }"#.replace("<id>", &id);
        assert!(matches!(cli(&desk.bed, &poll).string("status"), "running" | "completed"));
        assert_eq!(desk.tool.end(&id).string("aggregated"), output);
    }
}

#[test]
fn the_examples_of_process_work_as_they_stand() {
    let desk = Desk::new();
    // What each of them types, as a program sees it that reads raw keys.
    let table = [
        (r#"{"tool":"process","action":"send-keys","sessionId":"<id>","keys":["Enter"]}"#, "0d"),
        (r#"{"tool":"process","action":"send-keys","sessionId":"<id>","keys":["C-c"]}"#, "03"),
        (
            r#"{"tool":"process","action":"send-keys","sessionId":"<id>","keys":["Up","Up","Enter"]}"#,
            "1b 5b 41 1b 5b 41 0d",
        ),
        (r#"{ "tool": "process", "action": "submit", "sessionId": "<id>" }"#, "0d"),
        (
            r#"{ "tool": "process", "action": "paste", "sessionId": "<id>", "text": "line1\nline2\n" }"#,
            "6c 69 6e 65 31 0d 6c 69 6e 65 32 0d",
        ),
        (r#"{ "tool": "process", "action": "write", "sessionId": "<id>", "data": "y\n" }"#, "79 0a"),
    ];
    let keys = "stty raw -echo; printf ready; exec od -An -v -tx1 -w1";
    let id = desk.tool.background(keys, json!({ "pty": true }));
    desk.tool.wait_for(&id, "ready");
    let mut wanted = Vec::new();
    for (call, bytes) in table {
        cli(&desk.bed, &call.replace("<id>", &id)).has(json!({ "status": "running", "sessionId": id }));
        wanted.extend(bytes.split(' '));
        eventually(PATIENCE, || {
            let seen = desk.tool.process("poll", &id, json!({ "offset": 0 }));
            let typed: Vec<&str> =
                seen.string("aggregated").trim_start_matches("ready").split_whitespace().collect();
            if typed == wanted { Ok(()) } else { Err(format!("{typed:?} after {call}")) }
        });
    }
}

#[test]
fn slips_are_named_and_nothing_runs() {
    let desk = Desk::new();
    let table = [
        (json!({}), "`command` is missing", ""),
        (json!({ "command": "" }), "`command` is missing", ""),
        (json!({ "command": " \n\t" }), "`command` is missing", ""),
        (json!({ "comand": "true" }), "unknown parameter `comand`", "did you mean `command`?"),
        (
            json!({ "command": "true", "yieldms": 1 }),
            "unknown parameter `yieldms`",
            "did you mean `yieldMs`?",
        ),
        (
            json!({ "command": "true", "timeoutSecs": 1 }),
            "unknown parameter `timeoutSecs`",
            "did you mean `timeoutSec`?",
        ),
        (
            json!({ "command": "true", "backgroud": true }),
            "unknown parameter `backgroud`",
            "did you mean `background`?",
        ),
        (json!({ "command": "true", "colour": "red" }), "unknown parameter `colour`", ""),
        (json!({ "command": 7 }), "`command` must be text", ""),
        (json!({ "command": "true", "pty": "maybe" }), "`pty` must be true or false", ""),
        (json!({ "command": "true", "background": 1 }), "`background` must be true or false", ""),
        (json!({ "command": "true", "yieldMs": -1 }), "`yieldMs` must be a number from 0 on", ""),
        (json!({ "command": "true", "timeout": "soon" }), "`timeout` must be a number", ""),
        (json!({ "command": "true", "timeout": 1, "timeoutSec": 2 }), "`timeout` is given twice", ""),
        (json!({ "command": "true", "env": "A=b" }), "`env` must be an object", ""),
        (json!({ "command": "true", "env": { "A": ["b"] } }), "env.A must be text", ""),
        (json!({ "command": "true", "security": "loose" }), "`security` is deny, allowlist or full", ""),
        (json!({ "command": "true", "ask": "never" }), "`ask` is off, on-miss or always", ""),
        (json!({ "command": "true", "elevated": true }), "`elevated` has no meaning on a node", ""),
        (
            json!({ "command": "true", "pty": true, "cols": 0 }),
            "a terminal has 1 to 1000 `cols` and `rows`",
            "",
        ),
        (
            json!({ "command": "true", "onDisconnect": "maybe" }),
            "onDisconnect: `maybe` is not keep, kill or",
            "",
        ),
        (
            json!({ "command": "true", "onDisconnect": "keep-for:0s" }),
            "onDisconnect: `keep-for:0s` is not",
            "",
        ),
        (
            json!({ "command": "true", "limits": { "memroy": "1g" } }),
            "unknown parameter `memroy`",
            "did you mean `memory`?",
        ),
        (
            json!({ "command": "true", "limits": { "memory": "lots" } }),
            "limits.memory is a number of bytes",
            "",
        ),
    ];
    for (call, message, hint) in table {
        let mut whole = call.clone();
        whole["tool"] = "exec".into();
        let refused = desk.tool.ask(whole);
        let error = &refused["error"];
        let told = |part: &Value, want: &str| part.as_str().unwrap_or_default().contains(want);
        assert!(
            refused.is_error && error["code"] == "INVALID_REQUEST" && told(&error["message"], message),
            "{call}: {refused:?}"
        );
        assert!(told(&error["hint"], hint) && refused.text.contains(hint), "{call}: {refused:?}");
        refused.has(json!({ "status": "failed", "exitCode": null }));
    }
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    listed.has(json!({ "status": "completed", "sessions": [], "unreachable": [] }));
    assert_eq!(listed.text, "No running or recent sessions.");
}

#[test]
fn hosts_and_nodes_are_taken_as_meant_or_refused() {
    let desk = Desk::new();
    for host in ["node", "NODE", " Node "] {
        desk.tool.exec("true", json!({ "host": host })).has(json!({ "status": "completed", "node": "n" }));
    }
    let table = [
        (json!({ "host": "moon" }), "UNKNOWN_HOST", "auto, sandbox, gateway, node"),
        (json!({ "host": "sandbox" }), "UNKNOWN_HOST", "host=node"),
        (json!({ "host": "gateway" }), "UNKNOWN_HOST", "host=node"),
        (json!({ "node": "nope" }), "UNKNOWN_NODE", "nope"),
    ];
    for (more, code, told) in table {
        let refused = desk.tool.exec("true", more.clone());
        assert!(refused.is_error && refused["error"]["code"] == code, "{more}: {refused:?}");
        assert!(refused.text.contains(told), "{more}: {refused:?}");
    }
    // Where nothing says which host, it is never a node (runtime.md §1.6).
    desk.configure("{}");
    let refused = desk.tool.exec("true", json!({}));
    assert!(refused.is_error, "{refused:?}");
    desk.tool.exec("true", json!({ "host": "node" })).has(json!({ "status": "completed" }));
}

#[test]
fn older_spellings_are_taken_and_text_may_stand_for_numbers() {
    let desk = Desk::new();
    let limited = |more: Value| {
        let started = desk.tool.exec("sleep 60", more);
        let limit = started.number("deadlineAt") - started.number("startedAt");
        desk.tool.process("kill", &started.session(), json!({}));
        (limit, started.text.contains("older spelling"))
    };
    assert_eq!(limited(json!({ "background": "true", "timeout": "90" })), (90_000, false));
    assert_eq!(limited(json!({ "background": true, "timeoutSeconds": 90 })), (90_000, false));
    assert_eq!(limited(json!({ "background": true, "timeoutSec": 90 })), (90_000, true));
    // 1800 s unless a call or the configuration says otherwise.
    assert_eq!(limited(json!({ "background": true })), (1_800_000, false));
    desk.configure("{ tools: { exec: { host: 'node', node: 'n', timeoutSec: 77 } } }");
    assert_eq!(limited(json!({ "yieldMs": 0 })), (77_000, false));
    desk.configure("{ tools: { exec: { host: 'node', node: 'n', backgroundMs: 20 } } }");
    assert_eq!(limited(json!({ "title": "a nap" })), (1_800_000, false));
}

#[test]
fn the_command_line_says_how_a_call_went() {
    let desk = Desk::new();
    let tool = |args: &[&str]| desk.bed.gateway_cli(["tool"].into_iter().chain(args.iter().copied()));
    // That a command failed is no failure of the call.
    let failed = tool(&[r#"{"tool":"exec","command":"echo no; exit 3"}"#]).json();
    assert_eq!((&failed["details"]["exitCode"], failed.get("isError")), (&json!(3), None));
    let text = tool(&["--text", r#"{"tool":"exec","command":"echo no; exit 3"}"#]).ok().stdout_text();
    assert!(text.starts_with("Node: n (") && text.ends_with("no\n(Command exited with code 3)\n"), "{text}");

    let refused = tool(&[r#"{"tool":"exec","command":""}"#]);
    let shown: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((refused.code(), &shown["isError"]), (2, &json!(true)), "{refused:?}");
    for (call, told) in
        [("{", "not JSON"), ("[]", "not a JSON object"), (r#"{"command":"true"}"#, "names no tool")]
    {
        let outcome = tool(&[call]);
        outcome.refused(2, "INVALID_REQUEST").hinted();
        assert!(outcome.stderr.contains(told), "{call}: {outcome:?}");
    }
    let unknown = tool(&[r#"{"tool":"browser","command":"true"}"#]);
    assert_eq!(unknown.code(), 2, "{unknown:?}");
    assert!(unknown.stdout_text().contains("unknown tool `browser`; there are exec, process"), "{unknown:?}");

    // A failure of `process` is an ordinary result (runtime.md §2.1).
    let nope = tool(&[r#"{"tool":"process","action":"poll","sessionId":"nope"}"#]).json();
    assert_eq!((&nope["details"]["status"], nope.get("isError")), (&json!("failed"), None));

    // By another agent, from standard input, with what is written meanwhile.
    let mut piped = desk.bed.spawn_cli(["tool", "--agent", "b", "--updates", "-"], Reading::Now);
    piped.write(br#"{"tool":"exec","command":"echo first; sleep 1; echo last"}"#);
    let lines = piped.finish(PATIENCE).stdout_text();
    let update = lines.lines().next().unwrap_or_default();
    let update: Value = serde_json::from_str(update).unwrap_or_else(|e| panic!("{e}: {lines}"));
    assert_eq!(update["update"]["tail"].as_str().map(str::trim), Some("first"), "{lines}");
    assert!(lines.contains("first\\nlast"), "{lines}");
    let mine = Tool::call(&desk.bed, json!({ "tool": "process", "action": "list" }));
    let theirs = desk.tool.with(|call| call.agent_id = "b".to_owned());
    let theirs = theirs.ask(json!({ "tool": "process", "action": "list" }));
    let count = |answer: &Answer| answer["sessions"].as_array().unwrap().len();
    // Its one command, and the two of this story that ran for the main agent.
    assert_eq!((count(&mine), count(&theirs)), (2, 1), "{mine:?} {theirs:?}");
}

#[test]
fn variables_reach_the_command_or_are_refused_by_name() {
    let desk = Desk::new();
    let env = json!({ "GREETING": "hello there", "COUNT": 3, "ON": true });
    let shown = desk.tool.exec("echo $GREETING $COUNT $ON $OPENCLAW_SHELL", json!({ "env": env }));
    shown.has(json!({ "status": "completed", "aggregated": "hello there 3 true exec" }));
    let refused = desk.tool.exec("true", json!({ "env": { "LD_PRELOAD": "/x.so", "FINE": "1" } }));
    refused.has(json!({ "status": "failed", "exitCode": null, "failureKind": "policy-denied" }));
    assert!(refused.is_error && refused["error"]["code"] == "ENV_REJECTED", "{refused:?}");
    assert!(refused.text.contains("LD_PRELOAD") && !refused.text.contains("FINE"), "{refused:?}");
}

/// Whether a call may be made again is said by what it failed of (runtime.md §6.10).
#[test]
fn a_refusal_says_whether_to_try_again() {
    let desk = Desk::new();
    let denied = desk.tool.exec("true", json!({ "security": "deny" }));
    denied.has(json!({ "status": "failed", "exitCode": null, "failureKind": "policy-denied" }));
    assert!(denied.is_error && !denied.text.contains("safe to make it again"), "{denied:?}");
    desk.node.stop(e2e::Sig::Term);
    let away = desk.tool.exec("true", json!({}));
    away.has(json!({ "status": "failed", "exitCode": null, "failureKind": "not-dispatched" }));
    assert!(away.is_error && away.text.contains("safe to make it again"), "{away:?}");
}
