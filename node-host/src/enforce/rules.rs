//! What the files of this machine say to an agent: `exec-approvals.json` and the `tools.exec` part of
//! `openclaw.json`, made ready for judging and kept until either file changes.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, ConfigError, ConfigFile};
use fault::Fault;
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
    config: ConfigFile,
    home: Option<PathBuf>,
    merged: Vec<(PathBuf, PathBuf)>,
    ready: Mutex<Ready>,
}

/// What was made of the files.
#[derive(Debug, Default)]
struct Ready {
    revision: u64,
    config: Option<Arc<Config>>,
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
        Self {
            approvals: Arc::new(approvals),
            config: ConfigFile::new(config),
            home,
            merged,
            ready: Mutex::default(),
        }
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
        let config = self.config.load().map_err(|error| config_fault(&error))?;
        let mut ready = self.ready.lock();
        let known = ready.config.as_ref().is_some_and(|known| Arc::ptr_eq(known, &config));
        if !known || ready.revision != document.revision {
            *ready =
                Ready { revision: document.revision, config: Some(Arc::clone(&config)), ..Ready::default() };
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
}

/// The refusal while the configuration cannot be used.
fn config_fault(error: &ConfigError) -> Fault {
    let mut fault = Fault::from(error);
    fault.message.insert_str(0, "SYSTEM_RUN_DENIED: nothing runs: ");
    fault
}
