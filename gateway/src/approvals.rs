//! Requests for a person's yes: on disk before anybody can see them, answered once, told to whoever watches
//! (runtime spec §9). What may happen to one is said by `approval::broker`; here are the store, the clock and the waiting.

mod answer;
mod listed;
mod ticket;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use approval::broker::{Broker, Late, Refused, UnixMs};
use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use parking_lot::Mutex;
use proto::v1 as pb;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::registry::store_fault;
use crate::start;
use crate::store::Store;

use listed::{cut, short, that_fit};

pub(crate) use answer::Resolution;
pub(crate) use ticket::{Outcome, Ticket};

/// How long a request is open (policy spec §7.7).
const LIFE_MS: UnixMs = 30 * 60 * 1000;
/// How long closed ones are kept.
const HISTORY_MS: UnixMs = 30 * 24 * 3600 * 1000;
/// Events that a watcher may be behind. Then it is told everything anew.
const EVENTS_MAX: usize = 1024;
/// How many ids are tried before a request is refused for want of a free one.
const ID_TRIES: usize = 16;

/// What is asked.
#[derive(Debug)]
pub(crate) struct NewApproval {
    /// None: one is chosen.
    pub(crate) id: Option<String>,
    /// The node that made the plan.
    pub(crate) node: Fingerprint,
    /// Its name.
    pub(crate) node_name: String,
    /// What would run.
    pub(crate) plan: pb::Plan,
    /// Who asked for the run.
    pub(crate) requested_by: String,
}

/// A request that is open, or whose decision was not picked up.
#[derive(Debug)]
struct Live {
    approval: pb::Approval,
    key: bytes::Bytes,
    signature: bytes::Bytes,
    /// Set when it is closed.
    closed: watch::Sender<bool>,
}

/// What two answers are compared by.
type Decided = (i32, Option<pb::Lasting>);

#[derive(Debug, Default)]
struct State {
    broker: Broker<Decided>,
    /// By id in lower case.
    live: HashMap<String, Live>,
}

impl State {
    /// What can be answered now.
    fn open(&self) -> impl Iterator<Item = &pb::Approval> {
        let now = clock::now_ms();
        self.live
            .values()
            .map(|live| &live.approval)
            .filter(move |a| a.status() == pb::ApprovalStatus::Pending && a.expires_unix_ms > now)
    }
}

/// All requests of one gateway.
#[derive(Debug)]
pub(crate) struct Approvals {
    /// Held while something is stored and told: whoever watches hears of things in their order.
    state: Mutex<State>,
    store: Arc<dyn Store>,
    events: broadcast::Sender<pb::ApprovalEvent>,
    watchers: Arc<AtomicUsize>,
    stopping: CancellationToken,
    log: Option<Arc<audit::Log>>,
}

