//! The inputs of the fuzzers, replayed (`fuzz/`). A file that failed once is called `crash-…`.

#[allow(dead_code, unreachable_pub, reason = "the fuzzers use it as a crate")]
#[path = "../../../fuzz/src/lib.rs"]
mod checks;

use std::{fs, io, panic, path::PathBuf};

use checks::{Pace, TARGETS};

/// Most bytes of a file and most files of a target: the tests replay all of them.
const MAX_BYTES: usize = 4096;
const MAX_FILES: usize = 250;

#[test]
fn nothing_fails_again() {
    let mut failed = Vec::new();
    for (target, check) in TARGETS {
        let inputs = inputs(target);
        assert!((1..=MAX_FILES).contains(&inputs.len()), "{} inputs of {target}", inputs.len());
        for (path, input) in inputs {
            assert!(input.len() <= MAX_BYTES, "{} is too long", path.display());
            if panic::catch_unwind(|| check(&input, Pace::TESTS)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "these inputs failed, see above: {failed:#?}");
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let read = || {
        let mut inputs = Vec::new();
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            inputs.push((path.clone(), fs::read(path)?));
        }
        Ok(inputs)
    };
    let mut inputs = read().unwrap_or_else(|error: io::Error| panic!("{}: {error}", directory.display()));
    inputs.sort_unstable();
    inputs
}
