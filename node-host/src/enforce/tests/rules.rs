//! The document's rules at the door, with real files.

use std::path::Path;

use super::*;

/// A door whose PATH is `bin` in its own directory, where `names` are programs.
fn with_programs(names: &[&str], document: &str) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in names {
        program(&bin.join(name));
    }
    let environment = [("PATH", bin.to_str().unwrap()), ("HOME", "/home/u")]
        .map(|(k, v)| (OsString::from(k), OsString::from(v)));
    private(&dir.path().join("exec-approvals.json"), document);
    let door = Door::new(
        Approvals::new(ApprovalsFile::new(dir.path().join("exec-approvals.json")), RemoteApprovals::Refused),
        dir.path().join("openclaw.json"),
        environment.into_iter(),
        &PassList::none(),
        dir.path().to_path_buf(),
        "n1".to_owned(),
    );
    Fixture { dir, door }
}

fn program(path: &Path) {
    std::fs::write(path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

const LISTED: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"off"},
    "agents":{"*":{"allowlist":["one",{"pattern":"two","argPattern":"^ok$"}]}}}"#;

impl Fixture {
    fn bin(&self, name: &str) -> String {
        self.dir.path().join("bin").join(name).display().to_string()
    }

    fn argv(&self, run: &pb::RunRequest) -> Result<Vec<String>, ErrorCode> {
        self.door.admit(run).map(|permit| permit.request.argv).map_err(|fault| fault.code)
    }
}

#[test]
fn the_plan_that_was_judged_is_what_is_launched() {
    let f = with_programs(&["one", "two", "three"], LISTED);
    assert_eq!(f.argv(&shell("one 'a  b'")), Ok(vec![f.bin("one"), "a  b".into()]));
    assert_eq!(f.argv(&argv(&["one", "*"])), Ok(vec![f.bin("one"), "*".into()]));
    let text = format!("'{}' 'x' | '{}' 'ok'", f.bin("one"), f.bin("two"));
    assert_eq!(f.argv(&shell("one x | two ok")), Ok(vec!["/bin/sh".into(), "-c".into(), text]));
    for denied in ["two no", "three", "one; three", "one > f", "one $HOME", "./one", "bin/one"] {
        assert_eq!(f.argv(&shell(denied)), Err(ErrorCode::SystemRunDenied), "{denied}");
    }
    // A machine where everything may run launches what was sent, unread.
    private(&f.dir.path().join("exec-approvals.json"), r#"{"version":1}"#);
    assert_eq!(f.argv(&shell("one $HOME")), Ok(vec!["/bin/sh".into(), "-c".into(), "one $HOME".into()]));
}

#[test]
fn an_agent_has_its_own_rules_besides_those_of_all() {
    let f = with_programs(
        &["one", "two"],
        r#"{"version":1,"defaults":{"security":"allowlist"},
            "agents":{"*":{"allowlist":["one"]},"a":{"allowlist":["two"]},"b":{"security":"deny"}}}"#,
    );
    let code =
        |agent: &str, text: &str| f.argv(&pb::RunRequest { agent_id: agent.into(), ..shell(text) }).err();
    assert_eq!([code("a", "one"), code("a", "two"), code("", "one")], [None, None, None]);
    assert_eq!(code("", "two"), Some(ErrorCode::SystemRunDenied));
    assert_eq!(code("c", "two"), Some(ErrorCode::SystemRunDenied));
    assert_eq!(code("b", "one"), Some(ErrorCode::SystemRunDisabled));
}

