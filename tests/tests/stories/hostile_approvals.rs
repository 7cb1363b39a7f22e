//! Gateways and files that want more to run than a person said yes to.

mod people;
mod permits;
mod swaps;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use e2e::{Node, NodeOptions, Outcome, PATIENCE, Reading, RunAs, Running, TestBed, eventually};
use serde_json::Value;

/// The owner of the machine wants to be asked about everything that no rule allows.
const ASKS: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#;
/// The node takes only decisions that an enrolled approver signed.
const SIGNED: &str = r#"{"approvals":{"requireSigned":true}}"#;
const DENIED: &str = "SYSTEM_RUN_DENIED";
/// What a node says of a program that is not what was approved.
const PROGRAM: &str = "approval executable changed before execution";

/// Puts a file in the place of another, as editors and package managers do: the name leads to another file then.
fn replace(path: &Path, text: &str, mode: u32) {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    overwrite(&new, text);
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(mode)).unwrap();
    // As the owner of the directory would have made it.
    let owner = new.parent().unwrap().metadata().unwrap().uid();
    std::os::unix::fs::chown(&new, Some(owner), None).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Gives a file other content.
fn overwrite(path: &Path, text: &str) {
    let stage = path.with_extension("stage");
    std::fs::write(&stage, text).unwrap();
    // By a process of its own: a program that another story starts could inherit a descriptor of this one, and a file
    // that is open for writing does not run.
    let copied = std::process::Command::new("cp").arg(&stage).arg(path).status().unwrap();
    assert!(copied.success(), "{copied}");
    std::fs::remove_file(stage).unwrap();
}

/// What tools wrote, a line for each run.
fn wrote(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Waits until tools wrote exactly this.
#[track_caller]
fn wait_wrote(path: &Path, wanted: &[&str]) {
    eventually(PATIENCE, || {
        let found = wrote(path);
        if found == wanted { Ok(()) } else { Err(format!("{found:?}, not {wanted:?}")) }
    });
}

fn node_host(bed: &TestBed, args: &[&str], node: &Node) -> Outcome {
    let gateway = bed.cli_command([]);
    let program = Path::new(gateway.get_program()).with_file_name("node-host");
    let mut command = bed.command(&program);
    command.env("FARRUN_LOG", "warn").args(args).arg("--state-dir").arg(node.dir());
    Running::of(command, Reading::Now).finish(PATIENCE)
}

/// A bed whose node asks, and the people around it.
struct Asking {
    bed: TestBed,
    node: Node,
    /// A directory of the node's user, for what a story makes.
    work: PathBuf,
    /// Where its programs write to.
    ran: PathBuf,
    _own: tempfile::TempDir,
}

impl Asking {
    fn new(user: RunAs) -> Self {
        let bed = TestBed::new();
        // A plain user cannot look into the bed's directory.
        let own = tempfile::Builder::new().prefix("farrun-e2e-work-").tempdir().unwrap();
        let work = own.path().canonicalize().unwrap();
        std::fs::create_dir(work.join("bin")).unwrap();
        let path = format!("{}/bin:/usr/bin:/bin", work.display());
        let env = vec![("PATH".to_owned(), path)];
        let node = bed.invited("n", NodeOptions { user, env, ..NodeOptions::default() });
        node.wait_connected(1);
        let owner = node.dir().metadata().unwrap().uid();
        std::os::unix::fs::chown(&work, Some(owner), None).unwrap();
        replace(&node.approvals(), ASKS, 0o600);
        let ran = work.join("ran");
        Self { bed, node, work, ran, _own: own }
    }

    fn path(&self, name: &str) -> String {
        self.work.join(name).display().to_string()
    }

    /// The text of a program that leaves this word behind.
    fn text(&self, word: &str) -> String {
        format!("#!/bin/sh\necho {word} >> {}\n", self.ran.display())
    }

    /// Such a program.
    fn program(&self, name: &str, word: &str) -> String {
        replace(&self.work.join(name), &self.text(word), 0o755);
        self.path(name)
    }

    /// Starts `gateway exec --wait`, and the card that it leads to.
    #[track_caller]
    fn asks(&self, args: &[&str]) -> (Running, Value) {
        let running = self.bed.spawn_cli(["exec", "--wait"].iter().chain(args).copied(), Reading::Now);
        let card = eventually(PATIENCE, || {
            let open = self.bed.gateway_cli(["approvals", "pending", "--json"]).json();
            match open["approvals"].as_array().map(Vec::as_slice) {
                Some([card]) => Ok(card.clone()),
                other => Err(format!("{other:?}; {}", running.stderr())),
            }
        });
        (running, card)
    }

    fn resolve(&self, card: &Value, args: &[&str]) -> Outcome {
        let id = card["approvalId"].as_str().unwrap();
        self.bed.gateway_cli(["approvals", "resolve", id].iter().chain(args).copied())
    }
}
