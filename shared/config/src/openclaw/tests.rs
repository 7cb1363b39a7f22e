//! The tables of §1.6 and §0.1, bad values with their places, and edits that keep what people wrote.

use std::{fs, os::unix::fs::PermissionsExt};

use policy::safe_bins::CustomProfile;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    Config::parse(text).expect_err(text).to_string()
}

/// Security, ask and mode as words, `-` for none, and `+` where the reviewer is asked.
fn shown(exec: &ExecConfig) -> String {
    let security = exec.security.map_or("-", Security::as_str);
    let ask = exec.ask.map_or("-", Ask::as_str);
    let mode = exec.mode.map_or("-", Mode::as_str);
    let review = if exec.auto_review == AutoReview::On { "+" } else { "" };
    format!("{security} {ask} {mode}{review}")
}

/// A layer over the global one, both as the inside of an object.
fn layered(global: &str, agent: &str) -> ExecConfig {
    let text = format!(
        "{{ tools: {{ exec: {{ {global} }} }}, agents: {{ entries: {{ a: {{ tools: {{ exec: {{ {agent} }} }} }} }} }} }}"
    );
    parse(&text).exec(Some("a"))
}

#[test]
fn agents_with_their_own_policy_are_named_with_their_words() {
    let config = parse(
        "{ tools: { exec: { security: 'deny' } }, agents: {
            entries: {
                a: { tools: { exec: { security: 'full' } } },
                b: { tools: { exec: { host: 'node' } } },
                c: {},
                d: { tools: { exec: { mode: 'auto' } } },
                default: { tools: { exec: { security: 'full' } } },
            },
            list: [{ id: 'e', tools: { exec: { security: 'allowlist', ask: 'always' } } },
                { id: 'main', tools: { exec: { ask: 'off' } } }],
        } }",
    );
    let found: Vec<_> = config.agents_with_policy().collect();
    let want = [
        ("a", "security=full"),
        ("d", "mode=auto"),
        ("e", "security=allowlist ask=always"),
        ("main", "ask=off"),
    ];
    assert_eq!(found, want.map(|(agent, words)| (agent, words.to_owned())));
    let all = config.exec_for_all();
    assert_eq!((all.security, all.ask), (Some(Security::Deny), None));
    assert_eq!(config.exec(None).ask, Some(Ask::Off));
}

#[test]
fn nothing_configured() {
    let want = ExecConfig {
        security: None,
        ask: None,
        auto_review: AutoReview::Off,
        reviewer: None,
        approval_running_notice_ms: None,
        notify_on_exit: None,
        notify_on_exit_empty_success: None,
        timeout_seconds: None,
        background_ms: None,
        mode: None,
        host: None,
        node: None,
        safe_bins: SafeBinsConfig::default(),
        strict_inline_eval: false,
        command_highlighting: false,
        skill_bins: Vec::new(),
    };
    for text in [
        "{}",
        "{ tools: {}, agents: {}, skills: {} }",
        "{ tools: { exec: {} }, other: [1, .5, +0x2, Infinity] }",
    ] {
        assert_eq!(parse(text), Config { ..Config::default() }, "{text}");
        assert_eq!(parse(text).exec(None), want, "{text}");
        assert_eq!(parse(text).exec(Some("x")), want, "{text}");
    }
}

#[test]
fn modes_and_layers() {
    let table = [
        // Global, agent, what holds.
        ("mode: 'deny'", "", "deny off deny"),
        ("mode: 'allowlist'", "", "allowlist off allowlist"),
        ("mode: 'ask'", "", "allowlist on-miss ask"),
        ("mode: 'auto'", "", "allowlist on-miss auto+"),
        ("mode: 'full'", "", "full off full"),
        ("security: 'allowlist'", "", "allowlist - -"),
        ("ask: 'always'", "", "- always -"),
        ("security: 'deny', ask: 'on-miss'", "", "deny on-miss -"),
        // A mode replaces all three.
        ("security: 'deny', ask: 'always'", "mode: 'full'", "full off full"),
        ("mode: 'auto'", "mode: 'ask'", "allowlist on-miss ask"),
        ("mode: 'ask'", "mode: 'auto'", "allowlist on-miss auto+"),
        // One of the two drops the mode and the reviewer; the other one stays what it was.
        ("mode: 'auto'", "ask: 'always'", "allowlist always -"),
        ("mode: 'auto'", "ask: 'on-miss'", "allowlist on-miss -"),
        ("mode: 'full'", "security: 'allowlist'", "allowlist off -"),
        ("mode: 'ask'", "security: 'full'", "full on-miss -"),
        ("security: 'allowlist'", "ask: 'on-miss'", "allowlist on-miss -"),
        ("security: 'allowlist', ask: 'off'", "security: 'deny'", "deny off -"),
        ("mode: 'auto'", "host: 'node'", "allowlist on-miss auto+"),
    ];
    for (global, agent, want) in table {
        assert_eq!(shown(&layered(global, agent)), want, "{global} / {agent}");
    }
}

