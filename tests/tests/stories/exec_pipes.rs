//! Commands with pipes: streams, ends, input, directories, limits.

use std::time::Duration;

use e2e::{
    PATIENCE, Reading, Session, TestBed, argv_request, block_on, follow, helper, measured, pattern,
    shell_request,
};
use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, client_frame::Frame};

#[test]
fn streams_stay_apart_and_come_live() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let mut run = bed.spawn_cli(
        ["exec", "--stdin", "--", "sh", "-c", "echo one; echo two >&2; read line; echo three"],
        Reading::Now,
    );
    run.wait_stdout("one\n");
    run.wait_stderr("two\n");
    assert!(run.is_running(), "output is there before the end");
    run.write(b"go\n");
    let outcome = run.finish(PATIENCE);
    assert_eq!(
        (outcome.code(), outcome.stdout_text().as_str(), outcome.stderr.as_str()),
        (0, "one\nthree\n", "two\n")
    );

    let outcome = bed.exec(["--", &helper("emit"), "300000", "--stderr", "200000"]);
    outcome.ok();
    assert_eq!((outcome.stdout, outcome.stderr.into_bytes()), (pattern(300_000), pattern(200_000)));
}

#[test]
fn each_way_to_end_has_its_exit_code() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let plain = bed.path("plain");
    std::fs::write(&plain, "not a program").unwrap();
    let table: [(&[&str], i32); 8] = [
        (&["--", "true"], 0),
        (&["--", "sh", "-c", "exit 7"], 7),
        (&["--shell", "--", "exit 255"], 255),
        (&["--", "sh", "-c", "kill -TERM $$"], 143),
        (&["--", "sh", "-c", "kill -KILL $$"], 137),
        (&["--", "no-such-program"], 127),
        (&["--", plain.to_str().unwrap()], 126),
        (&["--timeout", "1", "--", "sleep", "60"], 124),
    ];
    for (args, code) in table {
        let (outcome, took) = measured(|| bed.exec(args.iter().copied()));
        assert_eq!(outcome.code(), code, "{args:?}: {outcome:?}");
        assert!(took < Duration::from_secs(10), "{args:?} took {took:?}");
    }
    // TERM is no way out of a deadline.
    let outcome = bed.exec(["--timeout", "1", "--", &helper("ignore-term")]);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (124, "ready\n"), "{outcome:?}");
}

#[test]
fn input_is_closed_unless_asked_for() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let (outcome, took) = measured(|| bed.exec(["--", "cat"]));
    assert_eq!(outcome.ok().stdout, b"");
    assert!(took < Duration::from_secs(5), "{took:?}");

    let mut run = bed.spawn_cli(["exec", "--stdin", "--", "wc", "-c"], Reading::Now);
    run.write(b"12345");
    assert_eq!(run.finish(PATIENCE).ok().stdout_text().trim(), "5", "half close ends `wc`");

    let mut run = bed.spawn_cli(["exec", "--stdin", "--", "cat"], Reading::Now);
    let sent = pattern(4 << 20);
    run.write(&sent);
    assert!(run.finish(PATIENCE).ok().stdout == sent, "4 MiB came back changed");

    block_on(async {
        let mut tools = bed.tools().await;
        let mut session =
            Session::open(&mut tools, Frame::Start(argv_request("n", &["sleep", "60"]))).await.unwrap();
        session.until(|s| !s.session.session_id.is_empty()).await.unwrap();
        session.send(Frame::Input("x".into())).await;
        session.until(|s| !s.input_refused.is_empty()).await.unwrap();
        let Fault { code, hint, .. } = session.so_far.input_refused[0].clone();
        assert_eq!(code, ErrorCode::StdinClosed);
        assert!(hint.as_deref().is_some_and(|hint| hint.contains("--stdin")), "{hint:?}");
        session.send(Frame::Kill(true)).await;
        let followed = session.finish(PATIENCE).await.unwrap();
        assert!(followed.exit.unwrap().cancelled);
    });
}

