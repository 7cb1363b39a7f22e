//! A document for people: what it says per agent, and each rule with how wide it is (field cases F037, F075).

use std::path::{Path, PathBuf};

use policy::allowlist::{Allowlist, Scope, check_entry};
use policy::{AgentEntry, AllowEntry, ApprovalsDocument, HostPolicy, PolicyFields};
use serde_json::{Value, json};

use super::super::output::{moment, safe, table, warn};
use super::super::words;
use super::place::{Place, Shown};

/// Directories that many systems merged into one.
const MERGED: [&str; 2] = ["/bin", "/sbin"];
/// A cell for something that is not there.
const NONE: &str = "-";

pub(super) fn print(place: &Place, shown: &Shown) {
    let document = &shown.document;
    say_line!("{:<12}{}", "path", place.name(&shown.path));
    say_line!("{:<12}{}", "exists", if shown.exists { "yes" } else { "no: the built-in policy holds" });
    say_line!("{:<12}{}", "hash", safe(&shown.hash));
    say_line!("{:<12}{}", "defaults", fields(&document.defaults));
    for (agent, entry) in &document.agents {
        say_line!("{:<12}{}", "agent", safe(&format!("{agent} {}", fields(&entry.fields))));
    }
    let rows: Vec<_> =
        rules(place, document).iter().map(|(agent, rule, problem)| row(agent, rule, problem)).collect();
    if rows.is_empty() {
        say_line!("no rules");
    } else {
        say_line!("");
        table(&["AGENT", "PATTERN", "ARGUMENTS", "ALLOWS", "SOURCE", "LAST USE", "STATE"], &rows);
    }
    say_line!("");
    for line in document.to_text().lines() {
        say_line!("{}", safe(line));
    }
    warn_of(place, document);
}

pub(super) fn json(place: &Place, shown: &Shown) -> Value {
    let rules: Vec<_> = rules(place, &shown.document)
        .into_iter()
        .map(|(agent, rule, problem)| {
            json!({
                "agent": agent,
                "pattern": rule.pattern,
                "argPattern": rule.arg_pattern,
                "scope": Scope::of(rule).as_str(),
                "source": rule.source.map(|_| "allow-always"),
                "lastUsedAt": rule.last_used_at,
                "lastUsedCommand": rule.last_used_command,
                "problem": problem,
            })
        })
        .collect();
    let file: Value = serde_json::from_str(&shown.document.to_text()).unwrap_or_default();
    json!({
        "node": place.node(),
        "path": shown.path,
        "exists": shown.exists,
        "hash": shown.hash,
        "file": file,
        "rules": rules,
        "warnings": warnings(&shown.document),
    })
}

/// Says what in a document has no effect.
pub(super) fn warn_of(place: &Place, document: &ApprovalsDocument) {
    for (agent, rule, problem) in rules(place, document) {
        if let Some(problem) = problem {
            warn(&format!("agent {agent}: the rule {} is out of force: {problem}", rule.pattern));
        }
    }
    for text in warnings(document) {
        warn(&text);
    }
}

/// Rules of an agent that nothing asks.
pub(super) fn unasked(document: &ApprovalsDocument, agent: &str) -> Option<String> {
    let HostPolicy { security, allowlist, .. } = document.resolve(Some(agent));
    words::unasked(agent, security, allowlist.len())
}

fn warnings(document: &ApprovalsDocument) -> Vec<String> {
    document.agents.keys().filter_map(|agent| unasked(document, agent)).collect()
}

fn fields(fields: &PolicyFields) -> String {
    words::fields(fields).unwrap_or_else(|| NONE.to_owned())
}

