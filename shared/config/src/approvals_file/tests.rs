//! The document on a real disk.

mod changing;
mod parallel;
mod places;
mod reading;

use std::os::unix::fs::PermissionsExt;

use policy::{AgentEntry, AllowEntry};

use super::*;

const ONE: &str = r#"{"version":1,"agents":{"main":{"allowlist":["/usr/bin/git"]}}}"#;
const MISSING: &str = "missing:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A state directory of its own.
struct Place {
    keep: tempfile::TempDir,
    file: ApprovalsFile,
}

impl Place {
    fn empty() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let file = ApprovalsFile::new(keep.path().join("exec-approvals.json"));
        Self { keep, file }
    }

    fn with(text: impl AsRef<[u8]>) -> Self {
        let place = Self::empty();
        place.write(text);
        place
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(self.file.path(), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file.path()).unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.keep.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.keep.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn add(document: &mut ApprovalsDocument, agent: &str, pattern: &str) {
    let rule = AllowEntry { pattern: pattern.into(), ..AllowEntry::default() };
    document.agents.entry(agent.into()).or_default().allowlist.push(rule);
}

fn patterns(document: &ApprovalsDocument, agent: &str) -> Vec<String> {
    let rules = document.agents.get(agent).map(|entry| entry.allowlist.as_slice()).unwrap_or_default();
    rules.iter().map(|rule| rule.pattern.clone()).collect()
}

fn bits(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
