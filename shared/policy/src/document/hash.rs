//! The hash of a stored document, and the check that an update was made from the current one (policy spec §1.4).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The hash of a document as it is stored: SHA-256 in hex, with `missing:` before the hash of nothing where no document
/// is there.
#[must_use]
pub fn hash_of(raw: Option<&str>) -> String {
    let mut text = String::from(if raw.is_none() { "missing:" } else { "" });
    for byte in Sha256::digest(raw.unwrap_or_default()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Why an update may not replace what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseHashError {
    /// A document is there and the update does not say which one it was made from.
    #[error("a base hash is required to replace the approvals document; reload and retry")]
    Required,
    /// The document changed, appeared or went away since.
    #[error("the approvals document changed since it was loaded; reload and retry")]
    Changed,
}

/// Whether an update that was made from the document with `base_hash` may replace `current`. The caller holds its lock
/// over this check and the write.
///
/// # Errors
/// See [`BaseHashError`].
pub fn check_base_hash(current: Option<&str>, base_hash: Option<&str>) -> Result<(), BaseHashError> {
    match base_hash {
        Some(hash) if hash == hash_of(current) => Ok(()),
        Some(_) => Err(BaseHashError::Changed),
        None if current.is_none() => Ok(()),
        None => Err(BaseHashError::Required),
    }
}
