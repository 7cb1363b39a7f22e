//! `gateway approvals …`: what waits for a person's yes, and the rules of this machine, and of a node through the running
//! gateway.
//!
//! This machine's document is a file that is read and written here; no gateway need run. A node's document is the node's:
//! it shows it to an admin, and takes changes where its owner agreed (`node-host run --remote-approvals`).

mod card;
mod history;
mod key;
mod list;
mod pending;
mod place;
pub(super) mod record;
mod resolve;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::{Args, Subcommand};
use config::ApprovalsFile;
use fault::{ErrorCode, Fault};
use policy::allowlist::{EntryFault, check_entry};
use policy::{AllowEntry, MAX_DOCUMENT_BYTES};
use serde_json::json;

use super::Common;
use super::output::{print_json, safe, warn};
use super::words::{EVERY_AGENT, whom};
use place::Place;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List what waits for a yes.
    Pending(pending::PendingArgs),
    /// Show one request in full, open or closed.
    Show(pending::ShowArgs),
    /// Answer a request: allow-once, allow-always or deny.
    Resolve(resolve::ResolveArgs),
    /// List what was decided, the newest first.
    History(history::HistoryArgs),
    /// Print your public key, for nodes that take signed decisions only.
    Key(key::KeyArgs),
    /// Show a document: its rules and how wide each is, and its text.
    Get {
        #[command(flatten)]
        whose: Whose,
    },
    /// Replace a document. One that is there is replaced only by who names its hash.
    Set {
        #[command(flatten)]
        whose: Whose,
        /// The new document; `-` is standard input.
        #[arg(value_name = "FILE|-")]
        file: String,
        /// The hash of the document that the new one was made from, as `get` shows it.
        #[arg(long, value_name = "HASH")]
        base_hash: Option<String>,
    },
    /// Add and remove rules.
    #[command(subcommand)]
    Allowlist(AllowlistCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum AllowlistCommand {
    /// Add a rule; one that is there already is left as it is.
    Add {
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        rule: RuleArgs,
        #[command(flatten)]
        examples: ExampleArgs,
    },
    /// Remove a rule; without `--arg-pattern` all rules with this pattern.
    Remove {
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        rule: RuleArgs,
    },
}

/// Whose document it is about.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The document of this machine; so unless `--node` is given.
    #[arg(long, conflicts_with = "node")]
    gateway: bool,
    /// The document of a node: id, name, or id prefix of six or more.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RuleArgs {
    /// An absolute path or a bare name, in which `*`, `**` and `?` may stand for more.
    pattern: String,
    /// The agent that the rule is for; every one unless given.
    #[arg(long, value_name = "AGENT", default_value = EVERY_AGENT, hide_default_value = true)]
    agent: String,
    /// A regular expression that the arguments, joined by blanks, must match. Anchor it with ^ and $. An empty one is none.
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    arg_pattern: Option<String>,
}

/// Commands that are stored in the rule and checked now and whenever it is loaded.
#[derive(Debug, Default, Args)]
pub(super) struct ExampleArgs {
    /// A command that the rule must match, else it is refused. May be given several times.
    #[arg(long = "match", value_name = "CMD", allow_hyphen_values = true)]
    matches: Vec<String>,
    /// A command that the rule must not match, else it is refused. May be given several times.
    #[arg(long = "no-match", value_name = "CMD", allow_hyphen_values = true)]
    no_matches: Vec<String>,
}

