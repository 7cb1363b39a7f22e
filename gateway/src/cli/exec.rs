//! `gateway exec` and `gateway attach`.

mod follow;
mod input;
mod render;

use std::collections::HashMap;

use clap::Args;
use fault::{ErrorCode, Fault};
use node_host::enforce::{ask_to_wire, security_to_wire};
use node_host::on_disconnect_to_wire;
use policy::{Ask, Security};
use proto::v1::{self as pb, client_frame};
use session::OnDisconnect;

use super::{Common, terminal};
pub(super) use follow::{Follower, Leave, new_run_id};
pub(super) use input::Source;
pub(super) use render::Renderer;

#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// Where to run; only `node` in this version.
    #[arg(long, default_value = "node", hide = true)]
    host: String,
    /// The node: id, name, or id prefix of six or more. Not needed when only one is connected.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Directory on the node; its default unless given.
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    /// Set a variable for the command.
    #[arg(long, value_name = "K=V", value_parser = parse_env)]
    env: Vec<(String, String)>,
    /// Seconds until the command is killed; 0 is never [default: 1800].
    #[arg(long, alias = "timeout-seconds", value_name = "S")]
    timeout: Option<u64>,
    /// Run it in a terminal.
    #[arg(long)]
    pty: bool,
    /// Send this process's input to the command.
    #[arg(long)]
    stdin: bool,
    /// Leave it running: print the session and return.
    #[arg(long)]
    detach: bool,
    /// Run the one argument as text of the node's shell.
    #[arg(long, short = 'c')]
    shell: bool,
    /// The agent that runs it; its rules hold, here and on the node.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The caller's name of its session, for rules that hold for a session.
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,
    /// Ask for a stricter policy than the configured one: deny, allowlist or full.
    #[arg(long, value_name = "WORD")]
    security: Option<Security>,
    /// Ask for a stricter policy than the configured one: off, on-miss or always.
    #[arg(long, value_name = "WORD")]
    ask: Option<Ask>,
    #[command(flatten)]
    approval: ApprovalArgs,
    /// Name this run: the same id is never started twice.
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// What becomes of the command when nobody looks after it: keep, kill, or keep-for:<duration>
    /// [default: kill; with --detach: keep].
    #[arg(long, value_name = "POLICY")]
    on_disconnect: Option<OnDisconnect>,
    /// Bounds on what the command may use.
    #[command(flatten)]
    limits: LimitArgs,
    /// The command and its arguments, run as they are, without a shell between.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Bounds on what a command may use.
#[derive(Debug, Args)]
struct LimitArgs {
    /// End the command when its processes hold more memory than this together, as 512m or 2g.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit_memory: Option<u64>,
    /// End the command when it has more processes and threads than this.
    #[arg(long, value_name = "N")]
    limit_pids: Option<u32>,
    /// End the command when its processes used more processor time than this together, in seconds.
    #[arg(long, value_name = "S")]
    limit_cpu: Option<u64>,
    /// No file that the command writes may be larger than this.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit_file_size: Option<u64>,
    /// Keep no more output than this: the first part and the latest.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit_output: Option<u64>,
}

impl From<&LimitArgs> for pb::Limits {
    fn from(args: &LimitArgs) -> Self {
        Self {
            memory_bytes: args.limit_memory.unwrap_or_default(),
            pids: args.limit_pids.unwrap_or_default(),
            cpu_ms: args.limit_cpu.unwrap_or_default().saturating_mul(1000),
            file_bytes: args.limit_file_size.unwrap_or_default(),
            log_bytes: args.limit_output.unwrap_or_default(),
        }
    }
}

/// What happens where a person must be asked first.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct ApprovalArgs {
    /// Where a person must be asked, wait for the answer; so unless said otherwise.
    #[arg(long)]
    wait: bool,
    /// Where a person must be asked, print the request's id and return; a yes starts the command all the same, detached.
    #[arg(long)]
    no_wait: bool,
    /// Ask nobody: what the node does where nobody can be asked holds at once.
    #[arg(long)]
    no_ask: bool,
}

