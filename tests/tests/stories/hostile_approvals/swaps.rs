//! Files, directories and rules that change while a card waits.

use super::*;

/// What somebody does to a command while it waits.
struct Swap {
    what: &'static str,
    args: fn(&Asking) -> Vec<String>,
    change: fn(&Asking),
    code: &'static str,
    says: &'static str,
}

const SCRIPT: &str = "approval script operand changed before execution";
const CWD: &str = "approval cwd changed before execution";
const POLICY: &str = "policy changed; request approval again";

fn tool(a: &Asking) -> Vec<String> {
    vec!["--".to_owned(), a.path("tool")]
}

fn job(a: &Asking) -> Vec<String> {
    ["--workdir", &a.path(""), "--", "sh", "job.sh"].map(str::to_owned).into()
}

fn in_directory(a: &Asking) -> Vec<String> {
    ["--workdir", &a.path("d"), "--", &a.path("tool")].map(str::to_owned).into()
}

/// Edits a file so that its length, its mode and its times are what they were.
fn edit_unseen(path: &Path, text: &str) {
    let before = path.metadata().unwrap();
    assert_eq!(before.len(), text.len() as u64);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    overwrite(path, text);
    let times = std::fs::FileTimes::new()
        .set_accessed(before.accessed().unwrap())
        .set_modified(before.modified().unwrap());
    std::fs::File::open(path).unwrap().set_times(times).unwrap();
    std::fs::set_permissions(path, before.permissions()).unwrap();
    let after = path.metadata().unwrap();
    assert_eq!((after.ino(), after.mtime(), after.mode()), (before.ino(), before.mtime(), before.mode()));
}

