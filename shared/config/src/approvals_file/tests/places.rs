//! Links and odd places (field case F070, policy spec §12 row 85).

use std::os::unix::fs::symlink;

use fault::{ErrorCode, Fault};

use super::*;

/// A home with `repo/` beside it, both private.
fn home() -> Place {
    let place = Place::empty();
    for dir in ["home", "repo"] {
        fs::create_dir(place.at(dir)).unwrap();
        fs::set_permissions(place.at(dir), fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

fn add_one(file: &ApprovalsFile) -> Result<Change, ApprovalsError> {
    file.edit(|document| {
        add(document, "main", "new");
        Ok(true)
    })
}

#[test]
fn a_linked_state_directory_is_used() {
    let place = home();
    symlink("../repo", place.at("home/.openclaw")).unwrap();
    let file = ApprovalsFile::new(place.at("home/.openclaw/exec-approvals.json"));
    assert!(!file.load().unwrap().exists);
    add_one(&file).unwrap();
    for name in ["exec-approvals.json", "exec-approvals.lock", "exec-approvals.last-good.json"] {
        assert!(place.at("repo").join(name).is_file(), "{name}");
    }
    assert!(place.at("home/.openclaw").is_symlink());
    assert_eq!(patterns(&file.load().unwrap().document, "main"), ["new"]);
}

#[test]
fn a_linked_document_is_replaced_where_it_lies() {
    let place = home();
    fs::write(place.at("repo/rules.json"), ONE).unwrap();
    let link = place.at("home/exec-approvals.json");
    symlink("../repo/rules.json", &link).unwrap();
    let file = ApprovalsFile::new(&link);
    assert_eq!(file.load().unwrap().hash, hash_of(Some(ONE)));
    add_one(&file).unwrap();
    assert!(link.is_symlink());
    let there = fs::read_to_string(place.at("repo/rules.json")).unwrap();
    assert_eq!(file.load().unwrap().hash, hash_of(Some(&there)));
    assert_eq!(patterns(&file.load().unwrap().document, "main"), ["/usr/bin/git", "new"]);
    // Turned by its owner: the other document holds at once.
    fs::write(place.at("repo/other.json"), ONE).unwrap();
    fs::remove_file(&link).unwrap();
    symlink("../repo/other.json", &link).unwrap();
    assert_eq!(file.load().unwrap().hash, hash_of(Some(ONE)));
}

#[test]
fn a_link_that_others_can_turn_denies_and_is_named() {
    let place = home();
    fs::write(place.at("repo/rules.json"), ONE).unwrap();
    let link = place.at("home/exec-approvals.json");
    symlink("../repo/rules.json", &link).unwrap();
    let file = ApprovalsFile::new(&link);
    for open in ["home", "repo"] {
        file.load().unwrap();
        fs::set_permissions(place.at(open), fs::Permissions::from_mode(0o775)).unwrap();
        // Seen by the next process; this one trusts what it read until the file changes.
        let other = ApprovalsFile::new(&link);
        for answer in [other.load().map(drop), add_one(&other).map(drop), add_one(&file).map(drop)] {
            let fault = Fault::from(answer.unwrap_err());
            assert_eq!(fault.code, ErrorCode::ApprovalsMalformed);
            let canonical = link.parent().unwrap().canonicalize().unwrap().join("exec-approvals.json");
            assert!(fault.message.contains(&format!("link {}", canonical.display())), "{fault:?}");
        }
        fs::set_permissions(place.at(open), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(fs::read_to_string(place.at("repo/rules.json")).unwrap(), ONE);
}

#[test]
fn a_link_to_nowhere_is_no_missing_document() {
    let place = home();
    let link = place.at("home/exec-approvals.json");
    symlink("../repo/gone.json", &link).unwrap();
    let file = ApprovalsFile::new(&link);
    assert!(file.load().unwrap_err().denies_everything());
    assert!(add_one(&file).is_err());
    assert!(!place.at("repo/gone.json").exists());
}

#[test]
fn a_document_with_two_names_is_read_and_not_replaced() {
    let place = Place::with(ONE);
    fs::hard_link(place.file.path(), place.at("second")).unwrap();
    assert_eq!(place.file.load().unwrap().hash, hash_of(Some(ONE)));
    let refused =
        [add_one(&place.file).map(drop), place.file.replace(ONE, Some(&hash_of(Some(ONE)))).map(drop)];
    for answer in refused {
        let error = answer.unwrap_err();
        assert!(matches!(error, ApprovalsError::HardLinked { names: 2, .. }), "{error:?}");
        assert_eq!(error.code(), ErrorCode::StoreUnreadable);
    }
    assert_eq!(fs::read_to_string(place.at("second")).unwrap(), ONE);
}

#[test]
fn what_is_no_file_denies() {
    let place = Place::empty();
    fs::create_dir(place.file.path()).unwrap();
    assert_eq!(place.file.load().unwrap_err().code(), ErrorCode::ApprovalsMalformed);
    assert!(add_one(&place.file).is_err());
    let below = ApprovalsFile::new(place.at("plain/exec-approvals.json"));
    fs::write(place.at("plain"), "").unwrap();
    assert!(below.load().unwrap_err().denies_everything());
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let place = Place::with(ONE);
    symlink("victim", place.at("exec-approvals.lock")).unwrap();
    let error = add_one(&place.file).unwrap_err();
    assert!(matches!(error, ApprovalsError::Lock { .. }), "{error:?}");
    assert!(!place.at("victim").exists());
}
