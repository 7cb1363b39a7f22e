//! Loading: what is there, what is not, and what is broken.

use fault::{ErrorCode, Fault};

use super::*;

#[test]
fn without_a_file_the_document_is_empty_and_nothing_is_made() {
    let place = Place::empty();
    let loaded = place.file.load().unwrap();
    let want = Loaded {
        document: ApprovalsDocument::default(),
        exists: false,
        hash: MISSING.into(),
        revision: 1,
        text: None,
    };
    assert_eq!(*loaded, want);
    assert!(Arc::ptr_eq(&loaded, &place.file.load().unwrap()));
    assert!(place.names().is_empty());
    let nowhere = ApprovalsFile::new(place.at("not/yet/exec-approvals.json"));
    assert!(!nowhere.load().unwrap().exists);
}

#[test]
fn an_unchanged_text_is_the_same_document_and_a_changed_one_is_seen_at_once() {
    let place = Place::with(ONE);
    let first = place.file.load().unwrap();
    assert_eq!((first.exists, first.revision), (true, 1));
    assert_eq!(first.hash, hash_of(Some(ONE)));
    assert!(Arc::ptr_eq(&first, &place.file.load().unwrap()));
    // The same text in a new file.
    fs::remove_file(place.file.path()).unwrap();
    place.write(ONE);
    assert!(Arc::ptr_eq(&first, &place.file.load().unwrap()));

    place.write(ONE.replace("git", "rg_"));
    let second = place.file.load().unwrap();
    assert_eq!((patterns(&second.document, "main"), second.revision), (vec!["/usr/bin/rg_".into()], 2));
    fs::remove_file(place.file.path()).unwrap();
    let gone = place.file.load().unwrap();
    assert_eq!((gone.exists, gone.revision), (false, 3));
}

#[test]
fn a_bad_edit_denies_with_its_place_and_names_the_last_good_rules() {
    let table: [(&[u8], u32, &str); 9] = [
        (
            b"{\"version\":1,\n \"defaults\":{\"security\":\"bogus\"}}",
            2,
            "defaults.security: expected one of",
        ),
        (b"{\"version\":2}", 1, "version: only version 1"),
        (
            br#"{"version":1,"agents":{"a":{"allowlist":[" "]}}}"#,
            1,
            "agents.a.allowlist.0: a rule needs a pattern",
        ),
        (b"", 1, "EOF"),
        (b"{\"version\":1", 1, "EOF"),
        (b"{\n\n \"version\": \xff}", 3, "not UTF-8"),
        (br#"{"version":1,"version":1}"#, 1, "the member is there twice"),
        (b"null", 1, "invalid type: null, expected an object"),
        (b"[]", 1, "invalid type: sequence, expected an object"),
    ];
    for (bad, line, reason) in table {
        let place = Place::with(ONE);
        place.file.load().unwrap();
        place.write(bad);
        // The second time the answer comes from memory, and another process has only the copy.
        let other = ApprovalsFile::new(place.file.path());
        for file in [&place.file, &place.file, &other] {
            let error = file.load().unwrap_err();
            assert!(error.denies_everything());
            let ApprovalsError::Malformed(malformed) = &error else { panic!("{error:?}") };
            assert_eq!(malformed.hash, std::str::from_utf8(bad).ok().map(|text| hash_of(Some(text))));
            let last_good = LastGood {
                path: place.at("exec-approvals.last-good.json"),
                hash: hash_of(Some(ONE)),
                agents: 1,
                entries: 1,
            };
            assert_eq!(malformed.last_good.as_deref(), Some(&last_good));
            let fault = Fault::from(error);
            let path = place.file.path().display().to_string();
            assert_eq!(fault.code, ErrorCode::ApprovalsMalformed);
            assert!(fault.message.starts_with(&path) && fault.message.contains(reason), "{fault:?}");
            assert!(fault.message.contains(&format!("at line {line}, column ")), "{fault:?}");
            assert!(fault.message.contains(&last_good.hash[..12]), "{fault:?}");
            let back = format!("cp -- '{}' '{path}'", last_good.path.display());
            assert!(fault.hint.unwrap().ends_with(&back));
        }
        assert_eq!(fs::read(place.file.path()).unwrap(), bad, "a bad document is left alone");
        fs::copy(place.at("exec-approvals.last-good.json"), place.file.path()).unwrap();
        assert_eq!(patterns(&place.file.load().unwrap().document, "main"), ["/usr/bin/git"]);
    }
}

#[test]
fn the_copy_follows_the_good_documents_only() {
    let place = Place::with(ONE);
    let copy = place.at("exec-approvals.last-good.json");
    place.file.load().unwrap();
    assert_eq!((fs::read_to_string(&copy).unwrap().as_str(), bits(&copy)), (ONE, 0o600));
    place.write("{");
    place.file.load().unwrap_err();
    fs::remove_file(place.file.path()).unwrap();
    assert!(!place.file.load().unwrap().exists);
    assert_eq!(fs::read_to_string(&copy).unwrap(), ONE);
    let two = r#"{"version":1}"#;
    place.write(two);
    place.file.load().unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), two);
}

