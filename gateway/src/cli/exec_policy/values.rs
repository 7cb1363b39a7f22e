//! What one file says about the policy, and which of two is the stricter (policy spec §1.7).

use std::fmt;

use policy::{Ask, AskFallback, Security};

/// The members of one file; one that is absent leaves the decision to the built-in value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    /// Where commands run. No scale: neither of two is the stricter.
    pub(super) host: Option<String>,
    pub(super) security: Option<Security>,
    pub(super) ask: Option<Ask>,
    pub(super) ask_fallback: Option<AskFallback>,
}

impl Values {
    /// These, where `change` says nothing.
    pub(super) fn with(&self, change: &Self) -> Self {
        Self {
            host: change.host.clone().or_else(|| self.host.clone()),
            security: change.security.or(self.security),
            ask: change.ask.or(self.ask),
            ask_fallback: change.ask_fallback.or(self.ask_fallback),
        }
    }

    /// Only what this file decides of them.
    pub(super) fn without_fallback(&self) -> Self {
        Self { ask_fallback: None, ..self.clone() }
    }

    /// Only what this file decides of them.
    pub(super) fn without_host(&self) -> Self {
        Self { host: None, ..self.clone() }
    }

    /// The stricter of each. As it was where both are the same, and the host as it was.
    pub(super) fn tightened_by(&self, new: &Self) -> Self {
        Self {
            host: self.host.clone(),
            security: stricter(self.security, new.security, Security::Full),
            ask: stricter(self.ask, new.ask, Ask::Off),
            ask_fallback: stricter(self.ask_fallback, new.ask_fallback, AskFallback::Deny),
        }
    }

    /// Whether this allows something that `old` did not, or runs it elsewhere.
    pub(super) fn is_looser_than(&self, old: &Self) -> bool {
        self.host != old.host || self.tightened_by(old) != *self
    }
}

fn stricter<T: Copy + Ord>(old: Option<T>, new: Option<T>, builtin: T) -> Option<T> {
    if new.unwrap_or(builtin) > old.unwrap_or(builtin) { new } else { old }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            self.host.as_ref().map(|word| format!("host={word}")),
            self.security.map(|word| format!("security={word}")),
            self.ask.map(|word| format!("ask={word}")),
            self.ask_fallback.map(|word| format!("askFallback={word}")),
        ];
        let said: Vec<_> = said.into_iter().flatten().collect();
        if said.is_empty() { f.write_str("nothing set") } else { f.write_str(&said.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stricter_and_looser() {
        let of = |security, ask, ask_fallback| Values { host: None, security, ask, ask_fallback };
        let none = Values::default();
        let strict = of(Some(Security::Deny), Some(Ask::Always), Some(AskFallback::Deny));
        let wide = of(Some(Security::Full), Some(Ask::Off), Some(AskFallback::Full));
        let mixed = of(Some(Security::Allowlist), None, Some(AskFallback::Allowlist));
        let table = [
            // A fallback that is absent denies.
            (&none, &strict, of(Some(Security::Deny), Some(Ask::Always), None), false),
            (&none, &wide, none.clone(), true),
            (&strict, &wide, strict.clone(), true),
            (&wide, &strict, strict.clone(), false),
            (
                &wide,
                &mixed,
                of(Some(Security::Allowlist), Some(Ask::Off), Some(AskFallback::Allowlist)),
                false,
            ),
            (&mixed, &none, mixed_and_denied(), true),
        ];
        for (old, new, want, looser) in table {
            assert_eq!(old.tightened_by(new), want, "{old} by {new}");
            assert_eq!(new.is_looser_than(old), looser, "{new} than {old}");
        }
        let moved = Values { host: Some("gateway".into()), ..none.clone() };
        assert!(moved.is_looser_than(&none));
        assert_eq!(none.tightened_by(&moved), none);
    }

    fn mixed_and_denied() -> Values {
        Values { security: Some(Security::Allowlist), ..Values::default() }
    }
}
