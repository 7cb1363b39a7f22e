//! Real handshakes between the two configurations: who gets in, who does not, and what each end is told.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::sync::Arc;

use identity::{
    Authority, ClientIdentity, Pin, PrivateKey, Role, SERVER_NAME, ServerCertificate, ServerIdentity,
    TlsProblem, client_config, server_config, subject_of,
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use rustls::HandshakeKind;
use rustls_pki_types::CertificateDer;

use support::{DAY, Finished, Gate, Gateway, HOUR, authority_behind, connect, handshake, now};

#[test]
fn a_paired_client_connects_to_its_pinned_gateway() {
    let gateway = Gateway::new(Gate::Open);
    for role in [Role::Node, Role::Operator] {
        let identity = gateway.enrol(role, now());
        let (client, server) = connect(&gateway, gateway.pin(), Some(&identity)).finished();
        assert_eq!(authority_behind(&client), gateway.authority.fingerprint());
        assert_eq!(client.alpn, Some(b"h2".to_vec()));
        assert_eq!(
            server,
            Finished {
                kind: Some(HandshakeKind::Full),
                alpn: Some(b"h2".to_vec()),
                peer: vec![identity.cert_der.clone()]
            }
        );
        let subject = subject_of(&identity.cert_der).unwrap();
        assert_eq!((subject.role, subject.fingerprint), (role, identity.key.fingerprint()));
    }
}

#[test]
fn a_client_without_certificate_may_connect_to_enrol() {
    // The gate is about certificates: it has no say here.
    let gateway = Gateway::new(Gate::Closed);
    let (_, server) = connect(&gateway, gateway.pin(), None).finished();
    assert_eq!(server.peer, vec![]);
}

#[test]
fn first_use_accepts_any_gateway_and_names_it() {
    let gateway = Gateway::new(Gate::Open);
    let (client, _) = connect(&gateway, Pin::FirstUse, None).finished();
    assert_eq!(authority_behind(&client), gateway.authority.fingerprint());
}

#[test]
fn another_gateway_is_not_the_pinned_one() {
    let (gateway, other) = (Gateway::new(Gate::Open), Gateway::new(Gate::Open));
    let (client, server) = connect(&other, gateway.pin(), None).failed();
    assert_eq!((client, server), (TlsProblem::OtherAuthority, TlsProblem::Refused));
}

#[test]
fn a_stranger_that_presents_the_pinned_authority_is_refused() {
    // The authority's certificate is public: anybody can append it to a certificate of their own.
    let (gateway, stranger) = (Gateway::new(Gate::Open), Gateway::new(Gate::Open));
    for pin in [gateway.pin(), Pin::FirstUse] {
        let mut identity = stranger.authority.issue_server(DAY, now()).unwrap();
        identity.chain[1] = gateway.authority.cert_der().clone();
        let (client, _) =
            handshake(&client_config(pin, None).unwrap(), &serving(identity, &stranger)).failed();
        assert_eq!(client, TlsProblem::OtherAuthority);
    }
}

#[test]
fn a_chain_of_another_shape_is_refused() {
    let gateway = Gateway::new(Gate::Open);
    for copies in [0, 2] {
        let mut identity = gateway.authority.issue_server(DAY, now()).unwrap();
        identity.chain.truncate(1);
        identity.chain.extend(vec![gateway.authority.cert_der().clone(); copies]);
        let config = client_config(Pin::FirstUse, None).unwrap();
        let (client, server) = handshake(&config, &serving(identity, &gateway)).failed();
        assert!(
            matches!(&client, TlsProblem::Other(text) if text.contains("expected its own")),
            "{client:?}"
        );
        assert_eq!(server, TlsProblem::Refused);
    }
}

#[test]
fn a_node_cannot_serve_as_its_gateway() {
    let gateway = Gateway::new(Gate::Open);
    let node = gateway.enrol(Role::Node, now());
    let chain = vec![node.cert_der.clone(), gateway.authority.cert_der().clone()];
    let identity = ServerIdentity { chain, key: node.key.rustls_key(), not_after: now() };
    let (client, _) =
        handshake(&client_config(gateway.pin(), None).unwrap(), &serving(identity, &gateway)).failed();
    assert!(matches!(client, TlsProblem::Other(_)), "{client:?}");
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (gateway, other) = (Gateway::new(Gate::Open), Gateway::new(Gate::Open));
    let stranger = other.enrol(Role::Node, now());
    let outcome = connect(&gateway, gateway.pin(), Some(&stranger));
    assert_eq!(outcome.failed(), (TlsProblem::OtherAuthority, TlsProblem::OtherAuthority));
}

#[test]
fn a_client_that_the_gate_refuses_is_told_so() {
    let gateway = Gateway::new(Gate::Closed);
    let removed = gateway.enrol(Role::Node, now());
    let (client, server) = connect(&gateway, gateway.pin(), Some(&removed)).failed();
    assert_eq!(client, TlsProblem::Refused);
    assert!(matches!(server, TlsProblem::Other(_)), "{server:?}");
}

#[test]
fn a_clients_certificate_outside_its_dates_is_about_clocks() {
    let gateway = Gateway::of(Authority::create(now() - 3 * DAY).unwrap(), Gate::Open, now());
    for signed in [now() - 2 * DAY, now() + 3 * HOUR] {
        let client = gateway.enrol(Role::Node, signed);
        let (client, server) = connect(&gateway, gateway.pin(), Some(&client)).failed();
        assert!(matches!(client, TlsProblem::Clock { .. }), "{client:?}");
        assert!(matches!(server, TlsProblem::Clock { .. }), "{server:?}");
    }
}

#[test]
fn a_servers_certificate_outside_its_dates_is_about_clocks() {
    for (made, expected) in [(now() + 3 * HOUR, "starts at"), (now() - 2 * DAY, "ended at")] {
        let gateway = Gateway::started(Gate::Open, made);
        let (client, server) = connect(&gateway, gateway.pin(), None).failed();
        assert!(
            client.to_string().starts_with("clock: ") && client.to_string().contains(expected),
            "{client}"
        );
        assert!(matches!(server, TlsProblem::Clock { .. }), "{server:?}");
    }
}

#[test]
fn a_late_clock_of_almost_an_hour_does_no_harm() {
    let gateway = Gateway::started(Gate::Open, now() + 59 * HOUR / 60);
    let early = gateway.enrol(Role::Node, now() + 59 * HOUR / 60);
    connect(&gateway, gateway.pin(), Some(&early)).finished();
}

#[test]
fn only_a_name_of_the_certified_key_for_client_use_gets_in() {
    let gateway = Gateway::new(Gate::Open);
    let key = PrivateKey::generate().unwrap();
    let own = format!("farrun:node:{}", key.fingerprint());
    let foreign = format!("farrun:node:{}", PrivateKey::generate().unwrap().fingerprint());
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    for (uri, usage, admitted) in [
        (&own, client.clone(), true),
        (&foreign, client.clone(), false),
        (&format!("farrun:admin:{}", key.fingerprint()), client, false),
        (&own, ExtendedKeyUsagePurpose::ServerAuth, false),
    ] {
        let identity =
            ClientIdentity { cert_der: forge(&gateway.authority, &key, uri, &usage), key: key.clone() };
        let outcome = connect(&gateway, gateway.pin(), Some(&identity));
        assert_eq!(outcome.server.is_ok(), admitted, "{uri} {usage:?}: {outcome:?}");
        assert_eq!(outcome.client.is_ok(), admitted, "{uri} {usage:?}: {outcome:?}");
    }
}

#[test]
fn no_session_is_resumed() {
    let gateway = Gateway::new(Gate::Open);
    let identity = gateway.enrol(Role::Node, now());
    let config = client_config(gateway.pin(), Some(&identity)).unwrap();
    for _ in 0..3 {
        let (client, server) = handshake(&config, &gateway.config).finished();
        assert_eq!((client.kind, server.kind), (Some(HandshakeKind::Full), Some(HandshakeKind::Full)));
    }
}

#[test]
fn an_exchanged_server_certificate_is_shown_from_the_next_handshake_on() {
    let gateway = Gateway::new(Gate::Open);
    let shown = || connect(&gateway, gateway.pin(), None).finished().0.peer;
    let old = shown();
    assert_eq!(shown(), old);
    let next = gateway.authority.issue_server(2 * DAY, now()).unwrap();
    let (chain, not_after) = (next.chain.clone(), next.not_after);
    gateway.certificate.replace(next).unwrap();
    assert_eq!(shown(), chain);
    assert_ne!(chain[0], old[0]);
    assert_eq!(gateway.certificate.not_after(), not_after);
}

#[test]
fn a_server_key_of_another_certificate_is_refused_and_the_old_one_stays() {
    let gateway = Gateway::new(Gate::Open);
    let before = gateway.certificate.not_after();
    let mut wrong = gateway.authority.issue_server(2 * DAY, now()).unwrap();
    wrong.key = PrivateKey::generate().unwrap().rustls_key();
    assert!(gateway.certificate.replace(wrong).is_err());
    assert_eq!(gateway.certificate.not_after(), before);
    connect(&gateway, gateway.pin(), None).finished();
}

#[test]
fn the_default_provider_may_be_installed_twice() {
    identity::install_crypto_provider();
    identity::install_crypto_provider();
    assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    assert_eq!(identity::server_name().to_str(), SERVER_NAME);
}

fn serving(identity: ServerIdentity, gateway: &Gateway) -> Arc<rustls::ServerConfig> {
    let certificate = Arc::new(ServerCertificate::new(identity).unwrap());
    server_config(gateway.authority.cert_der(), certificate, Arc::new(Gate::Open)).unwrap()
}

/// A certificate that the authority would never sign, signed with its key.
fn forge(
    authority: &Authority,
    key: &PrivateKey,
    uri: &str,
    usage: &ExtendedKeyUsagePurpose,
) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
    params.extended_key_usages = vec![usage.clone()];
    let signer = KeyPair::from_pem(&authority.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_der(authority.cert_der(), &signer).unwrap();
    let subject = KeyPair::from_pem(&key.to_pem()).unwrap();
    params.signed_by(&subject, &issuer).unwrap().into()
}
