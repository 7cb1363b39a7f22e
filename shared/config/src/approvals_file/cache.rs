//! What was read last, and whether the file is still that.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use policy::{ApprovalsDocument, DocumentError, hash_of};

use super::{ApprovalsError, Loaded, Malformed, error::without_value, last_good::Keeper};
use crate::{FileStamp, state_dir::check_foreign};

/// A bad document is reported at each run to whoever asked; the log hears of it this often (policy spec §1.3).
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What the disk gave.
#[derive(Debug)]
pub(super) struct Reading {
    /// Where the file lies, or would lie, links resolved.
    pub(super) real: PathBuf,
    /// Its bytes; absent where there is no file.
    pub(super) bytes: Option<Vec<u8>>,
    /// How to know that it is unchanged, if that can be known without reading it.
    pub(super) mark: Option<Mark>,
}

/// What shows that a reading still holds: looks from the outside, taken just before the reading and settled then.
#[derive(Debug)]
pub(super) enum Mark {
    /// The document lies where it is named.
    Plain(FileStamp),
    /// It is a link itself. Where that leads is compared by device and inode; the stamp is of what is there.
    Linked { real: PathBuf, leads_to: (u64, u64), stamp: FileStamp },
    /// There is none. A new one would change the directory; a newer OpenClaw is looked for each time.
    Missing(FileStamp),
}

impl Mark {
    /// Absent where a later change could look the same.
    pub(super) fn of(path: &Path, real: &Path) -> Option<Self> {
        let mark = Self::young(path, real)?;
        let (Self::Plain(stamp) | Self::Linked { stamp, .. } | Self::Missing(stamp)) = &mark;
        stamp.is_settled().then_some(mark)
    }

    fn young(path: &Path, real: &Path) -> Option<Self> {
        let Some(stamp) = FileStamp::of(path) else { return FileStamp::of(&inside(path)).map(Self::Missing) };
        if !path.is_symlink() {
            return Some(Self::Plain(stamp));
        }
        let stamp = FileStamp::of(real)?;
        Some(Self::Linked { real: real.to_path_buf(), leads_to: end_of(path)?, stamp })
    }

    fn holds(&self, path: &Path) -> bool {
        match self {
            Self::Plain(stamp) => FileStamp::of(path) == Some(*stamp),
            Self::Linked { real, leads_to, stamp } => {
                end_of(path) == Some(*leads_to) && FileStamp::of(real) == Some(*stamp)
            }
            Self::Missing(stamp) => {
                FileStamp::of(&inside(path)) == Some(*stamp)
                    && path.parent().is_some_and(|directory| check_foreign(directory).is_ok())
            }
        }
    }
}

/// The directory of a file, by a name that follows a link to it.
fn inside(path: &Path) -> PathBuf {
    path.with_file_name(".")
}

fn end_of(link: &Path) -> Option<(u64, u64)> {
    fs::metadata(link).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    entry: Option<Entry>,
    /// Of the newest document; the first is 1.
    revision: u64,
    /// When a bad document was reported.
    warned: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    mark: Option<Mark>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A document, or the empty one where there is no file.
    Good(Arc<Loaded>),
    Bad {
        bytes: Vec<u8>,
        malformed: Box<Malformed>,
    },
}

impl Content {
    fn answer(&self) -> Result<Arc<Loaded>, ApprovalsError> {
        match self {
            Self::Good(loaded) => Ok(Arc::clone(loaded)),
            Self::Bad { malformed, .. } => Err(ApprovalsError::Malformed(malformed.clone())),
        }
    }

    fn is_of(&self, bytes: Option<&[u8]>) -> bool {
        match self {
            Self::Good(loaded) => loaded.text.as_ref().map(|text| text.as_bytes()) == bytes,
            Self::Bad { bytes: old, .. } => Some(old.as_slice()) == bytes,
        }
    }
}

impl Cache {
    /// The answer of the last reading, if the file certainly did not change since.
    pub(super) fn unchanged(&self, path: &Path) -> Option<Result<Arc<Loaded>, ApprovalsError>> {
        let entry = self.entry.as_ref()?;
        entry.mark.as_ref()?.holds(path).then(|| entry.content.answer())
    }

