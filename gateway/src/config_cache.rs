//! `openclaw.json` as the gateway uses it: read again when it changed, and the programs of skills in it.
//!
//! Owns when the file is read and what is told to nodes. What its keys mean is the `config` crate's affair. A file that
//! cannot be used refuses the call: the caller asked under a policy that nobody knows any more.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{Config, ConfigError, FileStamp};
use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// An edit that no call makes visible reaches the nodes within this time.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Most programs of skills that nodes are told of. Fewer names allow less, so the rest is left out.
const SKILL_BINS_MAX: usize = 512;
/// No file system takes a longer name (bytes).
const SKILL_BIN_LENGTH_MAX: usize = 255;

/// Names of the programs of skills, as nodes are told of them.
pub(crate) type SkillBins = Arc<[String]>;

/// The configuration of one gateway.
#[derive(Debug)]
pub(crate) struct ConfigCache {
    path: PathBuf,
    /// The last reading, where a change of the file would show. Empty after a bad one.
    kept: Mutex<Option<Kept>>,
    /// Of the last file that could be read: a bad edit does not take the list away (`policy.md` §8.1).
    skill_bins: watch::Sender<SkillBins>,
}

#[derive(Debug)]
struct Kept {
    mark: Mark,
    config: Arc<Config>,
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

impl ConfigCache {
    /// The file at `path`; it need not exist.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, kept: Mutex::default(), skill_bins: watch::Sender::new(Arc::default()) }
    }

    /// The configuration as it is now. While the file stays the same this is one look at it.
    ///
    /// # Errors
    /// The file cannot be used; the fault names it and the reason. Then nothing may run.
    pub(crate) fn load(&self) -> Result<Arc<Config>, Fault> {
        // Held to the end, so that no older reading replaces the news of a newer one.
        let mut kept = self.kept.lock();
        let mark = Mark::of(&self.path);
        if let (Some(kept), Some(mark)) = (&*kept, &mark)
            && kept.mark == *mark
        {
            return Ok(Arc::clone(&kept.config));
        }
        *kept = None;
        let config = Arc::new(Config::load(&self.path).map_err(|error| config_fault(&error))?);
        // A file that changed just now can change again and look the same: it is read again next time.
        if let Some(mark) = mark.filter(|mark| mark.stamp.is_settled()) {
            *kept = Some(Kept { mark, config: Arc::clone(&config) });
        }
        let names = skill_bins(&config);
        self.skill_bins.send_if_modified(|told| {
            let is_news = **told != *names;
            if is_news {
                *told = names.into();
            }
            is_news
        });
        Ok(config)
    }

    /// The programs of skills, now and after each change.
    pub(crate) fn skill_bins(&self) -> watch::Receiver<SkillBins> {
        // A bad file is told to whoever runs something.
        let _ = self.load();
        self.skill_bins.subscribe()
    }

    /// Looks at the file now and then, until `stopping`. A file that turns bad is logged once.
    pub(crate) async fn keep_fresh(&self, stopping: &CancellationToken) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        let mut bad = None;
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                _ = tick.tick() => {}
            }
            match self.load() {
                Ok(_) => {
                    if bad.take().is_some() {
                        tracing::info!(file = %self.path.display(), "the configuration can be used again");
                    }
                }
                Err(fault) => {
                    if bad.as_ref() != Some(&fault) {
                        tracing::warn!(%fault, "commands are refused");
                    }
                    bad = Some(fault);
                }
            }
        }
    }
}

/// The refusal for a configuration that cannot be used or changed.
pub(crate) fn config_fault(error: &ConfigError) -> Fault {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    Fault::new(ErrorCode::ConfigInvalid, message).hint(error.hint())
}

/// The names that can be those of programs, each once, up to the bound.
fn skill_bins(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in config.exec(None).skill_bins {
        let is_name = name.len() <= SKILL_BIN_LENGTH_MAX && !name.contains(['/', '\0']);
        if !is_name || names.contains(&name) {
            continue;
        }
        if names.len() == SKILL_BINS_MAX {
            tracing::warn!(max = SKILL_BINS_MAX, "skills.bins has more names; the rest is left out");
            break;
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use policy::Security;

    use super::*;

    fn security(cache: &ConfigCache) -> Option<Security> {
        cache.load().unwrap().exec(None).security
    }

    #[test]
    fn each_edit_is_seen_and_a_bad_one_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openclaw.json");
        let cache = ConfigCache::new(path.clone());
        assert_eq!(security(&cache), None, "no file");
        for (word, want) in [("deny", Security::Deny), ("full", Security::Full)] {
            fs::write(&path, format!("{{tools:{{exec:{{security:'{word}'}}}}}}")).unwrap();
            assert_eq!(security(&cache), Some(want));
        }
        fs::write(&path, "{tools:{exec:{\nsecurity:'never'}}}").unwrap();
        let fault = cache.load().unwrap_err();
        assert_eq!(fault.code, ErrorCode::ConfigInvalid);
        for part in [path.to_str().unwrap(), ":2", "tools.exec.security", "deny, allowlist, full"] {
            assert!(fault.message.contains(part), "{part}: {}", fault.message);
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(security(&cache), None, "gone");
    }

    #[test]
    fn a_settled_file_is_read_once_and_a_linked_one_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("mine.json"), "{tools:{exec:{security:'deny'}}}").unwrap();
        std::os::unix::fs::symlink("mine.json", at("openclaw.json")).unwrap();
        let cache = ConfigCache::new(at("openclaw.json"));
        let config = cache.load().unwrap();
        // As it would be kept a second after the write.
        let mark = Mark::of(&at("openclaw.json")).unwrap();
        assert!(mark.stamp.is_settled_at(SystemTime::now() + Duration::from_secs(3)));
        *cache.kept.lock() = Some(Kept { mark, config: Arc::clone(&config) });
        assert!(Arc::ptr_eq(&config, &cache.load().unwrap()));

        fs::write(at("mine.json"), "{tools:{exec:{security:'allowlist'}}}").unwrap();
        assert_eq!(security(&cache), Some(Security::Allowlist), "the file behind the link changed");
    }

    #[test]
    fn nodes_hear_of_other_skills_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openclaw.json");
        let cache = ConfigCache::new(path.clone());
        let mut told = cache.skill_bins();
        let table = [
            (r#"{"skills":{"bins":["gh"]}}"#, true),
            (r#"{"skills":{"bins":["gh"]},"x":1}"#, false),
            (r#"{"skills":{"bins":["gh","gh","a/b","jq"]}}"#, true),
            ("{", false),
            ("{}", true),
        ];
        for (text, news) in table {
            fs::write(&path, text).unwrap();
            let _ = cache.load();
            assert_eq!(told.has_changed().unwrap(), news, "{text}");
            told.mark_unchanged();
        }
        let many: Vec<_> = (0..600).map(|n| format!("\"p{n}\"")).collect();
        fs::write(&path, format!(r#"{{"skills":{{"bins":[{}]}}}}"#, many.join(","))).unwrap();
        cache.load().unwrap();
        assert_eq!(told.borrow_and_update().len(), SKILL_BINS_MAX);
    }
}
