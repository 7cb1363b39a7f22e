//! A node host from start to stop.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use config::{ApprovalsFile, StateDir};
use fault::{ErrorCode, Fault};
use identity::{Fingerprint, PairLink, Pin};
use policy::PassList;
use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::approvals::{Approvals, RemoteApprovals};
use crate::approvers::ApproversFile;
use crate::enforce::Door;
use crate::enrol::{Enrolment, enrol};
use crate::facts;
use crate::keys::{self, Paired};
use crate::link::{self, Removed};
use crate::node::Node;
use crate::process::{Launcher, LauncherHandle};
use crate::sessions::{Limits, Sessions};

/// How long a stopping node host waits for the notes on used rules.
const LAST_NOTES: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// HOST:PORT; none: the one that was paired before.
    pub gateway: Option<String>,
    /// Pin of the gateway.
    pub gateway_fingerprint: Option<Fingerprint>,
    /// An invite.
    pub pair: Option<PairLink>,
    /// Name for this node; none: the host's.
    pub display_name: Option<String>,
    /// Variables that reach commands though they look like secrets.
    pub pass_env: Vec<String>,
    /// Whether the gateway may replace this machine's approvals document.
    pub remote_approvals: RemoteApprovals,
    /// Sessions that may run at one time; none: 256 (runtime.md §2.7).
    pub max_sessions: Option<u16>,
}

/// Runs until stopped. Call it first in `main`: the launcher must be forked
/// while the process has one thread.
pub fn run(settings: Settings) -> ExitCode {
    let launcher = match Launcher::fork() {
        Ok(launcher) => launcher,
        Err(error) => {
            return fail(&Fault::new(
                ErrorCode::CouldNotStart,
                format!("the launcher could not be started: {error}"),
            ));
        }
    };
    init_log();
    identity::install_crypto_provider();
    // One thread: what a frame sets off runs to its end without waking another core (see docs/decisions/0004).
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Fault::new(ErrorCode::Internal, format!("no runtime: {error}"))),
    };
    let outcome = runtime.block_on(serve(settings, launcher));
    // A blocking read may be under way; it holds nothing that matters.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(fault) => fail(&fault),
    }
}

/// Prints a failure as all commands do, and yields its exit code.
pub fn fail(fault: &Fault) -> ExitCode {
    eprintln!("node-host: {fault}");
    if let Some(hint) = &fault.hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::from(fault.exit_class().status())
}

