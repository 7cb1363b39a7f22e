//! Links that break in every way; sessions that do not notice.

use std::time::Duration;

use e2e::{
    Cut, Direction, Ended, FaultProxy, Node, NodeOptions, PATIENCE, Reading, Sig, TestBed, eventually,
    helper, measured, pattern,
};

/// A node behind a proxy.
fn behind_proxy(bed: &TestBed) -> (FaultProxy, Node) {
    let proxy = FaultProxy::new(bed.address());
    let node = bed.invited("n", NodeOptions { via: Some(proxy.address()), ..NodeOptions::default() });
    node.wait_connected(1);
    (proxy, node)
}

/// `emit` at about 1 MB/s.
fn stream(bed: &TestBed, bytes: usize) -> e2e::Running {
    let bytes = bytes.to_string();
    bed.spawn_cli(["exec", "--", &helper("emit"), &bytes, "--chunk", "8192", "--every-ms", "8"], Reading::Now)
}

#[track_caller]
fn whole(stream: e2e::Running, bytes: usize) {
    let outcome = stream.finish(Duration::from_secs(60));
    outcome.ok();
    assert!(outcome.stdout == pattern(bytes), "{} of {bytes} bytes, or changed", outcome.stdout.len());
}

#[test]
fn a_cut_link_loses_and_repeats_nothing() {
    const BYTES: usize = 4_000_000;
    let bed = TestBed::new();
    let (proxy, node) = behind_proxy(&bed);
    let mut running = stream(&bed, BYTES);
    for (times, (how, line)) in
        [(Cut::Reset, "000000000001000"), (Cut::Close, "000000000008000")].into_iter().enumerate()
    {
        running.wait_stdout(line);
        proxy.cut(how);
        node.wait_connected(times + 2);
    }
    whole(running, BYTES);
    let sessions = bed.gateway_cli(["sessions", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "the same session goes on: {sessions}");
}

#[test]
fn slow_and_split_packets_change_nothing() {
    let bed = TestBed::new();
    let (proxy, _node) = behind_proxy(&bed);
    proxy.split(7);
    let outcome = bed.exec(["--", &helper("emit"), "200000", "--stderr", "100000"]);
    outcome.ok();
    assert!(outcome.stdout == pattern(200_000) && outcome.stderr.as_bytes() == pattern(100_000));
    proxy.heal();
    proxy.delay(Duration::from_millis(40));
    let outcome = bed.exec(["--", &helper("emit"), "2000000"]);
    outcome.ok();
    assert!(outcome.stdout == pattern(2_000_000));
}

#[test]
fn a_stalled_link_is_noticed_within_twenty_seconds() {
    const BYTES: usize = 1_000_000;
    let bed = TestBed::new();
    let (proxy, node) = behind_proxy(&bed);
    let mut running = stream(&bed, BYTES);
    running.wait_stdout("000000000000100");
    proxy.stall();
    let ((), took) = measured(|| {
        eventually(Duration::from_secs(25), || {
            let connected = bed.connected();
            if connected.is_empty() { Ok(()) } else { Err("the gateway has not noticed".to_owned()) }
        });
    });
    assert!(took < Duration::from_secs(20), "{took:?}");
    node.wait_log("no link to the gateway");
    proxy.cut(Cut::Reset);
    proxy.heal();
    node.wait_connected(2);
    whole(running, BYTES);
}

fn a_gateway_restart(signal: Sig, ended: Ended) {
    const BYTES: usize = 3_000_000;
    let mut bed = TestBed::new();
    let node = bed.node("n");
    let mut running = stream(&bed, BYTES);
    running.wait_stdout("000000000001000");
    assert_eq!(bed.stop_gateway(signal), ended);
    bed.start_gateway();
    node.wait_connected(2);
    let outcome = running.finish(Duration::from_secs(60));
    outcome.ok();
    assert!(outcome.stderr.contains("the gateway went away"), "{}", outcome.stderr);
    assert!(outcome.stdout == pattern(BYTES), "{} of {BYTES} bytes, or changed", outcome.stdout.len());
}

#[test]
fn a_gateway_that_is_stopped_and_started_costs_no_byte() {
    a_gateway_restart(Sig::Term, Ended::Code(143));
}

#[test]
fn a_gateway_that_is_killed_and_started_costs_no_byte() {
    a_gateway_restart(Sig::Kill, Ended::Signal(9));
}

#[test]
fn a_newer_link_replaces_the_older_one() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let raw = e2e::RawNode::of_files(&bed, node.dir());
    let (welcome, link) = e2e::block_on(raw.link(raw.hello())).unwrap();
    assert!(welcome.node_id.starts_with(&node.short_id()));
    node.wait_log("another node host with this identity took over");
    assert_eq!(bed.connected(), ["n"]);
    drop(link);
}

