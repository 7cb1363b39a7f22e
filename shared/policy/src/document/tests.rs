//! Both forms, the refusals with their places, and writing back.

mod edit;

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

use super::*;

fn parse(text: &str) -> ApprovalsDocument {
    ApprovalsDocument::parse(text).unwrap()
}

fn refusal(text: &str) -> (usize, usize, String) {
    match ApprovalsDocument::parse(text).unwrap_err() {
        DocumentError::Malformed { line, column, reason } => (line, column, reason),
        other @ DocumentError::TooLarge { .. } => panic!("{other}"),
    }
}

fn rule(pattern: &str) -> AllowEntry {
    AllowEntry { pattern: pattern.into(), ..AllowEntry::default() }
}

const FULL: &str = r#"{
  "version": 1,
  "futureMember": {"a": [1, null]},
  "socket": {"path": "/s/a.sock", "token": "very-secret", "mode": 384},
  "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": true},
  "agents": {
    "*": {"allowlist": ["/usr/bin/git"]},
    "main": {
      "security": "full", "note": "kept",
      "allowlist": [{
        "pattern": " rg ", "argPattern": "^x$", "source": "allow-always", "id": "i", "commandText": "rg x",
        "lastUsedAt": 1700000000000, "lastUsedCommand": null, "lastResolvedPath": "/usr/bin/rg", "tag": true,
        "match": ["rg x", ""], "noMatch": ["rg 'y\n'"]
      }, {"pattern": "ls", "source": "somebody"}],
      "mcpTools": [{"server": "s", "tool": "t", "source": "allow-always", "addedAt": 1}]
    }
  }
}"#;

#[test]
fn the_stored_form_is_read_whole() {
    let extra = |value: Value| value.as_object().unwrap().clone();
    let want = ApprovalsDocument {
        socket: Some(SocketEntry {
            path: Some("/s/a.sock".into()),
            token: Some("very-secret".into()),
            extra: extra(json!({"mode": 384})),
        }),
        defaults: PolicyFields {
            security: Some(Security::Allowlist),
            ask: Some(Ask::OnMiss),
            ask_fallback: Some(AskFallback::Deny),
            auto_allow_skills: Some(true),
            extra: Map::new(),
        },
        agents: BTreeMap::from([
            ("*".into(), AgentEntry { allowlist: vec![rule("/usr/bin/git")], ..AgentEntry::default() }),
            (
                "main".into(),
                AgentEntry {
                    fields: PolicyFields {
                        security: Some(Security::Full),
                        extra: extra(json!({"note": "kept"})),
                        ..PolicyFields::default()
                    },
                    allowlist: vec![
                        AllowEntry {
                            pattern: " rg ".into(),
                            arg_pattern: Some("^x$".into()),
                            source: Some(AllowAlways),
                            id: Some("i".into()),
                            last_used_at: Some(1_700_000_000_000_u64.into()),
                            last_used_command: None,
                            last_resolved_path: Some("/usr/bin/rg".into()),
                            examples_match: vec!["rg x".into(), String::new()],
                            examples_no_match: vec!["rg 'y\n'".into()],
                            extra: extra(json!({"tag": true})),
                        },
                        rule("ls"),
                    ],
                    mcp_tools: vec![
                        json!({"server": "s", "tool": "t", "source": "allow-always", "addedAt": 1}),
                    ],
                },
            ),
        ]),
        extra: extra(json!({"futureMember": {"a": [1, null]}})),
    };
    assert_eq!(parse(FULL), want);
    assert_eq!(parse(&want.to_text()), want);
}

