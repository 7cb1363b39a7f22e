//! Links that may be followed and links that may not, on real files.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A directory with `home/` and `repo/app/`, all of them private.
fn places() -> (tempfile::TempDir, PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let top = keep.path().canonicalize().unwrap();
    for dir in ["home", "repo", "repo/app"] {
        fs::create_dir(top.join(dir)).unwrap();
        mode(&top.join(dir), 0o755);
    }
    (keep, top)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refusal(path: &Path) -> (PathBuf, LinkFault) {
    match real_path(path) {
        Err(PrivateFileError::UnsafeLink { link, fault }) => (link, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn safe_links_lead_to_the_real_place() {
    let (_keep, top) = places();
    fs::write(top.join("repo/app/real.json"), "x").unwrap();
    symlink("../repo/app", top.join("home/.app")).unwrap();
    symlink(top.join("home"), top.join("alias")).unwrap();
    symlink("real.json", top.join("repo/app/doc.json")).unwrap();
    symlink("..", top.join("repo/app/up")).unwrap();
    let table = [
        ("home/doc.json", "home/doc.json"),
        ("home/.app/new.json", "repo/app/new.json"),
        ("home/.app/doc.json", "repo/app/real.json"),
        ("alias/.app/doc.json", "repo/app/real.json"),
        ("home/.app/up/app/./doc.json", "repo/app/real.json"),
        ("home/.app/../x", "repo/x"),
        ("home/not/yet/../there.json", "home/not/there.json"),
    ];
    for (path, want) in table {
        assert_eq!(real_path(&top.join(path)).unwrap(), top.join(want), "{path}");
    }
}

#[test]
fn what_others_can_turn_is_refused() {
    let (_keep, top) = places();
    symlink("../repo/app", top.join("home/.app")).unwrap();
    let link = top.join("home/.app");
    let table = [
        // The directory of the link, what it leads to, and the directory of that.
        ("home", 0o775),
        ("home", 0o757),
        ("repo/app", 0o775),
        ("repo/app", 0o1777),
        ("repo", 0o775),
        ("repo", 0o1777),
    ];
    for (open, bits) in table {
        mode(&top.join(open), bits);
        let found = Openness::WritableByOthers { mode: bits };
        let want = (link.clone(), LinkFault::Open { path: top.join(open), found });
        assert_eq!(refusal(&link.join("doc.json")), want, "{open} {bits:o}");
        mode(&top.join(open), 0o755);
    }
    assert!(real_path(&link.join("doc.json")).is_ok());
}

#[test]
fn on_the_way_to_the_target_a_sticky_directory_is_enough() {
    let (_keep, top) = places();
    symlink("../repo/app/deep/deeper", top.join("home/.app")).unwrap();
    fs::create_dir_all(top.join("repo/app/deep/deeper")).unwrap();
    for dir in ["repo/app/deep", "repo/app/deep/deeper"] {
        mode(&top.join(dir), 0o700);
    }
    let doc = top.join("home/.app/doc.json");
    mode(&top.join("repo"), 0o1777);
    assert!(real_path(&doc).is_ok());
    mode(&top.join("repo"), 0o777);
    assert!(matches!(refusal(&doc).1, LinkFault::Open { path, .. } if path == top.join("repo")));
}

#[test]
fn links_to_nowhere_and_in_circles_are_refused() {
    let (_keep, top) = places();
    symlink("gone/doc.json", top.join("home/dangling")).unwrap();
    symlink("b", top.join("home/a")).unwrap();
    symlink("a", top.join("home/b")).unwrap();
    assert_eq!(refusal(&top.join("home/dangling")), (top.join("home/dangling"), LinkFault::Dangling));
    assert_eq!(refusal(&top.join("home/a")).1, LinkFault::TooMany);
}

#[test]
fn a_link_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can make one; the rule is the same for everybody.
        return;
    }
    let (_keep, top) = places();
    let link = top.join("home/.app");
    symlink("../repo/app", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    let found = Openness::OtherOwner { owner: 65_534 };
    assert_eq!(refusal(&link.join("doc")), (link.clone(), LinkFault::Open { path: link, found }));
}

#[test]
fn a_directory_that_others_can_write_holds_no_private_file() {
    let (_keep, top) = places();
    mode(&top.join("home"), 0o777);
    let refused = real_path(&top.join("home/doc.json")).unwrap_err();
    assert!(matches!(refused, PrivateFileError::OpenDirectory { .. }), "{refused}");
    assert!(refused.to_string().ends_with("home can be written by other users (mode 0777)"), "{refused}");
}
