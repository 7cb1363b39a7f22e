//! One gateway in a temporary directory, and everything around it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config::StateDir;
use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{Outcome, Reading, Running};
use crate::eventually::{PATIENCE, eventually};
use crate::node::{Node, NodeOptions};
use crate::proc;
use crate::programs::{Ended, Program, Sig, program, send_signal};

/// PATH of everything that a bed starts.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Marks everything that a bed starts, commands on nodes included.
const TAG: &str = "E2E_BED";

/// How the gateway of a bed is started.
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// Further arguments of `serve`.
    pub args: Vec<String>,
    /// Further variables.
    pub env: Vec<(String, String)>,
}

/// A gateway, its nodes and its clients.
#[derive(Debug)]
pub struct TestBed {
    dir: TempDir,
    tag: String,
    options: GatewayOptions,
    gateway: Option<Program>,
    address: SocketAddr,
    fingerprint: String,
}

impl TestBed {
    /// A bed whose gateway serves.
    #[track_caller]
    pub fn new() -> Self {
        Self::with(GatewayOptions::default())
    }

    /// A bed whose gateway serves with these options.
    #[track_caller]
    pub fn with(options: GatewayOptions) -> Self {
        let mut bed = Self::dark(options);
        bed.start_gateway();
        bed
    }

    /// A bed without a running gateway.
    pub fn dark(options: GatewayOptions) -> Self {
        static BEDS: AtomicU32 = AtomicU32::new(0);
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::Builder::new().prefix("farrun-e2e-").tempdir().expect("a temporary directory");
        let tag = format!("{}-{number}", std::process::id());
        std::fs::create_dir(dir.path().join("home")).expect("a home");
        // An address of its own, so that a restarted gateway gets its port
        // back whatever ports other beds are given meanwhile.
        let [a, b] = (std::process::id() as u16).to_be_bytes();
        let host =
            IpAddr::V4(Ipv4Addr::new(127, (a % 100) + 100, b, u8::try_from(number % 250 + 1).unwrap_or(1)));
        Self {
            dir,
            tag,
            options,
            gateway: None,
            address: SocketAddr::new(host, 0),
            fingerprint: String::new(),
        }
    }

    /// Starts the gateway, on the address that it had before.
    #[track_caller]
    pub fn start_gateway(&mut self) {
        let args = self.options.args.clone();
        let mut command = self.command(&program("gateway"));
        command
            .arg("serve")
            .args(["--listen", &self.address.to_string()])
            .arg("--state-dir")
            .arg(self.gateway_dir())
            .args(args)
            .envs(self.options.env.iter().cloned());
        let mut gateway = Program::start(command, &self.path("gateway.log"));
        let (address, fingerprint) = eventually(PATIENCE, || {
            let log = gateway.log();
            let ready = log.lines().find_map(|line| {
                let rest = line.strip_prefix("gateway: ready on ")?;
                let (address, fingerprint) = rest.split_once(" fingerprint ")?;
                Some((address.parse().ok()?, fingerprint.trim().to_owned()))
            });
            match gateway.ended() {
                Some(how) => panic!("the gateway ended with {how:?}: {log}"),
                None => ready.ok_or(log),
            }
        });
        self.address = address;
        self.fingerprint = fingerprint;
        self.gateway = Some(gateway);
    }

    /// Stops the gateway with a signal.
    #[track_caller]
    pub fn stop_gateway(&mut self, signal: Sig) -> Ended {
        let mut gateway = self.gateway.take().expect("a running gateway");
        gateway.signal(signal);
        gateway.wait(PATIENCE)
    }

    /// The running gateway.
    pub fn gateway(&self) -> &Program {
        self.gateway.as_ref().expect("a running gateway")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its pin.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// A path in the bed's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The gateway's state directory.
    pub fn gateway_dir(&self) -> PathBuf {
        self.path("gateway")
    }

    /// The same as the programs resolve it.
    pub fn state(&self) -> StateDir {
        StateDir::resolve(Some(self.gateway_dir()), None, None).expect("a usable state directory")
    }

    /// A command with the environment of this bed and nothing else.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.dir.path())
            .env("LANG", "C.UTF-8")
            .env("FARRUN_LOG", "info")
            .env(TAG, &self.tag)
            .current_dir(self.dir.path());
        command
    }

    /// A paired node that is connected.
    #[track_caller]
    pub fn node(&self, name: &str) -> Node {
        let node = self.invited(name, NodeOptions::default());
        node.wait_connected(1);
        node
    }

