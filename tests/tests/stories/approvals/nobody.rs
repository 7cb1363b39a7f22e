//! Calls of agents that show nothing to a person: whether anybody can be asked depends on who watches.

use std::time::Duration;

use e2e::{Followed, Session, argv_request, block_on, measured};
use fault::{ErrorCode, Fault};
use proto::v1::client_frame::Frame;

use super::*;

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
