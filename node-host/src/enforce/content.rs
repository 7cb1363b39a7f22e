//! Files as a yes is bound to them: identity, who could change them, content.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access};
use sha2::{Digest as _, Sha256};

use crate::process::shebang;

/// Largest file that is bound by its content.
pub(super) const CONTENT_MAX: u64 = 256 * 1024 * 1024;
/// Longest first line of a script that is looked at.
const FIRST_LINE: usize = 256;
/// Bytes read at one time.
const READ: usize = 256 * 1024;

/// A file's content.
///
/// # Errors
/// It cannot be read, or is above [`CONTENT_MAX`].
pub(super) fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    let file = File::open(path)?;
    if file.metadata()?.len() > CONTENT_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is above 256 MiB"));
    }
    let mut file = file.take(CONTENT_MAX + 1);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; READ];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => hash.update(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The interpreter that a script names in its first line; behind `env` the one that it is told to look for. None for what
/// is no script, or cannot be read.
pub(super) fn interpreter(path: &Path) -> Option<String> {
    let mut first = [0; FIRST_LINE];
    let file = File::open(path).ok()?;
    let read = std::os::unix::fs::FileExt::read_at(&file, &mut first, 0).ok()?;
    shebang::interpreter(first.get(..read)?).map(str::to_owned)
}

/// Whether this process's user could change what lies at a path, or put something else there (policy spec §7.4). For
/// root that is everything. What cannot be looked at counts as changeable.
pub(super) fn user_can_change(path: &Path) -> bool {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return true;
    }
    changeable(path, &|at, owner, _mode| owner == user.as_raw() || access(at, Access::WRITE_OK).is_ok())
}

/// Whether a rule for the program at this path could come to mean something that the owner of the rules did not put
/// there. The rules of a node that runs as root are root's: only others count.
pub(super) fn others_can_change(path: &Path) -> bool {
    if rustix::process::geteuid().is_root() {
        changeable(path, &|_, owner, mode| owner != 0 || mode & 0o022 != 0)
    } else {
        user_can_change(path)
    }
}

/// Asks about the file, the links on the way to it, and every directory above all of them. A directory whose sticky bit
/// is set keeps others from replacing what is not theirs.
fn changeable(path: &Path, can: &dyn Fn(&Path, u32, u32) -> bool) -> bool {
    let Ok(real) = path.canonicalize() else { return true };
    let up = |path: &Path| path.ancestors().map(Path::to_path_buf).collect::<Vec<_>>();
    let mut asked = up(&real);
    if real != path {
        asked.extend(up(path));
    }
    asked.iter().any(|at| {
        let Ok(found) = at.symlink_metadata() else { return true };
        if found.is_symlink() {
            // Its own mode says nothing; who may replace it is said by its directory, which is asked too.
            return can(Path::new("/"), found.uid(), 0o755) && found.uid() != 0;
        }
        let sticky = found.is_dir() && found.mode() & 0o1000 != 0;
        let mode = if sticky { found.mode() & !0o022 } else { found.mode() };
        can(at, found.uid(), mode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let hex: String = sha256(&path).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, known);
        File::create(&path).unwrap().set_len(CONTENT_MAX + 1).unwrap();
        assert_eq!(sha256(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(sha256(&dir.path().join("gone")).is_err());
    }

    #[test]
    fn own_files_can_be_changed_and_missing_ones_count_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"abc").unwrap();
        assert!(user_can_change(&path));
        assert!(user_can_change(&dir.path().join("gone")));
        assert_eq!(user_can_change(Path::new("/bin/sh")), rustix::process::geteuid().is_root());
        assert!(!others_can_change(Path::new("/bin/sh")));
    }
}
