//! What the files of this machine say to an agent: `exec-approvals.json` and the `tools.exec` part of
//! `openclaw.json`, made ready for judging and kept until either file changes.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, FileStamp};
use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use policy::HostPolicy;
use policy::allowlist::Allowlist;
use policy::safe_bins::SafeBins;

use crate::approvals::Approvals;

/// Most agents whose rules are kept ready. Their names come from outside.
const AGENTS_KEPT: usize = 64;
/// Directories that many systems merged into one.
const MERGED: [&str; 2] = ["/bin", "/sbin"];

/// The rules for one agent.
#[derive(Debug)]
pub(super) struct AgentRules {
    /// The document's words for it, and the configuration's where they are stricter.
    pub(super) host: HostPolicy,
    /// The document's entries.
    pub(super) allowlist: Allowlist,
    /// The configuration's safe bins.
    pub(super) safe_bins: SafeBins,
    /// Code for interpreters needs a person's yes.
    pub(super) strict_inline_eval: bool,
}

/// The rules of one machine.
#[derive(Debug)]
pub(super) struct RuleBook {
    approvals: Arc<Approvals>,
    config: PathBuf,
    home: Option<PathBuf>,
    merged: Vec<(PathBuf, PathBuf)>,
    ready: Mutex<Ready>,
}

/// What was made of the files.
#[derive(Debug, Default)]
struct Ready {
    revision: u64,
    config: Option<(Arc<Config>, Option<FileStamp>)>,
    agents: HashMap<Option<String>, Arc<AgentRules>>,
}

impl RuleBook {
    /// The rules in `approvals` and in the configuration file at `config`.
    pub(super) fn new(approvals: Approvals, config: PathBuf, home: Option<PathBuf>) -> Self {
        let merged = MERGED
            .into_iter()
            .filter_map(|dir| {
                let real = Path::new(dir).canonicalize().ok()?;
                (real != Path::new(dir)).then(|| (PathBuf::from(dir), real))
            })
            .collect();
        Self { approvals: Arc::new(approvals), config, home, merged, ready: Mutex::default() }
    }

    /// The document.
    pub(super) fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    /// The rules for an agent, from the files as they are now.
    ///
    /// # Errors
    /// A file cannot be used. Then nothing may run.
    pub(super) fn for_agent(&self, agent: Option<&str>) -> Result<Arc<AgentRules>, Fault> {
        let document = self.approvals.load()?;
        let mut ready = self.ready.lock();
        let config = self.config(&mut ready)?;
        if ready.revision != document.revision {
            ready.agents.clear();
            ready.revision = document.revision;
        }
        let key = agent.map(str::to_owned);
        if let Some(rules) = ready.agents.get(&key) {
            return Ok(Arc::clone(rules));
        }
        let exec = config.exec(agent);
        let mut host = document.document.resolve(agent);
        host.security = exec.security.map_or(host.security, |security| security.stricter(host.security));
        host.ask = exec.ask.map_or(host.ask, |ask| ask.stricter(host.ask));
        let allowlist = Allowlist::compile(&host.allowlist, self.home.as_deref(), &self.merged);
        for problem in allowlist.problems() {
            tracing::warn!(file = %self.approvals.path().display(), %problem, "an allowlist entry is out of force");
        }
        let (safe_bins, warnings) = SafeBins::new(&exec.safe_bins);
        for warning in warnings {
            tracing::warn!(id = warning.id, "{}", warning.message);
        }
        for dir in safe_bins.trusted_dirs() {
            let open = dir.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 != 0);
            if open {
                tracing::warn!(dir = %dir.display(), "others may write this trusted directory");
            }
        }
        let strict_inline_eval = exec.strict_inline_eval;
        let rules = Arc::new(AgentRules { host, allowlist, safe_bins, strict_inline_eval });
        if ready.agents.len() >= AGENTS_KEPT {
            ready.agents.clear();
        }
        ready.agents.insert(key, Arc::clone(&rules));
        Ok(rules)
    }

    fn config(&self, ready: &mut Ready) -> Result<Arc<Config>, Fault> {
        let stamp = FileStamp::of(&self.config);
        if let Some((config, read_at)) = &ready.config
            && *read_at == stamp
        {
            return Ok(Arc::clone(config));
        }
        // Whatever was made of the old text is void, also where the new one is bad.
        ready.agents.clear();
        ready.config = None;
        let config = Config::load(&self.config).map(Arc::new).map_err(|e| {
            Fault::new(ErrorCode::ConfigInvalid, format!("SYSTEM_RUN_DENIED: nothing runs: {e}"))
                .hint("repair the file; it is read again at the next run")
        })?;
        // A file that changed just now may change again and look the same, so it is read again next time.
        if stamp.is_none_or(|stamp| stamp.is_settled()) {
            ready.config = Some((Arc::clone(&config), stamp));
        }
        Ok(config)
    }
}
