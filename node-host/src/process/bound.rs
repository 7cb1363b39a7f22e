//! The last look at what a person approved: every file is opened, checked and executed by its descriptor, so that nothing
//! can take its place in between.
//!
//! Files that the node's user cannot change are known by device and inode. Those that it can are known by content, too: an
//! ELF program is hashed while a lease keeps writers away; what is read piece by piece (scripts) is copied into sealed
//! memory first.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, memfd_create, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use session::StartFailure;
use sha2::{Digest as _, Sha256};

use super::shebang;
use super::spawn::NotStarted;
use super::wire::{BOUND_FD, Bound, BoundFile, BoundRole, STARTER_FD};
use crate::sys::{ELF, Lease, NoLease};

/// Where descriptors lie that the command gets under other numbers: above those.
const OURS_FROM: RawFd = 300;
/// Largest file that is checked by its content.
const CONTENT_MAX: u64 = 256 * 1024 * 1024;
/// Bytes read at one time.
const READ: usize = 256 * 1024;
/// Longest first line of a script that is looked at.
const FIRST_LINE: usize = 256;
/// Everything that was approved, open.
#[derive(Debug)]
pub(super) struct Opened {
    workdir: OwnedFd,
    files: Vec<Checked>,
    exec: usize,
    starter: Option<OwnedFd>,
}

#[derive(Debug)]
struct Checked {
    file: OwnedFd,
    /// Keeps writers away until the command has started.
    _lease: Option<Lease<OwnedFd>>,
    pass: Pass,
}

/// Whether the command gets a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// It does.
    Yes,
    /// The system opens it once, to execute it.
    OnlyToExecute,
    /// It was only looked at.
    No,
}

impl Opened {
    /// Opens and checks.
    ///
    /// # Errors
    /// The first thing that is not what it was.
    pub(super) fn new(bound: &Bound, workdir: &Path) -> Result<Self, NotStarted> {
        let dir = open_workdir(bound, workdir)?;
        let mut files = Vec::with_capacity(bound.files.len());
        for (index, file) in bound.files.iter().enumerate() {
            files.push(check(file, index == bound.exec)?);
        }
        if bound.exec >= files.len() {
            return Err(changed("execution plan mismatch: no program"));
        }
        let starter = match bound.starter {
            true => Some(own_program()?),
            false => None,
        };
        Ok(Self { workdir: dir, files, exec: bound.exec, starter })
    }

    /// The directory to start in.
    pub(super) fn workdir(&self) -> BorrowedFd<'_> {
        self.workdir.as_fd()
    }

    /// The path that executes the approved program in the command's process, and its words.
    pub(super) fn program(&self, argv: &[String]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let argv: Vec<_> = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
        let descriptor = match self.files.get(self.exec) {
            Some(checked) if checked.pass == Pass::OnlyToExecute => checked.file.as_raw_fd(),
            Some(checked) => {
                let mut first = [0; FIRST_LINE];
                let read = rustix::io::pread(&checked.file, &mut first, 0).unwrap_or(0);
                let first = first.get(..read).unwrap_or_default();
                if let Some(words) = shebang::as_shell(first, number(self.exec), &argv) {
                    return words;
                }
                number(self.exec)
            }
            None => number(self.exec),
        };
        (format!("/proc/self/fd/{descriptor}").into_bytes(), argv)
    }

    /// Descriptors for the command, and their numbers there.
    pub(super) fn passed(&self) -> Vec<(BorrowedFd<'_>, RawFd)> {
        let files = self.files.iter().enumerate().filter(|(_, checked)| checked.pass == Pass::Yes);
        let files = files.map(|(index, checked)| (checked.file.as_fd(), number(index)));
        files.chain(self.starter.iter().map(|starter| (starter.as_fd(), STARTER_FD))).collect()
    }
}

fn number(index: usize) -> RawFd {
    BOUND_FD + RawFd::try_from(index).unwrap_or(0)
}

fn changed(what: &str) -> NotStarted {
    NotStarted::new(StartFailure::Changed, 0, format!("SYSTEM_RUN_DENIED: {what}"))
}

fn open_workdir(bound: &Bound, path: &Path) -> Result<OwnedFd, NotStarted> {
    let refused = || changed(&format!("approval cwd changed before execution: {}", path.display()));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = File::from(open(path, flags, Mode::empty()).map_err(|_| refused())?);
    let found = dir.metadata().map_err(|_| refused())?;
    if (found.dev(), found.ino()) != bound.workdir {
        return Err(refused());
    }
    raise(dir.into())
}

/// A descriptor above the numbers that the command gets.
fn raise(file: OwnedFd) -> Result<OwnedFd, NotStarted> {
    fcntl_dupfd_cloexec(&file, OURS_FROM)
        .map_err(|errno| NotStarted::system(StartFailure::Other, &errno.into(), "no descriptor could be had"))
}

