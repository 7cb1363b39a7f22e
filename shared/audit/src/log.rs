//! Writing a log.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::head::{self, Head};
use crate::record::Line;
use crate::segments::{self, Lines, Read};

/// Longest data of one record, in bytes.
pub const DATA_MAX: usize = 256 * 1024;
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
    head: Head,
    head_file: File,
    file: File,
    length: u64,
}

impl Log {
    /// Opens a log, or makes one. What a writer left half-written when it was killed is cut off, and written down.
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
        let lock = private(&dir.join("lock"), false).map_err(io("locked", dir))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => AuditError::InUse(dir.to_path_buf()),
            other => io("locked", dir)(other.into()),
        })?;
        let known = Head::read(dir);
        let End { head, path, length, torn } =
            find_end(dir, known.as_ref().ok().and_then(Option::as_ref)).map_err(io("read", dir))?;
        let file = private(&path, true).map_err(io("opened", &path))?;
        if torn > 0 {
            file.set_len(length).map_err(io("repaired", &path))?;
        }
        let head_path = dir.join(head::NAME);
        let head_file = private(&head_path, false).map_err(io("opened", &head_path))?;
        let lost = match &known {
            Ok(Some(known)) => known.seq.saturating_sub(head.seq),
            Ok(None) => 0,
            Err(_) => 1,
        };
        let log = Self {
            dir: dir.to_path_buf(),
            segment_max,
            state: Mutex::new(State { head, head_file, file, length }),
            _lock: lock,
        };
        if torn > 0 || lost > 0 {
            log.append_durable("audit.recovered", json!({ "cutBytes": torn, "lostRecords": lost }))?;
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
        let line = Line::new(state.head.seq + 1, now_ms(), kind, data, &state.head.hash);
        let mut bytes = serde_json::to_vec(&line).map_err(written)?;
        bytes.push(b'\n');
        if state.length > 0 && state.length + bytes.len() as u64 > self.segment_max {
            self.rotate(&mut state, line.seq).map_err(failed("continued", &self.dir))?;
        }
        if let Err(error) = state.file.write_all(&bytes) {
            // Half a line would make the next one unreadable.
            let _ = state.file.set_len(state.length);
            return Err(failed("written", &self.dir)(error));
        }
        state.length += bytes.len() as u64;
        state.head.seq = line.seq;
        state.head.hash = line.hash;
        state.head.write(&state.head_file).map_err(failed("written", &self.dir))?;
        if durable {
            state.file.sync_data().map_err(failed("written", &self.dir))?;
        }
        Ok(())
    }

    fn rotate(&self, state: &mut State, first: u64) -> io::Result<()> {
        state.file.sync_data()?;
        state.file = private(&self.dir.join(segments::name(first)), true)?;
        state.length = 0;
        let all = segments::all(&self.dir)?;
        let above = all.len().saturating_sub(SEGMENTS_MAX);
        for (oldest, next) in all.iter().zip(all.iter().skip(1)).take(above) {
            // Said before it is done: a log whose first part is gone for another reason does not verify.
            state.head.first = next.0;
            state.head.prev = first_prev(&next.1)?;
            state.head.write(&state.head_file)?;
            std::fs::remove_file(&oldest.1)?;
        }
        Ok(())
    }
}

fn first_prev(path: &Path) -> io::Result<String> {
    match Lines::open(path)?.next()? {
        Some(Read::Record(line, _)) => Ok(line.prev),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a segment has no first record")),
    }
}

struct End {
    head: Head,
    path: PathBuf,
    length: u64,
    torn: u64,
}

/// The end of the chain in the last segment. What stands there is not verified here: the next record goes on behind it.
fn find_end(dir: &Path, known: Option<&Head>) -> io::Result<End> {
    let mut head = known.cloned().unwrap_or_default();
    let all = segments::all(dir)?;
    let Some((first, path)) = all.last() else {
        // Records that `head` knows are gone with their files; the chain goes on from it.
        let path = dir.join(segments::name(head.seq + 1));
        if head.seq > 0 {
            head.first = head.seq + 1;
            head.prev.clone_from(&head.hash);
        }
        return Ok(End { head, path, length: 0, torn: 0 });
    };
    let (mut length, mut torn) = (0, 0);
    let mut last = None;
    let mut lines = Lines::open(path)?;
    while let Some(read) = lines.next()? {
        match read {
            Read::Record(line, bytes) => {
                length += bytes;
                last = Some(line);
            }
            Read::Torn(bytes) => torn = bytes,
            Read::Foreign => {
                // Left as it is, for `verify` to name: the chain goes on in a segment of its own.
                let next = head.seq.max(last.as_ref().map_or(*first, |line| line.seq)) + 1;
                return Ok(End { head, path: dir.join(segments::name(next)), length: 0, torn: 0 });
            }
        }
    }
    match last {
        Some(line) => {
            head.seq = line.seq;
            head.hash = line.hash;
        }
        // A segment that was just begun.
        None => head.seq = first.saturating_sub(1).max(head.seq.min(first.saturating_sub(1))),
    }
    Ok(End { head, path: path.clone(), length, torn })
}

fn private(path: &Path, append: bool) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).append(append).mode(0o600).open(path)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
