//! The ledger of background commands, and the queue of their ends (runtime spec §5).
//!
//! A command is in the ledger from the moment it went to the background. Its row is final before its end is told, and its
//! end waits in the queue of its agent's session until it was taken or the agent has read it by itself. Both are on disk:
//! what was told to nobody before a restart is told after it.

mod text;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fault::Fault;
use identity::Fingerprint;
use parking_lot::Mutex;
use policy::MAIN_AGENT;
use proto::v1::{self as pb, reply::Answer, request::Command};
use tokio::sync::watch;

use crate::clock;
use crate::gateway::Gateway;
use crate::registry::store_fault;
use crate::start;
use crate::store::{Completed, Store, TaskKey, TaskRecord, UnixMs};
use crate::webhook::Wakes;

/// Ends that wait for one session of an agent (§5.3). The oldest go first.
const QUEUE_MAX: u32 = 20;
/// How long a command is listed after its end, and an end waits to be taken.
const KEPT_MS: UnixMs = 7 * 24 * 3600 * 1000;
/// Commands that are listed after their end.
const KEPT_MAX: u32 = 1000;
/// Ends that came before their command was in the ledger: foreground commands, mostly, that may still go there.
const EARLY_MAX: usize = 2048;
/// How long the reading of a session that has ended, or that is outside the ledger, is remembered. A node keeps what
/// ended for half an hour, and then may give its name to another; to read something twice is better than to miss it.
const CURSOR_MS: UnixMs = 30 * 60 * 1000;
/// Sessions outside the ledger whose reading is remembered.
const CURSORS_MAX: usize = 4096;
/// Answer to a question about the end of some output.
const ANSWER: Duration = Duration::from_secs(10);

/// Whether the end of a background command is told, as it was configured when it started (§5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotifyOnExit {
    /// `tools.exec.notifyOnExit`.
    pub(crate) on_exit: bool,
    /// `tools.exec.notifyOnExitEmptySuccess`.
    pub(crate) empty_success: bool,
}

/// The background commands of one gateway.
#[derive(Debug)]
pub(crate) struct Tasks {
    store: Arc<dyn Store>,
    /// Oldest first, with their nodes. Locked over each look into the ledger, so that a command and its end do not miss
    /// each other.
    early: Mutex<VecDeque<(String, pb::SessionEnded)>>,
    /// Of sessions that are not in the ledger, by node and name; with the time of their last reading.
    cursors: Mutex<HashMap<(String, String), (u64, UnixMs)>>,
    /// Counts the ends that were queued.
    queued: watch::Sender<u64>,
    wakes: Arc<Wakes>,
    /// The newest end that waited for each session of an agent when the gateway started.
    unwoken: Mutex<Vec<pb::Notice>>,
}