#[test]
fn malformed_documents_are_refused_with_their_place() {
    let table = [
        ("", 1, 0, "EOF while parsing"),
        ("null", 1, 4, "invalid type: null"),
        ("{}", 1, 2, "the member `version` is missing"),
        (r#"{"version":2}"#, 1, 12, "version: only version 1 is known"),
        (r#"{"version":"1"}"#, 1, 14, "invalid type: string"),
        (
            "{\"version\":1,\n \"defaults\":{\"security\":\"bogus\"}}",
            2,
            32,
            "defaults.security: expected one of deny",
        ),
        (r#"{"version":1,"agents":{"a":{"ask":"Always"}}}"#, 1, 42, "agents.a.ask: expected one of off"),
        (
            r#"{"version":1,"agents":{"a":{"askFallback":"x"}}}"#,
            1,
            45,
            "agents.a.askFallback: expected one of",
        ),
        (r#"{"version":1,"agents":{"a":{"security":null}}}"#, 1, 43, "invalid type: null"),
        (r#"{"version":1,"agents":{"a":{"autoAllowSkills":"yes"}}}"#, 1, 51, "invalid type: string"),
        (
            r#"{"version":1,"agents":{"a":{"allowlist":["ok"," "]}}}"#,
            1,
            49,
            "agents.a.allowlist.1: a rule needs",
        ),
        (
            r#"{"version":1,"agents":{"a":{"allowlist":[{"pattern":""}]}}}"#,
            1,
            56,
            "agents.a.allowlist.0: a rule needs",
        ),
        (r#"{"version":1,"agents":{"a":{"allowlist":[{}]}}}"#, 1, 43, "agents.a.allowlist.0: a rule needs"),
        (r#"{"version":1,"agents":{"a":{"allowlist":[7]}}}"#, 1, 42, "invalid type: integer"),
        (r#"{"version":1,"agents":{"a":{"allowlist":{}}}}"#, 1, 41, "invalid type: map"),
        (
            r#"{"version":1,"agents":{"a":{"allowlist":[{"pattern":"x","match":"x"}]}}}"#,
            1,
            67,
            "invalid type: string",
        ),
        (
            r#"{"version":1,"agents":{"a":{"allowlist":[{"pattern":"x","noMatch":[1]}]}}}"#,
            1,
            68,
            "invalid type: integer",
        ),
        (
            r#"{"version":1,"agents":{"a":{"allowlist":[{"pattern":"x","id":1}]}}}"#,
            1,
            62,
            "invalid type: integer",
        ),
        (r#"{"version":1,"agents":{"a":{"mcpTools":["x"]}}}"#, 1, 44, "agents.a.mcpTools: a grant is"),
        (r#"{"version":1,"agents":{"__proto__":{}}}"#, 1, 35, "agents.__proto__: this name is not allowed"),
        (r#"{"version":1,"agents":{"a":{},"a":{}}}"#, 1, 34, "agents.a: the member is there twice"),
        (
            r#"{"version":1,"defaults":{"security":"deny","security":"full"}}"#,
            1,
            53,
            "defaults.security: the member",
        ),
        (r#"{"version":1} x"#, 1, 15, "trailing characters"),
        (r#"{"version":1,}"#, 1, 14, "trailing comma"),
    ];
    for (text, line, column, reason) in table {
        let found = refusal(text);
        assert!(found.2.starts_with(reason), "{text}: {found:?}");
        assert_eq!((found.0, found.1.abs_diff(column) <= 1), (line, true), "{text}: {found:?}");
        assert!(!found.2.contains(" at line "), "{found:?}");
    }
}

#[test]
fn reading_is_bounded() {
    let long = " ".repeat(MAX_DOCUMENT_BYTES + 1);
    assert_eq!(
        ApprovalsDocument::parse(&long),
        Err(DocumentError::TooLarge { bytes: MAX_DOCUMENT_BYTES + 1 })
    );
    let deep = format!(r#"{{"version":1,"x":{}"#, "[".repeat(100_000));
    assert!(refusal(&deep).2.contains("recursion limit"));
    let examples = |count: usize, length: usize| {
        let texts = vec!["é".repeat(length); count];
        json!({"version": 1, "agents": {"a": {"allowlist": [{"pattern": "x", "noMatch": texts}]}}})
            .to_string()
    };
    parse(&examples(MAX_EXAMPLES, MAX_EXAMPLE_CHARS));
    let place = "agents.a.allowlist.0.noMatch: ";
    assert_eq!(refusal(&examples(MAX_EXAMPLES + 1, 1)).2, format!("{place}more than 32 examples"));
    let long = refusal(&examples(1, MAX_EXAMPLE_CHARS + 1)).2;
    assert_eq!(long, format!("{place}an example of more than 4096 characters"));
    let name = format!("a\u{1b}\u{202e}{}", "x".repeat(5000));
    let text = format!("{}", json!({"version": 1, "agents": {name: {"ask": "no"}}}));
    let (_, _, reason) = refusal(&text);
    assert!(reason.len() < 1024 && !reason.contains(['\u{1b}', '\u{202e}']), "{reason}");
}

#[test]
fn an_update_is_closed_and_its_unknown_words_are_unset() {
    let update = ApprovalsDocument::parse_update(
        r#"{"version":1,"defaults":{"ask":"sometimes","security":"deny"},"agents":{"main":{"security":"bogus"}}}"#,
    )
    .unwrap();
    assert_eq!(update.unset, ["defaults.ask", "agents.main.security"]);
    assert_eq!(update.document.resolve(None).security, Security::Deny);
    for text in [
        r#"{"version":1,"other":1}"#,
        r#"{"version":1,"defaults":{"allowlist":[]}}"#,
        r#"{"version":1,"socket":{"mode":1}}"#,
        r#"{"version":1,"agents":{"a":{"note":1}}}"#,
        r#"{"version":1,"agents":{"a":{"allowlist":[{"pattern":"x","tag":1}]}}}"#,
        r#"{"version":1,"agents":{"a":{"mcpTools":[{"server":"s","tool":"t","x":1}]}}}"#,
        r#"{"version":1,"defaults":{"askFallback":"bogus"}}"#,
        r#"{"version":1,"defaults":{"security":5}}"#,
    ] {
        assert!(ApprovalsDocument::parse_update(text).is_err(), "{text}");
    }
}

#[test]
fn the_old_name_of_the_main_agent_is_folded() {
    let found = parse(
        r#"{"version":1,"agents":{
            "default":{"security":"deny","ask":"always","allowlist":["GIT","ls"],"x":1,"y":1},
            "main":{"ask":"off","allowlist":["git",{"pattern":"git","argPattern":"^log$"}],"x":2}}}"#,
    );
    let want = parse(
        r#"{"version":1,"agents":{"main":{"security":"deny","ask":"off","x":2,"y":1,
            "allowlist":["git",{"pattern":"git","argPattern":"^log$"},"ls"]}}}"#,
    );
    assert_eq!(found, want);
    let alone = parse(r#"{"version":1,"agents":{"default":{"security":"deny"}}}"#);
    for agent in [None, Some("default"), Some("main")] {
        assert_eq!(alone.resolve(agent).security, Security::Deny, "{agent:?}");
    }
    assert_eq!(alone.resolve(Some("other")).security, Security::Full);
}

#[test]
fn levels_are_resolved_per_field() {
    let built_in = HostPolicy {
        security: Security::Full,
        ask: Ask::Off,
        ask_fallback: AskFallback::Deny,
        auto_allow_skills: false,
        allowlist: Vec::new(),
    };
    assert_eq!(ApprovalsDocument::default().resolve(None), built_in);
    let document = parse(
        r#"{"version":1,
            "defaults":{"security":"deny","ask":"always","askFallback":"full","autoAllowSkills":true},
            "agents":{"*":{"security":"allowlist","autoAllowSkills":false,"allowlist":["a"]},
                      "x":{"security":"full","allowlist":["b"]}}}"#,
    );
    let mut want = HostPolicy {
        security: Security::Full,
        ask: Ask::Always,
        ask_fallback: AskFallback::Full,
        auto_allow_skills: false,
        allowlist: vec![rule("a"), rule("b")],
    };
    assert_eq!(document.resolve(Some("x")), want);
    want.security = Security::Allowlist;
    want.allowlist.pop();
    for agent in [None, Some("*"), Some("unknown"), Some("")] {
        assert_eq!(document.resolve(agent), want, "{agent:?}");
    }
    assert_eq!(HostPolicy::fail_closed().security, Security::Deny);
}

#[test]
fn the_token_is_never_shown_and_an_update_keeps_it() {
    let current = parse(FULL);
    assert!(current.to_text().contains("very-secret"));
    assert!(!current.redacted().to_text().contains("very-secret"));
    assert!(!format!("{current:?}").contains("very-secret"));
    let update = ApprovalsDocument::parse_update(r#"{"version":1,"socket":{"path":"/new"}}"#).unwrap();
    let socket = update.document.keeping_socket_of(&current).socket.unwrap();
    assert_eq!((socket.path.as_deref(), socket.token.as_deref()), (Some("/new"), Some("very-secret")));
    let empty = ApprovalsDocument::default().keeping_socket_of(&ApprovalsDocument::default());
    assert_eq!(empty, ApprovalsDocument::default());
}

#[test]
fn the_text_is_indented_by_two_and_ends_with_a_newline() {
    assert_eq!(ApprovalsDocument::default().to_text(), "{\n  \"version\": 1\n}\n");
}

#[test]
fn hashes_and_concurrent_updates() {
    let missing = "missing:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(hash_of(None), missing);
    assert_eq!(hash_of(Some("")), &missing[8..]);
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hash_of(Some("abc")), abc);
    let table = [
        (Some("abc"), None, Err(BaseHashError::Required)),
        (Some("abc"), Some(missing), Err(BaseHashError::Changed)),
        (Some("abc"), Some(abc), Ok(())),
        (None, None, Ok(())),
        (None, Some(missing), Ok(())),
        (None, Some(abc), Err(BaseHashError::Changed)),
    ];
    for (current, base, want) in table {
        assert_eq!(check_base_hash(current, base), want, "{current:?} {base:?}");
    }
}

fn any_fields() -> impl Strategy<Value = PolicyFields> {
    let words = (
        option::of(select(Security::ALL)),
        option::of(select(Ask::ALL)),
        option::of(select(AskFallback::ALL)),
    );
    (words, option::of(any::<bool>()), option::of(any::<i64>())).prop_map(
        |((security, ask, ask_fallback), auto_allow_skills, unknown)| PolicyFields {
            security,
            ask,
            ask_fallback,
            auto_allow_skills,
            extra: unknown.map(|number| ("later".to_owned(), json!({"n": [number]}))).into_iter().collect(),
        },
    )
}

fn any_rule() -> impl Strategy<Value = AllowEntry> {
    let examples = vec(".{0,6}", 0..3);
    ("[ -~é\\n]{0,6}[a-z*/]", option::of(".{0,6}"), any::<bool>(), option::of(any::<u64>()), examples)
        .prop_map(|(pattern, arg_pattern, always, used, examples_match)| AllowEntry {
            examples_match,
            pattern,
            last_used_command: arg_pattern.clone(),
            arg_pattern,
            source: always.then_some(AllowAlways),
            last_used_at: used.map(Into::into),
            ..AllowEntry::default()
        })
}

fn any_document() -> impl Strategy<Value = ApprovalsDocument> {
    let agent = (any_fields(), vec(any_rule(), 0..4)).prop_map(|(fields, allowlist)| AgentEntry {
        fields,
        allowlist,
        mcp_tools: Vec::new(),
    });
    let agents = proptest::collection::btree_map("[*]|main|[a-cé\"]{1,3}", agent, 0..4);
    (any_fields(), agents, option::of(".{0,8}")).prop_map(|(defaults, agents, token)| ApprovalsDocument {
        socket: token.map(|token| SocketEntry { token: Some(token), ..SocketEntry::default() }),
        defaults,
        agents,
        extra: Map::new(),
    })
}

proptest! {
    #[test]
    fn writing_and_reading_is_identity(document in any_document()) {
        let text = document.to_text();
        let back = ApprovalsDocument::parse(&text).unwrap();
        prop_assert_eq!(&back, &document);
        prop_assert_eq!(back.to_text(), text);
    }

    #[test]
    fn no_text_is_read_in_another_sense(text in "[{}\\[\\]\",:a-z*1 ]{0,40}") {
        if let Ok(document) = ApprovalsDocument::parse(&text) {
            prop_assert_eq!(ApprovalsDocument::parse(&document.to_text()), Ok(document));
        }
    }
}
