//! A copy of the last document that could be read, so that a bad edit can be taken back.
//!
//! The copy is never in force: while the document is bad, everything is denied.

use std::path::PathBuf;

use parking_lot::Mutex;
use policy::{ApprovalsDocument, MAX_DOCUMENT_BYTES, hash_of};

use super::{LastGood, Loaded};
use crate::chain::chain;
use crate::{PrivateMode, read_private, write_private};

#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    /// The revision that was seen to last.
    kept: Mutex<u64>,
}

impl Keeper {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, kept: Mutex::default() }
    }

    /// Keeps the text of a document that was read. A copy that cannot be written is reported and otherwise no harm.
    pub(super) fn keep(&self, loaded: &Loaded) {
        let Some(text) = &loaded.text else { return };
        // While another thread writes the copy, this one goes on; the next call looks again.
        let Some(mut kept) = self.kept.try_lock() else { return };
        if *kept >= loaded.revision {
            return;
        }
        *kept = loaded.revision;
        if self.read().is_some_and(|copy| copy.as_str() == &**text) {
            return;
        }
        if let Err(error) = write_private(&self.path, text.as_bytes()) {
            tracing::warn!(error = chain(&error), "no copy of the approvals document could be kept");
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// The copy, if there is one that would do.
    pub(super) fn describe(&self) -> Option<Box<LastGood>> {
        let text = self.read()?;
        let document = ApprovalsDocument::parse(&text).ok()?;
        Some(Box::new(LastGood {
            path: self.path.clone(),
            hash: hash_of(Some(&text)),
            agents: document.agents.len(),
            entries: document.agents.values().map(|agent| agent.allowlist.len()).sum(),
        }))
    }

    fn read(&self) -> Option<String> {
        let bytes = read_private(&self.path, MAX_DOCUMENT_BYTES as u64, PrivateMode::Strict).ok()?;
        String::from_utf8(bytes).ok()
    }
}
