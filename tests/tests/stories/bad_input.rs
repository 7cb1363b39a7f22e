//! Set-ups that cannot work: each ends with a code, a sentence and a hint.

use std::process::Command;

use e2e::{GatewayOptions, Outcome, Reading, Sig, TestBed};

/// Runs `gateway serve` in a bed until it gives up.
fn serve(bed: &TestBed, listen: &str) -> Outcome {
    bed.gateway_cli(["serve", "--listen", listen])
}

#[test]
fn ports_and_state_directories_that_are_taken() {
    let bed = TestBed::new();
    let other = TestBed::dark(GatewayOptions::default());
    serve(&other, &bed.address().to_string()).refused(69, "PORT_IN_USE").hinted();
    serve(&bed, "127.0.0.1:0").refused(69, "ALREADY_RUNNING").hinted();
    // The one that was there is untouched.
    bed.gateway_cli(["status"]).ok();
}

#[test]
fn two_node_hosts_in_one_state_directory() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let outcome = node_host(&bed, node.dir(), &["--gateway", "127.0.0.1:1"]);
    assert_eq!(outcome.code(), 69, "{outcome:?}");
    assert!(outcome.stderr.contains("ALREADY_RUNNING"), "{}", outcome.stderr);
    outcome.hinted();
}

#[test]
fn a_store_that_cannot_be_read() {
    let mut bed = TestBed::new();
    bed.stop_gateway(Sig::Term);
    let db = bed.gateway_dir().join("gateway/gateway.db");
    for tail in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{tail}", db.display()));
    }
    std::fs::write(&db, "this is no database, and it is longer than a header").unwrap();
    serve(&bed, "127.0.0.1:0").refused(70, "STORE_UNREADABLE").hinted();
    assert!(std::fs::read(&db).unwrap().starts_with(b"this is no database"), "it was not overwritten");
}

#[test]
fn a_state_directory_of_another_product() {
    let bed = TestBed::dark(GatewayOptions::default());
    let foreign = bed.gateway_dir().join("state");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("openclaw.sqlite"), "").unwrap();
    serve(&bed, "127.0.0.1:0").refused(69, "STATE_DIR_FOREIGN").hinted();
    bed.gateway_cli(["status"]).refused(69, "STATE_DIR_FOREIGN").hinted();
    let outcome = node_host(&bed, &bed.gateway_dir(), &["--gateway", "127.0.0.1:1"]);
    assert_eq!(outcome.code(), 69, "{outcome:?}");
    assert!(outcome.stderr.contains("STATE_DIR_FOREIGN"), "{}", outcome.stderr);
    outcome.hinted();
    assert_eq!(std::fs::read_dir(bed.gateway_dir()).unwrap().count(), 1, "something was written there");
}

#[test]
fn names_that_mean_nothing() {
    let bed = TestBed::new();
    bed.exec(["--node", "x", "--", "true"]).refused(2, "UNKNOWN_NODE").hinted();
    bed.exec(["--", "true"]).refused(69, "NO_NODE").hinted();
    let outcome = bed.exec(["--host", "build-box", "--", "true"]);
    outcome.refused(2, "UNKNOWN_HOST").hinted();
    assert!(outcome.stderr.contains("host=node node=build-box"), "{}", outcome.stderr);
    bed.gateway_cli(["nodes", "approve", "nope"]).refused(2, "UNKNOWN_REQUEST").hinted();
    bed.gateway_cli(["nodes", "remove", "nope"]).refused(2, "UNKNOWN_NODE").hinted();
    let outcome = bed.exec(["--env", "NOEQUALS", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
}

#[test]
fn nobody_serves() {
    let bed = TestBed::dark(GatewayOptions::default());
    bed.gateway_cli(["status"]).refused(69, "GATEWAY_UNREACHABLE").hinted();
    bed.exec(["--", "true"]).refused(69, "GATEWAY_UNREACHABLE").hinted();
    let outcome = node_host(&bed, &bed.path("fresh"), &[]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("INVALID_REQUEST"), "{}", outcome.stderr);
    outcome.hinted();
}

/// Runs `node-host run` until it gives up.
fn node_host(bed: &TestBed, state: &std::path::Path, args: &[&str]) -> Outcome {
    let binary = bed.cli_command([]).get_program().to_os_string();
    let binary = std::path::Path::new(&binary).with_file_name("node-host");
    let mut command: Command = bed.command(&binary);
    command.arg("run").args(args).arg("--state-dir").arg(state);
    e2e::Running::of(command, Reading::Now).finish(e2e::PATIENCE)
}
