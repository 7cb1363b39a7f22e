//! Replacing, editing, noting uses.

use fault::ErrorCode;

use super::*;

/// What the table of policy spec §1.4 says about a replacement.
#[test]
fn a_replacement_names_what_it_replaces() {
    let current = hash_of(Some(ONE));
    let table = [
        (Some(ONE), None, Err(ErrorCode::ApprovalsConflict)),
        (Some(ONE), Some(""), Err(ErrorCode::ApprovalsConflict)),
        (Some(ONE), Some(MISSING), Err(ErrorCode::ApprovalsConflict)),
        (Some(ONE), Some(current.as_str()), Ok(current.as_str())),
        (None, None, Ok(MISSING)),
        (None, Some(MISSING), Ok(MISSING)),
        (None, Some(current.as_str()), Err(ErrorCode::ApprovalsConflict)),
    ];
    for (there, base, want) in table {
        let place = there.map_or_else(Place::empty, Place::with);
        let change = place.file.replace(r#"{"version":1,"defaults":{"security":"deny"}}"#, base);
        match want {
            Ok(before_hash) => {
                let change = change.unwrap();
                let text = "{\n  \"version\": 1,\n  \"defaults\": {\n    \"security\": \"deny\"\n  }\n}\n";
                let document = ApprovalsDocument::parse(text).unwrap();
                let loaded = place.file.load().unwrap();
                assert_eq!(loaded.document, document, "{there:?} {base:?}");
                assert_eq!(loaded.hash, hash_of(Some(&place.text())));
                let before = ApprovalsDocument::parse(there.unwrap_or(r#"{"version":1}"#)).ok();
                assert_eq!(change, Change { before_hash: before_hash.into(), before, loaded, written: true });
                assert_eq!(bits(place.file.path()), 0o600);
            }
            Err(code) => {
                let error = change.unwrap_err();
                assert_eq!((error.code(), error.hint().as_str()), (code, "reload and retry"));
                assert_eq!(place.file.path().exists().then(|| place.text()).as_deref(), there);
            }
        }
    }
}

#[test]
fn what_is_no_document_replaces_none() {
    let place = Place::with(ONE);
    let base = hash_of(Some(ONE));
    for bad in [
        "{",
        r#"{"version":2}"#,
        r#"{"version":1,"later":1}"#,
        r#"{"version":1,"defaults":{"security":"bogus"}}"#,
        r#"{"version":1,"agents":{"a":{"ask":"never"}}}"#,
        r#"{"version":1,"agents":{"a":{"allowlist":[""]}}}"#,
    ] {
        let error = place.file.replace(bad, Some(&base)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidRequest, "{bad}");
        assert!(!error.denies_everything());
    }
    assert_eq!(place.text(), ONE);
}

#[test]
fn a_replacement_keeps_the_socket_and_names_its_rules() {
    let place = Place::with(r#"{"version":1,"socket":{"path":"/s","token":"t"}}"#);
    let base = place.file.load().unwrap().hash.clone();
    let update = r#"{"version":1,"agents":{"a":{"allowlist":["x",{"pattern":"y","id":"mine"},"z"]}}}"#;
    let loaded = place.file.replace(update, Some(&base)).unwrap().loaded;
    let socket = loaded.document.socket.as_ref().unwrap();
    assert_eq!((socket.path.as_deref(), socket.token.as_deref()), (Some("/s"), Some("t")));
    let ids: Vec<&str> =
        loaded.document.agents["a"].allowlist.iter().map(|rule| rule.id.as_deref().unwrap()).collect();
    assert_eq!(ids[1], "mine");
    assert_ne!(ids[0], ids[2]);
    for id in [ids[0], ids[2]] {
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
}

#[test]
fn a_bad_document_is_replaced_by_whoever_names_its_hash_and_never_edited() {
    let place = Place::with("{bad");
    let edited = place.file.edit(|_| Ok::<_, ApprovalsError>(true)).unwrap_err();
    assert_eq!(edited.code(), ErrorCode::ApprovalsMalformed);
    assert!(place.file.record_usage(&[used("x", 1)]).is_err());
    assert_eq!(place.text(), "{bad");
    assert_eq!(place.file.replace(ONE, None).unwrap_err().code(), ErrorCode::ApprovalsConflict);
    let change = place.file.replace(ONE, Some(&hash_of(Some("{bad")))).unwrap();
    assert_eq!(change.before, None);
    assert_eq!(patterns(&place.file.load().unwrap().document, "main"), ["/usr/bin/git"]);

    place.write(b"\xff");
    assert_eq!(place.file.replace(ONE, None).unwrap_err().code(), ErrorCode::ApprovalsMalformed);
}

#[test]
fn an_edit_writes_only_what_it_says() {
    let place = Place::empty();
    let change = place.file.edit(|_| Ok::<_, ApprovalsError>(false)).unwrap();
    assert_eq!((change.written, change.loaded.exists), (false, false));
    assert!(!place.file.path().exists(), "an empty document is never made");

    let change = place
        .file
        .edit(|document| {
            add(document, "main", "rg");
            Ok::<_, ApprovalsError>(true)
        })
        .unwrap();
    assert_eq!((change.written, change.before_hash.as_str()), (true, MISSING));
    assert_eq!(change.loaded, place.file.load().unwrap());
    assert_eq!(patterns(&change.loaded.document, "main"), ["rg"]);

    let before = place.text();
    let refused = place.file.edit(|document| {
        add(document, "main", " ");
        Ok::<_, ApprovalsError>(true)
    });
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidRequest);
    #[derive(Debug)]
    struct No;
    impl From<ApprovalsError> for No {
        fn from(error: ApprovalsError) -> Self {
            panic!("{error}")
        }
    }
    place.file.edit(|_| Err::<bool, _>(No)).unwrap_err();
    assert_eq!(place.text(), before);
}

fn used(pattern: &str, at_ms: u64) -> RuleUsage {
    RuleUsage {
        agent: None,
        pattern: pattern.into(),
        arg_pattern: None,
        at_ms,
        command: format!("{pattern} x"),
        resolved_path: Some(format!("/usr/bin/{pattern}")),
    }
}

#[test]
fn uses_are_noted_at_the_rules_that_are_there() {
    let place = Place::with(
        r#"{"version":1,"agents":{
            "main":{"allowlist":["rg",{"pattern":"git","argPattern":"sha256:cwd-argv:v1:0"},"unused"]},
            "*":{"allowlist":["rg"]},
            "other":{"allowlist":["rg"]}}}"#,
    );
    let hashed = RuleUsage { arg_pattern: Some("sha256:cwd-argv:v1:0".into()), ..used("git", 7) };
    // After the first two: another argument pattern, a removed rule, an older use that came late.
    let uses = [used("rg", 5), hashed, used("git", 8), used("removed", 9), used("rg", 4)];
    assert_eq!(place.file.record_usage(&uses).unwrap(), 3);
    let loaded = place.file.load().unwrap();
    let shown = |agent: &str| -> Vec<(String, Option<u64>, Option<String>, Option<String>)> {
        let AgentEntry { allowlist, .. } = loaded.document.agents[agent].clone();
        allowlist
            .into_iter()
            .map(|rule| {
                let at = rule.last_used_at.and_then(|at| at.as_u64());
                (rule.pattern, at, rule.last_used_command, rule.last_resolved_path)
            })
            .collect()
    };
    let git = ("git".into(), Some(7), None, Some("/usr/bin/git".into()));
    let unused = |pattern: &str| (pattern.to_owned(), None, None, None);
    assert_eq!(shown("main"), [unused("rg"), git, unused("unused")]);
    assert_eq!(shown("*"), [("rg".into(), Some(5), Some("rg x".into()), Some("/usr/bin/rg".into()))]);
    assert_eq!(shown("other"), [unused("rg")]);

    let text = place.text();
    assert_eq!(place.file.record_usage(&[used("removed", 9)]).unwrap(), 0);
    assert_eq!(place.text(), text);
}

#[test]
fn uses_make_no_file() {
    let place = Place::empty();
    assert_eq!(place.file.record_usage(&[used("rg", 1)]).unwrap(), 0);
    assert!(place.names().is_empty());
}

#[test]
fn notes_of_use_are_no_change_that_somebody_has_to_see_first() {
    let place = Place::with(r#"{"version":1,"agents":{"*":{"allowlist":["rg"]}}}"#);
    let seen = place.file.load().unwrap().hash.clone();
    for at in 1..4 {
        assert_eq!(place.file.record_usage(&[used("rg", at)]).unwrap(), 1);
    }
    assert_ne!(place.file.load().unwrap().hash, seen);
    let deny = r#"{"version":1,"defaults":{"security":"deny"}}"#;
    assert!(place.file.replace(deny, Some(&seen)).unwrap().written);
    // That was a change, though.
    let stale = place.file.replace(deny, Some(&seen)).unwrap_err();
    assert!(matches!(stale, ApprovalsError::Conflict(_)), "{stale:?}");

    let seen = place.file.load().unwrap().hash.clone();
    place
        .file
        .edit(|document| {
            Ok::<_, ApprovalsError>(
                document.add_entry("*", policy::AllowEntry { pattern: "x".into(), ..Default::default() }),
            )
        })
        .unwrap();
    place.file.record_usage(&[used("rg", 9)]).unwrap();
    let stale = place.file.replace(deny, Some(&seen)).unwrap_err();
    assert!(matches!(stale, ApprovalsError::Conflict(_)), "an edit lay between: {stale:?}");
}
