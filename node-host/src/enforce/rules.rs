//! What the files of this machine say to an agent: `exec-approvals.json` and the `tools.exec` part of
//! `openclaw.json`, made ready for judging and kept until either file changes.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, ConfigFile, Loaded};
use fault::Fault;
use parking_lot::Mutex;
use policy::allowlist::Allowlist;
use policy::safe_bins::SafeBins;
use policy::{AllowEntry, Configured, HostPolicy};

use crate::approvals::Approvals;

/// Most agents whose rules are kept ready. Their names come from outside.
const AGENTS_KEPT: usize = 64;
/// Most warnings that are not repeated.
const WARNINGS_KEPT: usize = 256;
/// Directories that many systems merged into one.
const MERGED: [&str; 2] = ["/bin", "/sbin"];

/// The rules for one agent.
#[derive(Debug)]
pub(super) struct AgentRules {
    /// The document's words for it.
    pub(super) host: HostPolicy,
    /// The configuration's words for it.
    pub(super) configured: Configured,
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
    files: Option<(Arc<Loaded>, Arc<Config>)>,
    agents: HashMap<Option<String>, Arc<AgentRules>>,
    /// What the log was told. Rules are made ready anew whenever their use was noted.
    warned: BTreeSet<String>,
}

impl Ready {
    fn warn_once(&mut self, text: String) {
        if self.warned.len() >= WARNINGS_KEPT {
            self.warned.clear();
        }
        if !self.warned.contains(&text) {
            tracing::warn!("{text}");
            self.warned.insert(text);
        }
    }
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

    /// The document and the configuration as they are now.
    ///
    /// # Errors
    /// One of them cannot be used.
    fn files(&self) -> Result<(Arc<Loaded>, Arc<Config>), Fault> {
        let document = self.approvals.load().map_err(no_run)?;
        let config = self.config.load().map_err(|error| no_run(Fault::from(&error)))?;
        Ok((document, config))
    }

    /// The document and the configuration that the latest rules were made of.
    pub(super) fn latest(&self) -> Option<(Arc<Loaded>, Arc<Config>)> {
        self.ready.lock().files.clone()
    }

    /// Whether this machine takes only decisions that an approver signed.
    ///
    /// # Errors
    /// The configuration cannot be used. Then nothing may run.
    pub(super) fn requires_signature(&self) -> Result<bool, Fault> {
        let config = self.config.load().map_err(|error| no_run(Fault::from(&error)))?;
        Ok(config.require_signed())
    }

    /// These entries, ready, besides those of an agent.
    pub(super) fn with_grants(&self, rules: &AgentRules, granted: &[AllowEntry]) -> Allowlist {
        let entries: Vec<_> = rules.host.allowlist.iter().chain(granted).cloned().collect();
        Allowlist::compile(&entries, self.home.as_deref(), &self.merged)
    }

    /// The rules for an agent, from the files as they are now.
    ///
    /// # Errors
    /// A file cannot be used. Then nothing may run.
    pub(super) fn for_agent(&self, agent: Option<&str>) -> Result<Arc<AgentRules>, Fault> {
        let (document, config) = self.files()?;
        let mut ready = self.ready.lock();
        let known = ready.files.as_ref().is_some_and(|(known, made_of)| {
            known.revision == document.revision && Arc::ptr_eq(made_of, &config)
        });
        if !known {
            ready.agents.clear();
            ready.files = Some((Arc::clone(&document), Arc::clone(&config)));
        }
        let key = agent.map(str::to_owned);
        if let Some(rules) = ready.agents.get(&key) {
            return Ok(Arc::clone(rules));
        }
        let exec = config.exec(agent);
        let host = document.document.resolve(agent);
        let configured = Configured { security: exec.security, ask: exec.ask };
        let allowlist = Allowlist::compile(&host.allowlist, self.home.as_deref(), &self.merged);
        for problem in allowlist.problems() {
            ready.warn_once(format!("out of force in {}: {problem}", self.approvals.path().display()));
        }
        let (safe_bins, warnings) = SafeBins::new(&exec.safe_bins);
        for warning in warnings {
            ready.warn_once(format!("{}: {}", warning.id, warning.message));
        }
        for dir in safe_bins.trusted_dirs() {
            let open = dir.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 != 0);
            if open {
                ready.warn_once(format!("others may write the trusted directory {}", dir.display()));
            }
        }
        let strict_inline_eval = exec.strict_inline_eval;
        let rules = Arc::new(AgentRules { host, configured, allowlist, safe_bins, strict_inline_eval });
        if ready.agents.len() >= AGENTS_KEPT {
            ready.agents.clear();
        }
        ready.agents.insert(key, Arc::clone(&rules));
        Ok(rules)
    }
}

/// The refusal of a run while a file cannot be used.
fn no_run(mut fault: Fault) -> Fault {
    fault.message.insert_str(0, "SYSTEM_RUN_DENIED: ");
    fault
}
