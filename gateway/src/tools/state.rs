//! What the tools remember between calls: where sessions are, who types into them, how often an agent polled in vain.
//!
//! All of it may be forgotten: it is found again, or starts anew.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use identity::Fingerprint;
use parking_lot::Mutex;

use super::typing::Typist;

/// Sessions that are remembered.
const SESSIONS_MAX: usize = 16_384;

/// One session, of one agent, on one node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Found {
    /// Its node.
    pub(crate) node: Fingerprint,
    /// Its id there.
    pub(crate) session: String,
}

/// What is known of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub(super) typist: Arc<tokio::sync::Mutex<Option<Typist>>>,
    /// Polls in a row that found nothing new.
    pub(super) empty_polls: Arc<std::sync::atomic::AtomicU32>,
}

/// The tools' memory.
#[derive(Debug, Default)]
pub(crate) struct ToolState(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By agent and session id.
    known: HashMap<(String, String), (Fingerprint, Memory)>,
    /// Oldest first.
    order: VecDeque<(String, String)>,
}

impl ToolState {
    /// An agent's session is on this node.
    pub(crate) fn note(&self, agent: &str, found: &Found) {
        let key = (agent.to_owned(), found.session.clone());
        let mut table = self.0.lock();
        if let Some((node, memory)) = table.known.get_mut(&key) {
            // The same name on another node is another session.
            if *node != found.node {
                (*node, *memory) = (found.node, Memory::default());
            }
            return;
        }
        if table.known.len() >= SESSIONS_MAX
            && let Some(oldest) = table.order.pop_front()
        {
            table.known.remove(&oldest);
        }
        table.known.insert(key.clone(), (found.node, Memory::default()));
        table.order.push_back(key);
    }

    /// Where an agent's session is, if that is known.
    pub(super) fn find(&self, agent: &str, session: &str) -> Option<Found> {
        let key = (agent.to_owned(), session.to_owned());
        let node = self.0.lock().known.get(&key)?.0;
        Some(Found { node, session: key.1 })
    }

    /// What is remembered of a session.
    pub(super) fn memory(&self, agent: &str, found: &Found) -> Memory {
        self.note(agent, found);
        let key = (agent.to_owned(), found.session.clone());
        self.0.lock().known.get(&key).map(|(_, memory)| memory.clone()).unwrap_or_default()
    }

    /// It is not there any more.
    pub(super) fn forget(&self, agent: &str, session: &str) {
        let key = (agent.to_owned(), session.to_owned());
        let mut table = self.0.lock();
        if table.known.remove(&key).is_some() {
            table.order.retain(|other| *other != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_known_to_their_agent_only_and_bounded() {
        let state = ToolState::default();
        let found = |n: usize| Found { node: Fingerprint([1; 32]), session: n.to_string() };
        state.note("a", &found(0));
        assert_eq!((state.find("a", "0"), state.find("b", "0")), (Some(found(0)), None));
        let moved = Found { node: Fingerprint([2; 32]), session: "0".to_owned() };
        state.note("a", &moved);
        assert_eq!(state.find("a", "0"), Some(moved));
        for n in 1..=SESSIONS_MAX {
            state.note("a", &found(n));
        }
        assert_eq!((state.find("a", "0"), state.find("a", "1")), (None, Some(found(1))));
        state.forget("a", "1");
        assert_eq!(state.find("a", "1"), None);
        let table = state.0.lock();
        assert_eq!((table.known.len(), table.order.len()), (SESSIONS_MAX - 1, SESSIONS_MAX - 1));
    }
}
