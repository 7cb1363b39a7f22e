//! The policy as it was when somebody was asked (policy spec §1.10).

use std::collections::BTreeSet;

use policy::EffectivePolicy;
use sha2::{Digest as _, Sha256};

use super::rules::AgentRules;

/// What a yes rests on besides the plan. It still holds where the words are the same and every rule is still there;
/// further rules are fine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    words: [&'static str; 3],
    flags: [bool; 2],
    rules: BTreeSet<(String, Option<String>)>,
}

impl Snapshot {
    /// The policy now.
    pub(super) fn of(rules: &AgentRules, effective: &EffectivePolicy, strict_inline_eval: bool) -> Self {
        let entries = rules.allowlist.entries();
        Self {
            words: [effective.security.as_str(), effective.ask.as_str(), effective.ask_fallback.as_str()],
            flags: [effective.auto_allow_skills, strict_inline_eval],
            rules: entries.iter().map(|entry| (entry.pattern.clone(), entry.arg_pattern.clone())).collect(),
        }
    }

    /// Whether what was decided under `self` may run under `now`.
    pub(super) fn holds_in(&self, now: &Self) -> bool {
        self.words == now.words && self.flags == now.flags && self.rules.is_subset(&now.rules)
    }

    /// A name for it.
    pub(super) fn revision(&self) -> String {
        let mut hash = Sha256::new();
        let mut text = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        self.words.iter().for_each(|word| text(word));
        self.flags.iter().for_each(|flag| text(if *flag { "yes" } else { "no" }));
        for (pattern, args) in &self.rules {
            text(pattern);
            text(if args.is_some() { "with" } else { "without" });
            text(args.as_deref().unwrap_or_default());
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(ask: &'static str, rules: &[&str]) -> Snapshot {
        Snapshot {
            words: ["allowlist", ask, "deny"],
            flags: [false; 2],
            rules: rules.iter().map(|rule| ((*rule).to_owned(), None)).collect(),
        }
    }

    #[test]
    fn more_rules_are_fine_and_fewer_are_not() {
        let then = snapshot("on-miss", &["a", "b"]);
        let table = [
            (snapshot("on-miss", &["a", "b"]), true),
            (snapshot("on-miss", &["a", "b", "c"]), true),
            (snapshot("on-miss", &["a"]), false),
            (snapshot("always", &["a", "b"]), false),
            (Snapshot { flags: [false, true], ..then.clone() }, false),
        ];
        for (now, holds) in table {
            assert_eq!(then.holds_in(&now), holds, "{now:?}");
        }
        assert_ne!(then.revision(), snapshot("on-miss", &["a"]).revision());
        assert_eq!(then.revision().len(), 16);
    }
}
