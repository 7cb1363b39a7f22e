//! A person is asked: waiting, answering, leaving, restarting, keeping rules.

use std::path::PathBuf;

use e2e::{Node, Outcome, PATIENCE, Reading, Running, Sig, TestBed, eventually};
use serde_json::Value;

const ASKS: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#;

struct Asked {
    bed: TestBed,
    node: Node,
    /// Gets a line whenever the tool runs.
    ran: PathBuf,
    tool: String,
}

fn private(path: &std::path::Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

impl Asked {
    fn new() -> Self {
        let bed = TestBed::new();
        let node = bed.node("n");
        private(&node.approvals(), ASKS, 0o600);
        let (ran, tool) = (bed.path("ran"), bed.path("tool"));
        private(
            &tool,
            &format!("#!/bin/sh\necho \"$1\" >> {}\necho \"out $1\"\nexit 3\n", ran.display()),
            0o755,
        );
        Self { node, ran, tool: tool.display().to_string(), bed }
    }

    fn wrote(&self) -> Vec<String> {
        std::fs::read_to_string(&self.ran).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// `gateway exec` of the tool with these flags and this argument.
    fn exec(&self, flags: &[&str], word: &str) -> Running {
        let args = ["exec"].into_iter().chain(flags.iter().copied()).chain(["--", &self.tool, word]);
        self.bed.spawn_cli(args.collect::<Vec<_>>(), Reading::Now)
    }

    fn approvals(&self, args: &[&str]) -> Outcome {
        self.bed.gateway_cli(["approvals"].into_iter().chain(args.iter().copied()))
    }

    fn pending(&self) -> Vec<Value> {
        self.approvals(&["pending", "--json"]).json()["approvals"].as_array().unwrap().clone()
    }

    /// The ids of the cards, once there are so many.
    fn cards(&self, count: usize) -> Vec<String> {
        eventually(PATIENCE, || {
            let open = self.pending();
            let ids = open.iter().map(|card| card["approvalId"].as_str().unwrap().to_owned());
            if open.len() == count { Ok(ids.collect()) } else { Err(format!("{open:?}")) }
        })
    }

    fn history(&self) -> Vec<Value> {
        self.approvals(&["history", "--json"]).json()["approvals"].as_array().unwrap().clone()
    }

    fn events(&self) -> Vec<Value> {
        self.bed.gateway_cli(["events", "--json"]).json_lines()
    }

    fn audited(&self, kind: &str) -> usize {
        let listed = self.bed.gateway_cli(["audit", "list", "--json", "--kind", kind]);
        listed.ok().json_lines().len()
    }
}

#[test]
fn a_command_waits_for_a_yes_and_runs_once() {
    let a = Asked::new();
    let waiting = a.exec(&[], "once");
    let id = a.cards(1).remove(0);
    let shown = a.approvals(&["show", &id]).ok().stdout_text();
    for part in [&a.tool, "program ", "sha256:", "no entry allows", "allow-once"] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    assert!(a.wrote().is_empty());
    // A prefix in capitals is the same id.
    a.approvals(&["resolve", &id[..8].to_uppercase(), "allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (3, "out once\n"));
    // The same answer again is fine, another one is not, and nobody else's id is known.
    a.approvals(&["resolve", &id, "allow-once"]).ok();
    a.approvals(&["resolve", &id, "deny"]).refused(77, "APPROVAL_ALREADY_RESOLVED").hinted();
    a.approvals(&["resolve", "nobody", "deny"]).refused(2, "APPROVAL_NOT_FOUND").hinted();
    assert_eq!(a.wrote(), ["once"]);
    let record = a.history().remove(0);
    assert_eq!(record["decidedBy"], "local", "{record}");
    assert_eq!(record["decidedFrom"], "unix socket", "{record}");
    eventually(PATIENCE, || match a.audited("run.ended") {
        1 => Ok(()),
        other => Err(format!("{other} ends")),
    });
    for kind in ["approval.requested", "approval.decided", "run.started"] {
        assert_eq!(a.audited(kind), 1, "{kind}");
    }
    a.bed.gateway_cli(["audit", "verify"]).ok();
}

#[test]
fn a_no_is_said_with_its_id_and_nothing_runs() {
    let a = Asked::new();
    let waiting = a.exec(&[], "x");
    let id = a.cards(1).remove(0);
    a.approvals(&["resolve", "deny", &id]).ok();
    let outcome = waiting.finish(PATIENCE);
    outcome.refused(77, "SYSTEM_RUN_DENIED");
    let text = format!("Exec denied (node=n id={id}, user-denied): {} x", a.tool);
    assert!(outcome.stderr.contains(&text), "{outcome:?}");
    assert!(outcome.stdout.is_empty() && a.wrote().is_empty());
    let events = a.events();
    assert!(events.iter().any(|event| event["text"] == text.as_str()), "{events:?}");
}

#[test]
fn only_approvers_decide() {
    let a = Asked::new();
    let operator = |role: &str| {
        let file = a.bed.path(&format!("{role}.json")).display().to_string();
        a.bed.gateway_cli(["operators", "add", role, "--roles", role, "--out", &file]).ok();
        file
    };
    let (writer, approver) = (operator("write"), operator("approvals"));
    let waiting = a.bed.spawn_cli(["--identity", &writer, "exec", "--", &a.tool, "x"], Reading::Now);
    let id = a.cards(1).remove(0);
    let try_as =
        |file: &str| a.bed.gateway_cli(["--identity", file, "approvals", "resolve", &id, "allow-once"]);
    try_as(&writer).refused(77, "PERMISSION_DENIED").hinted();
    assert!(a.wrote().is_empty());
    try_as(&approver).ok();
    assert_eq!(waiting.finish(PATIENCE).code(), 3);
    let record = a.history().remove(0);
    assert_eq!(
        (record["decidedBy"].as_str(), record["requestedBy"].as_str()),
        (Some("approvals"), Some("write"))
    );
    a.bed.gateway_cli(["--identity", &approver, "exec", "--", "true"]).refused(77, "PERMISSION_DENIED");
}

#[test]
fn who_does_not_wait_hears_of_the_end() {
    let a = Asked::new();
    private(
        &a.bed.gateway_dir().join("openclaw.json"),
        "{tools:{exec:{approvalRunningNoticeMs:100}}}",
        0o600,
    );
    let outcome = a.exec(&["--no-wait"], "later").finish(PATIENCE);
    let id = outcome.ok().stdout_text().trim().to_owned();
    assert_eq!(a.cards(1), std::slice::from_ref(&id));
    a.approvals(&["resolve", &id, "allow-once"]).ok();
    let ended = eventually(PATIENCE, || {
        let events = a.events();
        let ended = events.iter().find(|e| e["text"].as_str().unwrap().starts_with("Exec finished")).cloned();
        ended.ok_or_else(|| format!("{events:?}"))
    });
    assert_eq!(ended["approvalId"], id.as_str());
    assert_eq!(ended["text"], format!("Exec finished (node=n id={id}, code 3)\nout later").as_str());
    assert_eq!(a.wrote(), ["later"]);
    // One that lasts is told of once.
    let outcome = a.bed.exec(["--no-wait", "--", "sleep", "600"]);
    let id = outcome.ok().stdout_text().trim().to_owned();
    a.approvals(&["resolve", &id, "allow-once"]).ok();
    let running =
        || a.events().iter().filter(|e| e["text"].as_str().unwrap().starts_with("Exec running")).count();
    eventually(PATIENCE, || if running() == 1 { Ok(()) } else { Err("no notice".to_owned()) });
    let sessions = a.bed.gateway_cli(["sessions", "--json"]).json();
    let session =
        sessions["sessions"].as_array().unwrap().iter().find(|s| s["status"] == "running").unwrap().clone();
    a.bed.gateway_cli(["kill", session["sessionId"].as_str().unwrap()]).ok();
    eventually(PATIENCE, || if a.events().len() >= 3 { Ok(()) } else { Err("no end".to_owned()) });
    assert_eq!(running(), 1);
}

#[test]
fn a_caller_that_leaves_takes_its_question_along() {
    let a = Asked::new();
    let waiting = a.exec(&[], "x");
    let id = a.cards(1).remove(0);
    waiting.signal(Sig::Kill);
    a.cards(0);
    a.approvals(&["resolve", &id, "allow-once"]).refused(77, "APPROVAL_CANCELLED").hinted();
    assert_eq!(a.history()[0]["reason"], "run-aborted");
    assert!(a.wrote().is_empty());
}

#[test]
fn a_restarted_gateway_closes_what_was_open() {
    for signal in [Sig::Kill, Sig::Term] {
        let mut a = Asked::new();
        let ids: Vec<_> = ["a", "b"]
            .map(|word| a.exec(&["--no-wait"], word).finish(PATIENCE).ok().stdout_text().trim().to_owned())
            .into();
        a.cards(2);
        a.bed.stop_gateway(signal);
        a.bed.start_gateway();
        assert!(a.pending().is_empty());
        for id in ids {
            a.approvals(&["resolve", &id, "allow-once"]).refused(77, "APPROVAL_CANCELLED");
        }
        for record in a.history() {
            assert_eq!(record["reason"], "gateway-restart", "{record}");
        }
        a.node.wait_connected(2);
        assert!(a.wrote().is_empty());
    }
}

#[test]
fn always_holds_as_far_as_was_said() {
    let a = Asked::new();
    let silent = |word: &str| a.exec(&["--no-ask"], word).finish(PATIENCE).code();
    let always = |word: &str, flags: &[&str]| {
        let waiting = a.exec(&[], word);
        let id = a.cards(1).remove(0);
        let args: Vec<&str> =
            ["resolve", &id, "allow-always"].into_iter().chain(flags.iter().copied()).collect();
        let said = a.approvals(&args).ok().stdout_text();
        assert_eq!(waiting.finish(PATIENCE).code(), 3);
        said
    };
    assert!(always("one", &["--scope", "args"]).contains(&a.tool));
    assert_eq!((silent("one"), silent("two")), (3, 77));
    always("three", &["--scope", "program", "--for", "2s"]);
    assert_eq!(silent("four"), 3);
    // The time passes.
    eventually(PATIENCE, || match silent("five") {
        77 => Ok(()),
        code => Err(code.to_string()),
    });
    // Two at one time are both kept.
    let waiting = ["six", "seven"].map(|word| a.exec(&[], word));
    let ids = a.cards(2);
    let answers: Vec<_> = ids
        .iter()
        .map(|id| {
            a.bed.spawn_cli(["approvals", "resolve", id, "allow-always", "--scope", "args"], Reading::Now)
        })
        .collect();
    answers.into_iter().for_each(|answer| _ = answer.finish(PATIENCE).ok());
    waiting.into_iter().for_each(|waiting| assert_eq!(waiting.finish(PATIENCE).code(), 3));
    assert_eq!((silent("six"), silent("seven"), silent("one")), (3, 3, 3));
    // Under ask=always nothing durable is offered.
    private(&a.node.approvals(), &ASKS.replace("on-miss", "always"), 0o600);
    let waiting = a.exec(&[], "one");
    let id = a.cards(1).remove(0);
    a.approvals(&["resolve", &id, "allow-always"]).refused(77, "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE").hinted();
    a.approvals(&["resolve", &id, "deny"]).ok();
    waiting.finish(PATIENCE).refused(77, "SYSTEM_RUN_DENIED");
}

#[test]
fn the_parts_of_a_pipeline_are_those_that_were_approved() {
    let a = Asked::new();
    let text = format!("{} x | tr a-z A-Z; sh {} y", a.tool, a.tool);
    let waiting = a.bed.spawn_cli(["exec", "--shell", "--", &text], Reading::Now);
    let id = a.cards(1).remove(0);
    a.approvals(&["resolve", &id, "allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (3, "OUT X\nout y\n"), "{outcome:?}");
    // What nobody can read is refused before anybody is asked.
    let long = "x".repeat(20_000);
    a.bed.exec(["--", &a.tool, &long]).refused(77, "EXEC_APPROVAL_COMMAND_DISPLAY_LIMIT").hinted();
    assert!(a.pending().is_empty());
}
