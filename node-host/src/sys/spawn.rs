//! `posix_spawn` with the attributes that a session's command needs.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

/// What the child gets as 0, 1 and 2.
#[derive(Debug)]
pub(crate) enum Stdio<'a> {
    /// Three descriptors, none of which is 0, 1 or 2 itself. No stdin means `/dev/null`.
    Fds {
        /// Standard input.
        stdin: Option<BorrowedFd<'a>>,
        /// Standard output.
        stdout: BorrowedFd<'a>,
        /// Standard error.
        stderr: BorrowedFd<'a>,
    },
    /// The terminal of this name, which becomes the controlling terminal.
    Terminal(&'a CStr),
}

/// Where a command starts.
#[derive(Debug)]
pub(crate) enum Workdir<'a> {
    /// By its path.
    Path(&'a CStr),
    /// The directory that is open here.
    Open(BorrowedFd<'a>),
}

/// What is started.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    /// The program's path.
    pub(crate) path: &'a CStr,
    /// Its words.
    pub(crate) argv: &'a [CString],
    /// Its environment.
    pub(crate) env: &'a [CString],
    /// Where it starts.
    pub(crate) workdir: Workdir<'a>,
    /// Further descriptors, and the numbers that it gets them under.
    pub(crate) passed: &'a [(BorrowedFd<'a>, RawFd)],
}

/// Starts a command in a session of its own, with default signals, an empty mask and the given descriptors.
///
/// # Errors
/// The error of the step that failed, that of `exec` included, with its own number.
pub(crate) fn spawn(command: &Command<'_>, stdio: &Stdio<'_>) -> io::Result<Pid> {
    let argv = pointers(command.argv);
    let env = pointers(command.env);
    let actions = Actions::new(command, stdio)?;
    let attributes = Attributes::new()?;
    let mut pid = 0;
    // SAFETY: `actions` and `attributes` are initialised and live until the end of the function; both arrays end with
    // a null pointer and point into slices that outlive the call.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            command.path.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("posix_spawn returned no pid"))
}

pub(super) fn pointers(texts: &[CString]) -> Vec<*mut c_char> {
    // The C signature lacks `const`; posix_spawn does not write through these.
    texts.iter().map(|text| text.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

fn check(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

struct Actions(Box<MaybeUninit<libc::posix_spawn_file_actions_t>>);

impl Actions {
    fn new(command: &Command<'_>, stdio: &Stdio<'_>) -> io::Result<Actions> {
        let mut actions = Actions(Box::new(MaybeUninit::uninit()));
        let raw = actions.0.as_mut_ptr();
        // SAFETY: `init` comes first and makes `raw` valid for the calls after it; the paths are terminated strings
        // that glibc copies; the descriptors are open for the life of `stdio`.
        unsafe {
            check(libc::posix_spawn_file_actions_init(raw))?;
            match stdio {
                Stdio::Fds { stdin, stdout, stderr } => {
                    match stdin {
                        Some(fd) => check(libc::posix_spawn_file_actions_adddup2(raw, fd.as_raw_fd(), 0))?,
                        None => check(libc::posix_spawn_file_actions_addopen(
                            raw,
                            0,
                            c"/dev/null".as_ptr(),
                            libc::O_RDONLY,
                            0,
                        ))?,
                    }
                    check(libc::posix_spawn_file_actions_adddup2(raw, stdout.as_raw_fd(), 1))?;
                    check(libc::posix_spawn_file_actions_adddup2(raw, stderr.as_raw_fd(), 2))?;
                }
                Stdio::Terminal(name) => {
                    // Opened by the new session's leader, hence its controlling terminal.
                    check(libc::posix_spawn_file_actions_addopen(raw, 0, name.as_ptr(), libc::O_RDWR, 0))?;
                    check(libc::posix_spawn_file_actions_adddup2(raw, 0, 1))?;
                    check(libc::posix_spawn_file_actions_adddup2(raw, 0, 2))?;
                }
            }
            match &command.workdir {
                Workdir::Path(path) => check(libc::posix_spawn_file_actions_addchdir_np(raw, path.as_ptr()))?,
                Workdir::Open(fd) => check(libc::posix_spawn_file_actions_addfchdir_np(raw, fd.as_raw_fd()))?,
            }
            for (fd, number) in command.passed {
                check(libc::posix_spawn_file_actions_adddup2(raw, fd.as_raw_fd(), *number))?;
            }
        }
        Ok(actions)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: `new` initialised it; glibc's init cannot fail.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

struct Attributes(Box<MaybeUninit<libc::posix_spawnattr_t>>);

impl Attributes {
    fn new() -> io::Result<Attributes> {
        let mut attributes = Attributes(Box::new(MaybeUninit::uninit()));
        let raw = attributes.0.as_mut_ptr();
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `init` and the two set functions initialise what they are given before it is used.
        unsafe {
            check(libc::posix_spawnattr_init(raw))?;
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::posix_spawnattr_setsigdefault(raw, all.as_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(raw, none.as_ptr()))?;
            let flags = i32::from(libc::POSIX_SPAWN_SETSID)
                | libc::POSIX_SPAWN_SETSIGDEF
                | libc::POSIX_SPAWN_SETSIGMASK;
            check(libc::posix_spawnattr_setflags(raw, flags as libc::c_short))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: `new` initialised it; glibc's init cannot fail.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}
