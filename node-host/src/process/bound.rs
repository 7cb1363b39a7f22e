//! The last look at what a person approved: every file is opened, checked and executed by its descriptor, so that nothing
//! can take its place in between.
//!
//! Files that the node's user cannot change are known by device and inode. Those that it can are known by content, too: an
//! ELF program is hashed while a lease keeps writers away; what is read piece by piece (scripts), and what a lease does
//! not keep as it is, is copied into sealed memory first.
//!
//! A lease ends when the command has started. A program that the command itself starts later is looked at again then, by
//! the [starter](crate::starter), which finds its hash in [`Again`].

mod again;
mod content;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use session::StartFailure;

pub(crate) use self::again::Again;
use self::content::{CONTENT_MAX, Purpose, hash, lease_keeps, sealed_copy};
use super::shebang;
use super::spawn::NotStarted;
use super::wire::{AGAIN_FD, BOUND_FD, BOUND_MAX, Bound, BoundFile, BoundRole, STARTER_FD};
use crate::sys::{ELF, Lease, NoLease};

/// Where descriptors lie that the command gets under other numbers: above those.
const OURS_FROM: RawFd = 300;
/// Longest first line of a script that is looked at.
const FIRST_LINE: usize = 256;
/// What is said of a file that somebody has open for writing, or is about to.
const BEING_WRITTEN: &str = " (it is being written)";

/// Everything that was approved, open.
#[derive(Debug)]
pub(super) struct Opened {
    workdir: OwnedFd,
    files: Vec<Checked>,
    exec: usize,
    starter: Option<Starter>,
}

/// What starts programs that the command names.
#[derive(Debug)]
struct Starter {
    program: OwnedFd,
    again: OwnedFd,
}

#[derive(Debug)]
struct Checked {
    file: OwnedFd,
    /// Keeps writers away until the command has started.
    lease: Option<Lease<OwnedFd>>,
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
        if bound.exec >= bound.files.len() || bound.files.len() > BOUND_MAX {
            return Err(changed("execution plan mismatch: no program, or too many files"));
        }
        let dir = open_workdir(bound, workdir)?;
        let mut files = Vec::with_capacity(bound.files.len());
        for (index, file) in bound.files.iter().enumerate() {
            files.push(check(file, index == bound.exec)?);
        }
        // The system lets a writer through after a while, so all of it must have been quick enough.
        for (file, checked) in bound.files.iter().zip(&files) {
            if checked.lease.as_ref().is_some_and(|lease| !lease.is_whole()) {
                return Err(drift(file, BEING_WRITTEN));
            }
        }
        let starter = if bound.starter { Some(Starter::new(bound, &files)?) } else { None };
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
        let starter = self.starter.iter();
        let starter = starter.flat_map(|it| [(it.program.as_fd(), STARTER_FD), (it.again.as_fd(), AGAIN_FD)]);
        files.chain(starter).collect()
    }
}

impl Starter {
    fn new(bound: &Bound, files: &[Checked]) -> Result<Self, NotStarted> {
        let failed = |error: io::Error| NotStarted::system(StartFailure::Other, &error, "no starter");
        // This very program, whatever lies at its path by now.
        let program = open("/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        // What no lease was needed for stays as it is.
        let hashes = bound.files.iter().zip(files);
        let hashes = hashes.map(|(file, checked)| file.sha256.filter(|_| checked.lease.is_some()));
        let again = Again::write(hashes).map_err(failed)?;
        Ok(Self { program: raise(program)?, again: raise(again)? })
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

/// What is said of a file that is not what was approved.
fn drift(bound: &BoundFile, detail: &str) -> NotStarted {
    let what = match bound.role {
        BoundRole::Program => "executable",
        BoundRole::Script | BoundRole::Named => "script operand",
        BoundRole::Directory => "cwd",
    };
    changed(&format!("approval {what} changed before execution: {}{detail}", bound.path.display()))
}

/// Opens one file and compares it with what was approved.
fn check(bound: &BoundFile, executed: bool) -> Result<Checked, NotStarted> {
    let failed = |error: io::Error| drift(bound, &format!(" ({error})"));
    let file = open_file(bound).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let kind = if bound.role == BoundRole::Directory { found.is_dir() } else { found.is_file() };
    if !kind || (found.dev(), found.ino()) != (bound.device, bound.inode) {
        return Err(drift(bound, ""));
    }
    let by_path = matches!(bound.role, BoundRole::Directory | BoundRole::Named);
    let pass = if by_path { Pass::No } else { Pass::Yes };
    let Some(wanted) = &bound.sha256 else {
        // Nobody who could run commands here can change it.
        let pass = if executed && !is_script(&file) { Pass::OnlyToExecute } else { pass };
        return Ok(Checked { file: raise(file.into())?, lease: None, pass });
    };
    if found.len() > CONTENT_MAX {
        return Err(drift(bound, " (it is above 256 MiB)"));
    }
    let copy = |purpose| -> Result<Checked, NotStarted> {
        let sealed = sealed_copy(&file, &bound.path, purpose).map_err(failed)?;
        if hash(&sealed).map_err(failed)? != *wanted {
            return Err(drift(bound, ""));
        }
        Ok(Checked { file: raise(sealed.into())?, lease: None, pass })
    };
    if bound.role == BoundRole::Script {
        return copy(Purpose::Read);
    }
    let lease = match lease_keeps(&file) {
        true => Lease::take(OwnedFd::from(file.try_clone().map_err(failed)?)),
        false => Err(NoLease::Unavailable(io::ErrorKind::Unsupported.into())),
    };
    let lease = match lease {
        Ok(lease) => lease,
        Err(NoLease::BeingWritten) => return Err(drift(bound, BEING_WRITTEN)),
        Err(NoLease::Unavailable(_)) if bound.role == BoundRole::Program => return copy(Purpose::Execute),
        Err(NoLease::Unavailable(error)) => return Err(drift(bound, &format!(" (no lease: {error})"))),
    };
    if hash(&file).map_err(failed)? != *wanted {
        return Err(drift(bound, ""));
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
        return copy(Purpose::Execute);
    }
    let pass = if executed && elf { Pass::OnlyToExecute } else { pass };
    Ok(Checked { file: raise(file.into())?, lease: Some(lease), pass })
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

#[cfg(test)]
mod tests;