const SWAPS: [Swap; 14] = [
    Swap {
        what: "a program edited",
        args: tool,
        change: |a| overwrite(&a.work.join("tool"), &a.text("bad")),
        code: DENIED,
        says: PROGRAM,
    },
    Swap {
        what: "a script edited",
        args: job,
        change: |a| overwrite(&a.work.join("job.sh"), &a.text("bad")),
        code: DENIED,
        says: SCRIPT,
    },
    Swap {
        what: "a read-only program edited unseen",
        args: tool,
        change: |a| edit_unseen(&a.work.join("tool"), &a.text("evil")),
        code: DENIED,
        says: PROGRAM,
    },
    Swap {
        what: "a read-only script edited unseen",
        args: job,
        change: |a| edit_unseen(&a.work.join("job.sh"), &a.text("evil")),
        code: DENIED,
        says: SCRIPT,
    },
    Swap {
        what: "another file, same content",
        args: tool,
        change: |a| _ = a.program("tool", "good"),
        code: DENIED,
        says: PROGRAM,
    },
    Swap {
        what: "another script, same content",
        args: job,
        change: |a| _ = a.program("job.sh", "good"),
        code: DENIED,
        says: SCRIPT,
    },
    Swap {
        what: "a program removed",
        args: tool,
        change: |a| std::fs::remove_file(a.work.join("tool")).unwrap(),
        code: DENIED,
        says: "tool",
    },
    Swap {
        what: "a script removed",
        args: job,
        change: |a| std::fs::remove_file(a.work.join("job.sh")).unwrap(),
        code: DENIED,
        says: "job.sh",
    },
    Swap {
        what: "another directory of the name",
        args: in_directory,
        change: |a| {
            std::fs::rename(a.work.join("d"), a.work.join("e")).unwrap();
            std::fs::create_dir(a.work.join("d")).unwrap();
        },
        code: DENIED,
        says: CWD,
    },
    Swap {
        what: "a link in place of the directory",
        args: in_directory,
        change: |a| {
            std::fs::rename(a.work.join("d"), a.work.join("e")).unwrap();
            std::os::unix::fs::symlink(a.work.join("e"), a.work.join("d")).unwrap();
        },
        code: DENIED,
        says: "link",
    },
    Swap {
        what: "a deny",
        args: tool,
        change: |a| replace(&a.node.approvals(), r#"{"version":1,"defaults":{"security":"deny"}}"#, 0o600),
        code: "SYSTEM_RUN_DISABLED",
        says: "",
    },
    Swap {
        what: "another ask",
        args: tool,
        change: |a| replace(&a.node.approvals(), &ASKS.replace("on-miss", "always"), 0o600),
        code: DENIED,
        says: POLICY,
    },
    Swap {
        what: "a document that is none",
        args: tool,
        change: |a| replace(&a.node.approvals(), &ASKS[1..], 0o600),
        code: "APPROVALS_MALFORMED",
        says: "",
    },
    Swap {
        what: "signatures required",
        args: tool,
        change: |a| replace(&a.node.dir().join("openclaw.json"), SIGNED, 0o600),
        code: "APPROVAL_SIGNATURE_REQUIRED",
        says: "",
    },
];

impl Asking {
    /// What a swap finds: everything as it should be.
    fn furnish(&self) {
        for name in ["d", "e"] {
            let _ = std::fs::remove_file(self.work.join(name));
            let _ = std::fs::remove_dir(self.work.join(name));
        }
        std::fs::create_dir(self.work.join("d")).unwrap();
        for name in ["tool", "job.sh"] {
            self.program(name, "good");
            std::fs::set_permissions(self.work.join(name), std::fs::Permissions::from_mode(0o555)).unwrap();
        }
        replace(&self.node.approvals(), ASKS, 0o600);
        replace(&self.node.dir().join("openclaw.json"), "{}", 0o600);
    }
}

fn what_was_swapped_does_not_run(user: RunAs) {
    let a = Asking::new(user);
    for Swap { what, args, change, code, says } in SWAPS {
        a.furnish();
        let args = args(&a);
        let (waiting, card) = a.asks(&args.iter().map(String::as_str).collect::<Vec<_>>());
        change(&a);
        a.resolve(&card, &["allow-once"]).ok();
        let outcome = waiting.finish(PATIENCE);
        assert!(
            outcome.stderr.contains(code) && outcome.stderr.contains(says),
            "{what}: {outcome:?} {:?}",
            wrote(&a.ran)
        );
        outcome.refused(77, code);
        assert!(outcome.stdout.is_empty(), "{what}: {outcome:?}");
        assert!(!a.ran.exists(), "{what}: {:?}", wrote(&a.ran));
    }
    // What is there now can be asked about, and runs.
    a.furnish();
    let tool = a.program("tool", "other");
    let (waiting, card) = a.asks(&["--", &tool]);
    a.resolve(&card, &["allow-once"]).ok();
    waiting.finish(PATIENCE).ok();
    assert_eq!(wrote(&a.ran), ["other"]);
    // What is put before it on PATH is another program than the card names.
    let (waiting, card) = a.asks(&["--", "touch", &a.path("touched")]);
    a.program("bin/touch", "bad");
    a.resolve(&card, &["allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    outcome.refused(77, DENIED);
    // A script brings a file more with it, the interpreter of its first line.
    let named = [PROGRAM, "execution plan mismatch"].iter().any(|text| outcome.stderr.contains(text));
    assert!(named && !a.work.join("touched").exists(), "{outcome:?}");
    assert_eq!(wrote(&a.ran), ["other"]);
    // A link is no directory to say yes to; nobody is asked.
    std::os::unix::fs::symlink(a.work.join("d"), a.work.join("link")).unwrap();
    let outcome = a.bed.exec(["--wait", "--workdir", &a.path("link"), "--", &tool]);
    outcome.refused(2, "INVALID_REQUEST").hinted();
    assert!(outcome.stderr.contains("link"), "{outcome:?}");
}

#[test]
fn what_was_swapped_while_a_card_waited_does_not_run() {
    what_was_swapped_does_not_run(RunAs::Same);
}

#[test]
fn the_same_on_a_plain_users_node() {
    if rustix::process::geteuid().is_root() {
        what_was_swapped_does_not_run(RunAs::Plain);
    }
}

#[test]
fn a_link_that_leads_elsewhere_is_another_program() {
    let a = Asking::new(RunAs::Same);
    let (good, bad) = (a.program("good", "good"), a.program("bad", "bad"));
    let lead = |to: &str| {
        std::os::unix::fs::symlink(to, a.work.join("link.new")).unwrap();
        std::fs::rename(a.work.join("link.new"), a.work.join("link")).unwrap();
    };
    let link = a.path("link");
    lead(&good);
    let (waiting, card) = a.asks(&["--", &link]);
    lead(&bad);
    a.resolve(&card, &["allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    assert!(outcome.refused(77, DENIED).stderr.contains(PROGRAM), "{outcome:?}");
    // The next card is about what is there now.
    let (waiting, card) = a.asks(&["--", &link]);
    let id = card["approvalId"].as_str().unwrap();
    let shown = a.bed.gateway_cli(["approvals", "show", id, "--json"]).json();
    assert_eq!(shown["segments"][0]["files"][0]["realPath"], bad.as_str(), "{shown}");
    a.resolve(&card, &["deny"]).ok();
    waiting.finish(PATIENCE).refused(77, DENIED);
    assert!(!a.ran.exists(), "{:?}", wrote(&a.ran));
}

#[test]
fn a_pipeline_is_approved_as_a_whole() {
    let a = Asking::new(RunAs::Same);
    let script = |name: &str, text: &str| replace(&a.work.join(name), &format!("#!/bin/sh\n{text}\n"), 0o755);
    script("a", "echo from a: $1");
    script("b", &format!("echo b has: $(cat) >> {}; exit 3", a.ran.display()));
    let asks = |text: &str| a.asks(&["--workdir", &a.path(""), "--shell", "--", text]);

    let (waiting, card) = asks("./a x | ./b");
    let shown =
        a.bed.gateway_cli(["approvals", "show", card["approvalId"].as_str().unwrap(), "--json"]).json();
    let segments: Vec<_> = shown["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| {
            (s["join"].as_str().unwrap(), s["argv"].to_string(), s["files"][0]["path"].as_str().unwrap())
        })
        .collect();
    let (path_a, path_b) = (a.path("a"), a.path("b"));
    let wanted = [("", r#"["./a","x"]"#, path_a.as_str()), (" | ", r#"["./b"]"#, path_b.as_str())];
    assert_eq!(segments, wanted.map(|(join, argv, path)| (join, argv.to_owned(), path)));
    a.resolve(&card, &["allow-once"]).ok();
    assert_eq!(waiting.finish(PATIENCE).code(), 3);
    assert_eq!(wrote(&a.ran), ["b has: from a: x"]);

    for name in ["a", "b"] {
        let (waiting, card) = asks("./a y | ./b");
        script(name, &a.text("bad"));
        a.resolve(&card, &["allow-once"]).ok();
        let outcome = waiting.finish(PATIENCE);
        outcome.refused(77, DENIED);
        assert!(outcome.stderr.contains(PROGRAM) && outcome.stderr.contains(&a.path(name)), "{outcome:?}");
        assert_eq!(wrote(&a.ran), ["b has: from a: x"], "{name}");
    }

    // Each program hears its path as its name, not the descriptor that it is started from.
    for (name, of) in [("c", "/bin/cat"), ("t", "/usr/bin/tr")] {
        assert!(std::process::Command::new("cp").arg(of).arg(a.work.join(name)).status().unwrap().success());
    }
    let (waiting, card) = asks(r"./c /proc/self/cmdline | ./t '\0' ' ' && ./c /proc/self/cmdline");
    a.resolve(&card, &["allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    let c = a.path("c");
    let wanted = format!("{c} /proc/self/cmdline {c}\0/proc/self/cmdline\0");
    assert_eq!(outcome.ok().stdout_text(), wanted);
}

#[test]
fn a_script_does_not_run_with_an_interpreter_that_was_swapped() {
    let a = Asking::new(RunAs::Same);
    let interpreter = a.path("interpreter");
    assert!(std::process::Command::new("cp").args(["/bin/sh", &interpreter]).status().unwrap().success());
    let text = a.text("good").replace("/bin/sh", &interpreter);
    replace(&a.work.join("tool"), &text, 0o755);
    let (waiting, card) = a.asks(&["--", &a.path("tool")]);
    a.program("interpreter", "bad");
    a.resolve(&card, &["allow-once"]).ok();
    let outcome = waiting.finish(PATIENCE);
    assert!(!a.ran.exists(), "{:?}", wrote(&a.ran));
    outcome.refused(77, DENIED);
}
