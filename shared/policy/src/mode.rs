//! The words of the policy: security, ask, fallback, and the one-word modes over them.
//!
//! Each scale is ordered so that **greater is stricter**, whatever its words suggest; [`Security::stricter`] and its
//! siblings are the way to combine (policy spec §1.7).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A word is no member of the scale it was read for. Carries no copy: the word came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {expected}")]
pub struct UnknownPolicyWord {
    /// The members, for the reader.
    pub expected: &'static str,
}

macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident, $expected:literal { $($(#[$member_doc:meta])* $member:ident = $word:literal,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$member_doc])* #[serde(rename = $word)] $member,)+
        }

        impl $name {
            /// All members, from the least strict to the strictest where the type is a scale.
            pub const ALL: &'static [Self] = &[$(Self::$member,)+];

            /// The word, as documents and configuration spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownPolicyWord;

            fn from_str(word: &str) -> Result<Self, UnknownPolicyWord> {
                let found = Self::ALL.iter().copied().find(|member| member.as_str() == word);
                found.ok_or(UnknownPolicyWord { expected: $expected })
            }
        }
    };
}

words! {
    /// What may run at all.
    Security, "deny, allowlist, full" {
        /// Everything.
        Full = "full",
        /// What the allowlist or another rule satisfies.
        Allowlist = "allowlist",
        /// Nothing.
        Deny = "deny",
    }
}

words! {
    /// When a person is asked.
    Ask, "off, on-miss, always" {
        /// Never.
        Off = "off",
        /// When no rule satisfies the command.
        OnMiss = "on-miss",
        /// Every time.
        Always = "always",
    }
}

words! {
    /// What happens when a person should be asked and none can be reached (§1.9).
    AskFallback, "deny, allowlist, full" {
        /// Run under the active security.
        Full = "full",
        /// Run what the allowlist satisfies.
        Allowlist = "allowlist",
        /// Refuse.
        Deny = "deny",
    }
}

words! {
    /// One word for a whole policy (§1.6).
    Mode, "deny, allowlist, ask, auto, full" {
        /// Nothing runs.
        Deny = "deny",
        /// Only what the allowlist satisfies.
        Allowlist = "allowlist",
        /// The allowlist, and a person for the rest.
        Ask = "ask",
        /// As `ask`, with an automatic reviewer before the person.
        Auto = "auto",
        /// Everything runs.
        Full = "full",
    }
}

impl Security {
    /// The stricter of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Ask {
    /// The stricter of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }
}

impl AskFallback {
    /// The stricter of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }

    /// This fallback, but never wider than `security` (§1.7).
    #[must_use]
    pub fn within(self, security: Security) -> Self {
        let limit = match security {
            Security::Full => Self::Full,
            Security::Allowlist => Self::Allowlist,
            Security::Deny => Self::Deny,
        };
        self.stricter(limit)
    }
}

/// Whether an automatic reviewer sees a command before a person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AutoReview {
    /// No reviewer.
    Off,
    /// The reviewer is asked first.
    On,
}

/// What a mode stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModePolicy {
    /// What may run.
    pub security: Security,
    /// When a person is asked.
    pub ask: Ask,
    /// Whether the reviewer is asked first.
    pub auto_review: AutoReview,
}

/// A pair of security and ask, named by the nearest mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShownMode {
    /// The mode to show.
    pub shown: Mode,
    /// The mode that means exactly this pair, where there is one.
    pub exact: Option<Mode>,
}

impl Mode {
    /// What the mode stands for (§1.6).
    #[must_use]
    pub const fn policy(self) -> ModePolicy {
        let (security, ask, auto_review) = match self {
            Self::Deny => (Security::Deny, Ask::Off, AutoReview::Off),
            Self::Allowlist => (Security::Allowlist, Ask::Off, AutoReview::Off),
            Self::Ask => (Security::Allowlist, Ask::OnMiss, AutoReview::Off),
            Self::Auto => (Security::Allowlist, Ask::OnMiss, AutoReview::On),
            Self::Full => (Security::Full, Ask::Off, AutoReview::Off),
        };
        ModePolicy { security, ask, auto_review }
    }

