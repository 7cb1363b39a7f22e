//! Sessions that outlive their caller, callers that outlive their patience,
//! and what a command leaves behind.

use std::time::Duration;

use e2e::{Ended, PATIENCE, Reading, Sig, TestBed, eventually, proc};

/// An argument that no other process of this machine has.
fn unique(bed: &TestBed) -> String {
    format!("300.{}", bed.address().port())
}

#[track_caller]
fn gone(argument: &str) {
    eventually(PATIENCE, || {
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

#[test]
fn a_detached_command_is_attached_to_and_killed() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let script = "echo first; read line; echo got $line; sleep 600";
    let id = bed.exec(["--detach", "--stdin", "--shell", "--", script]).ok().stdout_text().trim().to_owned();
    let mut attached = bed.spawn_cli(["attach", &id, "--stdin"], Reading::Now);
    attached.wait_stdout("first\n");
    attached.write(b"hello\n");
    attached.wait_stdout("got hello\n");
    // Who leaves does not end it.
    drop(attached);
    let listed = bed.gateway_cli(["sessions"]).ok().stdout_text();
    assert!(listed.contains(&id) && listed.contains("running"), "{listed}");
    let mut again = bed.spawn_cli(["attach", &id], Reading::Now);
    again.wait_stdout("got hello\n");
    bed.gateway_cli(["kill", &id]).ok();
    let outcome = again.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (143, "first\ngot hello\n"), "{outcome:?}");
    bed.gateway_cli(["kill", &id]).refused(2, "SESSION_ENDED");
    bed.gateway_cli(["attach", "no-such"]).refused(2, "UNKNOWN_SESSION").hinted();
    // Ended and still readable, with its own exit.
    let outcome = bed.gateway_cli(["attach", &id]);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (143, "first\ngot hello\n"));
}

#[test]
fn a_killed_client_ends_a_foreground_command_only() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let sleep = unique(&bed);
    let mut client =
        bed.spawn_cli(["exec", "--", "sh", "-c", &format!("echo up; sleep {sleep}")], Reading::Now);
    client.wait_stdout("up\n");
    there(&sleep);
    client.signal(Sig::Kill);
    gone(&sleep);

    let id = bed.exec(["--detach", "--", "sleep", &sleep]).ok().stdout_text().trim().to_owned();
    there(&sleep);
    let mut follower = bed.spawn_cli(["attach", &id, "--json"], Reading::Now);
    follower.wait_stdout("started");
    follower.signal(Sig::Kill);
    assert_eq!(follower.finish(PATIENCE).ended, Ended::Signal(9));
    // A command behind the follower's in the same queue has been served since.
    bed.exec(["--", "true"]).ok();
    there(&sleep);
    bed.gateway_cli(["kill", &id]).ok();
    gone(&sleep);
}

#[test]
fn ctrl_c_is_the_commands_to_take() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let script = "trap 'echo caught; exit 9' INT; echo up; while :; do sleep 0.1; done";
    let mut client = bed.spawn_cli(["exec", "--shell", "--", script], Reading::Now);
    client.wait_stdout("up\n");
    client.signal(Sig::Int);
    let outcome = client.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (9, "up\ncaught\n"), "{outcome:?}");

    let mut stubborn = bed.spawn_cli(["exec", "--", &e2e::helper("ignore-term")], Reading::Now);
    stubborn.wait_stdout("ready\n");
    stubborn.signal(Sig::Int);
    // The second one insists. The first must have been seen, or both count as
    // one; a round trip through the client's own process shows that it was.
    bed.exec(["--", "true"]).ok();
    stubborn.signal(Sig::Int);
    assert_eq!(stubborn.finish(PATIENCE).code(), 137);
}

#[test]
fn what_a_command_leaves_behind_ends_with_its_session() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let sleep = unique(&bed);
    let text = format!("sleep {sleep} & setsid sleep {sleep} & echo started");
    let outcome = bed.exec(["--json", "--shell", "--", &text]);
    assert_eq!(outcome.code(), 0, "{outcome:?}");
    gone(&sleep);
    let lines = outcome.json_lines();
    let exit = lines.last().unwrap();
    assert_eq!((&exit["exitCode"], &exit["leftoversKilled"]), (&0.into(), &2.into()), "{exit}");
}

#[test]
fn the_same_run_id_runs_once() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let file = bed.path("count");
    let text = format!("echo x >> {}", file.display());
    for _ in 0..3 {
        bed.exec(["--run-id", "job.1", "--shell", "--", &text]).ok();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    bed.exec(["--run-id", "job.1", "--", "true"]).refused(77, "RUN_ID_CONFLICT").hinted();
}

#[test]
fn a_client_that_is_killed_while_the_node_is_frozen_leaves_no_orphan() {
    /// Larger than anything else that the gateway sends to an idle node.
    const PAD: usize = 20_000;
    let bed = TestBed::new();
    let node = bed.node("n");
    let sleep = unique(&bed);
    node.signal(Sig::Stop);
    let pad = format!("PAD={}", "x".repeat(PAD));
    let client =
        bed.spawn_cli(["exec", "--run-id", "orphan", "--env", &pad, "--", "sleep", &sleep], Reading::Now);
    // The request is at the node, which does not read it yet.
    eventually(PATIENCE, || {
        let unread = proc::unread(node.pid());
        if unread > PAD as u64 { Ok(()) } else { Err(format!("{unread} bytes; {}", client.stderr())) }
    });
    client.signal(Sig::Kill);
    assert_eq!(client.finish(PATIENCE).ended, Ended::Signal(9));
    node.signal(Sig::Cont);
    eventually(Duration::from_secs(10), || {
        let listed = bed.gateway_cli(["sessions", "--json"]).json();
        let found = listed["sessions"].as_array().unwrap().iter().find(|s| s["runId"] == "orphan");
        match found {
            Some(session) if session["status"] == "ended" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    gone(&sleep);
}