#[test]
fn a_directory_is_taken_as_given_or_refused() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let pwd = |dir: &str| bed.exec(["--workdir", dir, "--", "pwd"]);
    let home = bed.path("home");
    std::fs::create_dir_all(home.join("sub")).unwrap();
    let base = home.parent().unwrap().canonicalize().unwrap();
    for (given, wanted) in [
        ("/", "/".into()),
        ("~", base.join("home")),
        ("~/sub", base.join("home/sub")),
        ("home/sub", base.join("home/sub")),
    ] {
        assert_eq!(pwd(given).ok().stdout_text().trim_end(), wanted.to_str().unwrap(), "{given}");
    }
    assert_eq!(bed.exec(["--", "pwd"]).ok().stdout_text().trim_end(), base.to_str().unwrap());
    let name = node.name();
    for (given, code) in [
        ("/no/such", "WORKDIR_NOT_FOUND"),
        ("~/no", "WORKDIR_NOT_FOUND"),
        ("no/such", "WORKDIR_NOT_FOUND"),
        ("/etc/passwd", "WORKDIR_NOT_DIRECTORY"),
    ] {
        let outcome = pwd(given);
        outcome.refused(126, code);
        assert!(outcome.stderr.contains(&format!("{code} {given} on node {name}")), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, b"");
    }
}

#[test]
fn what_no_system_takes_is_refused_before_it_starts() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    block_on(async {
        let mut tools = bed.tools().await;
        // A call is open at once, a refusal is how its stream ends.
        let nul = tools.exec(shell_request("n", "echo a\0b")).await.unwrap().into_inner();
        let nul = follow(nul).await.unwrap_err();
        assert_eq!(Fault::from_status(&nul).code, ErrorCode::CommandNul);
        let long = |len: usize| argv_request("n", &["printf", "%s", &"x".repeat(len)]);
        let ok = follow(tools.exec(long(131_071)).await.unwrap().into_inner()).await.unwrap();
        assert_eq!((ok.code(), ok.stdout.len()), (Some(0), 131_071));
        let refused = follow(tools.exec(long(131_072)).await.unwrap().into_inner()).await.unwrap_err();
        assert_eq!(Fault::from_status(&refused).code, ErrorCode::CommandTooLong);
        let listed = tools.list_sessions(pb::ListRequest::default()).await.unwrap().into_inner();
        assert_eq!(listed.sessions.len(), 1, "refused commands leave no session");
    });
}

#[test]
fn no_limit_means_none() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    assert_eq!(
        bed.exec(["--timeout", "0", "--", "sh", "-c", "sleep 2; echo done"]).ok().stdout_text(),
        "done\n"
    );
}

#[test]
fn json_is_one_document_a_line() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let outcome = bed.exec(["--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(outcome.code(), 3);
    let lines = outcome.json_lines();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap_or_default()).collect();
    assert_eq!((events.first(), events.last()), (Some(&"started"), Some(&"exit")), "{lines:?}");
    let text = |stream: &str| -> String {
        lines.iter().filter(|l| l["stream"] == stream).filter_map(|l| l["text"].as_str()).collect()
    };
    assert_eq!((text("stdout").as_str(), text("stderr").as_str()), ("out\n", "err\n"));
    let exit = &lines[lines.len() - 1];
    assert_eq!(
        (&exit["exitCode"], &exit["status"], &exit["finalOffset"]),
        (&3.into(), &"completed".into(), &8.into())
    );
    let bytes = bed.exec(["--json", "--", "printf", "\\377"]);
    assert!(bytes.json_lines().iter().any(|line| line["base64"] == "/w=="), "{bytes:?}");
    let fault = bed.exec(["--json", "--node", "nope", "--", "true"]);
    let error: serde_json::Value = serde_json::from_str(fault.stderr.trim()).unwrap();
    assert_eq!(error["error"]["code"], "UNKNOWN_NODE");
}

#[test]
fn five_hundred_short_commands_lose_no_byte() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    block_on(async {
        let mut tools = bed.tools().await;
        for round in 0..500 {
            let events = tools.exec(argv_request("n", &["printf", "hi"])).await.unwrap().into_inner();
            let followed = follow(events).await.unwrap();
            assert_eq!((followed.stdout.as_slice(), followed.code()), (&b"hi"[..], Some(0)), "round {round}");
        }
    });
}
