//! The files of a log.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use crate::log::DATA_MAX;
use crate::record::{Line, NO_HASH, is_hash};

/// Longest line: the data, and what stands around it.
pub(crate) const LINE_MAX: u64 = DATA_MAX as u64 + 4096;

/// The name of the segment that begins with a record.
pub(crate) fn name(first: u64) -> String {
    format!("audit-{first:012}.jsonl")
}

/// The segments that are there, by their first records, in order.
pub(crate) fn all(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let number = file_name
            .to_str()
            .and_then(|name| name.strip_prefix("audit-"))
            .and_then(|name| name.strip_suffix(".jsonl"))
            .and_then(|digits| digits.parse().ok());
        // Another way to write the number would be a second file for one place in the chain.
        if let Some(first) = number.filter(|first| file_name.to_str() == Some(name(*first).as_str())) {
            found.push((first, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Takes out the segments before the one that begins with `first`, if that one is there. A rotation says that a segment
/// goes before it removes it, and may be killed between.
pub(crate) fn take_outdated(all: &mut Vec<(u64, PathBuf)>, first: u64) -> Vec<(u64, PathBuf)> {
    match all.iter().position(|(number, _)| *number == first) {
        Some(at) => all.drain(..at).collect(),
        None => Vec::new(),
    }
}

/// What the first record of a segment follows. Where no record stands there, [`crate::verify()`] will say so.
pub(crate) fn first_prev(path: &Path) -> io::Result<String> {
    Ok(match Lines::open(path)?.next()? {
        Some(Read::Record(line, _)) => line.prev,
        _ => NO_HASH.to_owned(),
    })
}

/// What stands on one line of a segment.
#[derive(Debug)]
pub(crate) enum Read {
    /// A record, and its length with the line end.
    Record(Box<Line>, u64),
    /// Something else, and its length.
    Foreign(u64),
    /// The file ends within a line.
    Torn(u64),
}

/// Reads a segment line by line.
pub(crate) struct Lines(BufReader<File>);

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::with_capacity(64 * 1024, File::open(path)?)))
    }

    /// The next line, or none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Read>> {
        let mut bytes = Vec::new();
        let read = io::Read::take(&mut self.0, LINE_MAX).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(None);
        }
        if bytes.pop() != Some(b'\n') {
            return Ok(Some(if read == LINE_MAX { Read::Foreign(read) } else { Read::Torn(read) }));
        }
        let line = serde_json::from_slice(&bytes).ok().filter(|line: &Line| {
            // Only our own way to write a record: one byte more is a change, too.
            is_hash(&line.hash)
                && is_hash(&line.prev)
                && serde_json::to_vec(line).is_ok_and(|written| written == bytes)
        });
        Ok(Some(match line {
            Some(line) => Read::Record(Box::new(line), read),
            None => Read::Foreign(read),
        }))
    }
}
