//! Writing a log.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::end::End;
use crate::head::{self, Head};
use crate::record::Line;
use crate::segments;

/// Longest data of one record, in bytes.
pub const DATA_MAX: usize = 256 * 1024;
/// The kind of the record about an end that was not as a writer leaves it.
pub(crate) const RECOVERED: &str = "audit.recovered";
/// Length at which a segment is followed by the next, in bytes.
const SEGMENT: u64 = 16 * 1024 * 1024;
/// Segments that are kept. The oldest goes first.
const SEGMENTS_MAX: usize = 64;

/// Why something was not written down.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The system refused.
    #[error("the audit log {} cannot be {what}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process writes this log.
    #[error("another process writes the audit log {}", .0.display())]
    InUse(PathBuf),
    /// Above [`DATA_MAX`].
    #[error("a record of {0} bytes is above the limit of {DATA_MAX}")]
    TooLong(usize),
}

/// A log that this process writes.
#[derive(Debug)]
pub struct Log {
    dir: PathBuf,
    segment_max: u64,
    state: Mutex<State>,
    _lock: File,
}

#[derive(Debug)]
struct State {
    /// The ends of the chain, as they stand in `head_file`.
    head: Head,
    head_file: File,
    /// The last segment.
    file: Arc<File>,
    /// Length of its whole lines, in bytes.
    length: u64,
    /// Behind them stands part of a line that could not be cut off yet.
    torn: bool,
}

impl Log {
    /// Opens a log, or makes one (the directory 0700, files 0600). What a writer left half-written when it was killed is cut
    /// off; that, lost records and a lost `head` are written down (`audit.recovered`).
    ///
    /// # Errors
    /// It cannot be written, or another process does.
    pub fn open(dir: &Path) -> Result<Self, AuditError> {
        Self::with_segments(dir, SEGMENT)
    }

    pub(crate) fn with_segments(dir: &Path, segment_max: u64) -> Result<Self, AuditError> {
        let io = |what, path: &Path| {
            let path = path.to_path_buf();
            move |source| AuditError::Io { what, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("made", dir))?;
        // One that was there may be open to others.
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(io("closed to others", dir))?;
        let lock = private(&dir.join("lock"), false).map_err(io("locked", dir))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => AuditError::InUse(dir.to_path_buf()),
            other => io("locked", dir)(other.into()),
        })?;
        let End { head, segment, length, damage } = End::find(dir).map_err(io("read", dir))?;
        // In this order: segments without a `head` are a log that somebody meddled with.
        let head_path = dir.join(head::NAME);
        let head_file = private(&head_path, false).map_err(io("opened", &head_path))?;
        head.write(&head_file).and_then(|()| head_file.sync_all()).map_err(io("written", &head_path))?;
        let file = private(&segment, true).map_err(io("opened", &segment))?;
        sync_names(dir).map_err(io("written", dir))?;
        let log = Self {
            dir: dir.to_path_buf(),
            segment_max,
            state: Mutex::new(State { head, head_file, file: Arc::new(file), length, torn: false }),
            _lock: lock,
        };
        if let Some(data) = damage.data() {
            log.append_durable(RECOVERED, data)?;
        }
        Ok(log)
    }

    /// Writes a record, without waiting for the disk.
    ///
    /// # Errors
    /// It is too long, or the system refused.
    pub fn append(&self, kind: &str, data: Value) -> Result<(), AuditError> {
        self.write(kind, &data, false)
    }

    /// Writes a record, and waits until it is on the disk.
    ///
    /// # Errors
    /// See [`Log::append`].
    pub fn append_durable(&self, kind: &str, data: Value) -> Result<(), AuditError> {
        self.write(kind, &data, true)
    }

    fn write(&self, kind: &str, data: &Value, durable: bool) -> Result<(), AuditError> {
        let failed = |what, path: &Path| {
            let path = path.to_path_buf();
            move |source| AuditError::Io { what, path, source }
        };
        let written = |error: serde_json::Error| failed("written", &self.dir)(error.into());
        let data = serde_json::value::to_raw_value(data).map_err(written)?;
        if data.get().len() > DATA_MAX {
            return Err(AuditError::TooLong(data.get().len()));
        }
        let mut state = self.state.lock();
        let line = Line::new(state.head.seq.saturating_add(1), now_ms(), kind, data, &state.head.hash);
        let mut bytes = serde_json::to_vec(&line).map_err(written)?;
        bytes.push(b'\n');
        if bytes.len() as u64 >= segments::LINE_MAX {
            return Err(AuditError::TooLong(bytes.len()));
        }
        if state.length > 0 && state.length + bytes.len() as u64 > self.segment_max {
            self.rotate(&mut state, line.seq).map_err(failed("continued", &self.dir))?;
        }
        state.put(&bytes).map_err(failed("written", &self.dir))?;
        state.head.seq = line.seq;
        state.head.hash = line.hash;
        state.head.write(&state.head_file).map_err(failed("written", &self.dir))?;
        if durable {
            // Others go on writing while the disk is waited for. A rotation meanwhile syncs the file itself.
            let file = Arc::clone(&state.file);
            drop(state);
            file.sync_data().map_err(failed("written", &self.dir))?;
        }
        Ok(())
    }

    fn rotate(&self, state: &mut State, first: u64) -> io::Result<()> {
        state.file.sync_data()?;
        state.file = Arc::new(private(&self.dir.join(segments::name(first)), true)?);
        state.length = 0;
        state.torn = false;
        sync_names(&self.dir)?;
        // What cannot be removed now is tried again at the next rotation; the record goes on.
        let _ = self.remove_oldest(state);
        Ok(())
    }

    fn remove_oldest(&self, state: &mut State) -> io::Result<()> {
        let all = segments::all(&self.dir)?;
        let above = all.len().saturating_sub(SEGMENTS_MAX);
        for (oldest, next) in all.iter().zip(all.iter().skip(1)).take(above) {
            // Said before it is done: a log whose first part is gone for another reason does not verify.
            state.head.prev = segments::first_prev(&next.1)?;
            state.head.first = next.0;
            state.head.write(&state.head_file)?;
            std::fs::remove_file(&oldest.1)?;
        }
        Ok(())
    }
}

impl State {
    /// One line, whole or not at all: half a line would make the next one unreadable.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.length)?;
            self.torn = false;
        }
        if let Err(error) = (&*self.file).write_all(bytes) {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// A file that was made is found after a power cut only if its directory is on the disk.
fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn private(path: &Path, append: bool) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).append(append).mode(0o600).open(path)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
