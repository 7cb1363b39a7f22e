//! `exec-approvals.json`: what the owner of this machine allows, on its disk (policy spec §1.1, §1.3, §1.4).
//!
//! Owns how the document is read again when it changed, and how it is changed without losing anybody's change: under a
//! lock that all our programs take, compared with what is there, replaced in one step. What the rules mean is the
//! `policy` crate's affair; who may change them is the caller's.
//!
//! A document that cannot be used is an error, and the caller denies. Nothing here ever repairs one, and nothing writes
//! over one, except a replacement by someone who names its hash.

mod cache;
mod error;
mod ids;
mod last_good;
mod lock;
#[cfg(test)]
mod tests;
mod usage;

use std::{
    collections::VecDeque,
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use policy::{ApprovalsDocument, MAX_DOCUMENT_BYTES, check_base_hash, hash_of};

use crate::{
    PrivateFileError, PrivateMode, private::real_path, read_private, state_dir::check_foreign, write_private,
};

use cache::{Cache, Mark, Reading};
use last_good::Keeper;
use lock::{Held, WriteLock};

pub use error::{ApprovalsError, LastGood, Malformed};
pub use usage::RuleUsage;

/// How many notes of use back a change may have been begun: at one a minute, an hour.
const OLDER_KEPT: usize = 60;

/// The approvals document of one state directory. Shared by threads; other processes may have their own.
///
/// All calls look at the disk, and those that change something wait for it and for others who do: call them where
/// blocking is allowed. [`load`](Self::load) alone is short.
#[derive(Debug)]
pub struct ApprovalsFile {
    path: PathBuf,
    lock: WriteLock,
    keeper: Keeper,
    /// Never held while waiting for `lock`.
    cache: Mutex<Cache>,
    noted: Mutex<Noted>,
}

/// Texts that differ only in notes of use, which we wrote ourselves: whoever saw an older one knows the rules of the
/// present one.
#[derive(Debug, Default)]
struct Noted {
    /// The hash of the newest.
    newest: String,
    /// Those of the others, at most [`OLDER_KEPT`].
    older: VecDeque<String>,
}

impl Noted {
    fn add(&mut self, change: &Change) {
        if self.newest != change.before_hash {
            self.older.clear();
        }
        if self.older.len() == OLDER_KEPT {
            self.older.pop_front();
        }
        self.older.push_back(change.before_hash.clone());
        self.newest.clone_from(&change.loaded.hash);
    }

    /// The hash that `base` stands for.
    fn newest<'a>(&'a self, base: &'a str) -> &'a str {
        if self.older.iter().any(|older| older == base) { &self.newest } else { base }
    }
}

/// A document as it was read.
#[derive(PartialEq, Eq)]
pub struct Loaded {
    /// The rules. Empty where there is no file.
    pub document: ApprovalsDocument,
    /// Whether there is a file.
    pub exists: bool,
    /// The hash that a change names (policy spec §1.4).
    pub hash: String,
    /// Grows whenever this [`ApprovalsFile`] reads another text; what was compiled from the document is good for as long
    /// as this stays. Says nothing about other processes' counts.
    pub revision: u64,
    /// The text as stored. Private: it holds the socket's token.
    text: Option<Arc<str>>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("document", &self.document)
            .field("exists", &self.exists)
            .field("hash", &self.hash)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// What a change did, for the answer and for the audit.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The hash of what was there before.
    pub before_hash: String,
    /// The rules that were there before; absent where they could not be read.
    pub before: Option<ApprovalsDocument>,
    /// What is there now.
    pub loaded: Arc<Loaded>,
    /// Whether the file was replaced.
    pub written: bool,
}

impl ApprovalsFile {
    /// The document at `path`, normally [`StateDir::approvals`](crate::StateDir::approvals). Touches nothing.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            lock: WriteLock::new(path.with_extension("lock")),
            keeper: Keeper::new(path.with_extension("last-good.json")),
            cache: Mutex::default(),
            noted: Mutex::default(),
            path,
        }
    }

    /// Where it lies, links not resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The document as it is now. While the file stays the same this is one look at it, and the same `Arc`.
    ///
    /// # Errors
    /// The document cannot be used: then nothing may run. The error names the place, the reason and the last good rules.
    pub fn load(&self) -> Result<Arc<Loaded>, ApprovalsError> {
        let mut cache = self.cache.lock();
        let answer = match cache.unchanged(&self.path) {
            Some(answer) => answer,
            None => match self.read() {
                Ok(reading) => cache.take(&self.path, &self.keeper, reading),
                Err(error) => {
                    cache.forget();
                    Err(error)
                }
            },
        };
        if let Err(error) = &answer {
            cache.warn(error);
        }
        // Keeping a copy waits for the disk; nobody else shall wait for that.
        drop(cache);
        if let Ok(loaded) = &answer {
            self.keeper.keep(loaded);
        }
        answer
    }

    /// Replaces the document by the text of an update, which was made from the document with `base_hash` (policy spec
    /// §1.4). Whether the caller may do so was decided before.
    ///
    /// # Errors
    /// The update is no document or has an unknown word, the document is another one by now, or the disk refused.
    pub fn replace(&self, update: &str, base_hash: Option<&str>) -> Result<Change, ApprovalsError> {
        let update = ApprovalsDocument::parse_update(update).map_err(refused)?;
        if !update.unset.is_empty() {
            return Err(ApprovalsError::UnknownWord { at: update.unset });
        }
        let held = self.hold()?;
        let Reading { real, bytes, .. } = self.read()?;
        let text = match &bytes {
            None => None,
            // What has no text has no hash that could be named; only its owner can repair it.
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text),
                Err(_) => return Err(self.load().err().unwrap_or(policy::BaseHashError::Changed.into())),
            },
        };
        // Notes of use are no change that anybody has to see first.
        check_base_hash(text, base_hash.map(|base| self.noted.lock().newest(base).to_owned()).as_deref())?;
        // A malformed document may be replaced by whoever names its hash; there is just no socket to keep.
        let before = text
            .map_or_else(|| Some(ApprovalsDocument::default()), |text| ApprovalsDocument::parse(text).ok());
        let document = match &before {
            Some(before) => update.document.keeping_socket_of(before),
            None => update.document,
        };
        let loaded = self.write(&held, real, document)?;
        Ok(Change { before_hash: hash_of(text), before, loaded, written: true })
    }

    /// Changes the document as it is at that moment. `change` says whether there is something to write; it runs under
    /// the lock, so it must not change this document in another way.
    ///
    /// # Errors
    /// `change` refused, the document cannot be used (it is then left alone) or the disk refused.
    pub fn edit<E: From<ApprovalsError>>(
        &self,
        change: impl FnOnce(&mut ApprovalsDocument) -> Result<bool, E>,
    ) -> Result<Change, E> {
        let held = self.hold()?;
        let reading = self.read()?;
        let real = reading.real.clone();
        let before = self.cache.lock().take(&self.path, &self.keeper, reading)?;
        self.keeper.keep(&before);
        let mut document = before.document.clone();
        let written = change(&mut document)?;
        let loaded = if written { self.write(&held, real, document)? } else { Arc::clone(&before) };
        Ok(Change {
            before_hash: before.hash.clone(),
            before: Some(before.document.clone()),
            loaded,
            written,
        })
    }

    /// Notes when rules were used (policy spec §1.10), at those that are still there: a rule that was removed meanwhile
    /// stays removed, and without a file there is nothing to note. Says how many uses found their rule.
    ///
    /// # Errors
    /// The document cannot be used (it is then left alone) or the disk refused.
    pub fn record_usage(&self, uses: &[RuleUsage]) -> Result<usize, ApprovalsError> {
        if uses.is_empty() || !self.load()?.exists {
            return Ok(0);
        }
        let mut touched = 0;
        let change = self.edit(|document| {
            touched = usage::record(document, uses);
            Ok::<_, ApprovalsError>(touched > 0)
        })?;
        if change.written {
            self.noted.lock().add(&change);
        }
        Ok(touched)
    }

    /// Waits for the right to write. Our files must not appear beside those of a newer OpenClaw, nor behind an unsafe
    /// link, so both are looked at before the lock is made.
    fn hold(&self) -> Result<Held<'_>, ApprovalsError> {
        check_foreign(self.directory())?;
        real_path(&self.path).map_err(|source| self.unreadable(source))?;
        self.lock.take()
    }

    fn read(&self) -> Result<Reading, ApprovalsError> {
        check_foreign(self.directory())?;
        let real = real_path(&self.path).map_err(|source| self.unreadable(source))?;
        let mark = Mark::of(&self.path, &real);
        let bytes = match read_private(&real, MAX_DOCUMENT_BYTES as u64, PrivateMode::Readable) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.is_not_found() => None,
            Err(source) => return Err(self.unreadable(source)),
        };
        Ok(Reading { real, bytes, mark })
    }

    fn write(
        &self,
        _held: &Held<'_>,
        real: PathBuf,
        mut document: ApprovalsDocument,
    ) -> Result<Arc<Loaded>, ApprovalsError> {
        let failed =
            |source| ApprovalsError::Write(PrivateFileError::Write { path: self.path.clone(), source });
        ids::give(&mut document).map_err(failed)?;
        let text = document.to_text();
        // A document that no longer parses would deny everything; it does not get to the disk.
        ApprovalsDocument::parse(&text).map_err(refused)?;
        match fs::symlink_metadata(&real) {
            Ok(metadata) if metadata.nlink() > 1 => {
                return Err(ApprovalsError::HardLinked { path: real, names: metadata.nlink() });
            }
            Ok(_) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(source)),
        }
        write_private(&real, text.as_bytes()).map_err(ApprovalsError::Write)?;
        // The stamp is too young to be trusted, so the next call reads the file again.
        let reading = Reading { real, bytes: Some(text.into_bytes()), mark: None };
        let loaded = self.cache.lock().take(&self.path, &self.keeper, reading)?;
        self.keeper.keep(&loaded);
        Ok(loaded)
    }

    fn unreadable(&self, source: PrivateFileError) -> ApprovalsError {
        ApprovalsError::Unreadable { path: self.path.clone(), last_good: self.keeper.describe(), source }
    }

    /// The state directory.
    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// A document that came from outside, or from a change, and is none.
fn refused(reason: policy::DocumentError) -> ApprovalsError {
    ApprovalsError::Refused(error::without_value(reason))
}
