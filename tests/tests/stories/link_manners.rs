//! What both ends of a link say when they leave, and that a silent one stays.

use std::time::{Duration, Instant};

use e2e::{
    Ended, FakeGateway, GatewayOptions, Node, NodeOptions, RawNode, Sig, TestBed, block_on, eventually,
};
use proto::v1::{self as pb, gateway_frame, node_frame};

#[test]
fn a_node_that_stops_says_so() {
    let bed = TestBed::dark(GatewayOptions::default());
    let fake = FakeGateway::start();
    let node = Node::of_fake(&bed, "n", &fake, NodeOptions::default());
    let mut link = fake.link();
    node.wait_connected(1);
    node.signal(Sig::Term);
    let notice = loop {
        match link.next_frame().expect("a notice before the end") {
            node_frame::Frame::Draining(notice) => break notice,
            // Round trips may be on their way.
            node_frame::Frame::Ping(_) | node_frame::Frame::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!((1..=30_000).contains(&notice.come_back_in_ms), "{notice:?}");
    drop(link);
    assert_eq!(node.wait_end().0, Ended::Code(143));
}

#[test]
fn a_gateway_that_stops_says_so() {
    let mut bed = TestBed::new();
    let (raw, mut link) = block_on(async {
        let raw = RawNode::paired(&bed).await;
        let (_, link) = raw.link(raw.hello()).await.unwrap();
        (raw, link)
    });
    assert_eq!(bed.connected(), ["raw"]);
    let stopped = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| bed.stop_gateway(Sig::Term));
        let notice = loop {
            match block_on(link.next_frame()).expect("a notice before the end") {
                gateway_frame::Frame::Draining(notice) => break notice,
                gateway_frame::Frame::Ping(_) | gateway_frame::Frame::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        };
        assert!((1..=30_000).contains(&notice.come_back_in_ms), "{notice:?}");
        drop((link, raw));
        stopping.join().unwrap()
    });
    assert_eq!(stopped, Ended::Code(143));
}

#[test]
fn an_idle_link_stays_up() {
    /// More than three keepalive intervals.
    const IDLE: Duration = Duration::from_secs(20);
    let bed = TestBed::new();
    let node = bed.node("n");
    let mut operator = block_on(bed.operator());
    let mut describe = || {
        let node = pb::NodeRef { node: "n".to_owned() };
        let node = block_on(operator.describe_node(node)).unwrap().into_inner();
        (node.connected, node.connected_unix_ms)
    };
    let connected = describe();
    assert!(connected.0);
    let started = Instant::now();
    eventually(IDLE * 2, || {
        assert_eq!(describe(), connected, "the link was made anew: {}", node.log());
        let passed = started.elapsed();
        if passed >= IDLE { Ok(()) } else { Err(format!("{passed:?} have passed")) }
    });
    assert_eq!(node.connections(), 1);
    let shown = bed.gateway_cli(["nodes", "describe", "n", "--json"]).json();
    assert_eq!(shown["connectedAtMs"], connected.1);
}