#[test]
fn the_machines_own_configuration_tightens_and_a_bad_one_denies() {
    let f = with_programs(&["one", "python3"], r#"{"version":1}"#);
    let config = f.dir.path().join("openclaw.json");
    let table = [
        ("{}", Ok(())),
        ("{ tools: { exec: { security: 'deny' } } }", Err(ErrorCode::SystemRunDisabled)),
        ("{ tools: { exec: { strictInlineEval: true } } }", Err(ErrorCode::SystemRunDenied)),
        ("{ tools: { exec: { security: 'sometimes' } } }", Err(ErrorCode::ConfigInvalid)),
        ("{", Err(ErrorCode::ConfigInvalid)),
        ("// nothing\n{}", Ok(())),
    ];
    for (text, expected) in table {
        private(&config, text);
        assert_eq!(f.argv(&shell("python3 -c 1")).map(|_| ()), expected, "{text}");
    }
    std::fs::remove_file(&config).unwrap();
    let strict = pb::RunRequest { strict_inline_eval: true, ..shell("python3 -c 1") };
    assert_eq!(f.argv(&strict), Err(ErrorCode::SystemRunDenied));
    assert!(f.argv(&shell("python3 -c 1")).is_ok());
}

#[test]
fn a_shell_in_allowlist_mode_gets_few_variables_and_says_which_are_missing() {
    let f = with_programs(&["one"], LISTED);
    let mut run = shell("one");
    run.env = [("FOO", "x"), ("LANG", "C")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let mut permit = f.door.admit(&run).unwrap();
    assert_eq!(permit.take_notes().left_out_env, Vec::<String>::new());
    assert_eq!(env_of(permit)["FOO"], "x");

    let star = r#"{"version":1,"defaults":{"security":"allowlist"},"agents":{"*":{"allowlist":["*"]}}}"#;
    private(&f.dir.path().join("exec-approvals.json"), star);
    run.invocation = shell("sh -c 'echo $FOO'").invocation;
    let mut permit = f.door.admit(&run).unwrap();
    assert_eq!(permit.take_notes().left_out_env, ["FOO"]);
    let env = env_of(permit);
    assert_eq!((env.get("FOO"), env["LANG"].as_str()), (None, "C"));
}

#[test]
fn blocked_variables_in_the_words_are_named_too() {
    let f = with_programs(&["one"], r#"{"version":1}"#);
    let fault = f.door.admit(&argv(&["env", "NODE_OPTIONS=--require=./x", "node", "s.js"])).unwrap_err();
    assert_eq!(fault.code, ErrorCode::EnvRejected);
    assert!(fault.message.contains("command env assignment rejected"), "{fault}");
    assert!(fault.message.contains("NODE_OPTIONS"), "{fault}");
}

#[test]
fn skills_count_by_bare_name_and_only_where_the_owner_said_so() {
    let f = with_programs(&["skill", "other"], r#"{"version":1,"defaults":{"security":"allowlist"}}"#);
    f.door.name_skills(vec!["skill".into(), "gone".into(), "./other".into()]);
    assert_eq!(f.argv(&shell("skill x")), Err(ErrorCode::SystemRunDenied));
    private(
        &f.dir.path().join("exec-approvals.json"),
        r#"{"version":1,"defaults":{"security":"allowlist","autoAllowSkills":true}}"#,
    );
    assert_eq!(f.argv(&shell("skill x")), Ok(vec![f.bin("skill"), "x".into()]));
    for denied in [f.bin("skill"), "./bin/skill".into(), "other".into(), "gone".into()] {
        assert_eq!(f.argv(&shell(&denied)), Err(ErrorCode::SystemRunDenied), "{denied}");
    }
    // Another gateway has other skills.
    f.door.name_skills(Vec::new());
    assert_eq!(f.argv(&shell("skill x")), Err(ErrorCode::SystemRunDenied));
}

#[test]
fn an_explanation_names_each_part() {
    let f = with_programs(&["one", "three"], LISTED);
    let explain = |text: &str| {
        let question = Question {
            invocation: &shell(text).invocation.unwrap(),
            agent: None,
            workdir: "",
            requested: Requested { security: Security::Full, ask: policy::Ask::Off },
            strict_inline_eval: false,
        };
        f.door.explain(&question).unwrap()
    };
    let explanation = explain("one | three");
    assert_eq!((explanation.verdict, explanation.reasons.as_slice()), ("denied", &["allowlist-miss"][..]));
    let parts: Vec<_> =
        explanation.segments.iter().map(|part| (part.program.as_str(), part.satisfied)).collect();
    assert_eq!(parts, [("one", true), ("three", false)]);
    let real = std::fs::canonicalize(f.bin("three")).unwrap();
    let add = format!("to allow it with any arguments: `node-host policy allow {}`", real.display());
    assert_eq!(explanation.segments[1].add.as_ref(), Some(&add));
    assert_eq!(explain("one").verdict, "run");
    assert_eq!(explain("one $(id)").unreadable.map(|u| u.label), Some("command-substitution"));
}
