//! From a machine that nobody knows to a node, and who is turned away.

use std::time::{Duration, Instant};

use e2e::{
    Ended, GatewayOptions, NodeOptions, PATIENCE, RawNode, Sig, TestBed, argv_request, block_on, eventually,
    follow,
};
use fault::ErrorCode;
use serde_json::Value;

/// The only pending request, once it is there.
fn only_pending(bed: &TestBed) -> Value {
    eventually(PATIENCE, || {
        let listed = bed.gateway_cli(["nodes", "pending", "--json"]).json();
        match listed["pending"].as_array().map(Vec::as_slice) {
            Some([one]) => Ok(one.clone()),
            _ => Err(listed.to_string()),
        }
    })
}

#[test]
fn a_person_compares_words_and_approves_and_it_is_live_at_once() {
    let bed = TestBed::new();
    let node = bed.asking("shy", NodeOptions::default());
    let request = only_pending(&bed);
    let words = node.wait_log("node-host: words: ");
    assert_eq!(words.trim_start_matches("node-host: words: "), request["words"].as_str().unwrap());
    assert_eq!((&request["displayName"], node.connections()), (&Value::from("shy"), 0));
    let id = request["requestId"].as_str().unwrap();
    assert!(node.wait_log("gateway nodes approve").contains(id));

    let pid = node.pid();
    bed.gateway_cli(["nodes", "approve", id]).ok();
    node.wait_connected(1);
    assert_eq!(node.pid(), pid, "pairing needs no restart");
    assert_eq!(bed.exec(["--", "printf", "hi"]).ok().stdout_text(), "hi");
    // What is decided is decided.
    bed.gateway_cli(["nodes", "approve", id]).refused(2, "UNKNOWN_REQUEST").hinted();
    assert!(node.log().contains("policy on this machine: security=full ask=off"), "{}", node.log());
}

#[test]
fn retries_of_one_key_are_one_request() {
    let bed = TestBed::new();
    let node = bed.asking("again", NodeOptions::default());
    let first = only_pending(&bed);
    for signal in [Sig::Term, Sig::Kill] {
        node.stop(signal);
        node.restart();
        node.wait_log("node-host: words: ");
        let now = only_pending(&bed);
        for key in ["requestId", "words", "fingerprint", "firstSeenAtMs"] {
            assert_eq!(first[key], now[key], "{key}");
        }
    }
}

#[test]
fn a_rejected_node_is_told_and_leaves() {
    let bed = TestBed::new();
    let node = bed.asking("unwanted", NodeOptions::default());
    let request = only_pending(&bed);
    let id = request["requestId"].as_str().unwrap();
    bed.gateway_cli(["nodes", "reject", id]).ok();
    let (ended, log) = node.wait_end();
    assert_eq!(ended, Ended::Code(77), "{log}");
    assert!(log.contains("REQUEST_REJECTED"), "{log}");
    assert!(bed.connected().is_empty());
}

#[test]
fn an_invite_is_good_once() {
    let bed = TestBed::new();
    let invite = bed.gateway_cli(["nodes", "invite", "--name", "guest"]).ok().stdout_text();
    let first = e2e::Node::pairing(&bed, "first", invite.trim());
    first.wait_connected(1);
    assert_eq!(bed.connected(), ["guest"]);
    let second = e2e::Node::pairing(&bed, "second", invite.trim());
    let (ended, log) = second.wait_end();
    assert_eq!(ended, Ended::Code(77), "{log}");
    assert!(log.contains("INVITE_INVALID") && log.contains("hint: "), "{log}");
    assert_eq!(bed.connected(), ["guest"]);
}

#[test]
fn another_gateway_than_the_pinned_one_is_refused() {
    let bed = TestBed::new();
    let other = TestBed::new();
    let node = e2e::Node::asking(&bed, "careful", other.fingerprint());
    let (ended, log) = node.wait_end();
    assert_eq!(ended, Ended::Code(77), "{log}");
    assert!(log.contains("OTHER_AUTHORITY") && log.contains("hint: "), "{log}");
    let listed = bed.gateway_cli(["nodes", "pending", "--json"]).json();
    assert_eq!(listed["pending"], Value::Array(vec![]), "it said nothing to the wrong gateway");
}

#[test]
fn a_gateway_that_is_down_is_waited_for() {
    let mut bed = TestBed::new();
    let node = bed.node("patient");
    let id = node.short_id();
    assert_eq!(node.stop(Sig::Term), Ended::Code(143));
    assert_eq!(bed.stop_gateway(Sig::Term), Ended::Code(143));
    node.restart();
    node.wait_log("GATEWAY_UNREACHABLE");
    bed.start_gateway();
    node.wait_connected(1);
    assert_eq!(node.short_id(), id, "a restart keeps the id");
    assert_eq!(bed.exec(["--", "printf", "hi"]).ok().stdout_text(), "hi");
}

