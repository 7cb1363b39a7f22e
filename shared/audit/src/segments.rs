//! The files of a log.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use crate::log::DATA_MAX;
use crate::record::Line;

/// Longest line: the data, and what stands around it.
const LINE_MAX: u64 = DATA_MAX as u64 + 4096;

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
        if let Some(first) = number {
            found.push((first, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// What stands on one line of a segment.
#[derive(Debug)]
pub(crate) enum Read {
    /// A record, and its length with the line end.
    Record(Box<Line>, u64),
    /// Something else.
    Foreign,
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
            return Ok(Some(if read == LINE_MAX { Read::Foreign } else { Read::Torn(read) }));
        }
        let line: Option<Line> = serde_json::from_slice(&bytes).ok();
        // Only our own way to write a record: one byte more is a change, too.
        let ours = line.filter(|line| serde_json::to_vec(line).is_ok_and(|written| written == bytes));
        Ok(Some(ours.map_or(Read::Foreign, |line| Read::Record(Box::new(line), read))))
    }
}
