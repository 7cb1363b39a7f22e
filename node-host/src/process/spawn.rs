//! From a launch specification to a running command: look the program up, connect its streams, spawn it.
//!
//! The look-up uses the PATH that the *command* gets, not the one of this process, and is done here rather than by
//! `execvp` so that "not there" and "there but not executable" stay apart. This module does not read or write the
//! streams.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use portable_pty::{PtySize, native_pty_system};
use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::Pid;
use rustix::termios::{Winsize, tcsetwinsize};
use session::{StartFailure, StreamTag};

use super::bound::Opened;
use super::wire::{EnvVar, LaunchSpec, Mode, Stdin};
use crate::sys;

/// The longest single argument or variable, in bytes, its end mark included (`MAX_ARG_STRLEN` of Linux).
const ARG_MAX: usize = 128 * 1024;

/// The longest explanation, in characters. It may name a program, whose name can be as long as an argument.
const DETAIL_MAX: usize = 1000;

/// What an output pipe is asked to hold, in bytes. The system may refuse; then it stays at its default of 64 KiB.
const PIPE_SIZE: usize = 1 << 20;

/// Where commands without a PATH of their own are looked for.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// A running command and our ends of its streams.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    /// Non-blocking, with the tag of what comes from it.
    pub(crate) outputs: Vec<(OwnedFd, StreamTag)>,
    /// Non-blocking; none when the command has no input.
    pub(crate) input: Option<OwnedFd>,
    /// Set for a terminal: its master, for sizes and the foreground group.
    pub(crate) terminal: Option<OwnedFd>,
    /// Set for a terminal: the command's side of it. A command may close all of its own and open `/dev/tty` again, to ask
    /// for a password; as long as this is open, that is no hang-up.
    pub(crate) line: Option<OwnedFd>,
}

/// Why a command did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotStarted {
    pub(crate) kind: StartFailure,
    /// 0 when no system call failed.
    pub(crate) errno: i32,
    pub(crate) detail: String,
}

impl NotStarted {
    pub(super) fn new(kind: StartFailure, errno: i32, detail: impl Into<String>) -> NotStarted {
        let mut detail = detail.into();
        if let Some((at, _)) = detail.char_indices().nth(DETAIL_MAX) {
            detail.replace_range(at.., "…");
        }
        NotStarted { kind, errno, detail }
    }

    pub(super) fn system(kind: StartFailure, error: &io::Error, what: &str) -> NotStarted {
        NotStarted::new(kind, error.raw_os_error().unwrap_or(0), format!("{what}: {error}"))
    }
}

/// Starts the command of `spec`.
pub(crate) fn spawn(spec: &LaunchSpec) -> Result<Spawned, NotStarted> {
    let program = spec.argv.first().map_or("", String::as_str);
    // Checked first: what was approved is refused for having changed, whatever else is wrong with it by now.
    let opened = spec.bound.as_deref().map(|bound| Opened::new(bound, &spec.cwd)).transpose()?;
    let (path, words) = match &opened {
        Some(opened) => opened.program(&spec.argv),
        None => {
            check_workdir(&spec.cwd)?;
            let path_variable = variable(&spec.env, b"PATH").unwrap_or(DEFAULT_PATH);
            let path = resolve(program, path_variable, &spec.cwd)?;
            (
                path.into_os_string().into_vec(),
                spec.argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            )
        }
    };
    let argv = words.iter().map(|word| terminated(word)).collect::<Result<Vec<_>, _>>()?;
    let env = environment(&spec.env, spec.mode)?;
    let path = terminated(&path)?;
    let cwd = terminated(spec.cwd.as_os_str().as_bytes())?;
    let passed = opened.as_ref().map(Opened::passed).unwrap_or_default();
    let workdir = match &opened {
        Some(opened) => sys::Workdir::Open(opened.workdir()),
        None => sys::Workdir::Path(&cwd),
    };
    let command = sys::Command { path: &path, argv: &argv, env: &env, workdir, passed: &passed };
    let start =
        |stdio: &sys::Stdio<'_>| sys::spawn(&command, stdio).map_err(|error| exec_failure(&error, program));
    match spec.mode {
        Mode::Pipes { stdin } => spawn_pipes(stdin, start),
        Mode::Terminal { cols, rows } => spawn_terminal(cols, rows, start),
    }
}

