use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::{WaitOptions, waitpid};
use session::{LogLimits, RunId, SessionId};
use tempfile::TempDir;

use super::*;
use crate::process::spawn::spawn;
use crate::process::wire::LaunchSpec;
use crate::process::{EnvVar, Mode};

mod swaps;

use swaps::leaves_with;

/// Says who it is and leaves with 7.
const GOOD: &str = "#!/bin/sh\necho good $1 ${0##*/}\nexit 7\n";
/// As long as the good one, so that a rewrite in place is whole in one call.
const BAD: &str = "#!/bin/sh\necho evil $1 ${0##*/}\nexit 9\n";

struct World {
    dir: TempDir,
}

fn world() -> World {
    World { dir: tempfile::tempdir().unwrap() }
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let new = self.path(&format!("{name}.new"));
        std::fs::write(&new, content).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }

    fn bound(&self, files: &[(&Path, BoundRole, bool)]) -> Bound {
        let dir = self.dir.path().metadata().unwrap();
        Bound {
            files: files
                .iter()
                .map(|(path, role, by_content)| {
                    let found = path.metadata().unwrap();
                    let sha256 = by_content.then(|| hash(&File::open(path).unwrap()).unwrap());
                    let (device, inode) = (found.dev(), found.ino());
                    BoundFile { path: path.to_path_buf(), device, inode, sha256, role: *role }
                })
                .collect(),
            exec: 0,
            workdir: (dir.dev(), dir.ino()),
            starter: false,
        }
    }

    fn spec(&self, bound: Bound, argv: &[&str]) -> LaunchSpec {
        let env: Vec<EnvVar> = vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())];
        LaunchSpec {
            session_id: SessionId::parse("calm-reef").unwrap(),
            run_id: RunId::parse("r").unwrap(),
            dir: self.path("session"),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env,
            cwd: self.path(""),
            mode: Mode::PIPES,
            deadline_ms: None,
            kill_grace_ms: 1000,
            log: LogLimits::default(),
            bound: Some(Box::new(bound)),
            limits: session::Limits::default(),
            answer_queries: false,
        }
    }
}

/// What it wrote, and its exit code.
fn run(spec: &LaunchSpec) -> Result<(String, i32), NotStarted> {
    let spawned = spawn(spec)?;
    let mut text = String::new();
    for (output, _) in spawned.outputs {
        rustix::io::ioctl_fionbio(&output, false).unwrap();
        File::from(output).read_to_string(&mut text).unwrap();
    }
    let (_, status) = waitpid(Some(spawned.pid), WaitOptions::empty()).unwrap().unwrap();
    Ok((text, status.exit_status().unwrap_or(-1)))
}

fn refused(spec: &LaunchSpec) -> String {
    let failure = run(spec).unwrap_err();
    assert_eq!(failure.kind, StartFailure::Changed, "{failure:?}");
    failure.detail
}

fn elf(world: &World, name: &str) -> PathBuf {
    world.put(name, std::fs::read(std::fs::canonicalize("/bin/sh").unwrap()).unwrap())
}

#[test]
fn what_was_approved_runs_as_it_was_called() {
    let w = world();
    let (tool, shell, job) = (w.put("tool", GOOD), elf(&w, "shell"), w.put("job.sh", GOOD));
    let program = BoundRole::Program;
    let named = |path: &Path| path.display().to_string();
    let script = format!("/proc/self/fd/{}", BOUND_FD + 1);
    let table: [(Bound, Vec<String>, &str, i32); 6] = [
        (w.bound(&[(&tool, program, true)]), vec![named(&tool), "x".into()], "good x tool\n", 7),
        (w.bound(&[(&tool, program, false)]), vec![named(&tool), "x".into()], "good x tool\n", 7),
        (
            w.bound(&[(&shell, program, true)]),
            vec![
                "name".into(),
                "-c".into(),
                "echo $0; pwd; ls -l /proc/self/fd | grep -c /shell; true".into(),
            ],
            "name\n",
            0,
        ),
        (
            w.bound(&[(&shell, program, false)]),
            vec!["name".into(), "-c".into(), "echo $0".into()],
            "name\n",
            0,
        ),
        (
            w.bound(&[(&shell, program, true), (&job, BoundRole::Script, true)]),
            vec!["sh".into(), script, "y".into()],
            "good y 101\n",
            7,
        ),
        (
            w.bound(&[(&shell, program, true), (&job, BoundRole::Named, true)]),
            vec!["sh".into(), named(&job), "z".into()],
            "good z job.sh\n",
            7,
        ),
    ];
    for (bound, argv, output, code) in table {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let (text, found) = run(&w.spec(bound, &argv)).unwrap();
        assert!(text.starts_with(output), "{argv:?}: {text}");
        assert_eq!(found, code, "{argv:?}");
        if argv.len() == 3 && argv[2].contains("pwd") {
            // It starts in the directory that was approved, and its own descriptor does not stay open.
            assert_eq!(
                text,
                format!("name\n{}\n0\n", w.path("").display().to_string().trim_end_matches('/'))
            );
        }
    }
}

