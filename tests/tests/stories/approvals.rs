//! The document that decides on a node, edited while it runs; and people whom it has asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::{
    Followed, Node, NodeOptions, Outcome, PATIENCE, Reading, RunAs, Session, Sig, TestBed, argv_request,
    block_on, eventually, measured,
};
use fault::{ErrorCode, Fault};
use proto::v1::client_frame::Frame;
use serde_json::{Value, json};

/// The node's owner wants a person to be asked about whatever no rule allows.
const ASKS: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#;

fn write(node: &Node, text: &str) {
    std::fs::write(node.approvals(), text).unwrap();
    // As its own user would have written it.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(node.dir()).unwrap());
    std::os::unix::fs::chown(node.approvals(), Some(owner), None).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(node.approvals(), private).unwrap();
}

fn defaults(security: &str) -> String {
    format!(r#"{{"version":1,"defaults":{{"security":"{security}"}}}}"#)
}

fn the_document_rules(user: RunAs) {
    let bed = TestBed::new();
    let node = bed.invited("n", NodeOptions { user, ..NodeOptions::default() });
    node.wait_connected(1);
    let marker = node.dir().join("marker");
    let touch = || bed.exec(["--no-ask", "--", "touch", marker.to_str().unwrap()]);

    write(&node, &defaults("deny"));
    touch().refused(77, "SYSTEM_RUN_DISABLED").hinted();

    write(&node, &defaults("allowlist"));
    let outcome = touch();
    outcome.refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert!(outcome.stderr.contains("allowlist"), "{}", outcome.stderr);

    write(&node, "{\"version\":1,\n\"defaults\":{\"security\":\"full\",}}");
    let outcome = touch();
    outcome.refused(77, "APPROVALS_MALFORMED").hinted();
    assert!(outcome.stderr.contains("line 2"), "{}", outcome.stderr);

    write(&node, r#"{"version":1,"defaults":{"security":"fulll"}}"#);
    touch().refused(77, "APPROVALS_MALFORMED");
    write(&node, r#"{"version":1,"defaults":{"security":"full","ask":"always"}}"#);
    touch().refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert!(!marker.exists(), "something ran");

    // Live: the same node host, no restart.
    write(&node, &defaults("full"));
    touch().ok();
    assert!(marker.exists());
    std::fs::remove_file(node.approvals()).unwrap();
    bed.exec(["--", "true"]).ok();
    assert_eq!(node.connections(), 1);
}

#[test]
fn the_document_of_the_node_rules() {
    the_document_rules(RunAs::Same);
}

#[test]
fn the_document_of_a_plain_users_node_rules() {
    if rustix::process::geteuid().is_root() {
        the_document_rules(RunAs::Plain);
    }
}

#[test]
fn one_that_somebody_else_can_write_is_no_document() {
    let bed = TestBed::new();
    let node = bed.node("n");
    write(&node, &defaults("full"));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(node.approvals(), open).unwrap();
    bed.exec(["--", "true"]).refused(77, "APPROVALS_MALFORMED").hinted();
}

/// A script that leaves a line for each of its runs.
struct Tool {
    path: String,
    ran: PathBuf,
}

impl Tool {
    /// It prints a word and its first argument, and ends with 3.
    fn new(bed: &TestBed, word: &str) -> Self {
        let ran = bed.path("ran");
        let text = format!("#!/bin/sh\necho \"$1\" >> {}\necho \"{word} $1\"\nexit 3\n", ran.display());
        Self { path: bed.script("tool", &text), ran }
    }

    fn wrote(&self) -> Vec<String> {
        std::fs::read_to_string(&self.ran).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// A node that asks, and the tool that it asks about.
fn asking() -> (TestBed, Node, Tool) {
    let bed = TestBed::new();
    let node = bed.node("n");
    write(&node, ASKS);
    let tool = Tool::new(&bed, "out");
    (bed, node, tool)
}

fn id(card: &Value) -> &str {
    card["approvalId"].as_str().unwrap()
}

fn resolve(bed: &TestBed, card: &Value, answer: &[&str]) -> Outcome {
    bed.gateway_cli(["approvals", "resolve", id(card)].into_iter().chain(answer.iter().copied()))
}

/// The members of an object that another one has.
fn picked(object: &Value, like: &Value) -> Value {
    let names = like.as_object().unwrap().keys();
    names.map(|name| (name.clone(), object[name].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// What happened, once it is so much.
fn told(bed: &TestBed, count: usize) -> Vec<Value> {
    eventually(PATIENCE, || {
        let told = bed.gateway_cli(["events", "--json"]).json_lines();
        if told.len() >= count { Ok(told) } else { Err(format!("{told:?}")) }
    })
}

/// What was written down about a run, in order: kinds, approvals, and who decided what.
fn audited(log: &Outcome, run: &str) -> Value {
    let records = log.ok().json_lines().into_iter().filter(|record| record["data"]["runId"] == run);
    records
        .map(|record| {
            let data = &record["data"];
            json!([record["kind"], data["approvalId"], data["decidedBy"], data["decision"]])
        })
        .collect()
}

#[test]
fn another_operator_reads_the_card_says_yes_and_all_of_it_is_written_down() {
    let (bed, node, tool) = asking();
    let dir = bed.path("work");
    std::fs::create_dir(&dir).unwrap();
    let dir = dir.display().to_string();
    let ann = bed.path("ann.json").display().to_string();
    bed.gateway_cli(["operators", "add", "ann", "--roles", "approvals", "--out", &ann]).ok();
    let as_ann = |args: &[&str]| {
        let args = ["--identity", &ann, "--json", "approvals"].into_iter().chain(args.iter().copied());
        bed.gateway_cli(args).json()
    };

    let exec = ["exec", "--run-id", "run-1", "--workdir", &dir, "--env", "WHO=me", "--", &tool.path, "x y"];
    let waiting = bed.spawn_cli(exec, Reading::Now);
    let [open] = bed.cards();
    assert_eq!(as_ann(&["pending"])["approvals"], json!([open]));
    let card = as_ann(&["show", id(&open)]);
    let asked = json!({
        "status": "pending",
        "node": "n",
        "command": format!("{} 'x y'", tool.path),
        "cwd": dir,
        "envNames": ["WHO"],
        "runId": "run-1",
        "requestedBy": "local",
        "askedBy": "host",
        "reasons": ["allowlist-miss"],
        "why": format!("no entry allows `{}`", tool.path),
        "allowedDecisions": ["allow-once", "allow-always", "deny"],
        "decidedBy": null,
        "used": false,
    });
    assert_eq!(picked(&card, &asked), asked);
    // The program, and what its first line says that reads it.
    let files = card["segments"][0]["files"].as_array().unwrap();
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    let want = [
        json!({ "role": "program", "path": tool.path, "realPath": tool.path }),
        json!({ "role": "program", "path": "/bin/sh", "realPath": shell }),
    ];
    assert_eq!(files.iter().map(|file| picked(file, &want[0])).collect::<Vec<_>>(), want);
    assert_eq!(files[0]["sha256"].as_str().map(str::len), Some(64), "{card}");

    assert_eq!(tool.wrote(), [""; 0]);
    as_ann(&["resolve", id(&card), "allow-once"]);
    let outcome = waiting.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (3, "out x y\n"), "{outcome:?}");
    assert_eq!(tool.wrote(), ["x y"]);

    let closed = as_ann(&["history"])["approvals"][0].clone();
    let want = json!({
        "approvalId": card["approvalId"],
        "planDigest": card["planDigest"],
        "status": "allowed",
        "reason": "user",
        "decision": "allow-once",
        "lasting": null,
        "decidedBy": "ann",
        "requestedBy": "local",
        "used": true,
    });
    assert_eq!(picked(&closed, &want), want);
    let from = closed["decidedFrom"].as_str().unwrap();
    assert!(from.starts_with("127.0.0.1:"), "{from}");
    // Both ends wrote it down: the gateway under the approval's id from the start, the node once it has heard of it.
    let id = id(&card);
    let of_gateway = json!([
        ["approval.requested", id, "", null],
        ["approval.decided", id, "ann", "allow-once"],
        ["run.started", id, null, null],
        ["run.ended", id, null, null],
    ]);
    let of_node = json!([
        ["approval.requested", null, null, null],
        ["approval.decided", id, "ann", "allow-once"],
        ["run.started", id, null, null],
        ["run.ended", null, null, null],
    ]);
    let logs: [(&dyn Fn([&'static str; 3]) -> Outcome, Value); 2] =
        [(&|args| bed.gateway_cli(args), of_gateway), (&|args| bed.node_cli(&node, args), of_node)];
    for (audit, want) in logs {
        eventually(PATIENCE, || {
            let found = audited(&audit(["audit", "list", "--json"]), "run-1");
            if found == want { Ok(()) } else { Err(format!("{found:#}, not {want:#}")) }
        });
        audit(["audit", "verify", "--json"]).ok();
    }
}

#[test]
fn a_denied_run_says_nothing_of_the_one_before() {
    let (bed, _node, tool) = asking();
    let exec = |word| bed.spawn_cli(["exec", "--session-key", "s", "--", &tool.path, word], Reading::Now);
    let waiting = exec("first");
    let [first] = bed.cards();
    resolve(&bed, &first, &["allow-once"]).ok();
    assert_eq!(waiting.finish(PATIENCE).stdout_text(), "out first\n");

    let waiting = exec("second");
    let [second] = bed.cards();
    resolve(&bed, &second, &["deny"]).ok();
    let denied = waiting.finish(PATIENCE);
    denied.refused(77, "SYSTEM_RUN_DENIED");
    let text = format!("Exec denied (node=n id={}, user-denied): {} second", id(&second), tool.path);
    assert!(denied.stdout.is_empty() && denied.stderr.contains(&text), "{denied:?}");
    for other in [id(&first), first["approvalSlug"].as_str().unwrap(), "first"] {
        assert!(!denied.stderr.contains(other), "{denied:?}");
    }
    let all = told(&bed, 2);
    let of_second: Vec<_> = all.iter().filter(|event| event["approvalId"] == second["approvalId"]).collect();
    let want = json!({ "kind": "exec-denied", "text": text, "reason": "user-denied", "sessionKey": "s" });
    assert_eq!(of_second.iter().map(|event| picked(event, &want)).collect::<Vec<_>>(), [want]);
    assert_eq!(tool.wrote(), ["first"]);
}

#[test]
fn of_answers_that_come_at_once_one_counts() {
    let (bed, _node, tool) = asking();
    let waiting = bed.spawn_cli(["exec", "--", &tool.path, "x"], Reading::Now);
    let [card] = bed.cards();
    let answers = ["deny", "allow-once", "deny", "allow-once", "deny", "allow-once"];
    let answering =
        answers.map(|answer| bed.spawn_cli(["approvals", "resolve", id(&card), answer], Reading::Now));
    let outcomes = answering.map(|answer| answer.finish(PATIENCE));
    let run = waiting.finish(PATIENCE);
    let decision = bed.gateway_cli(["approvals", "show", id(&card), "--json"]).json()["decision"].clone();
    for (answer, outcome) in answers.iter().zip(&outcomes) {
        if decision == *answer {
            outcome.ok();
        } else {
            outcome.refused(77, "APPROVAL_ALREADY_RESOLVED").hinted();
        }
    }
    if decision == "allow-once" {
        assert_eq!((run.code(), tool.wrote()), (3, vec!["x".to_owned()]));
    } else {
        run.refused(77, "SYSTEM_RUN_DENIED");
        assert_eq!(tool.wrote(), [""; 0]);
    }
}

#[test]
fn who_does_not_wait_gets_a_card_and_each_event_once() {
    let (bed, _node, tool) = asking();
    let config = bed.gateway_dir().join("openclaw.json");
    std::fs::write(&config, "{tools:{exec:{approvalRunningNoticeMs:200}}}").unwrap();
    std::fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // It lasts until somebody writes into the pipe.
    let gate = bed.path("gate");
    assert!(bed.command(Path::new("mkfifo")).arg(&gate).status().unwrap().success());
    let long = bed.script("long", &format!("#!/bin/sh\nread line < {}\necho \"$line\"\n", gate.display()));

    let asked = bed.gateway_cli(["--json", "exec", "--no-wait", "--", &long]);
    asked.ok();
    let [event] = <[Value; 1]>::try_from(asked.json_lines()).unwrap();
    let [card] = bed.cards();
    let want = json!({
        "event": "approval-pending",
        "status": "approval-pending",
        "approvalId": card["approvalId"],
        "approvalSlug": id(&card)[..8],
        "expiresAtMs": card["expiresAtMs"],
        "allowedDecisions": ["allow-once", "allow-always", "deny"],
        "host": "node",
        "command": long,
        "cwd": card["cwd"],
        "nodeId": card["nodeId"],
    });
    assert_eq!(picked(&event, &want), want);
    let life = card["expiresAtMs"].as_i64().unwrap() - card["createdAtMs"].as_i64().unwrap();
    assert!((29 * 60_000..=30 * 60_000).contains(&life), "{card}");

    resolve(&bed, &card, &["allow-once"]).ok();
    let running = told(&bed, 1).remove(0);
    let sessions = bed.gateway_cli(["sessions", "--json"]).json();
    assert_eq!(sessions["sessions"][0]["status"], "running", "{sessions}");
    std::fs::write(&gate, "all done\n").unwrap();
    let all = told(&bed, 2);
    let session = running["sessionId"].as_str().unwrap();
    let id = id(&card);
    let want = [
        json!({
            "kind": "exec-running",
            "approvalId": id,
            "text": format!("Exec running (node=n id={id}, session={session}, >0.2s): {long}"),
        }),
        json!({
            "kind": "exec-finished",
            "approvalId": id,
            "text": format!("Exec finished (node=n id={id}, code 0)\nall done"),
        }),
    ];
    assert_eq!(all.iter().map(|event| picked(event, &want[0])).collect::<Vec<_>>(), want);
    // A shorter one is told of at its end only.
    let short = bed.exec(["--no-wait", "--", &tool.path, "x"]).ok().stdout_text();
    bed.gateway_cli(["approvals", "resolve", short.trim(), "allow-once"]).ok();
    let want = format!("Exec finished (node=n id={}, code 3)\nout x", short.trim());
    assert_eq!(told(&bed, 3)[2]["text"], want);
}

#[test]
fn ctrl_c_gives_up_a_run_that_waits() {
    let (bed, _node, tool) = asking();
    let waiting = bed.spawn_cli(["exec", "--", &tool.path, "x"], Reading::Now);
    let [card] = bed.cards();
    waiting.signal(Sig::Int);
    let left = waiting.finish(PATIENCE);
    assert_eq!((left.code(), left.stdout_text().as_str()), (130, ""), "{left:?}");
    assert!(left.stderr.contains("given up and nothing runs"), "{left:?}");
    let [] = bed.cards();
    resolve(&bed, &card, &["allow-once"]).refused(77, "APPROVAL_CANCELLED").hinted();
    let closed = bed.gateway_cli(["approvals", "show", id(&card), "--json"]).json();
    let want = json!({ "status": "cancelled", "reason": "run-aborted", "decision": null, "used": false });
    assert_eq!(picked(&closed, &want), want);
    assert_eq!(tool.wrote(), [""; 0]);
}

#[test]
fn who_waits_through_a_restart_of_the_gateway_is_asked_about_anew() {
    for signal in [Sig::Kill, Sig::Term] {
        let (mut bed, _node, tool) = asking();
        let waiting = ["a", "b"]
            .map(|word| bed.spawn_cli(["exec", "--run-id", word, "--", &tool.path, word], Reading::Now));
        let before: [Value; 2] = bed.cards();
        bed.stop_gateway(signal);
        bed.start_gateway();
        let after: [Value; 2] = bed.cards();
        for card in &before {
            resolve(&bed, card, &["allow-once"]).refused(77, "APPROVAL_CANCELLED").hinted();
            let closed = bed.gateway_cli(["approvals", "show", id(card), "--json"]).json();
            let want = json!({ "status": "cancelled", "reason": "gateway-restart", "used": false });
            assert_eq!(picked(&closed, &want), want, "{signal:?}");
            assert!(after.iter().all(|new| id(new) != id(card)), "{after:?}");
        }
        assert_eq!(tool.wrote(), [""; 0]);
        for (run, decision) in [("a", "allow-once"), ("b", "deny")] {
            let card = after.iter().find(|card| card["runId"] == run).unwrap();
            resolve(&bed, card, &[decision]).ok();
        }
        let codes = waiting.map(|waiting| waiting.finish(PATIENCE).code());
        assert_eq!((codes, tool.wrote()), ([3, 77], vec!["a".to_owned()]), "{signal:?}");
    }
}

#[test]
fn always_is_as_wide_as_was_said_and_says_what_it_stores() {
    let (bed, node, tool) = asking();
    let dirs = ["here", "there"].map(|name| {
        std::fs::create_dir(bed.path(name)).unwrap();
        bed.path(name).display().to_string()
    });
    let [here, there] = &dirs;
    // Who is not asked: the exit code in each of these cases.
    let silent = || {
        [(here, "one"), (there, "one"), (here, "two")].map(|(dir, word)| {
            bed.exec(["--no-ask", "--workdir", dir, "--session-key", "s", "--", &tool.path, word]).code()
        })
    };
    let always = |flags: &[&str]| {
        let exec = ["--json", "exec", "--workdir", here, "--session-key", "s", "--", &tool.path, "one"];
        let waiting = bed.spawn_cli(exec, Reading::Now);
        let [card] = bed.cards();
        let answer = ["--json", "approvals", "resolve", id(&card), "allow-always"];
        let said = bed.gateway_cli(answer.into_iter().chain(flags.iter().copied())).json();
        let run = waiting.finish(PATIENCE);
        let started = run.json_lines().into_iter().find(|event| event["event"] == "started").unwrap();
        assert_eq!((run.code(), &started["notStored"]), (3, &Value::Null), "{started}");
        // What the answer promised is what the node stored.
        let texts = |rules: &Value| rules.as_array().unwrap().len();
        assert_eq!((texts(&said["rules"]), texts(&started["stored"])), (1, 1), "{said} {started}");
        let (promised, stored) = (said["rules"][0].as_str().unwrap(), started["stored"][0].as_str().unwrap());
        assert!(stored.starts_with(promised), "{promised}, not {stored}");
        stored.to_owned()
    };
    let rules = || bed.policy(&node, ["show", "--json"]).json()["allowlist"].as_array().unwrap().len();
    let forget = || {
        bed.policy(&node, ["disallow", "--agent", "main", &tool.path]).ok();
        assert_eq!((silent(), rules()), ([77; 3], 0));
    };

    assert_eq!(silent(), [77; 3]);
    let stored = always(&[]);
    assert_eq!(stored, format!("{} with exactly these arguments, in this directory", tool.path));
    assert_eq!((silent(), rules()), ([3, 77, 77], 1));
    forget();
    always(&["--scope", "args"]);
    assert_eq!((silent(), rules()), ([3, 3, 77], 1));
    forget();
    always(&["--scope", "program"]);
    assert_eq!((silent(), rules()), ([3, 3, 3], 1));
    forget();
    // For a session: no rule, nothing for another session, and forgotten with the node host.
    let stored = always(&["--scope", "program", "--session"]);
    assert_eq!(stored, format!("{} with any arguments, for this session", tool.path));
    assert_eq!((silent(), rules()), ([3; 3], 0));
    bed.exec(["--no-ask", "--session-key", "t", "--", &tool.path, "one"]).refused(77, "SYSTEM_RUN_DENIED");
    bed.exec(["--no-ask", "--", &tool.path, "one"]).refused(77, "SYSTEM_RUN_DENIED");
    node.stop(Sig::Term);
    node.restart();
    node.wait_connected(1);
    assert_eq!(silent(), [77; 3]);
}

#[test]
fn always_that_cannot_be_kept_says_why_and_what_can_is() {
    let (bed, node, tool) = asking();
    let cd = format!("cd {} && {} x", bed.path("home").display(), tool.path);
    let always = "`ask` is `always`, so a person is asked every time";
    let interpreter = "a rule for an interpreter is stored only where strictInlineEval is on, so that its inline code still asks";
    let table: [(&[&str], &[&str], &str); 5] = [
        (&["--ask", "always", "--", &tool.path, "x"], &["--for", "1h"], always),
        (&["--", "awk", "1"], &[], "it hands code to `awk` (`program text`)"),
        (&["--", "sh", &tool.path, "x"], &[], interpreter),
        (&["--", &tool.path, "x"], &["--session"], "the run names no session"),
        // Another directory by then: which one is not the rule's to know.
        (&["--shell", "--", &cd], &[], "this scope is not offered"),
    ];
    for (exec, flags, why) in table {
        bed.exec(["--no-wait"].iter().chain(exec).copied()).ok();
        let [card] = bed.cards();
        let answer: Vec<_> = ["allow-always"].iter().chain(flags).copied().collect();
        let refused = resolve(&bed, &card, &answer);
        refused.refused(77, "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE").hinted();
        let text = format!(": allow-always is not to be had: {why}\n");
        assert!(refused.stderr.contains(&text), "{refused:?}");
        // That was no answer.
        let [still] = bed.cards();
        assert_eq!(still, card);
        resolve(&bed, &card, &["deny"]).ok();
    }
    assert_eq!(bed.policy(&node, ["show", "--json"]).json()["allowlist"], json!([]));
    assert_eq!(tool.wrote(), [""; 0]);

    let waiting = bed.spawn_cli(["exec", "--shell", "--", &cd], Reading::Now);
    let [card] = bed.cards();
    resolve(&bed, &card, &["allow-always", "--scope", "args"]).ok();
    assert_eq!(waiting.finish(PATIENCE).code(), 3);
    assert_eq!(bed.exec(["--no-ask", "--shell", "--", &cd]).code(), 3);
    assert_eq!(tool.wrote(), ["x", "x"]);
}

/// A script in a directory of the node's own user, edited again and again.
#[test]
fn a_script_that_is_edited_while_a_grant_holds_is_asked_about_once() {
    let bed = TestBed::new();
    let node = bed.invited("n", NodeOptions { user: RunAs::plain(), ..NodeOptions::default() });
    node.wait_connected(1);
    write(&node, ASKS);
    let job = node.dir().join("job").display().to_string();
    let edit = |word: &str| {
        let text = bed.script("edited", &format!("#!/bin/sh\necho {word}\n"));
        // In place, as an editor would as the node's user.
        assert!(bed.command(Path::new("cp")).args([&text, &job]).status().unwrap().success());
    };
    edit("first");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(node.dir()).unwrap());
    std::os::unix::fs::chown(&job, Some(owner), None).unwrap();

    let waiting = bed.spawn_cli(["exec", "--", &job], Reading::Now);
    let [card] = bed.cards();
    let refused = resolve(&bed, &card, &["allow-always", "--scope", "program"]);
    refused.refused(77, "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE").hinted();
    let why =
        format!("`{job}` can be changed by the node's user, so the rule would cover whatever it becomes");
    assert!(refused.stderr.contains(&why) && refused.stderr.contains("`--for 1h`"), "{refused:?}");
    resolve(&bed, &card, &["allow-always", "--scope", "program", "--for", "1h"]).ok();
    assert_eq!(waiting.finish(PATIENCE).ok().stdout_text(), "first\n");
    for number in 0..10 {
        edit(&number.to_string());
        assert_eq!(bed.exec(["--", &job]).ok().stdout_text(), format!("{number}\n"));
    }
    let history = bed.gateway_cli(["approvals", "history", "--json"]).json();
    assert_eq!(history["approvals"].as_array().unwrap().len(), 1, "{history}");
}

/// An agent's call: it shows nothing to a person, and asks for nothing special.
async fn call(bed: &TestBed, words: &[&str]) -> Result<Followed, tonic::Status> {
    let mut tools = bed.tools().await;
    let session = Session::open(&mut tools, Frame::Start(argv_request("n", words))).await?;
    session.finish(PATIENCE).await
}

#[test]
fn where_nobody_watches_the_nodes_fallback_holds_at_once() {
    let (bed, node, tool) = asking();
    let rule = format!(r#","agents":{{"*":{{"allowlist":["{}"]}}}}"#, tool.path);
    // security, ask, askFallback, the rules, and whether the tool runs.
    let table = [
        ("allowlist", "on-miss", "deny", "", false),
        ("allowlist", "always", "deny", &rule, false),
        ("full", "always", "deny", "", false),
        ("allowlist", "on-miss", "allowlist", "", false),
        ("allowlist", "always", "allowlist", &rule, true),
        // A list that holds anyway is not widened.
        ("allowlist", "on-miss", "full", "", false),
        ("full", "always", "full", "", true),
    ];
    let mut runs = Vec::new();
    for (security, ask, fallback, rules, is_run) in table {
        let defaults = format!(r#"{{"security":"{security}","ask":"{ask}","askFallback":"{fallback}"}}"#);
        write(&node, &format!(r#"{{"version":1,"defaults":{defaults}{rules}}}"#));
        let (outcome, time) = measured(|| block_on(call(&bed, &[&tool.path, &defaults])));
        assert!(time < Duration::from_secs(1), "{defaults}: {time:?}");
        match outcome {
            Ok(followed) => {
                assert_eq!(
                    (followed.code(), followed.asked, is_run),
                    (Some(3), Vec::new(), true),
                    "{defaults}"
                );
                runs.push(defaults);
            }
            Err(status) => {
                let fault = Fault::from_status(&status);
                assert_eq!(
                    (fault.code, is_run),
                    (ErrorCode::SystemRunDenied, false),
                    "{defaults}: {fault:?}"
                );
                let why = ", and nobody can be asked";
                assert!(fault.message.ends_with(why) && fault.hint.is_some(), "{defaults}: {fault:?}");
            }
        }
    }
    assert_eq!(tool.wrote(), runs);
    let history = bed.gateway_cli(["approvals", "history", "--json"]).json();
    assert_eq!(history["approvals"], json!([]));
}

#[test]
fn where_somebody_watches_an_agents_call_waits() {
    let (bed, _node, tool) = asking();
    let mut watching = bed.spawn_cli(["--json", "approvals", "pending", "--watch"], Reading::Now);
    watching.wait_stdout("caught-up");
    let (followed, card) = std::thread::scope(|scope| {
        let calling = scope.spawn(|| block_on(call(&bed, &[&tool.path, "x"])));
        watching.wait_stdout("requested");
        let [card] = bed.cards();
        resolve(&bed, &card, &["allow-once"]).ok();
        (calling.join().unwrap().unwrap(), card)
    });
    let asked: Vec<_> = followed.asked.iter().map(|approval| approval.approval_id.as_str()).collect();
    assert_eq!((followed.code(), asked), (Some(3), vec![id(&card)]));
    watching.wait_stdout("closed");
    watching.signal(Sig::Kill);
    let seen = watching.finish(PATIENCE).json_lines();
    let seen: Vec<_> = seen.iter().map(|line| (&line["event"], &line["approval"]["approvalId"])).collect();
    let id = &card["approvalId"];
    assert_eq!(
        seen,
        [(&json!("caught-up"), &Value::Null), (&json!("requested"), id), (&json!("closed"), id)]
    );
    // Nobody is there any more who could be asked.
    eventually(PATIENCE, || match block_on(call(&bed, &[&tool.path, "y"])) {
        Err(status) if status.message().ends_with(", and nobody can be asked") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(tool.wrote(), ["x"]);
}
