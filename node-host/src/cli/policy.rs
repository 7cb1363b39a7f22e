//! `node-host policy`: what may run on this machine, and why.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use config::{ApprovalsFile, Change, StateDir};
use fault::{ErrorCode, Fault};
use policy::allowlist::{Allowlist, check_entry};
use policy::{AllowEntry, Ask, AskFallback, PassList, Requested, Security};
use proto::v1 as pb;

use crate::app::fail;
use crate::approvals::{Approvals, RemoteApprovals};
use crate::enforce::{Door, Question};

/// The agent whose entries hold for every agent.
const EVERY_AGENT: &str = "*";

/// The arguments of `node-host policy`.
#[derive(Debug, Clone, Args)]
pub(super) struct PolicyArgs {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: PolicyCommand,
}

/// The subcommands of `node-host policy`.
#[derive(Debug, Clone, Subcommand)]
enum PolicyCommand {
    /// Say whether a command would run here, and which rule decides each part of it.
    ///
    /// Ends with 0 if it would run, with 77 if not, also where only a person's yes is missing.
    Explain(ExplainArgs),
    /// Show what holds for an agent: the policy in force and its rules.
    Show(ShowArgs),
    /// Add a rule: a program by its absolute path, or by the bare name it is called by.
    Allow(AllowArgs),
    /// Remove a rule; without `--arg-pattern` all rules with this pattern.
    Disallow(RuleArgs),
    /// Set what may run, for all agents or for one.
    Set(SetArgs),
}

/// What all of them take.
#[derive(Debug, Clone, Args)]
struct Place {
    /// Where keys, policy and sessions lie [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

/// The flags of `node-host policy explain`.
#[derive(Debug, Clone, Args)]
struct ExplainArgs {
    /// The agent that would run it.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Where it would run; here unless given.
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    /// What the gateway's side would ask for: deny, allowlist or full.
    #[arg(long, value_name = "WORD", default_value = "full")]
    security: Security,
    /// What the gateway's side would ask for: off, on-miss or always.
    #[arg(long, value_name = "WORD", default_value = "off")]
    ask: Ask,
    /// The gateway's side would want a person's yes for code.
    #[arg(long)]
    strict_inline_eval: bool,
    /// The command. One argument is text for the shell, several are a program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The flags of `node-host policy show`.
#[derive(Debug, Clone, Args)]
struct ShowArgs {
    /// The agent; the main one unless given.
    #[arg(long, value_name = "AGENT", value_parser = agent_id)]
    agent: Option<String>,
}

/// What names a rule.
#[derive(Debug, Clone, Args)]
struct RuleArgs {
    /// The agent that the rule is for; every one unless given.
    #[arg(long, value_name = "AGENT", default_value = EVERY_AGENT, hide_default_value = true, value_parser = agent_id)]
    agent: String,
    /// A regular expression that the arguments, joined by blanks, must match. Anchor it with ^ and $.
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    arg_pattern: Option<String>,
    /// An absolute path or a bare name, in which `*`, `**` and `?` may stand for more.
    pattern: String,
}

/// The flags of `node-host policy allow`.
#[derive(Debug, Clone, Args)]
struct AllowArgs {
    #[command(flatten)]
    rule: RuleArgs,
    /// A command that the rule must allow; checked now and whenever the rules are read.
    #[arg(long = "match", value_name = "COMMAND")]
    examples: Vec<String>,
    /// A command that the rule must not allow.
    #[arg(long = "no-match", value_name = "COMMAND")]
    counter_examples: Vec<String>,
}

/// The flags of `node-host policy set`.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true, args = ["security", "ask", "ask_fallback"])]
struct SetArgs {
    /// The agent; where no agent has a word of its own unless given.
    #[arg(long, value_name = "AGENT", value_parser = agent_id)]
    agent: Option<String>,
    /// What may run: deny (nothing), allowlist (what a rule allows) or full (everything).
    #[arg(long, value_name = "WORD")]
    security: Option<Security>,
    /// When a person is asked: off, on-miss or always.
    #[arg(long, value_name = "WORD")]
    ask: Option<Ask>,
    /// What happens when nobody can be asked: deny, allowlist or full.
    #[arg(long, value_name = "WORD")]
    ask_fallback: Option<AskFallback>,
}

/// Ids that the document can hold.
fn agent_id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text == "__proto__" {
        return Err("this is no agent id".to_owned());
    }
    Ok(text.to_owned())
}

/// What a subcommand has to say, for people and as JSON.
struct Answer {
    text: String,
    json: serde_json::Value,
    code: ExitCode,
}

/// Does what the command line says.
pub(super) fn run(args: PolicyArgs) -> ExitCode {
    let place = args.place;
    let outcome = match args.command {
        PolicyCommand::Explain(args) => explain(&place, &args),
        PolicyCommand::Show(args) => show(&place, &args),
        PolicyCommand::Allow(args) => allow(&place, args),
        PolicyCommand::Disallow(args) => disallow(&place, &args),
        PolicyCommand::Set(args) => set(&place, &args),
    };
    match outcome {
        Ok(answer) if place.json => {
            say(&format!("{:#}\n", answer.json));
            answer.code
        }
        Ok(answer) => {
            say(&answer.text);
            answer.code
        }
        Err(fault) => fail(&fault),
    }
}

/// A reader that has gone away is no error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

impl Place {
    fn state(&self) -> Result<StateDir, Fault> {
        StateDir::from_process(self.state_dir.clone())
            .map_err(|error| Fault::new(error.code(), error.to_string()).hint(error.hint()))
    }

