//! Which node is meant: id, name, prefix, none; and nothing runs elsewhere.

use e2e::{PATIENCE, Sig, TestBed, eventually};

#[test]
fn a_node_is_named_by_id_name_or_prefix() {
    let bed = TestBed::new();
    let (alpha, beta) = (bed.node("Alpha Box"), bed.node("beta"));
    let describe = bed.gateway_cli(["nodes", "describe", "beta", "--json"]).json();
    let id = describe["nodeId"].as_str().unwrap().to_owned();
    assert!(id.starts_with(&beta.short_id()));
    let whereabouts = |node: &str| bed.exec(["--node", node, "--", "sh", "-c", "echo $PWD $FARRUN_RUN_ID"]);
    for good in [&id, "beta", "BETA", &id[..6], &id.to_uppercase()] {
        whereabouts(good).ok();
    }
    for good in ["Alpha Box", "alpha box", "alpha-box"] {
        whereabouts(good).ok();
    }
    let unknown = whereabouts(&id[..5]);
    unknown.refused(2, "UNKNOWN_NODE").hinted();
    let unknown = whereabouts("gamma");
    unknown.refused(2, "UNKNOWN_NODE").hinted();
    for known in ["Alpha Box", "beta", &id[..12]] {
        assert!(unknown.stderr.contains(known), "{}", unknown.stderr);
    }
    let none = bed.exec(["--", "true"]);
    none.refused(2, "AMBIGUOUS_NODE").hinted();
    assert!(none.stderr.contains("Alpha Box") && none.stderr.contains("beta"), "{}", none.stderr);

    bed.gateway_cli(["nodes", "rename", "beta", "alpha-box"]).ok();
    whereabouts("alphabox").refused(2, "AMBIGUOUS_NODE").hinted();
    whereabouts("beta").refused(2, "UNKNOWN_NODE");
    // A name that is meant exactly wins over one that is only alike.
    whereabouts("alpha-box").ok();
    alpha.stop(Sig::Term);
}

#[test]
fn an_offline_node_is_refused_and_nothing_runs_on_another() {
    let bed = TestBed::new();
    let (away, _here) = (bed.node("away"), bed.node("here"));
    away.stop(Sig::Term);
    eventually(PATIENCE, || {
        let connected = bed.connected();
        if connected == ["here"] { Ok(()) } else { Err(format!("{connected:?}")) }
    });
    let marker = bed.path("marker");
    let touch = marker.display().to_string();
    bed.exec(["--node", "away", "--", "touch", &touch]).refused(69, "NODE_OFFLINE").hinted();
    assert!(!marker.exists());
    // With one connected node none has to be named.
    bed.exec(["--", "touch", &touch]).ok();
    assert!(marker.exists());
    let listed = bed.gateway_cli(["nodes", "list"]).ok().stdout_text();
    assert!(listed.contains("Paired: 2 · Connected: 1"), "{listed}");
}

#[test]
fn a_new_name_survives_a_restart_of_both_sides() {
    let mut bed = TestBed::new();
    let node = bed.node("old");
    bed.gateway_cli(["nodes", "rename", "old", "new"]).ok();
    node.stop(Sig::Term);
    bed.stop_gateway(Sig::Term);
    bed.start_gateway();
    node.restart();
    node.wait_log(" as new (");
    assert_eq!(bed.connected(), ["new"]);
}
