//! A session's output through its whole life, as a model: a writer with retention, readers at their own pace whose links
//! are cut, holders that die in the middle of a record, restarts that read everything back from disk.
//!
//! After each step: what a reader has is a prefix of what was written, or names the gap; nothing comes after the end.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use proptest::prelude::*;
use session::record::{decode_header, encode_header, split_record};
use session::retention::{Writer, decide};
use session::{ByteOffset, HEADER_LEN, Header, LogLimits, Place, RecordError, Segment, StreamTag, locate};

const LIMITS: LogLimits = LogLimits { head: 300, cap: 2000, segment: 300 };

/// The byte at an offset: a pattern in which every shift shows.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(31) % 251) as u8
}

/// A segment file.
#[derive(Debug, Clone)]
struct File {
    start: u64,
    bytes: Vec<u8>,
}

impl File {
    fn segment(&self) -> Segment {
        let mut rest = &self.bytes[..];
        let mut len = 0;
        while let Ok((header, _, behind)) = split_record(rest) {
            len += u64::from(header.len);
            rest = behind;
        }
        Segment { start: ByteOffset(self.start), len, disk: self.bytes.len() as u64 }
    }
}

/// The log as it lies on disk, and what is known of it.
#[derive(Debug, Default)]
struct Log {
    files: Vec<File>,
    /// Everything that was ever written whole.
    end: u64,
    exited: bool,
}

impl Log {
    fn segments(&self) -> Vec<Segment> {
        self.files.iter().map(File::segment).collect()
    }

    /// The holder writes, unless it must wait. A start of a file is where the last one ended.
    fn write(&mut self, stream: StreamTag, len: u64, floor: Option<u64>) {
        let segments = self.segments();
        let decision = decide(&segments, &LIMITS, floor.map(ByteOffset));
        if self.exited || decision.writer == Writer::MustWait {
            return;
        }
        let full = segments.last().is_none_or(|last| last.disk >= LIMITS.segment_size(last.start));
        if full {
            self.files.push(File { start: self.end, bytes: Vec::new() });
        }
        let header =
            Header { stream, len: u32::try_from(len).unwrap(), offset: ByteOffset(self.end), time_ns: 0 };
        let file = self.files.last_mut().unwrap();
        file.bytes.extend(encode_header(&header));
        file.bytes.extend((self.end..self.end + len).map(byte));
        self.end += len;
        for index in decide(&self.segments(), &LIMITS, floor.map(ByteOffset)).drop.into_iter().rev() {
            self.files.remove(index);
        }
    }

    /// The holder dies while it writes a record: part of it is on disk, nothing of it counts.
    fn die_writing(&mut self, len: u64, cut: usize) {
        if self.exited || self.files.is_empty() {
            return;
        }
        let header = Header {
            stream: StreamTag::Stdout,
            len: u32::try_from(len).unwrap(),
            offset: ByteOffset(self.end),
            time_ns: 0,
        };
        let mut record = encode_header(&header).to_vec();
        record.extend((self.end..self.end + len).map(byte));
        record.truncate(cut % record.len());
        self.files.last_mut().unwrap().bytes.extend(record);
        self.exited = true;
    }

    /// A restart knows only what is on disk.
    fn restart(&self) -> Log {
        let end =
            self.files.iter().rev().map(|file| file.segment().end().0).find(|end| *end > 0).unwrap_or(0);
        Log { files: self.files.clone(), end, exited: self.exited }
    }

    /// Bytes from an offset on, at most `max`, of one segment.
    fn read(&self, at: u64, max: u64) -> Got {
        match locate(&self.segments(), ByteOffset(at)) {
            Place::End if self.exited => Got::End,
            Place::End => Got::Nothing,
            Place::Gap { from, to } => Got::Gap(from.0, to.0),
            Place::Data(index) => {
                let mut rest = &self.files[index].bytes[..];
                let mut out = Vec::new();
                loop {
                    match split_record(rest) {
                        Ok((header, body, behind)) => {
                            let skip = (at + out.len() as u64).saturating_sub(header.offset.0);
                            let room = (max - out.len() as u64) as usize;
                            if let Some(part) = body.get(skip as usize..) {
                                out.extend(&part[..part.len().min(room)]);
                            }
                            rest = behind;
                        }
                        Err(RecordError::Torn { .. }) => break,
                        Err(other) => panic!("{other}"),
                    }
                    if out.len() as u64 >= max {
                        break;
                    }
                }
                Got::Bytes(out)
            }
        }
    }
}

