//! Where a command runs (`runtime.md` §1.5, field cases F096 to F099).
//!
//! Never a substitute: a directory that is not there is refused.

use std::io;
use std::path::{Path, PathBuf};

use fault::{ErrorCode, Fault};
use rustix::fs::{Access, access};

use super::invalid;

/// The canonical directory that `given` means on this machine. Empty is the
/// node's default; a relative one starts there; `~` is this machine's home.
pub(super) fn resolve(
    given: &str,
    default_dir: &Path,
    home: Option<&Path>,
    node: &str,
) -> Result<PathBuf, Fault> {
    if given.contains('\0') {
        return Err(invalid("the workdir contains a NUL character"));
    }
    if !given.is_empty() && given.trim().is_empty() {
        return Err(invalid("the workdir is blank").hint("leave it out for the node's default"));
    }
    let wanted = if given.is_empty() {
        default_dir.to_path_buf()
    } else if let Some(rest) = given.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))
    {
        let home = home.ok_or_else(|| invalid("the workdir starts with ~ and the node host has no HOME"))?;
        home.join(rest.trim_start_matches('/'))
    } else {
        default_dir.join(given)
    };
    let shown = if given.is_empty() { wanted.display().to_string() } else { given.to_owned() };
    let canonical = wanted.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Fault::new(ErrorCode::WorkdirNotFound, format!("WORKDIR_NOT_FOUND {shown} on node {node}"))
                .hint("the command was not run; paths are those of the node, not of the gateway")
        }
        io::ErrorKind::NotADirectory => not_a_directory(&shown, node),
        _ => not_accessible(&shown, node, &error),
    })?;
    if !canonical.is_dir() {
        return Err(not_a_directory(&shown, node));
    }
    access(&canonical, Access::EXEC_OK).map_err(|errno| not_accessible(&shown, node, &errno.into()))?;
    Ok(canonical)
}

fn not_a_directory(shown: &str, node: &str) -> Fault {
    Fault::new(ErrorCode::WorkdirNotDirectory, format!("WORKDIR_NOT_DIRECTORY {shown} on node {node}"))
}

fn not_accessible(shown: &str, node: &str, error: &io::Error) -> Fault {
    Fault::new(
        ErrorCode::WorkdirNotAccessible,
        format!("WORKDIR_NOT_ACCESSIBLE {shown} on node {node}: {error}"),
    )
}
