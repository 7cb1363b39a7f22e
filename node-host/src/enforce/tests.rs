mod approvals;
mod rules;

use std::os::unix::fs::PermissionsExt as _;

use config::ApprovalsFile;

use super::asked::digest;
use super::*;
use crate::approvals::RemoteApprovals;

struct Fixture {
    dir: tempfile::TempDir,
    door: Door,
}

fn fixture(environment: &[(&str, &str)]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let environment = environment.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
    let door = Door::new(
        Approvals::new(ApprovalsFile::new(dir.path().join("exec-approvals.json")), RemoteApprovals::Refused),
        dir.path().join("openclaw.json"),
        environment,
        &PassList::none(),
        dir.path().to_path_buf(),
        "n1".to_owned(),
    );
    Fixture { dir, door }
}

fn shell(text: &str) -> pb::RunRequest {
    pb::RunRequest {
        run_id: "r1".into(),
        invocation: Some(pb::Invocation { form: Some(pb::invocation::Form::Shell(text.into())) }),
        stdin: pb::Stdin::Closed.into(),
        deadline: Some(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(1000)) }),
        security: pb::Security::Full.into(),
        ask: pb::Ask::Off.into(),
        ..pb::RunRequest::default()
    }
}

fn argv(words: &[&str]) -> pb::RunRequest {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    let form = pb::invocation::Form::Argv(pb::Argv { words });
    pb::RunRequest { invocation: Some(pb::Invocation { form: Some(form) }), ..shell("") }
}

impl Door {
    /// What the door says to a caller whose gateway can ask nobody.
    fn admit(&self, run: &pb::RunRequest) -> Result<Permit, Fault> {
        match self.decide(Asked::read(run)?)? {
            Decided::Run(permit) => Ok(*permit),
            Decided::Later(asked) => panic!("{asked:?} is not decided at once"),
        }
    }
}

fn env_of(permit: Permit) -> BTreeMap<String, String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    permit.request.env.into_iter().map(|(k, v)| (text(k), text(v))).collect()
}

#[test]
fn a_field_that_safety_hangs_on_must_be_said() {
    let f = fixture(&[]);
    let spoil: [(&str, fn(&mut pb::RunRequest)); 9] = [
        ("security", |r| r.security = 0),
        ("unknown security", |r| r.security = 99),
        ("ask", |r| r.ask = 0),
        ("stdin", |r| r.stdin = 0),
        ("deadline", |r| r.deadline = None),
        ("zero timeout", |r| {
            r.deadline = Some(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(0)) })
        }),
        ("none that is false", |r| {
            r.deadline = Some(pb::Deadline { limit: Some(pb::deadline::Limit::None(false)) })
        }),
        ("run id", |r| r.run_id = "a b".into()),
        ("invocation", |r| r.invocation = None),
    ];
    assert!(f.door.admit(&shell("true")).is_ok());
    for (what, spoil) in spoil {
        let mut run = shell("true");
        spoil(&mut run);
        assert_eq!(f.door.admit(&run).unwrap_err().code, ErrorCode::InvalidRequest, "{what}");
    }
}

