//! The node's door: may this run, and what exactly is launched?
//!
//! [`Door::decide`] and [`Door::settle`] are the only makers of a [`Permit`], and a
//! permit is the only thing that starts a session. It trusts no field that the gateway sets: all
//! checks of the gateway are made again here, and the policy in force is the
//! stricter of what was asked for and this machine's own document.

mod asked;
mod binding;
mod changes;
mod command;
mod considered;
mod content;
mod disk;
mod explained;
mod grants;
mod open_plans;
mod permit;
mod redeem;
mod rules;
mod skill_list;
mod snapshot;
mod workdir;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use audit::Log;
use config::StateDir;
use fault::{ErrorCode, Fault};
use parking_lot::RwLock;
use policy::command::blocked_env_assignments;
use policy::explain::OWNER_COMMAND;
use policy::plan::Launch;
use policy::{
    Denial, DenialKind, EffectivePolicy, Judgement, PassList, Requested, Security, Verdict, clean_inherited,
};
use proto::v1 as pb;
use session::RunId;

use crate::approvals::Approvals;
use crate::approvers::ApproversFile;

pub use asked::Asked;
use changes::Changes;
use command::Command;
use considered::Considered;
use disk::Disk;
pub use explained::Question;
use grants::Grants;
use open_plans::OpenPlans;
pub use permit::{Kept, Notes, Permit};
use rules::{AgentRules, RuleBook};
use skill_list::SkillList;

/// Time between TERM and KILL. Short enough that a kill or a deadline leaves
/// nothing alive after two seconds.
pub const KILL_GRACE_MS: u64 = 1000;

/// The door of one node host.
#[derive(Debug)]
pub struct Door {
    rules: RuleBook,
    disk: Disk,
    skills: SkillList,
    /// The service's environment as it was at the start, cleaned.
    base_env: BTreeMap<OsString, OsString>,
    /// PATH in there. Commands get no other.
    path: String,
    home: Option<PathBuf>,
    /// Where commands run that name no directory.
    default_dir: PathBuf,
    /// `node-host policy`, with what it needs to find this machine's rules.
    owner_command: String,
    /// For texts about this node: what the gateway calls it, once that is known.
    name: RwLock<Arc<str>>,
    /// The fingerprint of this node's key.
    node_id: String,
    plans: OpenPlans,
    changes: Changes,
    grants: Grants,
    approvers: ApproversFile,
    /// Where decisions and runs are written down; none where nobody asked for it.
    audit: Option<Arc<Log>>,
}

/// What the door says to a command.
#[derive(Debug)]
pub enum Decided {
    /// It may run.
    Run(Box<Permit>),
    /// [`Door::settle`] has to look at files first.
    Later(Box<Asked>),
}

/// What the door says after it looked at files.
#[derive(Debug)]
pub enum Settled {
    /// It may run.
    Run(Box<Permit>),
    /// A person must say yes to this plan.
    Ask(Box<pb::Plan>),
}

impl Door {
    /// A door for a process whose environment is `environment`. Variables
    /// named in `pass` reach commands though they look like secrets.
    pub fn new(
        approvals: Approvals,
        config: PathBuf,
        environment: impl Iterator<Item = (OsString, OsString)>,
        pass: &PassList,
        default_dir: PathBuf,
        name: String,
    ) -> Self {
        let base_env: BTreeMap<_, _> = clean_inherited(environment, pass).into_iter().collect();
        let home = base_env.get(&OsString::from("HOME")).map(PathBuf::from);
        // A PATH that no rule could name is not searched.
        let path = base_env.get(&OsString::from("PATH")).and_then(|path| path.to_str()).unwrap_or_default();
        Self {
            rules: RuleBook::new(approvals, config, home.clone()),
            disk: Disk::default(),
            skills: SkillList::default(),
            path: path.to_owned(),
            base_env,
            home,
            default_dir,
            owner_command: OWNER_COMMAND.to_owned(),
            name: RwLock::new(name.into()),
            node_id: String::new(),
            plans: OpenPlans::default(),
            changes: Changes::default(),
            grants: Grants::default(),
            approvers: ApproversFile::new(PathBuf::new()),
            audit: None,
        }
    }

    /// Plans name this node, and these people's signatures count.
    #[must_use]
    pub fn with_identity(mut self, node_id: String, approvers: ApproversFile) -> Self {
        self.node_id = node_id;
        self.approvers = approvers;
        self
    }

    /// Requests and decisions are written down here.
    #[must_use]
    pub fn with_audit(mut self, log: Arc<Log>) -> Self {
        self.audit = Some(log);
        self
    }

    /// Writes down that a run was refused.
    pub(crate) fn note_denied(&self, run: &pb::RunRequest, fault: &Fault) {
        self.note("run.denied", || {
            let command = command::parse(run.invocation.as_ref()).map(|command| permit::shortened(&command.text));
            serde_json::json!({
                "runId": permit::shortened(&run.run_id), "command": command.unwrap_or_default(), "agentId": permit::shortened(&run.agent_id),
                "code": fault.code.as_str(), "message": fault.message,
            })
        });
    }

    /// Writes something down. A log that cannot be written is told of and stops nothing.
    pub(crate) fn note(&self, kind: &str, data: impl FnOnce() -> serde_json::Value) {
        if let Some(log) = &self.audit
            && let Err(error) = log.append(kind, data())
        {
            tracing::error!(kind, %error, "the audit log could not be written");
        }
    }

    /// The rules lie in this directory: the owner's command gets `--state-dir` where it would look elsewhere.
    #[must_use]
    pub fn with_state_dir(mut self, state: &StateDir) -> Self {
        if !state.is_default() {
            self.owner_command = format!("{OWNER_COMMAND} --state-dir {}", shell_word(state.path()));
        }
        self
    }

