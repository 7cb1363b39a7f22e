//! The gateway's skills on this machine (policy spec §8.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use policy::resolve::Lookup;
use policy::skills::Skills;

/// How long the files behind the names are believed.
const KEPT_FOR: Duration = Duration::from_secs(90);

/// Names from the gateway, and what they mean here.
#[derive(Debug, Default)]
pub(super) struct SkillList(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    names: Vec<String>,
    resolved: Option<(Arc<Skills>, Instant)>,
}

impl SkillList {
    /// Replaces the names. Those of another gateway are gone with it.
    pub(super) fn set(&self, names: Vec<String>) {
        let mut state = self.0.lock();
        if state.names != names {
            *state = State { names, resolved: None };
        }
    }

    /// The files behind the names.
    pub(super) fn resolved(&self, lookup: &Lookup<'_>) -> Arc<Skills> {
        let mut state = self.0.lock();
        let now = Instant::now();
        if let Some((skills, at)) = &state.resolved
            && now < *at + KEPT_FOR
        {
            return Arc::clone(skills);
        }
        let skills = Arc::new(Skills::find(state.names.iter().map(String::as_str), &lookup.without_cwd()));
        state.resolved = Some((Arc::clone(&skills), now));
        skills
    }
}
