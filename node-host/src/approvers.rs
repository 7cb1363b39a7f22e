//! The people whose signed decisions count on this machine: `approvers.json`, which only its owner writes.
//!
//! Read whenever a signature is checked, so a change holds at once. A file that cannot be used means that nobody's
//! signature counts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use config::{PrivateMode, read_private, write_private};
use fault::{ErrorCode, Fault};
use identity::PublicKey;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Approvers on one machine.
const APPROVERS_MAX: usize = 64;
/// Longest name, in characters.
const NAME_MAX: usize = 64;
/// Largest file, in bytes: more than [`APPROVERS_MAX`] entries take.
const FILE_MAX: u64 = 64 * 1024;

/// A person whose decisions count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approver {
    /// What the owner calls them.
    pub name: String,
    /// Their key.
    pub key: PublicKey,
    /// When they were added, in milliseconds since 1970.
    pub added_at_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    approvers: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    key: String,
    added_at_ms: u64,
}

/// The file.
#[derive(Debug, Clone)]
pub struct ApproversFile {
    path: PathBuf,
}

impl ApproversFile {
    /// The file at `path`; it need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who is in it.
    ///
    /// # Errors
    /// It cannot be read, others can read or write it, or it is malformed.
    pub fn load(&self) -> Result<Vec<Approver>, Fault> {
        let unusable = |why: &dyn std::fmt::Display| {
            Fault::new(ErrorCode::StoreUnreadable, format!("{} cannot be used: {why}", self.path.display()))
                .hint("repair or remove it; until then no signature counts")
        };
        let bytes = match read_private(&self.path, FILE_MAX, PrivateMode::Strict) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(unusable(&error)),
        };
        let document: Document = serde_json::from_slice(&bytes).map_err(|error| unusable(&error))?;
        if document.version != 1 || document.approvers.len() > APPROVERS_MAX {
            return Err(unusable(&"it has another version, or too many entries"));
        }
        document
            .approvers
            .into_iter()
            .map(|entry| {
                let key = entry.key.parse().map_err(|error| unusable(&error))?;
                Ok(Approver { name: entry.name, key, added_at_ms: entry.added_at_ms })
            })
            .collect()
    }

    /// Adds a person.
    ///
    /// # Errors
    /// The name or the key is in use, the name is none, there are too many, or the file cannot be used.
    pub fn add(&self, name: &str, key: PublicKey, now_ms: u64) -> Result<Approver, Fault> {
        let refuse = |why: String| Fault::new(ErrorCode::InvalidRequest, why);
        let name = name.trim();
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(refuse(format!("an approver's name has 1 to {NAME_MAX} characters")));
        }
        let _lock = self.lock()?;
        let mut approvers = self.load()?;
        if let Some(known) = approvers.iter().find(|known| known.name == name || known.key == key) {
            return Err(refuse(format!("{} is there already, with the key {}", known.name, known.key))
                .hint("node-host approvers remove NAME"));
        }
        if approvers.len() >= APPROVERS_MAX {
            return Err(refuse(format!("there are {APPROVERS_MAX} approvers, more are not kept")));
        }
        let added = Approver { name: name.to_owned(), key, added_at_ms: now_ms };
        approvers.push(added.clone());
        self.write(&approvers)?;
        Ok(added)
    }

    /// Removes a person.
    ///
    /// # Errors
    /// Nobody has this name, or the file cannot be used.
    pub fn remove(&self, name: &str) -> Result<Approver, Fault> {
        let _lock = self.lock()?;
        let mut approvers = self.load()?;
        let at = approvers.iter().position(|known| known.name == name.trim()).ok_or_else(|| {
            Fault::new(ErrorCode::InvalidRequest, format!("there is no approver `{}`", name.trim()))
                .hint("node-host approvers list")
        })?;
        let removed = approvers.remove(at);
        self.write(&approvers)?;
        Ok(removed)
    }

    fn write(&self, approvers: &[Approver]) -> Result<(), Fault> {
        let entries = approvers.iter().map(|approver| Entry {
            name: approver.name.clone(),
            key: approver.key.to_string(),
            added_at_ms: approver.added_at_ms,
        });
        let document = Document { version: 1, approvers: entries.collect() };
        let failed = |error: &dyn std::fmt::Display| {
            Fault::new(
                ErrorCode::StateDirUnusable,
                format!("{} cannot be written: {error}", self.path.display()),
            )
        };
        let text = serde_json::to_vec_pretty(&document).map_err(|error| failed(&error))?;
        write_private(&self.path, &text).map_err(|error| failed(&error))
    }

    /// Two who change it at one time take turns.
    fn lock(&self) -> Result<File, Fault> {
        let path = self.path.with_extension("lock");
        let failed = |error: std::io::Error| {
            Fault::new(ErrorCode::StateDirUnusable, format!("{} cannot be locked: {error}", path.display()))
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use identity::PrivateKey;

    use super::*;

    fn key() -> PublicKey {
        PrivateKey::generate().unwrap().public().unwrap()
    }

    #[test]
    fn who_is_added_counts_until_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = ApproversFile::new(dir.path().join("approvers.json"));
        assert_eq!(file.load().unwrap(), []);
        let (ann, bob) = (key(), key());
        let added = file.add(" ann ", ann, 7).unwrap();
        assert_eq!(added, Approver { name: "ann".to_owned(), key: ann, added_at_ms: 7 });
        for (name, key) in [("ann", bob), ("other", ann), ("", bob), (&"x".repeat(65), bob), ("a\nb", bob)] {
            assert_eq!(file.add(name, key, 8).unwrap_err().code, ErrorCode::InvalidRequest, "{name:?}");
        }
        file.add("bob", bob, 9).unwrap();
        assert_eq!(file.load().unwrap().len(), 2);
        assert_eq!(file.remove("ann").unwrap(), added);
        assert_eq!(file.remove("ann").unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(file.load().unwrap().into_iter().map(|a| a.name).collect::<Vec<_>>(), ["bob"]);
    }

    #[test]
    fn a_file_that_is_none_counts_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("approvers.json");
        let file = ApproversFile::new(&path);
        for text in [
            "",
            "{}",
            r#"{"version":2,"approvers":[]}"#,
            r#"{"version":1,"approvers":[{"name":"a","key":"x","addedAtMs":1}]}"#,
        ] {
            write_private(&path, text.as_bytes()).unwrap();
            assert_eq!(file.load().unwrap_err().code, ErrorCode::StoreUnreadable, "{text}");
            assert!(file.add("ann", key(), 1).is_err(), "{text}");
        }
    }
}
