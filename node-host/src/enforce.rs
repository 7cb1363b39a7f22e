//! The node's door: may this run, and what exactly is launched?
//!
//! [`Door::decide`] is the only maker of a [`Permit`], and a permit is the only
//! thing that starts a session. It trusts no field that the gateway sets: all
//! checks of the gateway are made again here, and the policy in force is the
//! stricter of what was asked for and this machine's own document.

mod asked;
mod command;
mod disk;
mod rules;
mod skill_list;
mod workdir;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{RuleUsage, StateDir};
use fault::{ErrorCode, Fault};
use parking_lot::RwLock;
use policy::analyse::Rules;
use policy::command::blocked_env_assignments;
use policy::explain::{Explanation, OWNER_COMMAND, Side, explain};
use policy::inline_eval::Input;
use policy::plan::{Grant, Invocation, Launch, Plan};
use policy::resolve::Lookup;
use policy::skills::Skills;
use policy::{
    Denial, DenialKind, EffectivePolicy, Judgement, PassList, Requested, Security, Terms, Verdict,
    clean_inherited, judge, reduce_for_shell_wrapper,
};
use proto::v1 as pb;
use session::RunId;

use crate::approvals::{Approvals, usage_now};
use crate::process::{EnvVar, Mode};
use crate::sessions::StartRequest;

pub use asked::Asked;
use command::Command;
use disk::Disk;
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
}

/// A command whose judgement is to be spelled out.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The command.
    pub invocation: &'a pb::Invocation,
    /// Who would run it.
    pub agent: Option<&'a str>,
    /// Where it would run.
    pub workdir: &'a str,
    /// What the gateway's side would ask for.
    pub requested: Requested,
    /// Code for interpreters would need a person's yes.
    pub strict_inline_eval: bool,
}

/// A command that may run, once.
#[derive(Debug)]
pub struct Permit {
    request: StartRequest,
    effective: EffectivePolicy,
    command_text: String,
    /// Variables of the request that do not reach the command.
    left_out_env: Vec<String>,
    /// The entries that satisfied it.
    used: Vec<RuleUsage>,
}

impl Permit {
    /// What is launched.
    pub fn into_request(self) -> StartRequest {
        self.request
    }

