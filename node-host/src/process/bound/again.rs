//! What the starter looks at again: the hashes of bound files that could be written to once the command had started.
//!
//! A sealed file: for each bound file a mark and 32 bytes, the hash where the mark is 1.

use std::fs::File;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, open};

use super::content::{hash, sealed};
use crate::process::wire::{AGAIN_FD, BOUND_FD};
use crate::sys::{Lease, NoLease};

/// Bytes of one entry.
const ENTRY: usize = 33;

/// A program that was just found to be the approved one, and stays so until this process executes it.
#[derive(Debug)]
pub(crate) struct Again {
    /// Closed by the execution, and given back by that.
    _lease: Option<Lease<OwnedFd>>,
}

impl Again {
    /// The list, for the command's descriptors.
    pub(super) fn write(hashes: impl Iterator<Item = Option<[u8; 32]>>) -> io::Result<OwnedFd> {
        let mut list = Vec::new();
        for hash in hashes {
            list.push(u8::from(hash.is_some()));
            list.extend(hash.unwrap_or_default());
        }
        Ok(sealed(&list)?.into())
    }

    /// Looks at the bound file with this number again.
    ///
    /// # Errors
    /// It is not what was approved, or that cannot be said.
    pub(crate) fn check(descriptor: RawFd) -> io::Result<Self> {
        let index = usize::try_from(descriptor - BOUND_FD).map_err(io::Error::other)?;
        let mut entry = [0; ENTRY];
        let list = File::open(format!("/proc/self/fd/{AGAIN_FD}"))?;
        list.read_exact_at(&mut entry, (index * ENTRY) as u64)?;
        let (mark, wanted) = entry.split_at(1);
        match mark {
            [0] => Ok(Self { _lease: None }),
            [1] => Self::lease(descriptor, wanted),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn lease(descriptor: RawFd, wanted: &[u8]) -> io::Result<Self> {
        // A descriptor that nobody shares: its lease ends with this program.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(open(format!("/proc/self/fd/{descriptor}"), flags, Mode::empty())?);
        let lease = Lease::take(OwnedFd::from(file.try_clone()?)).map_err(|error| match error {
            NoLease::BeingWritten => io::Error::other("it is being written"),
            NoLease::Unavailable(error) => error,
        })?;
        if hash(&file)? != *wanted || !lease.is_whole() {
            return Err(io::Error::other("SYSTEM_RUN_DENIED: approval executable changed before execution"));
        }
        Ok(Self { _lease: Some(lease) })
    }
}