#[test]
fn a_terminal_makes_no_difference() {
    let w = world();
    let (tool, shell) = (w.put("tool", GOOD), elf(&w, "shell"));
    for (file, words, want, code) in [
        (&tool, vec!["tool", "x"], "good x tool\r\n", 7),
        (&shell, vec!["name", "-c", "echo $0; test -t 1"], "name\r\n", 0),
    ] {
        let bound = w.bound(&[(file, BoundRole::Program, true)]);
        let spec = LaunchSpec { mode: Mode::TERMINAL, ..w.spec(bound, &words) };
        let mut spawned = spawn(&spec).unwrap();
        let (_, status) = waitpid(Some(spawned.pid), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(code));
        let mut text = [0; 100];
        let read = rustix::io::read(&spawned.outputs.remove(0).0, &mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..read]), want);
    }
}

#[test]
fn a_file_that_was_only_touched_is_the_same() {
    let w = world();
    let tool = w.put("tool", GOOD);
    let spec = w.spec(w.bound(&[(&tool, BoundRole::Program, true)]), &["tool", "x"]);
    File::options().append(true).open(&tool).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    std::fs::rename(&tool, w.path("aside")).unwrap();
    std::fs::rename(w.path("aside"), &tool).unwrap();
    assert_eq!(run(&spec).unwrap(), ("good x tool\n".to_owned(), 7));
}

#[test]
fn what_changed_is_named_and_does_not_run() {
    let program = BoundRole::Program;
    let swaps: [(&str, fn(&World)); 5] = [
        ("another file", |w| _ = w.put("tool", BAD)),
        ("rewritten", |w| std::fs::write(w.path("tool"), BAD).unwrap()),
        ("gone", |w| std::fs::remove_file(w.path("tool")).unwrap()),
        ("a link", |w| {
            w.put("other", BAD);
            std::fs::remove_file(w.path("tool")).unwrap();
            std::os::unix::fs::symlink(w.path("other"), w.path("tool")).unwrap();
        }),
        ("a directory", |w| {
            std::fs::remove_file(w.path("tool")).unwrap();
            std::fs::create_dir(w.path("tool")).unwrap();
        }),
    ];
    for (how, swap) in swaps {
        for kind in ["script", "elf", "operand"] {
            let w = world();
            let shell = elf(&w, "shell");
            let tool = if kind == "elf" { elf(&w, "tool") } else { w.put("tool", GOOD) };
            let (bound, argv, what) = match kind {
                "operand" => {
                    let files = [(shell.as_path(), program, true), (tool.as_path(), BoundRole::Script, true)];
                    (w.bound(&files), vec!["sh", "/proc/self/fd/101"], "script operand")
                }
                _ => (w.bound(&[(&tool, program, true)]), vec!["tool"], "executable"),
            };
            let spec = w.spec(bound, &argv);
            swap(&w);
            let want =
                format!("SYSTEM_RUN_DENIED: approval {what} changed before execution: {}", tool.display());
            let detail = refused(&spec);
            assert!(detail.starts_with(&want), "{how} {kind}: {detail}");
        }
    }
}

