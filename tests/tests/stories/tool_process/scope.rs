//! Whose sessions: what another agent is told is what is said of a session that was never there.

use std::path::PathBuf;

use e2e::{Answer, Desk, Tool};
use serde_json::{Value, json};

fn add(desk: &Desk, agent: &str, roles: &str) -> PathBuf {
    let file = desk.bed.path(&format!("{agent}-{roles}.json"));
    let name = format!("{agent}-{roles}");
    let out = file.display().to_string();
    desk.bed.gateway_cli(["operators", "add", &name, "--roles", roles, "--agent", agent, "--out", &out]).ok();
    file
}

/// An answer without the name that was asked for.
fn anonymous(answer: &Answer, name: &str) -> (String, Value, bool) {
    let details = answer.details.to_string().replace(name, "NAME");
    (answer.text.replace(name, "NAME"), serde_json::from_str(&details).unwrap(), answer.is_error)
}

/// F132.
#[test]
fn another_agents_session_is_no_session() {
    let desk = Desk::new();
    let (a, b) = (Tool::remote(&add(&desk, "a", "write")), Tool::remote(&add(&desk, "b", "write")));
    let runs = a
        .with(|call| call.call_id = "run.of.a".to_owned())
        .background("echo mine; cat", json!({ "pty": true }));
    a.wait_for(&runs, "mine");
    let over = a.exec("echo mine", json!({})).session();
    let table = [
        ("poll", json!({})),
        ("poll", json!({ "timeout": 30_000 })),
        ("wait", json!({ "pattern": "mine" })),
        ("log", json!({})),
        ("log", json!({ "raw": true })),
        ("search", json!({ "pattern": "mine" })),
        ("screen", json!({})),
        ("write", json!({ "data": "x", "eof": true })),
        ("send-keys", json!({ "keys": ["C-c"] })),
        ("submit", json!({})),
        ("paste", json!({ "text": "x" })),
        ("signal", json!({ "signal": "KILL" })),
        ("resize", json!({ "cols": 10, "rows": 10 })),
        ("lease", json!({ "onDisconnect": "kill" })),
        ("kill", json!({})),
        ("clear", json!({})),
        ("remove", json!({})),
    ];
    for (action, more) in table {
        let unknown = anonymous(&b.process(action, "no-such", more.clone()), "no-such");
        assert_eq!(unknown.1["code"], "UNKNOWN_SESSION", "{action}: {unknown:?}");
        for name in [runs.as_str(), &over, "run.of.a", &runs[..runs.len() - 1]] {
            let answer = anonymous(&b.process(action, name, more.clone()), name);
            assert_eq!(answer, unknown, "{action} {name}");
        }
    }
    b.ask(json!({ "tool": "process", "action": "list" })).has(json!({ "sessions": [] }));
    // None of it did anything.
    a.process("poll", &runs, json!({})).has(json!({ "status": "running", "onDisconnect": null }));
    a.process("lease", &runs, json!({})).has(json!({ "onDisconnect": "keep" }));
    a.process("log", &over, json!({})).has(json!({ "output": "mine" }));
}

#[test]
fn another_agents_session_is_no_session_for_people_either() {
    let desk = Desk::new();
    let (a, b) = (add(&desk, "a", "write"), add(&desk, "b", "write"));
    let id = Tool::remote(&a).background("sleep 600", json!({}));
    let b = b.display().to_string();
    let as_b = |args: &[&str]| {
        desk.bed.gateway_cli(["--identity", b.as_str()].into_iter().chain(args.iter().copied()))
    };
    assert!(!as_b(&["sessions"]).ok().stdout_text().contains(&id));
    assert_eq!(as_b(&["sessions", "--json"]).json()["sessions"], json!([]));
    for verb in ["attach", "kill"] {
        let (theirs, unknown) = (as_b(&[verb, &id]), as_b(&[verb, "no-such"]));
        theirs.refused(2, "UNKNOWN_SESSION");
        let told = |stderr: &str, name: &str| stderr.replace(name, "NAME");
        assert_eq!(
            (told(&theirs.stderr, &id), theirs.ended, theirs.stdout),
            (told(&unknown.stderr, "no-such"), unknown.ended, unknown.stdout),
            "{verb}"
        );
    }
    Tool::remote(&a).process("poll", &id, json!({})).has(json!({ "status": "running" }));
}

