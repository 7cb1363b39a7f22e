//! Peers of another version, another time or another authority.

use e2e::{RawNode, Sig, TestBed, block_on};
use fault::ErrorCode;
use identity::{Authority, Role};
use proto::v1 as pb;
use time::OffsetDateTime;

const TWO_HOURS_MS: i64 = 2 * 3600 * 1000;

#[test]
fn a_protocol_from_the_future_is_refused_with_both_ranges() {
    let bed = TestBed::new();
    let future = Some(pb::ProtocolRange { min: 99, max: 99 });
    block_on(async {
        let raw = RawNode::paired(&bed).await;
        let at_enrolment =
            raw.enrol(pb::EnrolRequest { protocol: future, ..raw.request() }).await.unwrap_err();
        let at_hello = raw.link(pb::Hello { protocol: future, ..raw.hello() }).await.unwrap_err();
        for fault in [at_enrolment, at_hello] {
            assert_eq!(fault.code, ErrorCode::VersionSkew);
            let ours = format!("{} to {}", proto::PROTOCOL_MIN, proto::PROTOCOL_MAX);
            assert!(fault.message.contains("99 to 99") && fault.message.contains(&ours), "{fault:?}");
            assert!(fault.hint.is_some(), "{fault:?}");
        }
        // A range that overlaps is spoken to in the newest common version.
        let wide = Some(pb::ProtocolRange { min: 1, max: 99 });
        let (welcome, _link) = raw.link(pb::Hello { protocol: wide, ..raw.hello() }).await.unwrap();
        assert_eq!(welcome.protocol, proto::PROTOCOL_MAX);
    });
}

#[test]
fn a_clock_that_is_far_off_is_named() {
    let bed = TestBed::new();
    block_on(async {
        let raw = RawNode::paired(&bed).await;
        for (offset, word) in [(TWO_HOURS_MS, "ahead"), (-TWO_HOURS_MS, "behind")] {
            let request = raw.request();
            let clock_unix_ms = request.clock_unix_ms + offset;
            let at_enrolment = raw.enrol(pb::EnrolRequest { clock_unix_ms, ..request }).await.unwrap_err();
            let at_hello = raw.link(pb::Hello { clock_unix_ms, ..raw.hello() }).await.unwrap_err();
            for fault in [at_enrolment, at_hello] {
                assert_eq!(fault.code, ErrorCode::ClockSkew);
                assert!(fault.message.contains("clock") && fault.message.contains(word), "{fault:?}");
            }
        }
    });
}

#[test]
fn certificates_that_are_not_ours_open_nothing() {
    let bed = TestBed::new();
    block_on(async {
        let mut raw = RawNode::paired(&bed).await;
        let now = OffsetDateTime::now_utc();
        let csr = raw.key.csr_der().unwrap();
        let hour = std::time::Duration::from_secs(3600);

        let stranger = Authority::create(now).unwrap();
        raw.certificate = Some(stranger.sign(&csr, Role::Node, hour, now).unwrap().der);
        let fault = raw.link(raw.hello()).await.unwrap_err();
        assert_eq!(fault.code, ErrorCode::OtherAuthority, "{fault:?}");

        let pem = |name: &str| std::fs::read_to_string(bed.gateway_dir().join("gateway").join(name)).unwrap();
        let ours = Authority::from_pem(&pem("ca-key.pem"), &pem("ca-cert.pem")).unwrap();
        raw.certificate = Some(ours.sign(&csr, Role::Node, hour, now - 2 * hour).unwrap().der);
        let fault = raw.link(raw.hello()).await.unwrap_err();
        assert_eq!(fault.code, ErrorCode::ClockSkew, "an expired certificate: {fault:?}");

        // An operator's certificate for a node's key is nobody's.
        raw.certificate = Some(ours.sign(&csr, Role::Operator, hour, now).unwrap().der);
        let fault = raw.link(raw.hello()).await.unwrap_err();
        assert_eq!(fault.code, ErrorCode::Unauthenticated, "{fault:?}");

        raw.certificate = Some(ours.sign(&csr, Role::Node, hour, now).unwrap().der);
        raw.link(raw.hello()).await.unwrap();
    });
}

#[test]
fn a_gateway_set_up_anew_is_another_gateway() {
    let mut bed = TestBed::new();
    let node = bed.node("n");
    bed.stop_gateway(Sig::Term);
    std::fs::remove_dir_all(bed.gateway_dir()).unwrap();
    bed.start_gateway();
    node.wait_log("OTHER_AUTHORITY");
    assert!(bed.connected().is_empty());
}