fn spawn_pipes(
    stdin: Stdin,
    start: impl FnOnce(&sys::Stdio<'_>) -> Result<Pid, NotStarted>,
) -> Result<Spawned, NotStarted> {
    let pipe = || {
        pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| NotStarted::system(StartFailure::Other, &error.into(), "no pipe could be made"))
    };
    let (out, child_out) = pipe()?;
    let (err, child_err) = pipe()?;
    // Best effort: a small pipe is slower, not wrong.
    let _ = fcntl_setpipe_size(&out, PIPE_SIZE);
    let input = match stdin {
        Stdin::Open => Some(pipe()?),
        Stdin::Null => None,
    };
    let pid = start(&sys::Stdio::Fds {
        stdin: input.as_ref().map(|(child_in, _)| child_in.as_fd()),
        stdout: child_out.as_fd(),
        stderr: child_err.as_fd(),
    })?;
    let input = input.map(|(_, ours)| ours);
    for fd in [Some(&out), Some(&err), input.as_ref()].into_iter().flatten() {
        non_blocking(fd);
    }
    let outputs = vec![(out, StreamTag::Stdout), (err, StreamTag::Stderr)];
    Ok(Spawned { pid, outputs, input, terminal: None, line: None })
}

fn spawn_terminal(
    cols: u16,
    rows: u16,
    start: impl FnOnce(&sys::Stdio<'_>) -> Result<Pid, NotStarted>,
) -> Result<Spawned, NotStarted> {
    let size = PtySize { cols: cols.max(1), rows: rows.max(1), pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).map_err(|error| {
        // The library gives a text only. The system's last error is the one meant, unless the way here made another.
        let (cause, text) = (io::Error::last_os_error(), error.to_string());
        let meant = text.contains(&format!("{cause:?}"));
        no_terminal(&if meant { cause } else { io::Error::other(text) })
    })?;
    let name = pair.master.tty_name().ok_or_else(|| no_terminal(&io::Error::other("it has no name")))?;
    let raw =
        pair.master.as_raw_fd().ok_or_else(|| no_terminal(&io::Error::other("it has no descriptor")))?;
    // The command opens it by name while it starts, where a failure would look like one of the program.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let line = rustix::fs::open(&name, flags, rustix::fs::Mode::empty())
        .map_err(|error| no_terminal(&error.into()))?;
    // Our own descriptors of the master: the pair's writer types bytes when it is dropped and is never taken.
    let copy = || sys::duplicate(raw).map_err(|error| no_terminal(&error));
    let (reader, writer, control) = (copy()?, copy()?, copy()?);
    let name = terminated(name.as_os_str().as_bytes())?;
    let pid = start(&sys::Stdio::Terminal(&name))?;
    non_blocking(&reader);
    Ok(Spawned {
        pid,
        outputs: vec![(reader, StreamTag::Stdout)],
        input: Some(writer),
        terminal: Some(control),
        line: Some(line),
    })
}

/// A failure to open a terminal, with what is behind it where the system's words mislead.
fn no_terminal(error: &io::Error) -> NotStarted {
    let reason = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => " (all terminals of this system are in use, see kernel.pty.max)",
        Some(Errno::MFILE | Errno::NFILE) => " (too many files are open)",
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => {
            " (/dev/ptmx or /dev/pts is missing or not mounted)"
        }
        Some(Errno::ACCESS | Errno::PERM) => " (/dev/ptmx or /dev/pts is closed to this user)",
        _ => "",
    };
    NotStarted::system(StartFailure::Terminal, error, &format!("no terminal could be opened{reason}"))
}

/// Sets a terminal's size; its foreground group hears of it.
pub(crate) fn resize(terminal: &OwnedFd, cols: u16, rows: u16) {
    let size = Winsize { ws_row: rows.max(1), ws_col: cols.max(1), ws_xpixel: 0, ws_ypixel: 0 };
    // Fails only when the terminal is gone, and with it the wish.
    let _ = tcsetwinsize(terminal, size);
}

