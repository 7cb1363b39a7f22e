//! Session directories on disk: find segments, find the end of a log whose writer died, measure, remove.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

use session::record::{HEADER_LEN, Header, decode_header};
use session::{ByteOffset, RecordError};

use crate::process::holder::segment_name;

/// Bytes read in one go while looking through headers.
const SCAN_BLOCK: usize = 16 * 1024;

/// Makes a directory that only we can enter.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(dir)
}

/// The starts of all segments in a session directory, ascending.
pub(super) fn segment_starts(dir: &Path) -> io::Result<Vec<ByteOffset>> {
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let start = name.to_str().and_then(|name| name.strip_suffix(".seg")).and_then(|n| n.parse().ok());
        starts.extend(start.map(ByteOffset));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// Opens the segment that starts at `start`, if it is there.
pub(super) fn open_segment(dir: &Path, start: ByteOffset) -> io::Result<Option<File>> {
    match File::open(dir.join(segment_name(start))) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a walk over the records of a segment found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The record that holds the offset, and where its header lies in the file.
    Found { at: u64, header: Header },
    /// The offset is not in this segment, whose whole records end here.
    Ends(ByteOffset),
}

/// Looks for the record that holds `wanted` in a segment that starts at `start`. A torn record counts as not there.
pub(super) fn scan(file: &File, start: ByteOffset, wanted: ByteOffset) -> io::Result<Scan> {
    let len = file.metadata()?.len();
    let mut block = vec![0; SCAN_BLOCK];
    let (mut block_at, mut block_len) = (0, 0);
    let (mut at, mut end) = (0_u64, start);
    while at + HEADER_LEN as u64 <= len {
        if at < block_at || at + HEADER_LEN as u64 > block_at + block_len as u64 {
            block_at = at;
            block_len = file.read_at(&mut block, at)?;
        }
        // Within the block by the check above.
        let from = (at - block_at) as usize;
        let header = match decode_header(&block[from.min(block_len)..block_len]) {
            Ok(header) if header.offset == end => header,
            Ok(_) | Err(RecordError::NotAHeader | RecordError::Field(_)) => return Err(damaged(end)),
            Err(RecordError::Torn { .. }) => break,
        };
        let next = at + (HEADER_LEN as u64) + u64::from(header.len);
        if next > len {
            break;
        }
        if wanted < header.end() {
            return Ok(Scan::Found { at, header });
        }
        (at, end) = (next, header.end());
    }
    Ok(Scan::Ends(end))
}

/// The log does not read as it should.
pub(super) fn damaged(at: ByteOffset) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the output log is damaged at offset {at}"))
}

/// The offset behind the last whole record of a log whose writer is gone.
pub(super) fn salvage_end(dir: &Path) -> ByteOffset {
    // Newest first: an empty or unreadable last segment leaves the one before.
    for start in segment_starts(dir).unwrap_or_default().into_iter().rev() {
        let found = open_segment(dir, start)
            .and_then(|file| file.map(|file| scan(&file, start, ByteOffset(u64::MAX))).transpose());
        if let Ok(Some(Scan::Ends(end))) = found {
            return end;
        }
    }
    ByteOffset::START
}

/// When output was written last, in milliseconds since 1970.
pub(super) fn last_write_unix_ms(dir: &Path) -> Option<u64> {
    let newest = segment_starts(dir).ok()?.into_iter().next_back()?;
    let modified = dir.join(segment_name(newest)).metadata().ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Bytes that a session directory takes.
pub(super) fn disk_use(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Removes a session directory. What cannot be removed is found again at the next start.
pub(super) fn remove(dir: &Path) {
    if let Err(error) = std::fs::remove_dir_all(dir)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(dir = %dir.display(), %error, "a finished session could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use session::StreamTag;
    use session::record::encode_header;

    use super::*;

    fn write(dir: &Path, start: u64, lens: &[u32], tail: &[u8]) {
        let (mut bytes, mut offset) = (Vec::new(), start);
        for &len in lens {
            let header = Header { stream: StreamTag::Stdout, len, offset: ByteOffset(offset), time_ns: 0 };
            bytes.extend_from_slice(&encode_header(&header));
            bytes.resize(bytes.len() + len as usize, b'x');
            offset += u64::from(len);
        }
        bytes.extend_from_slice(tail);
        std::fs::write(dir.join(segment_name(ByteOffset(start))), bytes).unwrap();
    }

    #[test]
    fn finds_records_and_ends() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 100, &[10, 40_000, 5], b"");
        let file = open_segment(dir.path(), ByteOffset(100)).unwrap().unwrap();
        let found = |wanted| match scan(&file, ByteOffset(100), ByteOffset(wanted)).unwrap() {
            Scan::Found { at, header } => Ok((at, header.offset.0)),
            Scan::Ends(end) => Err(end.0),
        };
        assert_eq!(found(100), Ok((0, 100)));
        assert_eq!(found(110), Ok((42, 110)));
        assert_eq!(found(40_109), Ok((42, 110)));
        assert_eq!(found(40_110), Ok((40_074, 40_110)));
        assert_eq!(found(40_115), Err(40_115));
    }

    #[test]
    fn salvage_stops_before_a_torn_record() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(salvage_end(dir.path()), ByteOffset(0));
        let torn =
            encode_header(&Header { stream: StreamTag::Stdout, len: 9, offset: ByteOffset(15), time_ns: 0 });
        for tail in [&torn[..5], &torn[..], &[&torn[..], b"1234"].concat()[..]] {
            write(dir.path(), 0, &[10, 5], tail);
            assert_eq!(salvage_end(dir.path()), ByteOffset(15));
        }
        write(dir.path(), 15, &[], b"");
        assert_eq!(salvage_end(dir.path()), ByteOffset(15));
        write(dir.path(), 15, &[7], b"");
        assert_eq!(salvage_end(dir.path()), ByteOffset(22));
        write(dir.path(), 22, &[7], &[b'?'; 40]);
        assert_eq!(salvage_end(dir.path()), ByteOffset(22));
    }
}
