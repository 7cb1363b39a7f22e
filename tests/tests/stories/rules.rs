//! A node in allowlist mode: what its owner allows runs, as it was judged, and nothing else does.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use e2e::{Node, NodeOptions, PATIENCE, Reading, RunAs, TestBed, eventually};
use serde_json::Value;

const LISTED: &str = r#"{"version":1,"defaults":{"security":"allowlist"},
  "agents":{"*":{"allowlist":["seq","env","touch",{"pattern":"printf","argPattern":"^%s\\\\n ok$","match":["printf '%s\\n' ok"]}]}}}"#;

fn write(node: &Node, text: &str) {
    let (path, other) = (node.approvals(), node.approvals().with_extension("new"));
    std::fs::write(&other, text).unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(node.dir()).unwrap());
    std::os::unix::fs::chown(&other, Some(owner), None).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(other, path).unwrap();
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn listed(bed: &TestBed, user: RunAs) -> Node {
    let node = bed.invited("n", NodeOptions { user, ..NodeOptions::default() });
    node.wait_connected(1);
    write(&node, LISTED);
    node
}

fn allowed_commands_run(user: RunAs) {
    let bed = TestBed::new();
    let node = listed(&bed, user);
    let shell = |text: &str| bed.exec(["--shell", "--", text]);
    let out = |text: &str| shell(text).ok().stdout_text();
    assert_eq!(out("seq 3 | tail -n 1"), "3\n");
    assert_eq!(out("seq 3 |& tail -n 1 && printf '%s\\n' ok; seq 1"), "3\nok\n1\n");
    assert_eq!(out("! seq 1 || s\"e\"q 2 # all of it"), "1\n1\n2\n");
    assert_eq!(out("false || nice seq 2"), "1\n2\n");
    assert_eq!(out("bash -c 'seq 2 | head -n 1'"), "1\n");
    assert_eq!(bed.exec(["--", "seq", "2"]).ok().stdout_text(), "1\n2\n");

    let marker = node.dir().join("marker");
    let touch = format!("touch {}", marker.display());
    for text in [
        format!("seq 1; rm {}", marker.display()),
        format!("seq 1\nrm {}", marker.display()),
        format!("seq \"$({touch})\""),
        format!("seq `{touch}`"),
        format!("seq 1 > {}", marker.display()),
        format!("seq $\\\n({touch})"),
        format!("BASH_ENV=x {touch}"),
        format!("PATH=.; {touch}"),
        format!("eval {touch}"),
        format!("seq 1 | sh -c '{touch}; id'"),
        format!("bash -lc '{touch}'"),
        format!("{touch} &"),
        format!("touch {}*", marker.display()),
        "printf nope".to_owned(),
        "./seq 1".to_owned(),
    ] {
        shell(&text).refused(77, "SYSTEM_RUN_DENIED").hinted();
    }
    assert!(!marker.exists(), "something ran");
    shell(&touch).ok();
    assert!(marker.exists());
}

#[test]
fn pipelines_and_chains_of_allowed_commands_run_and_nothing_else() {
    allowed_commands_run(RunAs::Same);
}

#[test]
fn the_same_on_a_plain_users_node() {
    if rustix::process::geteuid().is_root() {
        allowed_commands_run(RunAs::Plain);
    }
}