#[test]
fn each_agent_has_its_own_layer_in_both_forms() {
    let config = parse(
        "{
            tools: { exec: { mode: 'ask' } },
            agents: {
                entries: { one: { tools: { exec: { mode: 'deny' } } }, plain: { model: 'x' } },
                list: [{ id: 'two', tools: { exec: { security: 'full' } } }, { id: 'main', tools: { exec: { ask: 'always' } } }],
            },
        }",
    );
    let table = [
        (Some("one"), "deny off deny"),
        (Some("plain"), "allowlist on-miss ask"),
        (Some("unknown"), "allowlist on-miss ask"),
        (Some("two"), "full on-miss -"),
        (Some("main"), "allowlist always -"),
        (None, "allowlist always -"),
    ];
    for (agent, want) in table {
        assert_eq!(shown(&config.exec(agent)), want, "{agent:?}");
    }
}

#[test]
fn the_other_keys_and_their_layers() {
    let config = parse(
        r#"
        // The owner's notes.
        {
            "tools": { exec: {
                host: "Auto", node: 'desk', safeBins: ["cut", 'rg'], safeBinTrustedDirs: ['/opt/a'],
                safeBinProfiles: { rg: { maxPositional: 1 }, JQL: { deniedFlags: ['-x',], } },
                strictInlineEval: true, commandHighlighting: true, approvalRunningNoticeMs: 250,
                timeoutSeconds: 5, /* not ours */
            } },
            agents: { entries: { a: { tools: { exec: {
                host: 'gateway', safeBins: [], safeBinTrustedDirs: ['/opt/b', '/opt/a'],
                safeBinProfiles: { RG: { minPositional: 2, allowedValueFlags: ['-m'] } },
                strictInlineEval: false, commandHighlighting: false,
            } } } } },
            skills: { bins: ['deploy'] },
        }"#,
    );
    let denied = CustomProfile { denied_flags: vec!["-x".into()], ..CustomProfile::default() };
    let global = ExecConfig {
        security: None,
        ask: None,
        auto_review: AutoReview::Off,
        reviewer: None,
        approval_running_notice_ms: Some(250),
        notify_on_exit: None,
        notify_on_exit_empty_success: None,
        timeout_seconds: Some(5),
        background_ms: None,
        mode: None,
        host: Some("auto".into()),
        node: Some("desk".into()),
        safe_bins: SafeBinsConfig {
            names: Some(vec!["cut".into(), "rg".into()]),
            trusted_dirs: vec!["/opt/a".into()],
            profiles: BTreeMap::from([
                ("rg".into(), CustomProfile { max_positional: Some(1), ..CustomProfile::default() }),
                ("jql".into(), denied.clone()),
            ]),
        },
        strict_inline_eval: true,
        command_highlighting: true,
        skill_bins: vec!["deploy".into()],
    };
    assert_eq!(config.exec(None), global);
    let own = CustomProfile {
        min_positional: Some(2),
        allowed_value_flags: vec!["-m".into()],
        ..CustomProfile::default()
    };
    let agent = ExecConfig {
        host: Some("gateway".into()),
        safe_bins: SafeBinsConfig {
            names: Some(Vec::new()),
            trusted_dirs: vec!["/opt/a".into(), "/opt/b".into()],
            profiles: BTreeMap::from([("rg".into(), own), ("jql".into(), denied)]),
        },
        command_highlighting: false,
        ..global
    };
    assert_eq!(config.exec(Some("a")), agent);
}

