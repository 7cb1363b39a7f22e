//! Cards and their answers, up to what is told and written down of them.

use super::*;

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
    let (bed, _node, _tool) = asking();
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
