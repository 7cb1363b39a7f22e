//! `node-host policy`: what may run on this machine, and why.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use config::{ApprovalsFile, StateDir};
use fault::{ErrorCode, Fault};
use policy::allowlist::{Allowlist, check_entry};
use policy::{AllowEntry, Ask, AskFallback, PassList, Requested, Security};
use proto::v1 as pb;

use crate::app::fail;
use crate::approvals::{Approvals, RemoteApprovals};
use crate::enforce::Door;

/// The agent whose entries hold for every agent.
const EVERY_AGENT: &str = "*";

/// The subcommands of `node-host policy`.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum PolicyCommand {
    /// Say whether a command would run here, and which rule decides each part of it.
    Explain(ExplainArgs),
    /// Show what holds for an agent: the policy in force and its rules.
    Show(ShowArgs),
    /// Add a rule: a program by its absolute path, or by the bare name it is called by.
    Allow(EntryArgs),
    /// Remove a rule.
    Disallow(EntryArgs),
    /// Set what may run where no rule of an agent says otherwise.
    Set(SetArgs),
}

/// What all of them take.
#[derive(Debug, Clone, Args)]
pub(super) struct Place {
    /// Where keys, policy and sessions lie [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The flags of `node-host policy explain`.
#[derive(Debug, Clone, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    place: Place,
    /// The agent that would run it.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Where it would run; here unless given.
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    /// What the gateway's side asks for: deny, allowlist or full.
    #[arg(long, value_name = "WORD", default_value = "full")]
    security: Security,
    /// What the gateway's side asks for: off, on-miss or always.
    #[arg(long, value_name = "WORD", default_value = "off")]
    ask: Ask,
    /// The command. One argument is text for the shell, several are a program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The flags of `node-host policy show`.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// The agent; the main one unless given.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

/// The flags of `node-host policy allow` and `disallow`.
#[derive(Debug, Clone, Args)]
pub(super) struct EntryArgs {
    #[command(flatten)]
    place: Place,
    /// The agent that the rule is for; every one unless given.
    #[arg(long, value_name = "AGENT", default_value = EVERY_AGENT, hide_default_value = true)]
    agent: String,
    /// A regular expression that the arguments, joined by blanks, must match. Anchor it with ^ and $.
    #[arg(long, value_name = "REGEX")]
    arg_pattern: Option<String>,
    /// An absolute path or a bare name, in which `*`, `**` and `?` may stand for more.
    pattern: String,
}

/// The flags of `node-host policy set`.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true, args = ["security", "ask", "ask_fallback"])]
pub(super) struct SetArgs {
    #[command(flatten)]
    place: Place,
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

/// Does what the command line says.
pub(super) fn run(command: PolicyCommand) -> ExitCode {
    let outcome = match command {
        PolicyCommand::Explain(args) => explain(args),
        PolicyCommand::Show(args) => show(&args),
        PolicyCommand::Allow(args) => allow(args),
        PolicyCommand::Disallow(args) => disallow(&args),
        PolicyCommand::Set(args) => set(&args),
    };
    match outcome {
        Ok(text) => {
            say(&text);
            ExitCode::SUCCESS
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
        Ok(Door::new(approvals, state.openclaw_json(), std::env::vars_os(), &PassList::none(), here, name))
    }
}

fn explain(args: ExplainArgs) -> Result<String, Fault> {
    let form = match args.command.as_slice() {
        [text] => pb::invocation::Form::Shell(text.clone()),
        words => pb::invocation::Form::Argv(pb::Argv { words: words.to_vec() }),
    };
    let explanation = args.place.door()?.explain(
        &pb::Invocation { form: Some(form) },
        args.agent.as_deref(),
        args.workdir.as_deref().unwrap_or_default(),
        Requested { security: args.security, ask: args.ask },
    )?;
    if args.place.json { json(&explanation) } else { Ok(explanation.to_string()) }
}

fn show(args: &ShowArgs) -> Result<String, Fault> {
    let file = args.place.file()?;
    let loaded = file.load()?;
    let host = loaded.document.resolve(args.agent.as_deref());
    let home = std::env::home_dir();
    let list = Allowlist::compile(&host.allowlist, home.as_deref(), &[]);
    let problem = |at: usize| list.problems().iter().find(|problem| problem.index == at);
    if args.place.json {
        let rules: Vec<_> = host
            .allowlist
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
        return json(&serde_json::json!({
            "path": file.path(),
            "exists": loaded.exists,
            "hash": loaded.hash,
            "security": host.security,
            "ask": host.ask,
            "askFallback": host.ask_fallback,
            "autoAllowSkills": host.auto_allow_skills,
            "allowlist": rules,
        }));
    }
    let mut text = format!(
        "{}{}\nsecurity={} ask={} askFallback={} autoAllowSkills={}\n",
        file.path().display(),
        if loaded.exists { "" } else { " (not there: the built-in policy holds)" },
        host.security,
        host.ask,
        host.ask_fallback,
        host.auto_allow_skills,
    );
    for (at, entry) in host.allowlist.iter().enumerate() {
        text.push_str(&format!("{}. {}", at + 1, entry.pattern.escape_debug()));
        if let Some(arguments) = &entry.arg_pattern {
            text.push_str(&format!(" with arguments {}", arguments.escape_debug()));
        }
        if entry.source.is_some() {
            text.push_str(" (allow-always)");
        }
        if let Some(command) = &entry.last_used_command {
            text.push_str(&format!(", last for: {}", command.escape_debug()));
        }
        if let Some(problem) = problem(at) {
            text.push_str(&format!("\n   OUT OF FORCE: {}", problem.reason));
        }
        text.push('\n');
    }
    if !host.allowlist.is_empty() && host.security != Security::Allowlist {
        text.push_str(&format!("the rules are not asked: security is {}, not allowlist\n", host.security));
    }
    Ok(text)
}

fn allow(args: EntryArgs) -> Result<String, Fault> {
    let entry = AllowEntry {
        pattern: args.pattern.trim().to_owned(),
        arg_pattern: args.arg_pattern.filter(|pattern| !pattern.is_empty()),
        ..AllowEntry::default()
    };
    check_entry(&entry).map_err(|problem| {
        Fault::new(ErrorCode::InvalidRequest, format!("the rule was refused: {}", problem.reason))
    })?;
    let pattern = entry.pattern.clone();
    let change =
        args.place.file()?.edit(|document| Ok::<_, Fault>(document.add_entry(&args.agent, entry)))?;
    let host = change.loaded.document.resolve(Some(&args.agent));
    Ok(match (change.written, host.security) {
        (true, Security::Allowlist) => format!("allowed: {pattern}\n"),
        (true, other) => {
            format!("allowed: {pattern}; but the rules are not asked while security is {other}\n")
        }
        (false, _) => format!("{pattern} was allowed already\n"),
    })
}

fn disallow(args: &EntryArgs) -> Result<String, Fault> {
    let change = args.place.file()?.edit(|document| {
        Ok::<_, Fault>(document.remove_entry(&args.agent, &args.pattern, args.arg_pattern.as_deref()))
    })?;
    let shown = args.pattern.escape_debug();
    Ok(if change.written {
        format!("removed: {shown}\n")
    } else {
        format!("there is no such rule: {shown}\n")
    })
}

fn set(args: &SetArgs) -> Result<String, Fault> {
    let change = args.place.file()?.edit(|document| {
        let before = document.defaults.clone();
        let defaults = &mut document.defaults;
        defaults.security = args.security.or(defaults.security);
        defaults.ask = args.ask.or(defaults.ask);
        defaults.ask_fallback = args.ask_fallback.or(defaults.ask_fallback);
        Ok::<_, Fault>(*defaults != before)
    })?;
    let host = change.loaded.document.resolve(None);
    Ok(format!("security={} ask={} askFallback={}\n", host.security, host.ask, host.ask_fallback))
}

fn json(value: &impl serde::Serialize) -> Result<String, Fault> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Fault::new(ErrorCode::Internal, error.to_string()))?;
    Ok(text + "\n")
}