#[test]
fn the_document_of_this_machine_decides() {
    let f = fixture(&[]);
    let file = f.dir.path().join("exec-approvals.json");
    let table = [
        (r#"{"version":1}"#, None),
        (r#"{"version":1,"defaults":{"security":"full"}}"#, None),
        (r#"{"version":1,"defaults":{"security":"deny"}}"#, Some(ErrorCode::SystemRunDisabled)),
        (r#"{"version":1,"defaults":{"security":"allowlist"}}"#, Some(ErrorCode::SystemRunDenied)),
        (r#"{"version":1,"defaults":{"ask":"always"}}"#, Some(ErrorCode::SystemRunDenied)),
        (r#"{"version":1,"agents":{"*":{"security":"deny"}}}"#, Some(ErrorCode::SystemRunDisabled)),
        (r#"{"version":2}"#, Some(ErrorCode::ApprovalsMalformed)),
        (r#"{"version":1,"defaults":{"security":"sometimes"}}"#, Some(ErrorCode::ApprovalsMalformed)),
        ("{", Some(ErrorCode::ApprovalsMalformed)),
        ("", Some(ErrorCode::ApprovalsMalformed)),
    ];
    for (text, expected) in table {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(f.door.admit(&shell("env")).err().map(|e| e.code), expected, "{text}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(f.door.admit(&shell("env")).is_ok());
}

#[test]
fn fields_are_read_whatever_the_machine_says() {
    let f = fixture(&[]);
    std::fs::write(f.dir.path().join("exec-approvals.json"), "{").unwrap();
    let run = pb::RunRequest { workdir: "/gone".into(), ..shell("env") };
    let asked = Asked::read(&run).unwrap();
    assert_eq!((asked.run_id().as_str(), asked.input_digest()), ("r1", &digest(&run)));
    assert_eq!(f.door.decide(asked).unwrap_err().code, ErrorCode::ApprovalsMalformed);
}

#[test]
fn a_caller_can_only_tighten() {
    let f = fixture(&[]);
    let deny = pb::RunRequest { security: pb::Security::Deny.into(), ..shell("true") };
    assert_eq!(f.door.admit(&deny).unwrap_err().code, ErrorCode::SystemRunDisabled);
    let always = pb::RunRequest { ask: pb::Ask::Always.into(), ..shell("true") };
    assert_eq!(f.door.admit(&always).unwrap_err().code, ErrorCode::SystemRunDenied);
}

#[test]
fn environment_of_a_command() {
    let f = fixture(&[
        ("PATH", "/srv/t/bin:/usr/bin"),
        ("HOME", "/home/u"),
        ("LD_PRELOAD", "/x.so"),
        ("API_TOKEN", "t"),
        ("OLDPWD", "/old"),
        ("PWD", "/stale"),
    ]);
    let mut run = shell("env");
    run.env.insert("FOO".into(), "bar".into());
    let permit = f.door.admit(&run).unwrap();
    let cwd = permit.request.cwd.display().to_string();
    let expected: BTreeMap<String, String> = [
        ("FARRUN_RUN_ID", "r1"),
        ("FOO", "bar"),
        ("HOME", "/home/u"),
        ("OPENCLAW_CLI", "1"),
        ("OPENCLAW_SHELL", "exec"),
        ("PATH", "/srv/t/bin:/usr/bin"),
        ("PWD", &cwd),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    assert_eq!(env_of(permit), expected);
}

#[test]
fn blocked_variables_are_named() {
    let f = fixture(&[]);
    let mut run = shell("true");
    for key in ["path", "LD_PRELOAD", "DYLD_X", "BASH_ENV", "OK"] {
        run.env.insert(key.into(), "v".into());
    }
    let fault = f.door.admit(&run).unwrap_err();
    assert_eq!(fault.code, ErrorCode::EnvRejected);
    assert_eq!(
        fault.message,
        "SYSTEM_RUN_DENIED: environment override rejected (blocked override keys: BASH_ENV, DYLD_X, LD_PRELOAD, PATH)"
    );
}

#[test]
fn a_terminal_gets_a_usable_term() {
    for (inherited, given, expected) in [
        (None, None, "xterm-256color"),
        (Some("dumb"), None, "xterm-256color"),
        (Some("screen"), None, "screen"),
        (Some("screen"), Some("vt100"), "vt100"),
        (None, Some(""), "xterm-256color"),
    ] {
        let base: Vec<_> = inherited.map(|term| ("TERM", term)).into_iter().collect();
        let f = fixture(&base);
        let mut run = shell("true");
        run.stdin = pb::Stdin::Open.into();
        run.terminal = Some(pb::WindowSize { columns: 80, rows: 24 });
        if let Some(term) = given {
            run.env.insert("TERM".into(), term.into());
        }
        assert_eq!(env_of(f.door.admit(&run).unwrap())["TERM"], expected, "{inherited:?} {given:?}");
    }
}

#[test]
fn what_the_system_cannot_take_is_refused_before_anything_starts() {
    let f = fixture(&[]);
    let code = |run: &pb::RunRequest| f.door.admit(run).err().map(|e| e.code);
    let long = |n: usize| "x".repeat(n);
    assert_eq!(code(&argv(&["echo", &long(command::ARGUMENT_MAX)])), None);
    assert_eq!(code(&argv(&["echo", &long(command::ARGUMENT_MAX + 1)])), Some(ErrorCode::CommandTooLong));
    assert_eq!(code(&shell(&long(command::ARGUMENT_MAX + 1))), Some(ErrorCode::CommandTooLong));
    let many = vec![long(100_000); 21];
    let words: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(code(&argv(&words)), Some(ErrorCode::CommandTooLong));
    assert_eq!(code(&shell("echo a\0b")), Some(ErrorCode::CommandNul));
    assert_eq!(code(&argv(&["echo", "\0"])), Some(ErrorCode::CommandNul));
    assert_eq!(code(&shell("  ")), Some(ErrorCode::InvalidRequest));
    assert_eq!(code(&argv(&[])), Some(ErrorCode::InvalidRequest));
    assert_eq!(code(&argv(&["", "x"])), Some(ErrorCode::InvalidRequest));
}

#[test]
fn workdirs() {
    let f = fixture(&[("HOME", "/")]);
    let base = f.dir.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("sub")).unwrap();
    std::fs::write(base.join("file"), "").unwrap();
    let cwd = |given: &str| {
        let run = pb::RunRequest { workdir: given.into(), ..shell("true") };
        f.door.admit(&run).map(|permit| permit.request.cwd).map_err(|fault| (fault.code, fault.message))
    };
    assert_eq!(cwd(""), Ok(base.clone()));
    assert_eq!(cwd("sub"), Ok(base.join("sub")));
    assert_eq!(cwd("sub/../sub/."), Ok(base.join("sub")));
    assert_eq!(cwd("~/usr"), Ok(PathBuf::from("/usr")));
    assert_eq!(cwd("~"), Ok(PathBuf::from("/")));
    assert_eq!(
        cwd("/Users/x"),
        Err((ErrorCode::WorkdirNotFound, "WORKDIR_NOT_FOUND /Users/x on node n1".to_owned()))
    );
    assert_eq!(
        cwd("file"),
        Err((ErrorCode::WorkdirNotDirectory, "WORKDIR_NOT_DIRECTORY file on node n1".to_owned()))
    );
    f.door.call_it("builder");
    assert_eq!(cwd("/Users/x").unwrap_err().1, "WORKDIR_NOT_FOUND /Users/x on node builder");
    assert_eq!(cwd("file/x").unwrap_err().0, ErrorCode::WorkdirNotDirectory);
    assert_eq!(cwd("  ").unwrap_err().0, ErrorCode::InvalidRequest);
    assert_eq!(cwd("~other/x").unwrap_err().0, ErrorCode::WorkdirNotFound);
}

#[test]
fn the_receipt_tells_inputs_apart() {
    let base = shell("true");
    let mut others = vec![shell("false"), argv(&["true"]), argv(&["/bin/sh", "-c", "true"])];
    let variations: [fn(&mut pb::RunRequest); 7] = [
        |r| r.workdir = "/".into(),
        |r| _ = r.env.insert("A".into(), "1".into()),
        |r| _ = r.env.insert("A1".into(), String::new()),
        |r| r.stdin = pb::Stdin::Open.into(),
        |r| r.terminal = Some(pb::WindowSize { columns: 1, rows: 1 }),
        |r| r.deadline = None,
        |r| r.agent_id = "a".into(),
    ];
    for vary in variations {
        let mut run = base.clone();
        vary(&mut run);
        others.push(run);
    }
    let digests: std::collections::BTreeSet<_> = others.iter().chain([&base]).map(digest).collect();
    assert_eq!(digests.len(), others.len() + 1);
    // What does not change the run does not change the receipt.
    let again = pb::RunRequest { subscribe: Some(pb::Subscribe::default()), ..base.clone() };
    assert_eq!(digest(&again), digest(&base));
}
