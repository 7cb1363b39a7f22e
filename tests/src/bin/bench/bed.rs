//! Our side: a gateway and a node host from the release build, paired, in a
//! directory of their own, and one client connection.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use config::StateDir;
use gateway::cli::client::Connection;
use proto::v1 as pb;
use proto::v1::approvals_client::ApprovalsClient;
use proto::v1::session_event::Event;
use proto::v1::tools_client::ToolsClient;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::procfs::Process;
use crate::program::{Program, Watchdog};

/// Name of the node that runs the commands.
pub(crate) const NODE: &str = "bench";
const GATEWAY_DIR: &str = "g";
const NODE_DIR: &str = "n";
/// A gateway is ready, and a node host connected, within this time.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);
/// Longest that a batch of calls may take.
const BATCH_WITHIN: Duration = Duration::from_secs(300);
/// A bed that is used for longer hangs.
const USED_WITHIN: Duration = Duration::from_secs(900);
const HOW_TO_BUILD: &str = "cargo build --release -p gateway -p node-host";

/// The client side of the tools.
pub(crate) type Tools = ToolsClient<Channel>;
/// The approvers' side.
pub(crate) type Approvals = ApprovalsClient<Channel>;

/// The two programs.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    /// `gateway`.
    pub(crate) gateway: PathBuf,
    /// `node-host`.
    pub(crate) node_host: PathBuf,
}

impl Binaries {
    /// Looks beside this executable and, for cargo's `deps/`, one up.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("the path of this program")?;
        let places: Vec<&Path> = own.ancestors().skip(1).take(2).collect();
        let find = |name: &str| {
            let found = places.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
            found.with_context(|| {
                format!("`{name}` is not beside {}; build it: {HOW_TO_BUILD}", own.display())
            })
        };
        Ok(Self { gateway: find("gateway")?, node_host: find("node-host")? })
    }

    /// Starts a gateway on a free port of loopback.
    pub(crate) fn start_gateway(&self, state: &Path) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.gateway);
        command.args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]).arg(state);
        Program::start("gateway", command)
    }

    /// Starts a node host; `invite` pairs it first.
    pub(crate) fn start_node(&self, state: &Path, invite: Option<&str>) -> anyhow::Result<Program> {
        self.start_node_with(state, invite, &[])
    }

    fn start_node_with(&self, state: &Path, invite: Option<&str>, flags: &[&str]) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.node_host);
        command.arg("run").args(flags).arg("--state-dir").arg(state);
        if let Some(link) = invite {
            command.args(["--pair", link]);
        }
        Program::start("node-host", command)
    }
}

/// Line of a gateway that serves.
pub(crate) const GATEWAY_READY: &str = "gateway: ready on ";
/// Line of a node host that is connected.
pub(crate) const NODE_READY: &str = "node-host: connected to ";

/// A gateway, a node host, a client.
#[derive(Debug)]
pub(crate) struct Bed {
    /// The programs that it runs.
    pub(crate) binaries: Binaries,
    gateway: Program,
    node: Program,
    connection: Connection,
    /// One worker: the connection and the calls share a thread, as in a client
    /// of its own, and keepalives are answered while the other side is measured.
    runtime: Runtime,
    scratch: TempDir,
    _watchdog: Watchdog,
}

impl Bed {
    /// Starts and pairs them.
    pub(crate) fn start(binaries: &Binaries) -> anyhow::Result<Self> {
        Self::start_with(binaries, &[])
    }

    /// The same, with flags for the node host.
    pub(crate) fn start_with(binaries: &Binaries, flags: &[&str]) -> anyhow::Result<Self> {
        let scratch = tempfile::Builder::new().prefix("bench-").tempdir().context("a temporary directory")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let path = scratch.path().join(GATEWAY_DIR);
        let gateway = binaries.start_gateway(&path)?;
        gateway.line(GATEWAY_READY, READY_WITHIN)?;
        let state = StateDir::resolve(Some(path), None, None)?;
        let connection = runtime.block_on(Connection::local(&state))?;
        let link = invite(&runtime, &connection, NODE)?;
        let node = binaries.start_node_with(&scratch.path().join(NODE_DIR), Some(&link), flags)?;
        node.line(NODE_READY, READY_WITHIN)?;
        let watchdog = Watchdog::new(USED_WITHIN, vec![gateway.process(), node.process()]);
        Ok(Self {
            binaries: binaries.clone(),
            gateway,
            node,
            connection,
            runtime,
            scratch,
            _watchdog: watchdog,
        })
    }

