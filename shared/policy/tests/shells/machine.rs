//! A shell with stubs that write down what they were given.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::{prelude::*, test_runner::TestCaseError};

/// The programs that exist, and whether they succeed.
pub(crate) const STUBS: [(&str, bool); 2] = [("ok", true), ("no", false)];

/// What a stub got: its arguments, itself first, and `A` from its environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) argv: Vec<String>,
    pub(crate) a: Option<String>,
}

/// Runs by pipeline. Inside a pipeline the order is chance.
pub(crate) type Runs = Vec<Vec<Run>>;

/// A shell, and an empty world for it: stubs on `PATH`, and nothing else.
pub(crate) struct Shell {
    program: &'static str,
    root: PathBuf,
}

impl Shell {
    /// None where it is not installed.
    pub(crate) fn find(name: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let program = match name {
            "bash" => ["/bin/bash", "/usr/bin/bash"],
            "dash" => ["/bin/dash", "/usr/bin/dash"],
            _ => ["/bin/sh", "/usr/bin/sh"],
        };
        let program = program.into_iter().find(|path| Path::new(path).exists())?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shells-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("cwd")).unwrap();
        for (name, succeeds) in STUBS {
            let path = root.join("bin").join(name);
            let status = u8::from(!succeeds);
            let report = r#"printf '%s\0' "${0##*/}" "${A+set}" "${A-}" "$#" "$@" >>"${0%/*}/../log""#;
            fs::write(&path, format!("#!/bin/sh\n{report}\nexit {status}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // So that a glob which the reader did not see has something to match.
        for name in ["o", "k", "x", "A", "ok", "A=x"] {
            fs::write(root.join("cwd").join(name), "").unwrap();
        }
        Some(Self { program, root })
    }

    /// Runs a line and yields what the stubs saw, in order.
    pub(crate) fn run(&self, line: &str) -> Vec<Run> {
        let log = self.root.join("log");
        fs::write(&log, "").unwrap();
        Command::new(self.program)
            .args(["-c", "--", line])
            .current_dir(self.root.join("cwd"))
            .env_clear()
            .env("PATH", self.root.join("bin"))
            .env("HOME", "/the/home")
            .env("LC_ALL", "C.UTF-8")
            // Bash then refuses a glob that matches nothing instead of passing it on.
            .env("BASHOPTS", "failglob")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let log = fs::read(log).unwrap();
        let mut fields =
            log.split(|&byte| byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
        let mut runs = Vec::new();
        while let Some(name) = fields.next().filter(|name| !name.is_empty()) {
            let set = fields.next().unwrap() == "set";
            let a = fields.next().filter(|_| set);
            let count = fields.next().unwrap().parse().unwrap();
            let argv = std::iter::once(name).chain(fields.by_ref().take(count)).collect();
            runs.push(Run { argv, a });
        }
        runs
    }

    /// Whether the line makes the stubs run as `expected`.
    pub(crate) fn check(&self, line: &str, expected: &Runs) -> Result<(), TestCaseError> {
        let mut flat = self.run(line);
        let mut rest = flat.as_mut_slice();
        for pipeline in expected {
            let (head, tail) = rest.split_at_mut(pipeline.len().min(rest.len()));
            head.sort();
            rest = tail;
        }
        prop_assert_eq!(&flat, &expected.concat(), "{} given {:?}", self.program, line);
        Ok(())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
