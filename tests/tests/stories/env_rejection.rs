//! Which variables reach a command, decided by the node whatever the gateway
//! says.

use e2e::{FakeGateway, GatewayOptions, Node, NodeOptions, RunAs, TestBed, full_run};
use proto::v1 as pb;

/// Keys that may never come from a caller.
const BLOCKED: [&str; 14] = [
    "PATH",
    "path",
    "Path",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_X",
    "BASH_ENV",
    "ENV",
    "GIT_SSH_COMMAND",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "OPENCLAW_SHELL",
    // Together they run code in the trace prompt of any shell (F080).
    "SHELLOPTS",
    "PS4",
];

#[test]
fn the_gateway_refuses_by_name() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let marker = bed.path("marker");
    for key in BLOCKED {
        let entry = format!("{key}=x");
        for way in [&[][..], &["--pty"], &["--detach"], &["--shell"]] {
            let head = way.iter().copied().chain(["--env", &entry, "--"]);
            let text = format!("touch {}", marker.display());
            let outcome = match way {
                ["--shell"] => bed.exec(head.chain([text.as_str()])),
                _ => bed.exec(head.chain(["touch", marker.to_str().unwrap()])),
            };
            outcome.refused(77, "ENV_REJECTED");
            assert!(outcome.stderr.contains(&key.to_uppercase()), "{way:?}: {}", outcome.stderr);
        }
    }
    assert!(!marker.exists());
}

/// A node pointed at a gateway that sends what a real one would not.
fn refuses_a_careless_gateway(user: RunAs) {
    let bed = TestBed::dark(GatewayOptions::default());
    let fake = FakeGateway::start();
    let node = Node::of_fake(&bed, "n", &fake, NodeOptions { user, ..NodeOptions::default() });
    let mut link = fake.link();
    let marker = node.dir().join("marker");
    let touch = ["touch", marker.to_str().unwrap()];
    let sane = |id: &str| full_run(id, &touch);

    for (number, key) in BLOCKED.into_iter().enumerate() {
        let mut run = sane(&format!("env-{number}"));
        run.env.insert(key.to_owned(), "x".to_owned());
        run.env.insert("HARMLESS".to_owned(), "y".to_owned());
        let in_terminal = pb::RunRequest {
            run_id: format!("env-pty-{number}"),
            stdin: pb::Stdin::Open.into(),
            terminal: Some(pb::WindowSize { columns: 80, rows: 24 }),
            ..run.clone()
        };
        assert_eq!(link.run(in_terminal).unwrap_err().code, "ENV_REJECTED", "{key} in a terminal");
        let fault = link.run(run).unwrap_err();
        assert_eq!(fault.code, "ENV_REJECTED", "{fault:?}");
        assert!(fault.message.starts_with("SYSTEM_RUN_DENIED: "), "{fault:?}");
        assert!(
            fault.message.contains(&key.to_uppercase()) && !fault.message.contains("HARMLESS"),
            "{fault:?}"
        );
    }
    let mut traced = full_run("trace", &["bash", "-c", "true"]);
    traced.env.insert("SHELLOPTS".to_owned(), "xtrace".to_owned());
    traced.env.insert("PS4".to_owned(), format!("$(touch {})", marker.display()));
    let fault = link.run(traced).unwrap_err();
    assert_eq!(fault.code, "ENV_REJECTED");
    assert!(fault.message.contains("PS4") && fault.message.contains("SHELLOPTS"), "{fault:?}");
    let unsaid: [(&str, fn(&mut pb::RunRequest)); 8] = [
        ("security", |run| run.security = 0),
        ("unknown security", |run| run.security = 77),
        ("ask", |run| run.ask = 0),
        ("stdin", |run| run.stdin = 0),
        ("deadline", |run| run.deadline = None),
        ("zero deadline", |run| {
            run.deadline = Some(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(0)) });
        }),
        ("invocation", |run| run.invocation = None),
        ("terminal without input", |run| run.terminal = Some(pb::WindowSize { columns: 80, rows: 24 })),
    ];
    for (number, (what, spoil)) in unsaid.into_iter().enumerate() {
        let mut run = sane(&format!("unsaid-{number}"));
        spoil(&mut run);
        let fault = link.run(run).expect_err(what);
        assert_eq!(fault.code, "INVALID_REQUEST", "{what}: {fault:?}");
    }
    for (security, code) in
        [(pb::Security::Deny, "SYSTEM_RUN_DISABLED"), (pb::Security::Allowlist, "SYSTEM_RUN_DENIED")]
    {
        let run = pb::RunRequest { security: security.into(), ..sane(&format!("strict-{security:?}")) };
        assert_eq!(link.run(run).unwrap_err().code, code);
    }
    let fault = link.run(sane("bad id/with slash")).unwrap_err();
    assert_eq!(fault.code, "INVALID_REQUEST", "{fault:?}");
    assert!(!marker.exists(), "something was started");

    // The same request, whole, runs: what was refused was refused for cause.
    link.run(sane("sane")).unwrap();
    e2e::eventually(e2e::PATIENCE, || if marker.exists() { Ok(()) } else { Err("no marker".to_owned()) });
}

#[test]
fn the_node_refuses_a_careless_gateway() {
    refuses_a_careless_gateway(RunAs::Same);
}

#[test]
fn the_node_refuses_a_careless_gateway_also_as_a_plain_user() {
    if !rustix::process::geteuid().is_root() {
        // The story above has just run as one.
        return;
    }
    refuses_a_careless_gateway(RunAs::Plain);
}

fn what_a_command_sees(user: RunAs) {
    let bed = TestBed::with(GatewayOptions {
        env: vec![("AWS_X".into(), "1".into()), ("GATEWAY_ONLY".into(), "leaked".into())],
        ..GatewayOptions::default()
    });
    let service = [
        ("API_TOKEN", "secret-1"),
        ("DB_PASSWORD", "secret-2"),
        ("LD_PRELOAD_X", "harmless"),
        ("BASH_ENV", "/nope"),
        ("NODE_OWN", "kept"),
        ("PATH", "/usr/bin:/bin:/node/own"),
    ];
    let env = service.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
    let node = bed.invited("n", NodeOptions { env, user, ..NodeOptions::default() });
    node.wait_connected(1);
    for form in [&["--", "env"][..], &["--shell", "--", "env"]] {
        let args = ["--env", "FOO=bar", "--env", "LC_TIME=C"].into_iter().chain(form.iter().copied());
        let outcome = bed.exec(args);
        let text = outcome.ok().stdout_text();
        let has = |line: &str| text.lines().any(|l| l == line);
        for wanted in
            ["FOO=bar", "LC_TIME=C", "OPENCLAW_SHELL=exec", "NODE_OWN=kept", "PATH=/usr/bin:/bin:/node/own"]
        {
            assert!(has(wanted), "no {wanted} in {form:?}: {text}");
        }
        for secret in ["secret-1", "secret-2", "leaked", "AWS_X", "API_TOKEN", "BASH_ENV"] {
            assert!(!text.contains(secret), "{secret} in {form:?}: {text}");
        }
    }
}

#[test]
fn a_command_sees_its_nodes_environment_and_what_its_caller_set() {
    what_a_command_sees(RunAs::Same);
}

#[test]
fn a_command_of_a_plain_user_sees_the_same() {
    if rustix::process::geteuid().is_root() {
        what_a_command_sees(RunAs::Plain);
    }
}