    /// Variables of the request that do not reach the command, and the entries that satisfied it.
    pub fn take_notes(&mut self) -> (Vec<String>, Vec<RuleUsage>) {
        (std::mem::take(&mut self.left_out_env), std::mem::take(&mut self.used))
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

    /// Decides, and if it may run says exactly what runs. The fields of the request count as checked, the policy and
    /// the machine are looked at now.
    ///
    /// # Errors
    /// When the policy refuses, the working directory is of no use, or the system could not take the command.
    pub fn decide(&self, asked: Asked) -> Result<Permit, Fault> {
        let rules = self.rules.for_agent(asked.agent.as_deref())?;
        let effective = EffectivePolicy::combine_all(asked.requested, rules.configured, &rules.host);
        if effective.security == Security::Deny {
            let nowhere =
                self.judge(&asked.command, Input::Other, None, &rules, &effective, asked.strict_inline_eval);
            return Err(self.denied(nowhere, &asked.run_id, &rules));
        }
        check_words(&asked.command)?;
        let cwd = self.workdir(&asked.workdir)?;
        let judgement = self.judge_surely(&asked, &cwd, &rules, &effective)?;
        let Judgement { verdict: Verdict::Run(launch), plan, .. } = judgement else {
            return Err(self.denied(judgement, &asked.run_id, &rules));
        };

        let Asked { run_id, command, overrides, mode, deadline_ms, agent, input_digest, .. } = asked;
        let wrapped = plan.as_ref().is_some_and(Plan::starts_shell_wrapper);
        let (overrides, left_out_env) = if wrapped && effective.security == Security::Allowlist {
            reduce_for_shell_wrapper(&overrides)
        } else {
            (overrides, Vec::new())
        };
        let env = self.environment(&overrides, &cwd, &mode, &run_id);
        let used = plan.as_ref().map(|plan| used(plan, &rules, agent.as_deref(), &command.text));
        let argv = match launch {
            Launch::AsSent => command.argv,
            Launch::Argv(argv) => argv,
            Launch::Shell(text) => command::by_shell(text),
        };
        command::check_size(&argv, &env)?;
        let label = command.text.chars().take(512).collect();
        Ok(Permit {
            request: StartRequest {
                run_id,
                input_digest,
                label,
                argv,
                env,
                cwd,
                mode,
                deadline_ms,
                kill_grace_ms: KILL_GRACE_MS,
                bound: None,
            },
            effective,
            command_text: command.text,
            left_out_env,
            used: used.unwrap_or_default(),
        })
    }

    /// Judges, and looks at the programs once more. Where one was swapped in between, the new one is judged.
    fn judge_surely(
        &self,
        asked: &Asked,
        cwd: &Path,
        rules: &AgentRules,
        effective: &EffectivePolicy,
    ) -> Result<Judgement, Fault> {
        let mut swapped = PathBuf::new();
        for _ in 0..2 {
            let judgement = self
                .judge(&asked.command, asked.input(), Some(cwd), rules, effective, asked.strict_inline_eval)
                .without_approver();
            let segments = judgement.plan.iter().flat_map(Plan::each);
            match self.disk.confirm(segments) {
                Ok(()) => return Ok(judgement),
                Err(path) => swapped = path,
            }
        }
        Err(Fault::new(
            ErrorCode::SystemRunDenied,
            format!("SYSTEM_RUN_DENIED: {} is being replaced while it is looked at", swapped.display()),
        )
        .hint("try again when it is in place"))
    }

    fn judge(
        &self,
        command: &Command,
        input: Input,
        cwd: Option<&Path>,
        rules: &AgentRules,
        effective: &EffectivePolicy,
        strict_inline_eval: bool,
    ) -> Judgement {
        let lookup = Lookup { files: &self.disk, path: &self.path, cwd, home: self.home.as_deref() };
        let no_skills = Skills::default();
        let skills = effective.auto_allow_skills.then(|| self.skills.resolved(&lookup));
        let invocation = match &command.text_for_shell {
            true => Invocation::Shell(&command.text),
            false => Invocation::Argv(&command.argv),
        };
        judge(
            invocation,
            lookup,
            Rules {
                allowlist: &rules.allowlist,
                safe_bins: &rules.safe_bins,
                skills: skills.as_deref().unwrap_or(&no_skills),
                input,
            },
            Terms { policy: effective, strict_inline_eval: strict_inline_eval || rules.strict_inline_eval },
        )
    }

    /// Judges a command without running it, and spells out why. Skills of the gateway are known only where it is
    /// connected.
    ///
    /// # Errors
    /// When the command or the directory is malformed or a file of the policy cannot be used.
    pub fn explain(&self, question: &Question<'_>) -> Result<Explanation, Fault> {
        let command = command::parse(Some(question.invocation))?;
        let rules = self.rules.for_agent(question.agent)?;
        let requested = question.requested;
        let effective = EffectivePolicy::combine_all(requested, rules.configured, &rules.host);
        if effective.security != Security::Deny {
            check_words(&command)?;
        }
        let cwd = self.workdir(question.workdir)?;
        let judgement =
            self.judge(&command, Input::Other, Some(&cwd), &rules, &effective, question.strict_inline_eval);
        let mut explanation = explain(&judgement, &effective);
        let side = |side, security: Option<Security>, ask: Option<policy::Ask>| Side {
            side,
            security: security.map(Security::as_str),
            ask: ask.map(policy::Ask::as_str),
        };
        explanation.sides = vec![
            side("host", Some(rules.host.security), Some(rules.host.ask)),
            side("config", rules.configured.security, rules.configured.ask),
            side("request", Some(requested.security), Some(requested.ask)),
        ];
        if command.text_for_shell {
            let spans = policy::highlight::executable_spans(&command.text, &command.text);
            explanation.executable_spans = spans.into_iter().map(|span| [span.start, span.end]).collect();
        }
        explanation
            .notes
            .extend(rules.allowlist.problems().iter().map(|problem| format!("out of force: {problem}")));
        if effective.auto_allow_skills {
            explanation.notes.push("the gateway's skills may allow more; they are not known here".to_owned());
        }
        let here = |text: &mut String| *text = self.localised(text);
        explanation.hint.iter_mut().for_each(here);
        for segment in &mut explanation.segments {
            segment.add.iter_mut().chain(&mut segment.add_exact).for_each(here);
        }
        Ok(explanation)
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

/// Variables that the words themselves set.
fn check_words(command: &Command) -> Result<(), Fault> {
    let Some(rejected) = blocked_env_assignments(&command.argv) else { return Ok(()) };
    Err(Fault::new(
        ErrorCode::EnvRejected,
        format!("SYSTEM_RUN_DENIED: command env assignment rejected: {rejected}"),
    )
    .hint("leave these variables out; the node's own values are used"))
}

/// The entries that satisfied a plan.
fn used(plan: &Plan, rules: &AgentRules, agent: Option<&str>, text: &str) -> Vec<RuleUsage> {
    let entries = rules.allowlist.entries();
    plan.each()
        .filter_map(|segment| {
            let Ok(Grant::Entry { index, .. }) = &segment.decided else { return None };
            let entry = entries.get(*index)?;
            let program = segment.programs.iter().find(|(at, _)| *at == segment.subject);
            Some(RuleUsage {
                agent: agent.map(str::to_owned),
                pattern: entry.pattern.clone(),
                arg_pattern: entry.arg_pattern.clone(),
                at_ms: usage_now(),
                command: text.chars().take(512).collect(),
                resolved_path: program.map(|(_, program)| program.file.real.display().to_string()),
            })
        })
        .collect()
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
