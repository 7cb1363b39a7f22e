//! Reaching a gateway: over its Unix socket, or from afar with an operator's
//! certificate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::{PrivateMode, StateDir, read_private};
use fault::{ErrorCode, Fault};
use identity::{ClientIdentity, Fingerprint, Pin, PrivateKey};
use proto::v1::approvals_client::ApprovalsClient;
use proto::v1::operator_client::OperatorClient;
use proto::v1::tools_client::ToolsClient;
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use tonic::transport::Channel;

/// Largest answer that is taken.
const MESSAGE_MAX: usize = 16 * 1024 * 1024;
/// Largest identity file.
const FILE_MAX: u64 = 64 * 1024;

/// An operator's identity, as a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorFile {
    /// 1.
    pub version: u32,
    /// For people.
    pub name: String,
    /// HOST:PORT of the gateway.
    pub address: String,
    /// Its pin.
    pub fingerprint: String,
    /// DER, base64.
    pub certificate: String,
    /// PEM. A secret.
    pub key: String,
}

impl OperatorFile {
    /// Reads an identity file.
    ///
    /// # Errors
    /// It is not there, is open to others, or is none.
    pub fn load(file: &Path) -> Result<Self, Fault> {
        let bytes = read_private(file, FILE_MAX, PrivateMode::Strict).map_err(|e| unusable(file, &e))?;
        serde_json::from_slice(&bytes).map_err(|e| unusable(file, &e))
    }

    /// The operator's key.
    ///
    /// # Errors
    /// The file holds none.
    pub fn private_key(&self, file: &Path) -> Result<PrivateKey, Fault> {
        PrivateKey::from_pem(&self.key).map_err(|e| unusable(file, &e))
    }
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::Unauthenticated, format!("{} cannot be used: {error}", file.display()))
        .hint("`gateway operators add` writes such a file")
}

impl std::fmt::Debug for OperatorFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorFile")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// How to reach the gateway, kept to reach it again.
#[derive(Debug, Clone)]
enum Way {
    Local(PathBuf),
    Remote { address: String, gateway: Fingerprint, identity: ClientIdentity },
}

/// A connection to a gateway.
#[derive(Debug, Clone)]
pub struct Connection {
    way: Way,
    channel: Channel,
}

impl Connection {
    /// Over the Unix socket of the gateway that uses this state directory.
    pub async fn local(state: &StateDir) -> Result<Self, Fault> {
        Self::over(Way::Local(state.gateway_socket())).await
    }

    /// With an operator's identity file.
    pub async fn remote(file: &Path) -> Result<Self, Fault> {
        let parsed = OperatorFile::load(file)?;
        let certificate = STANDARD.decode(&parsed.certificate).map_err(|e| unusable(file, &e))?;
        let identity =
            ClientIdentity { cert_der: CertificateDer::from(certificate), key: parsed.private_key(file)? };
        let gateway = parsed.fingerprint.parse().map_err(|e| unusable(file, &e))?;
        Self::over(Way::Remote { address: parsed.address, gateway, identity }).await
    }

    async fn over(way: Way) -> Result<Self, Fault> {
        let channel = match &way {
            Way::Local(socket) => {
                let stream = link::unix::connect(socket).await.map_err(|error| {
                    Fault::new(
                        ErrorCode::GatewayUnreachable,
                        format!("no gateway is serving {}: {error}", socket.display()),
                    )
                    .hint("start one with `gateway serve`, or name its `--state-dir`")
                })?;
                link::dial::channel_over(stream)
                    .await
                    .map_err(|e| Fault::new(ErrorCode::GatewayUnreachable, e.to_string()))?
            }
            Way::Remote { address, gateway, identity } => {
                let tls = identity::client_config(Pin::Fingerprint(*gateway), Some(identity))
                    .map_err(|e| Fault::new(ErrorCode::Unauthenticated, e.to_string()))?;
                link::dial::dial(address, tls).await.map_err(|e| Fault::from(&e))?.channel
            }
        };
        Ok(Self { way, channel })
    }

    /// The same gateway again, for at most `within`.
    pub async fn again(&self, within: Duration) -> Result<Self, Fault> {
        let deadline = tokio::time::Instant::now() + within;
        let mut backoff = link::Backoff::default();
        loop {
            match Self::over(self.way.clone()).await {
                Ok(connection) => return Ok(connection),
                Err(fault) if tokio::time::Instant::now() >= deadline => return Err(fault),
                // Not welcome any more: asking again does not change that.
                Err(fault)
                    if matches!(fault.code, ErrorCode::Unauthenticated | ErrorCode::OtherAuthority) =>
                {
                    return Err(fault);
                }
                Err(_) => tokio::time::sleep(backoff.next(0).min(Duration::from_millis(250))).await,
            }
        }
    }

    /// The tools.
    pub fn tools(&self) -> ToolsClient<Channel> {
        ToolsClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_MAX)
    }

    /// Requests for a person's yes.
    pub fn approvals(&self) -> ApprovalsClient<Channel> {
        ApprovalsClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_MAX)
    }

    /// The operator's calls.
    pub fn operator(&self) -> OperatorClient<Channel> {
        OperatorClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_MAX)
    }
}
