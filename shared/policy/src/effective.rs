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

/// What the configuration of the machine that runs the command says. It can only tighten; absent words do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// What may run.
    pub security: Option<Security>,
    /// When a person is asked.
    pub ask: Option<Ask>,
}

/// Whose value is in force; a denial points there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The approvals document of the host. Also when others say the same: the host's word is the one that stays.
    Host,
    /// The configuration of the host.
    Config,
    /// The request.
    Request,
}

impl DecidedBy {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Config => "config",
            Self::Request => "request",
        }
    }
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
    /// Whose `ask` that is.
    pub ask_decided_by: DecidedBy,
    /// What happens when nobody can be asked; never wider than `security`.
    pub ask_fallback: AskFallback,
    /// Whether programs of installed skills count as allowed (only the host may say so).
    pub auto_allow_skills: bool,
}

impl EffectivePolicy {
    /// The stricter of both sides, field by field.
    #[must_use]
    pub fn combine(requested: Requested, host: &HostPolicy) -> Self {
        Self::combine_all(requested, Configured::default(), host)
    }

    /// The strictest of all sides, field by field.
    #[must_use]
    pub fn combine_all(requested: Requested, configured: Configured, host: &HostPolicy) -> Self {
        let (security, decided_by) = strictest(host.security, configured.security, requested.security);
        let (ask, ask_decided_by) = strictest(host.ask, configured.ask, requested.ask);
        Self {
            security,
            decided_by,
            ask,
            ask_decided_by,
            ask_fallback: host.ask_fallback.within(security),
            auto_allow_skills: host.auto_allow_skills,
        }
    }
}

/// The greatest word, and who says it first.
fn strictest<T: Ord + Copy>(host: T, configured: Option<T>, requested: T) -> (T, DecidedBy) {
    let mut strictest = (host, DecidedBy::Host);
    let others = [(configured, DecidedBy::Config), (Some(requested), DecidedBy::Request)];
    for (word, by) in others {
        if let Some(word) = word.filter(|word| *word > strictest.0) {
            strictest = (word, by);
        }
    }
    strictest
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
            ask_decided_by: DecidedBy::Host,
            ask_fallback: AskFallback::Allowlist,
            auto_allow_skills: false,
        };
        assert_eq!(found, want);
        let deny = Requested { security: Security::Deny, ask: Ask::Off };
        let found = EffectivePolicy::combine(deny, &host(Security::Full, Ask::Off, AskFallback::Full));
        assert_eq!((found.security, found.decided_by), (Security::Deny, DecidedBy::Request));
    }

    #[test]
    fn the_machines_configuration_tightens_and_is_named() {
        let full = Requested { security: Security::Full, ask: Ask::Off };
        let open = host(Security::Full, Ask::Off, AskFallback::Full);
        let by = |configured| {
            let found = EffectivePolicy::combine_all(full, configured, &open);
            (found.security, found.decided_by, found.ask, found.ask_decided_by)
        };
        let (deny, always) = (Some(Security::Deny), Some(Ask::Always));
        let table = [
            (Configured::default(), (Security::Full, DecidedBy::Host, Ask::Off, DecidedBy::Host)),
            (
                Configured { security: deny, ask: None },
                (Security::Deny, DecidedBy::Config, Ask::Off, DecidedBy::Host),
            ),
            (
                Configured { security: Some(Security::Full), ask: always },
                (Security::Full, DecidedBy::Host, Ask::Always, DecidedBy::Config),
            ),
        ];
        for (configured, want) in table {
            assert_eq!(by(configured), want, "{configured:?}");
        }
    }
}