pub(super) async fn run(common: &Common, command: ApprovalsCommand) -> Result<u8, Fault> {
    match command {
        ApprovalsCommand::Pending(args) => return pending::run(common, &args).await,
        ApprovalsCommand::Show(args) => return pending::show(common, args).await,
        ApprovalsCommand::Resolve(args) => return resolve::run(common, args).await,
        ApprovalsCommand::History(args) => return history::run(common, &args).await,
        ApprovalsCommand::Key(args) => return key::run(common, &args),
        ApprovalsCommand::Get { whose } => {
            let mut place = whose.place(common).await?;
            let shown = place.read().await?;
            if common.json { print_json(&list::json(&place, &shown)) } else { list::print(&place, &shown) }
        }
        ApprovalsCommand::Set { whose, file, base_hash } => {
            // Read first: who is asked for a document should not wait for a connection that then times out.
            let text = read_document(&file)?;
            let mut place = whose.place(common).await?;
            let shown = place.replace(&text, base_hash.as_deref()).await?;
            list::warn_of(&place, &shown.document);
            let line = format!("set {}, hash {}", place.name(&shown.path), shown.hash);
            report(
                common,
                &line,
                json!({ "node": place.node(), "path": shown.path, "hash": shown.hash, "written": true }),
            );
        }
        ApprovalsCommand::Allowlist(AllowlistCommand::Add { whose, rule, examples }) => {
            let entry = rule.entry(&examples)?;
            let agent = rule.agent()?.to_owned();
            let mut place = whose.place(common).await?;
            let done = place.edit(|document| document.add_entry(&agent, entry.clone())).await?;
            let what = if done.written { "added to" } else { "already there, nothing written:" };
            say_done(common, &rule, what, &place, &done);
            let has_examples = !(examples.matches.is_empty() && examples.no_matches.is_empty());
            if has_examples && !done.written {
                warn(
                    "the examples were not stored: the rule that is there keeps its own; to give it others, remove it first",
                );
            }
            if let Some(text) = list::unasked(&done.shown.document, &agent) {
                warn(&text);
            }
        }
        ApprovalsCommand::Allowlist(AllowlistCommand::Remove { whose, rule }) => {
            let agent = rule.agent()?.to_owned();
            let mut place = whose.place(common).await?;
            let arg_pattern = rule.arg_pattern();
            let done =
                place.edit(|document| document.remove_entry(&agent, &rule.pattern, arg_pattern)).await?;
            let what = if done.written { "removed from" } else { "not there, nothing written:" };
            say_done(common, &rule, what, &place, &done);
        }
    }
    Ok(0)
}

impl Whose {
    async fn place(&self, common: &Common) -> Result<Place, Fault> {
        if let Some(node) = &self.node {
            let operator = common.connect().await?.operator();
            return Ok(Place::Node { operator, node: node.clone() });
        }
        if common.identity.is_some() {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                "the gateway's own document is read and written on its machine only",
            )
            .hint("run it there, without `--identity`; for a node's document name the node with `--node`"));
        }
        Ok(Place::Own(ApprovalsFile::new(common.state()?.approvals())))
    }
}

impl RuleArgs {
    /// The rule, if it can be in force.
    fn entry(&self, examples: &ExampleArgs) -> Result<AllowEntry, Fault> {
        let entry = AllowEntry {
            pattern: self.pattern.trim().to_owned(),
            arg_pattern: self.arg_pattern().map(str::to_owned),
            examples_match: examples.matches.clone(),
            examples_no_match: examples.no_matches.clone(),
            ..AllowEntry::default()
        };
        check_entry(&entry).map_err(|problem| {
            let message = format!("the rule `{}` was refused: {}", problem.pattern, problem.reason);
            Fault::new(ErrorCode::InvalidRequest, message).hint(match problem.fault {
                EntryFault::Example(_) => "correct the rule or the example; an example is one command",
                _ => "write an absolute path such as /usr/bin/git, or the bare name it is called by",
            })
        })?;
        Ok(entry)
    }

    fn arg_pattern(&self) -> Option<&str> {
        self.arg_pattern.as_deref().filter(|text| !text.is_empty())
    }

    fn agent(&self) -> Result<&str, Fault> {
        match self.agent.trim() {
            "" | "__proto__" => Err(Fault::new(ErrorCode::InvalidRequest, "this is no agent id")
                .hint("leave `--agent` out for a rule that holds for every agent")),
            id => Ok(id),
        }
    }
}

