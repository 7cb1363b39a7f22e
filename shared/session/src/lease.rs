//! Who looks after a session, and what becomes of its command when nobody does.
//!
//! Pure: times are milliseconds of a clock that nobody sets, given by the caller.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a session whose reader is gone waits for it to come back, while its node has a link.
pub const LINK_GRACE: Duration = Duration::from_secs(60);
/// The same while its node has none: a lost link kills nothing in a hurry.
pub const AWAY_GRACE: Duration = Duration::from_secs(600);
/// The longest time of `keep-for`.
pub const KEEP_FOR_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// What becomes of a command when nobody looks after it any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It goes on.
    #[default]
    Keep,
    /// It is ended, after [`LINK_GRACE`] or [`AWAY_GRACE`].
    Kill,
    /// It is ended when nobody was there for so many milliseconds.
    KeepFor(u64),
}

/// A policy that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not keep, kill or keep-for:<duration> (as 90s, 10m, 2h, 1d; 1s to 30d)")]
pub struct BadPolicy(String);

impl FromStr for OnDisconnect {
    type Err = BadPolicy;

    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        let bad = || BadPolicy(text.chars().take(64).collect());
        match text.trim() {
            "keep" => Ok(Self::Keep),
            "kill" => Ok(Self::Kill),
            other => {
                let wanted = other.strip_prefix("keep-for:").ok_or_else(bad)?.trim();
                let digits = wanted.find(|c: char| !c.is_ascii_digit()).unwrap_or(wanted.len());
                let (number, unit) = wanted.split_at(digits);
                let number: u64 = number.parse().map_err(|_| bad())?;
                let scale = match unit {
                    "ms" => 1,
                    "" | "s" => 1000,
                    "m" => 60_000,
                    "h" => 3_600_000,
                    "d" => 86_400_000,
                    _ => return Err(bad()),
                };
                Self::keep_for(number.saturating_mul(scale)).ok_or_else(bad)
            }
        }
    }
}

impl OnDisconnect {
    /// A time within the bounds, 1 s to [`KEEP_FOR_MAX`].
    pub fn keep_for(ms: u64) -> Option<Self> {
        (1000..=KEEP_FOR_MAX.as_millis() as u64).contains(&ms).then_some(Self::KeepFor(ms))
    }
}

impl fmt::Display for OnDisconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Kill => f.write_str("kill"),
            Self::KeepFor(ms) if ms % 1000 == 0 => write!(f, "keep-for:{}s", ms / 1000),
            Self::KeepFor(ms) => write!(f, "keep-for:{ms}ms"),
        }
    }
}

/// One session's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    policy: OnDisconnect,
    holders: u32,
    /// When somebody was there last.
    contact_ms: u64,
}

impl Lease {
    /// A lease that nobody holds yet.
    pub fn new(policy: OnDisconnect, now_ms: u64) -> Self {
        Self { policy, holders: 0, contact_ms: now_ms }
    }

    /// The policy in force.
    pub fn policy(&self) -> OnDisconnect {
        self.policy
    }

    /// Somebody holds it.
    pub fn is_held(&self) -> bool {
        self.holders > 0
    }

    /// Somebody is there, and stays.
    pub fn hold(&mut self) {
        self.holders += 1;
    }

    /// One of those who stayed is gone.
    pub fn release(&mut self, now_ms: u64) {
        self.holders = self.holders.saturating_sub(1);
        self.contact(now_ms);
    }

    /// Somebody looked in.
    pub fn contact(&mut self, now_ms: u64) {
        self.contact_ms = self.contact_ms.max(now_ms);
    }

    /// Another policy from now on.
    pub fn change(&mut self, policy: OnDisconnect, now_ms: u64) {
        self.policy = policy;
        self.contact(now_ms);
    }

    /// When the command is to be ended, unless somebody comes; none: never, or not while it is held. `linked`: somebody
    /// could come.
    pub fn ends_at_ms(&self, linked: bool) -> Option<u64> {
        let patience = match self.policy {
            OnDisconnect::Keep => return None,
            OnDisconnect::Kill if linked => LINK_GRACE.as_millis() as u64,
            OnDisconnect::Kill => AWAY_GRACE.as_millis() as u64,
            OnDisconnect::KeepFor(ms) => ms,
        };
        (self.holders == 0).then(|| self.contact_ms.saturating_add(patience))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn policies_as_text() {
        for (text, want, shown) in [
            ("keep", Some(OnDisconnect::Keep), "keep"),
            ("kill", Some(OnDisconnect::Kill), "kill"),
            ("keep-for:10m", Some(OnDisconnect::KeepFor(600_000)), "keep-for:600s"),
            ("keep-for:90", Some(OnDisconnect::KeepFor(90_000)), "keep-for:90s"),
            ("keep-for: 1500ms", Some(OnDisconnect::KeepFor(1500)), "keep-for:1500ms"),
            ("keep-for:30d", Some(OnDisconnect::KeepFor(2_592_000_000)), "keep-for:2592000s"),
            ("keep-for:31d", None, ""),
            ("keep-for:0s", None, ""),
            ("keep-for:99999999999999999999d", None, ""),
            ("keep-for:-1s", None, ""),
            ("keep-for:1w", None, ""),
            ("keep-for:", None, ""),
            ("Keep", None, ""),
            ("", None, ""),
        ] {
            let got = text.parse::<OnDisconnect>();
            assert_eq!(got.as_ref().ok(), want.as_ref(), "{text}");
            if let Ok(policy) = got {
                assert_eq!(policy.to_string(), shown);
                assert_eq!(policy.to_string().parse(), Ok(policy));
            }
        }
    }

    #[test]
    fn a_command_ends_when_nobody_was_there_for_long_enough() {
        let mut lease = Lease::new(OnDisconnect::KeepFor(5000), 100);
        assert_eq!(lease.ends_at_ms(true), Some(5100));
        lease.hold();
        lease.hold();
        assert_eq!((lease.ends_at_ms(true), lease.is_held()), (None, true));
        lease.release(1000);
        assert_eq!(lease.ends_at_ms(true), None);
        lease.release(2000);
        assert_eq!(lease.ends_at_ms(true), Some(7000));
        lease.contact(4000);
        assert_eq!(lease.ends_at_ms(true), Some(9000));
        // A clock that was read earlier takes nothing back.
        lease.contact(3000);
        assert_eq!(lease.ends_at_ms(true), Some(9000));
        lease.change(OnDisconnect::Keep, 5000);
        assert_eq!(lease.ends_at_ms(true), None);
        lease.change(OnDisconnect::Kill, 6000);
        assert_eq!(lease.ends_at_ms(true), Some(66_000));
        assert_eq!(lease.ends_at_ms(false), Some(606_000));
    }

    proptest! {
        /// Never due while somebody holds it or before the patience since the last sign of life is over.
        #[test]
        fn random_comings_and_goings(steps in proptest::collection::vec((0_u8..4, 0_u64..10_000), 1..60)) {
            let mut lease = Lease::new(OnDisconnect::KeepFor(5000), 0);
            let (mut now, mut held, mut last) = (0, 0_u32, 0);
            for (what, passed) in steps {
                now += passed;
                match what {
                    0 => { lease.hold(); held += 1; }
                    1 if held > 0 => { lease.release(now); held -= 1; last = now; }
                    2 => { lease.contact(now); last = now; }
                    _ => {}
                }
                prop_assert_eq!(lease.ends_at_ms(true), (held == 0).then_some(last + 5000));
            }
        }
    }
}
