//! Private files: replaced in one step, read with a bound.
//!
//! Owns how bytes reach and leave the disk (policy spec §1.3, write rules). It does not know what they mean.

mod links;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

pub(crate) use links::real_path;
pub use links::{LinkFault, Openness};

/// Tries to find a free name for the temporary file. Names are random, so even the second try is a rarity.
const NAME_TRIES: u32 = 8;

/// Whom a file may be open to when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateMode {
    /// For keys: owned by this user, and nobody else may do anything with it.
    Strict,
    /// For settings: owned by this user or root; others may read it and nobody else may write it.
    Readable,
}

/// Why a private file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// The path names no file in a directory.
    #[error("{} does not name a file", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// What is there is a link, a directory, a device or a pipe.
    #[error("{} is not a regular file (links are not followed)", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// Others could read a secret or write a setting.
    #[error("{} is open to other users (mode {mode:04o}, owner {owner}); run `chmod 600` on it", path.display())]
    OpenToOthers {
        /// The path.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Its owner's user id.
        owner: u32,
    },
    /// Others could take the file away or put another one in its place.
    #[error("{} {found}", path.display())]
    OpenDirectory {
        /// The directory that holds the file.
        path: PathBuf,
        /// Who can change it.
        found: Openness,
    },
    /// A link on the way to the file could be turned by someone else, or leads nowhere.
    #[error("the link {} is not followed: {fault}", link.display())]
    UnsafeLink {
        /// The link.
        link: PathBuf,
        /// What is wrong with it.
        fault: LinkFault,
    },
    /// The file is longer than its reader takes.
    #[error("{} is longer than {max_bytes} bytes", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The bound.
        max_bytes: u64,
    },
    /// The file could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be written; the old content is untouched.
    #[error("{} could not be written", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// Whether the file simply is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Replaces `path` by a file of mode 0600 that holds `bytes`. A reader, also one after a crash, sees the old content or
/// the new one. A missing directory is made (0700). When this returns, the content is on the disk.
///
/// # Errors
/// The destination is a link or no regular file, or the disk refused. The old content is then untouched; the one
/// exception is a failed sync of the directory after the replacement.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), PrivateFileError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(PrivateFileError::NoName { path: path.to_path_buf() });
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(PrivateFileError::NotRegular { path: path.to_path_buf() });
        }
        Ok(_) => {}
        Err(source) if source.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(PrivateFileError::Write { path: path.to_path_buf(), source }),
    }
    let replace = || -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let (temporary, file) = create_beside(parent, name)?;
        let done = fill(file, bytes).and_then(|()| fs::rename(&temporary, path));
        if let Err(source) = done {
            // Best effort: the first failure is the one to report.
            let _ = fs::remove_file(&temporary);
            return Err(source);
        }
        File::open(parent)?.sync_all()
    };
    replace().map_err(|source| PrivateFileError::Write { path: path.to_path_buf(), source })
}

/// Reads all of a regular file of at most `max_bytes`. Links are not followed and a pipe cannot block the reader.
///
/// # Errors
/// The file is missing (see [`PrivateFileError::is_not_found`]), too long, not regular, or more open than `mode`
/// allows.
pub fn read_private(path: &Path, max_bytes: u64, mode: PrivateMode) -> Result<Vec<u8>, PrivateFileError> {
    let unreadable = |source| PrivateFileError::Read { path: path.to_path_buf(), source };
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).map_err(
        |source| {
            if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
                PrivateFileError::NotRegular { path: path.to_path_buf() }
            } else {
                unreadable(source)
            }
        },
    )?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(PrivateFileError::NotRegular { path: path.to_path_buf() });
    }
    let (bits, owner) = (metadata.mode() & 0o7777, metadata.uid());
    let user = rustix::process::geteuid().as_raw();
    let fit = match mode {
        PrivateMode::Strict => bits & 0o077 == 0 && owner == user,
        PrivateMode::Readable => bits & 0o022 == 0 && (owner == user || owner == 0),
    };
    if !fit {
        return Err(PrivateFileError::OpenToOthers { path: path.to_path_buf(), mode: bits, owner });
    }
    // The length can change after the look at it, so the bound is on the reading itself.
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        return Err(PrivateFileError::TooLarge { path: path.to_path_buf(), max_bytes });
    }
    Ok(bytes)
}

fn create_beside(parent: &Path, name: &std::ffi::OsStr) -> io::Result<(PathBuf, File)> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAME_TRIES {
        // Random, not counted: after crashes in a container every process has the same id and counter.
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{random:016x}.tmp", std::process::id()));
        let temporary = parent.join(temporary);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => last = source,
            Err(source) => return Err(source),
        }
    }
    Err(last)
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    // The umask may have taken bits from the mode at creation; it cannot here.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}