#[test]
fn a_copy_that_is_no_document_is_not_offered() {
    let place = Place::with("{");
    let want = "repair the file; it is read again at the next run";
    assert_eq!(place.file.load().unwrap_err().hint(), want);
    fs::write(place.at("exec-approvals.last-good.json"), "{").unwrap();
    let other = ApprovalsFile::new(place.file.path());
    assert_eq!(other.load().unwrap_err().hint(), want);
}

#[test]
fn no_text_of_ours_holds_a_secret() {
    let place = Place::with(r#"{"version":1,"socket":{"token":"s3cret"}}"#);
    let loaded = place.file.load().unwrap();
    assert!(!format!("{loaded:?} {:?}", place.file).contains("s3cret"));
    for bad in [
        r#"{"version":1,"socket":"s3cret"}"#,
        r#"{"version":"s3cret"}"#,
        r#"{"version":1,"agents":{"a":{"allowlist":"s3cret, expected \"x"}}}"#,
        r#"{"version":1,"defaults":{"autoAllowSkills":"s3cret"}}"#,
        r#"{"version":1,"defaults":{"security":"s3cret"}}"#,
    ] {
        place.write(bad);
        let error = place.file.load().unwrap_err();
        let shown = format!("{error:?} {} {}", error.message(), error.hint());
        assert!(!shown.contains("s3cret"), "{shown}");
        let refused = place.file.replace(bad, None).unwrap_err();
        assert!(!format!("{refused:?} {refused}").contains("s3cret"), "{refused}");
    }
}

#[test]
fn what_others_can_change_denies() {
    let place = Place::with(ONE);
    place.file.load().unwrap();
    fs::set_permissions(place.file.path(), fs::Permissions::from_mode(0o620)).unwrap();
    let fault = Fault::from(place.file.load().unwrap_err());
    assert_eq!(fault.code, ErrorCode::ApprovalsMalformed);
    assert!(fault.message.contains("chmod 600") && fault.message.contains("last good rules"), "{fault:?}");
    fs::set_permissions(place.file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(place.keep.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = place.file.load().unwrap_err();
    assert!(matches!(error, ApprovalsError::Unreadable { .. }), "{error}");
    // A file that others could have taken away is not simply missing.
    fs::remove_file(place.file.path()).unwrap();
    assert!(place.file.load().unwrap_err().denies_everything());
}

#[test]
fn a_directory_of_a_newer_product_is_refused_and_left_alone() {
    let place = Place::empty();
    place.file.load().unwrap();
    fs::create_dir(place.at("state")).unwrap();
    fs::write(place.at("state/openclaw.sqlite"), "").unwrap();
    let refused = [
        place.file.load().map(drop),
        place.file.replace(ONE, None).map(drop),
        place.file.edit(|_| Ok::<_, ApprovalsError>(true)).map(drop),
    ];
    for answer in refused {
        assert_eq!(answer.unwrap_err().code(), ErrorCode::StateDirForeign);
    }
    assert_eq!(place.names(), ["state"]);
}

#[test]
fn the_names_are_those_of_the_state_directory() {
    let keep = tempfile::tempdir().unwrap();
    let state = crate::StateDir::resolve(Some(keep.path().join("s")), None, None).unwrap();
    let file = ApprovalsFile::new(state.approvals());
    file.edit(|_| Ok::<_, ApprovalsError>(true)).unwrap();
    for path in [state.approvals(), state.approvals_lock(), state.approvals_last_good()] {
        assert_eq!(bits(&path), 0o600, "{}", path.display());
    }
    assert_eq!(bits(state.path()), 0o700);
}