#[test]
fn signatures_are_required_where_it_is_written() {
    let table = [
        ("{}", false),
        ("{ approvals: {} }", false),
        ("{ approvals: { requireSigned: false, exec: { enabled: true } } }", false),
        ("{ approvals: { requireSigned: true } }", true),
        // Only at the top: an agent cannot lift it.
        ("{ tools: { approvals: { requireSigned: true } } }", false),
    ];
    for (text, want) in table {
        assert_eq!(parse(text).require_signed(), want, "{text}");
    }
}

#[test]
fn bad_values_are_refused_with_their_place() {
    let table = [
        (
            "{ tools: { exec: { security: 'bogus' } } }",
            "line 1: tools.exec.security: expected one of deny, allowlist, full",
        ),
        (
            "{\n tools: {\n  exec: {\n   // why\n   ask: 'On-Miss' } } }",
            "line 5: tools.exec.ask: expected one of off, on-miss, always",
        ),
        ("{ approvals: true }", "line 1: approvals: expected an object"),
        (
            "{\n approvals: { requireSigned: 'true' } }",
            "line 2: approvals.requireSigned: expected true or false",
        ),
        (
            "{ tools: { exec: { mode: 'yolo' } } }",
            "line 1: tools.exec.mode: expected one of deny, allowlist, ask, auto, full",
        ),
        ("{ tools: { exec: { mode: null } } }", "line 1: tools.exec.mode: expected a text"),
        ("{ tools: { exec: { security: null } } }", "line 1: tools.exec.security: expected a text"),
        (
            "{ tools: { exec: {\n mode: 'ask',\n ask: 'off' } } }",
            "line 2: tools.exec.mode: `mode` stands for `security` and `ask`: write the one or the other two",
        ),
        (
            "{ tools: { exec: { host: 'moon' } } }",
            "line 1: tools.exec.host: expected one of auto, sandbox, gateway, node",
        ),
        ("{ tools: { exec: { node: ' ' } } }", "line 1: tools.exec.node: the text is blank"),
        ("{ tools: { exec: { safeBins: 'cut' } } }", "line 1: tools.exec.safeBins: expected a list"),
        ("{ tools: { exec: { safeBins: [\n1] } } }", "line 2: tools.exec.safeBins.0: expected a text"),
        (
            "{ tools: { exec: { safeBinTrustedDirs: {} } } }",
            "line 1: tools.exec.safeBinTrustedDirs: expected a list",
        ),
        (
            "{ tools: { exec: { safeBinProfiles: [] } } }",
            "line 1: tools.exec.safeBinProfiles: expected an object",
        ),
        (
            "{ tools: { exec: { safeBinProfiles: { x: { maxPositional: NaN } } } } }",
            "line 1: tools.exec.safeBinProfiles.x.maxPositional: expected a whole number, 0 or more",
        ),
        (
            "{ tools: { exec: { safeBinProfiles: { x: { maxPositional: -1 } } } } }",
            "line 1: tools.exec.safeBinProfiles.x.maxPositional: expected a whole number, 0 or more",
        ),
        (
            "{ tools: { exec: { safeBinProfiles: { x: { deniedFlag: [] } } } } }",
            "line 1: tools.exec.safeBinProfiles.x.deniedFlag: a profile has no such member",
        ),
        (
            "{ tools: { exec: { safeBinProfiles: { x: {}, X: {} } } } }",
            "line 1: tools.exec.safeBinProfiles.x: this profile is there twice",
        ),
        (
            "{ tools: { exec: { strictInlineEval: 'yes' } } }",
            "line 1: tools.exec.strictInlineEval: expected true or false",
        ),
        (
            "{ tools: { exec: { commandHighlighting: 1 } } }",
            "line 1: tools.exec.commandHighlighting: expected true or false",
        ),
        ("{ tools: [] }", "line 1: tools: expected an object"),
        ("{ tools: { exec: null } }", "line 1: tools.exec: expected an object"),
        ("[]", "line 1: : expected an object"),
        ("{ agents: { entries: { a: 1 } } }", "line 1: agents.entries.a: expected an object"),
        ("{ agents: { list: [{ tools: {} }] } }", "line 1: agents.list.0: the agent has no `id`"),
        (
            "{ agents: { entries: { a: {} }, list: [\n{ id: 'a' }] } }",
            "line 2: agents.list.0.id: this agent is there twice",
        ),
        (
            "{ agents: { list: [{ id: 'a', tools: { exec: { ask: 7 } } }] } }",
            "line 1: agents.list.0.tools.exec.ask: expected a text",
        ),
        ("{ skills: { bins: [''] } }", "line 1: skills.bins.0: the text is blank"),
    ];
    for (text, want) in table {
        assert_eq!(refused(text), want, "{text}");
    }
}