fn say_done(common: &Common, rule: &RuleArgs, what: &str, place: &Place, done: &place::Edited) {
    let (pattern, agent) = (rule.pattern.trim(), rule.agent.trim());
    let args = rule.arg_pattern().map(|args| format!(" with arguments {args}")).unwrap_or_default();
    let rule_text = format!("{pattern}{args} ({})", whom(agent));
    let line = format!("{}: {what} {}", safe(&rule_text), place.name(&done.shown.path));
    let value = json!({
        "pattern": pattern,
        "argPattern": rule.arg_pattern(),
        "agent": agent,
        "node": place.node(),
        "path": done.shown.path,
        "hash": done.shown.hash,
        "written": done.written,
    });
    report(common, &line, value);
}

fn report(common: &Common, line: &str, value: serde_json::Value) {
    if common.json {
        print_json(&value);
    } else {
        say_line!("{line}");
    }
}

fn read_document(file: &str) -> Result<String, Fault> {
    let unreadable = |e: io::Error| Fault::new(ErrorCode::InvalidRequest, format!("{file}: {e}"));
    let source: Box<dyn Read> = match file {
        "-" => Box::new(io::stdin()),
        path => Box::new(File::open(Path::new(path)).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_DOCUMENT_BYTES {
        let message = format!("{file} is longer than {MAX_DOCUMENT_BYTES} bytes");
        return Err(Fault::new(ErrorCode::InvalidRequest, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| Fault::new(ErrorCode::InvalidRequest, format!("{file} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, arg_pattern: Option<&str>, agent: &str) -> RuleArgs {
        RuleArgs { pattern: pattern.into(), agent: agent.into(), arg_pattern: arg_pattern.map(str::to_owned) }
    }

    #[test]
    fn a_rule_that_could_never_hold_is_refused() {
        let good = [("/usr/bin/git", None), (" git ", None), ("~/bin/*", Some("^status$")), ("*", None)];
        for (pattern, args) in good {
            let entry = rule(pattern, args, "*").entry(&ExampleArgs::default()).unwrap();
            assert_eq!((entry.pattern.as_str(), entry.arg_pattern.as_deref()), (pattern.trim(), args));
        }
        for (pattern, args) in [(" ", None), ("./x", None), ("/usr/../x", None), ("git", Some("("))] {
            let fault = rule(pattern, args, "*").entry(&ExampleArgs::default()).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidRequest, "{pattern} {args:?}");
        }
        let empty = rule("git", Some(""), "*").entry(&ExampleArgs::default()).unwrap();
        assert_eq!(empty.arg_pattern, None);
    }

    #[test]
    fn a_rule_is_added_with_examples_that_hold() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let table: [(&[&str], &[&str], Option<&str>); 5] = [
            (&["git status"], &["git push", "tac status"], None),
            (&["git push"], &[], Some("correct the rule or the example")),
            (&[], &["git status"], Some("correct the rule or the example")),
            (&["git status; git push"], &[], Some("correct the rule or the example")),
            (&["git $x"], &[], Some("correct the rule or the example")),
        ];
        for (matches, no_matches, refused) in table {
            let examples = ExampleArgs { matches: texts(matches), no_matches: texts(no_matches) };
            match (rule("git", Some("^status$"), "*").entry(&examples), refused) {
                (Ok(entry), None) => {
                    assert_eq!(
                        (entry.examples_match, entry.examples_no_match),
                        (texts(matches), texts(no_matches))
                    );
                }
                (Err(fault), Some(hint)) => assert!(fault.hint.unwrap().starts_with(hint), "{matches:?}"),
                (outcome, _) => panic!("{matches:?} {no_matches:?}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn an_agent_that_no_document_can_hold_is_refused() {
        for (agent, good) in [("*", true), ("main", true), ("", false), (" ", false), ("__proto__", false)] {
            assert_eq!(rule("git", None, agent).agent().is_ok(), good, "{agent:?}");
        }
    }
}
