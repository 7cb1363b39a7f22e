//! The configuration file, read again when it changed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Config, ConfigError};
use crate::FileStamp;

/// `openclaw.json` of one state directory. Shared by threads.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    last: Mutex<Last>,
}

/// What was read last.
#[derive(Debug, Default)]
struct Last {
    /// Empty after a bad reading.
    config: Option<Arc<Config>>,
    /// Set where a change of the file would show.
    mark: Option<Mark>,
}

/// Where the file lies, links followed, and its outside.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    real: PathBuf,
    stamp: FileStamp,
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let real = fs::canonicalize(path).ok()?;
        let stamp = FileStamp::of(&real)?;
        Some(Self { real, stamp })
    }
}

impl ConfigFile {
    /// The file at `path`, normally [`StateDir::openclaw_json`](crate::StateDir::openclaw_json); it need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), last: Mutex::default() }
    }

    /// Where it lies, links not resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration as it is now. While the file stays the same this is one look at it; while it says the same,
    /// the same `Arc`.
    ///
    /// # Errors
    /// The file cannot be used. Then nothing may run.
    pub fn load(&self) -> Result<Arc<Config>, ConfigError> {
        let mut last = self.last.lock();
        let mark = Mark::of(&self.path);
        if let Last { config: Some(config), mark: Some(known) } = &*last
            && Some(known) == mark.as_ref()
        {
            return Ok(Arc::clone(config));
        }
        let before = std::mem::take(&mut *last).config;
        let config = Config::load(&self.path)?;
        let config = before.filter(|before| **before == config).unwrap_or_else(|| Arc::new(config));
        // A file that changed just now can change again and look the same: it is read again next time.
        *last = Last { config: Some(Arc::clone(&config)), mark: mark.filter(|mark| mark.stamp.is_settled()) };
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use policy::Security;

    use super::*;

    #[test]
    fn what_says_the_same_is_the_same_and_every_change_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConfigFile::new(dir.path().join("openclaw.json"));
        let missing = file.load().unwrap();
        assert!(Arc::ptr_eq(&missing, &file.load().unwrap()));
        for (word, want) in [("deny", Security::Deny), ("full", Security::Full)] {
            fs::write(file.path(), format!("{{tools:{{exec:{{security:'{word}'}}}}}}")).unwrap();
            let config = file.load().unwrap();
            assert_eq!(config.exec(None).security, Some(want));
            assert!(Arc::ptr_eq(&config, &file.load().unwrap()));
        }
        fs::write(file.path(), "{").unwrap();
        assert!(file.load().is_err() && file.load().is_err());
        fs::remove_file(file.path()).unwrap();
        assert_eq!(file.load().unwrap().exec(None).security, None);
    }

    #[test]
    fn a_settled_file_is_read_once_and_a_linked_one_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("mine.json"), "{tools:{exec:{security:'deny'}}}").unwrap();
        std::os::unix::fs::symlink("mine.json", at("openclaw.json")).unwrap();
        let file = ConfigFile::new(at("openclaw.json"));
        file.load().unwrap();
        // As it would be kept a second after the write; the text behind it would not be understood.
        let mark = Mark::of(&at("openclaw.json")).unwrap();
        assert!(mark.stamp.is_settled_at(SystemTime::now() + Duration::from_secs(3)));
        file.last.lock().mark = Some(mark);
        file.last.lock().config = Some(Arc::default());
        assert_eq!(file.load().unwrap().exec(None).security, None);

        fs::write(at("mine.json"), "{tools:{exec:{security:'allowlist'}}}").unwrap();
        assert_eq!(file.load().unwrap().exec(None).security, Some(Security::Allowlist));
    }
}