fn row(agent: &str, rule: &AllowEntry, problem: &Option<String>) -> Vec<String> {
    let scope = Scope::of(rule);
    let arguments = match scope {
        Scope::Everything | Scope::Program => "any".to_owned(),
        // Nobody reads a digest.
        Scope::Invocation | Scope::CommandText => "exact".to_owned(),
        Scope::Arguments => rule.arg_pattern.clone().unwrap_or_default(),
    };
    let allows = match scope {
        Scope::Everything => "EVERY PROGRAM",
        Scope::Program => "all arguments, any directory",
        Scope::Arguments => "matching arguments, any directory",
        Scope::Invocation => "one argv in one directory",
        Scope::CommandText => "one command text",
    };
    let used = rule.last_used_at.as_ref().and_then(serde_json::Number::as_i64).map(moment);
    vec![
        safe(agent),
        safe(&rule.pattern),
        safe(&arguments),
        allows.to_owned(),
        rule.source.map_or("by hand", |_| "allow-always").to_owned(),
        used.filter(|used| !used.is_empty()).unwrap_or_else(|| NONE.to_owned()),
        problem
            .as_ref()
            .map_or_else(|| "in force".to_owned(), |problem| format!("OUT OF FORCE: {}", safe(problem))),
    ]
}

/// All rules with their agents, and why one is out of force.
fn rules<'a>(
    place: &Place,
    document: &'a ApprovalsDocument,
) -> Vec<(&'a str, &'a AllowEntry, Option<String>)> {
    let mut all = Vec::new();
    for (agent, AgentEntry { allowlist, .. }) in &document.agents {
        let problems = problems(place, allowlist);
        let with = allowlist.iter().zip(problems);
        all.extend(with.map(|(rule, problem)| (agent.as_str(), rule, problem)));
    }
    all
}

/// Per rule. Only this machine's home and merged directories are known; a node's are its own affair.
fn problems(place: &Place, rules: &[AllowEntry]) -> Vec<Option<String>> {
    match place {
        Place::Node { .. } => {
            rules.iter().map(|rule| check_entry(rule).err().map(|problem| problem.reason)).collect()
        }
        Place::Own(_) => {
            let merged: Vec<(PathBuf, PathBuf)> = MERGED
                .into_iter()
                .map(Path::new)
                .filter_map(|dir| Some((dir.to_path_buf(), dir.canonicalize().ok()?)))
                .filter(|(dir, real)| dir != real)
                .collect();
            let list = Allowlist::compile(rules, std::env::home_dir().as_deref(), &merged);
            let mut reasons = vec![None; rules.len()];
            for problem in list.problems() {
                if let Some(reason) = reasons.get_mut(problem.index) {
                    *reason = Some(problem.reason.clone());
                }
            }
            reasons
        }
    }
}

#[cfg(test)]
mod tests {
    use config::ApprovalsFile;

    use super::*;

    const DOCUMENT: &str = r#"{
        "version": 1,
        "socket": {"path": "/s", "token": "secret"},
        "defaults": {"security": "allowlist"},
        "agents": {
            "*": {"allowlist": ["*", {"pattern": "/usr/bin/git", "argPattern": "^status$", "lastUsedAt": 1000}]},
            "main": {"security": "full", "allowlist": [{"pattern": "./x"}]}
        }
    }"#;

    fn place() -> Place {
        Place::Own(ApprovalsFile::new("/nowhere/exec-approvals.json"))
    }

    #[test]
    fn each_rule_says_how_wide_it_is() {
        let document = ApprovalsDocument::parse(DOCUMENT).unwrap();
        let rows: Vec<_> = rules(&place(), &document)
            .iter()
            .map(|(agent, rule, problem)| row(agent, rule, problem).join(" | "))
            .collect();
        assert_eq!(rows[0], "* | * | any | EVERY PROGRAM | by hand | - | in force");
        assert_eq!(
            rows[1],
            "* | /usr/bin/git | ^status$ | matching arguments, any directory | by hand | 1970-01-01T00:00:01Z | in force"
        );
        assert!(
            rows[2].starts_with("main | ./x | any | all arguments") && rows[2].contains("OUT OF FORCE: ")
        );
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn json_has_the_document_without_the_token_and_what_has_no_effect() {
        let document = ApprovalsDocument::parse(DOCUMENT).unwrap().redacted();
        let shown = Shown { path: "/p".into(), exists: true, hash: "h".into(), document };
        let value = json(&place(), &shown);
        assert!(!value.to_string().contains("secret"));
        assert_eq!(value["file"]["socket"], json!({"path": "/s"}));
        assert_eq!(value["rules"][1]["scope"], "arguments");
        assert_eq!(
            value["warnings"],
            json!([
                "agent main: security is full, so the allowlist (3) is not asked: everything runs, unless security=allowlist is requested for it"
            ])
        );
    }
}
