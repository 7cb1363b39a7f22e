//! Reading records, the newest last.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crate::record::{Record, shown};
use crate::segments::{self, Lines, Read};

/// Which records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// At most so many, the newest.
    pub limit: usize,
    /// Of these kinds; a beginning such as `approval` will do. Empty: of all.
    pub kinds: Vec<String>,
    /// Not before this moment, in milliseconds since 1970; 0: any.
    pub since_ms: i64,
    /// With this text in what [`shown`] says of them. Empty: any.
    pub contains: String,
}

impl Filter {
    fn wants(&self, record: &Record) -> bool {
        record.time >= self.since_ms
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| record.kind.starts_with(kind.as_str())))
            && (self.contains.is_empty() || shown(record).contains(&self.contains))
    }
}

/// The records of a log, oldest first. Lines that are none are left out: [`crate::verify()`] names them.
///
/// # Errors
/// A file cannot be read.
pub fn list(dir: &Path, filter: &Filter) -> io::Result<Vec<Record>> {
    let mut found: VecDeque<Record> = VecDeque::new();
    for (_, path) in segments::all(dir)?.into_iter().rev() {
        let wanted = filter.limit.saturating_sub(found.len());
        if wanted == 0 {
            break;
        }
        let mut here = VecDeque::new();
        let mut lines = match Lines::open(&path) {
            Ok(lines) => lines,
            // The writer has removed it since: it was the oldest.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        while let Some(read) = lines.next()? {
            let Read::Record(line, _) = read else { continue };
            if let Some(record) = Record::of(&line).filter(|record| filter.wants(record)) {
                if here.len() == wanted {
                    here.pop_front();
                }
                here.push_back(record);
            }
        }
        for record in here.into_iter().rev() {
            found.push_front(record);
        }
    }
    Ok(found.into())
}
