//! `gateway demo -- COMMAND`: the whole path on one machine, for real.
//!
//! A temporary state directory, a gateway on loopback, a separate node-host
//! process that is paired by an invite, the command run on it over mutual TLS.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use config::StateDir;
use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, client_frame};
use tokio::process::{Child, Command};

use super::client::Connection;
use super::exec::{Follower, Leave, Renderer, Source, new_run_id};
use crate::gateway::{NODE_CERTIFICATE_LIFETIME, Settings};
use crate::serve;

/// A node host pairs and connects within this time, also on a busy machine.
const PAIRED_WITHIN: Duration = Duration::from_secs(30);
/// Both sides stop within this time.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// The command to run on the node.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(args: DemoArgs) -> Result<u8, Fault> {
    let scratch = Scratch::new().map_err(|f| step("make a temporary directory", f))?;
    let outcome = show(&scratch.0, args.command).await;
    drop(scratch);
    outcome
}

async fn show(scratch: &Path, command: Vec<String>) -> Result<u8, Fault> {
    let state = StateDir::resolve(Some(scratch.join("gateway")), None, None)
        .map_err(|e| step("make a state directory", e.into()))?;
    let settings = Settings {
        state: state.clone(),
        listen: std::net::SocketAddr::from(([127, 0, 0, 1], 0)),
        node_certificate_lifetime: NODE_CERTIFICATE_LIFETIME,
    };
    let ready = serve::prepare(settings).await.map_err(|f| step("start the gateway", f))?;
    let address = ready.address();
    let (stopping, registry) =
        (ready.gateway.stopping.clone(), std::sync::Arc::clone(&ready.gateway.registry));
    let serving = tokio::spawn(ready.serve());
    let connection = Connection::local(&state).await.map_err(|f| step("reach the gateway", f))?;
    let invite = connection
        .operator()
        .invite(pb::InviteRequest { display_name: "demo-node".to_owned(), ..pb::InviteRequest::default() })
        .await
        .map_err(|s| step("make an invite", Fault::from_status(&s)))?
        .into_inner();
    let mut node =
        start_node(&scratch.join("node"), &invite.link).map_err(|f| step("start the node host", f))?;

    let outcome = async {
        let id = connected(&registry, &mut node).await.map_err(|f| step("pair the node host", f))?;
        eprintln!(
            "demo: gateway on {address}, node host demo-node ({}) paired by invite, mutual TLS",
            &id[..12]
        );
        let request = pb::ExecRequest {
            host: "node".to_owned(),
            node: id,
            invocation: Some(pb::Invocation {
                form: Some(pb::invocation::Form::Argv(pb::Argv { words: command.clone() })),
            }),
            stdin: pb::Stdin::Closed.into(),
            on_close: pb::OnClose::Kill.into(),
            run_id: new_run_id()?,
            ..pb::ExecRequest::default()
        };
        let follower = Follower {
            connection,
            renderer: Renderer::new(false),
            source: Source::None,
            leave: Leave::KillsIt,
        };
        let code = follower
            .run(client_frame::Frame::Start(request))
            .await
            .map_err(|f| step("run the command on the node", f))?;
        eprintln!("demo: `{}` went to demo-node and came back with exit code {code}", command.join(" "));
        Ok(code)
    }
    .await;

    // The node host first: it says goodbye to a gateway that is still there.
    stop(&mut node).await;
    stopping.cancel();
    // The demo is over either way.
    let _ = tokio::time::timeout(STOPPED_WITHIN, serving).await;
    outcome
}

fn start_node(state: &Path, invite: &str) -> Result<Child, Fault> {
    let failed = |e: std::io::Error| Fault::new(ErrorCode::CouldNotStart, e.to_string());
    let program = std::env::current_exe().map_err(failed)?;
    Command::new(program)
        .arg("node-host")
        .args(["--pair", invite, "--display-name", "demo-node"])
        .arg("--state-dir")
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)
}

/// Waits until the node is connected; yields its id.
async fn connected(registry: &crate::registry::Registry, node: &mut Child) -> Result<String, Fault> {
    let mut changes = registry.changes();
    let wait = async {
        loop {
            changes.borrow_and_update();
            if let Some(node) = registry.nodes().into_iter().find(|n| n.connected) {
                return Ok(node.node_id);
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return Err(Fault::new(ErrorCode::Internal, "the gateway stopped"));
                },
                ended = node.wait() => {
                    let how = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
                    return Err(Fault::new(ErrorCode::CouldNotStart, format!("the node host ended early: {how}")));
                }
            }
        }
    };
    tokio::time::timeout(PAIRED_WITHIN, wait)
        .await
        .unwrap_or_else(|_| Err(Fault::new(ErrorCode::Timeout, "it did not connect in time")))
}

async fn stop(node: &mut Child) {
    if let Some(pid) =
        node.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(STOPPED_WITHIN, node.wait()).await.is_err() {
        let _ = node.kill().await;
    }
}

/// Names the step that failed.
fn step(what: &str, fault: Fault) -> Fault {
    let message = format!("the demo failed to {what}: {}", fault.message);
    let named = Fault::new(fault.code, message);
    match fault.hint {
        Some(hint) => named.hint(hint),
        None => named,
    }
}

/// A private directory that is removed when the demo is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Fault> {
        let path = std::env::temp_dir().join(format!("farrun-demo-{}", new_run_id()?));
        std::fs::DirBuilder::new()
            .create(&path)
            .and_then(|()| {
                std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            })
            .map_err(|e| Fault::new(ErrorCode::StateDirUnusable, format!("{}: {e}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left in the temporary directory at worst.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