#[test]
fn text_that_is_no_json5_is_refused_with_its_place() {
    let table = [
        ("", "line 1:1: EOF parsing value"),
        ("{", "line 1:1: EOF parsing object"),
        ("{} x", "line 1:4: trailing characters"),
        ("{\n a: 1 b: 2 }", "line 2:7: expected comma"),
        ("{ a: 1,\n 'a': 2 }", "line 2:2: the member `a` is there twice"),
        ("{ tools: { exec: { mode: 'deny' } }, tools: {} }", "line 1:38: the member `tools` is there twice"),
    ];
    for (text, want) in table {
        assert_eq!(refused(text), want, "{text:?}");
    }
    let too_long = refused(&" ".repeat(usize::try_from(MAX_CONFIG_BYTES).unwrap() + 1));
    assert_eq!(too_long, "line 1:1: the text is longer than 1048576 bytes");
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), ("{a:", "}")] {
        let nested = |levels: usize| format!("{{x:{}1{}}}", open.repeat(levels), close.repeat(levels));
        assert_eq!(parse(&nested(63)), Config::default());
        assert!(refused(&nested(64)).contains("nested more than 64 levels"));
        assert!(refused(&nested(200_000)).contains("nested more than 64 levels"));
        assert!(refused(&open.repeat(300_000)).contains("nested more than 64 levels"));
    }
}

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("openclaw.json");
    assert_eq!(Config::load(&path).unwrap(), Config::default());

    fs::write(&path, "{ tools: { exec: { mode: 'ask' } } }").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(shown(&Config::load(&path).unwrap().exec(None)), "allowlist on-miss ask");

    let message = || Config::load(&path).unwrap_err().to_string();
    fs::write(&path, "{ tools: { exec: {\n mode: 'x' } } }").unwrap();
    let want = "openclaw.json:2: tools.exec.mode: expected one of deny, allowlist, ask, auto, full";
    assert!(message().ends_with(want), "{}", message());
    fs::write(&path, b"{\n  a: '\xff' }").unwrap();
    assert!(message().ends_with("openclaw.json:2:7: the text is not UTF-8"), "{}", message());

    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(Config::load(&path), Err(ConfigError::Read(_))));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(Config::load(&path), Err(ConfigError::Read(_))));
}

#[test]
fn edits_keep_comments_and_layout() {
    let text = "\
// Mine.
{
  \"tools\": {
    // Be careful.
    \"exec\": { \"mode\": \"ask\", /* for now */ \"host\": \"auto\" }, // end
  },
  other: [1,2,  3], 'quoted': .5,
}
";
    let exec = |name| ["tools", "exec", name];
    let edit = |text: &str, path: &[&str], value| Config::edit(text, path, value).unwrap();

    let changed = edit(text, &exec("mode"), json!("deny"));
    assert_eq!(changed, text.replace("\"ask\"", "\"deny\""));
    assert_eq!(edit(text, &exec("mode"), json!("ask")), text);
    assert_eq!(edit(text, &exec("gone"), json!(null)), text);
    assert_eq!(edit(text, &["a", "b", "c"], json!(null)), text);

    let table = [
        (&exec("strictInlineEval")[..], json!(true)),
        (&exec("safeBins"), json!(["cut", "tr"])),
        (&exec("safeBinProfiles"), json!({ "rg": { "maxPositional": 0, "deniedFlags": [] } })),
        (&exec("mode"), json!(null)),
        (&["agents", "entries", "a b", "tools", "exec", "mode"], json!("deny")),
        (&["other"], json!(7)),
    ];
    for (path, value) in table {
        let changed = edit(text, path, value.clone());
        let mut found = &tree::parse(&changed).unwrap();
        for name in path {
            found = found.get(name).unwrap_or(&Value::Null);
        }
        assert_eq!(found, &value, "{changed}");
        for comment in ["// Mine.", "// Be careful.", "// end", "'quoted': .5,"] {
            assert!(changed.contains(comment), "{comment} is lost in {changed}");
        }
    }
    let made = edit("", &exec("mode"), json!("ask"));
    assert_eq!(shown(&parse(&made).exec(None)), "allowlist on-miss ask");
    assert_eq!(made.lines().count(), 7, "{made}");
}