#[test]
fn a_pairing_request_waits_for_a_gateway_that_is_down() {
    let mut bed = TestBed::new();
    bed.stop_gateway(Sig::Term);
    let node = bed.asking("early", NodeOptions::default());
    node.wait_log("GATEWAY_UNREACHABLE");
    bed.start_gateway();
    let request = only_pending(&bed);
    bed.gateway_cli(["nodes", "approve", request["requestId"].as_str().unwrap()]).ok();
    node.wait_connected(1);
}

#[test]
fn a_node_needs_nothing_but_its_state_directory_to_come_back() {
    let bed = TestBed::with(GatewayOptions::default());
    let node = bed.node("steady");
    let id = node.short_id();
    for signal in [Sig::Term, Sig::Kill] {
        node.stop(signal);
        // The link in its arguments is used up; the pairing on disk is not.
        node.restart();
        node.wait_connected(1);
        assert_eq!(node.short_id(), id);
    }
    let raw = RawNode::of_files(&bed, node.dir());
    assert!(raw.key.fingerprint().to_hex().starts_with(&id), "the id is the key's");
}

#[test]
fn an_invite_that_is_too_old_is_refused() {
    let bed = TestBed::new();
    let invite = bed.gateway_cli(["nodes", "invite", "--ttl", "1s", "--json"]).json();
    let expires = invite["expiresAtMs"].as_i64().unwrap();
    eventually(PATIENCE, || {
        let now = (time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000) as i64;
        if now > expires { Ok(()) } else { Err(format!("{} ms to go", expires - now)) }
    });
    let late = e2e::Node::pairing(&bed, "late", invite["link"].as_str().unwrap());
    let (ended, log) = late.wait_end();
    assert_eq!(ended, Ended::Code(77), "{log}");
    assert!(log.contains("INVITE_INVALID") && log.contains("hint: "), "{log}");
    assert!(bed.connected().is_empty());
}

#[test]
fn a_fresh_link_pairs_a_node_that_was_removed_while_it_was_off() {
    let bed = TestBed::new();
    let node = bed.node("n");
    node.stop(Sig::Term);
    bed.gateway_cli(["nodes", "remove", "n"]).ok();
    let link = bed.gateway_cli(["nodes", "invite"]).ok().stdout_text();
    // The same name is the same state directory, with the old certificate in it.
    let again = e2e::Node::pairing(&bed, "n", link.trim());
    again.wait_connected(1);
    assert_eq!(bed.exec(["--node", "n", "--", "printf", "hi"]).ok().stdout_text(), "hi");
}

#[test]
fn a_flood_of_pairing_requests_is_bounded_and_delays_nobody() {
    const FLOOD: usize = 300;
    const AT_ONCE: usize = 16;
    /// Requests that one address may have open.
    const PER_ADDRESS: usize = 16;
    let bed = TestBed::new();
    let _node = bed.node("n");
    let (tries, slowest) = block_on(async {
        let mut tools = bed.tools().await;
        let turns = std::sync::Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
        let mut flood = tokio::task::JoinSet::new();
        for _ in 0..FLOOD {
            let (raw, room) = (RawNode::new(&bed), std::sync::Arc::clone(&turns));
            flood.spawn(async move {
                let _turn = room.acquire_owned().await.unwrap();
                raw.enrol(raw.request()).await.map(|_| ()).map_err(|fault| fault.code)
            });
        }
        let mut slowest = Duration::ZERO;
        let mut tries = Vec::new();
        while tries.len() < FLOOD {
            let started = Instant::now();
            let events = tools.exec(argv_request("n", &["true"])).await.unwrap().into_inner();
            assert_eq!(follow(events).await.unwrap().code(), Some(0));
            slowest = slowest.max(started.elapsed());
            while let Some(ended) = flood.try_join_next() {
                tries.push(ended.unwrap());
            }
        }
        (tries, slowest)
    });
    println!("slowest command beside the flood: {slowest:?}");
    assert!(slowest < Duration::from_secs(2), "a command took {slowest:?} beside the flood");
    let taken = tries.iter().filter(|tried| tried.is_ok()).count();
    assert!((1..=PER_ADDRESS).contains(&taken), "{taken} requests were taken");
    let refused = tries.iter().filter(|tried| **tried == Err(ErrorCode::TooManyRequests)).count();
    assert_eq!(taken + refused, FLOOD, "{tries:?}");
    let listed = bed.gateway_cli(["nodes", "pending", "--json"]).json();
    assert_eq!(listed["pending"].as_array().unwrap().len(), taken);
}
