//! This node's identity on disk: its key, its certificate, its gateway.
//!
//! The key is made here and never leaves. `node.json` names the gateway and
//! pins it.

use config::{PrivateMode, StateDir, read_private, write_private};
use fault::{ErrorCode, Fault};
use identity::{ClientIdentity, Fingerprint, PrivateKey};
use proto::v1 as pb;
use serde::{Deserialize, Serialize};

/// Largest key, certificate or configuration file that is read.
const FILE_MAX: u64 = 64 * 1024;

/// `node.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeFile {
    version: u32,
    display_name: String,
    gateway: GatewayFile,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayFile {
    /// HOST:PORT.
    address: String,
    /// Fingerprint of its authority.
    tls_fingerprint: String,
}

/// The gateway that a state directory remembers.
#[derive(Debug, Clone)]
pub(crate) struct KnownGateway {
    /// HOST:PORT.
    pub address: String,
    /// Its pin.
    pub fingerprint: Fingerprint,
    /// The name that this node had there.
    pub display_name: String,
}

/// The identity of a node that is paired.
#[derive(Debug)]
pub(crate) struct Paired {
    state: StateDir,
    /// HOST:PORT of the gateway.
    pub address: String,
    /// Its pin.
    pub gateway: Fingerprint,
    /// Key and newest certificate.
    pub identity: ClientIdentity,
}

/// Reads the key, or makes one at the first start.
pub(crate) fn open_key(state: &StateDir) -> Result<PrivateKey, Fault> {
    let path = state.node_key();
    let unusable = |error: &dyn std::fmt::Display| {
        Fault::new(ErrorCode::StoreUnreadable, format!("the node's key cannot be used: {error}"))
            .hint("restore it from a backup, or remove it and pair this machine anew")
    };
    match read_private(&path, FILE_MAX, PrivateMode::Strict) {
        Ok(pem) => PrivateKey::from_pem(&String::from_utf8_lossy(&pem)).map_err(|e| unusable(&e)),
        Err(error) if error.is_not_found() => {
            let key = PrivateKey::generate().map_err(|e| unusable(&e))?;
            write_private(&path, key.to_pem().as_bytes()).map_err(|e| unusable(&e))?;
            Ok(key)
        }
        Err(error) => Err(unusable(&error)),
    }
}

/// The gateway that was pinned at pairing, if there was one.
pub(crate) fn known_gateway(state: &StateDir) -> Result<Option<KnownGateway>, Fault> {
    let unusable = |error: &dyn std::fmt::Display| {
        Fault::new(
            ErrorCode::StoreUnreadable,
            format!("{} cannot be used: {error}", state.node_json().display()),
        )
    };
    let bytes = match read_private(&state.node_json(), FILE_MAX, PrivateMode::Readable) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(unusable(&error)),
    };
    let file: NodeFile = serde_json::from_slice(&bytes).map_err(|e| unusable(&e))?;
    let fingerprint = file.gateway.tls_fingerprint.parse().map_err(|e| unusable(&e))?;
    Ok(Some(KnownGateway { address: file.gateway.address, fingerprint, display_name: file.display_name }))
}

impl Paired {
    /// The identity on disk, if this node was paired with `gateway` and the
    /// certificate is still good for the key.
    pub(crate) fn load(state: &StateDir, gateway: &KnownGateway, key: &PrivateKey) -> Option<Self> {
        let cert = read_private(&state.node_cert(), FILE_MAX, PrivateMode::Readable).ok()?;
        let cert_der = rustls_pki_types::CertificateDer::from(cert);
        // A certificate that lapsed while the node was off is of no use: the
        // key enrols again and, still paired, gets another at once.
        let validity = identity::validity_of(&cert_der).ok()?;
        if validity.not_after < time::OffsetDateTime::now_utc()
            || Fingerprint::of_certificate(&cert_der).ok()? != key.fingerprint()
        {
            return None;
        }
        Some(Self {
            state: state.clone(),
            address: gateway.address.clone(),
            gateway: gateway.fingerprint,
            identity: ClientIdentity { cert_der, key: key.clone() },
        })
    }

    /// Writes what an approval brought, and pins the gateway.
    pub(crate) fn store(
        state: &StateDir,
        address: &str,
        gateway: Fingerprint,
        key: &PrivateKey,
        approved: &pb::EnrolApproved,
    ) -> Result<Self, Fault> {
        let issued = approved
            .certificate
            .as_ref()
            .ok_or_else(|| Fault::new(ErrorCode::Internal, "the gateway approved and sent no certificate"))?;
        let cert_der = own_certificate(issued, key)?;
        let file = NodeFile {
            version: 1,
            display_name: approved.display_name.clone(),
            gateway: GatewayFile { address: address.to_owned(), tls_fingerprint: gateway.to_hex() },
        };
        let text = serde_json::to_string_pretty(&file).map_err(|e| unwritable(&e))?;
        write_private(&state.node_cert(), &cert_der).map_err(|e| unwritable(&e))?;
        write_private(&state.node_json(), format!("{text}\n").as_bytes()).map_err(|e| unwritable(&e))?;
        Ok(Self {
            state: state.clone(),
            address: address.to_owned(),
            gateway,
            identity: ClientIdentity { cert_der, key: key.clone() },
        })
    }

    /// A request for the next certificate.
    pub(crate) fn renewal_request(&self) -> Result<Vec<u8>, Fault> {
        self.identity.key.csr_der().map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))
    }

    /// Takes the next certificate; yields when to ask for the one after it.
    /// The open connection stays as it is.
    pub(crate) fn renewed(&mut self, reply: pb::RenewReply) -> Result<i64, Fault> {
        match reply.outcome {
            Some(pb::renew_reply::Outcome::Issued(issued)) => {
                let cert_der = own_certificate(&issued, &self.identity.key)?;
                write_private(&self.state.node_cert(), &cert_der).map_err(|e| unwritable(&e))?;
                self.identity.cert_der = cert_der;
                Ok(issued.renew_at_unix_ms)
            }
            Some(pb::renew_reply::Outcome::Refused(fault)) => Err(fault.into()),
            None => Err(Fault::new(ErrorCode::Internal, "an empty renewal")),
        }
    }

    /// The gateway does not accept it any more; the key stays, so that a new
    /// pairing is the same node.
    pub(crate) fn forget_certificate(&self) {
        if let Err(error) = std::fs::remove_file(self.state.node_cert()) {
            tracing::warn!(%error, "the certificate of the removed pairing could not be deleted");
        }
    }
}

fn own_certificate(
    issued: &pb::IssuedCertificate,
    key: &PrivateKey,
) -> Result<rustls_pki_types::CertificateDer<'static>, Fault> {
    let cert_der = rustls_pki_types::CertificateDer::from(issued.certificate_der.to_vec());
    match Fingerprint::of_certificate(&cert_der) {
        Ok(fingerprint) if fingerprint == key.fingerprint() => Ok(cert_der),
        Ok(_) | Err(_) => Err(Fault::new(
            ErrorCode::Internal,
            "the gateway sent a certificate that is not for this node's key",
        )),
    }
}

fn unwritable(error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::StoreUnreadable, format!("the pairing could not be stored: {error}"))
}
