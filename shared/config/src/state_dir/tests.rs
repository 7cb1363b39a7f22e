//! The choice and the checks, on real directories.

use std::os::unix::fs::PermissionsExt;

use fault::{ErrorCode, Fault};

use super::*;

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    (dir, path)
}

#[test]
fn flag_wins_over_variable_wins_over_home() {
    let (_keep, home) = home();
    let some = |text: &str| Some(PathBuf::from(text));
    let var = |text: &str| Some(OsString::from(text));
    let cwd = std::env::current_dir().unwrap();
    let table = [
        (some("/flag/x"), var("/env/x"), PathBuf::from("/flag/x")),
        (None, var("/env/x"), PathBuf::from("/env/x")),
        (None, var(""), home.join(".openclaw")),
        (None, None, home.join(".openclaw")),
        (None, var("~"), home.clone()),
        (None, var("~/a/b"), home.join("a/b")),
        (some("~/a"), None, home.join("a")),
        (some("rel/x"), None, cwd.join("rel/x")),
        (some("./x~"), None, cwd.join("x~")),
    ];
    for (flag, env, want) in table {
        let shown = format!("{flag:?} {env:?}");
        let found = StateDir::resolve(flag, env, Some(home.clone())).unwrap();
        assert_eq!(found.path(), want, "{shown}");
    }
}

#[test]
fn what_cannot_be_named_is_refused() {
    let refused = |flag: Option<&str>| StateDir::resolve(flag.map(PathBuf::from), None, None).unwrap_err();
    assert!(matches!(refused(None), StateDirError::NoHome));
    assert!(matches!(refused(Some("~/x")), StateDirError::NoHome));
    assert!(matches!(refused(Some("")), StateDirError::Empty));
    assert!(matches!(refused(Some("~root/x")), StateDirError::OtherHome { .. }));
}

#[test]
fn open_makes_private_directories_and_is_repeatable() {
    let (_keep, home) = home();
    let state = StateDir::resolve(Some(home.join("a/b")), None, None).unwrap();
    state.open().unwrap();
    state.open().unwrap();
    for path in [home.join("a"), home.join("a/b"), state.gateway_dir(), state.node_dir()] {
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700, "{}", path.display());
    }
}

#[test]
fn another_products_directory_is_refused_with_the_ways_out() {
    let (_keep, home) = home();
    let dir = home.join(".openclaw");
    fs::create_dir_all(dir.join("state")).unwrap();
    fs::write(dir.join(FOREIGN_DATABASE), b"").unwrap();
    let fault = Fault::from(StateDir::resolve(None, None, Some(home)).unwrap_err());
    assert_eq!(fault.code, ErrorCode::StateDirForeign);
    let hint = fault.hint.unwrap();
    assert!(hint.contains(STATE_DIR_FLAG) && hint.contains(STATE_DIR_VARIABLE), "{hint}");
}

#[test]
fn a_product_that_moves_in_later_is_refused_at_open() {
    let (_keep, home) = home();
    let state = StateDir::resolve(None, None, Some(home)).unwrap();
    state.open().unwrap();
    fs::create_dir(state.path().join("state")).unwrap();
    std::os::unix::fs::symlink("/nowhere", state.path().join(FOREIGN_DATABASE)).unwrap();
    assert!(matches!(state.open(), Err(StateDirError::Foreign { .. })));
}

#[test]
fn unfit_directories_are_refused() {
    let (_keep, home) = home();
    let file = home.join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = StateDir::resolve(Some(path), None, None).unwrap_err();
        assert!(matches!(refused, StateDirError::NotADirectory { .. }), "{refused}");
    }
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        let open = home.join("open");
        fs::create_dir_all(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        let refused = StateDir::resolve(Some(open), None, None).unwrap_err();
        assert!(refused.hint().contains("chmod 700"), "{refused}");
        assert!(matches!(refused, StateDirError::WritableByOthers { mode: found, .. } if found == mode));
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    // Both cases use a directory that certainly is not ours.
    let user = rustix::process::geteuid().as_raw();
    let (_keep, home) = home();
    let path = if user == 0 {
        std::os::unix::fs::chown(&home, Some(65_534), None).unwrap();
        home
    } else {
        PathBuf::from("/usr")
    };
    let refused = StateDir::resolve(Some(path), None, None).unwrap_err();
    assert!(matches!(refused, StateDirError::OtherOwner { user: found, .. } if found == user), "{refused}");
}

#[test]
fn names_are_stable() {
    let state = StateDir { path: "/s".into() };
    let found: Vec<PathBuf> = vec![
        state.approvals(),
        state.openclaw_json(),
        state.approvals_lock(),
        state.approvals_last_good(),
        state.gateway_socket(),
        state.gateway_db(),
        state.ca_key(),
        state.ca_cert(),
        state.gateway_lock(),
        state.node_key(),
        state.node_cert(),
        state.node_json(),
        state.sessions(),
        state.node_lock(),
    ];
    let want = [
        "/s/exec-approvals.json",
        "/s/openclaw.json",
        "/s/exec-approvals.lock",
        "/s/exec-approvals.last-good.json",
        "/s/gateway/gateway.sock",
        "/s/gateway/gateway.db",
        "/s/gateway/ca-key.pem",
        "/s/gateway/ca-cert.pem",
        "/s/gateway/gateway.lock",
        "/s/node/node-key.pem",
        "/s/node/node-cert.pem",
        "/s/node/node.json",
        "/s/node/sessions",
        "/s/node/node.lock",
    ];
    assert_eq!(found, want.map(PathBuf::from));
}
