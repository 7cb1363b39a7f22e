//! Why the approvals document cannot be used or changed, and what to do about it.
//!
//! The texts name files, places and rules' counts; never a socket token or another value of the document.

use std::{io, path::PathBuf, time::Duration};

use fault::{ErrorCode, Fault};
use policy::{BaseHashError, DocumentError};

use crate::{PrivateFileError, StateDirError, chain::chain};

/// Why the approvals document cannot be used or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The text is no approvals document. Everything is denied until it is one (policy spec §1.3).
    #[error(transparent)]
    Malformed(Box<Malformed>),
    /// The file may not be trusted or could not be read. Everything is denied until it can.
    #[error("{} cannot be used, so nothing runs", path.display())]
    Unreadable {
        /// The document.
        path: PathBuf,
        /// The rules that held before, if a copy of them is there.
        last_good: Option<Box<LastGood>>,
        /// Why.
        source: PrivateFileError,
    },
    /// The state directory belongs to another product by now.
    #[error("the approvals document is not used")]
    StateDir(#[from] StateDirError),
    /// What should replace the document is none.
    #[error("the approvals document was refused: {0}")]
    Refused(DocumentError),
    /// A word of `security` or `ask` in the update is unknown. It would count as absent, and absent is wide.
    #[error("the approvals document was refused: unknown word at {}", at.join(", "))]
    UnknownWord {
        /// Paths such as `agents.main.security`.
        at: Vec<String>,
    },
    /// The update was not made from the document that is there.
    #[error(transparent)]
    Conflict(#[from] BaseHashError),
    /// The file has a second name, which a replacement would leave with the old rules.
    #[error("{} has {names} names (hard links), so it is not replaced", path.display())]
    HardLinked {
        /// The document.
        path: PathBuf,
        /// How many.
        names: u64,
    },
    /// Someone else is changing the document, for longer than anybody should.
    #[error("{} was held by another process for {} ms", path.display(), waited.as_millis())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long this caller waited.
        waited: Duration,
    },
    /// The lock could not be taken.
    #[error("the lock {} could not be taken", path.display())]
    Lock {
        /// The lock.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The document could not be written; the old one holds.
    #[error("the approvals document could not be written")]
    Write(#[source] PrivateFileError),
}

/// A text that is no approvals document, and the way back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be used, so nothing runs: {reason}{}", path.display(), kept(last_good.as_deref()))]
pub struct Malformed {
    /// The file.
    pub path: PathBuf,
    /// The hash of its text, for whoever wants to replace it. Absent where the file is no text.
    pub hash: Option<String>,
    /// Line, column and reason.
    pub reason: DocumentError,
    /// The rules that held before, if a copy of them is there.
    pub last_good: Option<Box<LastGood>>,
}

/// The last document that could be read. It is a copy to go back to; it is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastGood {
    /// Where the copy lies.
    pub path: PathBuf,
    /// Its hash, as in `baseHash`.
    pub hash: String,
    /// How many agents it names; `*` counts.
    pub agents: usize,
    /// How many allowlist entries it has in all.
    pub entries: usize,
}

/// What a person needs to recognise the copy.
fn kept(last_good: Option<&LastGood>) -> String {
    let Some(LastGood { path, hash, agents, entries }) = last_good else { return String::new() };
    let hash = hash.get(..12).unwrap_or(hash);
    format!(
        "; the last good rules ({hash}, agents: {agents}, allowlist entries: {entries}) are kept in {}",
        path.display()
    )
}

impl ApprovalsError {
    /// Whether nothing may run until someone repairs the file.
    #[must_use]
    pub const fn denies_everything(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::Unreadable { .. } | Self::StateDir(_))
    }

    /// The error, its causes and the way back on one line.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Unreadable { last_good, .. } => chain(self) + &kept(last_good.as_deref()),
            _ => chain(self),
        }
    }

    /// The next step for the person who reads the error.
    #[must_use]
    pub fn hint(&self) -> String {
        let back = |file: &PathBuf, last_good: &Option<Box<LastGood>>| match last_good {
            None => "repair the file; it is read again at the next run".to_owned(),
            Some(copy) => format!(
                "repair the file (it is read again at the next run), or put the last good rules back: cp -- {} {}",
                quoted(&copy.path),
                quoted(file)
            ),
        };
        match self {
            Self::Malformed(malformed) => back(&malformed.path, &malformed.last_good),
            Self::Unreadable { path, last_good, .. } => back(path, last_good),
            Self::StateDir(error) => error.hint(),
            Self::Refused(_) => "correct the document and send it again".into(),
            Self::UnknownWord { .. } => {
                "security is deny, allowlist or full; ask is off, on-miss or always".into()
            }
            Self::Conflict(_) => "reload and retry".into(),
            Self::HardLinked { path, .. } => {
                format!("keep one name of it: cp -- {0} {0}.new && mv -- {0}.new {0}", quoted(path))
            }
            Self::Busy { .. } => "try again; if it stays so, look for a stopped gateway or node-host".into(),
            Self::Lock { .. } | Self::Write(_) => {
                "check the rights on the state directory and the space on its disk".into()
            }
        }
    }

    /// The fault for who may replace the document: it names the hash of a malformed one.
    #[must_use]
    pub fn with_hash(self) -> Fault {
        let hash = match &self {
            Self::Malformed(malformed) => malformed.hash.clone(),
            _ => None,
        };
        let mut fault = Fault::from(self);
        if let Some(hash) = hash {
            fault.message.push_str("; its hash is ");
            fault.message.push_str(&hash);
        }
        fault
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed(_) | Self::Unreadable { .. } => ErrorCode::ApprovalsMalformed,
            Self::StateDir(error) => error.code(),
            Self::Refused(_) | Self::UnknownWord { .. } => ErrorCode::InvalidRequest,
            Self::Conflict(_) => ErrorCode::ApprovalsConflict,
            Self::Busy { .. } => ErrorCode::Timeout,
            Self::HardLinked { .. } | Self::Lock { .. } | Self::Write(_) => ErrorCode::StoreUnreadable,
        }
    }
}

impl From<ApprovalsError> for Fault {
    /// The one place where the causes join the message: a fault has no source.
    fn from(error: ApprovalsError) -> Self {
        Self::new(error.code(), error.message()).hint(error.hint())
    }
}

/// The parser's reason without the value that it met: that may be a secret in the wrong place.
pub(super) fn without_value(error: DocumentError) -> DocumentError {
    match error {
        DocumentError::Malformed { line, column, reason } => {
            let bare = ["invalid type: ", "invalid value: "].iter().find_map(|start| {
                let (value, expected) = reason.strip_prefix(start)?.rsplit_once(", expected ")?;
                let kind = value.split(['"', '`']).next().unwrap_or_default().trim_end();
                Some(format!("{start}{kind}, expected {expected}"))
            });
            DocumentError::Malformed { line, column, reason: bare.unwrap_or(reason) }
        }
        other => other,
    }
}

/// A path as one word of a shell line.
fn quoted(path: &std::path::Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