    fn file(&self) -> Result<ApprovalsFile, Fault> {
        Ok(ApprovalsFile::new(self.state()?.approvals()))
    }

    /// The door, as a node host started from here would have it.
    fn door(&self) -> Result<Door, Fault> {
        let state = self.state()?;
        let approvals = Approvals::new(ApprovalsFile::new(state.approvals()), RemoteApprovals::Refused);
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let name = crate::facts::hostname();
        let door =
            Door::new(approvals, state.openclaw_json(), std::env::vars_os(), &PassList::none(), here, name);
        Ok(door.with_state_dir(&state))
    }
}

fn explain(place: &Place, args: &ExplainArgs) -> Result<Answer, Fault> {
    let form = match args.command.as_slice() {
        [text] => pb::invocation::Form::Shell(text.clone()),
        words => pb::invocation::Form::Argv(pb::Argv { words: words.to_vec() }),
    };
    let door = place.door()?;
    let mut explanation = door.explain(&Question {
        invocation: &pb::Invocation { form: Some(form) },
        agent: args.agent.as_deref(),
        workdir: args.workdir.as_deref().unwrap_or_default(),
        requested: Requested { security: args.security, ask: args.ask },
        strict_inline_eval: args.strict_inline_eval,
    })?;
    explanation.notes.push(format!(
        "programs are looked for on this shell's PATH, {}; the node host has its own",
        door.path_env().to_string_lossy()
    ));
    let denied = ExitCode::from(fault::ExitClass::Refused.status());
    Ok(Answer {
        text: explanation.to_string(),
        json: json(&explanation)?,
        code: if explanation.verdict == "run" { ExitCode::SUCCESS } else { denied },
    })
}

fn show(place: &Place, args: &ShowArgs) -> Result<Answer, Fault> {
    let file = place.file()?;
    let loaded = file.load()?;
    let (policy, _) = place.door()?.policy(args.agent.as_deref())?;
    let entries = loaded.document.resolve(args.agent.as_deref()).allowlist;
    let list = Allowlist::compile(&entries, std::env::home_dir().as_deref(), &[]);
    let problem = |at: usize| list.problems().iter().find(|problem| problem.index == at);
    let rules: Vec<_> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            serde_json::json!({
                "pattern": entry.pattern,
                "argPattern": entry.arg_pattern,
                "source": entry.source.map(|_| "allow-always"),
                "lastUsedAt": entry.last_used_at,
                "lastUsedCommand": entry.last_used_command,
                "lastResolvedPath": entry.last_resolved_path,
                "problem": problem(at).map(|problem| problem.reason.clone()),
            })
        })
        .collect();
    let json = serde_json::json!({
        "path": file.path(),
        "exists": loaded.exists,
        "hash": loaded.hash,
        "security": policy.security,
        "decidedBy": policy.decided_by.as_str(),
        "ask": policy.ask,
        "askDecidedBy": policy.ask_decided_by.as_str(),
        "askFallback": policy.ask_fallback,
        "autoAllowSkills": policy.auto_allow_skills,
        "allowlist": rules,
    });
    let mut text = format!(
        "{}{}\nsecurity={} (by the {}) ask={} (by the {}) askFallback={} autoAllowSkills={}\n",
        file.path().display(),
        if loaded.exists { "" } else { " (not there: the built-in policy holds)" },
        policy.security,
        policy.decided_by.as_str(),
        policy.ask,
        policy.ask_decided_by.as_str(),
        policy.ask_fallback,
        policy.auto_allow_skills,
    );
    for (at, entry) in entries.iter().enumerate() {
        text.push_str(&format!("{}. {}", at + 1, entry.pattern.escape_debug()));
        match &entry.arg_pattern {
            Some(arguments) => text.push_str(&format!(" with arguments {}", arguments.escape_debug())),
            None => text.push_str(" with any arguments"),
        }
        if entry.source.is_some() {
            text.push_str(" (allow-always)");
        }
        if let Some(at) = entry.last_used_at.as_ref().and_then(|at| at.as_u64()).and_then(date) {
            text.push_str(&format!(", last used {at}"));
        }
        if let Some(command) = &entry.last_used_command {
            text.push_str(&format!(" for: {}", command.escape_debug()));
        }
        if let Some(problem) = problem(at) {
            text.push_str(&format!("\n   OUT OF FORCE: {}", problem.reason));
        }
        text.push('\n');
    }
    if !entries.is_empty() && policy.security != Security::Allowlist {
        text.push_str(&format!("the rules are not asked: security is {}, not allowlist\n", policy.security));
    }
    Ok(Answer { text, json, code: ExitCode::SUCCESS })
}

