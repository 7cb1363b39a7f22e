//! `gateway exec-policy …`: what this machine asks for and what it allows, its two files at once (policy spec §1.4).
//!
//! `tools.exec` of `openclaw.json` is what is asked for, of nodes too; `defaults` of `exec-approvals.json` is what this
//! machine allows. Local only: both are files of this machine, and no gateway need run.

mod change;
mod files;
mod show;
mod values;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use config::{ApprovalsFile, StateDir};
use fault::{ErrorCode, Fault};
use policy::{Ask, AskFallback, Security};

use super::Common;
use files::{ConfigFile, DocumentFile};
use values::Values;

/// How long a change waits for another one. A change takes milliseconds.
const WAIT: Duration = Duration::from_secs(5);
/// Pause between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Subcommand)]
pub(super) enum ExecPolicyCommand {
    /// Show what is asked for, what this machine allows, and what holds: the stricter of both.
    Show {
        /// The agent; the main one unless given.
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Set all of the policy at once. Agents with their own words in one of the files keep those; they are named.
    Preset {
        /// Which one.
        #[arg(value_enum)]
        name: Preset,
    },
    /// Set parts of the policy. Agents with their own words in one of the files keep those; they are named.
    Set(SetArgs),
}

/// Ready-made policies (§1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// Everything runs and nobody is asked, unless the rules of a node say otherwise.
    Yolo,
    /// What the allowlist satisfies runs, the rest needs a person.
    Cautious,
    /// No command is started any more, except by agents with their own words. What runs already goes on.
    DenyAll,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(super) struct SetArgs {
    /// Where commands of calls run that name no host. This version runs commands on nodes only, and refuses such calls
    /// whatever is set.
    #[arg(long, value_enum)]
    host: Option<Host>,
    /// What may run: deny, allowlist or full.
    #[arg(long, value_name = "WORD")]
    security: Option<Security>,
    /// When a person is asked: off, on-miss or always.
    #[arg(long, value_name = "WORD")]
    ask: Option<Ask>,
    /// What happens when nobody can be asked: deny, allowlist or full.
    #[arg(long, value_name = "WORD")]
    ask_fallback: Option<AskFallback>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    Auto,
    Sandbox,
    Gateway,
    Node,
}

pub(super) async fn run(common: &Common, command: ExecPolicyCommand) -> Result<u8, Fault> {
    if common.identity.is_some() {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            "`exec-policy` is local: it reads and writes files of this machine",
        )
        .hint("run it on the gateway's machine, without `--identity`"));
    }
    let state = common.state()?;
    match command {
        ExecPolicyCommand::Show { agent } => show::show(common, &state, agent.as_deref(), &[])?,
        ExecPolicyCommand::Preset { name } => change(common, &state, &name.values()).await?,
        ExecPolicyCommand::Set(args) => change(common, &state, &args.values()?).await?,
    }
    Ok(0)
}

impl Preset {
    fn values(self) -> Values {
        let (security, ask, fallback) = match self {
            Self::Yolo => (Security::Full, Ask::Off, AskFallback::Full),
            Self::Cautious => (Security::Allowlist, Ask::OnMiss, AskFallback::Deny),
            Self::DenyAll => (Security::Deny, Ask::Off, AskFallback::Deny),
        };
        Values {
            host: Some("gateway".to_owned()),
            security: Some(security),
            ask: Some(ask),
            ask_fallback: Some(fallback),
        }
    }
}

impl SetArgs {
    fn values(&self) -> Result<Values, Fault> {
        let host = match self.host {
            None => None,
            Some(Host::Auto) => Some("auto"),
            Some(Host::Sandbox) => Some("sandbox"),
            Some(Host::Gateway) => Some("gateway"),
            Some(Host::Node) => {
                return Err(Fault::new(
                    ErrorCode::InvalidRequest,
                    "`--host node` is refused: what a node allows lies on the node, and this command changes files of this machine only",
                )
                .hint("on that machine: `node-host policy set`; from here: `gateway approvals set --node NODE`"));
            }
        };
        Ok(Values {
            host: host.map(str::to_owned),
            security: self.security,
            ask: self.ask,
            ask_fallback: self.ask_fallback,
        })
    }
}

async fn change(common: &Common, state: &StateDir, wanted: &Values) -> Result<(), Fault> {
    state.open().map_err(|e| Fault::new(e.code(), e.to_string()).hint(e.hint()))?;
    let lock = lock(state).await?;
    let config = ConfigFile::new(state.openclaw_json());
    let document = DocumentFile::new(ApprovalsFile::new(state.approvals()));
    let written = change::apply(&config, &document, wanted)?;
    drop(lock);
    show::show(common, state, None, &written)
}

/// Two changes at one time would each put back what the other one set.
async fn lock(state: &StateDir) -> Result<File, Fault> {
    let path = state.gateway_dir().join("exec-policy.lock");
    let failed = |e: std::io::Error| {
        Fault::new(ErrorCode::StateDirUnusable, format!("{} cannot be locked: {e}", path.display()))
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(&path)
        .map_err(failed)?;
    let until = Instant::now() + WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= until => {
                let message = "another `gateway exec-policy` is changing the policy";
                return Err(Fault::new(ErrorCode::Timeout, message).hint("try again"));
            }
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets() {
        let table = [
            (Preset::Yolo, Security::Full, Ask::Off, AskFallback::Full),
            (Preset::Cautious, Security::Allowlist, Ask::OnMiss, AskFallback::Deny),
            (Preset::DenyAll, Security::Deny, Ask::Off, AskFallback::Deny),
        ];
        for (preset, security, ask, fallback) in table {
            let want = Values {
                host: Some("gateway".into()),
                security: Some(security),
                ask: Some(ask),
                ask_fallback: Some(fallback),
            };
            assert_eq!(preset.values(), want, "{preset:?}");
        }
    }

    #[test]
    fn a_node_is_not_set_from_here() {
        let args = |host| SetArgs { host: Some(host), security: None, ask: None, ask_fallback: None };
        let fault = args(Host::Node).values().unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidRequest);
        assert!(fault.hint.is_some());
        let want = Values { host: Some("auto".into()), ..Values::default() };
        assert_eq!(args(Host::Auto).values().unwrap(), want);
    }
}
