//! `gateway exec-policy show`: what is asked for, what is allowed, what holds, and who decides it.

use config::{ApprovalsFile, Config, StateDir};
use fault::Fault;
use policy::{
    ApprovalsDocument, DecidedBy, EffectivePolicy, HostPolicy, MAIN_AGENT, Mode, Requested, Security,
};
use serde_json::{Value, json};

use super::super::Common;
use super::super::output::{print_json, safe, warn};
use super::super::words::{fields, unasked, whom};
use crate::requested::configured;

/// Where calls run that name no host, unless it is configured (§0.1).
const DEFAULT_HOST: &str = "auto";

/// Everything there is to show for one agent.
struct Found<'a> {
    agent: &'a str,
    config: String,
    document: String,
    requested: Requested,
    strict_inline_eval: bool,
    /// The configured place.
    runs_on: String,
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
    let config = Config::load(&path).map_err(|error| Fault::from(&error))?;
    let exec = config.exec(agent);
    let file = ApprovalsFile::new(state.approvals());
    let loaded = file.load()?;
    let (requested, host) = (configured(&exec), loaded.document.resolve(agent));
    let effective = EffectivePolicy::combine(requested, &host);
    let agent = agent.unwrap_or(MAIN_AGENT);
    let mut warnings = by_own_words(&config);
    warnings.extend(by_own_fields(&loaded.document));
    warnings.extend(unasked(agent, effective.security, host.allowlist.len()));
    let found = Found {
        agent,
        config: path.display().to_string(),
        document: file.path().display().to_string(),
        requested,
        strict_inline_eval: exec.strict_inline_eval,
        runs_on: exec.host.unwrap_or_else(|| DEFAULT_HOST.to_owned()),
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
            ("runs on", self.place()),
        ];
        for (name, value) in lines {
            say_line!("{name:<12}{value}");
        }
        say_line!("on a node, the node's own document takes the place of the host's");
        for text in &self.warnings {
            warn(text);
        }
    }

    /// The configured host, and what it means for calls that name none. No call is ever moved to another machine.
    fn place(&self) -> String {
        format!(
            "host={} for calls that name neither host nor node; this version refuses those and runs commands on nodes",
            safe(&self.runs_on)
        )
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
                "host": self.runs_on,
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
            "runsOn": self.place(),
            "warnings": self.warnings,
            "written": written,
        })
    }
}

/// Agents that what is configured for all agents does not reach. Where that stops everything, those that go on are
/// said loudly: whoever reads `deny` believes that nothing runs.
fn by_own_words(config: &Config) -> Vec<String> {
    let stopped = configured(&config.exec_for_all()).security == Security::Deny;
    let line = |(agent, words): (&str, String)| {
        let Requested { security, ask } = configured(&config.exec(Some(agent)));
        let goes_on = if stopped && security != Security::Deny {
            ": ITS COMMANDS STILL RUN on every node that allows them"
        } else {
            ""
        };
        format!(
            "agent {agent}: {words} by its own words in openclaw.json, before those for all agents; what is requested \
             for it is security={security} ask={ask}{goes_on}"
        )
    };
    config.agents_with_policy().map(line).collect()
}

/// Agents that the defaults of the document do not reach.
fn by_own_fields(document: &ApprovalsDocument) -> Vec<String> {
    let own = document.agents.iter().filter(|(_, entry)| {
        let fields = &entry.fields;
        fields.security.is_some() || fields.ask.is_some() || fields.ask_fallback.is_some()
    });
    own.map(|(agent, entry)| {
        let HostPolicy { security, ask, ask_fallback, .. } = document.resolve(Some(agent));
        format!(
            "{}: {} by its own words in exec-approvals.json, before the defaults; what this machine allows is \
             security={security} ask={ask} askFallback={ask_fallback}",
            whom(agent),
            fields(&entry.fields).unwrap_or_default()
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use policy::{Ask, AskFallback};

    use super::*;

    fn found(requested: Requested, document: &str) -> Found<'static> {
        let document = ApprovalsDocument::parse(document).unwrap();
        let host = document.resolve(None);
        let effective = EffectivePolicy::combine(requested, &host);
        let warnings = by_own_fields(&document);
        Found {
            agent: MAIN_AGENT,
            config: "/c".into(),
            document: "/d".into(),
            requested,
            strict_inline_eval: false,
            runs_on: "gateway".into(),
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
    fn agents_that_go_on_after_deny_are_named_with_what_holds() {
        let config = |all: &str| {
            let text = format!(
                "{{tools:{{exec:{{security:'{all}'}}}}, agents:{{entries:{{
                    a:{{tools:{{exec:{{security:'full'}}}}}},
                    b:{{tools:{{exec:{{ask:'always'}}}}}},
                    c:{{tools:{{exec:{{host:'node'}}}}}}}}}}}}"
            );
            by_own_words(&Config::parse(&text).unwrap())
        };
        let a = "agent a: security=full by its own words in openclaw.json, before those for all agents; what is \
                 requested for it is security=full ask=off";
        let b = |security| {
            format!(
                "agent b: ask=always by its own words in openclaw.json, before those for all agents; what is requested \
                 for it is security={security} ask=always"
            )
        };
        let still = format!("{a}: ITS COMMANDS STILL RUN on every node that allows them");
        assert_eq!(config("deny"), [still, b("deny")]);
        assert_eq!(config("allowlist"), [a.to_owned(), b("allowlist")]);
    }

    #[test]
    fn the_place_is_said() {
        let found = found(Requested { security: Security::Full, ask: Ask::Off }, r#"{"version":1}"#);
        assert_eq!(found.json(&[])["requested"]["host"], "gateway");
        assert!(found.place().starts_with("host=gateway for calls that name neither host nor node"));
    }

    #[test]
    fn agents_that_the_defaults_do_not_reach_are_named() {
        let wide = Requested { security: Security::Full, ask: Ask::Off };
        let text =
            r#"{"version":1,"agents":{"a":{"security":"full"},"b":{"allowlist":["git"]},"c":{"ask":"off"}}}"#;
        let want = ["agent a: security=full", "agent c: ask=off"].map(|start| {
            format!(
                "{start} by its own words in exec-approvals.json, before the defaults; what this machine allows is \
                 security=full ask=off askFallback=deny"
            )
        });
        assert_eq!(found(wide, text).warnings, want);
    }
}
