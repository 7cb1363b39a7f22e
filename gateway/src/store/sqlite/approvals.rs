//! Requests for a person's yes, open and closed.

use prost::Message as _;
use proto::v1 as pb;
use rusqlite::{OptionalExtension as _, Row, params};

use super::SqliteStore;
use crate::store::{StoreError, UnixMs};

pub(super) const SCHEMA: &str = "
CREATE TABLE approvals (
    id TEXT PRIMARY KEY COLLATE NOCASE,
    open INTEGER NOT NULL,
    created INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX approvals_by_end ON approvals (open, closed);
";

impl SqliteStore {
    pub(super) fn write_approval(&self, approval: &pb::Approval) -> Result<(), StoreError> {
        let open = approval.status() == pb::ApprovalStatus::Pending;
        self.run("store an approval", |db| {
            db.prepare_cached("INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?, ?)")?.execute(
                params![
                    approval.approval_id,
                    open,
                    approval.created_unix_ms,
                    approval.closed_unix_ms,
                    approval.encode_to_vec(),
                ],
            )?;
            Ok(())
        })
    }

    pub(super) fn read_open_approvals(&self) -> Result<Vec<pb::Approval>, StoreError> {
        self.run("list approvals", |db| {
            db.prepare_cached("SELECT record FROM approvals WHERE open = 1 ORDER BY created")?
                .query_map([], record)?
                .collect()
        })
    }

    pub(super) fn read_closed_approvals(&self, limit: u32) -> Result<Vec<pb::Approval>, StoreError> {
        self.run("list approvals", |db| {
            db.prepare_cached(
                "SELECT record FROM approvals WHERE open = 0 ORDER BY closed DESC, rowid DESC LIMIT ?",
            )?
            .query_map([limit], record)?
            .collect()
        })
    }

    pub(super) fn find_approvals(&self, prefix: &str) -> Result<Vec<pb::Approval>, StoreError> {
        self.run("find an approval", |db| {
            let exact =
                db.query_row("SELECT record FROM approvals WHERE id = ?", [prefix], record).optional()?;
            if let Some(exact) = exact {
                return Ok(vec![exact]);
            }
            // A range, so that the index is used: no id holds a `~`, and everything in one stands before it. Two are
            // enough to say that it is ambiguous.
            db.prepare_cached("SELECT record FROM approvals WHERE id >= ?1 AND id < ?1 || '~' LIMIT 2")?
                .query_map([prefix], record)?
                .collect()
        })
    }

    pub(super) fn delete_approvals(&self, before: UnixMs) -> Result<(), StoreError> {
        self.run("forget approvals", |db| {
            db.execute("DELETE FROM approvals WHERE open = 0 AND closed < ?", [before])?;
            Ok(())
        })
    }
}

fn record(row: &Row<'_>) -> rusqlite::Result<pb::Approval> {
    let bytes: Vec<u8> = row.get(0)?;
    pb::Approval::decode(bytes.as_slice()).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(error))
    })
}

#[cfg(test)]
mod tests {
    use crate::store::{SqliteStore, Store as _};

    use super::*;

    fn approval(id: &str, status: pb::ApprovalStatus, closed: i64) -> pb::Approval {
        pb::Approval {
            approval_id: id.to_owned(),
            status: status.into(),
            closed_unix_ms: closed,
            ..pb::Approval::default()
        }
    }

    #[test]
    fn approvals_are_found_by_state_and_by_id() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("gateway.db")).unwrap();
        let open = approval("Ab1", pb::ApprovalStatus::Pending, 0);
        let closed = [
            approval("ab2", pb::ApprovalStatus::Denied, 20),
            approval("c", pb::ApprovalStatus::Allowed, 30),
            approval("d", pb::ApprovalStatus::Expired, 10),
        ];
        for approval in closed.iter().chain([&open]) {
            store.put_approval(approval).unwrap();
        }
        let ids =
            |found: Vec<pb::Approval>| -> Vec<String> { found.into_iter().map(|a| a.approval_id).collect() };
        assert_eq!(store.open_approvals().unwrap(), [open]);
        assert_eq!(ids(store.closed_approvals(2).unwrap()), ["c", "ab2"]);
        assert_eq!(ids(store.approvals_like("AB1").unwrap()), ["Ab1"]);
        assert_eq!(ids(store.approvals_like("aB").unwrap()).len(), 2);
        assert_eq!(ids(store.approvals_like("C").unwrap()), ["c"]);
        assert_eq!(ids(store.approvals_like("%").unwrap()), [""; 0]);
        store.put_approval(&approval("ab1", pb::ApprovalStatus::Cancelled, 5)).unwrap();
        assert_eq!(store.open_approvals().unwrap(), []);
        store.forget_approvals(20).unwrap();
        assert_eq!(ids(store.closed_approvals(9).unwrap()), ["c", "ab2"]);
    }
}
