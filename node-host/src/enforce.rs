//! The node's door: may this run, and what exactly is launched?
//!
//! [`Door::decide`] is the only maker of a [`Permit`], and a permit is the only
//! thing that starts a session. It trusts no field that the gateway sets: all
//! checks of the gateway are made again here, and the policy in force is the
//! stricter of what was asked for and this machine's own document.

mod asked;
mod command;
mod workdir;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fault::{ErrorCode, Fault};
use parking_lot::RwLock;
use policy::{DenialKind, EffectivePolicy, PassList, Verdict, clean_inherited, judge};
use proto::v1 as pb;
use session::RunId;

use crate::approvals::Approvals;
use crate::process::{EnvVar, Mode};
use crate::sessions::StartRequest;

pub use asked::Asked;

/// Time between TERM and KILL. Short enough that a kill or a deadline leaves
/// nothing alive after two seconds.
pub const KILL_GRACE_MS: u64 = 1000;

/// The door of one node host.
#[derive(Debug)]
pub struct Door {
    approvals: Approvals,
    /// The service's environment as it was at the start, cleaned.
    base_env: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    /// Where commands run that name no directory.
    default_dir: PathBuf,
    /// For texts about this node: what the gateway calls it, once that is known.
    name: RwLock<Arc<str>>,
}

/// A command that may run, once.
#[derive(Debug)]
pub struct Permit {
    request: StartRequest,
    effective: EffectivePolicy,
    command_text: String,
}

impl Permit {
    /// What is launched.
    pub fn into_request(self) -> StartRequest {
        self.request
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
        }
    }
}

impl Door {
    /// A door for a process whose environment is `environment`. Variables
    /// named in `pass` reach commands though they look like secrets.
    pub fn new(
        approvals: Approvals,
        environment: impl Iterator<Item = (OsString, OsString)>,
        pass: &PassList,
        default_dir: PathBuf,
        name: String,
    ) -> Self {
        let base_env: BTreeMap<_, _> = clean_inherited(environment, pass).into_iter().collect();
        let home = base_env.get(&OsString::from("HOME")).map(PathBuf::from);
        Self { approvals, base_env, home, default_dir, name: RwLock::new(name.into()) }
    }

    /// From now on texts call this node so.
    pub fn call_it(&self, name: &str) {
        *self.name.write() = name.into();
    }

    /// The document of this machine.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// PATH as commands get it.
    pub fn path_env(&self) -> OsString {
        self.base_env.get(&OsString::from("PATH")).cloned().unwrap_or_default()
    }

    /// Decides, and if it may run says exactly what runs. The fields of the request count as checked, the policy and
    /// the machine are looked at now.
    ///
    /// # Errors
    /// When the policy refuses, the working directory is of no use, or the system could not take the command.
    pub fn decide(&self, asked: Asked) -> Result<Permit, Fault> {
        let Asked { run_id, command, requested, overrides, mode, deadline_ms, agent, workdir, input_digest } =
            asked;
        let effective = EffectivePolicy::combine(requested, &self.approvals.policy(agent.as_deref())?);
        if let Verdict::Denied(denial) = judge(&effective) {
            tracing::info!(rule = denial.rule_id, run = %run_id, "run denied");
            let code = match denial.kind {
                DenialKind::Disabled => ErrorCode::SystemRunDisabled,
                DenialKind::Denied => ErrorCode::SystemRunDenied,
            };
            return Err(Fault::new(code, denial.message).hint(denial.hint));
        }

        let cwd = self.workdir(&workdir)?;
        let env = self.environment(&overrides, &cwd, &mode, &run_id);
        command::check_size(&command.argv, &env)?;
        let label = command.text.chars().take(512).collect();
        Ok(Permit {
            request: StartRequest {
                run_id,
                input_digest,
                label,
                argv: command.argv,
                env,
                cwd,
                mode,
                deadline_ms,
                kill_grace_ms: KILL_GRACE_MS,
            },
            effective,
            command_text: command.text,
        })
    }

    /// Reads a request and decides.
    ///
    /// # Errors
    /// See [`Asked::read`] and [`Door::decide`].
    pub fn admit(&self, run: &pb::RunRequest) -> Result<Permit, Fault> {
        self.decide(Asked::read(run)?)
    }

    fn workdir(&self, given: &str) -> Result<PathBuf, Fault> {
        let name = Arc::clone(&self.name.read());
        workdir::resolve(given, &self.default_dir, self.home.as_deref(), &name)
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

/// The wire's word.
pub fn security_to_wire(security: policy::Security) -> pb::Security {
    match security {
        policy::Security::Deny => pb::Security::Deny,
        policy::Security::Allowlist => pb::Security::Allowlist,
        policy::Security::Full => pb::Security::Full,
    }
}

/// The wire's word.
pub fn ask_to_wire(ask: policy::Ask) -> pb::Ask {
    match ask {
        policy::Ask::Off => pb::Ask::Off,
        policy::Ask::OnMiss => pb::Ask::OnMiss,
        policy::Ask::Always => pb::Ask::Always,
    }
}

pub(crate) fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests;