/// Somebody watches as long as this is there.
#[derive(Debug)]
pub(crate) struct Watching(Arc<AtomicUsize>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Approvals {
    /// The requests in a store. Those that were open belong to calls of an earlier process: they are closed.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) fn open(
        store: Arc<dyn Store>,
        log: Option<Arc<audit::Log>>,
        stopping: CancellationToken,
    ) -> Result<Self, Fault> {
        let now = clock::now_ms();
        store.forget_approvals(now - HISTORY_MS).map_err(store_fault)?;
        let this = Self {
            state: Mutex::default(),
            store,
            events: broadcast::Sender::new(EVENTS_MAX),
            watchers: Arc::default(),
            stopping,
            log,
        };
        for mut approval in this.store.open_approvals().map_err(store_fault)? {
            close(&mut approval, pb::ApprovalStatus::Cancelled, "gateway-restart", now);
            this.store.put_approval(&approval).map_err(store_fault)?;
            this.audit("approval.closed", &approval);
        }
        Ok(this)
    }

    /// Whether a person would see a request now.
    pub(crate) fn reachable(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Takes a request. It is on disk before anybody is told.
    ///
    /// # Errors
    /// Too many are open, the id is taken, nobody could read the command, or the store failed.
    pub(crate) fn request(self: &Arc<Self>, new: NewApproval) -> Result<Ticket, Fault> {
        let NewApproval { id, node, node_name, plan, requested_by } = new;
        if approval::shown(&plan.command_text).is_none() {
            return Err(Fault::new(
                ErrorCode::CommandDisplayLimit,
                format!(
                    "the command is longer than the {} characters that can be shown; nobody was asked",
                    approval::SHOWN_MAX
                ),
            )
            .hint("put it into a script and run that: a script is bound by its content"));
        }
        let mut allowed = vec![pb::Decision::AllowOnce.into(), pb::Decision::Deny.into()];
        if !plan.always.is_empty() {
            allowed.insert(1, pb::Decision::AllowAlways.into());
        }
        let now = clock::now_ms();
        let expires = plan.expires_unix_ms.min(now + LIFE_MS);
        let mut state = self.state.lock();
        let id = match id {
            Some(id) => id,
            None => free_id(&state.broker)?,
        };
        // Older ones are in the store only.
        let known = self.store.approvals_like(&id).map_err(store_fault)?;
        if known.iter().any(|known| known.approval_id.eq_ignore_ascii_case(&id)) {
            return Err(not_taken(Refused::Taken));
        }
        state.broker.request(&id, now, expires).map_err(not_taken)?;
        let approval = pb::Approval {
            approval_id: id,
            node_id: node.to_hex(),
            node_name,
            plan: Some(plan),
            allowed,
            created_unix_ms: now,
            expires_unix_ms: expires,
            requested_by,
            status: pb::ApprovalStatus::Pending.into(),
            ..pb::Approval::default()
        };
        if let Err(error) = self.store.put_approval(&approval) {
            state.broker.cancel(&approval.approval_id, now);
            return Err(store_fault(error));
        }
        let closed = watch::Sender::new(false);
        let receiver = closed.subscribe();
        let live = Live {
            approval: approval.clone(),
            key: bytes::Bytes::new(),
            signature: bytes::Bytes::new(),
            closed,
        };
        state.live.insert(approval.approval_id.to_lowercase(), live);
        self.tell("approval.requested", &approval);
        drop(state);
        Ok(Ticket::new(Arc::clone(self), approval, receiver))
    }

    /// A decision that was taken elsewhere, for the history.
    pub(crate) fn note(&self, approval: pb::Approval) {
        if let Err(error) = self.store.put_approval(&approval) {
            tracing::error!(id = approval.approval_id, %error, "a decision was not stored");
        }
        self.tell("approval.decided", &approval);
    }

    /// What is open, the shortest time left first, cut for a list. Of too many, those come first whose time is over first.
    pub(crate) fn list(&self) -> Vec<pb::Approval> {
        let mut list: Vec<_> = self.state.lock().open().map(cut).collect();
        list.sort_by(|a, b| (a.expires_unix_ms, &a.approval_id).cmp(&(b.expires_unix_ms, &b.approval_id)));
        that_fit(list)
    }

    /// What was closed, newest first, cut for a list.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) fn history(&self, limit: u32) -> Result<Vec<pb::Approval>, Fault> {
        let closed = self.store.closed_approvals(limit).map_err(store_fault)?;
        Ok(that_fit(closed.iter().map(cut).collect()))
    }

    /// One, by its id or a unique beginning of it.
    ///
    /// # Errors
    /// There is none, or several.
    pub(crate) fn get(&self, reference: &str) -> Result<pb::Approval, Fault> {
        let state = self.state.lock();
        match state.broker.find(reference) {
            Ok(id) => match state.live.get(&id) {
                Some(live) => Ok(live.approval.clone()),
                None => self.stored(&id),
            },
            Err(Late::Ambiguous) => Err(late(Late::Ambiguous)),
            Err(_) => self.stored(reference),
        }
    }

    /// Waits until one is closed.
    ///
    /// # Errors
    /// See [`Approvals::get`].
    pub(crate) async fn wait(&self, reference: &str) -> Result<pb::Approval, Fault> {
        let approval = self.get(reference)?;
        let id = approval.approval_id.to_lowercase();
        let closed = self.state.lock().live.get(&id).map(|live| live.closed.subscribe());
        if let Some(mut closed) = closed {
            // Its sender goes when the record is closed and picked up.
            let _ = closed.wait_for(|closed| *closed).await;
        }
        self.get(&id)
    }

    /// What is open now, what happens from now on, and the mark of a watcher.
    pub(crate) fn watch(&self) -> (Vec<pb::Approval>, broadcast::Receiver<pb::ApprovalEvent>, Watching) {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        let watching = Watching(Arc::clone(&self.watchers));
        // Subscribed first: what comes between shows twice rather than never.
        let events = self.events.subscribe();
        (self.all_open(), events, watching)
    }

    /// Everything of what is open.
    pub(crate) fn all_open(&self) -> Vec<pb::Approval> {
        let mut open: Vec<_> = self.state.lock().open().cloned().collect();
        open.sort_by(|a, b| (a.created_unix_ms, &a.approval_id).cmp(&(b.created_unix_ms, &b.approval_id)));
        open
    }

    fn stored(&self, reference: &str) -> Result<pb::Approval, Fault> {
        let mut found = self.store.approvals_like(reference).map_err(store_fault)?;
        match (found.pop(), found.pop()) {
            (Some(approval), None) if !reference.is_empty() => Ok(approval),
            (Some(_), Some(_)) if !reference.is_empty() => Err(late(Late::Ambiguous)),
            _ => Err(late(Late::Unknown)),
        }
    }

    /// Tells watchers and the log.
    fn tell(&self, kind: &str, approval: &pb::Approval) {
        self.audit(kind, approval);
        let event = match approval.status() {
            pb::ApprovalStatus::Pending => pb::approval_event::Event::Requested(approval.clone()),
            _ => pb::approval_event::Event::Closed(approval.clone()),
        };
        // Nobody may be watching.
        let _ = self.events.send(pb::ApprovalEvent { event: Some(event) });
    }

    fn audit(&self, kind: &str, approval: &pb::Approval) {
        tracing::info!(
            kind,
            id = approval.approval_id,
            by = approval.decided_by,
            reason = approval.reason,
            "approval"
        );
        let Some(log) = &self.log else { return };
        let plan = approval.plan.as_ref();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let decided = approval.decision() != pb::Decision::Unspecified;
        let data = serde_json::json!({
            "approvalId": approval.approval_id,
            "node": approval.node_name,
            "nodeId": approval.node_id,
            "plan": plan.map(|plan| hex(&plan.digest)),
            "runId": plan.map(|plan| &plan.run_id),
            "command": plan.map(|plan| short(&plan.command_text)),
            "cwd": plan.map(|plan| &plan.workdir),
            "agentId": plan.map(|plan| &plan.agent_id),
            "requestedBy": approval.requested_by,
            "status": word(approval.status().as_str_name(), "APPROVAL_STATUS_"),
            "reason": approval.reason,
            "decision": decided.then(|| word(approval.decision().as_str_name(), "DECISION_")),
            "decidedBy": approval.decided_by,
            "decidedFrom": approval.decided_from,
        });
        if let Err(error) = log.append_durable(kind, data) {
            tracing::error!(kind, %error, "the audit log could not be written");
        }
    }
}

