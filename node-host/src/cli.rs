//! The command line of `node-host`.

mod approvers;
pub mod audit;
mod policy;
pub mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use identity::{Fingerprint, PairLink};

use crate::app::{self, Settings};
use crate::approvals::RemoteApprovals;

/// Runs commands of a paired gateway on this machine, as far as this machine's
/// own policy allows.
#[derive(Debug, Parser)]
#[command(name = "node-host", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Pair with a gateway if need be, connect, and serve until stopped.
    Run(RunArgs),
    /// Whose signed decisions count on this machine.
    Approvers(approvers::ApproversArgs),
    /// What was asked, decided and run on this machine, and whether the records are as they were written.
    Audit(audit::AuditArgs),
    /// What may run on this machine, and why.
    Policy(policy::PolicyArgs),
}

/// The flags of `node-host run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The gateway; not needed once paired.
    #[arg(long, value_name = "HOST:PORT")]
    gateway: Option<String>,
    /// Accept only the gateway with this fingerprint (`gateway status` shows it).
    #[arg(long, value_name = "SHA256")]
    gateway_fingerprint: Option<Fingerprint>,
    /// Redeem an invite (`gateway nodes invite`).
    #[arg(long, value_name = "LINK", conflicts_with_all = ["gateway", "gateway_fingerprint"])]
    pair: Option<PairLink>,
    /// Name for this node; the host's name unless given.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// Where keys, policy and sessions lie [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Let this variable of the service reach commands though its name looks like a secret.
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// Let the gateway replace this machine's exec-approvals.json, which says what may run here.
    #[arg(long)]
    remote_approvals: bool,
    /// Sessions that may run at one time, 1 to 10000; one more is refused [default: 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    max_sessions: Option<u16>,
}

impl RunArgs {
    /// Runs the node host. Call it while the process has one thread.
    pub fn run(self) -> ExitCode {
        app::run(Settings {
            state_dir: self.state_dir,
            gateway: self.gateway,
            gateway_fingerprint: self.gateway_fingerprint,
            pair: self.pair,
            display_name: self.display_name,
            pass_env: self.pass_env,
            remote_approvals: if self.remote_approvals {
                RemoteApprovals::Accepted
            } else {
                RemoteApprovals::Refused
            },
            max_sessions: self.max_sessions,
        })
    }
}

/// Parses the arguments of the process and does what they say.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => args.run(),
        Command::Approvers(args) => {
            app::init_log();
            approvers::run(args)
        }
        Command::Audit(args) => {
            app::init_log();
            audit::run(args)
        }
        Command::Policy(args) => {
            app::init_log();
            policy::run(args)
        }
    }
}

/// A reader that has gone away is no error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(text.as_bytes());
}
