//! A permit: exactly what runs, and what is told of it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use config::RuleUsage;
use fault::Fault;
use policy::allowlist::Allowlist;
use policy::plan::{Grant, Plan};
use policy::{EffectivePolicy, Security, reduce_for_shell_wrapper};
use proto::v1 as pb;
use session::RunId;

use super::considered::Considered;
use super::{Asked, Door, KILL_GRACE_MS, ask_to_wire, command, security_to_wire};
use crate::process::holder::unix_ms;
use crate::process::{Bound, BoundRole, EnvVar, Mode};
use crate::sessions::StartRequest;

/// Longest text that lists and logs keep, in characters.
const SHORTENED: usize = 512;

/// What became of an allow-always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The rules that are kept, in words.
    pub stored: Vec<String>,
    /// Why none are.
    pub not_stored: String,
}

/// A command that may run, once.
#[derive(Debug)]
pub struct Permit {
    pub(super) request: StartRequest,
    effective: EffectivePolicy,
    command_text: String,
    notes: Notes,
}

/// What is to be told of a permit besides its launch.
#[derive(Debug, Default)]
pub struct Notes {
    /// Variables of the request that do not reach the command.
    pub left_out_env: Vec<String>,
    /// The entries that satisfied it.
    pub used: Vec<RuleUsage>,
    /// What its allow-always kept.
    pub kept: Kept,
    /// The approval that let it run.
    pub approval_id: Option<String>,
}

impl Permit {
    /// What is launched.
    pub fn into_request(self) -> StartRequest {
        self.request
    }

    /// The same, by this approval.
    pub(super) fn by_approval(mut self, id: &str) -> Self {
        self.notes.approval_id = Some(id.chars().take(128).collect());
        self
    }

    /// What is to be told of it. The second time there is nothing.
    pub fn take_notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }

    /// The plan as `system.run.prepare` reports it.
    pub fn plan(&self, run: &pb::RunRequest) -> pb::Plan {
        pb::Plan {
            argv: self.request.argv.clone(),
            workdir: self.request.cwd.display().to_string(),
            command_text: self.command_text.clone(),
            agent_id: run.agent_id.clone(),
            session_key: run.session_key.clone(),
            security: security_to_wire(self.effective.security).into(),
            ask: ask_to_wire(self.effective.ask).into(),
            digest: self.request.input_digest.to_vec().into(),
            ..pb::Plan::default()
        }
    }
}

impl Door {
    /// Makes the permit for these words.
    ///
    /// # Errors
    /// The system could not take them.
    pub(super) fn permit(
        &self,
        asked: Asked,
        considered: &Considered,
        argv: Vec<String>,
        bound: Option<Box<Bound>>,
        kept: Kept,
    ) -> Result<Permit, Fault> {
        let owner = asked.owner();
        let Asked {
            run_id,
            command,
            overrides,
            mode,
            deadline_ms,
            agent,
            input_digest,
            limits,
            log_bytes,
            answer_queries,
            ..
        } = asked;
        let plan = considered.judgement.plan.as_ref();
        let wrapped = plan.is_some_and(Plan::starts_shell_wrapper);
        let (overrides, left_out_env) = if wrapped && considered.effective.security == Security::Allowlist {
            reduce_for_shell_wrapper(&overrides)
        } else {
            (overrides, Vec::new())
        };
        let mut env = self.environment(&overrides, &considered.cwd, &mode, &run_id);
        if let Some(bound) = &bound {
            env.extend(script_variables(bound));
        }
        let used = plan.map(|plan| used(plan, considered.allowlist(), agent.as_deref(), &command.text));
        let used = used.unwrap_or_default();
        command::check_size(&argv, &env)?;
        let label = shortened(&command.text);
        Ok(Permit {
            request: StartRequest {
                run_id,
                input_digest,
                label,
                argv,
                env,
                cwd: considered.cwd.clone(),
                mode,
                deadline_ms,
                kill_grace_ms: KILL_GRACE_MS,
                bound,
                owner,
                limits,
                log_bytes,
                answer_queries,
            },
            effective: considered.effective.clone(),
            command_text: command.text,
            notes: Notes { left_out_env, used, kept, approval_id: None },
        })
    }

    /// The cleaned environment of this service, what the caller set, and our
    /// own marks. Nothing of the gateway's environment is here.
    fn environment(
        &self,
        overrides: &[(String, String)],
        cwd: &Path,
        mode: &Mode,
        run_id: &RunId,
    ) -> Vec<EnvVar> {
        let mut env = self.base_env.clone();
        env.remove(&OsString::from("OLDPWD"));
        for (key, value) in overrides {
            env.insert(key.into(), value.into());
        }
        env.insert("PWD".into(), cwd.into());
        for (key, value) in policy::CHILD_MARKERS {
            env.insert(key.into(), value.into());
        }
        env.insert("FARRUN_RUN_ID".into(), run_id.as_str().into());
        if matches!(mode, Mode::Terminal { .. }) {
            let term = env.get(&OsString::from("TERM")).cloned().unwrap_or_default();
            if term.is_empty() || term == "dumb" {
                env.insert("TERM".into(), "xterm-256color".into());
            }
        }
        env.into_iter().map(|(key, value)| (key.into_vec(), value.into_vec())).collect()
    }
}

/// What a program that runs from a descriptor cannot tell from its own name: where it lies, and for Python, which looks
/// for modules beside its script, that directory.
fn script_variables(bound: &Bound) -> Vec<EnvVar> {
    let script = bound.files.iter().find(|file| file.role == BoundRole::Script);
    let Some(file) = script.or_else(|| bound.files.get(bound.exec)) else { return Vec::new() };
    let path = file.path.as_os_str().as_encoded_bytes();
    let mut variables = vec![(b"FARRUN_SCRIPT".to_vec(), path.to_vec())];
    if path.ends_with(b".py")
        && let Some(dir) = file.path.parent()
    {
        variables.push((b"PYTHONPATH".to_vec(), dir.as_os_str().as_encoded_bytes().to_vec()));
    }
    variables
}

/// A text as lists and logs keep it.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(SHORTENED).collect()
}

/// The entries that satisfied a plan.
fn used(plan: &Plan, allowlist: &Allowlist, agent: Option<&str>, text: &str) -> Vec<RuleUsage> {
    let entries = allowlist.entries();
    plan.each()
        .filter_map(|segment| {
            let Ok(Grant::Entry { index, .. }) = &segment.decided else { return None };
            let entry = entries.get(*index)?;
            let program = segment.programs.iter().find(|(at, _)| *at == segment.subject);
            Some(RuleUsage {
                agent: agent.map(str::to_owned),
                pattern: entry.pattern.clone(),
                arg_pattern: entry.arg_pattern.clone(),
                at_ms: unix_ms(),
                command: shortened(text),
                resolved_path: program.map(|(_, program)| program.file.real.display().to_string()),
            })
        })
        .collect()
}
