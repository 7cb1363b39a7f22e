//! Who is paired and who is connected.
//!
//! The durable half is written through to the store, the live half (links,
//! connections) is memory. The store is read once, at the start.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fault::{ErrorCode, Fault};
use identity::{ClientGate, Fingerprint, Role, Subject};
use parking_lot::RwLock;
use prost::Message as _;
use proto::v1 as pb;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::node_link::Link;
use crate::reference::{Candidate, resolve};
use crate::store::{NodeRecord, OperatorRecord, Store, StoreError, UnixMs};

/// Longest display name (`runtime.md` §6.3).
const NAME_MAX: usize = 64;

/// What the last hello said, beside the facts.
#[derive(Debug, Clone, Default)]
pub struct HelloFacts {
    /// Node commands it serves.
    pub commands: Vec<String>,
    /// Its clock minus ours, milliseconds.
    pub clock_skew_ms: i64,
    /// Its default policy.
    pub security: i32,
    /// Its default policy.
    pub ask: i32,
    /// Protocol that both speak.
    pub protocol: u32,
}

#[derive(Debug)]
struct Entry {
    record: NodeRecord,
    hex: String,
    facts: pb::HostFacts,
    hello: HelloFacts,
    address: Option<SocketAddr>,
    connected_at: UnixMs,
    link: Option<Arc<Link>>,
}

/// The registry.
#[derive(Debug)]
pub struct Registry {
    store: Arc<dyn Store>,
    inner: RwLock<Inner>,
    /// Counts changes of pairing and connection; waiters look again.
    changed: watch::Sender<u64>,
    next_connection: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: BTreeMap<Fingerprint, Entry>,
    operators: HashMap<Fingerprint, OperatorRecord>,
    /// Live TLS connections by the key they proved, with their switches.
    connections: HashMap<Fingerprint, Vec<(u64, CancellationToken)>>,
}

