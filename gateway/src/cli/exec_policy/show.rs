//! `gateway exec-policy show`: what is asked for, what is allowed, what holds, and who decides it.

use config::{ApprovalsFile, Config, StateDir};
use fault::Fault;
use policy::{
    AgentEntry, ApprovalsDocument, DecidedBy, EffectivePolicy, HostPolicy, Mode, Requested, Security,
};
use serde_json::{Value, json};

use super::super::Common;
use super::super::output::{print_json, safe, warn};
use crate::requested::configured;

/// The agent that calls without an agent id belong to.
const MAIN_AGENT: &str = "main";

/// Everything there is to show for one agent.
struct Found<'a> {
    agent: &'a str,
    config: String,
    document: String,
    requested: Requested,
    strict_inline_eval: bool,
    host: HostPolicy,
    effective: EffectivePolicy,
    warnings: Vec<String>,
}

/// Prints it, after the names of the files that were written just before.
pub(super) fn show(
    common: &Common,
    state: &StateDir,
    agent: Option<&str>,
    written: &[String],
) -> Result<(), Fault> {
    let path = state.openclaw_json();
    let exec = Config::load(&path).map_err(|error| Fault::from(&error))?.exec(agent);
    let file = ApprovalsFile::new(state.approvals());
    let loaded = file.load()?;
    let (requested, host) = (configured(&exec), loaded.document.resolve(agent));
    let effective = EffectivePolicy::combine(requested, &host);
    let agent = agent.unwrap_or(MAIN_AGENT);
    let mut warnings = overridden(&loaded.document);
    warnings.extend(unasked(agent, &host, &effective));
    let found = Found {
        agent,
        config: path.display().to_string(),
        document: file.path().display().to_string(),
        requested,
        strict_inline_eval: exec.strict_inline_eval,
        host,
        effective,
        warnings,
    };
    if common.json {
        print_json(&found.json(written));
    } else {
        for name in written {
            say_line!("wrote {}", safe(name));
        }
        found.print();
    }
    Ok(())
}

impl Found<'_> {
    /// Whose value of `security` and of `ask` holds.
    fn deciders(&self) -> [&'static str; 2] {
        let security = match self.effective.decided_by {
            DecidedBy::Host => "host",
            DecidedBy::Config => "config",
            DecidedBy::Request => "request",
        };
        [security, if self.host.ask == self.effective.ask { "host" } else { "request" }]
    }

    fn print(&self) {
        let Self { requested, host, effective, .. } = self;
        let [security_by, ask_by] = self.deciders();
        let strict = if self.strict_inline_eval { " strictInlineEval=true" } else { "" };
        let lines = [
            ("agent", safe(self.agent)),
            (
                "requested",
                format!(
                    "security={} ask={}{strict}  ({})",
                    requested.security,
                    requested.ask,
                    safe(&self.config)
                ),
            ),
            (
                "host",
                format!(
                    "security={} ask={} askFallback={} autoAllowSkills={} rules={}  ({})",
                    host.security,
                    host.ask,
                    host.ask_fallback,
                    host.auto_allow_skills,
                    host.allowlist.len(),
                    safe(&self.document)
                ),
            ),
            (
                "effective",
                format!(
                    "security={} ask={} askFallback={}",
                    effective.security, effective.ask, effective.ask_fallback
                ),
            ),
            ("decided by", format!("security: {security_by}, ask: {ask_by}")),
            ("mode", self.mode()),
        ];
        for (name, value) in lines {
            say_line!("{name:<12}{value}");
        }
        say_line!("on a node, the node's own document takes the place of the host's");
        for text in &self.warnings {
            warn(text);
        }
    }

    fn mode(&self) -> String {
        let named = Mode::of(self.effective.security, self.effective.ask);
        let nearest = if named.exact.is_some() { "" } else { " (nearest; no mode means exactly this)" };
        format!("{}{nearest}", named.shown)
    }

    fn json(&self, written: &[String]) -> Value {
        let Self { requested, host, effective, .. } = self;
        let [security_by, ask_by] = self.deciders();
        let named = Mode::of(effective.security, effective.ask);
        json!({
            "agent": self.agent,
            "requested": {
                "path": self.config,
                "security": requested.security,
                "ask": requested.ask,
                "strictInlineEval": self.strict_inline_eval,
            },
            "host": {
                "path": self.document,
                "security": host.security,
                "ask": host.ask,
                "askFallback": host.ask_fallback,
                "autoAllowSkills": host.auto_allow_skills,
                "rules": host.allowlist.len(),
            },
            "effective": {
                "security": effective.security,
                "ask": effective.ask,
                "askFallback": effective.ask_fallback,
                "decidedBy": { "security": security_by, "ask": ask_by },
            },
            "mode": { "shown": named.shown, "exact": named.exact },
            "warnings": self.warnings,
            "written": written,
        })
    }
}

