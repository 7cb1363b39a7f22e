//! The embedded engine: SQLite in WAL mode, every commit on disk before it is
//! reported.

mod approvals;
mod tasks;

use std::path::Path;

use identity::Fingerprint;
use parking_lot::Mutex;
use proto::v1 as pb;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use approvals::SCHEMA as APPROVALS;
use tasks::SCHEMA as TASKS;

use super::{
    Completed, InviteRecord, NodeRecord, OperatorRecord, Store, StoreError, TaskKey, TaskRecord, UnixMs,
};

/// Version of the tables below, kept in `user_version`.
const SCHEMA_VERSION: i64 = 3;

const SCHEMA: &str = "
CREATE TABLE nodes (
    id BLOB PRIMARY KEY,
    display_name TEXT NOT NULL,
    approved_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    certificate_not_after INTEGER NOT NULL,
    facts BLOB NOT NULL,
    removed INTEGER NOT NULL
) STRICT;
CREATE TABLE invites (
    token_digest BLOB PRIMARY KEY,
    display_name TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE operators (
    name TEXT PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    roles TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    agent TEXT NOT NULL DEFAULT 'main'
) STRICT;
";

/// Before version 3 everybody spoke for the main agent.
const OPERATOR_AGENTS: &str = "ALTER TABLE operators ADD COLUMN agent TEXT NOT NULL DEFAULT 'main';";

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    /// One writer: statements are short, so they simply take turns.
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the file, or makes it with its tables.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let shown = || path.display().to_string();
        let failed = |source| StoreError::Open { path: shown(), source };
        let connection = Connection::open(path).map_err(failed)?;
        connection
            .execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=2000;")
            .map_err(failed)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        let missing = match found {
            0 => [SCHEMA, APPROVALS, TASKS].concat(),
            // Version 1 knew no approvals, version 2 no background commands.
            1 => [OPERATOR_AGENTS, APPROVALS, TASKS].concat(),
            2 => [OPERATOR_AGENTS, TASKS].concat(),
            SCHEMA_VERSION => String::new(),
            _ => return Err(StoreError::Version { path: shown(), found, known: SCHEMA_VERSION }),
        };
        if !missing.is_empty() {
            connection
                .execute_batch(&format!("BEGIN; {missing} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;"))
                .map_err(failed)?;
        }
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn run<T>(
        &self,
        operation: &'static str,
        statement: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        statement(&mut self.connection.lock()).map_err(|source| StoreError::Statement { operation, source })
    }
}