fn non_blocking(fd: &OwnedFd) {
    // Cannot fail on a descriptor that is open.
    let _ = rustix::io::ioctl_fionbio(fd, true);
}

fn terminated(bytes: &[u8]) -> Result<CString, NotStarted> {
    if bytes.len() >= ARG_MAX {
        let detail = format!(
            "an argument or variable has {} bytes, the system takes {} at most; pass it by stdin or in a file",
            bytes.len(),
            ARG_MAX - 1
        );
        return Err(NotStarted::new(StartFailure::TooLong, Errno::TOOBIG.raw_os_error(), detail));
    }
    CString::new(bytes).map_err(|_| {
        let detail = "an argument, variable or path holds a zero byte";
        NotStarted::new(StartFailure::Other, Errno::INVAL.raw_os_error(), detail)
    })
}

fn variable<'a>(env: &'a [EnvVar], name: &[u8]) -> Option<&'a [u8]> {
    env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_slice())
}

fn environment(env: &[EnvVar], mode: Mode) -> Result<Vec<CString>, NotStarted> {
    // runtime.md §3: a terminal's TERM is the caller's unless it says nothing.
    let replace_term = matches!(mode, Mode::Terminal { .. })
        && variable(env, b"TERM").is_none_or(|term| term.is_empty() || term == b"dumb");
    let mut lines = Vec::with_capacity(env.len() + 1);
    for (key, value) in env.iter().filter(|(key, _)| !(replace_term && key == b"TERM")) {
        let mut line = Vec::with_capacity(key.len() + value.len() + 1);
        line.extend_from_slice(key);
        line.push(b'=');
        line.extend_from_slice(value);
        lines.push(terminated(&line)?);
    }
    if replace_term {
        lines.push(terminated(b"TERM=xterm-256color")?);
    }
    Ok(lines)
}

fn check_workdir(cwd: &Path) -> Result<(), NotStarted> {
    let refused = |error: &io::Error| {
        NotStarted::system(StartFailure::Workdir, error, &format!("working directory {}", cwd.display()))
    };
    let metadata = std::fs::metadata(cwd).map_err(|error| refused(&error))?;
    if !metadata.is_dir() {
        return Err(refused(&Errno::NOTDIR.into()));
    }
    access(cwd, Access::EXEC_OK).map_err(|error| refused(&error.into()))
}

/// Finds the program as `execvp` would with the given PATH, in the given directory.
fn resolve(program: &str, path: &[u8], cwd: &Path) -> Result<PathBuf, NotStarted> {
    let missing =
        |detail: String| Err(NotStarted::new(StartFailure::NotFound, Errno::NOENT.raw_os_error(), detail));
    let refused = |at: &Path| {
        let detail = format!("{} cannot be executed", at.display());
        Err(NotStarted::new(StartFailure::NotExecutable, Errno::ACCESS.raw_os_error(), detail))
    };
    if program.is_empty() {
        return missing("there is no program in an empty command".into());
    }
    if program.contains('/') {
        let at = cwd.join(program);
        return match look(&at) {
            Look::Executable => Ok(at),
            Look::NotExecutable => refused(&at),
            Look::Missing => missing(format!("{} does not exist", at.display())),
        };
    }
    let mut not_executable = None;
    for directory in path.split(|&b| b == b':') {
        // An empty or relative entry counts from the command's directory.
        let at = cwd.join(OsStr::from_bytes(directory)).join(program);
        match look(&at) {
            Look::Executable => return Ok(at),
            Look::NotExecutable => not_executable = not_executable.or(Some(at)),
            Look::Missing => {}
        }
    }
    match not_executable {
        Some(at) => refused(&at),
        None => missing(format!("{program} is not in the PATH {}", String::from_utf8_lossy(path))),
    }
}

enum Look {
    Executable,
    NotExecutable,
    Missing,
}

fn look(at: &Path) -> Look {
    match std::fs::metadata(at) {
        Ok(metadata) if metadata.is_file() && access(at, Access::EXEC_OK).is_ok() => Look::Executable,
        Ok(_) => Look::NotExecutable,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Look::NotExecutable,
        Err(_) => Look::Missing,
    }
}

