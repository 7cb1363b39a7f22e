//! Cases from the field that no other story has.

use std::time::{Duration, Instant};

use e2e::{Desk, Sig, Tool, block_on, eventually, proc};
use proto::v1 as pb;
use serde_json::json;

/// Until something is there.
const PATIENCE: Duration = Duration::from_secs(30);

/// The ends that wait for the main agent's session `key`; `taken` and those before it go.
fn take(desk: &Desk, key: &str, taken: u64) -> Vec<(u64, String)> {
    let request =
        pb::TakeEventsRequest { session_key: key.to_owned(), taken, ..pb::TakeEventsRequest::default() };
    let reply = block_on(async { desk.bed.tools().await.take_events(request).await.unwrap().into_inner() });
    reply.notices.into_iter().map(|notice| (notice.seq, notice.text)).collect()
}

/// F128: an end that nobody waited for is kept until it is read, over a restart of the gateway, with code and output.
/// F129: one that a poll saw is told to nobody.
#[test]
fn an_end_is_kept_until_it_is_read_and_told_once() {
    let mut desk = Desk::new();
    let tool = |desk: &Desk| Tool::of(&desk.bed).with(|call| call.session_key = "chat".to_owned());
    let quiet = tool(&desk).background("echo done; exit 3", json!({}));
    let ends = eventually(PATIENCE, || {
        let ends = take(&desk, "chat", 0);
        if ends.is_empty() { Err("no end yet".to_owned()) } else { Ok(ends) }
    });
    let text = format!("Exec completed ({}, code 3) :: done", &quiet[..8.min(quiet.len())]);
    assert_eq!(ends.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), [text.as_str()]);
    desk.bed.stop_gateway(Sig::Kill);
    desk.bed.start_gateway();
    desk.node.wait_connected(2);
    assert_eq!(take(&desk, "chat", 0), ends, "not taken, so still there");
    assert_eq!(take(&desk, "chat", ends[0].0), []);
    assert_eq!(take(&desk, "chat", 0), [], "once");

    let seen = tool(&desk).background("read line; echo $line", json!({ "stdin": true }));
    tool(&desk).process("write", &seen, json!({ "data": "x\n" }));
    let polled = tool(&desk).process("wait", &seen, json!({ "timeout": 30_000 }));
    polled.has(json!({ "reason": "exit", "aggregated": "x\n" }));
    assert_eq!(take(&desk, "chat", 0), []);
}

/// F119: a kill while only leftovers are there ends them, or says how the command ended.
#[test]
fn a_kill_in_the_drain_window_kills_or_says_the_code() {
    let desk = Desk::new();
    let sleep = desk.unique(313);
    for _ in 0..5 {
        let id = desk.tool.background(&format!("sleep {sleep} & exit 5"), json!({}));
        let killed = desk.tool.process("kill", &id, json!({}));
        let said = killed["status"] == "completed" || killed["code"] == "SESSION_ENDED";
        assert!(said, "{killed:?}");
        desk.tool.end(&id);
        eventually(Duration::from_secs(2), || {
            let left = proc::with_argument(&sleep).len();
            if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
        });
    }
}

/// F124: while its node is away a call is told so at once; F111, F177: what ran is found when it is back.
#[test]
fn a_call_does_not_wait_for_a_node_that_is_away() {
    let desk = Desk::new();
    let id = desk.tool.background("echo before; sleep 600", json!({}));
    desk.tool.wait_for(&id, "before");
    desk.node.stop(Sig::Kill);
    eventually(PATIENCE, || {
        let started = Instant::now();
        let refused = desk.tool.exec("true", json!({}));
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
        if refused["error"]["code"] == "NODE_OFFLINE" { Ok(()) } else { Err(format!("{refused:?}")) }
    });
    desk.node.restart();
    desk.node.wait_connected(1);
    desk.tool.process("log", &id, json!({})).has(json!({ "status": "running", "output": "before" }));
    desk.tool.process("kill", &id, json!({}));
    desk.tool.end(&id).has(json!({ "exitReason": "manual-cancel" }));
}

/// F202: terminals are given back, however their sessions end.
#[test]
fn no_terminal_stays_open() {
    let desk = Desk::new();
    for round in 0..20 {
        desk.tool.exec(&format!("echo {round}"), json!({ "pty": true })).has(json!({ "exitCode": 0 }));
        let killed = desk.tool.background("sleep 600", json!({ "pty": true }));
        desk.tool.process("kill", &killed, json!({}));
        desk.tool.end(&killed);
        desk.tool.exec("sleep 600", json!({ "pty": true, "timeout": 0.1 })).has(json!({ "timedOut": true }));
    }
    let launcher = desk.node.launcher().pid;
    let mut family = vec![desk.node.pid(), launcher];
    family.extend(proc::descendants(launcher).iter().map(|process| process.pid));
    eventually(PATIENCE, || {
        let open =
            family.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten());
        let masters = open
            .flatten()
            .filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.ends_with("ptmx")))
            .count();
        if masters == 0 { Ok(()) } else { Err(format!("{masters} terminals are open")) }
    });
}