/// A word of the wire as people write it.
fn word(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_lowercase().replace('_', "-")
}

fn close(approval: &mut pb::Approval, status: pb::ApprovalStatus, reason: &str, now: UnixMs) {
    approval.status = status.into();
    reason.clone_into(&mut approval.reason);
    approval.closed_unix_ms = now;
}

/// A random id. Somebody may have chosen one that begins like it.
fn free_id(broker: &Broker<Decided>) -> Result<String, Fault> {
    for _ in 0..ID_TRIES {
        let id = start::new_run_id()?;
        if broker.is_free(&id) {
            return Ok(id);
        }
    }
    Err(not_taken(Refused::Taken))
}

fn not_taken(refused: Refused) -> Fault {
    let code = match refused {
        Refused::Full => ErrorCode::ApprovalLimit,
        Refused::Taken => ErrorCode::ApprovalIdTaken,
        Refused::Id(_) => ErrorCode::InvalidRequest,
        Refused::Over => ErrorCode::ApprovalExpired,
    };
    Fault::new(code, refused.to_string())
        .hint("nothing ran and nobody was asked; `gateway approvals pending`")
}

fn late(late: Late) -> Fault {
    let (code, hint) = match late {
        Late::Unknown => (ErrorCode::ApprovalNotFound, "`gateway approvals pending` and `history` list them"),
        Late::Ambiguous => (ErrorCode::AmbiguousApproval, "`gateway approvals pending` shows the ids"),
        Late::Expired => (ErrorCode::ApprovalExpired, "nothing ran; the caller may ask again"),
        Late::Cancelled => {
            (ErrorCode::ApprovalCancelled, "nothing ran; the caller left, or the gateway was restarted")
        }
        Late::AlreadyResolved => (ErrorCode::ApprovalAlreadyResolved, "the first answer counts"),
        Late::AlreadyUsed => (ErrorCode::ApprovalAlreadyUsed, "each decision is good for one run"),
        Late::Open => (ErrorCode::Internal, "report this"),
    };
    Fault::new(code, late.to_string()).hint(hint)
}