impl From<&ApprovalArgs> for pb::ApprovalWait {
    fn from(args: &ApprovalArgs) -> Self {
        match (args.no_wait, args.no_ask) {
            (true, _) => Self::Pending,
            (false, true) => Self::Never,
            (false, false) => Self::Inline,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    /// Session id, unique prefix of one, or run id.
    session: String,
    /// The node, where several know such a session.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Start reading at this byte.
    #[arg(long, value_name = "OFFSET", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// Send this process's input to the command.
    #[arg(long)]
    stdin: bool,
    /// Take the session over: what becomes of it when nobody looks after it, from now on.
    #[arg(long, value_name = "POLICY")]
    on_disconnect: Option<OnDisconnect>,
}

pub(super) async fn exec(common: &Common, args: ExecArgs) -> Result<u8, Fault> {
    let form = if args.shell {
        let [text] = args.command.as_slice() else {
            return Err(Fault::new(ErrorCode::InvalidRequest, "`--shell` takes one argument")
                .hint("quote it: gateway exec --shell -- 'ls | wc -l'"));
        };
        pb::invocation::Form::Shell(text.clone())
    } else {
        pb::invocation::Form::Argv(pb::Argv { words: args.command })
    };
    let request = pb::ExecRequest {
        host: args.host,
        node: args.node.unwrap_or_default(),
        invocation: Some(pb::Invocation { form: Some(form) }),
        workdir: args.workdir.unwrap_or_default(),
        env: args.env.into_iter().collect::<HashMap<_, _>>(),
        deadline: args.timeout.map(deadline),
        stdin: if args.stdin || args.pty { pb::Stdin::Open } else { pb::Stdin::Closed }.into(),
        terminal: args.pty.then(terminal::size),
        on_close: if args.detach { pb::OnClose::Keep } else { pb::OnClose::Kill }.into(),
        run_id: match args.run_id {
            Some(id) => id,
            None => new_run_id()?,
        },
        agent_id: args.agent.unwrap_or_default(),
        session_key: args.session_key.unwrap_or_default(),
        security: args.security.map_or(pb::Security::Unspecified, security_to_wire).into(),
        ask: args.ask.map_or(pb::Ask::Unspecified, ask_to_wire).into(),
        approval_wait: pb::ApprovalWait::from(&args.approval).into(),
        on_disconnect: args.on_disconnect.map(on_disconnect_to_wire),
        limits: Some(pb::Limits::from(&args.limits)).filter(|limits| *limits != pb::Limits::default()),
        ..pb::ExecRequest::default()
    };
    let source = match (args.pty && !args.detach, args.stdin && !args.detach) {
        (true, _) => Source::Terminal,
        (false, true) => Source::Stream,
        (false, false) => Source::None,
    };
    let follower = Follower {
        connection: common.connect().await?,
        renderer: Renderer::new(common.json),
        source,
        leave: match args.on_disconnect {
            _ if args.detach => Leave::AtOnce,
            None | Some(OnDisconnect::Kill) => Leave::KillsIt,
            Some(OnDisconnect::Keep | OnDisconnect::KeepFor(_)) => Leave::KeepsIt,
        },
    };
    follower.run(client_frame::Frame::Start(request)).await
}

pub(super) async fn attach(common: &Common, args: AttachArgs) -> Result<u8, Fault> {
    let connection = common.connect().await?;
    let request = pb::AttachRequest {
        session: args.session.clone(),
        node: args.node.clone().unwrap_or_default(),
        from_offset: args.from,
        on_close: pb::OnClose::Keep.into(),
        on_disconnect: args.on_disconnect.map(on_disconnect_to_wire),
        ..pb::AttachRequest::default()
    };
    let follower = Follower {
        connection,
        renderer: Renderer::new(common.json),
        source: if args.stdin { Source::Attached } else { Source::None },
        leave: Leave::KeepsIt,
    };
    follower.run(client_frame::Frame::Attach(request)).await
}

fn deadline(seconds: u64) -> pb::Deadline {
    let limit = match seconds {
        0 => pb::deadline::Limit::None(true),
        seconds => pb::deadline::Limit::TimeoutMs(seconds.saturating_mul(1000)),
    };
    pb::Deadline { limit: Some(limit) }
}

/// Bytes, or as `512m`, `2g`.
fn parse_size(text: &str) -> Result<u64, String> {
    crate::tools::parse_size(text)
        .filter(|size| *size > 0)
        .ok_or_else(|| format!("`{text}` is no size, as 512m or 2g"))
}

fn parse_env(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("`{text}` is not of the form K=V"))
}
