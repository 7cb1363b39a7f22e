//! `exec-approvals.json` of this machine, as the node host uses it: who may replace it, and the note of which rules
//! were used. How it is read and written is the affair of [`ApprovalsFile`].
//!
//! A document that cannot be used means deny, with the reason. A missing one means the built-in policy (`policy.md`
//! §1.3).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::{ApprovalsError, ApprovalsFile, Loaded, RuleUsage};
use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use policy::{AllowEntry, MAIN_AGENT};
use proto::v1 as pb;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// From the first use of a rule to the note of it.
const NOTE_AFTER: Duration = Duration::from_secs(2);
/// Least time between two notes. Each one changes the document, and with it the hash that a person's change names.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// Most rules whose use waits to be noted.
const USES_MAX: usize = 512;

/// Whether the gateway may replace the document. The node decides what runs on it, so only a person at this machine
/// can say yes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RemoteApprovals {
    /// It may not.
    #[default]
    Refused,
    /// It may: `--remote-approvals`.
    Accepted,
}

/// The document of one state directory.
#[derive(Debug)]
pub struct Approvals {
    file: ApprovalsFile,
    remote: RemoteApprovals,
    uses: Mutex<Vec<RuleUsage>>,
    used: Notify,
}

impl Approvals {
    /// A document; it need not exist.
    pub fn new(file: ApprovalsFile, remote: RemoteApprovals) -> Self {
        Self { file, remote, uses: Mutex::default(), used: Notify::new() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The document as it is now.
    ///
    /// # Errors
    /// It cannot be used. Then nothing may run.
    pub fn load(&self) -> Result<Arc<Loaded>, Fault> {
        self.file.load().map_err(Fault::from)
    }

    /// The answer to `system.execApprovals.get`.
    ///
    /// # Errors
    /// See [`Approvals::load`].
    pub fn show(&self) -> Result<pb::ApprovalsDocument, Fault> {
        Ok(self.shown(&*self.file.load().map_err(ApprovalsError::with_hash)?))
    }

    /// The answer to `system.execApprovals.set`. Waits for the disk and for others who change the document.
    ///
    /// # Errors
    /// This machine did not agree, the update is of no use, or the document changed since `base_hash`.
    pub fn replace(&self, file: &str, base_hash: &str) -> Result<pb::ApprovalsDocument, Fault> {
        match self.remote {
            RemoteApprovals::Accepted => {}
            RemoteApprovals::Refused => {
                return Err(Fault::new(
                    ErrorCode::PermissionDenied,
                    "this node does not take its policy from the gateway",
                )
                .hint("edit exec-approvals.json there, or start node-host with --remote-approvals"));
            }
        }
        let change = self.file.replace(file, (!base_hash.is_empty()).then_some(base_hash))?;
        tracing::warn!(from = change.before_hash, to = change.loaded.hash, "the gateway replaced the policy");
        Ok(self.shown(&change.loaded))
    }

    /// Adds the rules of an allow-always, for one agent. Waits for the disk and for others who change the document: two at
    /// one time are both kept.
    ///
    /// # Errors
    /// The document cannot be used or written.
    pub fn keep(&self, agent: Option<&str>, entries: &[AllowEntry]) -> Result<(), Fault> {
        let agent = agent.unwrap_or(MAIN_AGENT);
        let edited = self.file.edit::<ApprovalsError>(|document| {
            let mut added = false;
            for entry in entries {
                added |= document.add_entry(agent, entry.clone());
            }
            Ok(added)
        })?;
        tracing::info!(
            agent,
            written = edited.written,
            hash = edited.loaded.hash,
            "rules of an allow-always were stored"
        );
        Ok(())
    }

    fn shown(&self, loaded: &Loaded) -> pb::ApprovalsDocument {
        pb::ApprovalsDocument {
            path: self.path().display().to_string(),
            exists: loaded.exists,
            hash: loaded.hash.clone(),
            file: loaded.document.redacted().to_text(),
        }
    }

    /// Rules were used. It is written down later, by [`Approvals::keep_notes`].
    pub fn note(&self, uses: Vec<RuleUsage>) {
        if uses.is_empty() {
            return;
        }
        let mut waiting = self.uses.lock();
        for used in uses {
            let same = |old: &&mut RuleUsage| {
                old.agent == used.agent && old.pattern == used.pattern && old.arg_pattern == used.arg_pattern
            };
            if let Some(old) = waiting.iter_mut().find(same) {
                *old = used;
            } else if waiting.len() < USES_MAX {
                waiting.push(used);
            }
        }
        self.used.notify_one();
    }

    /// Writes down which rules were used, now and then, until `stopping`, and then once more.
    pub async fn keep_notes(self: Arc<Self>, stopping: CancellationToken) {
        let mut again = Duration::ZERO;
        while !stopping.is_cancelled() {
            let pause = async {
                tokio::time::sleep(again).await;
                self.used.notified().await;
                tokio::time::sleep(NOTE_AFTER).await;
            };
            tokio::select! {
                () = pause => {}
                () = stopping.cancelled() => {}
            }
            let this = Arc::clone(&self);
            // It waits for the disk, and perhaps for another writer.
            let _ = tokio::task::spawn_blocking(move || this.write_notes()).await;
            again = NOTE_EVERY;
        }
        // What came while the last ones were written.
        let _ = tokio::task::spawn_blocking(move || self.write_notes()).await;
    }

    fn write_notes(&self) {
        let uses = std::mem::take(&mut *self.uses.lock());
        if let Err(error) = self.file.record_usage(&uses) {
            // Only the note is lost; what the document's state means for runs they find out themselves.
            tracing::info!(error = %Fault::from(error), "the use of rules was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_replaces_it_only_where_this_machine_agreed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exec-approvals.json");
        let deny = r#"{"version":1,"defaults":{"security":"deny"}}"#;
        let refused = Approvals::new(ApprovalsFile::new(&path), RemoteApprovals::Refused);
        let base = refused.show().unwrap().hash;
        let fault = refused.replace(deny, &base).unwrap_err();
        assert_eq!(
            fault,
            Fault::new(ErrorCode::PermissionDenied, "this node does not take its policy from the gateway")
                .hint("edit exec-approvals.json there, or start node-host with --remote-approvals")
        );
        assert!(!path.exists());
        let accepted = Approvals::new(ApprovalsFile::new(&path), RemoteApprovals::Accepted);
        let document = accepted.replace(deny, &base).unwrap();
        assert!(path.exists());
        // Reading needs no agreement.
        assert_eq!(refused.show().unwrap(), document);
        assert_eq!(accepted.replace(deny, &base).unwrap_err().code, ErrorCode::ApprovalsConflict);
    }
}