impl Tasks {
    /// Opens the ledger. Ends that an earlier process did not come to tell are queued, without their output.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) fn open(store: Arc<dyn Store>) -> Result<Self, Fault> {
        for TaskRecord { task, .. } in store.untold_tasks().map_err(store_fault)? {
            store.queue_completion(&notice(&task, ""), QUEUE_MAX).map_err(store_fault)?;
        }
        store.forget_tasks(clock::now_ms() - KEPT_MS, KEPT_MAX).map_err(store_fault)?;
        let unwoken = store.newest_completions().map_err(store_fault)?;
        Ok(Self {
            unwoken: Mutex::new(unwoken),
            store,
            early: Mutex::default(),
            cursors: Mutex::default(),
            queued: watch::Sender::new(0),
            wakes: Arc::default(),
        })
    }

    /// A command went to the background. It may have ended already: then its end is told at once. A command that is there
    /// already stays as it is.
    ///
    /// # Errors
    /// It could not be written down.
    pub(crate) fn begin(
        &self,
        gateway: &Arc<Gateway>,
        task: pb::Task,
        notify: NotifyOnExit,
    ) -> Result<(), Fault> {
        // Somebody must be there to be told.
        let event = notify.on_exit && !(task.agent_id.is_empty() && task.session_key.is_empty());
        let agent_id = if task.agent_id.is_empty() { MAIN_AGENT.to_owned() } else { task.agent_id };
        let status = pb::task::Status::Running.into();
        let task = pb::Task { agent_id, status, ended_unix_ms: 0, exit: None, ..task };
        let record = TaskRecord { task, event, empty_success: notify.empty_success };
        let ended = {
            let mut early = self.early.lock();
            if !self.store.add_task(&record).map_err(store_fault)? {
                return Ok(());
            }
            let is_it = |(node_id, ended): &(String, pb::SessionEnded)| {
                ended.session.as_ref().is_some_and(|session| key(node_id, session) == key_of(&record.task))
            };
            early.iter().position(is_it).and_then(|at| early.remove(at))
        };
        if let Some((_, pb::SessionEnded { session: Some(pb::SessionInfo { exit: Some(exit), .. }), tail })) =
            ended
        {
            self.finish(gateway, record, exit, &tail);
        }
        Ok(())
    }

    /// A node says that a session ended, now or in its inventory.
    pub(crate) fn ended(&self, gateway: &Arc<Gateway>, node_id: &str, ended: &pb::SessionEnded) {
        let Some(session) = &ended.session else { return };
        let Some(exit) = &session.exit else { return };
        let found = {
            let mut early = self.early.lock();
            let found = self.store.task(key(node_id, session));
            if let Ok(None) = found {
                if early.len() >= EARLY_MAX {
                    early.pop_front();
                }
                early.push_back((node_id.to_owned(), ended.clone()));
            }
            found
        };
        match found {
            Ok(Some(record)) if record.task.status() == pb::task::Status::Running => {
                self.finish(gateway, record, exit.clone(), &ended.tail);
            }
            Ok(_) => {}
            // The node's next hello says it again.
            Err(error) => tracing::error!(%error, "an end could not be looked up"),
        }
    }

    /// What a node has, as it says when it connects. Commands of it that run as far as is known here and that it does not
    /// have any more are over; the node is asked once more before that is written down, since a command may have started
    /// while it connected. Ends in the list are for [`Tasks::ended`].
    pub(crate) fn inventory(&self, gateway: &Arc<Gateway>, node: &Fingerprint, sessions: &[pb::SessionInfo]) {
        // The last process may have ended before it woke them.
        let unwoken = std::mem::take(&mut *self.unwoken.lock());
        unwoken.iter().for_each(|notice| self.wakes.queued(gateway, notice));
        let missing = self.missing(&node.to_hex(), sessions);
        if missing.is_empty() {
            return;
        }
        let (gateway, node) = (Arc::clone(gateway), *node);
        tokio::spawn(async move {
            let Some(link) = gateway.registry.link(&node) else { return };
            // Without an answer its next hello decides.
            let Ok(sessions) = start::sessions_of(&link).await else { return };
            gateway.tasks.lost(&gateway, &missing, &sessions);
        });
    }

    /// A node was removed: nobody here will hear how its commands end.
    pub(crate) fn node_removed(&self, gateway: &Arc<Gateway>, node_id: &str) {
        self.lost(gateway, &self.missing(node_id, &[]), &[]);
    }

    /// Commands of a node that run as far as is known here, and that are not among these sessions.
    fn missing(&self, node_id: &str, sessions: &[pb::SessionInfo]) -> Vec<pb::Task> {
        let there: HashSet<_> = sessions.iter().map(|s| (s.session_id.as_str(), s.run_id.as_str())).collect();
        let mut running = self.list(None, true).unwrap_or_else(|fault| {
            tracing::error!(%fault, "background commands could not be listed");
            Vec::new()
        });
        running.retain(|task| {
            task.node_id == node_id && !there.contains(&(task.session_id.as_str(), task.task_id.as_str()))
        });
        running
    }

    /// Those of the `missing` that are not among the sessions of their node either are over, nobody knows how.
    fn lost(&self, gateway: &Arc<Gateway>, missing: &[pb::Task], sessions: &[pb::SessionInfo]) {
        for task in missing {
            if sessions.iter().any(|session| key(&task.node_id, session) == key_of(task)) {
                continue;
            }
            match self.store.task(key_of(task)) {
                Ok(Some(record)) => self.finish(gateway, record, text::unknown_to_node(task), &[]),
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "a lost command could not be looked up"),
            }
        }
    }

    /// Makes the row final, then tells the end where somebody wants to hear of it.
    fn finish(&self, gateway: &Arc<Gateway>, mut record: TaskRecord, exit: pb::Exit, tail: &[u8]) {
        record.event &= text::is_told(&exit, record.empty_success);
        let task = &mut record.task;
        task.set_status(text::status(&exit));
        task.ended_unix_ms = if exit.ended_unix_ms > 0 { exit.ended_unix_ms } else { clock::now_ms() };
        let has_output = exit.final_offset > 0;
        task.exit = Some(exit);
        match self.store.finish_task(&record) {
            Ok(true) => {}
            // Another end was faster.
            Ok(false) => return,
            Err(error) => return tracing::error!(%error, "the end of a background command was not stored"),
        }
        if let Err(error) = self.store.forget_tasks(clock::now_ms() - KEPT_MS, KEPT_MAX) {
            tracing::warn!(%error, "old background commands could not be forgotten");
        }
        let TaskRecord { task, event, .. } = record;
        if !event {
            return;
        }
        if !tail.is_empty() || !has_output {
            return self.tell(gateway, &task, &text::cleaned(tail));
        }
        let gateway = Arc::clone(gateway);
        tokio::spawn(async move {
            let tail = tail_of(&gateway, &task).await.unwrap_or_default();
            gateway.tasks.tell(&gateway, &task, &tail);
        });
    }

    fn tell(&self, gateway: &Arc<Gateway>, task: &pb::Task, tail: &str) {
        let notice = notice(task, tail);
        match self.store.queue_completion(&notice, QUEUE_MAX) {
            Ok(Completed::Queued) => {
                self.queued.send_modify(|count| *count += 1);
                self.wakes.queued(gateway, &notice);
                gateway.notices.add(notice);
            }
            Ok(Completed::Repeated | Completed::NotWanted) => {}
            // The row says that it is still to be told: the next start does.
            Err(error) => tracing::error!(%error, "the end of a background command was not queued"),
        }
    }

    /// The agent read the end: it is not told any more.
    pub(crate) fn end_was_read(&self, node_id: &str, session_id: &str) {
        if let Err(error) = self.store.withdraw_completion(node_id, session_id) {
            tracing::error!(%error, "an end that was read is still queued");
        }
    }

    /// The ends that wait for an agent's session, oldest first. Those up to `taken` are forgotten before.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) fn take(&self, agent: &str, session_key: &str, taken: u64) -> Result<Vec<pb::Notice>, Fault> {
        self.store.completions(agent, session_key, taken).map_err(store_fault)
    }

    /// News of queued ends, anybody's.
    pub(crate) fn queued(&self) -> watch::Receiver<u64> {
        self.queued.subscribe()
    }

    /// The commands of one agent or of all, newest first; perhaps only those that run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn list(&self, agent: Option<&str>, running: bool) -> Result<Vec<pb::Task>, Fault> {
        self.store.tasks(agent, running).map_err(store_fault)
    }

    /// How far the agent has read a session by `poll`.
    pub(crate) fn cursor(&self, node_id: &str, session_id: &str) -> u64 {
        let since = clock::now_ms() - CURSOR_MS;
        match self.store.task_cursor(node_id, session_id, since) {
            Ok(Some(offset)) => offset,
            Ok(None) => {
                let key = (node_id.to_owned(), session_id.to_owned());
                let found = self.cursors.lock().get(&key).copied();
                found.filter(|(_, at)| *at >= since).map_or(0, |(offset, _)| offset)
            }
            Err(error) => {
                tracing::error!(%error, "a session is read from its start");
                0
            }
        }
    }

    /// The agent has read so far.
    ///
    /// # Errors
    /// It could not be written down.
    pub(crate) fn set_cursor(&self, node_id: &str, session_id: &str, offset: u64) -> Result<(), Fault> {
        let now = clock::now_ms();
        let since = now - CURSOR_MS;
        if self.store.set_task_cursor(node_id, session_id, since, offset).map_err(store_fault)? {
            return Ok(());
        }
        let key = (node_id.to_owned(), session_id.to_owned());
        let mut cursors = self.cursors.lock();
        if cursors.len() >= CURSORS_MAX && !cursors.contains_key(&key) {
            cursors.retain(|_, (_, at)| *at >= since);
        }
        if cursors.len() >= CURSORS_MAX && !cursors.contains_key(&key) {
            cursors.clear();
        }
        cursors.insert(key, (offset, now));
        Ok(())
    }
}

