//! Denials in a row: an agent that is denied again and again meets a person (policy spec §8.2).

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

/// The denial of a row that a person sees.
const ROW: u8 = 3;
/// Sessions whose row is known. The one that was denied longest ago is forgotten first.
const SESSIONS_MAX: usize = 256;

/// What becomes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    /// It goes back to the agent.
    ToAgent,
    /// A person decides.
    ToPerson,
}

/// The rows of all sessions.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// By the hash of the session's name, which may be long; the latest last.
    rows: VecDeque<(Session, u8)>,
}

type Session = [u8; 32];

impl Denials {
    /// Another denial. Once a person is asked, they are until the row ends.
    pub(super) fn denied(&mut self, session: &str) -> Denial {
        let key = key(session);
        let before = self.take(&key).unwrap_or(0);
        if self.rows.len() >= SESSIONS_MAX {
            self.rows.pop_front();
        }
        let row = before.saturating_add(1).min(ROW);
        self.rows.push_back((key, row));
        if row < ROW { Denial::ToAgent } else { Denial::ToPerson }
    }

    /// Something was allowed: the row ends.
    pub(super) fn allowed(&mut self, session: &str) {
        self.take(&key(session));
    }

    fn take(&mut self, key: &Session) -> Option<u8> {
        let at = self.rows.iter().position(|(session, _)| session == key)?;
        self.rows.remove(at).map(|(_, row)| row)
    }
}

fn key(session: &str) -> Session {
    Sha256::digest(session).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Denial::{ToAgent, ToPerson};
    use super::*;

    #[test]
    fn the_third_in_a_row_goes_to_a_person() {
        let mut denials = Denials::default();
        // A session, whether it is denied, what becomes of it.
        let steps = [
            ("a", true, Some(ToAgent)),
            ("b", true, Some(ToAgent)),
            ("a", true, Some(ToAgent)),
            ("a", true, Some(ToPerson)),
            // The person said no.
            ("a", true, Some(ToPerson)),
            ("b", true, Some(ToAgent)),
            ("a", false, None),
            ("a", true, Some(ToAgent)),
            ("b", true, Some(ToPerson)),
            ("", true, Some(ToAgent)),
            ("never", false, None),
        ];
        for (step, (session, is_denied, want)) in steps.into_iter().enumerate() {
            let found = if is_denied { Some(denials.denied(session)) } else { None };
            if !is_denied {
                denials.allowed(session);
            }
            assert_eq!(found, want, "step {step}");
        }
    }

    #[test]
    fn the_session_denied_longest_ago_is_forgotten() {
        let mut denials = Denials::default();
        denials.denied("old");
        denials.denied("old");
        for number in 0..SESSIONS_MAX - 1 {
            denials.denied(&number.to_string());
        }
        assert_eq!(denials.denied("old"), ToPerson, "it was still known");
        for number in 0..SESSIONS_MAX {
            denials.denied(&format!("other {number}"));
        }
        assert_eq!(denials.rows.len(), SESSIONS_MAX);
        assert_eq!(denials.denied("old"), ToAgent);
    }

    proptest! {
        /// Against a list of all that happened.
        #[test]
        fn rows_are_those_of_the_history(steps in prop::collection::vec((0_u8..4, any::<bool>()), 0..60)) {
            let mut denials = Denials::default();
            let mut history: Vec<(u8, bool)> = Vec::new();
            for (session, is_denied) in steps {
                history.push((session, is_denied));
                let name = session.to_string();
                if !is_denied {
                    denials.allowed(&name);
                    continue;
                }
                let own = history.iter().rev().filter(|(other, _)| *other == session);
                let row = own.take_while(|(_, is_denied)| *is_denied).count();
                prop_assert_eq!(denials.denied(&name), if row < 3 { ToAgent } else { ToPerson });
            }
        }
    }
}