impl Store for SqliteStore {
    fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.run("list nodes", |db| {
            db.prepare_cached(
                "SELECT id, display_name, approved_at, last_seen_at, certificate_not_after, facts, removed FROM nodes",
            )?
            .query_map([], |row| {
                Ok(NodeRecord {
                    id: fingerprint(row, 0)?,
                    display_name: row.get(1)?,
                    approved_at: row.get(2)?,
                    last_seen_at: row.get(3)?,
                    certificate_not_after: row.get(4)?,
                    facts: row.get(5)?,
                    removed: row.get(6)?,
                })
            })?
            .collect()
        })
    }

    fn put_node(&self, node: &NodeRecord) -> Result<(), StoreError> {
        self.run("store a node", |db| {
            db.prepare_cached("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?)")?.execute(
                params![
                    node.id.0,
                    node.display_name,
                    node.approved_at,
                    node.last_seen_at,
                    node.certificate_not_after,
                    node.facts,
                    node.removed,
                ],
            )?;
            Ok(())
        })
    }

    fn put_invite(&self, invite: &InviteRecord, now: UnixMs) -> Result<(), StoreError> {
        self.run("store an invite", |db| {
            let transaction = db.transaction()?;
            transaction.execute("DELETE FROM invites WHERE expires_at <= ?", [now])?;
            transaction.execute(
                "INSERT INTO invites VALUES (?, ?, ?)",
                params![invite.token_digest, invite.display_name, invite.expires_at],
            )?;
            transaction.commit()
        })
    }

    fn take_invite(&self, token_digest: &[u8; 32], now: UnixMs) -> Result<Option<InviteRecord>, StoreError> {
        self.run("redeem an invite", |db| {
            db.query_row(
                "DELETE FROM invites WHERE token_digest = ? AND expires_at > ? RETURNING display_name, expires_at",
                params![token_digest, now],
                |row| {
                    Ok(InviteRecord {
                        token_digest: *token_digest,
                        display_name: row.get(0)?,
                        expires_at: row.get(1)?,
                    })
                },
            )
            .optional()
        })
    }

    fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError> {
        self.run("list operators", |db| {
            db.prepare_cached(
                "SELECT name, id, roles, added_at, not_after, agent FROM operators ORDER BY name",
            )?
            .query_map([], |row| {
                let roles: String = row.get(2)?;
                Ok(OperatorRecord {
                    name: row.get(0)?,
                    id: fingerprint(row, 1)?,
                    roles: roles.split(',').filter_map(|role| role.parse().ok()).collect(),
                    added_at: row.get(3)?,
                    not_after: row.get(4)?,
                    agent: row.get(5)?,
                })
            })?
            .collect()
        })
    }

    fn put_operator(&self, operator: &OperatorRecord) -> Result<(), StoreError> {
        let roles: Vec<String> = operator.roles.iter().map(i32::to_string).collect();
        self.run("store an operator", |db| {
            db.execute(
                "INSERT OR REPLACE INTO operators VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    operator.name,
                    operator.id.0,
                    roles.join(","),
                    operator.added_at,
                    operator.not_after,
                    operator.agent,
                ],
            )?;
            Ok(())
        })
    }

    fn put_approval(&self, approval: &pb::Approval) -> Result<(), StoreError> {
        self.write_approval(approval)
    }

    fn open_approvals(&self) -> Result<Vec<pb::Approval>, StoreError> {
        self.read_open_approvals()
    }

    fn closed_approvals(&self, limit: u32) -> Result<Vec<pb::Approval>, StoreError> {
        self.read_closed_approvals(limit)
    }

    fn approvals_like(&self, prefix: &str) -> Result<Vec<pb::Approval>, StoreError> {
        self.find_approvals(prefix)
    }

    fn forget_approvals(&self, before: UnixMs) -> Result<(), StoreError> {
        self.delete_approvals(before)
    }

    fn remove_operator(&self, name: &str) -> Result<bool, StoreError> {
        self.run("remove an operator", |db| {
            Ok(db.execute("DELETE FROM operators WHERE name = ?", [name])? > 0)
        })
    }

    fn add_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        self.insert_task(record)
    }

    fn task(&self, key: TaskKey<'_>) -> Result<Option<TaskRecord>, StoreError> {
        self.find_task(key)
    }

    fn finish_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        self.close_task(record)
    }

    fn tasks(&self, agent: Option<&str>, running: bool) -> Result<Vec<pb::Task>, StoreError> {
        self.list_tasks(agent, running)
    }

    fn untold_tasks(&self) -> Result<Vec<TaskRecord>, StoreError> {
        self.list_untold_tasks()
    }

    fn forget_tasks(&self, before: UnixMs, keep: u32) -> Result<(), StoreError> {
        self.delete_tasks(before, keep)
    }

    fn task_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
    ) -> Result<Option<u64>, StoreError> {
        self.read_cursor(node_id, session_id, ended_since)
    }

    fn set_task_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
        offset: u64,
    ) -> Result<bool, StoreError> {
        self.write_cursor(node_id, session_id, ended_since, offset)
    }

    fn queue_completion(&self, notice: &pb::Notice, most: u32) -> Result<Completed, StoreError> {
        self.insert_completion(notice, most)
    }

    fn completions(&self, agent: &str, session_key: &str, taken: u64) -> Result<Vec<pb::Notice>, StoreError> {
        self.read_completions(agent, session_key, taken)
    }

    fn newest_completions(&self) -> Result<Vec<pb::Notice>, StoreError> {
        self.read_newest_completions()
    }

    fn withdraw_completion(&self, node_id: &str, session_id: &str) -> Result<(), StoreError> {
        self.delete_completion(node_id, session_id)
    }
}