fn key<'a>(node_id: &'a str, session: &'a pb::SessionInfo) -> TaskKey<'a> {
    TaskKey { node_id, session_id: &session.session_id, task_id: &session.run_id }
}

fn key_of(task: &pb::Task) -> TaskKey<'_> {
    TaskKey { node_id: &task.node_id, session_id: &task.session_id, task_id: &task.task_id }
}

/// The end of a command's output, as its node shows it.
async fn tail_of(gateway: &Gateway, task: &pb::Task) -> Option<String> {
    let link = gateway.registry.find_connected(&task.node_id).ok()?;
    let request = pb::StatesRequest {
        session: task.session_id.clone(),
        tail_chars: text::TAIL_CHARS as u32,
        ..pb::StatesRequest::default()
    };
    let Ok(Answer::States(reply)) = link.request(Command::States(request), ANSWER).await else { return None };
    let is_it =
        |session: &pb::SessionInfo| session.session_id == task.session_id && session.run_id == task.task_id;
    let state = reply.states.into_iter().find(|state| state.session.as_ref().is_some_and(is_it))?;
    Some(state.tail)
}

fn notice(task: &pb::Task, tail: &str) -> pb::Notice {
    let exit = task.exit.clone().unwrap_or_default();
    pb::Notice {
        unix_ms: clock::now_ms(),
        kind: pb::notice::Kind::BackgroundEnded.into(),
        text: text::text(&task.session_id, &exit, tail),
        run_id: task.task_id.clone(),
        node_id: task.node_id.clone(),
        session_id: task.session_id.clone(),
        agent_id: task.agent_id.clone(),
        session_key: task.session_key.clone(),
        exit: Some(exit),
        ..pb::Notice::default()
    }
}
