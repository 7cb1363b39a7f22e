//! The node's door: may this run, and what exactly is launched?
//!
//! [`Door::admit`] is the only maker of a [`Permit`], and a permit is the only
//! thing that starts a session. It trusts no field that the gateway sets: all
//! checks of the gateway are made again here, and the policy in force is the
//! stricter of what was asked for and this machine's own document.

mod command;
mod workdir;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use fault::{ErrorCode, Fault};
use policy::{
    DenialKind, EffectivePolicy, PassList, Requested, Verdict, check_overrides, clean_inherited, judge,
};
use proto::v1 as pb;
use session::RunId;
use sha2::{Digest as _, Sha256};

use crate::approvals::Approvals;
use crate::process::{EnvVar, Mode, Stdin};
use crate::sessions::StartRequest;

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
    /// For texts about this node.
    name: String,
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
        Self { approvals, base_env, home, default_dir, name }
    }

    /// The document of this machine.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// PATH as commands get it.
    pub fn path_env(&self) -> OsString {
        self.base_env.get(&OsString::from("PATH")).cloned().unwrap_or_default()
    }

    /// Decides, and if it may run says exactly what runs.
    pub fn admit(&self, run: &pb::RunRequest) -> Result<Permit, Fault> {
        let run_id = RunId::parse(&run.run_id).map_err(|e| invalid(format!("run id: {e}")))?;
        let command = command::parse(run.invocation.as_ref())?;
        let requested = requested(run)?;
        let overrides =
            check_overrides(run.env.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(|rejected| {
                Fault::new(ErrorCode::EnvRejected, format!("SYSTEM_RUN_DENIED: {rejected}"))
                    .hint("leave these variables out; the node's own values are used")
            })?;
        let mode = mode(run)?;
        let deadline_ms = deadline(run.deadline.as_ref())?;

        let agent = (!run.agent_id.is_empty()).then_some(run.agent_id.as_str());
        let effective = EffectivePolicy::combine(requested, &self.approvals.policy(agent)?);
        if let Verdict::Denied(denial) = judge(&effective) {
            tracing::info!(rule = denial.rule_id, run = %run_id, "run denied");
            let code = match denial.kind {
                DenialKind::Disabled => ErrorCode::SystemRunDisabled,
                DenialKind::Denied => ErrorCode::SystemRunDenied,
            };
            return Err(Fault::new(code, denial.message).hint(denial.hint));
        }

        let cwd = self.workdir(&run.workdir)?;
        let env = self.environment(&overrides, &cwd, &mode, &run_id);
        command::check_size(&command.argv, &env)?;
        let input_digest = digest(run);
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

    fn workdir(&self, given: &str) -> Result<PathBuf, Fault> {
        workdir::resolve(given, &self.default_dir, self.home.as_deref(), &self.name)
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

fn requested(run: &pb::RunRequest) -> Result<Requested, Fault> {
    let security = match run.security() {
        pb::Security::Deny => policy::Security::Deny,
        pb::Security::Allowlist => policy::Security::Allowlist,
        pb::Security::Full => policy::Security::Full,
        pb::Security::Unspecified => return Err(invalid("the request names no known security")),
    };
    let ask = match run.ask() {
        pb::Ask::Off => policy::Ask::Off,
        pb::Ask::OnMiss => policy::Ask::OnMiss,
        pb::Ask::Always => policy::Ask::Always,
        pb::Ask::Unspecified => return Err(invalid("the request names no known ask")),
    };
    Ok(Requested { security, ask })
}

fn mode(run: &pb::RunRequest) -> Result<Mode, Fault> {
    match (&run.terminal, run.stdin()) {
        (Some(size), pb::Stdin::Open) => {
            let cells = |n: u32| u16::try_from(n).ok().filter(|n| *n > 0);
            match (cells(size.columns), cells(size.rows)) {
                (Some(cols), Some(rows)) => Ok(Mode::Terminal { cols, rows }),
                _ => Err(invalid("a terminal has 1 to 65535 columns and rows")),
            }
        }
        (Some(_), _) => Err(invalid("a terminal's input is always open")),
        (None, pb::Stdin::Open) => Ok(Mode::Pipes { stdin: Stdin::Open }),
        (None, pb::Stdin::Closed) => Ok(Mode::Pipes { stdin: Stdin::Null }),
        (None, pb::Stdin::Unspecified) => Err(invalid("the request does not say what standard input is")),
    }
}

fn deadline(deadline: Option<&pb::Deadline>) -> Result<Option<u64>, Fault> {
    match deadline.and_then(|d| d.limit) {
        Some(pb::deadline::Limit::TimeoutMs(ms)) if ms > 0 => Ok(Some(ms)),
        Some(pb::deadline::Limit::None(true)) => Ok(None),
        Some(_) | None => Err(invalid("the request names no deadline (none is said with `none`)")),
    }
}

/// Digest of everything that the caller chose, for the receipt: the same run
/// id with other input is refused.
fn digest(run: &pb::RunRequest) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    match run.invocation.as_ref().and_then(|i| i.form.as_ref()) {
        Some(pb::invocation::Form::Shell(text)) => {
            field(b"shell");
            field(text.as_bytes());
        }
        Some(pb::invocation::Form::Argv(argv)) => {
            field(b"argv");
            field(&(argv.words.len() as u64).to_le_bytes());
            for word in &argv.words {
                field(word.as_bytes());
            }
        }
        None => field(b"none"),
    }
    field(run.workdir.as_bytes());
    let sorted: BTreeMap<_, _> = run.env.iter().collect();
    field(&(sorted.len() as u64).to_le_bytes());
    for (key, value) in sorted {
        field(key.as_bytes());
        field(value.as_bytes());
    }
    field(&run.stdin.to_le_bytes());
    let size = run.terminal.unwrap_or_default();
    field(&size.columns.to_le_bytes());
    field(&size.rows.to_le_bytes());
    match run.deadline.as_ref().and_then(|d| d.limit) {
        Some(pb::deadline::Limit::TimeoutMs(ms)) => field(&ms.to_le_bytes()),
        Some(pb::deadline::Limit::None(_)) | None => field(b"none"),
    }
    field(run.agent_id.as_bytes());
    field(run.session_key.as_bytes());
    hash.finalize().into()
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
