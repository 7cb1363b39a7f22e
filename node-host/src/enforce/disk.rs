//! The files of this machine, as decisions look at them.
//!
//! Answers are kept for a short while, which is safe since [`Disk::confirm`] looks again, at the file itself, right
//! before a launch.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use policy::plan::Segment;
use policy::resolve::{File, Files};
use rustix::fs::{Access, access};

/// How long a file that was found is believed, from its last use (policy spec §2.3).
const FOUND_FOR: Duration = Duration::from_secs(60);
/// How long a path is believed to lead nowhere. Short: who installs a program wants to run it.
const MISSING_FOR: Duration = Duration::from_secs(2);
/// Most answers that are kept. One look-up asks once per part of PATH.
const KEPT: usize = 1024;

/// What was found at a path, and until when that is believed.
type Answer = (Option<File>, Instant);

/// The files of this machine.
#[derive(Debug, Default)]
pub(super) struct Disk {
    answers: Mutex<HashMap<PathBuf, Answer>>,
}

impl Disk {
    /// Forgets what was found: the next look is at what is there.
    pub(super) fn forget(&self) {
        self.answers.lock().clear();
    }

    /// Whether every program of these commands still is the file that was judged. Forgets what it knew where one is not.
    pub(super) fn confirm<'p>(&self, segments: impl IntoIterator<Item = &'p Segment>) -> Result<(), PathBuf> {
        for (_, program) in segments.into_iter().flat_map(|segment| &segment.programs) {
            if inspect(&program.path).as_ref() != Some(&program.file) {
                self.answers.lock().clear();
                return Err(program.path.clone());
            }
        }
        Ok(())
    }
}

impl Files for Disk {
    fn look(&self, path: &Path) -> Option<File> {
        let now = Instant::now();
        if let Some((file, until)) = self.answers.lock().get_mut(path)
            && now < *until
        {
            if file.is_some() {
                *until = now + FOUND_FOR;
            }
            return file.clone();
        }
        // Not under the lock: a file system that hangs must not hold up those who ask about others.
        let file = inspect(path);
        let keep = if file.is_some() { FOUND_FOR } else { MISSING_FOR };
        let mut answers = self.answers.lock();
        if answers.len() >= KEPT {
            answers.clear();
        }
        answers.insert(path.to_path_buf(), (file.clone(), now + keep));
        file
    }
}

/// Looks at a path. A name that cannot be said in UTF-8 is treated as missing: no rule could name it.
fn inspect(path: &Path) -> Option<File> {
    let metadata = path.metadata().ok()?;
    let real = path.canonicalize().ok()?;
    real.to_str()?;
    let regular = metadata.is_file();
    Some(File {
        executable: regular && access(path, Access::EXEC_OK).is_ok(),
        regular,
        real,
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use policy::resolve::Lookup;

    use super::*;

    fn program(path: &Path, mode: u32) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn finds_programs_through_links_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        program(&root.join("tool"), 0o755);
        program(&root.join("text"), 0o644);
        std::fs::create_dir(root.join("dir")).unwrap();
        std::os::unix::fs::symlink("tool", root.join("link")).unwrap();
        std::os::unix::fs::symlink("gone", root.join("dangling")).unwrap();
        let disk = Disk::default();
        let path = format!("/nonexistent:{}", root.display());
        let lookup = Lookup { files: &disk, path: &path, cwd: Some(&root), home: None };
        let real = |word: &str| lookup.find(word).map(|found| (found.path, found.file.real));
        assert_eq!(real("tool"), Some((root.join("tool"), root.join("tool"))));
        assert_eq!(real("link"), Some((root.join("link"), root.join("tool"))));
        assert_eq!(real("./link"), real("link"));
        for word in ["text", "dir", "dangling", "gone", "./text", ""] {
            assert_eq!(real(word), None, "{word}");
        }
        assert_eq!(lookup.find_script("text").unwrap().file.real, root.join("text"));
        assert_eq!(lookup.find_script("dir"), None);
    }

    #[test]
    fn a_swapped_program_is_not_confirmed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        program(&root.join("tool"), 0o755);
        let disk = Disk::default();
        let path = root.display().to_string();
        let lookup = Lookup { files: &disk, path: &path, cwd: None, home: None };
        let plan = |text: &str| {
            let (safe_bins, _) = policy::safe_bins::SafeBins::new(&Default::default());
            let rules = policy::analyse::Rules {
                allowlist: &policy::allowlist::Allowlist::default(),
                safe_bins: &safe_bins,
                skills: &policy::skills::Skills::default(),
                input: policy::inline_eval::Input::Other,
            };
            policy::analyse::analyse(policy::plan::Invocation::Argv(&[text.to_owned()]), lookup, rules)
                .unwrap()
        };
        let before = plan("tool");
        assert_eq!(disk.confirm(before.each()), Ok(()));
        // The old file stays, so the new one cannot get its inode.
        std::fs::rename(root.join("tool"), root.join("old")).unwrap();
        program(&root.join("tool"), 0o755);
        assert_eq!(disk.confirm(before.each()), Err(root.join("tool")));
        assert_eq!(disk.confirm(plan("tool").each()), Ok(()));
    }
}
