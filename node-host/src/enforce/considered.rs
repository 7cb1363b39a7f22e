//! A command, judged by the rules and the machine as they are now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fault::{ErrorCode, Fault};
use policy::allowlist::Allowlist;
use policy::analyse::Rules;
use policy::inline_eval::Input;
use policy::plan::Plan;
use policy::resolve::Lookup;
use policy::safe_bins::SafeBins;
use policy::skills::Skills;
use policy::{EffectivePolicy, Judgement, Security, Terms, judge};

use super::command::Command;
use super::rules::AgentRules;
use super::snapshot::Snapshot;
use super::{Asked, Door, check_words};

/// A command, judged by the rules and the machine as they are now.
#[derive(Debug)]
pub(super) struct Considered {
    pub(super) rules: Arc<AgentRules>,
    /// The entries and what a person allowed for a time, where there is such.
    pub(super) granted: Option<Allowlist>,
    pub(super) effective: EffectivePolicy,
    pub(super) cwd: PathBuf,
    pub(super) judgement: Judgement,
    /// Code for interpreters needs a person's yes, by this machine's word or the caller's.
    pub(super) strict_inline_eval: bool,
}

impl Considered {
    pub(super) fn allowlist(&self) -> &Allowlist {
        self.granted.as_ref().unwrap_or(&self.rules.allowlist)
    }

    pub(super) fn lookup<'a>(&'a self, door: &'a Door) -> Lookup<'a> {
        door.lookup(Some(&self.cwd))
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.rules, &self.effective, self.strict_inline_eval)
    }
}

impl Door {
    /// Judges by what is there now, and looks at the programs once more. Where one was swapped in between, the new one is
    /// judged.
    pub(super) fn consider(&self, asked: &Asked) -> Result<Considered, Fault> {
        let rules = self.rules.for_agent(asked.agent.as_deref())?;
        self.note_changes();
        let effective = EffectivePolicy::combine_all(asked.requested, rules.configured, &rules.host);
        let strict_inline_eval = asked.strict_inline_eval || rules.strict_inline_eval;
        let terms = Terms { policy: &effective, strict_inline_eval };
        let judge = |allowlist, cwd| {
            self.judge(&asked.command, asked.input(), cwd, &rules.safe_bins, allowlist, terms)
        };
        if effective.security == Security::Deny {
            let nowhere = judge(&rules.allowlist, None);
            return Err(self.denied(nowhere, &asked.run_id, &rules));
        }
        check_words(&asked.command)?;
        let cwd = self.workdir(&asked.workdir)?;
        let entries = self.grants.entries(asked.agent.as_deref(), &asked.session_key, Instant::now());
        let granted = (!entries.is_empty()).then(|| self.rules.with_grants(&rules, &entries));
        let mut swapped = PathBuf::new();
        for _ in 0..2 {
            let judgement = judge(granted.as_ref().unwrap_or(&rules.allowlist), Some(&cwd));
            match self.disk.confirm(judgement.plan.iter().flat_map(Plan::each)) {
                Ok(()) => {
                    return Ok(Considered { rules, granted, effective, cwd, judgement, strict_inline_eval });
                }
                Err(path) => swapped = path,
            }
        }
        Err(Fault::new(
            ErrorCode::SystemRunDenied,
            format!("SYSTEM_RUN_DENIED: {} is being replaced while it is looked at", swapped.display()),
        )
        .hint("try again when it is in place"))
    }

    pub(super) fn lookup<'a>(&'a self, cwd: Option<&'a Path>) -> Lookup<'a> {
        Lookup { files: &self.disk, path: &self.path, cwd, home: self.home.as_deref() }
    }

    /// The programs of skills, where they count.
    pub(super) fn skills_for(&self, effective: &EffectivePolicy, lookup: &Lookup<'_>) -> Option<Arc<Skills>> {
        effective.auto_allow_skills.then(|| self.skills.resolved(lookup))
    }

    pub(super) fn judge(
        &self,
        command: &Command,
        input: Input,
        cwd: Option<&Path>,
        safe_bins: &SafeBins,
        allowlist: &Allowlist,
        terms: Terms<'_>,
    ) -> Judgement {
        let lookup = self.lookup(cwd);
        let skills = self.skills_for(terms.policy, &lookup).unwrap_or_default();
        judge(command.invocation(), lookup, Rules { allowlist, safe_bins, skills: &skills, input }, terms)
    }
}
