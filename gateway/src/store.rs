//! What the gateway must remember across a restart: nodes, invites, operators, approvals, background commands.
//!
//! A trait, so that another engine can take the place of the embedded one. It
//! holds no output of sessions: they belong to their nodes.

mod sqlite;

use std::fmt::Debug;

use identity::Fingerprint;
use proto::v1 as pb;

pub use sqlite::SqliteStore;

/// Milliseconds since the Unix epoch.
pub type UnixMs = i64;

/// A paired (or removed) node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Fingerprint of the node's key: its identity, also after a renewal.
    pub id: Fingerprint,
    /// Name that operators see; theirs wins over the node's own.
    pub display_name: String,
    /// When it was approved.
    pub approved_at: UnixMs,
    /// Last time it was connected.
    pub last_seen_at: UnixMs,
    /// End of the newest certificate that was issued to it.
    pub certificate_not_after: UnixMs,
    /// Facts of the last hello, encoded as the wire message.
    pub facts: Vec<u8>,
    /// A removed node's key stays known, so that it gets a clear answer.
    pub removed: bool,
}

/// An unused invite. Its token is only known as a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteRecord {
    /// SHA-256 of the token.
    pub token_digest: [u8; 32],
    /// Name for the node that redeems it; empty: the node's own.
    pub display_name: String,
    /// Not redeemable from then on.
    pub expires_at: UnixMs,
}

/// A remote operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRecord {
    /// Name, unique.
    pub name: String,
    /// Fingerprint of its key.
    pub id: Fingerprint,
    /// Its roles, as numbers of the wire enum.
    pub roles: Vec<i32>,
    /// The agent that it speaks for.
    pub agent: String,
    /// When it was added.
    pub added_at: UnixMs,
    /// End of its certificate.
    pub not_after: UnixMs,
}

/// A background command in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// What is told about it.
    pub task: pb::Task,
    /// Its end is to be told, and was not yet.
    pub event: bool,
    /// Its end is told also where it succeeded without a word.
    pub empty_success: bool,
}

/// Which background command. The name of a session may come again, its run id does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKey<'a> {
    /// Its node, in hex.
    pub node_id: &'a str,
    /// Its session.
    pub session_id: &'a str,
    /// Its run id.
    pub task_id: &'a str,
}

/// What came of an end that was to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// It waits for its agent.
    Queued,
    /// The same waits already.
    Repeated,
    /// It was told before, or the agent has read it itself.
    NotWanted,
}

/// A failed operation on the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or is no store of ours.
    #[error("the store {path} cannot be read")]
    Open {
        /// Where it lies.
        path: String,
        /// What the engine said.
        #[source]
        source: rusqlite::Error,
    },
    /// The file was written by a newer version.
    #[error("the store {path} has version {found}, this program knows {known}")]
    Version {
        /// Where it lies.
        path: String,
        /// Version in the file.
        found: i64,
        /// Newest version known here.
        known: i64,
    },
    /// A statement failed.
    #[error("the store failed to {operation}")]
    Statement {
        /// What was tried.
        operation: &'static str,
        /// What the engine said.
        #[source]
        source: rusqlite::Error,
    },
}

/// The store of one gateway. Calls are short and durable when they return.
pub trait Store: Send + Sync + Debug {
    /// All nodes, removed ones included.
    fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError>;
    /// Inserts or replaces a node.
    fn put_node(&self, node: &NodeRecord) -> Result<(), StoreError>;
    /// Adds an invite and forgets those that expired before `now`.
    fn put_invite(&self, invite: &InviteRecord, now: UnixMs) -> Result<(), StoreError>;
    /// Takes an invite that is still good. A second call with the same token
    /// finds nothing.
    fn take_invite(&self, token_digest: &[u8; 32], now: UnixMs) -> Result<Option<InviteRecord>, StoreError>;
    /// All operators.
    fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError>;
    /// Inserts or replaces an operator of that name.
    fn put_operator(&self, operator: &OperatorRecord) -> Result<(), StoreError>;
    /// Inserts or replaces a request for a person's yes.
    fn put_approval(&self, approval: &pb::Approval) -> Result<(), StoreError>;
    /// Those that are open, oldest first.
    fn open_approvals(&self) -> Result<Vec<pb::Approval>, StoreError>;
    /// Those that are closed, newest end first.
    fn closed_approvals(&self, limit: u32) -> Result<Vec<pb::Approval>, StoreError>;
    /// The one of this id in any case, or up to two whose ids begin so.
    fn approvals_like(&self, prefix: &str) -> Result<Vec<pb::Approval>, StoreError>;
    /// Forgets those that were closed before a moment.
    fn forget_approvals(&self, before: UnixMs) -> Result<(), StoreError>;
    /// Removes an operator; yields whether there was one.
    fn remove_operator(&self, name: &str) -> Result<bool, StoreError>;
    /// Adds a background command; yields whether it is new.
    fn add_task(&self, record: &TaskRecord) -> Result<bool, StoreError>;
    /// A background command.
    fn task(&self, key: TaskKey<'_>) -> Result<Option<TaskRecord>, StoreError>;
    /// Replaces one that runs by what it is at its end; yields whether it ran until now. An event that nobody wants any
    /// more stays unwanted.
    fn finish_task(&self, record: &TaskRecord) -> Result<bool, StoreError>;
    /// Those of one agent or of all, newest first; perhaps only those that run.
    fn tasks(&self, agent: Option<&str>, running: bool) -> Result<Vec<pb::Task>, StoreError>;
    /// Those that have ended and whose end is still to be told.
    fn untold_tasks(&self) -> Result<Vec<TaskRecord>, StoreError>;
    /// Forgets those that ended before a moment, those beyond the newest `keep` that ended, and ends that nobody took
    /// since that moment.
    fn forget_tasks(&self, before: UnixMs, keep: u32) -> Result<(), StoreError>;
    /// How far the newest command of a session was read; none where there is no such command that runs or ended since a
    /// moment.
    fn task_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
    ) -> Result<Option<u64>, StoreError>;
    /// Notes how far it was read; yields whether there is such a command.
    fn set_task_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
        offset: u64,
    ) -> Result<bool, StoreError>;
    /// Queues the end of the command whose run, session and node the notice names, if it is still to be told. Beyond
    /// `most` of one agent's session the oldest go.
    fn queue_completion(&self, notice: &pb::Notice, most: u32) -> Result<Completed, StoreError>;
    /// Forgets the ends of one agent's session up to a number, and yields the others, oldest first.
    fn completions(&self, agent: &str, session_key: &str, taken: u64) -> Result<Vec<pb::Notice>, StoreError>;
    /// The newest end that waits of each agent's session.
    fn newest_completions(&self) -> Result<Vec<pb::Notice>, StoreError>;
    /// The end of the newest command of a session is not told any more.
    fn withdraw_completion(&self, node_id: &str, session_id: &str) -> Result<(), StoreError>;
}
