//! Whether every record is there, in order, and as it was written.

use std::io;
use std::path::{Path, PathBuf};

use crate::head::{self, Head};
use crate::log::RECOVERED;
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
    /// How many records say that the end was not as a writer leaves it: cut off, lost, or `head` was changed.
    pub recovered: u64,
}

/// The first fault of a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", place(self))]
pub struct Broken {
    /// The record that should stand there; 0: it is about the file.
    pub seq: u64,
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1; 0: behind its end.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// How often a log is read that changes while it is.
const TRIES: u32 = 4;

/// Reads a whole log. It may be written meanwhile: what came later is verified too, as far as it is there.
///
/// # Errors
/// Names the first record that was changed, lost or moved.
pub fn verify(dir: &Path) -> Result<Verified, Broken> {
    let head_fault = |error: io::Error| broken(0, &dir.join(head::NAME), 0, error.to_string());
    let mut tries = TRIES;
    loop {
        // Read first: records that come later are behind it.
        let head = Head::bytes(dir).map_err(head_fault)?;
        let found = read(dir, head.as_deref());
        tries -= 1;
        // A reader may see half of a new `head`, or a segment that is being removed.
        if found.is_ok() || tries == 0 || Head::bytes(dir).map_err(head_fault)? == head {
            return found;
        }
    }
}

fn read(dir: &Path, head: Option<&[u8]>) -> Result<Verified, Broken> {
    let bad_head = |what: &str| broken(0, &dir.join(head::NAME), 0, what.to_owned());
    let mut all = segments::all(dir).map_err(|error| broken(0, dir, 0, error.to_string()))?;
    let head = match head {
        Some(head) => {
            Head::parse(head).ok_or_else(|| bad_head("it was changed: it is not as this log writes it"))?
        }
        None if all.is_empty() => Head::default(),
        None => return Err(bad_head("it is missing")),
    };
    segments::take_outdated(&mut all, head.first);
    let mut seq = head.first.saturating_sub(1);
    let mut hash = head.prev.clone();
    let (mut records, mut recovered) = (0, 0);
    let mut last_file = dir.to_path_buf();
    let count = all.len();
    for (index, (first, path)) in all.into_iter().enumerate() {
        last_file.clone_from(&path);
        let mut next = seq.saturating_add(1);
        let mut number = 0;
        if first != next {
            return Err(broken(
                next,
                &path,
                0,
                format!("it is missing: this file begins with record {first}"),
            ));
        }
        let mut lines = Lines::open(&path).map_err(|error| broken(next, &path, 0, error.to_string()))?;
        while let Some(read) = lines.next().map_err(|error| broken(next, &path, number, error.to_string()))? {
            number += 1;
            let wrong = |what: String| Err(broken(next, &path, number, what));
            let record = match read {
                Read::Record(record, _) => record,
                Read::Foreign(_) => return wrong("it is no record as this log writes them".to_owned()),
                // Somebody is writing it just now, unless `head` knows it.
                Read::Torn(_) if index + 1 == count && head.seq <= seq => break,
                Read::Torn(_) => return wrong("it is cut off".to_owned()),
            };
            if record.seq != next {
                return wrong(format!("record {} stands in its place", record.seq));
            }
            if record.computed() != record.hash {
                return wrong("it was changed: its hash does not fit it".to_owned());
            }
            if record.prev != hash {
                return wrong("it does not follow the record before it".to_owned());
            }
            if record.kind == RECOVERED {
                recovered += 1;
            }
            seq = record.seq;
            hash = record.hash;
            records += 1;
            next = seq.saturating_add(1);
            if seq == head.seq && hash != head.hash {
                return Err(broken(seq, &path, number, "it is another one than `head` knows".to_owned()));
            }
        }
    }
    if seq < head.seq {
        let what = format!("it is missing: `head` knows records up to {}", head.seq);
        return Err(broken(seq.saturating_add(1), &last_file, 0, what));
    }
    let first_seq = if records == 0 { 0 } else { head.first };
    Ok(Verified { records, first_seq, last_seq: if records == 0 { 0 } else { seq }, hash, recovered })
}

fn place(broken: &Broken) -> String {
    let Broken { seq, file, line, .. } = broken;
    match (seq, line) {
        (0, _) => file.display().to_string(),
        (seq, 0) => format!("record {seq} ({})", file.display()),
        (seq, line) => format!("record {seq} ({}, line {line})", file.display()),
    }
}

fn broken(seq: u64, file: &Path, line: u64, what: String) -> Broken {
    Broken { seq, file: file.to_path_buf(), line, what }
}
