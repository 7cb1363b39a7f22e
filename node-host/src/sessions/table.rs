//! Which sessions there are, which are over, and which of those go.
//!
//! The table keeps what is over in the order of its end, so that an end costs the same however many are kept. It does
//! not touch the sessions' directories: the caller removes those of what it gets back.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use session::{RunId, SessionId};

use super::live::Session;
use super::receipts::{Past, Receipts};
use super::request::{Limits, StartError};
use crate::process::journal::Owner;

/// All sessions of a node, and the runs whose session is gone.
#[derive(Debug)]
pub(super) struct Table {
    by_id: HashMap<SessionId, Session>,
    by_run: HashMap<RunId, SessionId>,
    /// What is over: when it ended, in milliseconds since 1970, and the bytes that it takes on disk.
    finished: BTreeMap<(u64, SessionId), u64>,
    finished_bytes: u64,
    receipts: Receipts,
}

impl Table {
    pub(super) fn new(receipts: Receipts) -> Table {
        let (by_id, by_run, finished) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Table { by_id, by_run, finished, finished_bytes: 0, receipts }
    }

    pub(super) fn insert(&mut self, session: Session) {
        self.by_run.insert(session.0.receipt.run_id.clone(), session.id().clone());
        self.by_id.insert(session.id().clone(), session);
    }

    pub(super) fn find(&self, id: &SessionId) -> Option<&Session> {
        self.by_id.get(id)
    }

    pub(super) fn find_run(&self, run: &RunId) -> Option<&Session> {
        self.by_run.get(run).and_then(|id| self.by_id.get(id))
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.by_id.values()
    }

    /// Whether the run's session was let go of; its directory may be left from a removal that was cut short.
    pub(super) fn is_past(&self, run: &RunId, session: &SessionId) -> bool {
        self.receipts.find(run).is_some_and(|past| past.session_id == *session)
    }

    /// What is known of a run: its session, or nothing.
    ///
    /// # Errors
    /// When the id belongs to another input, or the session is not kept any more.
    pub(super) fn known(
        &self,
        run_id: &RunId,
        input_digest: &[u8; 32],
        owner: &Owner,
    ) -> Result<Option<&Session>, StartError> {
        let conflict = |session_id: &SessionId| {
            Err(StartError::RunIdConflict { run_id: run_id.clone(), session_id: session_id.clone() })
        };
        if let Some(session) = self.find_run(run_id) {
            let same = session.0.receipt.input_digest == *input_digest;
            return if same { Ok(Some(session)) } else { conflict(session.id()) };
        }
        match self.receipts.find(run_id) {
            None if self.receipts.is_cancelled(run_id, owner) => {
                Err(StartError::Cancelled { run_id: run_id.clone() })
            }
            None => Ok(None),
            Some(past) if past.input_digest != *input_digest => conflict(&past.session_id),
            Some(past) => {
                Err(StartError::Forgotten { run_id: run_id.clone(), exit: Box::new(past.exit.clone()) })
            }
        }
    }

    /// Sessions that run. One whose end was not reported yet counts as over.
    pub(super) fn live(&self, at_least: usize) -> usize {
        // Counting is for the rare case: most of what a busy node keeps is over.
        let upper = self.by_id.len() - self.finished.len();
        if upper < at_least {
            upper
        } else {
            self.by_id.values().filter(|session| !session.is_over()).count()
        }
    }

    /// Takes note of an end. A session that was taken out meanwhile stays out.
    pub(super) fn ended(&mut self, session: &Session) {
        let Some(at) = session.ended_unix_ms() else { return };
        if !self.by_id.contains_key(session.id()) {
            return;
        }
        let bytes = session.0.disk_use();
        if self.finished.insert((at, session.id().clone()), bytes).is_none() {
            self.finished_bytes += bytes;
        }
    }

