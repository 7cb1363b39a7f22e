//! The same run once more: while its session is there, after it went, and after the world around it changed.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use config::ApprovalsFile;
use fault::ErrorCode;
use node_host::approvals::{Approvals, RemoteApprovals};
use node_host::enforce::Door;
use node_host::node::{Node, Outcome};
use node_host::sessions::{Limits, Session, Sessions, StartError, StartRequest};
use policy::PassList;
use proto::v1 as pb;
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, eventually, exit_of, limits, request};

pub(crate) const CASES: &[Case] = &[
    ("retry::a_run_is_known_after_its_session_went_and_after_a_restart", forgotten),
    ("retry::young_and_held_sessions_stay_up_to_the_hard_bounds", retention),
    ("retry::a_run_that_started_is_answered_before_policy_and_workdir", receipt_first),
];

fn open(bed: &Bed, dir: &Path, limits: Limits) -> Sessions {
    bed.runtime.block_on(Sessions::open(dir.to_owned(), bed.spare_launcher(), limits)).unwrap()
}

/// Starts it and waits for its end.
fn run(bed: &Bed, sessions: &Sessions, request: StartRequest) -> Session {
    let session = bed.runtime.block_on(sessions.start(request)).unwrap();
    bed.runtime.block_on(exit_of(&session));
    session
}

fn gone(sessions: &Sessions, session: &Session) {
    eventually("the end of its keeping", || sessions.find(session.id()).is_none().then_some(()));
}

fn forgotten(bed: &mut Bed) {
    let dir = bed.dir.path().join("forgotten");
    let small = Limits { finished_max: 1, ..limits() };
    let sessions = open(bed, &dir, small.clone());
    let count = dir.join("count");
    let text = format!("echo x >>{}; exit 7", count.display());
    let wanted = request(&["/bin/sh", "-c", &text]);
    let first = run(bed, &sessions, wanted.clone());
    let session_dir = dir.join(first.id().as_str());
    let journal = std::fs::read(session_dir.join("journal")).unwrap();
    run(bed, &sessions, request(&["true"]));
    gone(&sessions, &first);
    eventually("the removal", || (!session_dir.exists()).then_some(()));

    let check = |sessions: &Sessions| {
        match bed.runtime.block_on(sessions.start(wanted.clone())) {
            Err(StartError::Forgotten { run_id, exit }) => {
                assert_eq!((run_id, exit.ended), (wanted.run_id.clone(), Ended::Died(Death::Code(7))));
            }
            other => panic!("{other:?}"),
        }
        let other = StartRequest { input_digest: [8; 32], ..wanted.clone() };
        match bed.runtime.block_on(sessions.start(other)) {
            Err(StartError::RunIdConflict { session_id, .. }) => assert_eq!(&session_id, first.id()),
            other => panic!("{other:?}"),
        }
    };
    check(&sessions);
    drop(sessions);
    // As if the node host had died between writing the receipt and removing the directory.
    std::fs::create_dir(&session_dir).unwrap();
    std::fs::write(session_dir.join("journal"), journal).unwrap();
    let sessions = open(bed, &dir, small);
    assert!(!session_dir.exists());
    check(&sessions);
    assert_eq!(std::fs::read(&count).unwrap(), b"x\n");
    assert_eq!(std::fs::metadata(dir.join("receipts")).unwrap().permissions().mode() & 0o777, 0o600);

    // What a caller lets go of is known as well.
    let last = run(bed, &sessions, request(&["true"]));
    let again = StartRequest { run_id: last.info().run_id, ..request(&["true"]) };
    sessions.forget(last.id());
    let refused = bed.runtime.block_on(sessions.start(again)).unwrap_err();
    assert!(matches!(refused, StartError::Forgotten { .. }), "{refused:?}");
}

