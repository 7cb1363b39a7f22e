//! The state directory: which one, whether it may be used, and the names of the files in it.
//!
//! Gateway files lie in `gateway/`, node files in `node/`, so that both programs can share one directory. The approvals
//! document lies at the top, where people know it (policy spec §1.1). Owns no file content and takes no lock.

mod error;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

pub use error::StateDirError;

/// The command line flag that names a state directory; hints refer to it.
pub const STATE_DIR_FLAG: &str = "--state-dir";
/// The environment variable that names a state directory; hints refer to it.
pub const STATE_DIR_VARIABLE: &str = "OPENCLAW_STATE_DIR";

/// Where a newer OpenClaw keeps its database. Our files beside it would make that product stop.
const FOREIGN_DATABASE: &str = "state/openclaw.sqlite";
/// Others can enter at most; they can never add, remove or replace a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A state directory that was fit for use when it was resolved. The path is absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Chooses the directory: `flag`, else `env` (the value of `OPENCLAW_STATE_DIR`; empty counts as unset), else
    /// `~/.openclaw`. A leading `~` is expanded in both, because shells leave `--state-dir=~/x` alone. Creates nothing.
    ///
    /// # Errors
    /// No directory can be named, or the one that is there may not be used (see [`StateDirError`]).
    pub fn resolve(
        flag: Option<PathBuf>,
        env: Option<OsString>,
        home: Option<PathBuf>,
    ) -> Result<Self, StateDirError> {
        let named = flag.or_else(|| env.filter(|value| !value.is_empty()).map(PathBuf::from));
        let path = match named {
            Some(path) => expand_home(path, home)?,
            None => home.ok_or(StateDirError::NoHome)?.join(".openclaw"),
        };
        let path = std::path::absolute(&path).map_err(|source| StateDirError::Resolve { path, source })?;
        check(&path)?;
        Ok(Self { path })
    }

    /// [`StateDir::resolve`] with the environment and the home directory of this process.
    ///
    /// # Errors
    /// As [`StateDir::resolve`].
    pub fn from_process(flag: Option<PathBuf>) -> Result<Self, StateDirError> {
        let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
        Self::resolve(flag, std::env::var_os(STATE_DIR_VARIABLE), home)
    }

    /// Creates what is missing (the directory, its parents, `gateway/` and `node/`, all 0700) and checks again.
    ///
    /// # Errors
    /// A directory could not be made, or one that is there may not be used.
    pub fn open(&self) -> Result<(), StateDirError> {
        for path in [self.path.clone(), self.gateway_dir(), self.node_dir()] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .or_else(|source| if path.exists() { Ok(()) } else { Err(source) })
                .map_err(|source| StateDirError::Create { path: path.clone(), source })?;
            check(&path)?;
        }
        Ok(())
    }

    /// Whether this is where a program looks that was told nothing.
    #[must_use]
    pub fn is_default(&self) -> bool {
        directories::BaseDirs::new().is_some_and(|dirs| dirs.home_dir().join(".openclaw") == self.path)
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The approvals document, shared by every program of this machine.
    #[must_use]
    pub fn approvals(&self) -> PathBuf {
        self.path.join("exec-approvals.json")
    }

    /// Held by whoever changes the approvals document, for as long as that takes.
    #[must_use]
    pub fn approvals_lock(&self) -> PathBuf {
        self.path.join("exec-approvals.lock")
    }

    /// The last approvals document that could be read, for whoever broke it since.
    #[must_use]
    pub fn approvals_last_good(&self) -> PathBuf {
        self.path.join("exec-approvals.last-good.json")
    }

    /// The configuration, shared by every program of this machine.
    #[must_use]
    pub fn openclaw_json(&self) -> PathBuf {
        self.path.join("openclaw.json")
    }

    /// The directory of the gateway's files.
    #[must_use]
    pub fn gateway_dir(&self) -> PathBuf {
        self.path.join("gateway")
    }

    /// The socket of the local command line. Unix limits its path to 107 bytes; binding reports a longer one.
    #[must_use]
    pub fn gateway_socket(&self) -> PathBuf {
        self.gateway_dir().join("gateway.sock")
    }

    /// The gateway's database.
    #[must_use]
    pub fn gateway_db(&self) -> PathBuf {
        self.gateway_dir().join("gateway.db")
    }

    /// The private key of the gateway's certificate authority (PEM).
    #[must_use]
    pub fn ca_key(&self) -> PathBuf {
        self.gateway_dir().join("ca-key.pem")
    }

    /// The certificate of the gateway's authority (PEM).
    #[must_use]
    pub fn ca_cert(&self) -> PathBuf {
        self.gateway_dir().join("ca-cert.pem")
    }

    /// Held by the one gateway that runs with this directory.
    #[must_use]
    pub fn gateway_lock(&self) -> PathBuf {
        self.gateway_dir().join("gateway.lock")
    }

    /// What the gateway writes down of requests, decisions and runs.
    #[must_use]
    pub fn gateway_audit(&self) -> PathBuf {
        self.gateway_dir().join("audit")
    }

    /// The private key with which the person at this machine signs decisions (PEM).
    #[must_use]
    pub fn approver_key(&self) -> PathBuf {
        self.path.join("approver-key.pem")
    }

    /// The directory of the node's files.
    #[must_use]
    pub fn node_dir(&self) -> PathBuf {
        self.path.join("node")
    }

    /// The node's private key (PEM).
    #[must_use]
    pub fn node_key(&self) -> PathBuf {
        self.node_dir().join("node-key.pem")
    }

    /// The node's certificate chain (PEM).
    #[must_use]
    pub fn node_cert(&self) -> PathBuf {
        self.node_dir().join("node-cert.pem")
    }

    /// Node id, name and gateway address.
    #[must_use]
    pub fn node_json(&self) -> PathBuf {
        self.node_dir().join("node.json")
    }

    /// One directory per session.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.node_dir().join("sessions")
    }

    /// Whose decisions count on this node.
    #[must_use]
    pub fn approvers(&self) -> PathBuf {
        self.node_dir().join("approvers.json")
    }

    /// What the node writes down of requests, decisions and runs.
    #[must_use]
    pub fn node_audit(&self) -> PathBuf {
        self.node_dir().join("audit")
    }

    /// Held by the one node host that runs with this directory.
    #[must_use]
    pub fn node_lock(&self) -> PathBuf {
        self.node_dir().join("node.lock")
    }
}