#[test]
fn nobody_speaks_for_another_agent_but_an_admin() {
    let desk = Desk::new();
    let (a, b) = (Tool::remote(&add(&desk, "a", "write")), Tool::remote(&add(&desk, "b", "write")));
    let admin = Tool::remote(&add(&desk, "c", "admin"));
    let id = a.background("sleep 600", json!({}));
    let look = json!({ "tool": "process", "action": "poll", "sessionId": id });
    let as_a = |tool: &Tool| tool.with(|call| call.agent_id = "a".to_owned());
    for call in [look.clone(), json!({ "tool": "exec", "command": "true" })] {
        let refused = as_a(&b).open(call).expect_err("it must not speak for `a`");
        assert_eq!(refused.code.as_str(), "PERMISSION_DENIED", "{refused:?}");
        assert!(refused.hint.is_some(), "{refused:?}");
    }
    as_a(&a).ask(look.clone()).has(json!({ "status": "running" }));
    as_a(&admin).ask(look.clone()).has(json!({ "status": "running" }));
    as_a(&desk.tool).ask(look.clone()).has(json!({ "status": "running" }));
    admin.ask(look).has(json!({ "status": "failed", "code": "UNKNOWN_SESSION" }));
    let reader = Tool::remote(&add(&desk, "a", "read"));
    let refused =
        reader.open(json!({ "tool": "process", "action": "list" })).expect_err("reading is not calling");
    assert_eq!(refused.code.as_str(), "PERMISSION_DENIED", "{refused:?}");
}

#[test]
fn agents_have_two_sessions_under_one_roof() {
    let desk = Desk::new();
    let agent = |id: &str| desk.tool.with(|call| call.agent_id = id.to_owned());
    let (a, b) = (agent("a"), agent("b"));
    let ids = [&a, &b, &a].map(|tool| tool.background("sleep 600", json!({})));
    let listed = |tool: &Tool| {
        let listed = tool.ask(json!({ "tool": "process", "action": "list" }));
        let sessions = listed["sessions"].as_array().unwrap();
        sessions.iter().map(|s| s["sessionId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&a), [ids[2].as_str(), &ids[0]]);
    assert_eq!(listed(&b), [ids[1].as_str()]);
    assert_eq!(listed(&desk.tool), [] as [&str; 0]);
}

/// A kill by run id reaches nobody else's run, started or not.
#[test]
fn a_run_that_was_cancelled_before_it_started_is_its_agents_own() {
    let desk = Desk::new();
    let (a, b) = (add(&desk, "a", "write"), add(&desk, "b", "write"));
    let cancel = |desk: &Desk, who: &PathBuf, run: &str| {
        let who = who.display().to_string();
        desk.bed
            .gateway_cli(["--identity", &who, "kill", run, "--node", "n", "--before-start"])
            .ok()
            .stdout_text()
    };
    let named = |run: &str| {
        let run = run.to_owned();
        move |call: &mut proto::v1::ToolCall| call.call_id = run
    };
    let runs = Tool::remote(&a).with(named("a.runs")).background("sleep 600", json!({}));
    assert!(cancel(&desk, &b, "a.runs").contains("has not started"));
    Tool::remote(&a).process("poll", &runs, json!({})).has(json!({ "status": "running" }));

    let ran = desk.bed.path("ran");
    let command = format!("echo $0 >> {}", ran.display());
    cancel(&desk, &b, "later");
    cancel(&desk, &a, "soon");
    for restarted in [false, true] {
        if restarted {
            desk.node.stop(e2e::Sig::Kill);
            desk.node.restart();
            desk.node.wait_connected(1);
        }
        let soon = Tool::remote(&a).with(named("soon")).exec(&command, json!({}));
        assert!(soon.is_error && soon["error"]["code"] == "CANCELLED", "{soon:?}");
    }
    assert!(!ran.exists(), "nothing ran");
    // What another agent cancelled is another run.
    Tool::remote(&a).with(named("later")).exec(&command, json!({})).has(json!({ "status": "completed" }));
    assert!(ran.exists());
}
