//! What a file looked like, to know without reading it whether it is still the same.
//!
//! Owns the comparison only. Who keeps a reading, and for how long, is the caller's affair.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Times of files move in steps, a second on the coarsest file systems: a file that changed within this time can change
/// again and look the same.
const COARSEST_STEP: Duration = Duration::from_secs(1);

/// The outside of a file at one moment. Two equal stamps mean the same content only if the first one was
/// [settled](Self::is_settled) when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    /// Bytes.
    size: u64,
    /// Nanoseconds since 1970.
    modified_ns: i128,
    /// Nanoseconds since 1970, of the last change of content, name, owner or mode. Unlike the one before, no program can
    /// set it.
    changed_ns: i128,
}

impl FileStamp {
    /// The stamp of what lies at `path`, a link not followed. None where nothing is, or it cannot be looked at.
    ///
    /// Take it *before* the reading that it stands for: a change in between then makes the reading stale, not trusted.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().map(|metadata| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Whether the last change lies more than a second back. Ask right after the reading and keep the answer with it: a
    /// reading whose stamp was not settled then cannot be trusted later, however long ago it was.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_settled_at(SystemTime::now())
    }

    /// [`Self::is_settled`], with the time as an argument. A change that lies in the future is not settled.
    #[must_use]
    pub fn is_settled_at(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let settled = self.changed_ns.saturating_add_unsigned(COARSEST_STEP.as_nanos());
        i128::try_from(now).is_ok_and(|now| now > settled)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_shows() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("file"), dir.path().join("other"));
        assert_eq!(FileStamp::of(&path), None);
        fs::write(&path, "one").unwrap();
        fs::write(&other, "one").unwrap();
        let first = FileStamp::of(&path).unwrap();
        assert_eq!(FileStamp::of(&path), Some(first));

        fs::write(&path, "longer").unwrap();
        let longer = FileStamp::of(&path).unwrap();
        assert_ne!(longer, first);
        fs::rename(&other, &path).unwrap();
        let replaced = FileStamp::of(&path).unwrap();
        assert_ne!(replaced, first);
        std::os::unix::fs::symlink(&path, &other).unwrap();
        assert_ne!(FileStamp::of(&other), Some(replaced));
    }

    #[test]
    fn a_young_change_is_not_settled() {
        let at = |nanos: u64| UNIX_EPOCH + Duration::from_nanos(nanos);
        let stamp =
            FileStamp { device: 1, inode: 2, size: 3, modified_ns: 0, changed_ns: nanoseconds(10, 500) };
        let table = [
            (at(0), false),
            (at(10_000_000_500), false),
            (at(11_000_000_500), false),
            (at(11_000_000_501), true),
            (UNIX_EPOCH - Duration::from_secs(1), false),
        ];
        for (now, want) in table {
            assert_eq!(stamp.is_settled_at(now), want, "{now:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let fresh = FileStamp::of(dir.path()).unwrap();
        assert!(!fresh.is_settled());
        assert!(fresh.is_settled_at(SystemTime::now() + Duration::from_secs(3)));
    }
}