    /// A node that redeems a fresh invite.
    #[track_caller]
    pub fn invited(&self, name: &str, options: NodeOptions) -> Node {
        let address = options.via.unwrap_or(self.address).to_string();
        let invite = self.gateway_cli(["nodes", "invite", "--address", &address]);
        let link = invite.ok().stdout_text().trim().to_owned();
        Node::start(self, name, &["--pair", &link], options)
    }

    /// A node that asks to be paired.
    pub fn asking(&self, name: &str, options: NodeOptions) -> Node {
        let address = options.via.unwrap_or(self.address).to_string();
        Node::start(self, name, &["--gateway", &address, "--gateway-fingerprint", &self.fingerprint], options)
    }

    /// Runs a client command of the gateway's command line to its end.
    #[track_caller]
    pub fn gateway_cli<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.spawn_cli(args, Reading::Now).finish(Duration::from_secs(60))
    }

    /// Starts a client command.
    #[track_caller]
    pub fn spawn_cli<'a>(&self, args: impl IntoIterator<Item = &'a str>, reading: Reading) -> Running {
        Running::of(self.cli_command(args), reading)
    }

    /// A client command that is not started.
    pub fn cli_command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command(&program("gateway"));
        command.env("FARRUN_LOG", "warn").arg("--state-dir").arg(self.gateway_dir()).args(args);
        command
    }

    /// Runs `gateway exec` with these arguments.
    #[track_caller]
    pub fn exec<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.gateway_cli(std::iter::once("exec").chain(args))
    }

    /// Runs `node-host policy` with these arguments, as the owner of the node would on its machine.
    #[track_caller]
    pub fn policy<'a>(&self, node: &Node, args: impl IntoIterator<Item = &'a str>) -> Outcome {
        let mut command = self.command(&program("node-host"));
        command.env("FARRUN_LOG", "warn").env("OPENCLAW_STATE_DIR", node.dir()).arg("policy").args(args);
        Running::of(command, Reading::Now).finish(Duration::from_secs(60))
    }

    /// Runs `node-host` with these arguments for this node, as its owner would on its machine.
    #[track_caller]
    pub fn node_cli<'a>(&self, node: &Node, args: impl IntoIterator<Item = &'a str>) -> Outcome {
        let mut command = self.command(&program("node-host"));
        command.env("FARRUN_LOG", "warn").env("OPENCLAW_STATE_DIR", node.dir()).args(args);
        Running::of(command, Reading::Now).finish(Duration::from_secs(60))
    }

    /// Puts a program of this text into the bed's directory, over one that may be there; yields its path.
    #[track_caller]
    pub fn script(&self, name: &str, text: &str) -> String {
        let (path, stage) = (self.path(name), self.path(&format!("{name}.stage")));
        std::fs::write(&stage, text).expect("the bed can be written to");
        // By a process of its own: a descriptor open for writing in this one could be inherited by a program that
        // another story starts, and the script would be busy.
        let copied = Command::new("cp").arg(stage).arg(&path).status().expect("cp runs");
        assert!(copied.success(), "{name} could not be written: {copied}");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a file of this bed");
        path.display().to_string()
    }

    /// What waits for a yes, once it is so much.
    #[track_caller]
    pub fn cards<const N: usize>(&self) -> [Value; N] {
        eventually(PATIENCE, || {
            let listed = self.gateway_cli(["approvals", "pending", "--json"]).json();
            let open = listed["approvals"].as_array().expect("a list").clone();
            open.try_into().map_err(|open| format!("{open:?}"))
        })
    }

    /// What this bed started and is still there.
    pub fn processes(&self) -> Vec<proc::Process> {
        proc::with_environment(&format!("{TAG}={}", self.tag))
    }

    /// The names of connected nodes.
    #[track_caller]
    pub fn connected(&self) -> Vec<String> {
        let listed = self.gateway_cli(["nodes", "list", "--json"]).json();
        listed["nodes"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|n| n["connected"] == true)
            .map(|n| n["displayName"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Default for TestBed {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        // Sessions outlive their node host, so what carries our mark is ended
        // until nothing does; each by its own id.
        for _ in 0..200 {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for process in left {
                send_signal(process.pid, Sig::Kill);
            }
            if let Some(gateway) = &mut self.gateway {
                let _ = gateway.ended();
            }
            std::thread::yield_now();
        }
        if std::thread::panicking() {
            let Ok(dir) = std::fs::read_dir(self.dir.path()) else { return };
            for path in dir.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "log"))
            {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                eprintln!("--- {} ---\n{text}", path.display());
            }
        }
    }
}
