//! The state of one gateway process, shared by all its services.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::{PrivateMode, StateDir, read_private, write_private};
use fault::{ErrorCode, Fault};
use identity::{Authority, Fingerprint, Role, ServerCertificate};
use parking_lot::Mutex;
use proto::v1 as pb;
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::clock;
use crate::config_cache::ConfigCache;
use crate::notices::Notices;
use crate::pairing::Pairing;
use crate::registry::{Registry, store_fault};
use crate::review::Reviewer;
use crate::runs::Runs;
use crate::store::{SqliteStore, Store, UnixMs};
use crate::tasks::Tasks;
use crate::tools::ToolState;

/// Lifetime of a node's certificate, unless configured.
pub const NODE_CERTIFICATE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Lifetime of the gateway's own certificate and of operators' ones.
const OTHER_CERTIFICATE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest key or certificate file that is read.
const PEM_MAX: u64 = 64 * 1024;

/// How a gateway is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where state lies.
    pub state: StateDir,
    /// Where nodes and remote operators connect.
    pub listen: SocketAddr,
    /// Lifetime of node certificates.
    pub node_certificate_lifetime: Duration,
}

/// One gateway.
#[derive(Debug)]
pub struct Gateway {
    /// Its settings; `listen` has the real port.
    pub settings: Settings,
    /// Nodes and operators.
    pub registry: Arc<Registry>,
    /// What is configured for commands.
    pub(crate) config: ConfigCache,
    /// Open pairing requests.
    pub pairing: Mutex<Pairing>,
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// The CA.
    pub authority: Authority,
    /// What happened to commands.
    pub(crate) notices: Notices,
    /// Requests for a person's yes.
    pub(crate) approvals: Arc<Approvals>,
    /// What is asked, decided and run is written down here.
    log: Arc<audit::Log>,
    /// Commands whose end was not heard of.
    pub(crate) runs: Runs,
    /// Background commands and their ends.
    pub(crate) tasks: Tasks,
    /// Where sessions are, for the tools.
    pub(crate) tools: ToolState,
    /// Reviews commands under `mode=auto`.
    pub(crate) reviewer: Reviewer,
    /// What TLS clients are shown.
    pub certificate: Arc<ServerCertificate>,
    /// When it started.
    pub started_at: UnixMs,
    /// Cancelled when it stops.
    pub stopping: CancellationToken,
    /// Held while words are derived for a stranger.
    pub(crate) deriving: tokio::sync::Mutex<()>,
    /// Bounds the sessions that are being ended for absent callers.
    pub(crate) kills: Arc<tokio::sync::Semaphore>,
}

