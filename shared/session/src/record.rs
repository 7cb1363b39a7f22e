//! The form of one record in a session's output log.
//!
//! ```text
//! 0  magic "FRN1"      4  stream 1|2      5  zero ×3      8  body length u32
//! 12 check u32         16 offset of the first byte u64    24 time u64, ns since the session started
//! 32 body
//! ```
//! All numbers are little-endian. The check covers the header only: it tells a record from stray bytes; the body is
//! as trustworthy as the file system. This module does not know files or segments.

use crate::offset::{ByteOffset, StreamTag};

/// The most bytes that one record carries.
pub const RECORD_MAX: usize = 128 * 1024;

/// Bytes in front of each body.
pub const HEADER_LEN: usize = 32;

const MAGIC: [u8; 4] = *b"FRN1";

/// What stands in front of a record's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Where the bytes came from.
    pub stream: StreamTag,
    /// How many bytes follow, 1 to [`RECORD_MAX`].
    pub len: u32,
    /// Merged offset of the first byte.
    pub offset: ByteOffset,
    /// When the bytes were read, in nanoseconds since the session started.
    pub time_ns: u64,
}

impl Header {
    /// The offset behind the record's last byte.
    pub fn end(&self) -> ByteOffset {
        self.offset.after(u64::from(self.len))
    }
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the record does: the tail of a log whose writer died.
    #[error("the record is cut off: {have} of {need} bytes")]
    Torn {
        /// Bytes there.
        have: usize,
        /// Bytes that the record needs, as far as is known.
        need: usize,
    },
    /// These bytes were never a header.
    #[error("not a record header")]
    NotAHeader,
    /// A header whose fields break a rule.
    #[error("the record header breaks a rule: {0}")]
    Field(&'static str),
}

/// Writes a header. A `len` outside 1 to [`RECORD_MAX`] is a fault of the caller and will be refused when read.
pub fn encode_header(header: &Header) -> [u8; HEADER_LEN] {
    let mut out = [0; HEADER_LEN];
    out[0..4].copy_from_slice(&MAGIC);
    out[4] = header.stream.code();
    out[8..12].copy_from_slice(&header.len.to_le_bytes());
    out[16..24].copy_from_slice(&header.offset.0.to_le_bytes());
    out[24..32].copy_from_slice(&header.time_ns.to_le_bytes());
    let check = check(&out);
    out[12..16].copy_from_slice(&check.to_le_bytes());
    out
}

/// Reads the header at the front of `bytes`, strictly.
///
/// # Errors
/// [`RecordError::Torn`] when fewer than [`HEADER_LEN`] bytes are there, the others when they are not one of ours.
pub fn decode_header(bytes: &[u8]) -> Result<Header, RecordError> {
    let Some(raw) = bytes.first_chunk::<HEADER_LEN>() else {
        return Err(RecordError::Torn { have: bytes.len(), need: HEADER_LEN });
    };
    if raw[0..4] != MAGIC || check(raw).to_le_bytes() != raw[12..16] {
        return Err(RecordError::NotAHeader);
    }
    if raw[5..8] != [0; 3] {
        return Err(RecordError::Field("reserved bytes are not zero"));
    }
    let stream = StreamTag::from_code(raw[4]).ok_or(RecordError::Field("unknown stream"))?;
    let len = u32::from_le_bytes([raw[8], raw[9], raw[10], raw[11]]);
    if len == 0 || len as usize > RECORD_MAX {
        return Err(RecordError::Field("length out of range"));
    }
    let offset = number(raw, 16);
    if offset.checked_add(u64::from(len)).is_none() {
        return Err(RecordError::Field("offset out of range"));
    }
    Ok(Header { stream, len, offset: ByteOffset(offset), time_ns: number(raw, 24) })
}

/// Splits the first whole record off `bytes`: header, body, rest.
///
/// # Errors
/// As [`decode_header`], and [`RecordError::Torn`] when the body is not all there.
pub fn split_record(bytes: &[u8]) -> Result<(Header, &[u8], &[u8]), RecordError> {
    let header = decode_header(bytes)?;
    let body = &bytes[HEADER_LEN..];
    match body.split_at_checked(header.len as usize) {
        Some((body, rest)) => Ok((header, body, rest)),
        None => Err(RecordError::Torn { have: bytes.len(), need: HEADER_LEN + header.len as usize }),
    }
}

fn number(raw: &[u8; HEADER_LEN], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&raw[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// FNV-1a over everything but the check itself.
fn check(raw: &[u8; HEADER_LEN]) -> u32 {
    raw[..12]
        .iter()
        .chain(&raw[16..])
        .fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers() -> impl Strategy<Value = Header> {
        (any::<bool>(), 1..=RECORD_MAX as u32, 0..u64::MAX - RECORD_MAX as u64, any::<u64>()).prop_map(
            |(err, len, offset, time_ns)| Header {
                stream: if err { StreamTag::Stderr } else { StreamTag::Stdout },
                len,
                offset: ByteOffset(offset),
                time_ns,
            },
        )
    }

    #[test]
    fn header_bytes_are_fixed() {
        let header =
            Header { stream: StreamTag::Stderr, len: 3, offset: ByteOffset(0x0102), time_ns: 0x0a0b };
        let mut want = *b"FRN1\x02\0\0\0\x03\0\0\0....\x02\x01\0\0\0\0\0\0\x0b\x0a\0\0\0\0\0\0";
        let got = encode_header(&header);
        want[12..16].copy_from_slice(&got[12..16]);
        assert_eq!(got, want);
    }

    #[test]
    fn zero_and_oversized_lengths_are_refused() {
        for len in [0, RECORD_MAX as u32 + 1] {
            let raw =
                encode_header(&Header { stream: StreamTag::Stdout, len, offset: ByteOffset(0), time_ns: 0 });
            assert_eq!(decode_header(&raw), Err(RecordError::Field("length out of range")));
        }
    }

    proptest! {
        #[test]
        fn round_trip(header in headers()) {
            prop_assert_eq!(decode_header(&encode_header(&header)), Ok(header));
        }

        #[test]
        fn any_changed_bit_is_noticed(header in headers(), bit in 0..HEADER_LEN * 8) {
            let mut raw = encode_header(&header);
            raw[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode_header(&raw).is_err());
        }

        #[test]
        fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(split_record(&bytes).is_err());
        }

        #[test]
        fn a_torn_tail_is_recognised(body in proptest::collection::vec(any::<u8>(), 1..300), cut: prop::sample::Index) {
            let header = Header {
                stream: StreamTag::Stdout, len: body.len() as u32, offset: ByteOffset(7), time_ns: 9,
            };
            let mut whole = encode_header(&header).to_vec();
            whole.extend_from_slice(&body);
            prop_assert_eq!(split_record(&whole), Ok((header, &body[..], &[][..])));
            let cut = cut.index(whole.len());
            let torn = matches!(split_record(&whole[..cut]), Err(RecordError::Torn { have, .. }) if have == cut);
            prop_assert!(torn);
        }
    }
}
