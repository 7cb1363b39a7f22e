//! Why a configuration cannot be used, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use fault::{ErrorCode, Fault};

use crate::{PrivateFileError, chain::chain};

/// Why a configuration cannot be used. While it cannot, nothing may run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read, or others can write it.
    #[error(transparent)]
    Read(#[from] PrivateFileError),
    /// The text is no JSON5.
    #[error("{}{reason}", Place(file.as_deref(), Some(*line), Some(*column)))]
    Malformed {
        /// The file, where the text came from one.
        file: Option<PathBuf>,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A key that decides what may run has a value that means nothing.
    #[error("{}{key}: {reason}", Place(file.as_deref(), *line, None))]
    Invalid {
        /// The file, where the text came from one.
        file: Option<PathBuf>,
        /// The key, such as `agents.entries.main.tools.exec.ask`.
        key: String,
        /// From 1, where it could be found.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// An edit could not be made in place.
    #[error("{key} cannot be changed in place: {reason}")]
    Edit {
        /// The key.
        key: String,
        /// Why.
        reason: String,
    },
}

impl ConfigError {
    /// The next step for the person who reads the error.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(_) => {
                "make the file yours alone to write (`chmod 600`), or move it away to use the defaults"
            }
            Self::Malformed { .. } | Self::Invalid { .. } => {
                "correct the file; until then every command is refused"
            }
            Self::Edit { .. } => "write it into the file by hand, or rewrite the file as JSON with comments",
        }
    }

    /// Says which file the text came from.
    pub(super) fn in_file(mut self, path: &Path) -> Self {
        if let Self::Malformed { file, .. } | Self::Invalid { file, .. } = &mut self {
            *file = Some(path.to_path_buf());
        }
        self
    }

    /// For bytes that are no UTF-8.
    pub(super) fn not_text(bytes: &[u8], error: std::str::Utf8Error) -> Self {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count() + 1;
        Self::Malformed { file: None, line, column, reason: "the text is not UTF-8".into() }
    }
}

/// `file:line:column: `, as far as it is known.
struct Place<'a>(Option<&'a Path>, Option<usize>, Option<usize>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(file), Some(line)) => write!(f, "{}:{line}", file.display())?,
            (Some(file), None) => write!(f, "{}", file.display())?,
            (None, Some(line)) => write!(f, "line {line}")?,
            (None, None) => return Ok(()),
        }
        if let Some(column) = self.2 {
            write!(f, ":{column}")?;
        }
        f.write_str(": ")
    }
}

impl From<&ConfigError> for Fault {
    /// The one place where the causes join the message: a fault has no source.
    fn from(error: &ConfigError) -> Self {
        Self::new(ErrorCode::ConfigInvalid, chain(error)).hint(error.hint())
    }
}
