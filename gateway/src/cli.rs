//! The command line of `gateway`. Data goes to stdout, everything else to
//! stderr; an error is followed by a hint.

/// A line on stdout. Where nobody reads it any more the process ends, as
/// programs do that get SIGPIPE, instead of panicking.
macro_rules! say_line {
    ($($text:tt)*) => { crate::cli::output::print_line(format_args!($($text)*)) };
}

mod approvals;
mod audit;
pub mod client;
mod demo;
mod events;
mod exec;
mod exec_policy;
mod nodes;
mod operators;
mod output;
mod sessions;
mod tasks;
mod terminal;
mod tool;
mod words;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use config::StateDir;
use fault::{ErrorCode, Fault};
use node_host::cli::audit::AuditCommand;
use node_host::cli::text::parse_duration;

use crate::gateway::{NODE_CERTIFICATE_LIFETIME, Settings};
use crate::serve;
use client::Connection;

/// Pairs node hosts, routes commands to them and streams their output.
///
/// Exit codes of commands that run something: the command's own code; 124 timed
/// out; 126 or 127 could not be started; 128+N ended by signal N; 77 refused;
/// 69 not dispatched, safe to try again; 74 outcome unknown; 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "gateway", version, about, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
struct Common {
    /// Where state lies [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Talk to a remote gateway with this operator identity (`gateway operators add` writes it).
    #[arg(long, global = true, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until stopped.
    Serve(ServeArgs),
    /// Run a command on a node, streaming its output.
    Exec(exec::ExecArgs),
    /// Call a tool as an agent does: JSON in, JSON out.
    Tool(tool::ToolArgs),
    /// Follow a session that is there, from its first retained byte.
    Attach(exec::AttachArgs),
    /// List sessions.
    Sessions(sessions::ListArgs),
    /// End a session: TERM to its whole tree, KILL after a grace.
    Kill(sessions::KillArgs),
    /// Pair and manage nodes.
    #[command(subcommand)]
    Nodes(nodes::NodesCommand),
    /// Answer what waits for a yes; show and change what a machine allows: this one, or a node.
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Show and change what this machine asks for and allows, both at once.
    #[command(subcommand)]
    ExecPolicy(exec_policy::ExecPolicyCommand),
    /// Manage remote operators.
    #[command(subcommand)]
    Operators(operators::OperatorsCommand),
    /// Show what happened to commands: denied, still running, finished; take the ends that wait for an agent.
    Events(events::EventsArgs),
    /// List commands that run in the background, and how they ended; stop one.
    Tasks(tasks::TasksArgs),
    /// Show what was asked, decided and run, and check that the records are as they were written.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show the running gateway.
    Status,
    /// See it work: a temporary gateway, a node host paired with it, one command.
    Demo(demo::DemoArgs),
    /// The node host of `demo`.
    #[command(hide = true, name = "node-host")]
    NodeHost(node_host::cli::RunArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Where nodes and remote operators connect.
    #[arg(long, default_value = "127.0.0.1:18789", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Lifetime of node certificates; they are renewed at two thirds of it.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    node_certificate_lifetime: Option<Duration>,
}

/// Parses the arguments of the process and does what they say.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // The node host forks its launcher before any thread is there.
    if let Command::NodeHost(args) = cli.command {
        return args.run();
    }
    node_host::app::init_log();
    identity::install_crypto_provider();
    // A client waits on one connection; only a server has use for threads, and
    // only where a core is left for them (docs/decisions/0004).
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut builder = match cli.command {
        Command::Serve(_) if cores > 2 => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Fault::new(ErrorCode::Internal, format!("no runtime: {error}")), false),
    };
    let json = cli.common.json;
    let outcome = runtime.block_on(run(cli));
    // The thread that reads stdin may be blocked in a read for ever.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(fault) => fail(&fault, json),
    }
}

