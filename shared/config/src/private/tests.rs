//! Writing and reading, on real files.

use super::*;

const MAX: u64 = 1024;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_made_private_and_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/key");
    for content in [&b"first, and longer"[..], b"second"] {
        write_private(&path, content).unwrap();
        assert_eq!(read_private(&path, MAX, PrivateMode::Strict).unwrap(), content);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(names(path.parent().unwrap()), ["key"]);
}

#[test]
fn replacing_leaves_a_hard_link_of_the_old_content_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("key"), dir.path().join("link"));
    write_private(&path, b"old").unwrap();
    fs::hard_link(&path, &link).unwrap();
    write_private(&path, b"new").unwrap();
    assert_eq!(fs::read(&link).unwrap(), b"old");
}

#[test]
fn links_directories_and_pipes_are_refused_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs::write(&target, b"kept").unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    for path in [link, pipe, folder] {
        let written = write_private(&path, b"x");
        assert!(matches!(written, Err(PrivateFileError::NotRegular { .. })), "{written:?}");
        let read = read_private(&path, MAX, PrivateMode::Readable);
        assert!(matches!(read, Err(PrivateFileError::NotRegular { .. })), "{read:?}");
    }
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert_eq!(names(dir.path()), ["folder", "link", "pipe", "target"]);
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_rest() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"x").unwrap();
    let refused = write_private(&file.join("below"), b"y");
    assert!(matches!(refused, Err(PrivateFileError::Write { .. })), "{refused:?}");
    assert!(matches!(write_private(Path::new("/"), b"y"), Err(PrivateFileError::NoName { .. })));
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn open_files_are_refused_by_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let table = [
        (0o600, true, true),
        (0o400, true, true),
        (0o640, false, true),
        (0o604, false, true),
        (0o620, false, false),
        (0o602, false, false),
    ];
    for (mode, strict, readable) in table {
        let _ = fs::remove_file(&path);
        fs::write(&path, b"x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let found =
            [PrivateMode::Strict, PrivateMode::Readable].map(|kind| match read_private(&path, MAX, kind) {
                Ok(bytes) => bytes == b"x",
                Err(PrivateFileError::OpenToOthers { mode: found, .. }) => {
                    assert_eq!(found, mode);
                    false
                }
                Err(other) => panic!("{other}"),
            });
        assert_eq!(found, [strict, readable], "{mode:o}");
    }
}

#[test]
fn reading_is_bounded_and_missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    assert!(read_private(&path, MAX, PrivateMode::Strict).unwrap_err().is_not_found());
    write_private(&path, &[7; 10]).unwrap();
    assert_eq!(read_private(&path, 10, PrivateMode::Strict).unwrap(), [7; 10]);
    let refused = read_private(&path, 9, PrivateMode::Strict).unwrap_err();
    assert!(matches!(refused, PrivateFileError::TooLarge { max_bytes: 9, .. }), "{refused}");
    assert!(!refused.is_not_found());
}
