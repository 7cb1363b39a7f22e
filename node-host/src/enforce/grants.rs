//! What a person allowed for a time or for a session. In memory: forgotten when the node host restarts.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use policy::AllowEntry;

/// Grants at one time; the oldest goes first. Each is a person's decision.
const GRANTS_MAX: usize = 256;
/// Longest time that a grant may hold.
pub(super) const FOR_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a grant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    /// A moment.
    Moment(Instant),
    /// For runs that name this session.
    Session(String),
}

#[derive(Debug)]
struct Grant {
    agent: Option<String>,
    until: Until,
    entries: Vec<AllowEntry>,
}

/// The grants of one node.
#[derive(Debug, Default)]
pub(super) struct Grants(Mutex<Vec<Grant>>);

impl Grants {
    /// Adds one.
    pub(super) fn add(&self, agent: Option<&str>, until: Until, entries: Vec<AllowEntry>) {
        let mut grants = self.0.lock();
        if grants.len() >= GRANTS_MAX {
            grants.remove(0);
        }
        grants.push(Grant { agent: agent.map(str::to_owned), until, entries });
    }

    /// What holds for an agent and a session now.
    pub(super) fn entries(&self, agent: Option<&str>, session: &str, now: Instant) -> Vec<AllowEntry> {
        let mut grants = self.0.lock();
        grants.retain(|grant| !matches!(grant.until, Until::Moment(until) if now >= until));
        grants
            .iter()
            .filter(|grant| grant.agent.as_deref() == agent)
            .filter(|grant| match &grant.until {
                Until::Moment(_) => true,
                Until::Session(key) => key == session,
            })
            .flat_map(|grant| grant.entries.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_for_whom_and_as_long_as_they_were_given() {
        let grants = Grants::default();
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let entry = |pattern: &str| vec![AllowEntry { pattern: pattern.to_owned(), ..AllowEntry::default() }];
        grants.add(Some("a"), Until::Moment(now + hour), entry("/a"));
        grants.add(None, Until::Session("s".to_owned()), entry("/s"));
        let held = |agent: Option<&str>, session: &str, now: Instant| -> Vec<String> {
            grants.entries(agent, session, now).into_iter().map(|entry| entry.pattern).collect()
        };
        assert_eq!(held(Some("a"), "s", now), ["/a"]);
        assert_eq!(held(None, "s", now), ["/s"]);
        assert_eq!(held(None, "t", now), [""; 0]);
        assert_eq!(held(Some("b"), "s", now), [""; 0]);
        assert_eq!(held(Some("a"), "s", now + hour), [""; 0]);
        assert_eq!(held(Some("a"), "s", now), [""; 0]);
        for _ in 0..2 * GRANTS_MAX {
            grants.add(None, Until::Moment(now + hour), entry("/x"));
        }
        assert_eq!(held(None, "", now).len(), GRANTS_MAX);
    }
}
