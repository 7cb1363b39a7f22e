//! The gateway's own certificate authority.
//!
//! Owns what a certificate says: every field is decided here, and only the public key is taken from a request. Who gets a
//! certificate, and for how long, is the caller's decision.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SanType,
    SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer, PrivateKeyDer};
use time::OffsetDateTime;

use crate::SERVER_NAME;
use crate::certificate::{self, Role, Subject, Validity, validity_of};
use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;
use crate::key::PrivateKey;

/// The longest certificate request that is looked at, in bytes. One with an Ed25519 key has about 150.
pub const MAX_CSR_BYTES: usize = 4096;

/// Lifetime of the authority. It is the pin, so it outlives every machine that was paired with it.
const AUTHORITY_LIFETIME: time::Duration = time::Duration::days(3650);

/// How far the authority's start lies in the past.
const AUTHORITY_BACKDATE: time::Duration = time::Duration::days(1);

/// How far the start of every other certificate lies in the past: the clock of a freshly installed machine may be late
/// by that much, and pairing still works (field case F192).
const LEAF_BACKDATE: time::Duration = time::Duration::hours(1);

/// A certificate authority: one key, one self-signed certificate. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct Authority {
    key: PrivateKey,
    cert: CertificateDer<'static>,
    /// Whole-second limits of `cert`; no certificate is signed outside them or reaches beyond them.
    validity: Validity,
}

/// A freshly signed client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCert {
    /// The certificate.
    pub der: CertificateDer<'static>,
    /// The fingerprint of the certified key.
    pub fingerprint: Fingerprint,
    /// First valid second, an hour before the time of signing.
    pub not_before: OffsetDateTime,
    /// Last valid second.
    pub not_after: OffsetDateTime,
}

/// What a gateway serves TLS with. The key is made for this certificate and needs no keeping.
#[derive(Debug)]
pub struct ServerIdentity {
    /// The server's certificate, then the authority's: the client learns the authority from the second.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key of the first certificate.
    pub key: PrivateKeyDer<'static>,
    /// Last valid second of the first certificate.
    pub not_after: OffsetDateTime,
}

impl Authority {
    /// Makes a new authority with a new key, valid for ten years from `now`.
    ///
    /// # Errors
    /// When the random source fails or `now` is out of range.
    pub fn create(now: OffsetDateTime) -> Result<Self, IdentityError> {
        let key = PrivateKey::generate()?;
        // The name contains the key's name: two authorities must differ in their names, else a certificate of one looks
        // to the other like its own with a broken signature instead of a stranger's.
        let name = format!("farrun:authority:{}", &key.fingerprint().to_hex()[..16]);
        let mut params = blank(&name, window(now, AUTHORITY_BACKDATE, AUTHORITY_LIFETIME)?)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let cert = params.self_signed(key.pair()).map_err(IdentityError::Sign)?.into();
        let validity = validity_of(&cert)?;
        Ok(Self { key, cert, validity })
    }

    /// Reads an authority that [`key_pem`](Self::key_pem) and [`cert_pem`](Self::cert_pem) wrote.
    ///
    /// # Errors
    /// When either text is malformed, or the certificate is not an authority's or not for this key.
    pub fn from_pem(key_pem: &str, cert_pem: &str) -> Result<Self, IdentityError> {
        let key = PrivateKey::from_pem(key_pem)?;
        let cert = CertificateDer::from_pem_slice(cert_pem.as_bytes()).map_err(IdentityError::ReadPem)?;
        if Fingerprint::of_certificate(&cert)? != key.fingerprint() {
            return Err(IdentityError::AuthorityPair { reason: "the certificate is for another key" });
        }
        if !certificate::parse(&cert)?.is_ca() {
            return Err(IdentityError::AuthorityPair { reason: "the certificate is not an authority's" });
        }
        let validity = validity_of(&cert)?;
        Ok(Self { key, cert, validity })
    }

    /// The private key as PEM. The text is the secret of the whole installation.
    pub fn key_pem(&self) -> String {
        self.key.to_pem()
    }

    /// The certificate as PEM.
    pub fn cert_pem(&self) -> String {
        certificate::to_pem(&self.cert)
    }