#[test]
fn a_file_that_is_being_written_and_another_directory_are_refused() {
    let w = world();
    let tool = elf(&w, "tool");
    let spec = w.spec(w.bound(&[(&tool, BoundRole::Program, true)]), &["tool", "-c", "exit 3"]);
    let writer = std::fs::OpenOptions::new().append(true).open(&tool).unwrap();
    assert!(refused(&spec).ends_with("(it is being written)"));
    drop(writer);
    // A child of another test may have a copy of the writer's descriptor, until it executes something.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while let Err(failure) = run(&spec) {
        assert!(failure.detail.ends_with("(it is being written)"), "{failure:?}");
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert_eq!(run(&spec).unwrap().1, 3);

    let dir = w.path("d");
    std::fs::create_dir(&dir).unwrap();
    let found = dir.metadata().unwrap();
    let mut bound = w.bound(&[(&tool, BoundRole::Program, true)]);
    bound.workdir = (found.dev(), found.ino());
    let spec = LaunchSpec { cwd: dir.clone(), ..w.spec(bound, &["tool", "-c", "exit 3"]) };
    assert_eq!(run(&spec).unwrap().1, 3);
    std::fs::rename(&dir, w.path("e")).unwrap();
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(
        refused(&spec),
        format!("SYSTEM_RUN_DENIED: approval cwd changed before execution: {}", dir.display())
    );
}

#[test]
fn as_many_files_as_may_be_bound_fit() {
    let w = world();
    let shell = elf(&w, "shell");
    let mut files = vec![(shell.as_path(), BoundRole::Program, true)];
    let paths: Vec<_> =
        (1..crate::process::wire::BOUND_MAX).map(|n| w.put(&format!("f{n}"), format!("{n}\n"))).collect();
    files.extend(paths.iter().map(|path| (path.as_path(), BoundRole::Script, true)));
    let text = "cat /proc/self/fd/101 /proc/self/fd/163";
    let spec = w.spec(w.bound(&files), &["sh", "-c", text]);
    assert_eq!(run(&spec).unwrap(), ("1\n63\n".to_owned(), 0));
    let more = w.put("f64", "");
    files.push((&more, BoundRole::Script, true));
    let spec = w.spec(w.bound(&files), &["sh", "-c", text]);
    let refusal = "SYSTEM_RUN_DENIED: execution plan mismatch: no program, or too many files";
    assert_eq!(refused(&spec), refusal);
}

#[test]
fn leases_count_only_where_they_keep_a_file_as_it_is() {
    let w = world();
    let own = File::open(w.put("tool", GOOD)).unwrap();
    assert_eq!(lease_keeps(&own), Lease::take(&own).is_ok());
    assert!(!lease_keeps(&File::open("/proc/self/status").unwrap()));
}

/// In a mount of their own, users can write to a file behind its back: to the directories that an overlay is made of.
#[test]
fn a_mount_that_a_user_made_is_not_trusted() {
    use std::process::{Command, Stdio};
    let w = world();
    for dir in ["lower", "upper", "work", "mnt"] {
        std::fs::create_dir(w.path(dir)).unwrap();
    }
    w.put("upper/tool", leaves_with(7));
    let mount =
        "mount -t overlay o -o lowerdir=lower,upperdir=upper,workdir=work mnt && echo ready && read line";
    let mut other = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", mount])
        .current_dir(w.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    if other.stdout.take().unwrap().read_exact(&mut line).is_ok() {
        let path = PathBuf::from(format!("/proc/{}/root{}", other.id(), w.path("mnt/tool").display()));
        let spec = w.spec(w.bound(&[(&path, BoundRole::Program, true)]), &["tool"]);
        assert!(!lease_keeps(&File::open(&path).unwrap()));
        assert_eq!(run(&spec).unwrap().1, 7);
        std::fs::write(w.path("upper/tool"), leaves_with(9)).unwrap();
        assert!(refused(&spec).starts_with("SYSTEM_RUN_DENIED: approval executable changed"));
    }
    drop(other.stdin.take());
    other.wait().unwrap();
}

/// Once more, by a user without rights: whose leases are those of an owner, and who can still read his sealed copies.
#[test]
fn the_same_for_a_plain_user() {
    use std::process::Command;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let w = world();
    let program = w.path("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(w.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .arg("process::bound::")
        .env("TMPDIR", w.path(""))
        .current_dir(w.path(""))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