fn fingerprint(row: &Row<'_>, index: usize) -> rusqlite::Result<Fingerprint> {
    Ok(Fingerprint(row.get::<_, [u8; 32]>(index)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u8) -> NodeRecord {
        NodeRecord {
            id: Fingerprint([id; 32]),
            display_name: format!("n{id}"),
            approved_at: 1,
            last_seen_at: 2,
            certificate_not_after: 3,
            facts: vec![1, 2],
            removed: false,
        }
    }

    #[test]
    fn records_survive_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.db");
        let operator = OperatorRecord {
            name: "ann".into(),
            id: Fingerprint([9; 32]),
            agent: "a".into(),
            roles: vec![1, 4],
            added_at: 5,
            not_after: 6,
        };
        {
            let store = SqliteStore::open(&path).unwrap();
            store.put_node(&node(1)).unwrap();
            store.put_node(&NodeRecord { removed: true, ..node(1) }).unwrap();
            store.put_operator(&operator).unwrap();
        }
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(store.nodes().unwrap(), [NodeRecord { removed: true, ..node(1) }]);
        assert_eq!(store.operators().unwrap(), [operator]);
        assert!(store.remove_operator("ann").unwrap());
        assert!(!store.remove_operator("ann").unwrap());
    }

    #[test]
    fn an_invite_is_redeemed_once_and_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("gateway.db")).unwrap();
        let invite =
            |id: u8| InviteRecord { token_digest: [id; 32], display_name: "lab".into(), expires_at: 100 };
        store.put_invite(&invite(1), 0).unwrap();
        store.put_invite(&invite(2), 0).unwrap();
        assert_eq!(store.take_invite(&[1; 32], 99).unwrap(), Some(invite(1)));
        assert_eq!(store.take_invite(&[1; 32], 99).unwrap(), None);
        assert_eq!(store.take_invite(&[2; 32], 100).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_no_store_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.db");
        std::fs::write(&path, "not a database, but long enough to be looked at as one").unwrap();
        assert!(matches!(SqliteStore::open(&path), Err(StoreError::Open { .. })));
    }

    #[test]
    fn an_older_store_is_brought_up() {
        let first = SCHEMA.replace(",\n    agent TEXT NOT NULL DEFAULT 'main'", "");
        let operator = OperatorRecord {
            name: "ann".into(),
            id: Fingerprint([9; 32]),
            agent: "main".into(),
            roles: vec![1],
            added_at: 5,
            not_after: 6,
        };
        for (version, tables) in [(1, first.clone()), (2, [first.as_str(), APPROVALS].concat())] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("gateway.db");
            let old = Connection::open(&path).unwrap();
            old.execute_batch(&format!("{tables} PRAGMA user_version={version};")).unwrap();
            old.execute("INSERT INTO operators VALUES ('ann', ?, '1', 5, 6)", [[9_u8; 32]]).unwrap();
            drop(old);
            let store = SqliteStore::open(&path).unwrap();
            store.put_node(&node(1)).unwrap();
            assert_eq!(store.open_approvals().unwrap(), []);
            assert_eq!(store.tasks(None, false).unwrap(), []);
            assert_eq!(store.operators().unwrap(), std::slice::from_ref(&operator));
            drop(store);
            assert_eq!(SqliteStore::open(&path).unwrap().nodes().unwrap(), [node(1)]);
        }
    }

    #[test]
    fn a_newer_store_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA user_version=7").unwrap();
        assert!(matches!(SqliteStore::open(&path), Err(StoreError::Version { found: 7, known: 3, .. })));
    }
}
