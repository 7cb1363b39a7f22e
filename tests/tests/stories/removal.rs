//! A node that is removed is out at once and stays out, until it is asked in
//! again.

use std::time::{Duration, Instant};

use e2e::{Ended, NodeOptions, PATIENCE, RawNode, Reading, TestBed, block_on, eventually, helper};
use fault::ErrorCode;

/// The HTTP/2 preface and empty settings: a server that lets us in answers.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Removal reaches live connections within this time.
const AT_ONCE: Duration = Duration::from_secs(1);

#[test]
fn removal_cuts_a_stream_within_a_second() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let raw = RawNode::of_files(&bed, node.dir());
    let emit = helper("emit");
    let slow = ["exec", "--", &emit, "100000000", "--chunk", "1024", "--every-ms", "5"];
    let mut stream = bed.spawn_cli(slow, Reading::Now);
    stream.wait_stdout("000000000000100\n");

    let mut removal = bed.cli_command(["nodes", "remove", "n"]);
    let started = Instant::now();
    assert!(removal.stdout(std::process::Stdio::null()).status().unwrap().success());
    let left = AT_ONCE.saturating_sub(started.elapsed());
    eventually(left.max(Duration::from_millis(100)), || {
        if stream.is_running() { Err("the stream goes on".to_owned()) } else { Ok(()) }
    });
    println!("the stream ended {:?} after the removal was asked for", started.elapsed());
    let outcome = stream.finish(PATIENCE);
    assert_eq!(outcome.code(), 74, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("removed"), "{}", outcome.stderr);

    let (ended, log) = node.wait_end();
    assert_eq!(ended, Ended::Code(77), "{log}");
    assert!(log.contains("NODE_REMOVED") && log.contains("hint: "), "{log}");
    bed.exec(["--node", "n", "--", "true"]).refused(2, "UNKNOWN_NODE");

    // The old certificate opens nothing, however often it is shown.
    for _ in 0..3 {
        let refused = block_on(raw.link(raw.hello())).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unauthenticated, "{refused:?}");
    }

    // It may ask again, and a person decides again.
    let again = bed.asking("n", NodeOptions::default());
    again.wait_log("node-host: words: ");
    assert!(bed.connected().is_empty());
    let pending = bed.gateway_cli(["nodes", "pending", "--json"]).json();
    let request = pending["pending"][0]["requestId"].as_str().unwrap().to_owned();
    bed.gateway_cli(["nodes", "approve", &request]).ok();
    again.wait_connected(1);
    assert_eq!(bed.connected(), ["n"]);
}

#[test]
fn a_session_is_not_resumed_past_the_check() {
    use std::io::{Read as _, Write as _};
    use std::sync::Arc;

    let bed = TestBed::new();
    let raw = block_on(RawNode::paired(&bed));
    let identity =
        identity::ClientIdentity { cert_der: raw.certificate.clone().unwrap(), key: raw.key.clone() };
    let mut config = (*identity::client_config(raw.pin, Some(&identity)).unwrap()).clone();
    // A client that would like to resume.
    config.resumption = rustls::client::Resumption::in_memory_sessions(8);
    let config = Arc::new(config);
    let handshake = || {
        let mut tcp = std::net::TcpStream::connect(bed.address()).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut tls = rustls::ClientConnection::new(Arc::clone(&config), identity::server_name()).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
        // Tickets would come before the server's first frame.
        let written = stream.write_all(PREFACE);
        let answered = written.and_then(|()| stream.read(&mut [0; 64])).is_ok_and(|n| n > 0);
        (tls.handshake_kind(), answered)
    };
    assert_eq!(handshake(), (Some(rustls::HandshakeKind::Full), true));
    assert_eq!(handshake(), (Some(rustls::HandshakeKind::Full), true), "the second one resumed");
    bed.gateway_cli(["nodes", "remove", "raw"]).ok();
    let (kind, answered) = handshake();
    assert!(kind != Some(rustls::HandshakeKind::Resumed) && !answered, "{kind:?} {answered}");
}