    /// The mode to show for a pair (§1.6, reverse mapping).
    #[must_use]
    pub const fn of(security: Security, ask: Ask) -> ShownMode {
        let (shown, exact) = match (security, ask) {
            (Security::Deny, Ask::Off | Ask::OnMiss) => (Self::Deny, Some(Self::Deny)),
            (Security::Deny, Ask::Always) => (Self::Deny, None),
            (Security::Allowlist, Ask::Off) => (Self::Allowlist, Some(Self::Allowlist)),
            (Security::Allowlist, Ask::OnMiss) => (Self::Ask, Some(Self::Ask)),
            (Security::Allowlist | Security::Full, Ask::Always) => (Self::Ask, None),
            (Security::Full, Ask::Off) => (Self::Full, Some(Self::Full)),
            (Security::Full, Ask::OnMiss) => (Self::Full, None),
        };
        ShownMode { shown, exact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greater_is_stricter() {
        assert!(Security::Full < Security::Allowlist && Security::Allowlist < Security::Deny);
        assert!(Ask::Off < Ask::OnMiss && Ask::OnMiss < Ask::Always);
        assert!(AskFallback::Full < AskFallback::Allowlist && AskFallback::Allowlist < AskFallback::Deny);
        assert_eq!(Security::Full.stricter(Security::Deny), Security::Deny);
        assert_eq!(Ask::Always.stricter(Ask::Off), Ask::Always);
    }

    #[test]
    fn words_parse_back_and_serde_agrees() {
        for &word in Security::ALL {
            assert_eq!(word.as_str().parse(), Ok(word));
            assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        }
        for &word in Ask::ALL {
            assert_eq!(word.as_str().parse(), Ok(word));
            assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        }
        for bad in ["", "Deny", "deny ", "onmiss", "bogus"] {
            assert!(bad.parse::<Security>().is_err() && bad.parse::<Ask>().is_err(), "{bad:?}");
        }
        assert_eq!("x".parse::<Ask>().unwrap_err().to_string(), "expected one of off, on-miss, always");
    }

    #[test]
    fn modes_and_back() {
        for &mode in Mode::ALL {
            let policy = mode.policy();
            let back = Mode::of(policy.security, policy.ask);
            // `auto` differs from `ask` only by the reviewer, which the pair does not hold.
            let want = if mode == Mode::Auto { Mode::Ask } else { mode };
            assert_eq!(back, ShownMode { shown: want, exact: Some(want) });
            assert_eq!(policy.auto_review == AutoReview::On, mode == Mode::Auto);
        }
        let inexact = [
            (Security::Deny, Ask::Always, Mode::Deny),
            (Security::Allowlist, Ask::Always, Mode::Ask),
            (Security::Full, Ask::OnMiss, Mode::Full),
            (Security::Full, Ask::Always, Mode::Ask),
        ];
        for (security, ask, shown) in inexact {
            assert_eq!(Mode::of(security, ask), ShownMode { shown, exact: None });
        }
        let deny = ShownMode { shown: Mode::Deny, exact: Some(Mode::Deny) };
        assert_eq!(Mode::of(Security::Deny, Ask::OnMiss), deny);
    }

    #[test]
    fn a_fallback_is_never_wider_than_security() {
        let table = [
            (AskFallback::Full, Security::Full, AskFallback::Full),
            (AskFallback::Full, Security::Allowlist, AskFallback::Allowlist),
            (AskFallback::Full, Security::Deny, AskFallback::Deny),
            (AskFallback::Allowlist, Security::Full, AskFallback::Allowlist),
            (AskFallback::Deny, Security::Full, AskFallback::Deny),
        ];
        for (fallback, security, want) in table {
            assert_eq!(fallback.within(security), want, "{fallback} {security}");
        }
    }
}
