//! Executing an open file.

use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;

use crate::process::shebang;
use rustix::io::{FdFlags, fcntl_setfd, pread};

/// What an ELF file begins with.
pub(crate) const ELF: [u8; 4] = *b"\x7fELF";

/// Turns this process into the program that is open at `descriptor`, with these words and this process's environment.
/// Closes `own`, and gives signals back their defaults. Yields only the error.
pub(crate) fn exec_descriptor(descriptor: RawFd, own: &[RawFd], argv: Vec<Vec<u8>>) -> io::Error {
    let execute = || -> io::Result<std::convert::Infallible> {
        // SAFETY: only looked at and passed on; the system says if it is not open.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let mut first = [0; 256];
        // One that may be executed and not read is no script.
        let read = pread(file, &mut first, 0).unwrap_or(0);
        let first = first.get(..read).unwrap_or_default();
        // A script's interpreter opens it anew by this number.
        if first.starts_with(&ELF) {
            fcntl_setfd(file, FdFlags::CLOEXEC)?;
        }
        let (shell, argv) = match shebang::as_shell(first, descriptor, &argv) {
            Some((shell, argv)) => (Some(shell), argv),
            None => (None, argv),
        };
        for own in own {
            // SAFETY: nothing in this process uses it; it was opened for this moment.
            unsafe { libc::close(*own) };
        }
        // Rust ignores this one from its start, and a lease the other; the program would inherit that.
        for signal in [libc::SIGPIPE, libc::SIGIO] {
            // SAFETY: SIG_DFL is a valid disposition and runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let terminated = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into());
        let shell = shell.map(terminated).transpose()?;
        let argv = argv.into_iter().map(terminated).collect::<io::Result<Vec<_>>>()?;
        let env = std::env::vars_os()
            .map(|(name, value)| {
                let mut line = name.into_vec();
                line.push(b'=');
                line.extend(value.into_vec());
                terminated(line)
            })
            .collect::<io::Result<Vec<_>>>()?;
        let (argv, env) = (super::spawn::pointers(&argv), super::spawn::pointers(&env));
        // SAFETY: both arrays end with a null pointer and point into texts that live until the call, which does not
        // return when it succeeds.
        unsafe {
            match &shell {
                Some(shell) => libc::execve(shell.as_ptr(), argv.as_ptr().cast(), env.as_ptr().cast()),
                None => {
                    libc::execveat(descriptor, c"".as_ptr(), argv.as_ptr(), env.as_ptr(), libc::AT_EMPTY_PATH)
                }
            };
        }
        Err(io::Error::last_os_error())
    };
    match execute() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}