    /// The certificate.
    pub fn cert_der(&self) -> &CertificateDer<'static> {
        &self.cert
    }

    /// The fingerprint of the authority's key. This is **the** pin of the gateway.
    pub fn fingerprint(&self) -> Fingerprint {
        self.key.fingerprint()
    }

    /// The key that a certificate request is for, once its self-signature proved that the sender holds it.
    ///
    /// # Errors
    /// As [`sign`](Self::sign), but for the dates.
    pub fn requested_key(csr_der: &[u8]) -> Result<Fingerprint, IdentityError> {
        verify_request(csr_der).map(|(_, fingerprint)| fingerprint)
    }

    /// Signs a client certificate for the key in `csr_der`, and for nothing else in it: names, authority bits and usages
    /// that the request asks for are dropped. The certificate names `role` and the key, is good for client
    /// authentication only, starts an hour before `now`, and ends `lifetime` after it or with the authority.
    ///
    /// # Errors
    /// When the request is too long, malformed, not signed by its own key, asks for an extension of unknown kind, or has
    /// another kind of key than Ed25519; when the authority is not valid at `now`.
    pub fn sign(
        &self,
        csr_der: &[u8],
        role: Role,
        lifetime: Duration,
        now: OffsetDateTime,
    ) -> Result<SignedCert, IdentityError> {
        let (public_key, fingerprint) = verify_request(csr_der)?;
        let subject = Subject { role, fingerprint };
        let validity = self.leaf_window(lifetime, now)?;
        let mut params = blank(&subject.short_name(), validity)?;
        let uri = subject.to_string().try_into().map_err(IdentityError::Sign)?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let der = self.issue(&params, &public_key)?;
        Ok(SignedCert { der, fingerprint, not_before: validity.not_before, not_after: validity.not_after })
    }

    /// Makes a new server key and its certificate for [`SERVER_NAME`], with the dates of [`sign`](Self::sign).
    ///
    /// # Errors
    /// When the random source fails or the authority is not valid at `now`.
    pub fn issue_server(
        &self,
        lifetime: Duration,
        now: OffsetDateTime,
    ) -> Result<ServerIdentity, IdentityError> {
        let key = PrivateKey::generate()?;
        let validity = self.leaf_window(lifetime, now)?;
        let mut params = blank(SERVER_NAME, validity)?;
        let name = SERVER_NAME.try_into().map_err(IdentityError::Sign)?;
        params.subject_alt_names = vec![SanType::DnsName(name)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = self.issue(&params, key.pair())?;
        Ok(ServerIdentity {
            chain: vec![leaf, self.cert.clone()],
            key: key.rustls_key(),
            not_after: validity.not_after,
        })
    }

    fn issue(
        &self,
        params: &CertificateParams,
        public_key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let issuer = Issuer::from_ca_cert_der(&self.cert, self.key.pair()).map_err(IdentityError::Sign)?;
        Ok(params.signed_by(public_key, &issuer).map_err(IdentityError::Sign)?.into())
    }

    fn leaf_window(&self, lifetime: Duration, now: OffsetDateTime) -> Result<Validity, IdentityError> {
        let Validity { not_before, not_after } = self.validity;
        if now < not_before || now > not_after {
            return Err(IdentityError::AuthorityDates { now, not_before, not_after });
        }
        let lifetime = time::Duration::try_from(lifetime).map_err(|_| IdentityError::Lifetime)?;
        let wanted = window(now, LEAF_BACKDATE, lifetime)?;
        Ok(Validity {
            not_before: wanted.not_before.max(not_before),
            not_after: wanted.not_after.min(not_after),
        })
    }
}

/// Checks size, form, self-signature and kind of key; everything else that a request asks for is ignored.
fn verify_request(csr_der: &[u8]) -> Result<(rcgen::PublicKey, Fingerprint), IdentityError> {
    if csr_der.len() > MAX_CSR_BYTES {
        return Err(IdentityError::RequestTooLong { found: csr_der.len(), limit: MAX_CSR_BYTES });
    }
    let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(csr_der))
        .map_err(IdentityError::VerifyRequest)?;
    let public_key = request.public_key;
    if public_key.algorithm() != &PKCS_ED25519 {
        return Err(IdentityError::RequestKeyKind);
    }
    let fingerprint = Fingerprint::of_spki(&public_key.subject_public_key_info());
    Ok((public_key, fingerprint))
}

/// The dates around `now`, cut to the whole seconds that a certificate can hold.
fn window(
    now: OffsetDateTime,
    backdate: time::Duration,
    lifetime: time::Duration,
) -> Result<Validity, IdentityError> {
    let now =
        OffsetDateTime::from_unix_timestamp(now.unix_timestamp()).map_err(|_| IdentityError::Lifetime)?;
    Ok(Validity {
        not_before: now.checked_sub(backdate).ok_or(IdentityError::Lifetime)?,
        // RFC 5280 section 4.1.2.5 has four digits for the year.
        not_after: now
            .checked_add(lifetime)
            .filter(|end| end.year() <= 9999)
            .and_then(|end| OffsetDateTime::from_unix_timestamp(end.unix_timestamp()).ok())
            .ok_or(IdentityError::Lifetime)?,
    })
}

/// Parameters of an end certificate with a name, dates and a random serial number, and nothing else.
fn blank(common_name: &str, validity: Validity) -> Result<CertificateParams, IdentityError> {
    let mut serial = [0; 16];
    SystemRandom::new().fill(&mut serial).map_err(|_| IdentityError::Random)?;
    // Positive and of full length (RFC 5280 section 4.1.2.2), with 126 random bits.
    serial[0] = serial[0] & 0x7f | 0x40;
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = validity.not_before;
    params.not_after = validity.not_after;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}
