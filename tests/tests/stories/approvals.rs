//! The document that decides on a node, edited while it runs; and people whom it has asked.

mod always;
mod answers;
mod nobody;

use std::path::{Path, PathBuf};

use e2e::{Node, NodeOptions, Outcome, PATIENCE, Reading, RunAs, Sig, TestBed, eventually};
use serde_json::{Value, json};

/// The node's owner wants a person to be asked about whatever no rule allows.
const ASKS: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#;

fn write(node: &Node, text: &str) {
    std::fs::write(node.approvals(), text).unwrap();
    // As its own user would have written it.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(node.dir()).unwrap());
    std::os::unix::fs::chown(node.approvals(), Some(owner), None).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(node.approvals(), private).unwrap();
}

fn defaults(security: &str) -> String {
    format!(r#"{{"version":1,"defaults":{{"security":"{security}"}}}}"#)
}

fn the_document_rules(user: RunAs) {
    let bed = TestBed::new();
    let node = bed.invited("n", NodeOptions { user, ..NodeOptions::default() });
    node.wait_connected(1);
    let marker = node.dir().join("marker");
    let touch = || bed.exec(["--no-ask", "--", "touch", marker.to_str().unwrap()]);

    write(&node, &defaults("deny"));
    touch().refused(77, "SYSTEM_RUN_DISABLED").hinted();

    write(&node, &defaults("allowlist"));
    let outcome = touch();
    outcome.refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert!(outcome.stderr.contains("allowlist"), "{}", outcome.stderr);

    write(&node, "{\"version\":1,\n\"defaults\":{\"security\":\"full\",}}");
    let outcome = touch();
    outcome.refused(77, "APPROVALS_MALFORMED").hinted();
    assert!(outcome.stderr.contains("line 2"), "{}", outcome.stderr);

    write(&node, r#"{"version":1,"defaults":{"security":"fulll"}}"#);
    touch().refused(77, "APPROVALS_MALFORMED");
    write(&node, r#"{"version":1,"defaults":{"security":"full","ask":"always"}}"#);
    touch().refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert!(!marker.exists(), "something ran");

    // Live: the same node host, no restart.
    write(&node, &defaults("full"));
    touch().ok();
    assert!(marker.exists());
    std::fs::remove_file(node.approvals()).unwrap();
    bed.exec(["--", "true"]).ok();
    assert_eq!(node.connections(), 1);
}

#[test]
fn the_document_of_the_node_rules() {
    the_document_rules(RunAs::Same);
}

#[test]
fn the_document_of_a_plain_users_node_rules() {
    if rustix::process::geteuid().is_root() {
        the_document_rules(RunAs::Plain);
    }
}

#[test]
fn one_that_somebody_else_can_write_is_no_document() {
    let bed = TestBed::new();
    let node = bed.node("n");
    write(&node, &defaults("full"));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(node.approvals(), open).unwrap();
    bed.exec(["--", "true"]).refused(77, "APPROVALS_MALFORMED").hinted();
}

/// A script that leaves a line for each of its runs.
struct Tool {
    path: String,
    ran: PathBuf,
}

impl Tool {
    /// It prints `out` and its first argument, and ends with 3.
    fn new(bed: &TestBed) -> Self {
        let ran = bed.path("ran");
        let text = format!("#!/bin/sh\necho \"$1\" >> {}\necho \"out $1\"\nexit 3\n", ran.display());
        Self { path: bed.script("tool", &text), ran }
    }

    fn wrote(&self) -> Vec<String> {
        std::fs::read_to_string(&self.ran).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// A node that asks, and the tool that it asks about.
fn asking() -> (TestBed, Node, Tool) {
    let bed = TestBed::new();
    let node = bed.node("n");
    write(&node, ASKS);
    let tool = Tool::new(&bed);
    (bed, node, tool)
}

fn id(card: &Value) -> &str {
    card["approvalId"].as_str().unwrap()
}

fn resolve(bed: &TestBed, card: &Value, answer: &[&str]) -> Outcome {
    bed.gateway_cli(["approvals", "resolve", id(card)].into_iter().chain(answer.iter().copied()))
}

/// The members of an object that another one has.
fn picked(object: &Value, like: &Value) -> Value {
    let names = like.as_object().unwrap().keys();
    names.map(|name| (name.clone(), object[name].clone())).collect::<serde_json::Map<_, _>>().into()
}
