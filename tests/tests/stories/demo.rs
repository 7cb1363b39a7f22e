//! `gateway demo`: the way from nothing to a command on a node, in one line.

use e2e::{GatewayOptions, PATIENCE, TestBed, eventually};

#[test]
fn the_demo_shows_the_commands_output_and_exit() {
    let bed = TestBed::dark(GatewayOptions::default());
    let outcome = bed.gateway_cli(["demo", "--", "printf", "hello\\n"]);
    assert_eq!(outcome.ok().stdout, b"hello\n");
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("came back with exit code 0"), "{lines:?}");

    let outcome = bed.gateway_cli(["demo", "--", "false"]);
    assert_eq!((outcome.code(), outcome.stdout.as_slice()), (1, &b""[..]), "{outcome:?}");
    assert!(outcome.stderr.contains("came back with exit code 1"), "{}", outcome.stderr);

    // Nothing is left: no process, no directory.
    eventually(PATIENCE, || {
        let left = bed.processes();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    let left: Vec<_> = std::fs::read_dir(bed.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["home"]);
}

#[test]
fn the_demo_does_not_claim_to_have_run_what_is_not_there() {
    let bed = TestBed::dark(GatewayOptions::default());
    let outcome = bed.gateway_cli(["demo", "--", "no-such-program-anywhere"]);
    assert_eq!((outcome.code(), outcome.stdout.as_slice()), (127, &b""[..]), "{outcome:?}");
    assert!(!outcome.stderr.contains("` ran on"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no-such-program-anywhere"), "{}", outcome.stderr);
}