    /// Takes out the finished sessions that are to go at `now_ms`. The newest stays.
    pub(super) fn retire(&mut self, limits: &Limits, now_ms: u64) -> Vec<Session> {
        let mut gone = Vec::new();
        let mut after = None;
        while let Some((key, bytes)) = self.oldest(after.take()) {
            let newest = self.finished.last_key_value().is_some_and(|(last, _)| *last == key);
            let age = Duration::from_millis(now_ms.saturating_sub(key.0));
            let must =
                self.finished.len() > limits.finished_hard_max || self.finished_bytes > limits.finished_bytes;
            let surplus = self.finished.len() > limits.finished_max || age > limits.finished_age;
            // Whatever follows is younger: nothing more to find.
            if newest || !(must || (surplus && age >= limits.finished_stay)) {
                break;
            }
            let held = self.by_id.get(&key.1).is_some_and(|session| session.0.wishes.floor().is_some());
            if held && !must {
                after = Some(key);
                continue;
            }
            self.finished.remove(&key);
            self.finished_bytes -= bytes;
            gone.extend(self.take(&key.1));
        }
        gone
    }

    /// The finished session that ended first, of those behind `after`.
    fn oldest(&self, after: Option<(u64, SessionId)>) -> Option<((u64, SessionId), u64)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.finished.range((from, Unbounded)).next().map(|(key, bytes)| (key.clone(), *bytes))
    }

    /// Takes out one that is over, and remembers its run.
    pub(super) fn forget(&mut self, id: &SessionId) -> Option<Session> {
        let at = self.by_id.get(id)?.ended_unix_ms()?;
        self.finished_bytes -= self.finished.remove(&(at, id.clone())).unwrap_or_default();
        self.take(id)
    }

    /// The session of an agent's run that has started; one that has not will not start any more. Empty: whoever's it is.
    pub(super) fn cancel(&mut self, run: &RunId, agent: &str) -> Option<Session> {
        match self.find_run(run) {
            Some(session) if agent.is_empty() || session.owner().is_of(agent) => Some(session.clone()),
            // Somebody else's: the agent's own run of this name cannot start.
            Some(_) => None,
            None => {
                if self.receipts.find(run).is_none() {
                    self.receipts.cancel(run, agent);
                }
                None
            }
        }
    }

    /// Takes out one that never ran, as if nobody had asked for it.
    pub(super) fn abandon(&mut self, id: &SessionId) {
        if let Some(session) = self.by_id.remove(id) {
            self.by_run.remove(&session.0.receipt.run_id);
        }
    }

    fn take(&mut self, id: &SessionId) -> Option<Session> {
        let session = self.by_id.remove(id)?;
        let receipt = &session.0.receipt;
        self.by_run.remove(&receipt.run_id);
        if let Some(exit) = session.0.progress.borrow().exit.as_deref().cloned() {
            self.receipts.remember(Past {
                run_id: receipt.run_id.clone(),
                input_digest: receipt.input_digest,
                session_id: id.clone(),
                exit,
            });
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};
    use std::sync::Arc;

    use proptest::prelude::*;
    use session::{ByteOffset, Death, Ended, Exit};

    use super::*;
    use crate::process::Mode;
    use crate::process::journal::Receipt;
    use crate::sessions::live::Progress;

    #[derive(Debug, Clone)]
    enum Step {
        /// A start of this run with this input; made again as often as callers like.
        Start(u8, u8),
        /// The run's command ends.
        End(u8),
        /// A kill of the run, which may not have started.
        Cancel(u8),
        Forget(u8),
        Retire(u64),
        /// The node host starts anew: what is on disk is all that is known.
        Restart,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let run = 0_u8..6;
        let step = prop_oneof![
            6 => (run.clone(), 0_u8..2).prop_map(|(run, input)| Step::Start(run, input)),
            4 => run.clone().prop_map(Step::End),
            1 => run.clone().prop_map(Step::Cancel),
            1 => run.prop_map(Step::Forget),
            2 => (0_u64..5000).prop_map(Step::Retire),
            1 => Just(Step::Restart),
        ];
        proptest::collection::vec(step, 1..100)
    }

    fn session(run: u8, input: u8, number: usize) -> Session {
        let receipt = Receipt {
            session_id: format!("s-{number}").parse().unwrap(),
            run_id: format!("r{run}").parse().unwrap(),
            input_digest: [input; 32],
            label: String::new(),
            mode: Mode::PIPES,
            workdir: String::new(),
            asked_unix_ms: 0,
            owner: Default::default(),
            limits: Default::default(),
            answer_queries: false,
        };
        Session::new(receipt, "/nonexistent".into(), Progress::default(), Arc::default()).0
    }

    fn exit(at: u64) -> Exit {
        Exit {
            ended: Ended::Died(Death::Code(0)),
            cancelled: false,
            final_offset: ByteOffset(0),
            leftovers_killed: 0,
            started_unix_ms: 0,
            ended_unix_ms: at,
            duration_ms: 0,
        }
    }

    proptest! {
        /// Whatever callers repeat and whatever is let go of: a run starts one process at most, with one input, and none
        /// once it was cancelled; what runs is never taken out.
        #[test]
        fn one_process_per_run(steps in steps()) {
            let dir = tempfile::tempdir().unwrap();
            let mut table = Table::new(Receipts::open(dir.path()).unwrap());
            let limits = Limits {
                finished_max: 1,
                finished_age: Duration::from_secs(1),
                finished_stay: Duration::ZERO,
                ..Limits::default()
            };
            let mut started: HashMap<u8, u8> = HashMap::new();
            let mut cancelled = HashSet::new();
            let mut running: HashMap<u8, Session> = HashMap::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Start(run, input) => {
                        let id: RunId = format!("r{run}").parse().unwrap();
                        match table.known(&id, &[input; 32], &Owner::default()) {
                            Ok(Some(found)) => prop_assert_eq!(found.0.receipt.input_digest, [started[&run]; 32]),
                            Ok(None) => {
                                prop_assert!(!cancelled.contains(&run), "it was cancelled");
                                prop_assert!(started.insert(run, input).is_none(), "a second process");
                                let session = session(run, input, number);
                                table.insert(session.clone());
                                running.insert(run, session);
                            }
                            Err(StartError::RunIdConflict { .. }) => prop_assert_ne!(started[&run], input),
                            Err(StartError::Forgotten { .. }) => prop_assert_eq!(started[&run], input),
                            Err(StartError::Cancelled { .. }) => prop_assert!(cancelled.contains(&run)),
                            Err(other) => panic!("{other}"),
                        }
                    }
                    Step::End(run) => {
                        if let Some(session) = running.remove(&run) {
                            session.0.set_exit(exit(number as u64));
                            table.ended(&session);
                        }
                    }
                    Step::Cancel(run) => {
                        if table.cancel(&format!("r{run}").parse().unwrap(), "").is_none() && !started.contains_key(&run) {
                            cancelled.insert(run);
                        }
                    }
                    Step::Forget(run) => {
                        if let Some(id) = table.find_run(&format!("r{run}").parse().unwrap()).map(|s| s.id().clone()) {
                            let gone = table.forget(&id);
                            prop_assert_eq!(gone.is_none(), running.contains_key(&run));
                        }
                    }
                    Step::Retire(now) => drop(table.retire(&limits, now)),
                    Step::Restart => {
                        // Directories outlive the process; what was let go of is in the receipts.
                        let sessions: Vec<Session> = table.sessions().cloned().collect();
                        table = Table::new(Receipts::open(dir.path()).unwrap());
                        for session in sessions {
                            table.insert(session.clone());
                            table.ended(&session);
                        }
                    }
                }
                for (run, session) in &running {
                    let found = table.find_run(&format!("r{run}").parse().unwrap());
                    prop_assert_eq!(found.map(Session::id), Some(session.id()));
                }
            }
        }
    }
}
