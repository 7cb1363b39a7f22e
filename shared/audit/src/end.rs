//! Where a log goes on when it is opened: the end of its chain, and what is not as a writer leaves it.
//!
//! A log is not verified here. What was changed is left as it stands, for [`crate::verify()`] to name.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::head::Head;
use crate::record::{Line, NO_HASH};
use crate::segments::{self, Lines, Read};

/// The end of a log.
#[derive(Debug)]
pub(crate) struct End {
    /// The chain goes on behind this.
    pub(crate) head: Head,
    /// It goes on in this file, which need not be there.
    pub(crate) segment: PathBuf,
    /// The length of that file.
    pub(crate) length: u64,
    /// What is to be written down.
    pub(crate) damage: Damage,
}

/// What a writer that ended by itself does not leave behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Length of a line that was not finished.
    cut_bytes: u64,
    /// Records that `head` knew and that are gone.
    lost_records: u64,
    /// What is wrong with `head`.
    head: Option<&'static str>,
}

impl Damage {
    /// The data of the record about it; none where there is nothing to say.
    pub(crate) fn data(&self) -> Option<Value> {
        (*self != Self::default()).then(
            || json!({ "cutBytes": self.cut_bytes, "lostRecords": self.lost_records, "head": self.head }),
        )
    }
}

/// What stands in one segment.
#[derive(Default)]
struct Content {
    /// Length of its whole lines.
    length: u64,
    /// Length of a line that was not finished.
    torn: u64,
    last: Option<Box<Line>>,
    /// Has lines that are no records.
    foreign: bool,
    /// Has another record in the place of the one that `head` knows.
    other: bool,
}

impl End {
    /// Finds the end, cuts off what was half-written, and removes segments that a rotation had given up.
    pub(crate) fn find(dir: &Path) -> io::Result<Self> {
        let bytes = Head::bytes(dir)?;
        let known = bytes.as_deref().and_then(Head::parse);
        let mut all = segments::all(dir)?;
        let mut damage = Damage::default();
        match (&bytes, &known) {
            // `head` is there before the first segment is.
            (None, _) => damage.head = (!all.is_empty()).then_some("missing"),
            (Some(_), None) => damage.head = Some("damaged"),
            (Some(_), Some(known)) => {
                for (_, path) in segments::take_outdated(&mut all, known.first) {
                    fs::remove_file(path)?;
                }
            }
        }

        let (mut segment, mut last, mut foreign) = (None, None, false);
        let mut empty = Vec::new();
        for (first, path) in all.iter().rev() {
            let content = read(path, known.as_ref())?;
            if content.other {
                damage.head = Some("names another record");
            }
            if segment.is_none() {
                if content.torn > 0 {
                    OpenOptions::new().write(true).open(path)?.set_len(content.length)?;
                    damage.cut_bytes += content.torn;
                }
                if content.length == 0 {
                    empty.push((*first, path));
                    continue;
                }
                segment = Some((path.clone(), content.length));
                foreign = content.foreign;
            }
            if content.last.is_some() {
                last = content.last;
                break;
            }
        }

        let head = match (known, last) {
            // The record that `head` knows is the line that is none any more.
            (Some(known), Some(last)) if foreign && known.seq > last.seq => known,
            (Some(known), None) if foreign => known,
            (Some(known), None) => {
                damage.lost_records = known.seq.saturating_add(1).saturating_sub(known.first);
                Head { first: known.seq.saturating_add(1), prev: known.hash.clone(), ..known }
            }
            (Some(known), Some(last)) if known.first <= last.seq => {
                damage.lost_records = known.seq.saturating_sub(last.seq);
                Head { seq: last.seq, hash: last.hash, ..known }
            }
            (known, Some(last)) => {
                damage.lost_records = known.map_or(0, |known| known.seq.saturating_sub(last.seq));
                let (first, prev) = start(&all)?;
                Head { seq: last.seq, hash: last.hash, first, prev }
            }
            (None, None) => Head::default(),
        };
        let next = head.seq.saturating_add(1);
        for (first, path) in empty {
            if first == next {
                segment = Some((path.clone(), 0));
            } else {
                fs::remove_file(path)?;
            }
        }
        let (segment, length) = segment.unwrap_or_else(|| (dir.join(segments::name(next)), 0));
        Ok(Self { head, segment, length, damage })
    }
}

/// Where the chain begins, as far as the files say.
fn start(all: &[(u64, PathBuf)]) -> io::Result<(u64, String)> {
    match all.first() {
        Some((first, path)) if *first > 1 => Ok((*first, segments::first_prev(path)?)),
        _ => Ok((1, NO_HASH.to_owned())),
    }
}

fn read(path: &Path, known: Option<&Head>) -> io::Result<Content> {
    let mut content = Content::default();
    let mut lines = Lines::open(path)?;
    while let Some(read) = lines.next()? {
        match read {
            Read::Record(line, length) => {
                content.length += length;
                content.other |= known.is_some_and(|known| line.seq == known.seq && line.hash != known.hash);
                content.last = Some(line);
            }
            Read::Foreign(length) => {
                content.length += length;
                content.foreign = true;
            }
            Read::Torn(length) => content.torn = length,
        }
    }
    Ok(content)
}