    /// From now on texts call this node so.
    pub fn call_it(&self, name: &str) {
        *self.name.write() = name.into();
    }

    /// The document of this machine.
    pub fn approvals(&self) -> &Arc<Approvals> {
        self.rules.approvals()
    }

    /// What this machine allows an agent, as its files are now, and how many rules it has for it.
    ///
    /// # Errors
    /// One of them cannot be used. Then nothing runs.
    pub fn policy(&self, agent: Option<&str>) -> Result<(EffectivePolicy, usize), Fault> {
        let rules = self.rules.for_agent(agent)?;
        let all = Requested { security: Security::Full, ask: policy::Ask::Off };
        let policy = EffectivePolicy::combine_all(all, rules.configured, &rules.host);
        Ok((policy, rules.allowlist.entries().len()))
    }

    /// What the owner of this machine types to see and change its rules.
    pub fn owner_command(&self) -> &str {
        &self.owner_command
    }

    /// The programs of the gateway's skills, as it names them now.
    pub fn name_skills(&self, names: Vec<String>) {
        self.skills.set(names);
    }

    /// PATH as commands get it.
    pub fn path_env(&self) -> OsString {
        self.base_env.get(&OsString::from("PATH")).cloned().unwrap_or_default()
    }

    /// Decides. The fields of the request count as checked, the policy and the machine are looked at now.
    ///
    /// # Errors
    /// When the policy refuses, the working directory is of no use, or the system could not take the command.
    pub fn decide(&self, asked: Asked) -> Result<Decided, Fault> {
        if asked.permit.is_some() {
            return Ok(Decided::Later(Box::new(asked)));
        }
        let considered = self.consider(&asked)?;
        if asked.can_ask && matches!(considered.judgement.verdict, Verdict::NeedsApproval(_)) {
            return Ok(Decided::Later(Box::new(asked)));
        }
        Ok(Decided::Run(Box::new(self.unasked(asked, considered)?)))
    }

    /// Decides what needs a person's yes, or has one. Reads files as large as programs are, so it is not for the thread
    /// that serves.
    ///
    /// # Errors
    /// As [`Door::decide`]; the command cannot be bound, or its yes does not count.
    pub fn settle(&self, mut asked: Asked) -> Result<Settled, Fault> {
        // What a person is asked, and what runs by their word, is what is there now.
        self.disk.forget();
        let considered = self.consider(&asked)?;
        if let Some(decision) = asked.permit.take() {
            if let Verdict::Denied(_) = considered.judgement.verdict {
                return Err(self.denied(considered.judgement, &asked.run_id, &considered.rules));
            }
            return Ok(Settled::Run(Box::new(self.redeem(asked, &considered, &decision)?)));
        }
        if matches!(considered.judgement.verdict, Verdict::NeedsApproval(_)) {
            return Ok(Settled::Ask(Box::new(self.ask(&asked, &considered)?)));
        }
        Ok(Settled::Run(Box::new(self.unasked(asked, considered)?)))
    }

    /// The permit for what runs without anybody's yes.
    fn unasked(&self, asked: Asked, mut considered: Considered) -> Result<Permit, Fault> {
        considered.judgement = considered.judgement.without_approver();
        let argv = match &considered.judgement.verdict {
            Verdict::Run(Launch::AsSent) => asked.command.argv.clone(),
            Verdict::Run(Launch::Argv(argv)) => argv.clone(),
            Verdict::Run(Launch::Shell(text)) => command::by_shell(text.clone()),
            Verdict::NeedsApproval(_) | Verdict::Denied(_) => {
                return Err(self.denied(considered.judgement, &asked.run_id, &considered.rules));
            }
        };
        self.permit(asked, &considered, argv, None, Kept::default())
    }

    /// A text in which the owner's command has the flags that this machine needs.
    fn localised(&self, text: &str) -> String {
        text.replace(OWNER_COMMAND, &self.owner_command)
    }

    /// The refusal of a judgement that lets nothing run.
    fn denied(&self, judgement: Judgement, run: &RunId, rules: &AgentRules) -> Fault {
        let Verdict::Denied(Denial { kind, rule_id, reason, message, hint }) = judgement.verdict else {
            // `without_approver` leaves no question open, and a permit is made elsewhere.
            return Fault::new(ErrorCode::SystemRunDenied, "SYSTEM_RUN_DENIED: approval required");
        };
        tracing::info!(rule = rule_id, reason, run = %run, "run denied");
        let code = match kind {
            DenialKind::Disabled => ErrorCode::SystemRunDisabled,
            DenialKind::Denied => ErrorCode::SystemRunDenied,
        };
        let mut hint = self.localised(&hint);
        let broken = rules.allowlist.problems().len();
        if broken > 0 && reason == "allowlist-miss" {
            hint.push_str(&format!(
                "; {broken} of the rules there are out of force: `{} show`",
                self.owner_command
            ));
        }
        Fault::new(code, message).hint(hint)
    }

    fn workdir(&self, given: &str) -> Result<PathBuf, Fault> {
        let name = Arc::clone(&self.name.read());
        workdir::resolve(given, &self.default_dir, self.home.as_deref(), &name)
    }
}

/// Variables that the words themselves set.
fn check_words(command: &Command) -> Result<(), Fault> {
    let Some(rejected) = blocked_env_assignments(&command.argv) else { return Ok(()) };
    Err(Fault::new(
        ErrorCode::EnvRejected,
        format!("SYSTEM_RUN_DENIED: command env assignment rejected: {rejected}"),
    )
    .hint("leave these variables out; the node's own values are used"))
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

/// A path as one word of a shell line.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
    if text.chars().all(plain) { text } else { policy::shell::quote(&text) }
}

pub(crate) fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests;
