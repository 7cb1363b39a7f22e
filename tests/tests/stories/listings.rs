//! Lists whose reader leaves, and lists that cannot be complete.

use std::io::Read as _;
use std::process::Stdio;

use e2e::{Ended, PATIENCE, Sig, TestBed, eventually, helper};

/// Runs a client command whose stdout nobody reads.
fn into_a_broken_pipe(bed: &TestBed, args: &[&str]) -> (Ended, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = bed.cli_command(args.iter().copied());
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    drop(reader);
    let mut child = command.spawn().unwrap();
    // What the command holds open of ours ends with it.
    drop(command);
    let ended = eventually(PATIENCE, || match child.try_wait() {
        Ok(Some(status)) => Ok(Ended::from(status)),
        other => Err(format!("{args:?}: {other:?}")),
    });
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (ended, stderr)
}

#[test]
fn a_reader_that_leaves_is_no_defect() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    bed.exec(["--", "true"]).ok();
    let table: [&[&str]; 9] = [
        &["sessions"],
        &["sessions", "--json"],
        &["nodes", "list"],
        &["nodes", "list", "--json"],
        &["nodes", "describe", "n"],
        &["nodes", "pending"],
        &["operators", "list"],
        &["status"],
        &["exec", "--detach", "--", "true"],
    ];
    for args in table {
        let (ended, stderr) = into_a_broken_pipe(&bed, args);
        assert!(!stderr.contains("panic"), "{args:?}: {stderr}");
        // A shell shows death by SIGPIPE as 141 too.
        let fine = [Ended::Code(0), Ended::Code(141), Ended::Signal(13)];
        assert!(fine.contains(&ended), "{args:?}: {ended:?} {stderr}");
    }
    // Output that nobody reads ends its command.
    let (ended, stderr) = into_a_broken_pipe(&bed, &["exec", "--", &helper("emit"), "10000000"]);
    assert!(!stderr.contains("panic"), "{stderr}");
    assert!([Ended::Code(141), Ended::Signal(13)].contains(&ended), "{ended:?} {stderr}");
}

#[test]
fn a_session_of_an_offline_node_is_not_called_unknown() {
    let bed = TestBed::new();
    let (away, _here) = (bed.node("away"), bed.node("here"));
    let detached = ["exec", "--node", "away", "--detach", "--", "sleep", "600"];
    let id = bed.gateway_cli(detached).ok().stdout_text().trim().to_owned();
    away.stop(Sig::Term);
    eventually(PATIENCE, || {
        let connected = bed.connected();
        if connected == ["here"] { Ok(()) } else { Err(format!("{connected:?}")) }
    });
    for args in [
        &["attach", &id][..],
        &["kill", &id],
        &["attach", &id, "--node", "away"],
        &["kill", &id, "--node", "away"],
    ] {
        let outcome = bed.gateway_cli(args.iter().copied());
        outcome.refused(69, "NODE_OFFLINE").hinted();
        assert!(outcome.stderr.contains("away"), "{args:?}: {}", outcome.stderr);
    }
    for args in [&["sessions"][..], &["sessions", "--json"]] {
        let listed = bed.gateway_cli(args.iter().copied());
        let said = listed.ok().stderr.lines().any(|line| line.contains("away") && line.contains("could not"));
        assert!(said, "{args:?}: {}", listed.stderr);
        assert!(!listed.stdout_text().contains(&id), "{args:?}: {}", listed.stdout_text());
    }
    // It went on, and can be ended once its node is back.
    away.restart();
    away.wait_connected(1);
    bed.gateway_cli(["kill", &id]).ok();
}
