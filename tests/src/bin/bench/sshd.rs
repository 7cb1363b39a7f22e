//! The opponent: a private OpenSSH server on loopback with keys and
//! configuration of its own, and masters connected to it. Nothing of the
//! system's own configuration is read or changed.

use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Signal, getuid};
use tempfile::TempDir;

use crate::procfs::Process;
use crate::program::{Watchdog, stop};

/// Connections of the parallel measurement.
pub(crate) const MASTERS: usize = 4;
const UP_WITHIN: Duration = Duration::from_secs(20);
/// A measurement that uses it for longer hangs.
const USED_WITHIN: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(20);
/// sshd looks its own helpers up; nothing else is wanted from our environment.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A server, its masters, and how a client reaches it.
#[derive(Debug)]
pub(crate) struct Sshd {
    server: Child,
    process: Process,
    masters: Vec<(PathBuf, Child)>,
    config: PathBuf,
    /// The null device, for sessions without input.
    pub(crate) null: File,
    /// Version and cipher, for the record.
    pub(crate) facts: serde_json::Value,
    _scratch: TempDir,
}

impl Sshd {
    /// Starts the server and [`MASTERS`] masters.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let sshd = find("sshd", "openssh-server")?;
        find("ssh", "openssh-client")?;
        let scratch = tempfile::Builder::new().prefix("bench-ssh-").tempdir()?;
        let dir = scratch.path();
        let config = configure(dir)?;
        let log = File::create(dir.join("log"))?;
        let mut command = isolated(dir, &sshd)?;
        command.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        command.env_clear().env("PATH", PATH).env("LANG", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = command.spawn().context("sshd cannot be started")?;
        let process = Process::of(server.id()).context("sshd is not in /proc")?;
        let mut this = Self {
            server,
            process,
            masters: Vec::new(),
            config,
            null: File::options().read(true).write(true).open("/dev/null")?,
            facts: serde_json::Value::Null,
            _scratch: scratch,
        };
        this.facts = this.wait_until_up()?;
        for index in 0..MASTERS {
            this.start_master(index)?;
        }
        Ok(this)
    }

    /// `ssh` for this server; add options, then the host name `h`.
    pub(crate) fn client(&self) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(&self.config).stdin(Stdio::null());
        command
    }

    /// The words of [`Sshd::client`], for a terminal.
    pub(crate) fn client_words(&self) -> Vec<String> {
        vec!["ssh".to_owned(), "-F".to_owned(), self.config.display().to_string()]
    }

    /// Control socket of one of the masters.
    pub(crate) fn control(&self, index: usize) -> &Path {
        &self.masters[index % self.masters.len()].0
    }

    /// The listening process.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// Ends the server and the masters unless the watchdog is dropped in time.
    pub(crate) fn watchdog(&self) -> Watchdog {
        let masters = self.masters.iter().filter_map(|(_, child)| Process::of(child.id()));
        Watchdog::new(USED_WITHIN, masters.chain([self.process]).collect())
    }

    fn wait_until_up(&mut self) -> anyhow::Result<serde_json::Value> {
        let deadline = Instant::now() + UP_WITHIN;
        loop {
            let output = self.client().args(["-v", "h", "true"]).output()?;
            if output.status.success() {
                return Ok(facts(&output));
            }
            if Instant::now() >= deadline || !matches!(self.server.try_wait(), Ok(None)) {
                let log = self.config.with_file_name("log");
                bail!("sshd did not come up: {}", fs::read_to_string(log).unwrap_or_default());
            }
            std::thread::sleep(POLL);
        }
    }

    fn start_master(&mut self, index: usize) -> anyhow::Result<()> {
        let control = self.config.with_file_name(format!("cm{index}"));
        let mut command = self.client();
        command
            .args(["-M", "-N", "-o", "ControlPersist=no", "-S"])
            .arg(&control)
            .arg("h")
            .stdout(Stdio::null());
        self.masters.push((control.clone(), command.spawn()?));
        let deadline = Instant::now() + UP_WITHIN;
        while !control.exists() {
            ensure!(Instant::now() < deadline, "an ssh master did not connect");
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let below = self.process.descendants();
        for (_, master) in &mut self.masters {
            stop(master);
        }
        stop(&mut self.server);
        for process in below.into_iter().rev() {
            process.signal(Signal::KILL);
        }
    }
}

fn find(program: &str, package: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut places = path.split(':').chain(PATH.split(':')).map(|dir| Path::new(dir).join(program));
    places
        .find(|path| path.is_file())
        .with_context(|| format!("`{program}` is not installed (package {package})"))
}

/// Keys and configuration files; yields the client's.
fn configure(dir: &Path) -> anyhow::Result<PathBuf> {
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        let status = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key)).status()?;
        ensure!(status.success(), "ssh-keygen failed");
    }
    // Free now; nobody else is expected to take it in the next moment.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let user = Command::new("id").arg("-un").output()?.stdout;
    let (user, at) = (String::from_utf8(user)?.trim().to_owned(), dir.display());
    fs::copy(dir.join("user.pub"), dir.join("authorized_keys"))?;
    let host_key = fs::read_to_string(dir.join("host.pub"))?;
    fs::write(dir.join("known_hosts"), format!("[127.0.0.1]:{port} {host_key}"))?;
    let server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized_keys\n\
         PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nMaxSessions 64\nMaxStartups 200\nPrintMotd no\nPrintLastLog no\n"
    );
    fs::write(dir.join("sshd_config"), server)?;
    let client = format!(
        "Host *\n HostName 127.0.0.1\n Port {port}\n User {user}\n IdentityFile {at}/user\n IdentitiesOnly yes\n \
         UserKnownHostsFile {at}/known_hosts\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n \
         LogLevel ERROR\n"
    );
    let config = dir.join("ssh_config");
    fs::write(&config, client)?;
    Ok(config)
}

/// sshd in a mount namespace where root has an empty home and `/bin/sh`: bash
/// would read `~/.bashrc` for each command, and that file would be measured.
/// Only root can do so; anyone else gets sshd as it is.
fn isolated(dir: &Path, sshd: &Path) -> anyhow::Result<Command> {
    if !getuid().is_root() {
        return Ok(Command::new(sshd));
    }
    // sshd insists on this directory, empty and root's.
    fs::create_dir_all("/run/sshd")?;
    let home = dir.join("home");
    fs::create_dir_all(&home)?;
    let system = fs::read_to_string("/etc/passwd")?;
    let others = system.lines().filter(|line| !line.starts_with("root:"));
    let root = format!("root:x:0:0:root:{}:/bin/sh", home.display());
    let passwd: String =
        std::iter::once(root.as_str()).chain(others).map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("passwd"), passwd)?;
    fs::set_permissions(dir.join("passwd"), Permissions::from_mode(0o644))?;
    fs::write(dir.join("shadow"), "root:*:1::::::\nsshd:*:1::::::\n")?;
    fs::set_permissions(dir.join("shadow"), Permissions::from_mode(0o600))?;
    find("unshare", "util-linux")?;
    let script = format!(
        "mount --bind {at}/passwd /etc/passwd && mount --bind {at}/shadow /etc/shadow && exec \"$@\"",
        at = dir.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "/bin/sh", "-c", &script, "sh"]).arg(sshd);
    Ok(command)
}

/// What `ssh -v` says that matters for the figures.
fn facts(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stderr);
    let after = |mark: &str| {
        let line = text.lines().find_map(|line| line.split_once(mark));
        line.and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("unknown").to_owned()
    };
    serde_json::json!({ "software": after("remote software version "), "cipher": after("cipher: ") })
}
