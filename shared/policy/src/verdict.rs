//! The answer: it runs, or it does not and here is why.
//!
//! This version reads no command text, so nothing can satisfy an allowlist and nobody can be asked. Both refuse: an
//! answer that cannot be worked out is a denial (policy spec §0 step 5, §1.8).

use crate::{Ask, DecidedBy, EffectivePolicy, Security};

/// Which stable error code a denial bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialKind {
    /// `SYSTEM_RUN_DISABLED`: no command runs.
    Disabled,
    /// `SYSTEM_RUN_DENIED`: this one does not.
    Denied,
}

/// Why a command does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Which stable code it bears.
    pub kind: DenialKind,
    /// The rule that refused, stable.
    pub rule_id: &'static str,
    /// The reason as events carry it, stable (§10.1).
    pub reason: &'static str,
    /// The sentence for the caller; begins with the code (§10.1).
    pub message: String,
    /// What the reader can do about it.
    pub hint: String,
}

/// May it run?
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It may, now.
    Run,
    /// It may not.
    Denied(Denial),
}

/// Judges a command by the policy alone.
pub fn judge(policy: &EffectivePolicy) -> Verdict {
    match (policy.security, policy.ask) {
        (Security::Deny, Ask::Off | Ask::OnMiss | Ask::Always) => Verdict::Denied(Denial {
            kind: DenialKind::Disabled,
            rule_id: "policy.security.deny",
            reason: "security=deny",
            message: "SYSTEM_RUN_DISABLED: security=deny".to_owned(),
            hint: format!("commands are switched off; {}", how_to_allow_all(policy.decided_by)),
        }),
        (Security::Full, Ask::Off | Ask::OnMiss) => Verdict::Run,
        (Security::Full, Ask::Always) => Verdict::Denied(Denial {
            kind: DenialKind::Denied,
            rule_id: "policy.ask.always",
            reason: "approval-required",
            message: "SYSTEM_RUN_DENIED: approval required (ask=always), and this version cannot ask a person yet"
                .to_owned(),
            hint: "set `ask` to `off` or `on-miss` in exec-approvals.json of the machine that runs the command and in \
                   tools.exec of the gateway, if commands may run there unasked"
                .to_owned(),
        }),
        (Security::Allowlist, Ask::Off | Ask::OnMiss | Ask::Always) => Verdict::Denied(Denial {
            kind: DenialKind::Denied,
            rule_id: "policy.allowlist.not-evaluated",
            reason: "allowlist-miss",
            message: "SYSTEM_RUN_DENIED: allowlist miss (this version evaluates no allowlist yet, so \
                      security=allowlist refuses every command)"
                .to_owned(),
            hint: how_to_allow_all(policy.decided_by).to_owned(),
        }),
    }
}

const fn how_to_allow_all(decided_by: DecidedBy) -> &'static str {
    match decided_by {
        DecidedBy::Host => {
            "to let every command run, set `security` to `full` in exec-approvals.json in the state directory of the \
             machine that runs the command"
        }
        DecidedBy::Request => {
            "the gateway's side asked for this; to let every command run, set `security` to `full` in tools.exec of \
             the gateway and leave it out of the call"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostPolicy, Requested};

    fn verdict(security: Security, ask: Ask) -> Verdict {
        let host = HostPolicy { security, ask, ..HostPolicy::fail_closed() };
        judge(&EffectivePolicy::combine(Requested { security: Security::Full, ask: Ask::Off }, &host))
    }

    #[test]
    fn only_full_without_always_runs() {
        let mut running = Vec::new();
        for &security in Security::ALL {
            for &ask in Ask::ALL {
                match verdict(security, ask) {
                    Verdict::Run => running.push((security, ask)),
                    Verdict::Denied(denial) => {
                        assert!(
                            !denial.hint.is_empty() && denial.rule_id.starts_with("policy."),
                            "{denial:?}"
                        );
                        let prefix = match denial.kind {
                            DenialKind::Disabled => "SYSTEM_RUN_DISABLED: ",
                            DenialKind::Denied => "SYSTEM_RUN_DENIED: ",
                        };
                        assert!(denial.message.starts_with(prefix), "{denial:?}");
                    }
                }
            }
        }
        assert_eq!(running, [(Security::Full, Ask::Off), (Security::Full, Ask::OnMiss)]);
    }

    #[test]
    fn reasons_are_stable() {
        let reason = |security, ask| match verdict(security, ask) {
            Verdict::Run => "run",
            Verdict::Denied(denial) => denial.reason,
        };
        assert_eq!(reason(Security::Deny, Ask::Off), "security=deny");
        assert_eq!(reason(Security::Full, Ask::Always), "approval-required");
        assert_eq!(reason(Security::Allowlist, Ask::OnMiss), "allowlist-miss");
        let denied = judge(&EffectivePolicy::combine(
            Requested { security: Security::Full, ask: Ask::Off },
            &HostPolicy::fail_closed(),
        ));
        assert!(
            matches!(denied, Verdict::Denied(Denial { message, .. }) if message == "SYSTEM_RUN_DISABLED: security=deny")
        );
    }

    #[test]
    fn the_hint_points_at_the_side_that_refused() {
        let host = HostPolicy { security: Security::Full, ..HostPolicy::fail_closed() };
        let asked = Requested { security: Security::Deny, ask: Ask::Off };
        let Verdict::Denied(denial) = judge(&EffectivePolicy::combine(asked, &host)) else {
            panic!("it runs")
        };
        assert!(denial.hint.contains("the gateway's side"), "{}", denial.hint);
    }
}
