//! A run id is one session for ever, whatever became of it.

use e2e::{TestBed, argv_request, block_on, follow};

#[test]
fn a_run_id_runs_once_also_when_its_session_is_long_past() {
    /// More than the ended sessions that a node keeps.
    const OTHERS: usize = 60;
    let bed = TestBed::new();
    let _node = bed.node("n");
    let file = bed.path("count");
    let text = format!("echo x >> {}", file.display());
    let run = || bed.exec(["--run-id", "job.A", "--shell", "--", &text]);
    run().ok();
    block_on(async {
        let mut tools = bed.tools().await;
        for _ in 0..OTHERS {
            let events = tools.exec(argv_request("n", &["true"])).await.unwrap().into_inner();
            assert_eq!(follow(events).await.unwrap().code(), Some(0));
        }
    });
    let again = run();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "{again:?}");
    // Either it is still there, or its end is remembered and said.
    if again.code() != 0 {
        again.refused(2, "SESSION_ENDED");
    }
    bed.exec(["--run-id", "job.A", "--", "true"]).refused(77, "RUN_ID_CONFLICT").hinted();
}

#[test]
fn a_repeated_run_is_the_same_session_though_its_directory_is_gone() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let dir = bed.path("work");
    std::fs::create_dir(&dir).unwrap();
    let workdir = dir.display().to_string();
    let text = format!("rmdir {workdir}; echo gone; exit 3");
    let run = || {
        let outcome =
            bed.exec(["--json", "--run-id", "job.B", "--workdir", &workdir, "--shell", "--", &text]);
        let lines = outcome.json_lines();
        let started = lines.iter().find(|line| line["event"] == "started");
        let id = started.and_then(|line| line["session"]["sessionId"].as_str()).map(str::to_owned);
        assert!(outcome.stdout_text().contains("gone"), "{outcome:?}");
        (outcome.code(), id.unwrap_or_else(|| panic!("no session: {outcome:?}")))
    };
    let first = run();
    assert_eq!(first.0, 3);
    assert!(!dir.exists());
    assert_eq!(run(), first);
    // Nor does the policy of now change what was.
    std::fs::write(node.approvals(), r#"{"version":1,"defaults":{"security":"deny"}}"#).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(node.approvals(), private).unwrap();
    bed.exec(["--", "true"]).refused(77, "SYSTEM_RUN_DISABLED");
    assert_eq!(run(), first);
}