#[derive(Debug, PartialEq)]
enum Got {
    Bytes(Vec<u8>),
    Gap(u64, u64),
    Nothing,
    End,
}

/// A reader, and all that it was given.
#[derive(Debug, Default)]
struct Reader {
    at: u64,
    /// It holds its place, since the log ended here.
    holds: Option<u64>,
    ended: bool,
}

impl Reader {
    fn step(&mut self, log: &Log, max: u64) {
        match log.read(self.at, max) {
            Got::Bytes(bytes) => {
                assert!(!self.ended, "the end comes last");
                assert!(!bytes.is_empty() && bytes.len() as u64 <= max);
                for (offset, got) in (self.at..).zip(&bytes) {
                    assert_eq!(*got, byte(offset), "at {offset}");
                }
                self.at += bytes.len() as u64;
            }
            Got::Gap(from, to) => {
                // What was gone before stays gone.
                assert!(self.holds.is_none_or(|end| to <= end), "whoever holds its place loses nothing more");
                assert!(!self.ended);
                assert_eq!(from, self.at);
                assert!(to > from && to <= log.end);
                self.at = to;
            }
            Got::Nothing => assert_eq!(self.at, log.end),
            Got::End => {
                assert_eq!(self.at, log.end, "the end comes when everything was read");
                self.ended = true;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(bool, u64),
    Read(usize, u64),
    /// The link of a reader is cut: it goes on where it was, with a new one.
    Cut(usize),
    Hold(usize),
    LetGo(usize),
    Restart,
    Die(u64, usize),
    Exit,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<bool>(), 1_u64..120).prop_map(|(err, len)| Step::Write(err, len)),
        6 => (0_usize..3, 1_u64..200).prop_map(|(who, max)| Step::Read(who, max)),
        1 => (0_usize..3).prop_map(Step::Cut),
        1 => (0_usize..3).prop_map(Step::Hold),
        1 => (0_usize..3).prop_map(Step::LetGo),
        1 => Just(Step::Restart),
        1 => (1_u64..120, any::<usize>()).prop_map(|(len, cut)| Step::Die(len, cut)),
        1 => Just(Step::Exit),
    ];
    proptest::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_reader_has_a_prefix_of_the_truth_or_names_the_gap(steps in steps()) {
        let mut log = Log::default();
        let mut readers: [Reader; 3] = Default::default();
        for step in steps {
            let floor = readers.iter().filter(|reader| reader.holds.is_some()).map(|reader| reader.at).min();
            match step {
                Step::Write(err, len) => {
                    log.write(if err { StreamTag::Stderr } else { StreamTag::Stdout }, len, floor);
                    // What a reader held is let go of with the next write.
                    let disk: u64 = log.segments().iter().map(|segment| segment.disk).sum();
                    let bound = LIMITS.cap + 2 * (120 + HEADER_LEN as u64);
                    prop_assert!(floor.is_some() || log.exited || disk <= bound, "{}", disk);
                }
                Step::Read(who, max) => readers[who].step(&log, max),
                Step::Cut(who) => {
                    let Reader { at, holds, .. } = readers[who];
                    readers[who] = Reader { at, holds, ended: false };
                }
                // A place that is gone already cannot be held.
                Step::Hold(who) if !matches!(log.read(readers[who].at, 1), Got::Gap(..)) => readers[who].holds = Some(log.end),
                Step::Hold(_) => {}
                Step::LetGo(who) => readers[who].holds = None,
                Step::Restart => {
                    let again = log.restart();
                    prop_assert_eq!(again.end, log.end, "what was written whole is found again");
                    log = again;
                }
                Step::Die(len, cut) => log.die_writing(len, cut),
                Step::Exit => log.exited = true,
            }
            // The head is always there.
            if let Some(first) = log.files.first() {
                prop_assert!(first.start == 0);
                prop_assert!(first.bytes.is_empty() || decode_header(&first.bytes).is_ok() || log.exited);
            }
        }
        // Whoever goes on reading comes to the end, once.
        log.exited = true;
        for reader in &mut readers {
            for _ in 0..2000 {
                if reader.ended {
                    break;
                }
                reader.step(&log, 150);
            }
            prop_assert!(reader.ended);
            prop_assert_eq!(reader.at, log.end);
        }
    }
}
