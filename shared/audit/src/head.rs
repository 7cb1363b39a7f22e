//! `head`: which record is the last one, and which the first that is still kept. One line of a fixed length, written in
//! place after each record: without it, records dropped from the end would not show.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::NO_HASH;

/// Its name.
pub(crate) const NAME: &str = "head";
/// Its length: two numbers of 20 digits and two hashes, with their names.
const LENGTH_MAX: usize = 512;

/// The ends of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last record; 0: none.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: String,
    /// The first record that is kept.
    pub(crate) first: u64,
    /// The hash of the one before that.
    pub(crate) prev: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    seq: String,
    hash: String,
    first: String,
    prev: String,
}

impl Default for Head {
    fn default() -> Self {
        Self { seq: 0, hash: NO_HASH.to_owned(), first: 1, prev: NO_HASH.to_owned() }
    }
}

impl Head {
    /// Reads it. None where there is none.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let text = match std::fs::read_to_string(dir.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "`head` is damaged");
        if text.len() > LENGTH_MAX {
            return Err(bad());
        }
        let form: Form = serde_json::from_str(text.trim_end()).map_err(|_| bad())?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
        let head =
            Self { seq: number(&form.seq)?, hash: form.hash, first: number(&form.first)?, prev: form.prev };
        if head.hash.len() != NO_HASH.len() || head.prev.len() != NO_HASH.len() || head.line() != text {
            return Err(bad());
        }
        Ok(Some(head))
    }

    fn line(&self) -> String {
        format!(
            "{{\"seq\":\"{:020}\",\"hash\":\"{}\",\"first\":\"{:020}\",\"prev\":\"{}\"}}\n",
            self.seq, self.hash, self.first, self.prev
        )
    }

    /// Writes it in place: it is never shorter or longer.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(self.line().as_bytes(), 0)
    }
}
