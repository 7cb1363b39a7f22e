//! What a node answers besides running: plans, programs, its document.

use std::os::unix::fs::PermissionsExt as _;

use e2e::{NodeOptions, RunAs, TestBed, argv_request, block_on, shell_request};
use fault::{ErrorCode, Fault};
use proto::v1 as pb;

fn fault(status: tonic::Status) -> Fault {
    Fault::from_status(&status)
}

#[test]
fn a_plan_says_what_would_run_and_runs_nothing() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let marker = bed.path("marker");
    let words = ["touch", marker.to_str().unwrap()];
    let plain = pb::ExecRequest { workdir: "/".to_owned(), ..argv_request("n", &words) };
    block_on(async {
        let mut tools = bed.tools().await;
        let plan = tools.prepare(plain.clone()).await.unwrap().into_inner();
        let wanted = pb::Plan {
            argv: words.map(str::to_owned).to_vec(),
            workdir: "/".to_owned(),
            command_text: plan.command_text.clone(),
            security: pb::Security::Full.into(),
            ask: pb::Ask::Off.into(),
            digest: plan.digest.clone(),
            ..pb::Plan::default()
        };
        assert_eq!(plan, wanted);
        assert!(plan.command_text.contains("touch"), "{plan:?}");
        assert_eq!(plan.digest.len(), 32);

        let again = tools.prepare(plain.clone()).await.unwrap().into_inner();
        assert_eq!(again.digest, plan.digest, "the same input has the same digest");
        let mut other = plain.clone();
        other.env.insert("FOO".to_owned(), "bar".to_owned());
        let other = tools.prepare(other).await.unwrap().into_inner();
        assert_ne!(other.digest, plan.digest, "other input has another digest");

        let text = tools.prepare(shell_request("n", "echo $HOME | cat")).await.unwrap().into_inner();
        assert_eq!(text.argv.last().unwrap(), "echo $HOME | cat");

        let missing = pb::ExecRequest { workdir: "/no/such".to_owned(), ..plain.clone() };
        assert_eq!(fault(tools.prepare(missing).await.unwrap_err()).code, ErrorCode::WorkdirNotFound);
        let strict = pb::ExecRequest { security: pb::Security::Deny.into(), ..plain.clone() };
        assert_eq!(fault(tools.prepare(strict).await.unwrap_err()).code, ErrorCode::SystemRunDisabled);
        let mut blocked = plain;
        blocked.env.insert("LD_PRELOAD".to_owned(), "x".to_owned());
        assert_eq!(fault(tools.prepare(blocked).await.unwrap_err()).code, ErrorCode::EnvRejected);
        let sessions = tools.list_sessions(pb::ListRequest::default()).await.unwrap().into_inner();
        assert_eq!(sessions, pb::ListReply::default());
    });
    assert!(!marker.exists(), "a plan ran");
}

#[test]
fn programs_are_found_in_the_path_of_the_node() {
    let bed = TestBed::new();
    let bin = bed.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, mode) in [("only-here", 0o755), ("no-program", 0o644)] {
        std::fs::write(bin.join(name), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let env = vec![("PATH".to_owned(), path)];
    let node = bed.invited("n", NodeOptions { env, ..NodeOptions::default() });
    node.wait_connected(1);
    let asked = ["only-here", "no-program", "no-such-program", "/bin/sh", "../sh", ""];
    let request = pb::WhichOnNodeRequest { node: "n".to_owned(), bins: asked.map(str::to_owned).to_vec() };
    let reply = block_on(async { bed.tools().await.which(request).await }).unwrap().into_inner();
    let found = bin.join("only-here").display().to_string();
    assert_eq!(reply.bins, std::collections::HashMap::from([("only-here".to_owned(), found)]));
}

/// Reads and writes a node's document as an operator does.
struct Document<'a>(&'a TestBed);

