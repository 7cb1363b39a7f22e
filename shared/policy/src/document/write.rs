//! A document as a JSON value. Known members come last, so that an unknown one can never replace them.

use serde_json::{Map, Value};

use super::{AgentEntry, AllowEntry, ApprovalsDocument, PolicyFields, SocketEntry};

pub(super) fn document(document: &ApprovalsDocument) -> Value {
    let mut out = document.extra.clone();
    out.insert("version".into(), 1.into());
    if let Some(entry) = &document.socket {
        out.insert("socket".into(), socket(entry).into());
    }
    let defaults = fields(&document.defaults);
    if !defaults.is_empty() {
        out.insert("defaults".into(), defaults.into());
    }
    if !document.agents.is_empty() {
        let agents: Map<String, Value> =
            document.agents.iter().map(|(id, entry)| (id.clone(), agent(entry).into())).collect();
        out.insert("agents".into(), agents.into());
    }
    out.into()
}

fn socket(entry: &SocketEntry) -> Map<String, Value> {
    let mut out = entry.extra.clone();
    put(&mut out, "path", entry.path.clone());
    put(&mut out, "token", entry.token.clone());
    out
}

fn fields(fields: &PolicyFields) -> Map<String, Value> {
    let mut out = fields.extra.clone();
    put(&mut out, "security", fields.security.map(|word| word.as_str()));
    put(&mut out, "ask", fields.ask.map(|word| word.as_str()));
    put(&mut out, "askFallback", fields.ask_fallback.map(|word| word.as_str()));
    put(&mut out, "autoAllowSkills", fields.auto_allow_skills);
    out
}

fn agent(entry: &AgentEntry) -> Map<String, Value> {
    let mut out = fields(&entry.fields);
    if !entry.allowlist.is_empty() {
        let rules: Vec<Value> = entry.allowlist.iter().map(|rule| allow(rule).into()).collect();
        out.insert("allowlist".into(), rules.into());
    }
    if !entry.mcp_tools.is_empty() {
        out.insert("mcpTools".into(), entry.mcp_tools.clone().into());
    }
    out
}

fn allow(rule: &AllowEntry) -> Map<String, Value> {
    let mut out = rule.extra.clone();
    put(&mut out, "id", rule.id.clone());
    put(&mut out, "pattern", Some(rule.pattern.clone()));
    put(&mut out, "argPattern", rule.arg_pattern.clone());
    put(&mut out, "source", rule.source.map(|_| "allow-always"));
    put(&mut out, "lastUsedAt", rule.last_used_at.clone().map(Value::Number));
    put(&mut out, "lastUsedCommand", rule.last_used_command.clone());
    put(&mut out, "lastResolvedPath", rule.last_resolved_path.clone());
    put(&mut out, "match", examples(&rule.examples_match));
    put(&mut out, "noMatch", examples(&rule.examples_no_match));
    out
}

fn examples(texts: &[String]) -> Option<Value> {
    (!texts.is_empty()).then(|| texts.into())
}

fn put(out: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        out.insert(name.to_owned(), value.into());
    }
}
