//! `openclaw.json` as the gateway uses it: read again when it changed, and the programs of skills in it.
//!
//! Owns when the file is read and what is told to nodes. What its keys mean is the `config` crate's affair. A file that
//! cannot be used refuses the call: the caller asked under a policy that nobody knows any more.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Config, ConfigFile};
use fault::Fault;
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
    file: ConfigFile,
    /// What nodes were told of last. Held from a reading to the news of it, so that no older reading replaces a newer
    /// one.
    told: Mutex<Option<Arc<Config>>>,
    /// Of the last file that could be read: a bad edit does not take the list away (`policy.md` §8.1).
    skill_bins: watch::Sender<SkillBins>,
}

impl ConfigCache {
    /// The file at `path`; it need not exist.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            file: ConfigFile::new(path),
            told: Mutex::default(),
            skill_bins: watch::Sender::new(Arc::default()),
        }
    }

    /// The configuration as it is now. While the file stays the same this is one look at it.
    ///
    /// # Errors
    /// The file cannot be used; the fault names it and the reason. Then nothing may run.
    pub(crate) fn load(&self) -> Result<Arc<Config>, Fault> {
        let mut told = self.told.lock();
        let config = self.file.load().map_err(|error| Fault::from(&error))?;
        // The same reading says the same; every command passes here.
        if told.as_ref().is_some_and(|told| Arc::ptr_eq(told, &config)) {
            return Ok(config);
        }
        let names = skill_bins(&config);
        self.skill_bins.send_if_modified(|told| {
            let is_news = **told != *names;
            if is_news {
                *told = names.into();
            }
            is_news
        });
        *told = Some(Arc::clone(&config));
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
                        tracing::info!(file = %self.file.path().display(), "the configuration can be used again");
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

/// The names that can be those of programs, each once, up to the bound.
fn skill_bins(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for name in config.exec(None).skill_bins {
        let is_name = name.len() <= SKILL_BIN_LENGTH_MAX && !name.contains(['/', '\0']);
        if !is_name || !seen.insert(name.clone()) {
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
    use std::fs;

    use fault::ErrorCode;
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