/// The loud word for rules that nothing asks: without it their owner believes that they protect him (F037).
fn unasked(agent: &str, host: &HostPolicy, effective: &EffectivePolicy) -> Option<String> {
    let effect = match effective.security {
        _ if host.allowlist.is_empty() => return None,
        Security::Allowlist => return None,
        Security::Full => "everything runs",
        Security::Deny => "nothing runs",
    };
    let (rules, security) = (host.allowlist.len(), effective.security);
    Some(format!(
        "agent {agent}: the allowlist ({rules}) is not asked while security is {security}: {effect}"
    ))
}

/// Agents whose own words in the document go before its defaults.
fn overridden(document: &ApprovalsDocument) -> Vec<String> {
    let own = |entry: &AgentEntry| {
        let fields = &entry.fields;
        fields.security.is_some() || fields.ask.is_some() || fields.ask_fallback.is_some()
    };
    let names: Vec<_> =
        document.agents.iter().filter(|(_, entry)| own(entry)).map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "these agents have their own words in the document, before its defaults: {}",
        names.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use policy::{Ask, AskFallback};

    use super::*;

    fn found(requested: Requested, document: &str) -> Found<'static> {
        let document = ApprovalsDocument::parse(document).unwrap();
        let host = document.resolve(None);
        let effective = EffectivePolicy::combine(requested, &host);
        let warnings = overridden(&document);
        Found {
            agent: MAIN_AGENT,
            config: "/c".into(),
            document: "/d".into(),
            requested,
            strict_inline_eval: false,
            host,
            effective,
            warnings,
        }
    }

    #[test]
    fn each_side_is_named_for_what_it_decides() {
        let asks = Requested { security: Security::Full, ask: Ask::Always };
        let found = found(asks, r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss"}}"#);
        assert_eq!(found.deciders(), ["host", "request"]);
        let value = found.json(&[]);
        assert_eq!(
            value["effective"],
            json!({
                "security": Security::Allowlist,
                "ask": Ask::Always,
                "askFallback": AskFallback::Deny,
                "decidedBy": { "security": "host", "ask": "request" },
            })
        );
        assert_eq!(value["mode"], json!({ "shown": "ask", "exact": null }));
    }

    #[test]
    fn rules_that_nothing_asks_are_named() {
        let text = r#"{"version":1,"agents":{"*":{"allowlist":["ls","cat"]}}}"#;
        let table = [
            (
                Security::Full,
                Some("agent main: the allowlist (2) is not asked while security is full: everything runs"),
            ),
            (Security::Allowlist, None),
            (
                Security::Deny,
                Some("agent main: the allowlist (2) is not asked while security is deny: nothing runs"),
            ),
        ];
        for (security, want) in table {
            let found = found(Requested { security, ask: Ask::Off }, text);
            assert_eq!(unasked(found.agent, &found.host, &found.effective).as_deref(), want);
        }
    }

    #[test]
    fn agents_that_the_defaults_do_not_reach_are_named() {
        let wide = Requested { security: Security::Full, ask: Ask::Off };
        let text =
            r#"{"version":1,"agents":{"a":{"security":"full"},"b":{"allowlist":["git"]},"c":{"ask":"off"}}}"#;
        let [warning] = found(wide, text).warnings.try_into().unwrap();
        assert!(warning.ends_with(": a, c"), "{warning}");
    }
}