fn planted_programs_do_not_run(user: RunAs) {
    let bed = TestBed::new();
    // A plain user must be able to look into it, and to leave its mark.
    let open = tempfile::tempdir().unwrap();
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let (planted, marker) = (open.path().join("planted"), open.path().join("marker"));
    std::fs::create_dir(&planted).unwrap();
    for name in ["head", "nice"] {
        script(&planted.join(name), &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    }
    std::os::unix::fs::symlink("/usr/bin/env", planted.join("nohup")).unwrap();
    let path = format!("{}:/usr/bin:/bin", planted.display());
    let env = vec![("PATH".to_owned(), path)];
    let node = bed.invited("n", NodeOptions { env, user, ..NodeOptions::default() });
    node.wait_connected(1);
    bed.exec(["--", "head"]).ok();
    std::fs::remove_file(&marker).unwrap();
    write(&node, LISTED);
    for text in ["seq 3 | head -n 1", "nice seq 1", "nohup seq 1"] {
        bed.exec(["--shell", "--", text]).refused(77, "SYSTEM_RUN_DENIED").hinted();
    }
    assert!(!marker.exists(), "the planted program ran");
    assert_eq!(bed.exec(["--shell", "--", "seq 3 | tail -n 1"]).ok().stdout_text(), "3\n");
}

#[test]
fn a_program_that_was_planted_on_path_is_another_program() {
    planted_programs_do_not_run(RunAs::Same);
}

#[test]
fn the_same_for_a_plain_users_path() {
    if rustix::process::geteuid().is_root() {
        planted_programs_do_not_run(RunAs::Plain);
    }
}

#[test]
fn variables_reach_a_plain_command_and_a_shell_gets_few_and_says_so() {
    let bed = TestBed::new();
    let _node = listed(&bed, RunAs::Same);
    let with = |text: &str| bed.exec(["--env", "FOO=x y", "--env", "LANG=C", "--shell", "--", text]);
    assert!(with("env").ok().stdout_text().contains("FOO=x y\n"));
    let wrapped = with("bash -c env");
    let text = wrapped.ok().stdout_text();
    assert!(!text.contains("FOO=") && text.contains("LANG=C\n"), "{text}");
    assert!(wrapped.stderr.contains("FOO"), "{}", wrapped.stderr);
    bed.exec(["--", "env", "NODE_OPTIONS=--require=./x", "node", "s.js"])
        .refused(77, "ENV_REJECTED")
        .hinted();
}

#[test]
fn the_owner_asks_why_adds_a_rule_and_it_runs() {
    let bed = TestBed::new();
    let node = listed(&bed, RunAs::Same);
    let denied = bed.exec(["--shell", "--", "seq 2 | tac"]);
    denied.refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert!(denied.stderr.contains("no entry allows `tac`"), "{}", denied.stderr);

    let why = bed.policy(&node, ["explain", "--json", "--", "seq 2 | tac"]);
    assert_eq!(why.code(), 77, "{}", why.stderr);
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!(why["verdict"], "denied", "{why}");
    let parts: Vec<_> =
        why["segments"].as_array().unwrap().iter().map(|part| part["satisfied"].clone()).collect();
    assert_eq!(parts, [Value::Bool(true), Value::Bool(false)]);
    let add = why["segments"][1]["add"].as_str().unwrap();
    let tac = add.rsplit(' ').next().unwrap().trim_end_matches('`');
    let words = bed.policy(&node, ["explain", "--", "seq 2 | tac"]).stdout_text();
    assert!(words.contains("1. seq 2") && words.contains("no entry allows `tac`"), "{words}");

    bed.policy(&node, ["allow", tac]).ok();
    assert_eq!(bed.exec(["--shell", "--", "seq 2 | tac"]).ok().stdout_text(), "2\n1\n");
    // The use is noted at the rule, soon.
    eventually(PATIENCE, || {
        let shown = bed.policy(&node, ["show", "--json"]).json();
        let rule = shown["allowlist"].as_array().unwrap().iter().find(|rule| rule["pattern"] == tac).cloned();
        match rule {
            Some(rule) if rule["lastUsedCommand"] == "seq 2 | tac" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    bed.policy(&node, ["disallow", tac]).ok();
    bed.exec(["--shell", "--", "seq 2 | tac"]).refused(77, "SYSTEM_RUN_DENIED");
    let bad = bed.policy(&node, ["allow", "--arg-pattern", "(", "seq"]);
    assert_eq!(bad.code(), 2, "{}", bad.stderr);
}

#[test]
fn a_bad_edit_denies_everything_and_names_the_last_good_rules() {
    let bed = TestBed::new();
    let node = listed(&bed, RunAs::Same);
    bed.exec(["--", "seq", "1"]).ok();
    write(&node, "{\"version\":1,\n\"agents\":{\"*\":{\"allowlist\":[\"seq\",]}}}");
    let denied = bed.exec(["--", "seq", "1"]);
    denied.refused(77, "APPROVALS_MALFORMED").hinted();
    assert!(
        denied.stderr.contains("line 2") && denied.stderr.contains("last good rules"),
        "{}",
        denied.stderr
    );
    // The hint is a command that helps.
    let good: PathBuf = node.approvals().with_extension("last-good.json");
    assert!(denied.stderr.contains(good.to_str().unwrap()), "{}", denied.stderr);
    std::fs::copy(good, node.approvals()).unwrap();
    bed.exec(["--", "seq", "1"]).ok();
}

#[test]
fn an_admin_far_away_adds_rules_where_the_owner_agreed() {
    let bed = TestBed::new();
    let args = vec!["--remote-approvals".to_owned()];
    let node = bed.invited("n", NodeOptions { args, ..NodeOptions::default() });
    node.wait_connected(1);
    write(&node, r#"{"version":1,"defaults":{"security":"allowlist"}}"#);
    bed.exec(["--", "seq", "1"]).refused(77, "SYSTEM_RUN_DENIED");
    let names = ["seq", "tac", "a1", "a2", "a3", "a4", "a5", "a6"];
    let adding: Vec<_> = names
        .map(|name| bed.spawn_cli(["approvals", "allowlist", "add", "--node", "n", name], Reading::Now))
        .into();
    for add in adding {
        add.finish(PATIENCE).ok();
    }
    assert_eq!(bed.exec(["--shell", "--", "seq 2 | tac"]).ok().stdout_text(), "2\n1\n");
    let shown = bed.gateway_cli(["approvals", "get", "--node", "n"]).ok().stdout_text();
    assert!(names.iter().all(|name| shown.contains(name)), "{shown}");
    let bad =
        bed.gateway_cli(["approvals", "allowlist", "add", "--node", "n", "--arg-pattern", "(?=x)", "seq"]);
    assert_eq!(bad.code(), 2, "{}", bad.stderr);
    bed.gateway_cli(["approvals", "allowlist", "remove", "--node", "n", "tac"]).ok();
    bed.exec(["--shell", "--", "seq 2 | tac"]).refused(77, "SYSTEM_RUN_DENIED");
}

#[test]
fn the_gateways_own_configuration_tightens() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    bed.exec(["--", "tac", "/dev/null"]).ok();
    bed.gateway_cli(["exec-policy", "preset", "cautious"]).ok();
    bed.exec(["--no-ask", "--", "tac", "/dev/null"]).refused(77, "SYSTEM_RUN_DENIED").hinted();
    assert_eq!(bed.exec(["--shell", "--", "true && cd / && pwd"]).ok().stdout_text(), "/\n");
    bed.gateway_cli(["exec-policy", "preset", "deny-all"]).ok();
    bed.exec(["--", "true"]).refused(77, "SYSTEM_RUN_DISABLED").hinted();
    bed.gateway_cli(["exec-policy", "preset", "yolo"]).ok();
    bed.exec(["--", "tac", "/dev/null"]).ok();
    let refused = bed.gateway_cli(["exec-policy", "set", "--host", "node"]);
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
}

#[test]
fn skills_of_the_gateway_run_where_the_owner_allows_them() {
    let bed = TestBed::new();
    let node = bed.node("n");
    write(&node, r#"{"version":1,"defaults":{"security":"allowlist","autoAllowSkills":true}}"#);
    bed.exec(["--", "tac", "/dev/null"]).refused(77, "SYSTEM_RUN_DENIED");
    std::fs::write(bed.gateway_dir().join("openclaw.json"), "{ skills: { bins: ['tac'] } }").unwrap();
    std::fs::set_permissions(bed.gateway_dir().join("openclaw.json"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    eventually(PATIENCE, || {
        let outcome = bed.exec(["--", "tac", "/dev/null"]);
        if outcome.code() == 0 { Ok(()) } else { Err(outcome.stderr) }
    });
    bed.exec(["--", "/usr/bin/tac", "/dev/null"]).refused(77, "SYSTEM_RUN_DENIED");
}
