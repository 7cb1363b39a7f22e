//! The ledger of background commands, and the ends that their agents have not taken yet.

use prost::Message;
use proto::v1 as pb;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use crate::store::{Completed, StoreError, TaskKey, TaskRecord, UnixMs};

/// `event`: the end is to be told, and was not yet. A session's name may come again once its node has forgotten it, so
/// the run id is part of the key.
pub(super) const SCHEMA: &str = "
CREATE TABLE tasks (
    node_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    running INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    event INTEGER NOT NULL,
    empty_success INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (node_id, session_id, task_id)
) STRICT;
CREATE INDEX tasks_by_end ON tasks (running, ended);
CREATE TABLE completions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    node_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    text TEXT NOT NULL,
    queued INTEGER NOT NULL,
    notice BLOB NOT NULL
) STRICT;
CREATE INDEX completions_by_session ON completions (agent_id, session_key, seq);
CREATE INDEX completions_by_task ON completions (node_id, session_id);
";

const COLUMNS: &str = "event, empty_success, record";
/// The newest command of a session.
const NEWEST: &str = "(SELECT rowid FROM tasks WHERE node_id = ?1 AND session_id = ?2 ORDER BY started DESC, rowid DESC \
                      LIMIT 1)";

impl SqliteStore {
    pub(super) fn insert_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let task = &record.task;
        self.run("store a task", |db| {
            let added = db
                .prepare_cached("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)")?
                .execute(params![
                    task.node_id,
                    task.session_id,
                    task.task_id,
                    task.agent_id,
                    is_running(task),
                    task.started_unix_ms,
                    task.ended_unix_ms,
                    record.event,
                    record.empty_success,
                    task.encode_to_vec(),
                ])?;
            Ok(added > 0)
        })
    }

    pub(super) fn find_task(&self, key: TaskKey<'_>) -> Result<Option<TaskRecord>, StoreError> {
        self.run("find a task", |db| {
            db.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM tasks WHERE node_id = ? AND session_id = ? AND task_id = ?"
            ))?
            .query_row(params![key.node_id, key.session_id, key.task_id], task_record)
            .optional()
        })
    }

    pub(super) fn close_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let task = &record.task;
        self.run("finish a task", |db| {
            let changed = db
                .prepare_cached(
                    "UPDATE tasks SET running = 0, ended = ?, event = event AND ?, record = ?
                    WHERE node_id = ? AND session_id = ? AND task_id = ? AND running = 1",
                )?
                .execute(params![
                    task.ended_unix_ms,
                    record.event,
                    task.encode_to_vec(),
                    task.node_id,
                    task.session_id,
                    task.task_id,
                ])?;
            Ok(changed > 0)
        })
    }

    pub(super) fn list_tasks(&self, agent: Option<&str>, running: bool) -> Result<Vec<pb::Task>, StoreError> {
        self.run("list tasks", |db| {
            db.prepare_cached(
                "SELECT record FROM tasks WHERE (?1 IS NULL OR agent_id = ?1) AND running >= ?2
                ORDER BY started DESC, rowid DESC",
            )?
            .query_map(params![agent, running], |row| decoded(row, 0))?
            .collect()
        })
    }

    pub(super) fn list_untold_tasks(&self) -> Result<Vec<TaskRecord>, StoreError> {
        self.run("list tasks", |db| {
            db.prepare_cached(&format!("SELECT {COLUMNS} FROM tasks WHERE running = 0 AND event = 1"))?
                .query_map([], task_record)?
                .collect()
        })
    }

    pub(super) fn delete_tasks(&self, before: UnixMs, keep: u32) -> Result<(), StoreError> {
        self.run("forget tasks", |db| {
            let transaction = db.transaction()?;
            transaction.execute(
                "DELETE FROM tasks WHERE running = 0 AND event = 0 AND (ended < ?1 OR rowid IN
                (SELECT rowid FROM tasks WHERE running = 0 ORDER BY ended DESC, rowid DESC LIMIT -1 OFFSET ?2))",
                params![before, keep],
            )?;
            transaction.execute("DELETE FROM completions WHERE queued < ?", [before])?;
            transaction.commit()
        })
    }

    pub(super) fn read_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
    ) -> Result<Option<u64>, StoreError> {
        self.run("read a cursor", |db| {
            db.prepare_cached(&format!(
                "SELECT cursor FROM tasks WHERE rowid = {NEWEST} AND (running = 1 OR ended >= ?3)"
            ))?
            .query_row(params![node_id, session_id, ended_since], |row| row.get::<_, i64>(0))
            .optional()
            .map(|cursor| cursor.map(i64::cast_unsigned))
        })
    }

    pub(super) fn write_cursor(
        &self,
        node_id: &str,
        session_id: &str,
        ended_since: UnixMs,
        offset: u64,
    ) -> Result<bool, StoreError> {
        self.run("store a cursor", |db| {
            let changed = db
                .prepare_cached(&format!(
                    "UPDATE tasks SET cursor = ?4 WHERE rowid = {NEWEST} AND (running = 1 OR ended >= ?3)"
                ))?
                .execute(params![node_id, session_id, ended_since, offset.cast_signed()])?;
            Ok(changed > 0)
        })
    }

    pub(super) fn insert_completion(&self, notice: &pb::Notice, most: u32) -> Result<Completed, StoreError> {
        self.run("queue an end", |db| {
            let transaction = db.transaction()?;
            // It was read or told meanwhile.
            if !no_more_event(&transaction, notice)? {
                return Ok(Completed::NotWanted);
            }
            let session = params![
                notice.agent_id,
                notice.session_key,
                notice.node_id,
                notice.session_id,
                notice.text
            ];
            let repeated: bool = transaction.query_row(
                "SELECT EXISTS (SELECT 1 FROM completions WHERE agent_id = ? AND session_key = ? AND node_id = ?
                AND session_id = ? AND text = ?)",
                session,
                |row| row.get(0),
            )?;
            if !repeated {
                transaction.execute(
                    "INSERT INTO completions (agent_id, session_key, node_id, session_id, text, queued, notice)
                    VALUES (?, ?, ?, ?, ?, ?, ?)",
                    params![
                        notice.agent_id,
                        notice.session_key,
                        notice.node_id,
                        notice.session_id,
                        notice.text,
                        notice.unix_ms,
                        notice.encode_to_vec(),
                    ],
                )?;
                transaction.execute(
                    "DELETE FROM completions WHERE seq IN (SELECT seq FROM completions WHERE agent_id = ? AND
                    session_key = ? ORDER BY seq DESC LIMIT -1 OFFSET ?)",
                    params![notice.agent_id, notice.session_key, most],
                )?;
            }
            transaction.commit()?;
            Ok(if repeated { Completed::Repeated } else { Completed::Queued })
        })
    }

    pub(super) fn read_completions(
        &self,
        agent: &str,
        session_key: &str,
        taken: u64,
    ) -> Result<Vec<pb::Notice>, StoreError> {
        let taken = i64::try_from(taken).unwrap_or(i64::MAX);
        self.run("take ends", |db| {
            if taken > 0 {
                db.prepare_cached(
                    "DELETE FROM completions WHERE agent_id = ? AND session_key = ? AND seq <= ?",
                )?
                .execute(params![agent, session_key, taken])?;
            }
            db.prepare_cached(
                "SELECT notice, seq FROM completions WHERE agent_id = ? AND session_key = ? ORDER BY seq",
            )?
            .query_map([agent, session_key], |row| {
                let seq: i64 = row.get(1)?;
                Ok(pb::Notice { seq: seq.cast_unsigned(), ..decoded(row, 0)? })
            })?
            .collect()
        })
    }

    pub(super) fn read_newest_completions(&self) -> Result<Vec<pb::Notice>, StoreError> {
        self.run("list ends", |db| {
            // Beside a single max, the other columns are those of its row.
            db.prepare_cached("SELECT notice, max(seq) FROM completions GROUP BY agent_id, session_key")?
                .query_map([], |row| decoded(row, 0))?
                .collect()
        })
    }

    pub(super) fn delete_completion(&self, node_id: &str, session_id: &str) -> Result<(), StoreError> {
        self.run("withdraw an end", |db| {
            let transaction = db.transaction()?;
            transaction.execute(
                &format!("UPDATE tasks SET event = 0 WHERE rowid = {NEWEST}"),
                [node_id, session_id],
            )?;
            transaction.execute(
                "DELETE FROM completions WHERE node_id = ? AND session_id = ?",
                [node_id, session_id],
            )?;
            transaction.commit()
        })
    }
}

/// Notes that the end of a command is told; yields whether it was to be told until now.
fn no_more_event(db: &Connection, notice: &pb::Notice) -> rusqlite::Result<bool> {
    let changed = db.execute(
        "UPDATE tasks SET event = 0 WHERE node_id = ? AND session_id = ? AND task_id = ? AND event = 1",
        [&notice.node_id, &notice.session_id, &notice.run_id],
    )?;
    Ok(changed > 0)
}

fn is_running(task: &pb::Task) -> bool {
    task.status() == pb::task::Status::Running
}

fn task_record(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord { event: row.get(0)?, empty_success: row.get(1)?, task: decoded(row, 2)? })
}

fn decoded<M: Message + Default>(row: &Row<'_>, index: usize) -> rusqlite::Result<M> {
    let bytes: Vec<u8> = row.get(index)?;
    M::decode(bytes.as_slice()).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Blob, Box::new(error))
    })
}