/// Logs of this process go to stderr, at the level of `FARRUN_LOG`. For both
/// programs.
pub fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("FARRUN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // Only the first call of a process counts.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

async fn serve(settings: Settings, launcher: LauncherHandle) -> Result<ExitCode, Fault> {
    let state = StateDir::from_process(settings.state_dir.clone()).map_err(|e| state_fault(&e))?;
    state.open().map_err(|e| state_fault(&e))?;
    let _lock = lock(&state)?;
    let key = keys::open_key(&state)?;
    let known = keys::known_gateway(&state)?;
    let name = settings
        .display_name
        .clone()
        .or_else(|| known.as_ref().map(|known| known.display_name.clone()))
        .unwrap_or_else(facts::hostname);
    let default_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let pass = PassList::new(&settings.pass_env);
    let approvals = Approvals::new(ApprovalsFile::new(state.approvals()), settings.remote_approvals);
    let mut limits = Limits::default();
    if let Some(max) = settings.max_sessions {
        limits.live_max = usize::from(max);
    }
    let sessions = Sessions::open(state.sessions(), launcher, limits).await.map_err(|e| {
        Fault::new(ErrorCode::StoreUnreadable, format!("the sessions of this node cannot be read: {e}"))
    })?;
    let door =
        Door::new(approvals, state.openclaw_json(), std::env::vars_os(), &pass, default_dir, name.clone());
    let log = audit::Log::open(&state.node_audit()).map_err(|error| {
        Fault::new(ErrorCode::StoreUnreadable, error.to_string())
            .hint("move node/audit away to start a new one; `node-host audit verify` reads it where it lies")
    })?;
    let door = door
        .with_state_dir(&state)
        .with_identity(key.fingerprint().to_hex(), ApproversFile::new(state.approvers()))
        .with_audit(Arc::new(log));
    let node = Arc::new(Node::new(name, door, sessions));
    node.note_ends_of_old_sessions();
    let abandoned = tokio::spawn(Arc::clone(&node).end_abandoned());

    let stopping = CancellationToken::new();
    let code = stop_on_signal(stopping.clone())?;
    announce_policy(&node);
    let notes = tokio::spawn(node.door.approvals().clone().keep_notes(stopping.clone()));
    let outcome = serve_gateway(&settings, &state, &node, &key, known.as_ref(), &stopping).await;
    stopping.cancel();
    abandoned.abort();
    let _ = tokio::time::timeout(LAST_NOTES, notes).await;
    outcome.map(|()| ExitCode::from(*code.lock()))
}

/// Pairs where that is needed, and serves the gateway until stopped or removed.
async fn serve_gateway(
    settings: &Settings,
    state: &StateDir,
    node: &Arc<Node>,
    key: &identity::PrivateKey,
    known: Option<&keys::KnownGateway>,
    stopping: &CancellationToken,
) -> Result<(), Fault> {
    let wanted = pairing(settings, known)?;
    // Only a certificate of the same gateway is of use.
    let on_disk = known.filter(|known| wanted.pin == Pin::Fingerprint(known.fingerprint)).and_then(|known| {
        let known = keys::KnownGateway { address: wanted.address.clone(), ..known.clone() };
        Paired::load(state, &known, key)
    });
    if let Some(mut paired) = on_disk {
        match link::keep(node, &mut paired, stopping).await {
            Ok(()) => return Ok(()),
            // The certificate was one of a pairing that had ended before: the invite is for a new one. A node that is
            // removed while it serves is gone, whatever invite it came with.
            Err(Removed::BeforeWelcome(fault)) if settings.pair.is_some() => {
                tracing::info!(%fault, "the stored pairing has ended, redeeming the invite");
            }
            Err(removed) => return Err(removed.into_fault()),
        }
    }
    if let Some(mut paired) = enrol(node, state, key, &wanted, stopping).await? {
        link::keep(node, &mut paired, stopping).await.map_err(Removed::into_fault)?;
    }
    Ok(())
}

/// Whom to pair with: the link, the flags, or what was paired before.
fn pairing(settings: &Settings, known: Option<&keys::KnownGateway>) -> Result<Enrolment, Fault> {
    if let Some(link) = &settings.pair {
        return Ok(Enrolment {
            address: link.address.clone(),
            pin: Pin::Fingerprint(link.gateway),
            token: link.token.clone(),
        });
    }
    let address =
        settings.gateway.clone().or_else(|| known.map(|known| known.address.clone())).ok_or_else(|| {
            Fault::new(ErrorCode::InvalidRequest, "no gateway was named and none was paired before")
                .hint("node-host run --gateway HOST:PORT, or --pair '<link>'")
        })?;
    let pin = match (settings.gateway_fingerprint, known) {
        (Some(fingerprint), _) => Pin::Fingerprint(fingerprint),
        (None, Some(known)) => Pin::Fingerprint(known.fingerprint),
        (None, None) => Pin::FirstUse,
    };
    Ok(Enrolment { address, pin, token: String::new() })
}

/// The default is wide, so it is said at every start (`decisions.md` 2, F037).
fn announce_policy(node: &Node) {
    let (policy, rules) = match node.door.policy(None) {
        Ok(found) => found,
        Err(fault) => return node.announce(&format!("node-host: {}", fault.message)),
    };
    node.announce(&format!(
        "node-host: policy on this machine: security={} ask={}",
        policy.security, policy.ask
    ));
    if policy.security == policy::Security::Full {
        node.announce(&format!(
            "node-host: every command of the gateway may run here; to run only what you list: {} set --security allowlist",
            node.door.owner_command()
        ));
        if rules > 0 {
            node.announce(&format!(
                "node-host: WARNING: the {rules} rules in {} are not asked while security is full",
                node.door.approvals().path().display()
            ));
        }
    }
}

/// SIGINT ends with 130, SIGTERM with 143 (`runtime.md` §6.2).
fn stop_on_signal(stopping: CancellationToken) -> Result<Arc<parking_lot::Mutex<u8>>, Fault> {
    let no_signals = |e: std::io::Error| Fault::new(ErrorCode::Internal, format!("no signal handler: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let code = Arc::new(parking_lot::Mutex::new(0));
    let stored = Arc::clone(&code);
    tokio::spawn(async move {
        let status = tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
        };
        *stored.lock() = status;
        stopping.cancel();
    });
    Ok(code)
}

/// One node host for one state directory.
fn lock(state: &StateDir) -> Result<File, Fault> {
    let path = state.node_lock();
    let unusable = |e: std::io::Error| {
        Fault::new(ErrorCode::StateDirUnusable, format!("{} cannot be locked: {e}", path.display()))
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(unusable)?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        if errno == rustix::io::Errno::WOULDBLOCK {
            Fault::new(
                ErrorCode::AlreadyRunning,
                format!("another node host is using {}", state.path().display()),
            )
            .hint("stop it, or use another `--state-dir`")
        } else {
            unusable(errno.into())
        }
    })?;
    Ok(file)
}

fn state_fault(error: &config::StateDirError) -> Fault {
    Fault::new(error.code(), error.to_string()).hint(error.hint())
}