impl Gateway {
    /// Opens the state: makes the CA at the first start, reads the store.
    pub fn open(settings: Settings) -> Result<Arc<Self>, Fault> {
        let state = &settings.state;
        state.open().map_err(|e| Fault::new(e.code(), e.to_string()).hint(e.hint()))?;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&state.gateway_db()).map_err(|error| {
            store_fault(error).hint("restore it from a backup, or move it away to start with no paired nodes")
        })?);
        let registry = Arc::new(Registry::load(Arc::clone(&store)).map_err(store_fault)?);
        let authority = open_authority(state)?;
        let server = authority.issue_server(OTHER_CERTIFICATE_LIFETIME, clock::now()).map_err(internal)?;
        let certificate = Arc::new(ServerCertificate::new(server).map_err(internal)?);
        let config = ConfigCache::new(state.openclaw_json());
        let log = audit::Log::open(&state.gateway_audit()).map_err(|error| {
            Fault::new(ErrorCode::StoreUnreadable, error.to_string()).hint(
                "move gateway/audit away to start a new one; `gateway audit verify` reads it where it lies",
            )
        })?;
        let log = Arc::new(log);
        let stopping = CancellationToken::new();
        let approvals = Approvals::open(Arc::clone(&store), Some(Arc::clone(&log)), stopping.clone())?;
        let tasks = Tasks::open(Arc::clone(&store))?;
        Ok(Arc::new(Self {
            settings,
            tasks,
            approvals: Arc::new(approvals),
            log,
            config,
            registry,
            pairing: Mutex::default(),
            store,
            authority,
            notices: Notices::default(),
            runs: Runs::default(),
            tools: ToolState::default(),
            reviewer: Reviewer::default(),
            certificate,
            started_at: clock::now_ms(),
            stopping,
            deriving: tokio::sync::Mutex::default(),
            kills: Arc::new(tokio::sync::Semaphore::new(crate::kills::KILLS_MAX)),
        }))
    }

    /// Writes something down. A log that cannot be written is told of and stops nothing.
    pub(crate) fn audit(&self, kind: &str, data: impl FnOnce() -> serde_json::Value) {
        if let Err(error) = self.log.append(kind, data()) {
            tracing::error!(kind, %error, "the audit log could not be written");
        }
    }

    /// Signs a node's request and notes the end of its certificate.
    pub fn certify_node(&self, node: &Fingerprint, csr_der: &[u8]) -> Result<pb::IssuedCertificate, Fault> {
        let lifetime = self.settings.node_certificate_lifetime;
        let now = clock::now();
        let signed = self.authority.sign(csr_der, Role::Node, lifetime, now).map_err(bad_request)?;
        if signed.fingerprint != *node {
            return Err(Fault::new(ErrorCode::InvalidRequest, "the certificate request is for another key"));
        }
        let not_after = clock::to_ms(signed.not_after);
        self.registry.certified(node, not_after)?;
        Ok(pb::IssuedCertificate {
            certificate_der: signed.der.to_vec().into(),
            authority_der: self.authority.cert_der().to_vec().into(),
            renew_at_unix_ms: clock::to_ms(now + lifetime * 2 / 3),
            not_after_unix_ms: not_after,
        })
    }

    /// Signs an operator's request.
    pub fn certify_operator(&self, csr_der: &[u8]) -> Result<identity::SignedCert, Fault> {
        self.authority
            .sign(csr_der, Role::Operator, OTHER_CERTIFICATE_LIFETIME, clock::now())
            .map_err(bad_request)
    }

    /// Makes the gateway's own certificate anew at two thirds of its life,
    /// until the gateway stops.
    pub async fn keep_certificate_fresh(self: Arc<Self>) {
        loop {
            let left = self.certificate.not_after() - clock::now();
            let wait =
                Duration::try_from(left).unwrap_or_default().saturating_sub(OTHER_CERTIFICATE_LIFETIME / 3);
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(wait.max(Duration::from_secs(60))) => {}
            }
            let renewed = self
                .authority
                .issue_server(OTHER_CERTIFICATE_LIFETIME, clock::now())
                .and_then(|server| self.certificate.replace(server));
            match renewed {
                Ok(()) => tracing::info!("server certificate renewed"),
                Err(error) => tracing::error!(%error, "server certificate could not be renewed"),
            }
        }
    }
}

fn open_authority(state: &StateDir) -> Result<Authority, Fault> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Fault::new(ErrorCode::StoreUnreadable, format!("the gateway's CA cannot be used: {error}"))
            .hint("restore gateway/ca-key.pem and gateway/ca-cert.pem from a backup; a new CA means pairing every node again")
    };
    let read = |path| match read_private(path, PEM_MAX, PrivateMode::Strict) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|e| unreadable(&e)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(unreadable(&error)),
    };
    match (read(&state.ca_key())?, read(&state.ca_cert())?) {
        (Some(key), Some(cert)) => Authority::from_pem(&key, &cert).map_err(|e| unreadable(&e)),
        // The certificate is written last, so a key alone is an interrupted
        // first start: nobody can have pinned it.
        (_, None) => {
            let authority = Authority::create(clock::now()).map_err(internal)?;
            write_private(&state.ca_key(), authority.key_pem().as_bytes()).map_err(|e| unreadable(&e))?;
            write_private(&state.ca_cert(), authority.cert_pem().as_bytes()).map_err(|e| unreadable(&e))?;
            Ok(authority)
        }
        (None, Some(_)) => Err(unreadable(&"its key is missing")),
    }
}

fn internal(error: identity::IdentityError) -> Fault {
    Fault::new(ErrorCode::Internal, error.to_string())
}

fn bad_request(error: identity::IdentityError) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the certificate request was refused: {error}"))
}