#[test]
fn a_cut_before_the_request_means_nothing_ran() {
    let bed = TestBed::new();
    let (proxy, node) = behind_proxy(&bed);
    proxy.block();
    eventually(PATIENCE, || {
        let connected = bed.connected();
        if connected.is_empty() { Ok(()) } else { Err(format!("{connected:?}")) }
    });
    let marker = bed.path("marker");
    bed.exec(["--node", "n", "--", "touch", marker.to_str().unwrap()]).refused(69, "NODE_OFFLINE").hinted();
    proxy.heal();
    node.wait_connected(2);
    assert!(!marker.exists());
}

/// `echo x >> file` with one way of the link stuck, then cut.
fn exactly_once(stuck: Direction) {
    const PADDING: usize = 4096;
    let bed = TestBed::new();
    let (proxy, node) = behind_proxy(&bed);
    let file = bed.path("lines");
    // A request that is easily told from a ping.
    let text = format!("echo x >> {}; echo done # {}", file.display(), "-".repeat(PADDING));
    proxy.stall_way(stuck);
    let mut run = bed.spawn_cli(["exec", "--shell", "--", &text], Reading::Now);
    match stuck {
        // The command runs, its answer does not come back.
        Direction::ToGateway => eventually(PATIENCE, || {
            if file.exists() { Ok(()) } else { Err("the command has not run".to_owned()) }
        }),
        // The request itself is on its way and does not arrive.
        Direction::ToNode => eventually(PATIENCE, || {
            let kept = proxy.kept();
            if kept > PADDING { Ok(()) } else { Err(format!("{kept} bytes are on their way")) }
        }),
    }
    assert!(run.is_running());
    proxy.cut(Cut::Reset);
    proxy.heal();
    node.wait_connected(2);
    let outcome = run.finish(PATIENCE);
    assert_eq!(outcome.ok().stdout_text(), "done\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "it ran more than once");
}

#[test]
fn a_lost_answer_does_not_run_the_command_twice() {
    exactly_once(Direction::ToGateway);
}

#[test]
fn a_lost_request_runs_the_command_once() {
    exactly_once(Direction::ToNode);
}

/// `cat` that does not read yet, so that its input is on the way everywhere
/// when the way breaks.
fn input_over(break_it: impl FnOnce(&mut TestBed, &FaultProxy)) {
    const BYTES: usize = 2 << 20;
    const AHEAD: usize = 200 * 1024;
    let mut bed = TestBed::new();
    let (proxy, node) = behind_proxy(&bed);
    let go = bed.path("go");
    let text = format!("echo up >&2; until [ -e {} ]; do sleep 0.05; done; cat", go.display());
    let mut run = bed.spawn_cli(["exec", "--stdin", "--shell", "--", &text], Reading::Now);
    run.wait_stderr("up\n");
    let sent = pattern(BYTES);
    run.write(&sent[..AHEAD]);
    break_it(&mut bed, &proxy);
    node.wait_connected(2);
    std::fs::write(&go, "").unwrap();
    run.write(&sent[AHEAD..]);
    let outcome = run.finish(Duration::from_secs(60));
    outcome.ok();
    assert!(
        outcome.stdout == sent,
        "{} of {BYTES} bytes, or changed; {}",
        outcome.stdout.len(),
        outcome.stderr
    );
}

#[test]
fn input_survives_a_cut_link() {
    input_over(|_, proxy| proxy.cut(Cut::Reset));
}

#[test]
fn input_survives_a_restart_of_the_gateway() {
    input_over(|bed, _| {
        bed.stop_gateway(Sig::Kill);
        bed.start_gateway();
    });
}