/// A time in milliseconds since 1970, as people write it.
fn date(unix_ms: u64) -> Option<String> {
    let seconds = i64::try_from(unix_ms / 1000).ok()?;
    let at = time::OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    at.format(&time::format_description::well_known::Rfc3339).ok()
}

impl RuleArgs {
    /// An empty argument pattern is none.
    fn arg_pattern(&self) -> Option<&str> {
        self.arg_pattern.as_deref().filter(|pattern| !pattern.is_empty())
    }
}

fn allow(place: &Place, args: AllowArgs) -> Result<Answer, Fault> {
    let entry = AllowEntry {
        pattern: args.rule.pattern.trim().to_owned(),
        arg_pattern: args.rule.arg_pattern().map(str::to_owned),
        examples_match: args.examples,
        examples_no_match: args.counter_examples,
        ..AllowEntry::default()
    };
    check_entry(&entry).map_err(|problem| {
        Fault::new(ErrorCode::InvalidRequest, format!("the rule was refused: {}", problem.reason))
    })?;
    let (agent, pattern) = (args.rule.agent, entry.pattern.clone());
    let change = place.file()?.edit(|document| Ok::<_, Fault>(document.add_entry(&agent, entry)))?;
    let (policy, _) = place.door()?.policy(Some(&agent))?;
    let text = match (change.written, policy.security) {
        (true, Security::Allowlist) => format!("allowed: {pattern}\n"),
        (true, other) => {
            format!("allowed: {pattern}; but the rules are not asked while security is {other}\n")
        }
        (false, _) => format!("{pattern} was allowed already\n"),
    };
    Ok(changed(text, &change))
}

fn disallow(place: &Place, args: &RuleArgs) -> Result<Answer, Fault> {
    let change = place.file()?.edit(|document| {
        Ok::<_, Fault>(document.remove_entry(&args.agent, &args.pattern, args.arg_pattern()))
    })?;
    let shown = args.pattern.escape_debug();
    let text = if change.written {
        format!("removed: {shown}\n")
    } else {
        format!("there is no such rule: {shown}\n")
    };
    Ok(changed(text, &change))
}

fn set(place: &Place, args: &SetArgs) -> Result<Answer, Fault> {
    let change = place.file()?.edit(|document| {
        let before = document.clone();
        let fields = match &args.agent {
            Some(agent) => &mut document.agents.entry(agent.clone()).or_default().fields,
            None => &mut document.defaults,
        };
        fields.security = args.security.or(fields.security);
        fields.ask = args.ask.or(fields.ask);
        fields.ask_fallback = args.ask_fallback.or(fields.ask_fallback);
        Ok::<_, Fault>(*document != before)
    })?;
    let (policy, _) = place.door()?.policy(args.agent.as_deref())?;
    let text =
        format!("security={} ask={} askFallback={}\n", policy.security, policy.ask, policy.ask_fallback);
    Ok(changed(text, &change))
}

/// What a change did.
fn changed(text: String, change: &Change) -> Answer {
    let json = serde_json::json!({ "written": change.written, "hash": change.loaded.hash });
    Answer { text, json, code: ExitCode::SUCCESS }
}

fn json(value: &impl serde::Serialize) -> Result<serde_json::Value, Fault> {
    serde_json::to_value(value).map_err(|error| Fault::new(ErrorCode::Internal, error.to_string()))
}
