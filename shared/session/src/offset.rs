//! Positions in a session's output, and which stream a byte came from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in the merged output of a session, in bytes from its start. Both streams share one count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteOffset(pub u64);

impl ByteOffset {
    /// The first byte of a session.
    pub const START: ByteOffset = ByteOffset(0);

    /// The position `len` bytes further on; stays at the last position instead of wrapping.
    #[must_use]
    pub fn after(self, len: u64) -> ByteOffset {
        ByteOffset(self.0.saturating_add(len))
    }
}

impl fmt::Display for ByteOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for ByteOffset {
    fn from(raw: u64) -> Self {
        ByteOffset(raw)
    }
}

/// Where a byte came from. What a terminal prints is one stream and carries [`StreamTag::Stdout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamTag {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl StreamTag {
    /// The tag's byte in a record; zero is never one.
    pub(crate) fn code(self) -> u8 {
        match self {
            StreamTag::Stdout => 1,
            StreamTag::Stderr => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<StreamTag> {
        match code {
            1 => Some(StreamTag::Stdout),
            2 => Some(StreamTag::Stderr),
            _ => None,
        }
    }
}
