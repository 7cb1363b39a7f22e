//! The policy in force: what was requested and what the host allows, the stricter of each (policy spec §1.7).
//!
//! Owns the combination only. Where the requested values come from is the gateway's affair; the host's come from the
//! approvals document of the machine that runs the command.

use crate::{Ask, AskFallback, HostPolicy, Security};

/// What the caller's side asks for. It can only tighten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// What may run.
    pub security: Security,
    /// When a person is asked.
    pub ask: Ask,
}

/// Whose value of `security` is in force; a denial points there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The approvals document of the host. Also when both say the same: the host's word is the one that stays.
    Host,
    /// The request.
    Request,
}

/// The policy in force for one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePolicy {
    /// What may run.
    pub security: Security,
    /// Whose `security` that is.
    pub decided_by: DecidedBy,
    /// When a person is asked.
    pub ask: Ask,
    /// What happens when nobody can be asked; never wider than `security`.
    pub ask_fallback: AskFallback,
    /// Whether programs of installed skills count as allowed (only the host may say so).
    pub auto_allow_skills: bool,
}

impl EffectivePolicy {
    /// The stricter of both sides, field by field.
    #[must_use]
    pub fn combine(requested: Requested, host: &HostPolicy) -> Self {
        let security = requested.security.stricter(host.security);
        Self {
            security,
            decided_by: if host.security == security { DecidedBy::Host } else { DecidedBy::Request },
            ask: requested.ask.stricter(host.ask),
            ask_fallback: host.ask_fallback.within(security),
            auto_allow_skills: host.auto_allow_skills,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};

    use super::*;

    fn host(security: Security, ask: Ask, ask_fallback: AskFallback) -> HostPolicy {
        HostPolicy { security, ask, ask_fallback, auto_allow_skills: false, allowlist: Vec::new() }
    }

    proptest! {
        #[test]
        fn combining_never_loosens(
            security in select(Security::ALL), ask in select(Ask::ALL),
            host_security in select(Security::ALL), host_ask in select(Ask::ALL),
            fallback in select(AskFallback::ALL),
        ) {
            let host = host(host_security, host_ask, fallback);
            let found = EffectivePolicy::combine(Requested { security, ask }, &host);
            prop_assert!(found.security >= security && found.security >= host_security);
            prop_assert!(found.ask >= ask && found.ask >= host_ask);
            prop_assert!(found.ask_fallback >= fallback);
            prop_assert_eq!(found.ask_fallback, found.ask_fallback.within(found.security));
            // Nor does it invent strictness that neither side wanted.
            prop_assert!(found.security == security || found.security == host_security);
            prop_assert!(found.ask == ask || found.ask == host_ask);
        }
    }

    #[test]
    fn both_sides_can_tighten_and_the_tighter_is_named() {
        let full = Requested { security: Security::Full, ask: Ask::Off };
        let strict = host(Security::Allowlist, Ask::OnMiss, AskFallback::Full);
        let found = EffectivePolicy::combine(full, &strict);
        let want = EffectivePolicy {
            security: Security::Allowlist,
            decided_by: DecidedBy::Host,
            ask: Ask::OnMiss,
            ask_fallback: AskFallback::Allowlist,
            auto_allow_skills: false,
        };
        assert_eq!(found, want);
        let deny = Requested { security: Security::Deny, ask: Ask::Off };
        let found = EffectivePolicy::combine(deny, &host(Security::Full, Ask::Off, AskFallback::Full));
        assert_eq!((found.security, found.decided_by), (Security::Deny, DecidedBy::Request));
    }
}
