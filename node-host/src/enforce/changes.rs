//! Notices when what decides on this machine changed: the approvals document, the configuration, the approvers.

use std::sync::Arc;

use config::{Config, FileStamp, Loaded};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Door;
use crate::approvers::ApproversFile;

/// What was in force when it was looked at last.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    revision: Option<u64>,
    config: Option<Arc<Config>>,
    approvers: Option<FileStamp>,
    names: Option<Names>,
}

/// Names of the three, by their content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    document: String,
    config: String,
    approvers: String,
}

impl Changes {
    /// The names now and before, where they differ. One look at a file while nothing changed.
    fn look(
        &self,
        document: &Loaded,
        config: &Arc<Config>,
        approvers: &ApproversFile,
    ) -> Option<(Option<Names>, Names)> {
        let stamp = FileStamp::of(approvers.path());
        let mut seen = self.0.lock();
        let same_config = seen.config.as_ref().is_some_and(|known| Arc::ptr_eq(known, config));
        if seen.revision == Some(document.revision) && same_config && seen.approvers == stamp {
            return None;
        }
        seen.revision = Some(document.revision);
        seen.config = Some(Arc::clone(config));
        seen.approvers = stamp;
        let names = Names {
            document: document_name(document),
            config: name(format!("{config:?}").as_bytes()),
            approvers: match approvers.load() {
                Ok(list) => name(format!("{list:?}").as_bytes()),
                Err(_) => "unusable".to_owned(),
            },
        };
        // The note that a rule was used changes the file and nothing else.
        if seen.names.as_ref() == Some(&names) {
            return None;
        }
        let before = seen.names.replace(names.clone());
        Some((before, names))
    }
}

impl Door {
    /// Writes down that what decides here is not what it was.
    pub(super) fn note_changes(&self) {
        if self.audit.is_none() {
            return;
        }
        let Some((document, config)) = self.rules.latest() else { return };
        let Some((before, now)) = self.changes.look(&document, &config, &self.approvers) else { return };
        let shown = |names: &Names| json!({ "document": names.document, "config": names.config, "approvers": names.approvers });
        let kind = if before.is_some() { "policy.changed" } else { "policy.loaded" };
        self.note(kind, || {
            json!({
                "path": self.approvals().path(), "hash": document.hash, "to": shown(&now), "from": before.as_ref().map(shown),
            })
        });
    }
}

fn document_name(loaded: &Loaded) -> String {
    let mut document = loaded.document.clone();
    for entry in document.agents.values_mut().flat_map(|agent| &mut agent.allowlist) {
        entry.last_used_at = None;
        entry.last_used_command = None;
        entry.last_resolved_path = None;
    }
    name(document.to_text().as_bytes())
}

fn name(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
