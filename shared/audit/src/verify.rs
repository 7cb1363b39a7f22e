//! Whether every record is there, in order, and as it was written.

use std::io;
use std::path::{Path, PathBuf};

use crate::head::Head;
use crate::segments::{self, Lines, Read};

/// A chain without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The first that is kept; 0 where there is none.
    pub first_seq: u64,
    /// The last; 0 where there is none.
    pub last_seq: u64,
    /// Its hash.
    pub hash: String,
}

/// The first fault of a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} ({}, line {line}): {what}", file.display())]
pub struct Broken {
    /// The record that should stand there.
    pub seq: u64,
    /// The file; empty where there is none.
    pub file: PathBuf,
    /// The line in it, from 1; 0: behind its end.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// Reads a whole log. It may be written meanwhile: what came later is verified too, as far as it is there.
///
/// # Errors
/// Names the first record that was changed, lost or moved.
pub fn verify(dir: &Path) -> Result<Verified, Broken> {
    // Read first: records that come later are behind it.
    let head = Head::read(dir);
    let broken = |seq, file: &Path, line, what: String| Broken { seq, file: file.to_path_buf(), line, what };
    let all = segments::all(dir).map_err(|error| broken(0, dir, 0, error.to_string()))?;
    let head = match head {
        Ok(Some(head)) => head,
        Ok(None) if all.is_empty() => Head::default(),
        Ok(None) => return Err(broken(0, &dir.join(crate::head::NAME), 0, "`head` is missing".to_owned())),
        Err(error) => return Err(broken(0, &dir.join(crate::head::NAME), 0, error.to_string())),
    };
    let mut seq = head.first.saturating_sub(1);
    let mut hash = head.prev.clone();
    let mut records = 0;
    let mut last_file = dir.to_path_buf();
    let count = all.len();
    for (index, (first, path)) in all.into_iter().enumerate() {
        last_file.clone_from(&path);
        if first != seq + 1 {
            return Err(broken(
                seq + 1,
                &path,
                0,
                format!("it is missing: this file begins with record {first}"),
            ));
        }
        let unreadable = |error: io::Error| broken(seq + 1, &path, 0, error.to_string());
        let mut lines = Lines::open(&path).map_err(unreadable)?;
        let mut number = 0;
        while let Some(read) =
            lines.next().map_err(|error| broken(seq + 1, &path, number, error.to_string()))?
        {
            number += 1;
            let wrong = |what: String| Err(broken(seq + 1, &path, number, what));
            let record = match read {
                Read::Record(record, _) => record,
                Read::Foreign => return wrong("it is no record as this log writes them".to_owned()),
                // Somebody is writing it just now, unless `head` knows it.
                Read::Torn(_) if index + 1 == count && head.seq <= seq => break,
                Read::Torn(_) => return wrong("it is cut off".to_owned()),
            };
            if record.seq != seq + 1 {
                return wrong(format!("record {} stands in its place", record.seq));
            }
            if record.computed() != record.hash {
                return wrong("it was changed: its hash does not fit it".to_owned());
            }
            if record.prev != hash {
                return wrong("it does not follow the record before it".to_owned());
            }
            seq = record.seq;
            hash = record.hash;
            records += 1;
            if seq == head.seq && hash != head.hash {
                return Err(broken(seq, &path, number, "it is another one than `head` knows".to_owned()));
            }
        }
    }
    if seq < head.seq {
        return Err(broken(
            seq + 1,
            &last_file,
            0,
            format!("it is missing: `head` knows records up to {}", head.seq),
        ));
    }
    Ok(Verified { records, first_seq: if records == 0 { 0 } else { head.first }, last_seq: seq, hash })
}
