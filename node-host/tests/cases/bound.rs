//! Commands that are bound to files: programs that a shell starts later, by the starter (which this program is, too).

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use node_host::process::wire::BOUND_MAX;
use node_host::process::{Bound, BoundFile, BoundRole, Mode, Stdin};
use node_host::sessions::{Session, StartRequest};
use node_host::starter;
use session::{Death, Ended, Exit};
use sha2::{Digest, Sha256};

use super::Case;
use crate::bed::{Bed, request};

pub(crate) const CASES: &[Case] = &[
    ("bound::programs_of_a_pipeline", pipeline),
    ("bound::programs_are_as_if_started_by_name", manners),
    ("bound::what_is_rewritten_after_the_start_does_not_run", rewritten),
    ("bound::what_is_renamed_after_the_start_does_not_matter", renamed),
    ("bound::as_many_files_as_may_be_bound", many),
    ("bound::the_starter_takes_only_what_was_approved", misuse),
    ("bound::the_same_for_a_plain_user", plain_user),
];

struct World {
    dir: tempfile::TempDir,
    /// The shell comes first.
    files: Vec<BoundFile>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let mut world = World { dir, files: Vec::new() };
        let shell = world.copy("/bin/sh", "shell");
        world.bind(&shell);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn copy(&self, from: &str, name: &str) -> PathBuf {
        std::fs::copy(from, self.path(name)).unwrap();
        self.path(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        self.path(name)
    }

    /// The words that start it.
    fn bind(&mut self, path: &Path) -> String {
        let found = path.metadata().unwrap();
        let sha256 = Some(Sha256::digest(std::fs::read(path).unwrap()).into());
        self.files.push(BoundFile {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            sha256,
            role: BoundRole::Program,
        });
        starter::words(self.files.len() - 1, &path.display().to_string()).join(" ")
    }

    fn request(&self, text: &str) -> StartRequest {
        let found = self.dir.path().metadata().unwrap();
        let bound =
            Bound { files: self.files.clone(), exec: 0, workdir: (found.dev(), found.ino()), starter: true };
        let mut request = request(&["/bin/sh", "-c", text]);
        request.cwd = self.path("").components().collect();
        request.bound = Some(Box::new(bound));
        request
    }

    /// Output and exit code.
    fn run(&self, bed: &Bed, text: &str, change: impl FnOnce(&mut StartRequest)) -> (String, Ended) {
        let mut request = self.request(text);
        change(&mut request);
        let session = bed.runtime.block_on(bed.sessions().start(request)).unwrap();
        told(bed.end_of(&session))
    }
}

fn told((exit, output): (Exit, Vec<u8>)) -> (String, Ended) {
    (String::from_utf8(output).unwrap().replace('\r', ""), exit.ended)
}

fn code(code: u8) -> Ended {
    Ended::Died(Death::Code(code))
}

fn write(bed: &Bed, session: &Session, bytes: &'static [u8]) {
    bed.runtime.block_on(session.write_stdin(Bytes::from_static(bytes))).unwrap();
}

fn pipeline(bed: &mut Bed) {
    let mut w = World::new();
    let script = w.script("say", "#!/bin/sh\necho \"$1 by ${0##*/} in $(pwd -P)\"\n");
    let (say, tr) = (w.bind(&script), w.copy("/usr/bin/tr", "tr"));
    let tr = w.bind(&tr);
    let text = format!("{say} hello | {tr} a-z A-Z; {say} 'a  b' && exit 5");
    let dir = w.path("").display().to_string();
    let dir = dir.trim_end_matches('/');
    let hello = format!("hello by say in {dir}").to_uppercase();
    let want = format!("{hello}\na  b by say in {dir}\n");
    assert_eq!(w.run(bed, &text, |_| {}), (want.clone(), code(5)));
    assert_eq!(w.run(bed, &text, |r| r.mode = Mode::TERMINAL), (want, code(5)));
}

fn manners(bed: &mut Bed) {
    let mut w = World::new();
    let (shell, yes) = (w.copy("/bin/sh", "tool"), w.copy("/usr/bin/yes", "yes"));
    let (tool, yes) = (w.bind(&shell), w.bind(&yes));
    // It sees its own path, its words, the environment, and none of the descriptors that it does not need.
    let look = r#"echo "$0 $1 $HOME"; readlink /proc/$$/exe; cd /proc/$$/fd; echo *"#;
    let (output, ended) = w.run(bed, &format!("{tool} -c '{look}' name 'x y'"), |_| {});
    let path = shell.display();
    assert!(output.starts_with(&format!("name x y /\n{path}\n0 1 ")), "{output}");
    // 102 is that of the other program.
    let open = output.lines().last().unwrap().split(' ').filter(|number| number.len() > 1);
    assert_eq!(open.collect::<Vec<_>>(), ["102"], "{output}");
    assert_eq!(ended, code(0));
    // A reader that leaves ends its writer, as it does everywhere.
    let (output, _) = w.run(bed, &format!("( {yes}; echo code $? >&2 ) | head -n 1"), |_| {});
    assert!(output.contains("code 141"), "{output}");
}

/// Starts a text that waits for a line before it starts a copy of `true`, and changes that copy meanwhile.
fn waiting(bed: &Bed, change: impl FnOnce(&World, &Path)) -> (String, Ended, PathBuf) {
    let mut w = World::new();
    let tool = w.copy("/usr/bin/true", "tool");
    let words = w.bind(&tool);
    let mut request = w.request(&format!("echo ready; read line; {words}"));
    request.mode = Mode::Pipes { stdin: Stdin::Open };
    let session = bed.runtime.block_on(bed.sessions().start(request)).unwrap();
    bed.read_until(&session, "ready");
    change(&w, &tool);
    write(bed, &session, b"\n");
    let (output, ended) = told(bed.end_of(&session));
    (output, ended, tool)
}

fn rewritten(bed: &mut Bed) {
    let (output, ended, tool) = waiting(bed, |_, tool| {
        // In place: the very inode that was approved, and that is open.
        std::fs::write(tool, std::fs::read("/usr/bin/false").unwrap()).unwrap();
    });
    let refused = "SYSTEM_RUN_DENIED: approval executable changed before execution";
    let want = format!("ready\nfarrun: the program could not be started: {}: {refused}\n", tool.display());
    assert_eq!((output, ended), (want, code(126)));
}

fn renamed(bed: &mut Bed) {
    let (output, ended, _) = waiting(bed, |w, tool| {
        std::fs::rename(w.copy("/usr/bin/false", "other"), tool).unwrap();
    });
    assert_eq!((output.as_str(), ended), ("ready\n", code(0)));
}

fn many(bed: &mut Bed) {
    let mut w = World::new();
    let words: Vec<String> = (1..BOUND_MAX)
        .map(|n| {
            let script = w.script(&format!("s{n}"), &format!("#!/bin/sh\necho {n}\n"));
            w.bind(&script)
        })
        .collect();
    let want: String = (1..BOUND_MAX).map(|n| format!("{n}\n")).collect();
    assert_eq!(w.run(bed, &words.join("; "), |_| {}), (want, code(0)));
}

fn misuse(bed: &mut Bed) {
    let mut w = World::new();
    let tool = w.copy("/usr/bin/true", "tool");
    let words = w.bind(&tool);
    for (from, to) in [("101", "1"), ("101", "102"), ("101", "164"), ("101", "x"), (" 101 ", " -1 ")] {
        let (output, ended) = w.run(bed, &words.replacen(from, to, 1), |_| {});
        assert!(output.starts_with("farrun: the program could not be started: "), "{to}: {output}");
        assert_eq!(ended, code(126), "{to}");
    }
}

/// Once more, by a user without rights: whose leases are those of an owner, and who can still read his sealed copies.
fn plain_user(_: &mut Bed) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .arg("bound::")
        .env("TMPDIR", dir.path())
        .env("HOME", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
