//! Why a state directory cannot be used, and what to do about it.

use std::{error::Error, io, path::PathBuf};

use fault::{ErrorCode, Fault};

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateDirError {
    /// Neither flag nor variable names a directory and the user has no home.
    #[error("this user has no home directory, so there is no default state directory")]
    NoHome,
    /// The flag is an empty text.
    #[error("the state directory that was named is empty")]
    Empty,
    /// `~name` is not expanded here.
    #[error("{} names another user's home in a way only a shell understands", path.display())]
    OtherHome {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A relative path could not be made absolute.
    #[error("{} could not be made absolute", path.display())]
    Resolve {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory could not be made.
    #[error("{} could not be created", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory could not be looked at.
    #[error("{} could not be inspected", path.display())]
    Inspect {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path, or a part of it, is something else.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Keys in another user's directory would be that user's keys.
    #[error("{} belongs to user {owner}, this program runs as user {user}", path.display())]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// Its owner's user id.
        owner: u32,
        /// The effective user id of this process.
        user: u32,
    },
    /// Others could replace keys or loosen the policy.
    #[error("{} can be written by other users (mode {mode:04o})", path.display())]
    WritableByOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A newer OpenClaw lives there and would stop when it met our files.
    #[error("{} is in use by OpenClaw (it holds state/openclaw.sqlite)", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
}

impl StateDirError {
    /// The next step for the person who reads the error.
    #[must_use]
    pub fn hint(&self) -> String {
        let other = "name another directory with --state-dir DIR or OPENCLAW_STATE_DIR";
        match self {
            Self::WritableByOthers { path, .. } => {
                format!("run `chmod 700 {}`, or {other}", path.display())
            }
            Self::OtherOwner { .. } => format!("run this program as that user, or {other}"),
            Self::Create { .. } | Self::Inspect { .. } => format!("check the rights on the path, or {other}"),
            Self::OtherHome { .. } => {
                "write the path in full, with --state-dir DIR or OPENCLAW_STATE_DIR".into()
            }
            Self::NoHome
            | Self::Empty
            | Self::Resolve { .. }
            | Self::NotADirectory { .. }
            | Self::Foreign { .. } => other.into(),
        }
    }

    /// `STATE_DIR_FOREIGN` or `STATE_DIR_UNUSABLE`.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Foreign { .. } => ErrorCode::StateDirForeign,
            _ => ErrorCode::StateDirUnusable,
        }
    }
}

impl From<StateDirError> for Fault {
    /// The one place where the system's own words join the message: a fault has no source.
    fn from(error: StateDirError) -> Self {
        let message = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self::new(error.code(), message).hint(error.hint())
    }
}
