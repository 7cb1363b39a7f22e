//! From "needs a yes" to a permit, at the door.

use std::path::Path;
use std::time::Duration;

use super::*;

/// A door whose machine asks about everything that no rule allows, and a program and a script of the user.
struct World {
    f: Fixture,
}

const ASKS: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#;

fn world() -> World {
    let mut f = fixture(&[("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")]);
    let approvers = ApproversFile::new(f.dir.path().join("approvers.json"));
    f.door = f.door.with_identity("node".to_owned(), approvers);
    let world = World { f };
    world.document(ASKS);
    world.program("tool", "#!/bin/sh\necho good\n");
    world.file("job.sh", "echo good\n");
    world
}

impl World {
    fn dir(&self) -> &Path {
        self.f.dir.path()
    }

    fn document(&self, text: &str) {
        self.file("exec-approvals.json", text);
    }

    /// Replaces a file by another one, and the old one's inode is not free again.
    fn file(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        let _ = std::fs::rename(&path, self.dir().join(format!("{name}.old")));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        self.file(name, text);
        std::fs::set_permissions(self.dir().join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn settle(&self, run: &pb::RunRequest) -> Result<Settled, Fault> {
        match self.f.door.decide(Asked::read(run)?)? {
            Decided::Run(permit) => Ok(Settled::Run(permit)),
            Decided::Later(asked) => self.f.door.settle(*asked),
        }
    }

    fn plan(&self, run: &pb::RunRequest) -> pb::Plan {
        match self.settle(&pb::RunRequest { can_ask: true, ..run.clone() }) {
            Ok(Settled::Ask(plan)) => *plan,
            other => panic!("{other:?}"),
        }
    }

    fn redeem(&self, run: &pb::RunRequest, permit: &pb::Permit) -> Result<Permit, Fault> {
        match self.settle(&pb::RunRequest { can_ask: true, permit: Some(permit.clone()), ..run.clone() })? {
            Settled::Run(permit) => Ok(*permit),
            Settled::Ask(plan) => panic!("asked again: {plan:?}"),
        }
    }

    fn refusal(&self, run: &pb::RunRequest, permit: &pb::Permit) -> (ErrorCode, String) {
        let fault = self.redeem(run, permit).unwrap_err();
        (fault.code, fault.message)
    }
}

fn once(plan: &pb::Plan) -> pb::Permit {
    pb::Permit {
        approval_id: "a1".to_owned(),
        plan_digest: plan.digest.clone(),
        decision: pb::Decision::AllowOnce.into(),
        decided_by: "ann".to_owned(),
        ..pb::Permit::default()
    }
}

fn always(plan: &pb::Plan, scope: pb::Scope, until: pb::lasting::Until) -> pb::Permit {
    let lasting = pb::Lasting { scope: scope.into(), until: Some(until) };
    pb::Permit { decision: pb::Decision::AllowAlways.into(), lasting: Some(lasting), ..once(plan) }
}

#[test]
fn a_yes_runs_its_plan_once() {
    let w = world();
    let run = argv(&["./tool", "a b"]);
    let plan = w.plan(&run);
    let path = w.dir().canonicalize().unwrap().join("tool").display().to_string();
    assert_eq!(plan.digest.as_ref(), approval::plan_digest(&plan));
    assert_eq!(
        (plan.argv.as_slice(), plan.reasons.as_slice()),
        ([path.clone(), "a b".to_owned()].as_slice(), ["allowlist-miss".to_owned()].as_slice())
    );
    assert_eq!((plan.run_id.as_str(), plan.node_id.as_str()), ("r1", "node"));
    let permit = w.redeem(&run, &once(&plan)).unwrap();
    let bound = permit.request.bound.as_deref().unwrap();
    assert_eq!((bound.files[0].path.display().to_string(), bound.exec, bound.starter), (path, 0, false));
    assert!(bound.files[0].sha256.is_some());
    assert_eq!(w.refusal(&run, &once(&plan)).0, ErrorCode::ApprovalAlreadyUsed);
    // Asking again makes another plan, to which the old yes says nothing.
    assert_ne!(w.plan(&run).digest, plan.digest);
}

#[test]
fn what_changed_is_named() {
    let swapped: [(&str, fn(&World), &str); 6] = [
        (
            "./tool",
            |w| w.program("tool", "#!/bin/sh\necho bad\n"),
            "approval executable changed before execution",
        ),
        ("sh job.sh", |w| w.file("job.sh", "echo bad\n"), "approval script operand changed before execution"),
        (
            "./tool | sh job.sh",
            |w| w.file("job.sh", "echo bad\n"),
            "approval script operand changed before execution",
        ),
        (
            "./tool",
            |w| w.document(r#"{"version":1,"defaults":{"security":"allowlist","ask":"always"}}"#),
            "exec approval policy changed",
        ),
        ("./tool", |w| std::fs::remove_file(w.dir().join("tool")).unwrap(), ""),
        ("./tool", |w| w.document(r#"{"version":1,"defaults":{"security":"deny"}}"#), ""),
    ];
    for (text, swap, want) in swapped {
        let w = world();
        let run = shell(text);
        let plan = w.plan(&run);
        swap(&w);
        let (code, message) = w.refusal(&run, &once(&plan));
        assert!(message.contains(want), "{text}: {message}");
        assert!(
            matches!(code, ErrorCode::SystemRunDenied | ErrorCode::SystemRunDisabled),
            "{text}: {code:?}"
        );
    }
}

#[test]
fn a_changed_directory_is_named() {
    let w = world();
    std::fs::create_dir(w.dir().join("d")).unwrap();
    let run = pb::RunRequest { workdir: "d".to_owned(), ..argv(&["/usr/bin/env"]) };
    let run = pb::RunRequest { invocation: argv(&["/bin/ls"]).invocation, ..run };
    let plan = w.plan(&run);
    std::fs::rename(w.dir().join("d"), w.dir().join("e")).unwrap();
    std::fs::create_dir(w.dir().join("d")).unwrap();
    let (code, message) = w.refusal(&run, &once(&plan));
    assert_eq!(code, ErrorCode::SystemRunDenied);
    assert!(message.contains("approval cwd changed before execution"), "{message}");
    // And a link is no directory to say yes to.
    std::os::unix::fs::symlink("e", w.dir().join("link")).unwrap();
    for link in ["link", "link/", "link/.", "./link//"] {
        let run = pb::RunRequest { workdir: link.to_owned(), can_ask: true, ..run.clone() };
        assert_eq!(w.settle(&run).unwrap_err().code, ErrorCode::InvalidRequest, "{link}");
    }
}

#[test]
fn a_yes_is_about_one_request() {
    let changes: [(fn(&mut pb::RunRequest), ErrorCode); 8] = [
        (|r| r.invocation = argv(&["./tool", "other"]).invocation, ErrorCode::ApprovalRequestMismatch),
        (|r| r.workdir = "/".to_owned(), ErrorCode::ApprovalRequestMismatch),
        (|r| r.agent_id = "other".to_owned(), ErrorCode::ApprovalRequestMismatch),
        (|r| r.session_key = "other".to_owned(), ErrorCode::ApprovalRequestMismatch),
        (|r| r.run_id = "r2".to_owned(), ErrorCode::ApprovalRequestMismatch),
        (|r| r.stdin = pb::Stdin::Open.into(), ErrorCode::ApprovalRequestMismatch),
        (
            |r| r.deadline = Some(pb::Deadline { limit: Some(pb::deadline::Limit::None(true)) }),
            ErrorCode::ApprovalRequestMismatch,
        ),
        (|r| _ = r.env.insert("FOO".to_owned(), "1".to_owned()), ErrorCode::ApprovalEnvMismatch),
    ];
    for (index, (change, want)) in changes.into_iter().enumerate() {
        let w = world();
        let run = argv(&["/bin/ls", "-l"]);
        let plan = w.plan(&run);
        let mut other = run.clone();
        change(&mut other);
        assert_eq!(w.refusal(&other, &once(&plan)).0, want, "change {index}");
        // It is used up all the same.
        assert_eq!(w.refusal(&run, &once(&plan)).0, ErrorCode::ApprovalAlreadyUsed, "change {index}");
    }
}

#[test]
fn a_decision_that_is_none_is_refused() {
    let w = world();
    let run = argv(&["./tool"]);
    let plan = w.plan(&run);
    let forever =
        Some(pb::Lasting { scope: pb::Scope::Exact.into(), until: Some(pb::lasting::Until::Forever(true)) });
    let bad: [(fn(&mut pb::Permit), ErrorCode); 6] = [
        (|p| p.decision = 0, ErrorCode::InvalidRequest),
        (|p| p.decision = 99, ErrorCode::InvalidRequest),
        (|p| p.decision = pb::Decision::Deny.into(), ErrorCode::SystemRunDenied),
        (|p| p.decision = pb::Decision::AllowAlways.into(), ErrorCode::InvalidRequest),
        (|p| p.plan_digest = vec![1; 31].into(), ErrorCode::InvalidRequest),
        (|p| p.plan_digest = vec![1; 32].into(), ErrorCode::ApprovalNotFound),
    ];
    for (index, (spoil, want)) in bad.into_iter().enumerate() {
        let mut permit = once(&plan);
        spoil(&mut permit);
        assert_eq!(w.refusal(&run, &permit).0, want, "permit {index}");
    }
    let with_scope = pb::Permit { lasting: forever, ..once(&plan) };
    assert_eq!(w.refusal(&run, &with_scope).0, ErrorCode::InvalidRequest);
    // None of them used it up.
    assert!(w.redeem(&run, &once(&plan)).is_ok());
}

#[test]
fn allow_always_keeps_what_it_says_and_no_more() {
    use pb::lasting::Until::{ForMs, Forever, Session};
    let runs_now = |w: &World, words: &[&str], id: &str| {
        let run = pb::RunRequest { run_id: id.to_owned(), session_key: "s".to_owned(), ..argv(words) };
        w.f.door.admit(&run).is_ok()
    };
    let table = [
        (pb::Scope::Exact, Forever(true), true, false),
        (pb::Scope::ProgramArgs, Forever(true), true, false),
        (pb::Scope::Program, Forever(true), true, true),
        (pb::Scope::Program, ForMs(3_600_000), true, true),
        (pb::Scope::Exact, Session(true), true, false),
    ];
    for (scope, until, same, other) in table {
        let w = world();
        let run = pb::RunRequest { session_key: "s".to_owned(), ..argv(&["/bin/ls", "-l"]) };
        let plan = w.plan(&run);
        let mut permit = w.redeem(&run, &always(&plan, scope, until)).unwrap();
        let kept = permit.take_notes().kept;
        assert_eq!((kept.stored.len(), kept.not_stored.as_str()), (1, ""), "{scope:?} {until:?}");
        assert_eq!(runs_now(&w, &["/bin/ls", "-l"], "r2"), same, "{scope:?} {until:?}");
        assert_eq!(runs_now(&w, &["/bin/ls", "-a"], "r3"), other, "{scope:?} {until:?}");
    }
}

#[test]
fn two_answers_at_one_time_are_both_kept() {
    let w = world();
    let runs =
        [argv(&["/bin/ls", "-l"]), pb::RunRequest { run_id: "r2".to_owned(), ..argv(&["/bin/cat", "x"]) }];
    let plans = runs.each_ref().map(|run| w.plan(run));
    std::thread::scope(|scope| {
        for (run, plan) in runs.iter().zip(&plans) {
            let w = &w;
            scope.spawn(move || {
                w.redeem(run, &always(plan, pb::Scope::Exact, pb::lasting::Until::Forever(true))).unwrap()
            });
        }
    });
    for (id, run) in [("r3", &runs[0]), ("r4", &runs[1])] {
        let run = pb::RunRequest { run_id: id.to_owned(), ..run.clone() };
        assert!(w.f.door.admit(&run).is_ok(), "{id}");
    }
}

#[test]
fn what_nobody_could_bind_is_not_asked_about() {
    let w = world();
    for text in [
        "./gone",
        "ls *.c",
        "cat $HOME/x",
        "python3 -m http.server",
        "eval ls",
        "./tool > out",
        "echo ls | sh",
    ] {
        let run = pb::RunRequest { can_ask: true, ..shell(text) };
        let fault = w.settle(&run).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidRequest, "{text}: {fault:?}");
        assert!(
            fault.message.contains("no approval was requested") && fault.hint.is_some(),
            "{text}: {fault:?}"
        );
    }
    assert_eq!(Duration::from_millis(1_800_000), open_plans::PLAN_LIFE);
}