impl Registry {
    /// Reads the store.
    pub fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let mut inner = Inner::default();
        for record in store.nodes()? {
            inner.nodes.insert(record.id, Entry::new(record));
        }
        for operator in store.operators()? {
            inner.operators.insert(operator.id, operator);
        }
        Ok(Self {
            store,
            inner: RwLock::new(inner),
            changed: watch::Sender::new(0),
            next_connection: AtomicU64::new(1),
        })
    }

    /// Changes of pairing and connection. Look at the registry after each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn notify(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    // === connections ===

    /// Registers a connection's switch under the key it proved. To be called
    /// before the key is checked, so that a removal in between is not missed.
    pub fn register_connection(&self, key: Fingerprint) -> (u64, CancellationToken) {
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let switch = CancellationToken::new();
        self.inner.write().connections.entry(key).or_default().push((id, switch.clone()));
        (id, switch)
    }

    /// Forgets a connection that ended.
    pub fn forget_connection(&self, key: &Fingerprint, id: u64) {
        let mut inner = self.inner.write();
        if let Some(list) = inner.connections.get_mut(key) {
            list.retain(|(other, _)| *other != id);
            if list.is_empty() {
                inner.connections.remove(key);
            }
        }
    }

    /// Whether this key may speak as a node.
    pub fn is_paired(&self, key: &Fingerprint) -> bool {
        self.inner.read().nodes.get(key).is_some_and(|entry| !entry.record.removed)
    }

    /// What is known of a key, for a client that was refused.
    pub fn standing(&self, key: &Fingerprint) -> pb::standing_reply::State {
        match self.inner.read().nodes.get(key) {
            None => pb::standing_reply::State::Unknown,
            Some(entry) if entry.record.removed => pb::standing_reply::State::Removed,
            Some(_) => pb::standing_reply::State::Paired,
        }
    }

    // === pairing ===

    /// Adds a node or brings a removed one back; durable when it returns.
    pub fn pair(&self, id: Fingerprint, name: &str, facts: &pb::HostFacts, now: UnixMs) -> Result<(), Fault> {
        let mut inner = self.inner.write();
        if inner.nodes.get(&id).is_some_and(|entry| !entry.record.removed) {
            // Already there, perhaps connected: a second yes changes nothing.
            return Ok(());
        }
        let record = NodeRecord {
            id,
            display_name: clean_name(name, &id),
            approved_at: now,
            last_seen_at: now,
            certificate_not_after: 0,
            facts: facts.encode_to_vec(),
            removed: false,
        };
        self.store.put_node(&record).map_err(store_fault)?;
        inner.nodes.insert(id, Entry::new(record));
        drop(inner);
        self.notify();
        Ok(())
    }

    /// Notes a certificate that was issued to a node.
    pub fn certified(&self, id: &Fingerprint, not_after: UnixMs) -> Result<(), Fault> {
        self.update(id, |entry| entry.record.certificate_not_after = not_after)
    }

    /// Renames a node; durable when it returns.
    pub fn rename(&self, reference: &str, name: &str) -> Result<pb::Node, Fault> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("a name has 1 to {NAME_MAX} characters, none of them a control character"),
            ));
        }
        let id = self.find(reference)?;
        self.update(&id, |entry| name.clone_into(&mut entry.record.display_name))?;
        self.describe(&id)
    }

    /// Removes a node: refused from now on, its live connections cut at once.
    pub fn remove(&self, reference: &str) -> Result<pb::Node, Fault> {
        let id = self.find(reference)?;
        let last = self.describe(&id)?;
        self.update(&id, |entry| entry.record.removed = true)?;
        let removed = || {
            Fault::new(ErrorCode::NodeRemoved, "the node was removed")
                .hint("run `node-host run` there again to ask for pairing anew")
        };
        let mut inner = self.inner.write();
        let link = inner.nodes.get_mut(&id).and_then(|entry| entry.link.take());
        let switches = inner.connections.remove(&id).unwrap_or_default();
        drop(inner);
        if let Some(link) = link {
            link.end(removed());
        }
        for (_, switch) in switches {
            switch.cancel();
        }
        self.notify();
        Ok(last)
    }

    fn update(&self, id: &Fingerprint, change: impl FnOnce(&mut Entry)) -> Result<(), Fault> {
        let mut inner = self.inner.write();
        let entry = inner
            .nodes
            .get_mut(id)
            .filter(|entry| !entry.record.removed)
            .ok_or_else(|| Fault::new(ErrorCode::NotPaired, "this node is not paired"))?;
        let before = entry.record.clone();
        change(entry);
        if let Err(error) = self.store.put_node(&entry.record) {
            entry.record = before;
            return Err(store_fault(error));
        }
        drop(inner);
        self.notify();
        Ok(())
    }

    // === links ===

    /// The number of the next link.
    pub fn next_link(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes `link` the live link of its node; yields the one it replaces.
    pub fn attach(
        &self,
        link: &Arc<Link>,
        address: Option<SocketAddr>,
        facts: pb::HostFacts,
        hello: HelloFacts,
        now: UnixMs,
    ) -> Result<Option<Arc<Link>>, Fault> {
        let mut replaced = None;
        self.update(&link.node, |entry| {
            entry.record.facts = facts.encode_to_vec();
            entry.record.last_seen_at = now;
            entry.facts = facts;
            entry.hello = hello;
            entry.address = address;
            entry.connected_at = now;
            replaced = entry.link.replace(Arc::clone(link));
        })?;
        Ok(replaced)
    }

    /// Takes `link` out, unless a newer one has replaced it.
    pub fn detach(&self, link: &Arc<Link>, now: UnixMs) {
        let mut inner = self.inner.write();
        if let Some(entry) = inner.nodes.get_mut(&link.node)
            && entry.link.as_ref().is_some_and(|live| Arc::ptr_eq(live, link))
        {
            entry.link = None;
            entry.record.last_seen_at = now;
            if let Err(error) = self.store.put_node(&entry.record) {
                tracing::warn!(node = %entry.hex, %error, "last-seen time was not stored");
            }
        }
        drop(inner);
        self.notify();
    }

    /// The live link of a node.
    pub fn link(&self, id: &Fingerprint) -> Option<Arc<Link>> {
        let inner = self.inner.read();
        inner.nodes.get(id).and_then(|entry| entry.link.clone()).filter(|link| !link.is_closed())
    }

    /// All live links.
    pub fn links(&self) -> Vec<Arc<Link>> {
        let inner = self.inner.read();
        inner.nodes.values().filter_map(|entry| entry.link.clone()).filter(|link| !link.is_closed()).collect()
    }

    // === look-up ===

    /// The node that a reference means (`runtime.md` §6.6).
    pub fn find(&self, reference: &str) -> Result<Fingerprint, Fault> {
        let inner = self.inner.read();
        let addresses: Vec<String> = inner
            .nodes
            .values()
            .map(|entry| match (&entry.link, entry.address) {
                (Some(_), Some(address)) => address.ip().to_string(),
                _ => String::new(),
            })
            .collect();
        let candidates: Vec<Candidate<'_>> = inner
            .nodes
            .values()
            .zip(&addresses)
            .filter(|(entry, _)| !entry.record.removed)
            .map(|(entry, address)| Candidate {
                id: &entry.hex,
                name: &entry.record.display_name,
                address,
                connected: entry.is_connected(),
            })
            .collect();
        let found = resolve(reference, &candidates)?;
        found.id.parse().map_err(|_| Fault::new(ErrorCode::Internal, "a node id is no fingerprint"))
    }

    /// The node that a reference means, with its link. An offline node is
    /// refused, never replaced by another.
    pub fn find_connected(&self, reference: &str) -> Result<Arc<Link>, Fault> {
        let id = self.find(reference)?;
        self.link(&id).ok_or_else(|| self.offline(&id))
    }

    /// The refusal for an offline node.
    pub fn offline(&self, id: &Fingerprint) -> Fault {
        let name = self.name(id);
        Fault::new(ErrorCode::NodeOffline, format!("node {name} is not connected"))
            .hint("start `node-host run` there; the command was not sent to any other node")
    }

    /// Display name of a node.
    pub fn name(&self, id: &Fingerprint) -> String {
        let inner = self.inner.read();
        inner.nodes.get(id).map_or_else(|| id.to_hex(), |entry| entry.record.display_name.clone())
    }

    /// Everything about one node.
    pub fn describe(&self, id: &Fingerprint) -> Result<pb::Node, Fault> {
        let inner = self.inner.read();
        inner
            .nodes
            .get(id)
            .map(Entry::describe)
            .ok_or_else(|| Fault::new(ErrorCode::NotPaired, "this node is not paired"))
    }

    /// All paired nodes: connected first, then by name.
    pub fn nodes(&self) -> Vec<pb::Node> {
        let inner = self.inner.read();
        let mut nodes: Vec<_> =
            inner.nodes.values().filter(|entry| !entry.record.removed).map(Entry::describe).collect();
        nodes.sort_by(|a, b| {
            (!a.connected, &a.display_name, &a.node_id).cmp(&(!b.connected, &b.display_name, &b.node_id))
        });
        nodes
    }

    // === operators ===

    /// The operator that holds this key.
    pub fn operator(&self, key: &Fingerprint) -> Option<OperatorRecord> {
        self.inner.read().operators.get(key).cloned()
    }

    /// All operators, by name.
    pub fn operators(&self) -> Vec<OperatorRecord> {
        let mut all: Vec<_> = self.inner.read().operators.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Adds an operator; a name that is taken is refused.
    pub fn add_operator(&self, operator: OperatorRecord) -> Result<(), Fault> {
        let mut inner = self.inner.write();
        if inner.operators.values().any(|other| other.name == operator.name || other.id == operator.id) {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("operator `{}` exists", operator.name),
            )
            .hint("`gateway operators remove` it first"));
        }
        self.store.put_operator(&operator).map_err(store_fault)?;
        inner.operators.insert(operator.id, operator);
        Ok(())
    }

    /// Removes an operator and cuts its connections.
    pub fn remove_operator(&self, name: &str) -> Result<OperatorRecord, Fault> {
        let mut inner = self.inner.write();
        let found = inner.operators.values().find(|o| o.name == name).cloned().ok_or_else(|| {
            Fault::new(ErrorCode::InvalidRequest, format!("no operator `{name}`"))
                .hint("`gateway operators list`")
        })?;
        self.store.remove_operator(name).map_err(store_fault)?;
        inner.operators.remove(&found.id);
        let switches = inner.connections.remove(&found.id).unwrap_or_default();
        drop(inner);
        for (_, switch) in switches {
            switch.cancel();
        }
        Ok(found)
    }
}

