//! Read leases: while one is held, nobody can open the file for writing, or cut it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A lease on an open file, given back when it is dropped. Whoever wants to write meanwhile waits, for as long as the
/// system lets them (45 s unless configured).
#[derive(Debug)]
pub(crate) struct Lease<F: AsFd>(F);

/// Why there is no lease.
#[derive(Debug)]
pub(crate) enum NoLease {
    /// Somebody has the file open for writing just now.
    BeingWritten,
    /// This system, file system or user has no leases.
    Unavailable(io::Error),
}

impl<F: AsFd> Lease<F> {
    /// Takes a lease on a file that is open for reading only.
    pub(crate) fn take(file: F) -> Result<Self, NoLease> {
        // A writer who comes makes the system send this signal, which would end the process.
        // SAFETY: SIG_IGN is a valid disposition and runs no code of ours.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        match set(&file, libc::F_RDLCK) {
            Ok(()) => Ok(Self(file)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(NoLease::BeingWritten),
            Err(error) => Err(NoLease::Unavailable(error)),
        }
    }

    /// Whether nobody came to write since it was taken, let alone got through.
    pub(crate) fn is_whole(&self) -> bool {
        // SAFETY: as in `set`. A lease that somebody waits for is told as what it will become.
        let kind = unsafe { libc::fcntl(self.0.as_fd().as_raw_fd(), libc::F_GETLEASE) };
        kind == libc::F_RDLCK
    }
}

impl<F: AsFd> Drop for Lease<F> {
    fn drop(&mut self) {
        // Closing the file gives it back, too.
        let _ = set(&self.0, libc::F_UNLCK);
    }
}

fn set(file: &impl AsFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: `fcntl` takes numbers and touches no memory of ours; the descriptor is open as long as it is borrowed.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_SETLEASE, kind) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