/// This very program, whatever lies at its path by now.
fn own_program() -> Result<OwnedFd, NotStarted> {
    let failed = |errno: Errno| NotStarted::system(StartFailure::Other, &errno.into(), "no starter");
    raise(open("/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?)
}

/// Opens one file and compares it with what was approved.
fn check(bound: &BoundFile, executed: bool) -> Result<Checked, NotStarted> {
    let what = match bound.role {
        BoundRole::Program => "executable",
        BoundRole::Script | BoundRole::Named => "script operand",
        BoundRole::Directory => "cwd",
    };
    let drift = |detail: &str| {
        changed(&format!("approval {what} changed before execution: {}{detail}", bound.path.display()))
    };
    let file = open_file(bound).map_err(|error| drift(&format!(" ({error})")))?;
    let found = file.metadata().map_err(|error| drift(&format!(" ({error})")))?;
    let kind = if bound.role == BoundRole::Directory { found.is_dir() } else { found.is_file() };
    if !kind || (found.dev(), found.ino()) != (bound.device, bound.inode) {
        return Err(drift(""));
    }
    let by_path = matches!(bound.role, BoundRole::Directory | BoundRole::Named);
    let pass = if by_path { Pass::No } else { Pass::Yes };
    let Some(wanted) = &bound.sha256 else {
        // Nobody who could run commands here can change it.
        let pass = if executed && !is_script(&file) { Pass::OnlyToExecute } else { pass };
        return Ok(Checked { file: raise(file.into())?, _lease: None, pass });
    };
    if found.len() > CONTENT_MAX {
        return Err(drift(" (it is above 256 MiB)"));
    }
    let failed = |error: io::Error| drift(&format!(" ({error})"));
    let copy = || -> Result<Checked, NotStarted> {
        let (sealed, hash) = sealed_copy(&file, &bound.path).map_err(failed)?;
        if hash != *wanted {
            return Err(drift(""));
        }
        Ok(Checked { file: raise(sealed)?, _lease: None, pass })
    };
    if bound.role == BoundRole::Script {
        return copy();
    }
    let lease = match Lease::take(OwnedFd::from(file.try_clone().map_err(failed)?)) {
        Ok(lease) => lease,
        Err(NoLease::BeingWritten) => return Err(drift(" (it is being written)")),
        Err(NoLease::Unavailable(_)) if bound.role == BoundRole::Program => return copy(),
        Err(NoLease::Unavailable(error)) => return Err(drift(&format!(" (no lease: {error})"))),
    };
    if hash(&file).map_err(failed)? != *wanted {
        return Err(drift(""));
    }
    // Only now, under the lease and with the right content, does it say anything to look at what kind of file it is.
    let mut first = [0; FIRST_LINE];
    let read = file.read_at(&mut first, 0).map_err(failed)?;
    let first = first.get(..read).unwrap_or_default();
    let elf = first.starts_with(&ELF);
    if bound.role == BoundRole::Program
        && !elf
        && shebang::interpreter(first).is_some_and(shebang::reads_descriptors)
    {
        return copy();
    }
    let pass = if executed && elf { Pass::OnlyToExecute } else { pass };
    Ok(Checked { file: raise(file.into())?, _lease: Some(lease), pass })
}

/// Opened so that no device, pipe or lease of somebody else can keep us waiting.
fn open_file(bound: &BoundFile) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match open(&bound.path, flags, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        // A program that may be executed and not read.
        Err(Errno::ACCESS) if bound.sha256.is_none() && bound.role == BoundRole::Program => {
            Ok(open(&bound.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into())
        }
        Err(errno) => Err(errno.into()),
    }
}

fn is_script(file: &File) -> bool {
    let mut first = [0; 2];
    matches!(file.read_at(&mut first, 0), Ok(2)) && first == *b"#!"
}

fn hash(file: &File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    each_piece(file, |piece| {
        hash.update(piece);
        Ok(())
    })?;
    Ok(hash.finalize().into())
}

/// A copy that nobody can change any more, and the hash of what is in it.
fn sealed_copy(file: &File, path: &Path) -> io::Result<(OwnedFd, [u8; 32])> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().filter(|letter| *letter != '\0').take(100).collect();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = match memfd_create(&name, flags | MemfdFlags::EXEC) {
        // A kernel before 6.3 does not know the flag, and needs none.
        Err(Errno::INVAL) => memfd_create(&name, flags)?,
        other => other?,
    };
    let copy = File::from(memory);
    let mut hash = Sha256::new();
    let mut at = 0;
    each_piece(file, |piece| {
        hash.update(piece);
        copy.write_all_at(piece, at)?;
        at += piece.len() as u64;
        Ok(())
    })?;
    fchmod(&copy, Mode::RUSR | Mode::XUSR)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    // A descriptor of its own, for reading only and at the start.
    let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
    let sealed = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((sealed, hash.finalize().into()))
}

fn each_piece(file: &File, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(READ);
    let mut buffer = vec![0; READ.min(length + 1)];
    let mut at = 0;
    loop {
        match file.read_at(&mut buffer, at) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                at += count as u64;
                // One that grows while it is read is another file than was approved.
                if at > CONTENT_MAX {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                take(buffer.get(..count).unwrap_or_default())?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
