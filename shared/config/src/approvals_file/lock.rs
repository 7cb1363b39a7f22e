//! The lock that whoever changes the document holds: against threads of this process, and against other processes.
//!
//! The lock is a file of its own, because the document is replaced at each change: two holders of a lock on it could hold
//! two different files. It stays where it is; removing it would part the holders in the same way.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::ApprovalsError;

/// How long a change waits for its turn. A change takes milliseconds.
const WAIT: Duration = Duration::from_secs(5);
/// The system can only be asked again, so the pauses start short and grow to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

#[derive(Debug)]
pub(super) struct WriteLock {
    path: PathBuf,
    pub(super) wait: Duration,
    here: Mutex<()>,
}

/// The right to change the document. The system takes it back when the process dies.
#[derive(Debug)]
pub(super) struct Held<'a> {
    // Given back first, so that the next thread here does not wait in vain.
    _everywhere: File,
    _here: MutexGuard<'a, ()>,
}

impl WriteLock {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, wait: WAIT, here: Mutex::default() }
    }

    /// Waits for the lock, and makes its file and directory where they are missing.
    pub(super) fn take(&self) -> Result<Held<'_>, ApprovalsError> {
        let start = Instant::now();
        let busy = || ApprovalsError::Busy { path: self.path.clone(), waited: start.elapsed() };
        let here = self.here.try_lock_until(start + self.wait).ok_or_else(busy)?;
        let failed = |source| ApprovalsError::Lock { path: self.path.clone(), source };
        let file = open(&self.path).map_err(failed)?;
        let mut pause = Duration::from_millis(1);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Held { _everywhere: file, _here: here }),
                Err(TryLockError::WouldBlock) if start.elapsed() >= self.wait => return Err(busy()),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
                Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}
