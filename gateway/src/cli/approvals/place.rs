//! Where a document lies and how it is read and changed there.

use std::time::Duration;

use config::{ApprovalsError, ApprovalsFile, Loaded};
use fault::{ErrorCode, Fault};
use policy::ApprovalsDocument;
use proto::v1::{self as pb, operator_client::OperatorClient};
use tonic::transport::Channel;

use super::super::output::safe;

/// How often a change is made again on a document that someone else changed meanwhile: with the pauses, for 5 s at most.
const AGAIN_MAX: u32 = 20;
/// Shortest pause before a change is made again.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause. A node needs milliseconds for a change, so that many others find room in it.
const PAUSE_MAX: Duration = Duration::from_millis(300);

/// One document.
#[derive(Debug)]
pub(super) enum Place {
    /// This machine's.
    Own(ApprovalsFile),
    /// A node's, through the running gateway.
    Node { operator: OperatorClient<Channel>, node: String },
}

/// A document as it was read, without its secret.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) path: String,
    pub(super) exists: bool,
    /// What a change names (policy spec §1.4).
    pub(super) hash: String,
    pub(super) document: ApprovalsDocument,
}

/// What a change did.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) shown: Shown,
    /// False: it was as wanted already.
    pub(super) written: bool,
}

impl Place {
    /// The node, as the caller named it.
    pub(super) fn node(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Node { node, .. } => Some(node),
        }
    }

    /// File and machine, for people.
    pub(super) fn name(&self, path: &str) -> String {
        match self {
            Self::Own(_) => format!("{} (this machine)", safe(path)),
            Self::Node { node, .. } => format!("{} on node {}", safe(path), safe(node)),
        }
    }

    pub(super) async fn read(&mut self) -> Result<Shown, Fault> {
        match self {
            Self::Own(file) => Ok(own(file, &*file.load().map_err(unusable)?)),
            Self::Node { operator, node } => {
                let request = pb::NodeRef { node: node.clone() };
                let reply = operator.get_node_approvals(request).await;
                remote(reply.map_err(|status| Fault::from_status(&status))?.into_inner())
            }
        }
    }

    /// Replaces the document, if it is still the one with `base_hash`.
    pub(super) async fn replace(&mut self, text: &str, base_hash: Option<&str>) -> Result<Shown, Fault> {
        match self {
            Self::Own(file) => {
                let change = file.replace(text, base_hash).map_err(|error| stale(error.into(), None))?;
                Ok(own(file, &change.loaded))
            }
            Self::Node { operator, node } => {
                let request = pb::SetNodeApprovalsRequest {
                    node: node.clone(),
                    file: text.to_owned(),
                    base_hash: base_hash.unwrap_or_default().to_owned(),
                };
                let reply = operator.set_node_approvals(request).await;
                remote(reply.map_err(|status| stale(Fault::from_status(&status), Some(node)))?.into_inner())
            }
        }
    }

    /// Changes the document as it is at that moment; `change` says whether there is something to write. It may be made
    /// again on a newer document, so that nobody's change is lost.
    pub(super) async fn edit(
        &mut self,
        change: impl Fn(&mut ApprovalsDocument) -> bool,
    ) -> Result<Edited, Fault> {
        if let Self::Own(file) = self {
            let done = file.edit(|document| Ok::<_, ApprovalsError>(change(document))).map_err(unusable)?;
            return Ok(Edited { shown: own(file, &done.loaded), written: done.written });
        }
        let mut conflicts = 0;
        loop {
            let mut shown = self.read().await?;
            if !change(&mut shown.document) {
                return Ok(Edited { shown, written: false });
            }
            match self.replace(&shown.document.to_text(), Some(&shown.hash)).await {
                Ok(shown) => return Ok(Edited { shown, written: true }),
                Err(fault) if fault.code != ErrorCode::ApprovalsConflict => return Err(fault),
                Err(fault) if conflicts == AGAIN_MAX => {
                    return Err(fault.hint("someone else keeps changing it; try again later"));
                }
                Err(_) => conflicts += 1,
            }
            tokio::time::sleep(pause(conflicts)).await;
        }
    }
}

/// The pause after so many conflicts in a row, from 1. Random, so that those who met once part.
fn pause(conflicts: u32) -> Duration {
    let longest = PAUSE_MIN.saturating_mul(1 << conflicts.min(16)).min(PAUSE_MAX);
    let mut bytes = [0u8; 2];
    // Without random numbers the pause is the shortest, which only costs more tries.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    PAUSE_MIN + (longest - PAUSE_MIN) * u32::from(u16::from_ne_bytes(bytes)) / u32::from(u16::MAX)
}

