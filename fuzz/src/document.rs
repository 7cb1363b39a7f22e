//! The approvals document, in both of its forms. The input is its text.

use std::path::Path;

use policy::{
    AllowEntry, ApprovalsDocument, Ask, DocumentError, EffectivePolicy, Requested, Security,
    allowlist::{Allowlist, Target, check_entry},
    check_base_hash, hash_of,
};

use super::Pace;

/// Longest sentence that is expected, in characters.
const MAX_SENTENCE: usize = 2000;
const HOME: &str = "/home/u";

pub fn check(data: &[u8], _pace: Pace) {
    let text = String::from_utf8_lossy(data);
    match ApprovalsDocument::parse(&text) {
        Ok(document) => {
            let json: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(json.is_ok(), "a text that is no JSON is read: {json:?}");
            check_document(&document);
        }
        Err(error) => check_error(&error),
    }
    match ApprovalsDocument::parse_update(&text) {
        Ok(update) => {
            check_document(&update.document);
            for path in &update.unset {
                assert!(!path.chars().any(char::is_control), "{path:?}");
            }
        }
        Err(error) => check_error(&error),
    }
    let hash = hash_of(Some(&text));
    assert_eq!(check_base_hash(Some(&text), Some(&hash)), Ok(()));
    assert!(check_base_hash(None, Some(&hash)).is_err() && check_base_hash(Some(&text), None).is_err());
}

fn check_document(document: &ApprovalsDocument) {
    let text = document.to_text();
    let again = ApprovalsDocument::parse(&text);
    assert_eq!(again.as_ref(), Ok(document), "{text:?} reads otherwise");
    assert_eq!(again.map(|document| document.to_text()), Ok(text), "a second reading writes another text");
    let redacted = document.redacted();
    assert_eq!(redacted.clone().keeping_socket_of(document), *document, "the socket changes");
    let token = redacted.socket.and_then(|socket| socket.token);
    assert_eq!(token, None, "a secret is shown");
    assert_eq!(document.resolve(None), document.resolve(Some("main")), "calls without an agent are main's");
    let agents = document.agents.keys().map(|agent| Some(agent.as_str()));
    for agent in agents.chain([None, Some("nobody"), Some("*")]) {
        let host = document.resolve(agent);
        let requested = Requested { security: Security::Allowlist, ask: Ask::OnMiss };
        let policy = EffectivePolicy::combine(requested, &host);
        assert!(
            policy.security >= host.security && policy.ask >= host.ask,
            "{policy:?} is wider than {host:?}"
        );
        check_rules(&host.allowlist);
    }
    check_edits(document);
}

fn check_rules(entries: &[AllowEntry]) {
    let list = Allowlist::compile(entries, Some(Path::new(HOME)), &[("/bin".into(), "/usr/bin".into())]);
    let out_of_force: Vec<usize> = list.problems().iter().map(|problem| problem.index).collect();
    assert!(out_of_force.is_sorted_by(|a, b| a < b), "{out_of_force:?}");
    for problem in list.problems() {
        check_sentence(&problem.to_string());
    }
    assert_eq!(list.entries(), entries);
    let args = ["log", "-n", "3", "\u{e9}\n"].map(str::to_owned);
    let usual = Target {
        word: "git",
        path: Some(Path::new("/usr/bin/git")),
        real: Some(Path::new("/usr/bin/git")),
        args: &args,
        cwd: Some("/srv/app"),
    };
    let lost = Target { path: None, real: None, cwd: None, args: &[], ..usual };
    // What the first entries name, so that something matches.
    let named = entries.iter().take(8).map(|entry| {
        let path = Some(Path::new(entry.pattern.trim())).filter(|path| path.is_absolute());
        Target { word: entry.pattern.trim(), path: path.or(usual.path), real: path.or(usual.real), ..usual }
    });
    for target in named.chain([usual, lost]) {
        let Some(found) = list.find(&target) else {
            assert_eq!(list.star(), None, "`*` does not match {target:?}");
            continue;
        };
        assert!(
            found.index < entries.len() && !out_of_force.contains(&found.index),
            "{found:?} is out of force"
        );
        let entry = &entries[found.index];
        assert_eq!(found.star, entry.pattern.trim() == "*", "{entry:?}");
        assert!(found.star || target.real.is_some(), "{entry:?} matches what was not found");
        assert!(
            found.by_args || entry.arg_pattern.as_deref().is_none_or(str::is_empty),
            "{entry:?} by its program"
        );
        let unbound = entry.source.is_some() && !found.by_args;
        assert!(!unbound, "{entry:?} is bound to nothing");
    }
    for entry in entries.iter().filter(|entry| !entry.pattern.trim_start().starts_with('~')) {
        let alone = Allowlist::compile(std::slice::from_ref(entry), Some(Path::new("/")), &[]);
        let faults: Vec<_> = alone.problems().iter().map(|problem| problem.fault.clone()).collect();
        let fault = check_entry(entry).err().map(|problem| problem.fault);
        assert_eq!(faults, Vec::from_iter(fault), "{entry:?} is checked otherwise than loaded");
    }
}

/// A change to the rules leaves a document that can be read, and can be taken back.
fn check_edits(document: &ApprovalsDocument) {
    let mut changed = document.clone();
    let rule = AllowEntry { pattern: " /usr/bin/added ".to_owned(), ..AllowEntry::default() };
    if changed.add_entry("main", rule.clone()) {
        assert!(!changed.add_entry("main", rule.clone()), "a rule is added twice");
        assert_eq!(ApprovalsDocument::parse(&changed.to_text()), Ok(changed.clone()));
        assert!(changed.remove_entry("main", &rule.pattern, None), "a rule cannot be removed");
    } else {
        assert!(changed.remove_entry("main", &rule.pattern, None), "a rule is neither there nor added");
    }
    assert_eq!(ApprovalsDocument::parse(&changed.to_text()), Ok(changed));
}

fn check_error(error: &DocumentError) {
    check_sentence(&error.to_string());
    if let DocumentError::Malformed { line, .. } = error {
        assert!(*line > 0, "{error}");
    }
}

fn check_sentence(sentence: &str) {
    assert!(!sentence.chars().any(char::is_control), "{sentence:?} holds a control character");
    assert!(sentence.chars().count() <= MAX_SENTENCE, "{sentence:?} is too long");
}
