//! Adding and removing rules, and noting their use.

use super::*;
use crate::document::edit::Usage;

fn with_args(pattern: &str, arg_pattern: &str) -> AllowEntry {
    AllowEntry { arg_pattern: Some(arg_pattern.into()), ..rule(pattern) }
}

fn patterns(document: &ApprovalsDocument, agent: &str) -> Vec<String> {
    let entry = document.agents.get(agent).cloned().unwrap_or_default();
    entry.allowlist.into_iter().map(|rule| rule.pattern).collect()
}

#[test]
fn a_rule_is_added_once() {
    let mut document = ApprovalsDocument::default();
    let table = [
        ("*", rule(" rg "), true),
        ("*", rule("rg"), false),
        ("*", with_args("rg", ""), false),
        ("*", with_args("rg", "^x$"), true),
        ("*", with_args(" rg", "^x$"), false),
        ("*", rule("RG"), true),
        ("main", rule("rg"), true),
        ("default", rule("rg"), false),
        ("main", rule(" "), false),
        ("__proto__", rule("rg"), false),
    ];
    for (agent, entry, want) in table {
        let before = document.clone();
        assert_eq!(document.add_entry(agent, entry.clone()), want, "{agent} {entry:?}");
        assert_eq!(document != before, want, "{agent} {entry:?}");
    }
    assert_eq!(patterns(&document, "*"), ["rg", "rg", "RG"]);
    assert_eq!(patterns(&document, "main"), ["rg"]);
    assert_eq!(parse(&document.to_text()), document);
}

#[test]
fn a_rule_by_hand_is_added_beside_one_from_allow_always() {
    let mut document = parse(
        r#"{"version":1,"agents":{"main":{"allowlist":[{"pattern":"rg","source":"allow-always"}, "ls"]}}}"#,
    );
    assert!(!document.add_entry("main", AllowEntry { source: Some(AllowAlways), ..rule("rg") }));
    assert!(document.add_entry("main", rule("rg")));
    assert!(!document.add_entry("main", AllowEntry { source: Some(AllowAlways), ..rule("ls") }));
}

#[test]
fn removing_takes_all_that_is_meant() {
    let text = r#"{"version":1,"agents":{"main":{"ask":"off","allowlist":
        ["rg", {"pattern":" rg","argPattern":"^x$"}, {"pattern":"rg","argPattern":"^y$"}, "ls"]}}}"#;
    let table: [(&str, &str, Option<&str>, &[&str]); 7] = [
        ("main", "rg", None, &["ls"]),
        ("default", " rg ", None, &["ls"]),
        ("main", "rg", Some("^x$"), &["rg", "rg", "ls"]),
        ("main", "rg", Some(""), &[" rg", "rg", "ls"]),
        ("main", "rg", Some("^z$"), &["rg", " rg", "rg", "ls"]),
        ("main", "r", None, &["rg", " rg", "rg", "ls"]),
        ("*", "rg", None, &["rg", " rg", "rg", "ls"]),
    ];
    for (agent, pattern, arg_pattern, want) in table {
        let mut document = parse(text);
        let changed = document.remove_entry(agent, pattern, arg_pattern);
        assert_eq!(patterns(&document, "main"), want, "{agent} {pattern} {arg_pattern:?}");
        assert_eq!(changed, want.len() < 4, "{agent} {pattern} {arg_pattern:?}");
    }
}

#[test]
fn a_use_is_noted_at_the_rule_that_decided() {
    let text = r#"{"version":1,"agents":{
        "*":{"allowlist":["rg"]},
        "main":{"allowlist":["rg", "git", {"pattern":"git","argPattern":"sha256:cwd-argv:v1:00"}]}}}"#;
    let usage = Usage { at_ms: 5, command: "git log", resolved_path: Some("/usr/bin/git") };
    let noted = |agent: Option<&str>, pattern: &str, arg_pattern: Option<&str>| {
        let mut document = parse(text);
        let found = document.record_usage(agent, pattern, arg_pattern, &usage);
        let mut at = Vec::new();
        for (agent, entry) in &document.agents {
            for (index, rule) in entry.allowlist.iter().enumerate() {
                if let Some(time) = &rule.last_used_at {
                    let shown = (rule.last_used_command.clone(), rule.last_resolved_path.clone());
                    at.push((format!("{agent} {index} {time}"), shown));
                }
            }
        }
        assert_eq!(found, !at.is_empty());
        at
    };
    let path = Some("/usr/bin/git".to_owned());
    let command = Some("git log".to_owned());
    let plain = |at: &str| vec![(at.to_owned(), (command.clone(), path.clone()))];
    assert_eq!(noted(None, "rg", None), plain("* 0 5"));
    assert_eq!(noted(Some("other"), "rg", None), plain("* 0 5"));
    assert_eq!(noted(None, " git ", Some("")), plain("main 1 5"));
    assert_eq!(noted(Some("default"), "git", None), plain("main 1 5"));
    let bound = Some("sha256:cwd-argv:v1:00");
    assert_eq!(noted(Some("main"), "git", bound), [("main 2 5".to_owned(), (None, path.clone()))]);
    assert_eq!(noted(Some("other"), "git", None), []);
    assert_eq!(noted(None, "ls", None), []);

    let mut document = parse(text);
    let long = "é".repeat(100_000);
    document.record_usage(None, "git", None, &Usage { command: &long, ..usage });
    assert!(document.to_text().len() < 4096);
}
