//! Policy in words, as several commands say it.

use policy::{PolicyFields, Security};

/// The agent whose rules hold for every agent.
pub(super) const EVERY_AGENT: &str = "*";

/// The agent, for people.
pub(super) fn whom(agent: &str) -> String {
    if agent == EVERY_AGENT { "all agents".to_owned() } else { format!("agent {agent}") }
}

/// What one level of a document says; nothing where it says nothing.
pub(super) fn fields(fields: &PolicyFields) -> Option<String> {
    let PolicyFields { security, ask, ask_fallback, auto_allow_skills, .. } = fields;
    let said = [
        security.map(|word| format!("security={word}")),
        ask.map(|word| format!("ask={word}")),
        ask_fallback.map(|word| format!("askFallback={word}")),
        auto_allow_skills.map(|flag| format!("autoAllowSkills={flag}")),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// The loud word for rules that nothing asks: without it their owner believes that they protect him (F037). True of what
/// one side says and of what comes of both.
pub(super) fn unasked(agent: &str, security: Security, rules: usize) -> Option<String> {
    let effect = match security {
        _ if rules == 0 => return None,
        Security::Allowlist => return None,
        Security::Full => "everything runs, unless security=allowlist is requested for it",
        Security::Deny => "nothing runs",
    };
    Some(format!(
        "{}: security is {security}, so the allowlist ({rules}) is not asked: {effect}",
        whom(agent)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_nothing_asks_are_named() {
        let table = [
            (
                "*",
                Security::Full,
                2,
                Some(
                    "all agents: security is full, so the allowlist (2) is not asked: everything runs, unless \
                     security=allowlist is requested for it",
                ),
            ),
            ("a", Security::Full, 0, None),
            ("a", Security::Allowlist, 2, None),
            (
                "a",
                Security::Deny,
                1,
                Some("agent a: security is deny, so the allowlist (1) is not asked: nothing runs"),
            ),
        ];
        for (agent, security, rules, want) in table {
            assert_eq!(unasked(agent, security, rules).as_deref(), want, "{agent} {security} {rules}");
        }
    }
}