/// A document that cannot be used, with the hash that its replacement has to name.
fn unusable(error: ApprovalsError) -> Fault {
    let hash = match &error {
        ApprovalsError::Malformed(malformed) => malformed.hash.clone(),
        _ => None,
    };
    let mut fault = error.with_hash();
    if let Some(hash) = hash {
        let hint = fault.hint.get_or_insert_default();
        hint.push_str(&format!(", or replace it: gateway approvals set FILE --base-hash {hash}"));
    }
    fault
}

/// The message of a conflict says to read the document again; the hint says how.
fn stale(fault: Fault, node: Option<&str>) -> Fault {
    if fault.code != ErrorCode::ApprovalsConflict {
        return fault;
    }
    let node = node.map(|node| format!(" --node {node}")).unwrap_or_default();
    fault.hint(format!("`gateway approvals get{node}` shows it as it is now, with the hash to name"))
}

fn own(file: &ApprovalsFile, loaded: &Loaded) -> Shown {
    Shown {
        path: file.path().display().to_string(),
        exists: loaded.exists,
        hash: loaded.hash.clone(),
        document: loaded.document.redacted(),
    }
}

fn remote(reply: pb::ApprovalsDocument) -> Result<Shown, Fault> {
    let document = ApprovalsDocument::parse(&reply.file).map_err(|error| {
        Fault::new(ErrorCode::Internal, format!("the node's document cannot be read here: {error}"))
            .hint("the node may be newer than this program")
    })?;
    // The node leaves the token out; a careless one must not get it printed.
    Ok(Shown { path: reply.path, exists: reply.exists, hash: reply.hash, document: document.redacted() })
}

#[cfg(test)]
mod tests {
    use config::write_private;
    use policy::AllowEntry;

    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn the_own_document_is_changed_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut place = Place::Own(ApprovalsFile::new(dir.path().join("exec-approvals.json")));
        let rule = AllowEntry { pattern: "git".into(), ..AllowEntry::default() };
        let steps: [(bool, bool, usize); 4] =
            [(true, true, 1), (true, false, 1), (false, true, 0), (false, false, 0)];
        for (add, written, rules) in steps {
            let done = block_on(place.edit(|document| {
                if add {
                    document.add_entry("main", rule.clone())
                } else {
                    document.remove_entry("main", "git", None)
                }
            }))
            .unwrap();
            let found = done.shown.document.resolve(None).allowlist.len();
            assert_eq!((done.written, found), (written, rules), "add: {add}");
        }
    }

    #[test]
    fn a_malformed_document_is_replaced_by_the_hash_that_its_error_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exec-approvals.json");
        write_private(&path, b"{").unwrap();
        let mut place = Place::Own(ApprovalsFile::new(&path));
        let hash = policy::hash_of(Some("{"));
        let faults =
            [block_on(place.read()).unwrap_err(), block_on(place.edit(|_| true)).map(|_| ()).unwrap_err()];
        for fault in faults {
            assert_eq!(fault.code, ErrorCode::ApprovalsMalformed);
            assert!(fault.message.contains(&hash), "{}", fault.message);
            assert!(fault.hint.unwrap().ends_with(&format!("--base-hash {hash}")));
        }
        assert!(block_on(place.replace(r#"{"version":1}"#, Some(&hash))).is_ok());
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        for conflicts in 1..=AGAIN_MAX {
            let found = pause(conflicts);
            assert!(found >= PAUSE_MIN && found <= PAUSE_MAX, "{conflicts}: {found:?}");
        }
        assert!((0..100).all(|_| pause(1) <= PAUSE_MIN * 2));
        assert!(pause(u32::MAX) <= PAUSE_MAX);
    }

    #[test]
    fn the_own_document_is_replaced_by_its_hash_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut place = Place::Own(ApprovalsFile::new(dir.path().join("exec-approvals.json")));
        let deny = r#"{"version":1,"defaults":{"security":"deny"}}"#;
        let first = block_on(place.replace(deny, None)).unwrap();
        for base in [None, Some("another")] {
            let fault = block_on(place.replace(deny, base)).unwrap_err();
            assert_eq!(fault.code, ErrorCode::ApprovalsConflict);
            assert!(fault.message.contains("reload and retry"), "{}", fault.message);
            assert!(fault.hint.unwrap().contains("approvals get"));
        }
        let hash = first.hash;
        assert!(block_on(place.replace(r#"{"version":1}"#, Some(&hash))).is_ok());
    }
}
