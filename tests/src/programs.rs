//! The programs under test: where they are, and one running process of them.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually::eventually;

/// The directory that cargo builds into, found through this very test binary.
fn target_profile_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of this test");
    exe.ancestors()
        .find(|dir| dir.join("deps").is_dir())
        .expect("a test runs below its target directory")
        .to_path_buf()
}

/// A program under test. The first call of a process builds them all, so that
/// no story meets a stale one.
pub(crate) fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(dir) => dir.join(name),
        Err(why) => panic!("the programs under test do not build: {why}"),
    }
}

/// A helper program of this crate; cargo builds it together with the stories.
pub fn helper(name: &str) -> String {
    target_profile_dir().join(name).display().to_string()
}

fn build() -> Result<PathBuf, String> {
    let dir = target_profile_dir();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "-q", "-p", "gateway", "-p", "node-host", "--bins"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if let Some(target) = dir.parent() {
        command.arg("--target-dir").arg(target);
    }
    if dir.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().expect("cargo runs");
    if status.success() { Ok(dir) } else { Err(status.to_string()) }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// Signals that stories send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sig {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
    /// SIGINT.
    Int,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Cont,
}

impl From<Sig> for Signal {
    fn from(signal: Sig) -> Self {
        match signal {
            Sig::Term => Self::TERM,
            Sig::Kill => Self::KILL,
            Sig::Int => Self::INT,
            Sig::Stop => Self::STOP,
            Sig::Cont => Self::CONT,
        }
    }
}

/// Sends a signal to one process by its id.
pub(crate) fn send_signal(pid: u32, signal: Sig) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal.into());
    }
}

/// A running program whose stderr goes to a log file.
#[derive(Debug)]
pub struct Program {
    child: Child,
    log: PathBuf,
    /// Length of the log when this process started.
    log_from: usize,
}

impl Program {
    /// Starts it; its log is appended to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let file: File = OpenOptions::new().create(true).append(true).open(log).expect("a log file");
        let log_from = usize::try_from(file.metadata().expect("log metadata").len()).expect("a short log");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
        Self { child, log: log.to_path_buf(), log_from }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to stderr.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_from..).unwrap_or_default()).into_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Sig) {
        send_signal(self.pid(), signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self, deadline: Duration) -> Ended {
        let pid = self.pid();
        eventually(deadline, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status.into()),
            Ok(None) => Err(format!("process {pid} still runs")),
            Err(e) => Err(e.to_string()),
        })
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<Ended> {
        self.child.try_wait().ok().flatten().map(Ended::from)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