async fn run(cli: Cli) -> Result<u8, Fault> {
    let common = cli.common;
    match cli.command {
        Command::Serve(args) => {
            let lifetime = args.node_certificate_lifetime.unwrap_or(NODE_CERTIFICATE_LIFETIME);
            let settings =
                Settings { state: common.state()?, listen: args.listen, node_certificate_lifetime: lifetime };
            serve::run(settings).await
        }
        Command::Exec(args) => exec::exec(&common, args).await,
        Command::Tool(args) => tool::run(&common, args).await,
        Command::Attach(args) => exec::attach(&common, args).await,
        Command::Sessions(args) => sessions::list(&common, args).await,
        Command::Kill(args) => sessions::kill(&common, args).await,
        Command::Nodes(command) => nodes::run(&common, command).await,
        Command::Approvals(command) => approvals::run(&common, command).await,
        Command::ExecPolicy(command) => exec_policy::run(&common, command).await,
        Command::Operators(command) => operators::run(&common, command).await,
        Command::Events(args) => events::run(&common, args).await,
        Command::Tasks(args) => tasks::run(&common, args).await,
        Command::Audit(command) => audit::run(&common, &command),
        Command::Status => nodes::status(&common).await,
        Command::Demo(args) => demo::run(args).await,
        Command::NodeHost(_) => Err(Fault::new(ErrorCode::Internal, "the node host runs before the runtime")),
    }
}

impl Common {
    fn state(&self) -> Result<StateDir, Fault> {
        let state = StateDir::from_process(self.state_dir.clone())
            .map_err(|e| Fault::new(e.code(), e.to_string()).hint(e.hint()))?;
        Ok(state)
    }

    async fn connect(&self) -> Result<Connection, Fault> {
        match &self.identity {
            Some(file) => Connection::remote(file).await,
            None => Connection::local(&self.state()?).await,
        }
    }
}

/// Prints a failure as all commands do.
fn fail(fault: &Fault, json: bool) -> ExitCode {
    if json {
        let value = serde_json::json!({ "error": fault });
        eprintln!("{value}");
    } else {
        // A message may quote what came from elsewhere.
        let safe = |text: &str| text.split('\n').map(output::safe).collect::<Vec<_>>().join("\n");
        eprintln!("gateway: {}", safe(&fault.to_string()));
        if let Some(hint) = &fault.hint {
            eprintln!("hint: {}", safe(hint));
        }
    }
    ExitCode::from(fault.exit_class().status())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn command_lines_about_policy() {
        let table = [
            ("approvals get", true),
            ("approvals get --gateway --json", true),
            ("approvals get --node a", true),
            ("approvals get --node a --gateway", false),
            ("approvals set - --base-hash h", true),
            ("approvals set", false),
            ("approvals allowlist add /usr/bin/git --agent a --arg-pattern -n", true),
            ("approvals allowlist remove git --node a", true),
            ("approvals allowlist add", false),
            ("approvals allowlist add git --match x --match -y --no-match z", true),
            ("approvals allowlist remove git --match x", false),
            ("exec-policy show --agent a", true),
            ("exec-policy preset deny-all", true),
            ("exec-policy preset other", false),
            ("exec-policy set --host node", true),
            ("exec-policy set --host mars", false),
            ("exec-policy set --security allowlist --ask on-miss --ask-fallback deny", true),
            ("exec-policy set --security Deny", false),
            ("exec-policy set", false),
            ("exec --agent a --security deny --ask always -- true", true),
            ("exec --security none -- true", false),
            ("exec --no-wait -- true", true),
            ("exec --wait -- true", true),
            ("exec --no-ask -- true", true),
            ("exec --wait --no-wait -- true", false),
            ("exec --no-ask --no-wait -- true", false),
            ("approvals pending --watch --json", true),
            ("approvals show ab12cd34", true),
            ("approvals show", false),
            ("approvals resolve ab12cd34 allow-once --plan 0123456789abcdef", true),
            ("approvals resolve ab12cd34 always --scope args --for 1h", true),
            ("approvals resolve ab12cd34 always --session --for 1h", false),
            ("approvals resolve ab12cd34", false),
            ("approvals history --limit 10", true),
            ("approvals history --limit 0", false),
            ("approvals key --key k.pem", true),
            ("events --follow --after 3", true),
            ("tool {} --agent a --session-key k --node n --call-id c --updates --no-wait", true),
            ("tool - --text", true),
            ("tool", false),
            ("events --take --agent a --session-key k --follow", true),
            ("events --take --after 3", false),
            ("events --agent a", false),
            ("tasks", true),
            ("tasks --running --agent a --json", true),
            ("tasks stop calm-reef --agent a", true),
            ("tasks stop", false),
            ("tasks --running stop calm-reef", false),
            ("audit list --limit 5 --kind run --kind approval --since 2h --json", true),
            ("audit list --limit 0", false),
            ("audit list --since never", false),
            ("audit verify --json", true),
            ("audit", false),
        ];
        for (line, good) in table {
            let parsed = Cli::try_parse_from(std::iter::once("gateway").chain(line.split(' ')));
            assert_eq!(parsed.is_ok(), good, "{line}: {:?}", parsed.err());
        }
    }
}