    /// Takes in what the disk gave. The same bytes give the same document again.
    pub(super) fn take(
        &mut self,
        path: &Path,
        keeper: &Keeper,
        reading: Reading,
    ) -> Result<Arc<Loaded>, ApprovalsError> {
        let Reading { bytes, mark, .. } = reading;
        let content = match self.entry.take() {
            Some(entry) if entry.content.is_of(bytes.as_deref()) => entry.content,
            before => {
                let content = self.read(path, keeper, bytes);
                let gone = matches!(&content, Content::Good(loaded) if !loaded.exists);
                if gone && (before.is_some() || keeper.exists()) {
                    tracing::warn!(
                        path = %path.display(),
                        "the approvals document is gone; without one the built-in policy holds, which allows everything"
                    );
                }
                content
            }
        };
        let answer = content.answer();
        self.entry = Some(Entry { mark, content });
        answer
    }

    fn read(&mut self, path: &Path, keeper: &Keeper, bytes: Option<Vec<u8>>) -> Content {
        let Some(bytes) = bytes else {
            return self.good(ApprovalsDocument::default(), None);
        };
        let (hash, reason) = match std::str::from_utf8(&bytes) {
            Ok(text) => match ApprovalsDocument::parse(text) {
                Ok(document) => return self.good(document, Some(text.into())),
                Err(reason) => (Some(hash_of(Some(text))), without_value(reason)),
            },
            Err(error) => (None, not_text(bytes.get(..error.valid_up_to()).unwrap_or_default())),
        };
        let malformed = Malformed { path: path.to_path_buf(), hash, reason, last_good: keeper.describe() };
        Content::Bad { bytes, malformed: Box::new(malformed) }
    }

    fn good(&mut self, document: ApprovalsDocument, text: Option<Arc<str>>) -> Content {
        self.revision += 1;
        Content::Good(Arc::new(Loaded {
            document,
            exists: text.is_some(),
            hash: hash_of(text.as_deref()),
            revision: self.revision,
            text,
        }))
    }

    /// Forgets a reading that nothing can be said about any more.
    pub(super) fn forget(&mut self) {
        self.entry = None;
    }

    /// Tells the log that nothing may run, once in a while.
    pub(super) fn warn(&mut self, error: &ApprovalsError) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!(error = error.message(), "nothing may run");
        }
    }
}

fn not_text(before: &[u8]) -> DocumentError {
    let last_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    DocumentError::Malformed {
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: last_line.len() + 1,
        reason: "not UTF-8".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_mark_holds_until_the_file_or_a_link_to_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [("a", "1"), ("b", "1")] {
            fs::write(at(name), text).unwrap();
        }
        let (a, b, path) = (at("a"), at("b"), at("doc"));
        let mark = |real: &Path| Mark::young(&path, real).unwrap();

        let missing = mark(&path);
        assert!(matches!(missing, Mark::Missing(_)) && missing.holds(&path));
        fs::write(&path, "1").unwrap();
        assert!(!missing.holds(&path));

        let plain = mark(&path);
        assert!(matches!(plain, Mark::Plain(_)) && plain.holds(&path));
        fs::write(&path, "22").unwrap();
        assert!(!plain.holds(&path), "changed");
        let plain = mark(&path);
        fs::remove_file(&path).unwrap();
        assert!(!plain.holds(&path), "gone");
        symlink(&a, &path).unwrap();
        assert!(!plain.holds(&path), "now a link");

        let linked = mark(&a);
        assert!(matches!(linked, Mark::Linked { .. }) && linked.holds(&path));
        fs::write(&a, "22").unwrap();
        assert!(!linked.holds(&path), "changed");
        let linked = mark(&a);
        fs::remove_file(&path).unwrap();
        assert!(!linked.holds(&path), "gone");
        symlink(&b, &path).unwrap();
        assert!(!linked.holds(&path), "turned");
    }

    #[test]
    fn a_newer_product_ends_a_missing_document() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        let path = dir.path().join("doc");
        let missing = Mark::young(&path, &path).unwrap();
        assert!(missing.holds(&path));
        fs::write(dir.path().join("state/openclaw.sqlite"), "").unwrap();
        assert!(!missing.holds(&path));
    }

    #[test]
    fn a_young_file_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "1").unwrap();
        assert!(Mark::of(&path, &path).is_none());
    }

    #[test]
    fn what_is_no_text_has_a_place() {
        let place = |before: &[u8]| match not_text(before) {
            DocumentError::Malformed { line, column, .. } => (line, column),
            other => panic!("{other}"),
        };
        assert_eq!([place(b""), place(b"ab"), place(b"ab\n\ncd")], [(1, 1), (1, 3), (3, 3)]);
    }
}