#[test]
fn what_cannot_be_edited_says_what_to_do() {
    let table = [
        ("[1]", &["a"][..], "a cannot be changed in place: the file holds no object"),
        (
            "{ a: 1 }",
            &["a", "b"],
            "a.b cannot be changed in place: something else than an object is on the way",
        ),
        (
            "{ a: [] }",
            &["a", "b"],
            "a.b cannot be changed in place: something else than an object is on the way",
        ),
        ("{}", &[], " cannot be changed in place: no key was named"),
    ];
    for (text, path, want) in table {
        let error = Config::edit(text, path, json!(1)).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert!(error.hint().contains("by hand"));
    }
    // JSON5 that the editor does not read alike.
    for text in
        ["{ a: 'x\\\ny', b: 1 }", "{ \\u0061: 1 }", "{ a:\u{a0}1,\u{2028}b: 2 }", "{ $a_: 1, \u{e9}: 2 }"]
    {
        match Config::edit(text, &["c"], json!(1)) {
            Ok(edited) => assert_eq!(tree::parse(&edited).unwrap()["c"], json!(1), "{edited}"),
            Err(error) => assert!(error.hint().contains("by hand"), "{error}"),
        }
    }
    assert!(matches!(Config::edit("{", &["a"], json!(1)), Err(ConfigError::Malformed { .. })));
}

#[test]
fn background_commands() {
    // What all agents have, what one has; then its limit, its time in the foreground, and what it is told.
    type Found = (Option<u64>, Option<u64>, Option<bool>, Option<bool>);
    let table: [(&str, &str, Found); 9] = [
        ("", "", (None, None, None, None)),
        ("timeoutSeconds: 5, backgroundMs: 0", "", (Some(5), Some(0), None, None)),
        ("timeoutSeconds: 5", "timeoutSeconds: 6", (Some(6), None, None, None)),
        ("timeoutSeconds: 5", "timeoutSeconds: 0", (Some(5), None, None, None)),
        ("timeoutSeconds: -1", "", (None, None, None, None)),
        ("timeout: 7", "", (Some(7), None, None, None)),
        ("timeout: 7, timeoutSec: 8", "", (Some(8), None, None, None)),
        ("timeout: 7, timeoutSec: 8, timeoutSeconds: 9", "", (Some(9), None, None, None)),
        (
            "notifyOnExit: true",
            "notifyOnExit: false, notifyOnExitEmptySuccess: true",
            (None, None, Some(false), Some(true)),
        ),
    ];
    for (global, agent, want) in table {
        let exec = layered(global, agent);
        let found = (
            exec.timeout_seconds,
            exec.background_ms,
            exec.notify_on_exit,
            exec.notify_on_exit_empty_success,
        );
        assert_eq!(found, want, "{global} / {agent}");
    }
    let bad = [
        ("timeoutSeconds: 1.5", "timeoutSeconds: expected a whole number"),
        ("timeoutSeconds: 1, timeout: 'x'", "timeout: expected a whole number"),
        ("backgroundMs: -1", "backgroundMs: expected a whole number, 0 or more"),
        ("notifyOnExit: 1", "notifyOnExit: expected true or false"),
    ];
    for (exec, want) in bad {
        let found = refused(&format!("{{ tools: {{ exec: {{ {exec} }} }} }}"));
        assert_eq!(found, format!("line 1: tools.exec.{want}"));
    }
}
