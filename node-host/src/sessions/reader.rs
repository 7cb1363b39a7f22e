//! Reading a session's output from the log files, record by record, from any offset.
//!
//! A reader keeps its file and its place in it, so that reading on costs one `pread`. It never reads beyond the end that
//! the holder reported: what lies below is written whole.

use std::fs::File;
use std::io;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use session::record::{HEADER_LEN, Header, decode_header};
use session::{ByteOffset, RecordError, StreamTag};

use super::live::Session;
use super::store::{self, Scan, damaged};

/// Room for headers beside the wanted bytes.
const HEADERS: usize = 1024;

/// Segments that may vanish under a reader in one call; each time it finds the next one that is there.
const TRIES: usize = 16;

/// Output of one stream at one time. May be part of a record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Merged offset of the first byte.
    pub offset: u64,
    /// Where it came from.
    pub stream: StreamTag,
    /// When it was read, in nanoseconds since the session started.
    pub time_ns: u64,
    /// The bytes, never empty.
    pub bytes: Bytes,
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Output, in order, without holes.
    Data(Vec<Record>),
    /// These bytes were dropped; reading goes on behind them.
    Gap {
        /// First byte that is gone.
        from: u64,
        /// First byte that is there again.
        to: u64,
    },
    /// Nothing more yet: wait for the session's progress.
    Empty,
    /// The session is over and everything was read.
    End,
}

/// A place in a session's output.
#[derive(Debug)]
pub struct LogReader {
    session: Session,
    position: u64,
    segment: Option<Place>,
}

/// Where the next byte lies.
#[derive(Debug)]
struct Place {
    file: File,
    /// File offset of what is read next.
    at: u64,
    /// The record that was begun, and how much of it was read.
    record: Option<(Header, u32)>,
}

impl LogReader {
    pub(super) fn new(session: Session, from: u64) -> LogReader {
        LogReader { session, position: from, segment: None }
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What comes next: at most `max_bytes` of output, at least one byte of it.
    ///
    /// # Errors
    /// When the log cannot be read, or is damaged.
    pub fn next(&mut self, max_bytes: usize) -> io::Result<Read> {
        let (end, over) = {
            let progress = self.session.0.progress.borrow();
            (progress.end, progress.exit.is_some())
        };
        if self.position >= end {
            if over {
                return Ok(Read::End);
            }
            self.session.0.wishes.want_output();
            return Ok(Read::Empty);
        }
        for _ in 0..TRIES {
            let mut place = match self.segment.take() {
                Some(place) => place,
                None => match self.find(end)? {
                    Found::Place(place) => place,
                    Found::Gap(to) => {
                        let from = self.position;
                        self.position = to;
                        return Ok(Read::Gap { from, to });
                    }
                },
            };
            let records = place.read(&mut self.position, end, max_bytes.max(1))?;
            if !records.is_empty() {
                self.segment = Some(place);
                return Ok(Read::Data(records));
            }
            // The end of this segment: the next one starts here.
        }
        Err(damaged(ByteOffset(self.position)))
    }

    fn find(&self, end: u64) -> io::Result<Found> {
        let dir = &self.session.0.dir;
        let position = ByteOffset(self.position);
        if let Some(file) = store::open_segment(dir, position)? {
            return Ok(Found::Place(Place { file, at: 0, record: None }));
        }
        let starts = match store::segment_starts(dir) {
            Ok(starts) => starts,
            // Forgotten under the reader: all of it is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Gap(end)),
            Err(error) => return Err(error),
        };
        let behind = starts.partition_point(|&start| start <= position);
        if let Some(&start) = behind.checked_sub(1).and_then(|index| starts.get(index))
            && let Some(file) = store::open_segment(dir, start)?
            && let Scan::Found { at, header } = store::scan(&file, start, position)?
        {
            // Within the record, whose length is a u32.
            let skip = (position.0 - header.offset.0) as u32;
            let at = at + HEADER_LEN as u64 + u64::from(skip);
            return Ok(Found::Place(Place { file, at, record: Some((header, skip)) }));
        }
        Ok(Found::Gap(starts.get(behind).map_or(end, |start| start.0.min(end))))
    }
}

enum Found {
    Place(Place),
    /// Nothing until this offset.
    Gap(u64),
}

impl Place {
    /// Reads on; nothing means that the segment has ended.
    fn read(&mut self, position: &mut u64, end: u64, max_bytes: usize) -> io::Result<Vec<Record>> {
        loop {
            let wanted = usize::try_from(end - *position).unwrap_or(usize::MAX).min(max_bytes);
            let mut bytes = Vec::with_capacity(wanted + HEADERS);
            match pread(&self.file, spare_capacity(&mut bytes), self.at) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if bytes.is_empty() {
                return Ok(Vec::new());
            }
            let had = self.at;
            let records = self.split(Bytes::from(bytes), position, wanted)?;
            // Only a header came: its bytes are next.
            if !records.is_empty() || self.at == had {
                return Ok(records);
            }
        }
    }

    fn split(&mut self, bytes: Bytes, position: &mut u64, wanted: usize) -> io::Result<Vec<Record>> {
        let (mut records, mut used, mut left) = (Vec::new(), 0, wanted);
        while left > 0 {
            let (header, done) = match self.record {
                Some(record) => record,
                None => match decode_header(&bytes[used..]) {
                    Ok(header) if header.offset.0 == *position => {
                        used += HEADER_LEN;
                        (header, 0)
                    }
                    Err(RecordError::Torn { .. }) => break,
                    Ok(_) | Err(_) => return Err(damaged(ByteOffset(*position))),
                },
            };
            let take = (bytes.len() - used).min((header.len - done) as usize).min(left);
            // Below the record's length, a u32.
            let done = done + take as u32;
            self.record = (done < header.len).then_some((header, done));
            if take == 0 {
                break;
            }
            records.push(Record {
                offset: *position,
                stream: header.stream,
                time_ns: header.time_ns,
                bytes: bytes.slice(used..used + take),
            });
            used += take;
            left -= take;
            *position += take as u64;
        }
        self.at += used as u64;
        Ok(records)
    }
}