fn exec_failure(error: &io::Error, program: &str) -> NotStarted {
    let kind = match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The file was there a moment ago: its interpreter is what is missing.
        Some(Errno::NOENT) => StartFailure::NotFound,
        Some(Errno::ACCESS | Errno::NOEXEC | Errno::PERM | Errno::TXTBSY | Errno::ISDIR | Errno::LIBBAD) => {
            StartFailure::NotExecutable
        }
        Some(Errno::TOOBIG) => StartFailure::TooLong,
        _ => StartFailure::Other,
    };
    NotStarted::system(kind, error, &format!("{program} could not be executed"))
}

/// The process group in a terminal's foreground.
pub(crate) fn foreground_group(terminal: &OwnedFd) -> Option<Pid> {
    rustix::termios::tcgetpgrp(terminal).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn look_up_follows_the_path_of_the_command() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("a/run", 0o755), ("b/run", 0o755), ("a/plain", 0o644), ("b/plain", 0o755)] {
            let at = dir.path().join(name);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(&at, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let find = |program: &str, path: &str| {
            resolve(program, path.as_bytes(), dir.path())
                .map(|at| at.strip_prefix(dir.path()).unwrap().display().to_string())
                .map_err(|e| e.kind)
        };
        assert_eq!(find("run", "a:b"), Ok("a/run".into()));
        assert_eq!(find("run", "nope:b"), Ok("b/run".into()));
        assert_eq!(find("a/run", ""), Ok("a/run".into()));
        assert_eq!(find("run", "a/:"), Ok("a/run".into()));
        assert_eq!(find("plain", "a:b"), Ok("b/plain".into()));
        assert_eq!(find("plain", "a"), Err(StartFailure::NotExecutable));
        assert_eq!(find("a/plain", "b"), Err(StartFailure::NotExecutable));
        assert_eq!(find("a", "."), Err(StartFailure::NotExecutable));
        assert_eq!(find("gone", "a:b"), Err(StartFailure::NotFound));
        assert_eq!(find("a/gone", "a:b"), Err(StartFailure::NotFound));
        assert_eq!(find("", "a:b"), Err(StartFailure::NotFound));
    }

    #[test]
    fn term_is_replaced_only_where_it_says_nothing() {
        let term = |value: Option<&str>, mode| {
            let env: Vec<EnvVar> = value.iter().map(|v| (b"TERM".to_vec(), v.as_bytes().to_vec())).collect();
            environment(&env, mode).unwrap().into_iter().map(|l| l.into_string().unwrap()).collect::<Vec<_>>()
        };
        for said in [None, Some(""), Some("dumb")] {
            assert_eq!(term(said, Mode::TERMINAL), ["TERM=xterm-256color"]);
        }
        assert_eq!(term(Some("vt100"), Mode::TERMINAL), ["TERM=vt100"]);
        assert_eq!(term(Some("dumb"), Mode::PIPES), ["TERM=dumb"]);
        assert_eq!(term(None, Mode::PIPES), [""; 0]);
    }

    #[test]
    fn a_missing_terminal_names_its_cause() {
        for (errno, cause) in [
            (Errno::NOSPC, "kernel.pty.max"),
            (Errno::NOENT, "not mounted"),
            (Errno::MFILE, "too many files"),
            (Errno::ACCESS, "closed to this user"),
            (Errno::IO, "Input/output error"),
        ] {
            let error = no_terminal(&errno.into());
            assert_eq!((error.kind, error.errno), (StartFailure::Terminal, errno.raw_os_error()));
            assert!(error.detail.starts_with("no terminal could be opened"), "{error:?}");
            assert!(error.detail.contains(cause), "{error:?}");
        }
        let long = NotStarted::new(StartFailure::NotFound, 2, "ü".repeat(5000));
        assert_eq!(long.detail.chars().count(), DETAIL_MAX + 1);
    }

    #[test]
    fn arguments_above_the_limit_are_named() {
        assert!(terminated(&[b'x'; ARG_MAX - 1]).is_ok());
        assert_eq!(terminated(&[b'x'; ARG_MAX]).unwrap_err().kind, StartFailure::TooLong);
        assert_eq!(terminated(b"a\0b").unwrap_err().kind, StartFailure::Other);
    }
}