fn expand_home(path: PathBuf, home: Option<PathBuf>) -> Result<PathBuf, StateDirError> {
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str().to_owned()).unwrap_or_default();
    if first.is_empty() {
        return Err(StateDirError::Empty);
    }
    if first == "~" {
        return Ok(home.ok_or(StateDirError::NoHome)?.join(parts.as_path()));
    }
    if first.as_encoded_bytes().starts_with(b"~") {
        // `~name` would silently become a directory of that name below the working directory.
        return Err(StateDirError::OtherHome { path });
    }
    Ok(path)
}

/// A path that is not there yet passes: [`StateDir::open`] makes it and checks again.
fn check(path: &Path) -> Result<(), StateDirError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) if source.kind() == io::ErrorKind::NotADirectory => {
            return Err(StateDirError::NotADirectory { path: path.to_path_buf() });
        }
        Err(source) => return Err(StateDirError::Inspect { path: path.to_path_buf(), source }),
    };
    let path = path.to_path_buf();
    if !metadata.is_dir() {
        return Err(StateDirError::NotADirectory { path });
    }
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(StateDirError::OtherOwner { path, owner: metadata.uid(), user });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(StateDirError::WritableByOthers { path, mode });
    }
    check_foreign(&path)
}

/// Refuses a directory that a newer OpenClaw moved into; it can do so at any time.
pub(crate) fn check_foreign(path: &Path) -> Result<(), StateDirError> {
    let path = path.to_path_buf();
    match fs::symlink_metadata(path.join(FOREIGN_DATABASE)) {
        Ok(_) => Err(StateDirError::Foreign { path }),
        Err(source) if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(source) => Err(StateDirError::Inspect { path, source }),
    }
}