impl Document<'_> {
    fn get(&self) -> pb::ApprovalsDocument {
        let node = pb::NodeRef { node: "n".to_owned() };
        block_on(async { self.0.operator().await.get_node_approvals(node).await }).unwrap().into_inner()
    }

    fn set(&self, security: &str, base_hash: &str) -> Result<pb::ApprovalsDocument, Fault> {
        self.set_text(&format!(r#"{{"version":1,"defaults":{{"security":"{security}"}}}}"#), base_hash)
    }

    fn set_text(&self, file: &str, base_hash: &str) -> Result<pb::ApprovalsDocument, Fault> {
        let (file, base_hash) = (file.to_owned(), base_hash.to_owned());
        let request = pb::SetNodeApprovalsRequest { node: "n".to_owned(), file, base_hash };
        let answer = block_on(async { self.0.operator().await.set_node_approvals(request).await });
        answer.map(tonic::Response::into_inner).map_err(fault)
    }
}

#[test]
fn a_node_gives_its_document_away_only_if_it_was_told_to() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let document = Document(&bed);
    let before = document.get();
    assert_eq!((before.path.as_str(), before.exists), (node.approvals().to_str().unwrap(), false));
    let refused = document.set("deny", &before.hash).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PermissionDenied, "{refused:?}");
    assert!(refused.hint.is_some_and(|hint| hint.contains("--remote-approvals")));
    assert_eq!(document.get(), before);
    assert!(!node.approvals().exists());
    bed.exec(["--", "true"]).ok();
}

#[test]
fn a_document_is_replaced_by_who_has_seen_it() {
    let bed = TestBed::new();
    let args = vec!["--remote-approvals".to_owned()];
    let node = bed.invited("n", NodeOptions { args, ..NodeOptions::default() });
    node.wait_connected(1);
    let document = Document(&bed);
    let first = document.set("full", &document.get().hash).unwrap();
    assert!(first.exists);
    assert_eq!(document.get(), first);
    bed.exec(["--", "true"]).ok();

    let second = document.set("deny", &first.hash).unwrap();
    assert_ne!(second.hash, first.hash);
    bed.exec(["--", "true"]).refused(77, "SYSTEM_RUN_DISABLED");
    for stale in [first.hash.as_str(), "", "0123"] {
        let conflict = document.set("full", stale).unwrap_err();
        assert_eq!(conflict.code, ErrorCode::ApprovalsConflict, "{stale:?}: {conflict:?}");
        assert!(conflict.hint.is_some(), "{conflict:?}");
    }
    for text in ["{", r#"{"version":1,"extra":true}"#, r#"{"version":1,"version":1}"#, r#"{"version":9}"#] {
        let wrong = document.set_text(text, &second.hash).unwrap_err();
        assert_eq!(wrong.code, ErrorCode::InvalidRequest, "{text}: {wrong:?}");
    }
    assert_eq!(document.get(), second, "a refused one changes nothing");
    bed.exec(["--", "true"]).refused(77, "SYSTEM_RUN_DISABLED");

    document.set("full", &second.hash).unwrap();
    bed.exec(["--", "true"]).ok();
    assert_eq!(node.connections(), 1, "it is live without a new link");
    let mode = std::fs::metadata(node.approvals()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_directory_that_may_not_be_entered_is_said_to_be_one() {
    let bed = TestBed::new();
    let node = bed.invited("n", NodeOptions { user: RunAs::plain(), ..NodeOptions::default() });
    node.wait_connected(1);
    let closed = node.dir().join("closed");
    std::fs::create_dir_all(closed.join("inside")).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    for dir in [closed.clone(), closed.join("inside")] {
        let outcome = bed.exec(["--workdir", dir.to_str().unwrap(), "--", "true"]);
        outcome.refused(126, "WORKDIR_NOT_ACCESSIBLE");
        assert!(outcome.stderr.contains(dir.to_str().unwrap()), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("on node n"), "{}", outcome.stderr);
    }
    // So that it can be cleaned up by whoever owns it.
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
}
