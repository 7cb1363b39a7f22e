//! `head`: which record is the last one, and which the first that is still kept. One line of a fixed length, written in
//! place after each record: without it, records dropped from the end would not show.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::{NO_HASH, is_hash};

/// Its name.
pub(crate) const NAME: &str = "head";
/// What is read of it: more than two numbers of 20 digits and two hashes with their names need.
const LENGTH_MAX: u64 = 512;

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
    /// The bytes that stand there; none where it is missing, or was not written yet.
    pub(crate) fn bytes(dir: &Path) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(dir.join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(LENGTH_MAX).read_to_end(&mut bytes)?;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// What they mean. None where they mean nothing that this log writes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let form: Form = serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()?;
        let head = Self {
            seq: form.seq.parse().ok()?,
            hash: form.hash,
            first: form.first.parse().ok()?,
            prev: form.prev,
        };
        (head.holds_together() && head.line().as_bytes() == bytes).then_some(head)
    }

    /// Without this a changed number could name a record that is never met, and the end would not be compared.
    fn holds_together(&self) -> bool {
        let empty = self.seq.checked_add(1) == Some(self.first);
        is_hash(&self.hash)
            && is_hash(&self.prev)
            && (empty && self.hash == self.prev || (1..=self.seq).contains(&self.first))
            && (self.first > 1 || self.prev == NO_HASH)
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