fn retention(bed: &mut Bed) {
    let dir = bed.dir.path().join("retention");
    let ended = |sessions: &Sessions| run(bed, sessions, request(&["true"]));
    let there = |sessions: &Sessions, list: &[&Session]| {
        list.iter().map(|s| sessions.find(s.id()).is_some()).collect::<Vec<_>>()
    };

    let stay = Limits { finished_max: 1, finished_hard_max: 2, ..Limits::default() };
    let sessions = open(bed, &dir.join("a"), stay);
    let (a, b) = (ended(&sessions), ended(&sessions));
    let hold = a.hold(0);
    let c = ended(&sessions);
    // Young ones stay though one is the limit; the hard bound takes the oldest, held or not.
    gone(&sessions, &a);
    assert_eq!(there(&sessions, &[&a, &b, &c]), [false, true, true]);
    drop(hold);

    let held = Limits { finished_max: 1, ..limits() };
    let sessions = open(bed, &dir.join("b"), held);
    let a = ended(&sessions);
    let hold = a.hold(0);
    let b = ended(&sessions);
    let c = ended(&sessions);
    gone(&sessions, &b);
    assert_eq!(there(&sessions, &[&a, &b, &c]), [true, false, true]);
    drop(hold);
    let d = ended(&sessions);
    gone(&sessions, &a);
    gone(&sessions, &c);
    assert_eq!(there(&sessions, &[&d]), [true]);

    let bytes = Limits { finished_bytes: 1, ..limits() };
    let sessions = open(bed, &dir.join("c"), bytes);
    let (a, b) = (ended(&sessions), ended(&sessions));
    gone(&sessions, &a);
    assert_eq!(there(&sessions, &[&b]), [true]);
}

fn shell(run_id: &str, text: &str, workdir: &Path) -> pb::RunRequest {
    pb::RunRequest {
        run_id: run_id.into(),
        invocation: Some(pb::Invocation { form: Some(pb::invocation::Form::Shell(text.into())) }),
        workdir: workdir.display().to_string(),
        stdin: pb::Stdin::Closed.into(),
        deadline: Some(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(10_000)) }),
        security: pb::Security::Full.into(),
        ask: pb::Ask::Off.into(),
        ..pb::RunRequest::default()
    }
}

fn receipt_first(bed: &mut Bed) {
    let dir = bed.dir.path().join("receipt-first");
    let (work, document) = (dir.join("work"), dir.join("exec-approvals.json"));
    std::fs::create_dir_all(&work).unwrap();
    let environment = [("PATH", "/usr/bin:/bin")].map(|(k, v)| (OsString::from(k), OsString::from(v)));
    let approvals = Approvals::new(ApprovalsFile::new(&document), RemoteApprovals::Refused);
    let pass = PassList::none();
    let door = Door::new(
        approvals,
        document.with_file_name("openclaw.json"),
        environment.into_iter(),
        &pass,
        "/".into(),
        "n1".into(),
    );
    let node = Node::new("n1".into(), door, open(bed, &dir.join("sessions"), limits()));
    let start = |run: &pb::RunRequest| match bed.runtime.block_on(node.start(run))? {
        Outcome::Begun(begun) => Ok::<_, fault::Fault>(begun),
        Outcome::NeedsApproval(plan) => panic!("nobody can be asked: {plan:?}"),
    };
    let code = |run: &pb::RunRequest| start(run).unwrap_err().code;

    let wanted = shell("once", "echo out; exit 3", &work);
    let first = start(&wanted).unwrap();
    assert!(!first.existing);
    assert_eq!(first.session.workdir(), work.display().to_string());
    let end = bed.end_of(&first.session);
    let again = || {
        let again = start(&wanted).unwrap();
        assert_eq!((again.session.id(), again.existing), (first.session.id(), true));
        assert_eq!(again.session.workdir(), work.display().to_string());
        assert_eq!(bed.end_of(&again.session), end);
    };
    again();
    std::fs::remove_dir(&work).unwrap();
    again();
    assert_eq!(code(&shell("twice", "true", &work)), ErrorCode::WorkdirNotFound);
    std::fs::write(&document, r#"{"version":1,"defaults":{"security":"deny"}}"#).unwrap();
    std::fs::set_permissions(&document, std::fs::Permissions::from_mode(0o600)).unwrap();
    again();
    // Another input is no retry, and is told so before anything else.
    assert_eq!(code(&shell("once", "true", &work)), ErrorCode::RunIdConflict);
    assert_eq!(code(&shell("twice", "true", Path::new("/"))), ErrorCode::SystemRunDisabled);

    node.sessions.forget(first.session.id());
    let refused = start(&wanted).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SessionEnded);
    assert_eq!(
        refused.message,
        "run once ended with exit code 3; its output is no longer kept, and it is not run again"
    );
}
