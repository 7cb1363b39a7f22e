//! The starter: executes a bound program from its descriptor, for shells and wrappers that start others by name.
//!
//! A shell can only be told words. So a bound program in a pipeline is written as
//! `/proc/self/fd/<STARTER_FD> __farrun-start <descriptor> <name> <arguments…>`: the first word is this very program,
//! which turns into the bound one. Nothing is looked up on the way, and a program that somebody could have written to
//! since the command began is compared with what was approved once more.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;

use crate::process::bound::Again;
use crate::process::wire::{AGAIN_FD, BOUND_FD, BOUND_MAX, STARTER_FD};
use crate::sys;

/// The first argument of a starter.
pub const WORD: &str = "__farrun-start";
/// Exit code of a program that could not be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The words that start the k-th bound file under a name.
pub fn words(k: usize, name: &str) -> Vec<String> {
    let descriptor = BOUND_FD + i32::try_from(k).unwrap_or(i32::MAX - BOUND_FD);
    vec![format!("/proc/self/fd/{STARTER_FD}"), WORD.to_owned(), descriptor.to_string(), name.to_owned()]
}

/// Becomes the bound program, if this process was started for that. Call it first in `main`.
///
/// Yields only when it was not, or when the program could not be executed.
pub fn intercept() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let failed = |why: &str| {
        eprintln!("farrun: the program could not be started: {why}");
        Some(ExitCode::from(NOT_EXECUTABLE))
    };
    let descriptor = args.next().and_then(|text| text.to_str()?.parse::<i32>().ok());
    let bound = BOUND_FD..BOUND_FD + i32::try_from(BOUND_MAX).unwrap_or(0);
    let Some(descriptor) = descriptor.filter(|descriptor| bound.contains(descriptor)) else {
        return failed("it is no bound program");
    };
    let argv: Vec<Vec<u8>> = args.map(OsString::into_vec).collect();
    if argv.is_empty() {
        return failed("it has no name");
    }
    let name = argv.first().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
    let failed = |error: io::Error| failed(&format!("{}: {error}", name.escape_debug()));
    // The command began before, so the file may have been written to since. Kept until the program is executed.
    let _again = match Again::check(descriptor) {
        Ok(again) => again,
        Err(error) => return failed(error),
    };
    // The program needs only its own descriptor, and that only if an interpreter has to read it; scripts of others are
    // named in its words, so they stay.
    failed(sys::exec_descriptor(descriptor, &[STARTER_FD, AGAIN_FD], argv))
}
