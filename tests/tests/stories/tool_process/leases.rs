//! Who looks after a session, and what becomes of it when nobody does.

use std::time::Duration;

use e2e::{Desk, PATIENCE, Reading, Sig, Tool, eventually, proc};
use serde_json::json;

/// How long a foreground command waits for its reader to come back, with room for a busy machine.
const LINK_GRACE: Duration = Duration::from_secs(75);

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

#[test]
fn a_lease_ends_without_contact_and_says_when() {
    let desk = Desk::new();
    let sleep = desk.unique(330);
    let command = format!("echo up; sleep {sleep}");
    let id = desk.tool.background(&command, json!({ "onDisconnect": "keep-for:3s" }));
    there(&sleep);
    let listed = desk.tool.ask(json!({ "tool": "process", "action": "list" }));
    let entry = &listed["sessions"][0];
    assert_eq!((&entry["sessionId"], &entry["onDisconnect"]), (&json!(id), &json!("keep-for:3s")), "{entry}");
    assert!(entry["endsAt"].as_u64() > entry["startedAt"].as_u64(), "{entry}");
    // Nobody asks.
    gone(Duration::from_secs(10), &sleep);
    let ended = desk.tool.end(&id);
    assert_ne!(ended["exitReason"], "exit", "{ended:?}");
    ended.has(json!({ "aggregated": "up\n", "exitSignal": 15 }));
}

#[test]
fn who_looks_in_keeps_it_and_who_takes_it_over_keeps_it_for_good() {
    let desk = Desk::new();
    let sleeps = [desk.unique(331), desk.unique(332)];
    let [kept, left] = sleeps.clone().map(|sleep| {
        desk.tool.background(&format!("sleep {sleep}"), json!({ "onDisconnect": "keep-for:4s" }))
    });
    let (log, keep) = (json!({}), json!({ "onDisconnect": "keep" }));
    desk.tool.process("lease", &kept, log).has(json!({ "status": "running", "onDisconnect": "keep-for:4s" }));
    let taken = desk.tool.process("lease", &kept, keep);
    taken.has(json!({ "status": "running", "onDisconnect": "keep", "endsAt": null }));
    // Two polls within each time of the other one.
    for _ in 0..4 {
        let poll = desk.tool.process("poll", &left, json!({ "timeout": 2000 }));
        poll.has(json!({ "status": "running" }));
    }
    // Then nobody; the one that was taken over is still there.
    gone(Duration::from_secs(12), &sleeps[1]);
    assert_eq!(proc::with_argument(&sleeps[0]).len(), 1);
    let back = desk.tool.process("lease", &kept, json!({ "onDisconnect": "keep-for:1s" }));
    back.has(json!({ "onDisconnect": "keep-for:1s" }));
    gone(Duration::from_secs(10), &sleeps[0]);
    let wrong = desk.tool.process("lease", &kept, json!({ "onDisconnect": "for-ever" }));
    wrong.has(json!({ "status": "failed", "code": "INVALID_REQUEST" }));
}

/// A gateway and a caller that are both killed: what was in the foreground ends by itself, what was behind goes on.
///
/// The slow one of the stories: the node waits a minute for them.
#[test]
fn a_foreground_command_whose_caller_and_gateway_died_ends_by_itself() {
    let mut desk = Desk::new();
    let sleeps = [desk.unique(333), desk.unique(334), desk.unique(335)];
    let call = |sleep: &str, more: serde_json::Value| {
        let mut call =
            json!({ "tool": "exec", "command": format!("echo up; sleep {sleep}"), "yieldMs": 110_000 });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call.to_string()
    };
    let (plain, keeps) = (call(&sleeps[0], json!({})), call(&sleeps[1], json!({ "onDisconnect": "keep" })));
    let mut callers: Vec<_> = [&plain, &keeps]
        .map(|call| desk.bed.spawn_cli(["tool", "--updates", call], Reading::Now))
        .into_iter()
        .collect();
    for caller in &mut callers {
        caller.wait_stdout("up");
    }
    let behind = desk.tool.background(&format!("sleep {}", sleeps[2]), json!({}));
    sleeps.iter().for_each(|sleep| there(sleep));
    desk.bed.gateway().signal(Sig::Stop);
    for caller in callers {
        caller.signal(Sig::Kill);
        caller.finish(PATIENCE);
    }
    desk.bed.stop_gateway(Sig::Kill);
    // A link that is lost kills nothing; once it is back, whoever is not back with it is gone.
    desk.bed.start_gateway();
    desk.node.wait_connected(2);
    gone(LINK_GRACE, &sleeps[0]);
    assert_eq!([1, 2].map(|n: usize| proc::with_argument(&sleeps[n]).len()), [1, 1]);
    let tool = Tool::of(&desk.bed);
    tool.process("poll", &behind, json!({})).has(json!({ "status": "running" }));
    let listed = tool.ask(json!({ "tool": "process", "action": "list" }));
    let states: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|s| s["status"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "running").count(), 2, "{listed:?}");
}