/// The check inside the TLS handshake.
impl ClientGate for Registry {
    fn admits(&self, subject: &Subject) -> bool {
        match subject.role {
            Role::Node => self.is_paired(&subject.fingerprint),
            Role::Operator => self.inner.read().operators.contains_key(&subject.fingerprint),
        }
    }
}

impl Entry {
    fn new(record: NodeRecord) -> Self {
        Self {
            hex: record.id.to_hex(),
            // Facts are for display; a row that does not decode shows none.
            facts: pb::HostFacts::decode(record.facts.as_slice()).unwrap_or_default(),
            hello: HelloFacts::default(),
            address: None,
            connected_at: 0,
            link: None,
            record,
        }
    }

    fn is_connected(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_closed())
    }

    fn describe(&self) -> pb::Node {
        pb::Node {
            node_id: self.hex.clone(),
            display_name: self.record.display_name.clone(),
            connected: self.is_connected(),
            facts: Some(self.facts.clone()),
            commands: self.hello.commands.clone(),
            remote_address: self.address.map(|a| a.to_string()).unwrap_or_default(),
            approved_unix_ms: self.record.approved_at,
            connected_unix_ms: if self.is_connected() { self.connected_at } else { 0 },
            last_seen_unix_ms: self.record.last_seen_at,
            certificate_not_after_unix_ms: self.record.certificate_not_after,
            clock_skew_ms: self.hello.clock_skew_ms,
            security: self.hello.security,
            ask: self.hello.ask,
            protocol: self.hello.protocol,
            sessions_running: 0,
        }
    }
}

/// A node's own name made fit for lists: no control characters, bounded,
/// never empty.
fn clean_name(name: &str, id: &Fingerprint) -> String {
    let clean: String = name.trim().chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
    if clean.is_empty() { format!("node-{}", &id.to_hex()[..8]) } else { clean }
}

/// A failed store as an answer to a caller.
pub(crate) fn store_fault(error: StoreError) -> Fault {
    let source = std::error::Error::source(&error).map(|s| format!(": {s}")).unwrap_or_default();
    Fault::new(ErrorCode::StoreUnreadable, format!("{error}{source}"))
}
