//! One node host of a bed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;

use crate::bed::TestBed;
use crate::eventually::{PATIENCE, eventually};
use crate::fake_gateway::FakeGateway;
use crate::proc;
use crate::programs::{Ended, Program, Sig, program};

/// Which user a node host runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunAs {
    /// The one that runs the stories.
    #[default]
    Same,
    /// 65534, by `setpriv`: only root can start that.
    Plain,
}

impl RunAs {
    /// A user that the permissions of files hold for, whoever runs the stories.
    pub fn plain() -> Self {
        if rustix::process::geteuid().is_root() { Self::Plain } else { Self::Same }
    }
}

/// How a node host is started.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// Where it dials; the gateway itself unless given.
    pub via: Option<SocketAddr>,
    /// Further variables of the service.
    pub env: Vec<(String, String)>,
    /// Which user it runs as.
    pub user: RunAs,
    /// Further arguments of `run`.
    pub args: Vec<String>,
}

/// A node host with its state directory. Starts again with what it was given.
#[derive(Debug)]
pub struct Node {
    name: String,
    dir: PathBuf,
    log: PathBuf,
    again: Mutex<Again>,
    running: Mutex<Option<Program>>,
    /// Keeps a plain user's directory.
    _own: Option<tempfile::TempDir>,
}

/// What a start needs.
#[derive(Debug)]
struct Again {
    command: Command,
}

impl Node {
    /// A node that redeems this link, used or not.
    pub fn pairing(bed: &TestBed, name: &str, link: &str) -> Self {
        Self::start(bed, name, &["--pair", link], NodeOptions::default())
    }

    /// A node that asks, and accepts only the gateway with this fingerprint.
    pub fn asking(bed: &TestBed, name: &str, fingerprint: &str) -> Self {
        let address = bed.address().to_string();
        let pairing = ["--gateway", &address, "--gateway-fingerprint", fingerprint];
        Self::start(bed, name, &pairing, NodeOptions::default())
    }

    /// A node that is pointed at a gateway made by hand.
    pub fn of_fake(bed: &TestBed, name: &str, gateway: &FakeGateway, options: NodeOptions) -> Self {
        let address = gateway.address.to_string();
        let pairing = ["--gateway", &address, "--gateway-fingerprint", &gateway.fingerprint];
        Self::start(bed, name, &pairing, options)
    }

    pub(crate) fn start(bed: &TestBed, name: &str, pairing: &[&str], options: NodeOptions) -> Self {
        let (own, dir, binary) = match options.user {
            RunAs::Same => (None, bed.path(&format!("node-{name}")), program("node-host")),
            RunAs::Plain => {
                let (own, binary) = plain_home();
                let dir = own.path().join("state");
                (Some(own), dir, binary)
            }
        };
        let mut command = match options.user {
            RunAs::Same => bed.command(&binary),
            RunAs::Plain => {
                let mut command = bed.command(Path::new("setpriv"));
                command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&binary);
                command
            }
        };
        if let Some(own) = &own {
            command.env("HOME", own.path()).env("TMPDIR", own.path()).current_dir(own.path());
        }
        command
            .arg("run")
            .args(pairing)
            .args(["--display-name", name])
            .arg("--state-dir")
            .arg(&dir)
            .args(options.args)
            .envs(options.env);
        let node = Self {
            name: name.to_owned(),
            dir,
            log: bed.path(&format!("node-{name}.log")),
            again: Mutex::new(Again { command }),
            running: Mutex::new(None),
            _own: own,
        };
        node.restart();
        node
    }

    /// Starts it (again).
    pub fn restart(&self) {
        let mut again = self.again.lock();
        let command = std::mem::replace(&mut again.command, Command::new("true"));
        let (program, kept) = start_and_keep(command, &self.log);
        again.command = kept;
        *self.running.lock() = Some(program);
    }

    /// Its display name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its approvals document.
    pub fn approvals(&self) -> PathBuf {
        self.dir.join("exec-approvals.json")
    }

    /// Process id of the node host.
    pub fn pid(&self) -> u32 {
        self.running.lock().as_ref().expect("a running node").pid()
    }

    /// What the running node host wrote to stderr.
    pub fn log(&self) -> String {
        self.running.lock().as_ref().map(Program::log).unwrap_or_default()
    }

    /// Waits for a line of its log that has `text` in it.
    #[track_caller]
    pub fn wait_log(&self, text: &str) -> String {
        eventually(PATIENCE, || {
            let log = self.log();
            log.lines()
                .find(|line| line.contains(text))
                .map(str::to_owned)
                .ok_or(format!("no `{text}` in: {log}"))
        })
    }

    /// How often this process has connected.
    pub fn connections(&self) -> usize {
        self.log().matches("node-host: connected to ").count()
    }

    /// Waits until it has connected that often.
    #[track_caller]
    pub fn wait_connected(&self, times: usize) {
        eventually(PATIENCE, || {
            let found = self.connections();
            if found >= times { Ok(()) } else { Err(format!("{found} connections: {}", self.log())) }
        });
    }

    /// Twelve characters of its id, from its own words.
    #[track_caller]
    pub fn short_id(&self) -> String {
        let line = self.wait_log("node-host: connected to ");
        let id = line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')'));
        id.map(|(id, _)| id.to_owned()).expect("an id in the line")
    }

    /// Sends it a signal and does not wait.
    pub fn signal(&self, signal: Sig) {
        self.running.lock().as_ref().expect("a running node").signal(signal);
    }

    /// Stops it with a signal.
    #[track_caller]
    pub fn stop(&self, signal: Sig) -> Ended {
        let mut program = self.running.lock().take().expect("a running node");
        program.signal(signal);
        program.wait(PATIENCE)
    }

    /// Waits for its own end, and yields its last words as well.
    #[track_caller]
    pub fn wait_end(&self) -> (Ended, String) {
        let mut program = self.running.lock().take().expect("a running node");
        let ended = program.wait(PATIENCE);
        (ended, program.log())
    }

    /// Its launcher.
    #[track_caller]
    pub fn launcher(&self) -> proc::Process {
        let pid = self.pid();
        proc::descendants(pid)
            .into_iter()
            .find(|p| p.parent == pid && p.name == "farrun-launch")
            .expect("a launcher below the node host")
    }
}

/// A command can be spawned again and again; the log is opened anew each time.
fn start_and_keep(command: Command, log: &Path) -> (Program, Command) {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args()).env_clear();
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            copy.env(key, value);
        }
    }
    if let Some(dir) = command.get_current_dir() {
        copy.current_dir(dir);
    }
    (Program::start(command, log), copy)
}

/// A directory that user 65534 owns, with a program that it may read.
fn plain_home() -> (tempfile::TempDir, PathBuf) {
    let own = tempfile::Builder::new().prefix("farrun-e2e-plain-").tempdir().expect("a temporary directory");
    let binary = own.path().join("node-host");
    // By a process of its own: a descriptor open for writing in this one could
    // be inherited by a program that another story starts, and the copy would
    // be busy.
    let copied = Command::new("cp").arg(program("node-host")).arg(&binary).status().expect("cp runs");
    assert!(copied.success(), "node-host could not be copied: {copied}");
    std::os::unix::fs::chown(own.path(), Some(65534), Some(65534)).expect("only root starts plain nodes");
    (own, binary)
}
