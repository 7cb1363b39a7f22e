//! What the authority signs, and what it makes of requests that ask for more.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use identity::{
    Authority, Fingerprint, IdentityError, MAX_CSR_BYTES, PrivateKey, Role, SERVER_NAME, Subject, Validity,
    subject_of, validity_of,
};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls_pki_types::CertificateDer;
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use support::{DAY, HOUR};

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00.75 UTC);

/// The algorithm (7 bytes) and the signature (3 + 64 bytes) at the end of a request.
const SIGNATURE_BYTES: usize = 74;

#[test]
fn dates_are_backdated_and_in_whole_seconds() {
    let authority = Authority::create(NOW).unwrap();
    assert_eq!(
        validity_of(authority.cert_der()).unwrap(),
        Validity {
            not_before: datetime!(2026-11-19 12:00:00 UTC),
            not_after: datetime!(2026-11-20 12:00:00 UTC) + Duration::days(3650),
        }
    );
    let key = PrivateKey::generate().unwrap();
    let signed = authority.sign(&key.csr_der().unwrap(), Role::Node, DAY, NOW).unwrap();
    let expected = Validity {
        not_before: datetime!(2026-11-20 11:00:00 UTC),
        not_after: datetime!(2026-11-21 12:00:00 UTC),
    };
    assert_eq!(Validity { not_before: signed.not_before, not_after: signed.not_after }, expected);
    assert_eq!(validity_of(&signed.der).unwrap(), expected);
    assert_eq!(signed.fingerprint, key.fingerprint());
    assert_eq!(Fingerprint::of_certificate(&signed.der).unwrap(), key.fingerprint());
}

#[test]
fn nothing_outlives_the_authority() {
    let authority = Authority::create(NOW).unwrap();
    let request = PrivateKey::generate().unwrap().csr_der().unwrap();
    let end = validity_of(authority.cert_der()).unwrap().not_after;
    let late = authority.sign(&request, Role::Node, 30 * DAY, end - Duration::days(1)).unwrap();
    assert_eq!(late.not_after, end);
    for at in [end + Duration::seconds(1), NOW - Duration::days(2)] {
        let error = authority.sign(&request, Role::Node, DAY, at).unwrap_err();
        assert!(matches!(error, IdentityError::AuthorityDates { .. }), "{error:?}");
        assert!(matches!(authority.issue_server(DAY, at), Err(IdentityError::AuthorityDates { .. })));
    }
    assert!(matches!(
        authority.sign(&request, Role::Node, std::time::Duration::MAX, NOW),
        Err(IdentityError::Lifetime)
    ));
}

#[test]
fn a_request_for_more_gets_a_plain_certificate() {
    let authority = Authority::create(NOW).unwrap();
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::URI("farrun:operator:00".try_into().unwrap()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::Any];
    let request = params.serialize_request(&key).unwrap();

    let signed = authority.sign(request.der(), Role::Node, HOUR, NOW).unwrap();

    let fingerprint = PrivateKey::from_pem(&key.serialize_pem()).unwrap().fingerprint();
    assert_eq!(subject_of(&signed.der).unwrap(), Subject { role: Role::Node, fingerprint });
    let parsed = parse(&signed.der);
    assert!(!parsed.is_ca());
    let usage = parsed.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_cert_sign());
    let extended = parsed.extended_key_usage().unwrap().unwrap().value;
    assert_eq!((extended.client_auth, extended.server_auth, extended.any), (true, false, false));
    assert_eq!(
        parsed.subject().to_string(),
        format!("CN=farrun:node:{}", &fingerprint.to_hex()[..16]),
        "the requested name is dropped"
    );
}

