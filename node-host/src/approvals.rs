//! `exec-approvals.json` of this machine: read at each run, replaced under
//! compare-and-swap.
//!
//! A document that cannot be used means deny, with the reason. A missing one
//! means the built-in policy (`policy.md` §1.3).

use std::path::PathBuf;

use config::{PrivateMode, read_private, write_private};
use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use policy::{ApprovalsDocument, HostPolicy, MAX_DOCUMENT_BYTES, check_base_hash, hash_of};
use proto::v1 as pb;

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
    path: PathBuf,
    remote: RemoteApprovals,
    /// Held from the comparison to the swap.
    writing: Mutex<()>,
}

impl Approvals {
    /// The document at `path`; it need not exist.
    pub fn new(path: PathBuf, remote: RemoteApprovals) -> Self {
        Self { path, remote, writing: Mutex::default() }
    }

    /// Where it lies.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What this machine allows an agent, from the file as it is now.
    pub fn policy(&self, agent: Option<&str>) -> Result<HostPolicy, Fault> {
        Ok(self.document()?.resolve(agent))
    }

    /// The answer to `system.execApprovals.get`.
    pub fn show(&self) -> Result<pb::ApprovalsDocument, Fault> {
        let raw = self.raw()?;
        let document = match &raw {
            Some(text) => ApprovalsDocument::parse(text).map_err(|e| self.malformed(&e))?,
            None => ApprovalsDocument::default(),
        };
        Ok(pb::ApprovalsDocument {
            path: self.path.display().to_string(),
            exists: raw.is_some(),
            hash: hash_of(raw.as_deref()),
            file: document.redacted().to_text(),
        })
    }

    /// The answer to `system.execApprovals.set`.
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
        let update = ApprovalsDocument::parse_update(file).map_err(|e| {
            Fault::new(ErrorCode::InvalidRequest, format!("the approvals document was refused: {e}"))
        })?;
        // An unknown word would count as absent, and absent is the wide built-in.
        if !update.unset.is_empty() {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("the approvals document was refused: unknown word at {}", update.unset.join(", ")),
            )
            .hint("security is deny, allowlist or full; ask is off, on-miss or always"));
        }
        let held = self.writing.lock();
        let raw = self.raw()?;
        check_base_hash(raw.as_deref(), (!base_hash.is_empty()).then_some(base_hash))
            .map_err(|e| Fault::new(ErrorCode::ApprovalsConflict, e.to_string()).hint("reload and retry"))?;
        // A malformed file may be replaced by whoever names its hash; there is
        // just no socket to keep.
        let current = raw.as_deref().and_then(|text| ApprovalsDocument::parse(text).ok()).unwrap_or_default();
        let text = update.document.keeping_socket_of(&current).to_text();
        write_private(&self.path, text.as_bytes()).map_err(|e| {
            Fault::new(
                ErrorCode::StoreUnreadable,
                format!("the approvals document could not be written: {}", chain(&e)),
            )
        })?;
        drop(held);
        self.show()
    }

    fn document(&self) -> Result<ApprovalsDocument, Fault> {
        match self.raw()? {
            Some(text) => ApprovalsDocument::parse(&text).map_err(|e| self.malformed(&e)),
            None => Ok(ApprovalsDocument::default()),
        }
    }

    fn raw(&self) -> Result<Option<String>, Fault> {
        match read_private(&self.path, MAX_DOCUMENT_BYTES as u64, PrivateMode::Readable) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|e| self.malformed(&e)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.malformed(&error)),
        }
    }

    fn malformed(&self, error: &dyn std::error::Error) -> Fault {
        Fault::new(
            ErrorCode::ApprovalsMalformed,
            format!(
                "SYSTEM_RUN_DENIED: {} cannot be used, so nothing runs: {}",
                self.path.display(),
                chain(error)
            ),
        )
        .hint("repair the file; it is read again at the next run")
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_replaces_it_only_where_this_machine_agreed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exec-approvals.json");
        let deny = r#"{"version":1,"defaults":{"security":"deny"}}"#;
        let refused = Approvals::new(path.clone(), RemoteApprovals::Refused);
        let base = refused.show().unwrap().hash;
        let fault = refused.replace(deny, &base).unwrap_err();
        assert_eq!(
            fault,
            Fault::new(ErrorCode::PermissionDenied, "this node does not take its policy from the gateway")
                .hint("edit exec-approvals.json there, or start node-host with --remote-approvals")
        );
        assert!(!path.exists());
        let accepted = Approvals::new(path.clone(), RemoteApprovals::Accepted);
        let document = accepted.replace(deny, &base).unwrap();
        assert!(path.exists());
        // Reading needs no agreement.
        assert_eq!(refused.show().unwrap(), document);
        assert_eq!(accepted.replace(deny, &base).unwrap_err().code, ErrorCode::ApprovalsConflict);
    }
}