    /// The gateway.
    pub(crate) fn gateway(&self) -> Process {
        self.gateway.process()
    }

    /// The node host.
    pub(crate) fn node(&self) -> Process {
        self.node.process()
    }

    /// Where more state may lie.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A link that pairs one more node.
    pub(crate) fn invite(&self, name: &str) -> anyhow::Result<String> {
        invite(&self.runtime, &self.connection, name)
    }

    /// Tools on the one connection.
    pub(crate) fn tools(&self) -> Tools {
        self.connection.tools()
    }

    /// Approvals on the same connection.
    pub(crate) fn approvals(&self) -> Approvals {
        self.connection.approvals()
    }

    /// The gateway's state directory.
    pub(crate) fn gateway_dir(&self) -> PathBuf {
        self.scratch().join(GATEWAY_DIR)
    }

    /// The node's state directory.
    pub(crate) fn node_dir(&self) -> PathBuf {
        self.scratch().join(NODE_DIR)
    }

    /// Runs a batch on the client's thread, for a bounded time.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        batch: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        let bounded = self.runtime.spawn(async move { tokio::time::timeout(BATCH_WITHIN, batch).await });
        self.runtime.block_on(bounded)?.context("a batch of calls took too long")?
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Sessions outlive their node host on purpose, so they are ended here.
        let below = self.node().descendants();
        self.node.stop();
        self.gateway.stop();
        for process in below.into_iter().rev() {
            process.signal(Signal::KILL);
        }
    }
}

fn invite(runtime: &Runtime, connection: &Connection, name: &str) -> anyhow::Result<String> {
    let request = pb::InviteRequest { display_name: name.to_owned(), ..pb::InviteRequest::default() };
    let mut operator = connection.operator();
    let reply = async { tokio::time::timeout(READY_WITHIN, operator.invite(request)).await };
    Ok(runtime.block_on(reply)??.into_inner().link)
}

/// A command for the node's shell.
pub(crate) fn shell(text: &str) -> pb::ExecRequest {
    request(pb::invocation::Form::Shell(text.to_owned()))
}

/// A program with its arguments, without a shell.
pub(crate) fn argv(words: &[&str]) -> pb::ExecRequest {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    request(pb::invocation::Form::Argv(pb::Argv { words }))
}

fn request(form: pb::invocation::Form) -> pb::ExecRequest {
    pb::ExecRequest {
        host: "node".to_owned(),
        node: NODE.to_owned(),
        invocation: Some(pb::Invocation { form: Some(form) }),
        stdin: pb::Stdin::Closed.into(),
        on_close: pb::OnClose::Kill.into(),
        ..pb::ExecRequest::default()
    }
}

/// Runs a command to its exit, which must be code 0, and throws its output
/// away; yields how many bytes there were.
pub(crate) async fn call(tools: &mut Tools, request: pb::ExecRequest) -> anyhow::Result<u64> {
    let mut events = tools.exec(request).await?.into_inner();
    let mut bytes = 0;
    while let Some(event) = events.message().await? {
        match event.event {
            Some(Event::Output(output)) => {
                bytes += output.records.iter().map(|r| r.data.len() as u64).sum::<u64>()
            }
            Some(Event::Exit(pb::Exit { how: Some(pb::exit::How::Code(0)), final_offset, .. })) => {
                anyhow::ensure!(bytes == final_offset, "{bytes} of {final_offset} bytes arrived");
                return Ok(bytes);
            }
            Some(Event::Exit(exit)) => bail!("the command ended badly: {exit:?}"),
            Some(Event::Gap(gap)) => bail!("output was dropped: {gap:?}"),
            Some(
                Event::ApprovalPending(_)
                | Event::ApprovalClosed(_)
                | Event::Interrupted(_)
                | Event::Resumed(_)
                | Event::InputProgress(_)
                | Event::InputRefused(_)
                | Event::Started(_),
            )
            | None => {}
        }
    }
    bail!("the stream ended before the command did")
}
