//! The writer of a session's output log.
//!
//! Owns the segment files: one `writev` per record, no copy, no fsync. What may be dropped and when to wait is decided
//! by `session::retention`. It does not know where the bytes come from.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use session::record::{HEADER_LEN, Header, encode_header};
use session::retention::{Writer, decide};
use session::{ByteOffset, LogLimits, Segment, StreamTag};

/// The name of a segment that starts at `start`.
pub(crate) fn segment_name(start: ByteOffset) -> String {
    format!("{:020}.seg", start.0)
}

/// Appends records.
#[derive(Debug)]
pub(crate) struct LogWriter {
    dir: PathBuf,
    limits: LogLimits,
    segments: Vec<Segment>,
    /// The last segment, once there is output.
    file: Option<File>,
    floor: Option<ByteOffset>,
    writer: Writer,
}

impl LogWriter {
    pub(crate) fn new(dir: &Path, limits: LogLimits) -> LogWriter {
        LogWriter {
            dir: dir.to_owned(),
            limits,
            segments: Vec::new(),
            file: None,
            floor: None,
            writer: Writer::MayGoOn,
        }
    }

    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> ByteOffset {
        self.segments.last().map_or(ByteOffset::START, Segment::end)
    }

    /// Whether a reader must read first.
    pub(crate) fn must_wait(&self) -> bool {
        self.writer == Writer::MustWait
    }

    /// Sets the lowest offset that a reader still needs.
    pub(crate) fn set_floor(&mut self, floor: Option<ByteOffset>) {
        self.floor = floor;
        self.retain();
    }

    /// Appends one record; `bytes` has 1 to `RECORD_MAX` bytes.
    ///
    /// # Errors
    /// When the disk does not take it. The log then ends with the record before.
    pub(crate) fn append(&mut self, stream: StreamTag, time_ns: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = self.end();
        if self.segments.last().is_none_or(|last| last.disk >= self.limits.segment_size(last.start)) {
            self.open_next(offset)?;
        }
        let (Some(file), Some(last)) = (&self.file, self.segments.last_mut()) else {
            return Err(io::Error::other("no segment is open"));
        };
        let header = encode_header(&Header { stream, len: bytes.len() as u32, offset, time_ns });
        if let Err(error) = write_both(file, &header, bytes) {
            // Cut a torn record off again; should that fail too, a reader recognises it.
            let _ = file.set_len(last.disk);
            return Err(error);
        }
        last.len += bytes.len() as u64;
        last.disk += (HEADER_LEN + bytes.len()) as u64;
        // Only a long log or a reader that may be behind needs a look at the whole list.
        if self.segments.len() > 2 || self.floor.is_some() {
            self.retain();
        }
        Ok(())
    }

    fn open_next(&mut self, start: ByteOffset) -> io::Result<()> {
        let path = self.dir.join(segment_name(start));
        self.file = Some(OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?);
        self.segments.push(Segment { start, len: 0, disk: 0 });
        Ok(())
    }

    fn retain(&mut self) {
        let decision = decide(&self.segments, &self.limits, self.floor);
        self.writer = decision.writer;
        for index in decision.drop.into_iter().rev() {
            let gone = self.segments.remove(index);
            // A file that cannot be removed costs room, not correctness.
            let _ = std::fs::remove_file(self.dir.join(segment_name(gone.start)));
        }
    }
}

fn write_both(file: &File, header: &[u8], body: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < header.len() + body.len() {
        let head = &header[done.min(header.len())..];
        let rest = &body[done.saturating_sub(header.len())..];
        match rustix::io::writev(file, &[IoSlice::new(head), IoSlice::new(rest)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use session::record::split_record;

    use super::*;

    #[test]
    fn records_follow_each_other_over_segments_and_the_middle_goes() {
        let dir = tempfile::tempdir().unwrap();
        let limits = LogLimits { head: 100, cap: 500, segment: 100 };
        let mut log = LogWriter::new(dir.path(), limits);
        for n in 0..50_u8 {
            log.append(StreamTag::Stdout, u64::from(n), &[n; 20]).unwrap();
        }
        assert_eq!(log.end(), ByteOffset(1000));
        let mut names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), log.segments.len());
        assert_eq!(names[0], segment_name(ByteOffset::START));
        let disk: u64 = log.segments.iter().map(|s| s.disk).sum();
        assert!(disk <= 500 + 104, "{disk}");
        for (name, segment) in names.iter().zip(&log.segments) {
            let bytes = std::fs::read(dir.path().join(name)).unwrap();
            assert_eq!(bytes.len() as u64, segment.disk);
            let (mut rest, mut at) = (&bytes[..], segment.start);
            while !rest.is_empty() {
                let (header, body, next) = split_record(rest).unwrap();
                assert_eq!(header.offset, at);
                assert_eq!(body, [(at.0 / 20) as u8; 20]);
                at = header.end();
                rest = next;
            }
            assert_eq!(at, segment.end());
        }
    }

    #[test]
    fn a_reader_that_holds_its_place_stops_the_writer() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::new(dir.path(), LogLimits { head: 100, cap: 500, segment: 100 });
        log.set_floor(Some(ByteOffset::START));
        while !log.must_wait() {
            log.append(StreamTag::Stderr, 0, &[1; 20]).unwrap();
        }
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files(), log.segments.len());
        assert!(log.end() < ByteOffset(400));
        log.set_floor(Some(log.end()));
        assert!(!log.must_wait());
        log.set_floor(None);
        assert!(!log.must_wait());
    }
}