#[test]
fn bad_requests_are_refused_with_the_reason() {
    let authority = Authority::create(NOW).unwrap();
    let good = PrivateKey::generate().unwrap().csr_der().unwrap();
    let sign = |request: &[u8]| authority.sign(request, Role::Node, HOUR, NOW).unwrap_err();
    // A changed bit is refused, or lies outside the signed part and leaves the certified key as it was.
    let key = authority.sign(&good, Role::Node, HOUR, NOW).unwrap().fingerprint;
    let signed_part = 2..good.len() - SIGNATURE_BYTES;
    for position in 0..good.len() {
        for bit in 0..8 {
            let mut tampered = good.clone();
            tampered[position] ^= 1 << bit;
            match authority.sign(&tampered, Role::Node, HOUR, NOW) {
                Ok(signed) => {
                    assert!(!signed_part.contains(&position), "byte {position} bit {bit}");
                    assert_eq!(signed.fingerprint, key, "byte {position} bit {bit}");
                }
                Err(error) => assert!(matches!(error, IdentityError::VerifyRequest(_)), "{error:?}"),
            }
        }
    }
    for length in 0..good.len() {
        assert!(matches!(sign(&good[..length]), IdentityError::VerifyRequest(_)), "cut at {length}");
    }
    let long = vec![0x30; MAX_CSR_BYTES + 1];
    assert!(matches!(sign(&long), IdentityError::RequestTooLong { found, .. } if found == long.len()));

    let other = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let request = CertificateParams::default().serialize_request(&other).unwrap();
    assert!(matches!(sign(request.der()), IdentityError::RequestKeyKind));

    let mut params = CertificateParams::default();
    params.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0])];
    let request = params.serialize_request(&KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()).unwrap();
    assert!(matches!(sign(request.der()), IdentityError::VerifyRequest(_)));
}

#[test]
fn each_certificate_has_its_own_serial_number() {
    let authority = Authority::create(NOW).unwrap();
    let request = PrivateKey::generate().unwrap().csr_der().unwrap();
    let serial = || {
        let signed = authority.sign(&request, Role::Node, HOUR, NOW).unwrap();
        parse(&signed.der).raw_serial().to_vec()
    };
    let (first, renewed) = (serial(), serial());
    assert_ne!(first, renewed);
    assert_eq!((first.len(), renewed.len()), (16, 16));
}

#[test]
fn a_server_identity_names_the_gateway_only() {
    let authority = Authority::create(NOW).unwrap();
    let server = authority.issue_server(DAY, NOW).unwrap();
    let [leaf, root] = server.chain.as_slice() else { panic!("{server:?}") };
    assert_eq!(root, authority.cert_der());
    assert_eq!(server.not_after, validity_of(leaf).unwrap().not_after);
    let parsed = parse(leaf);
    let names = &parsed.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(names.as_slice(), [GeneralName::DNSName(SERVER_NAME)]);
    let extended = parsed.extended_key_usage().unwrap().unwrap().value;
    assert_eq!((extended.client_auth, extended.server_auth, extended.any), (false, true, false));
    assert_eq!(parsed.issuer(), parse(root).subject());
    assert!(matches!(subject_of(leaf), Err(IdentityError::Subject { .. })), "a server is no client");
}

#[test]
fn pem_round_trip_keeps_the_authority() {
    let authority = Authority::create(NOW).unwrap();
    let read = Authority::from_pem(&authority.key_pem(), &authority.cert_pem()).unwrap();
    assert_eq!(read.fingerprint(), authority.fingerprint());
    assert_eq!(read.cert_der(), authority.cert_der());
    assert_eq!(read.cert_pem(), authority.cert_pem());
    assert_eq!(Fingerprint::of_certificate(read.cert_der()).unwrap(), read.fingerprint());
    let request = PrivateKey::generate().unwrap().csr_der().unwrap();
    let signed = read.sign(&request, Role::Operator, DAY, NOW).unwrap();
    parse(&signed.der).verify_signature(Some(parse(authority.cert_der()).public_key())).unwrap();
}

#[test]
fn key_and_certificate_that_do_not_belong_together_are_refused() {
    let (one, two) = (Authority::create(NOW).unwrap(), Authority::create(NOW).unwrap());
    let error = Authority::from_pem(&one.key_pem(), &two.cert_pem()).unwrap_err();
    assert!(matches!(error, IdentityError::AuthorityPair { reason: "the certificate is for another key" }));

    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let leaf = CertificateParams::default().self_signed(&key).unwrap();
    let error = Authority::from_pem(&key.serialize_pem(), &leaf.pem()).unwrap_err();
    assert!(matches!(
        error,
        IdentityError::AuthorityPair { reason: "the certificate is not an authority's" }
    ));

    assert!(matches!(Authority::from_pem(&one.key_pem(), ""), Err(IdentityError::ReadPem(_))));
    assert!(matches!(Authority::from_pem("", &one.cert_pem()), Err(IdentityError::ReadKey(_))));
    assert!(!format!("{one:?}").contains("BEGIN"));
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> X509Certificate<'a> {
    X509Certificate::from_der(certificate).unwrap().1
}
