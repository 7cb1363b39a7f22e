//! Content of approved files: hashes, sealed copies, and where a lease keeps a file as it is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, MemfdFlags, Mode, OFlags, SealFlags, StatxFlags, fchmod, fcntl_add_seals, fstatfs, memfd_create,
    open, statx,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// Largest file that is checked by its content, in bytes.
pub(super) const CONTENT_MAX: u64 = 256 * 1024 * 1024;
/// Bytes read at one time.
const READ: usize = 256 * 1024;
/// Longest name of a copy, in bytes. The system takes 249.
const NAME_MAX: usize = 200;

/// File systems whose files change only through this system's own open files: ext4, xfs, btrfs, f2fs, bcachefs, tmpfs.
/// Behind others are servers, or programs of any user.
const KEPT_BY_LEASES: [u64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0xCA45_1A4E, 0x0102_1994];
/// Leases hold here as long as nobody writes to the directories below it: those of a mount that a user made for
/// himself are his.
const OVERLAY: u64 = 0x794C_7630;

/// What is done with a sealed copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is executed.
    Execute,
    /// It is read.
    Read,
}

/// Whether a lease on this file keeps its content as it is.
pub(super) fn lease_keeps(file: &File) -> bool {
    let Ok(system) = fstatfs(file) else { return false };
    let Ok(kind) = u64::try_from(system.f_type) else { return false };
    KEPT_BY_LEASES.contains(&kind) || (kind == OVERLAY && is_mounted_here(file))
}

/// Whether a file lies on a mount of this process's own tree, which only its administrator changes.
fn is_mounted_here(file: &File) -> bool {
    let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID) else { return false };
    if found.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return false;
    }
    let id = found.stx_mnt_id.to_string();
    // A line begins with the mount's number.
    std::fs::read("/proc/self/mountinfo").is_ok_and(|mounts| {
        mounts
            .split(|byte| *byte == b'\n')
            .any(|line| line.split(|byte| *byte == b' ').next() == Some(id.as_bytes()))
    })
}

/// The hash of a file's content.
///
/// # Errors
/// It cannot be read, or is above [`CONTENT_MAX`].
pub(crate) fn hash(file: &File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(READ);
    let mut buffer = vec![0; READ.min(length.saturating_add(1))];
    let mut at = 0;
    loop {
        match file.read_at(&mut buffer, at) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => {
                at += count as u64;
                if at > CONTENT_MAX {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                hash.update(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A copy that nobody can change any more, open for reading. Hash the copy: until it was sealed, others could write to it.
///
/// # Errors
/// The file cannot be read or is above [`CONTENT_MAX`], or there is no memory for it.
pub(super) fn sealed_copy(file: &File, path: &Path, purpose: Purpose) -> io::Result<File> {
    let copy = memory(path.file_name().unwrap_or_default(), purpose)?;
    // One that grows while it is read is another file than was approved.
    if io::copy(&mut file.take(CONTENT_MAX + 1), &mut &copy)? > CONTENT_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    seal(copy, purpose)
}

/// These bytes as a sealed file.
///
/// # Errors
/// There is no memory for it.
pub(super) fn sealed(bytes: &[u8]) -> io::Result<File> {
    let file = memory(OsStr::new("approved"), Purpose::Read)?;
    file.write_all_at(bytes, 0)?;
    seal(file, Purpose::Read)
}

fn memory(name: &OsStr, purpose: Purpose) -> io::Result<File> {
    // Only seen in process lists.
    let name = name.as_bytes().get(..NAME_MAX).unwrap_or(name.as_bytes());
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let kind = match purpose {
        Purpose::Execute => MemfdFlags::EXEC,
        Purpose::Read => MemfdFlags::NOEXEC_SEAL,
    };
    let memory = match memfd_create(name, flags | kind) {
        // A kernel before 6.3 does not know the kinds, and needs none.
        Err(Errno::INVAL) => memfd_create(name, flags)?,
        Err(Errno::ACCESS) if purpose == Purpose::Execute => {
            let what = "its file system cannot keep it as it is, and this system executes nothing from memory \
                        (vm.memfd_noexec)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        other => other?,
    };
    Ok(memory.into())
}

fn seal(file: File, purpose: Purpose) -> io::Result<File> {
    fchmod(&file, if purpose == Purpose::Execute { Mode::RUSR | Mode::XUSR } else { Mode::RUSR })?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    // A descriptor of its own, for reading only and at the start.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
}
