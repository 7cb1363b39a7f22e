//! What node-host and a holder say to each other.
//!
//! A frame is a `u32` length (little-endian) and that many bytes of postcard. Both ends are the same build unless
//! node-host was upgraded while a session ran, so variants are only ever added at the end.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use session::modes::Modes;
use session::{ByteOffset, Exit, Limits, LogLimits, RunId, SessionId};

/// The longest frame, in bytes. A launch specification with the largest environment that Linux takes fits.
pub const FRAME_MAX: usize = 4 << 20;

/// How much standard input may be under way to a command, in bytes: sent by the node and not yet taken.
pub const STDIN_WINDOW: usize = 256 * 1024;

/// One variable of an environment, name and value, as bytes.
pub type EnvVar = (Vec<u8>, Vec<u8>);

/// How the command's input and output are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Two output pipes, and an input as given.
    Pipes {
        /// Standard input.
        stdin: Stdin,
    },
    /// A terminal. Its input is always open.
    Terminal {
        /// Width in columns.
        cols: u16,
        /// Height in rows.
        rows: u16,
    },
}

impl Mode {
    /// A terminal of the size that callers get who name none: 120 × 30 (runtime.md §3).
    pub const TERMINAL: Mode = Mode::Terminal { cols: 120, rows: 30 };

    /// Pipes without input.
    pub const PIPES: Mode = Mode::Pipes { stdin: Stdin::Null };
}

/// Standard input in pipe mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// A pipe that the caller writes to and closes.
    Open,
    /// `/dev/null`: a command that reads sees the end at once.
    Null,
}

/// Everything a holder needs to run a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The session.
    pub session_id: SessionId,
    /// The caller's name of the run.
    pub run_id: RunId,
    /// The session's directory, there already.
    pub dir: PathBuf,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment of the command. Nothing is inherited.
    pub env: Vec<EnvVar>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Pipes or terminal.
    pub mode: Mode,
    /// When to kill the command, in milliseconds from the arrival of this specification; none is never.
    pub deadline_ms: Option<u64>,
    /// Time between TERM and KILL, in milliseconds.
    pub kill_grace_ms: u64,
    /// Bounds of the output log.
    pub log: LogLimits,
    /// What was approved and is checked at the last moment; none where nobody had to be asked.
    pub bound: Option<Box<Bound>>,
    /// Bounds on what the command uses.
    pub limits: Limits,
    /// Answer where the program asks its terminal for the cursor: nobody else does.
    pub answer_queries: bool,
}

/// First descriptor that bound files get in the command: the k-th file is at `BOUND_FD + k`. Above what shells use for
/// themselves.
pub const BOUND_FD: i32 = 100;

/// The descriptor of the program that starts a bound program for others: see [`BoundFile`].
pub const STARTER_FD: i32 = 99;

/// The descriptor of what the starter looks at again.
pub(crate) const AGAIN_FD: i32 = 98;

/// Most files that one command binds.
pub const BOUND_MAX: usize = 64;

/// What a person's yes was bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The files. Words of the command name the k-th one as `/proc/self/fd/<BOUND_FD + k>`.
    pub files: Vec<BoundFile>,
    /// Which of them is executed; the first word of the command is only its name then.
    pub exec: usize,
    /// Device and inode of the working directory.
    pub workdir: (u64, u64),
    /// Some word names [`STARTER_FD`]: a shell or a wrapper starts a bound program by it.
    pub starter: bool,
}

/// A file that was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// SHA-256 of its content, where the node's user could change it.
    pub sha256: Option<[u8; 32]>,
    /// What is done with it.
    pub role: BoundRole,
}

/// What is done with a bound file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundRole {
    /// It is executed.
    Program,
    /// An interpreter or a shell reads it, from its descriptor.
    Script,
    /// An interpreter reads it by its path: it goes by the ending, or by the path behind what it is given.
    Named,
    /// A directory that the command changes to.
    Directory,
}

impl LaunchSpec {
    /// Name and value of each variable.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.env.iter().map(|(k, v)| (OsString::from_vec(k.clone()), OsString::from_vec(v.clone())))
    }
}

/// Node to holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHolder {
    /// Run this. Once, and first.
    Start(Box<LaunchSpec>),
    /// Bytes for standard input. Never more than [`STDIN_WINDOW`] beyond what was taken.
    Stdin(Vec<u8>),
    /// No more input will come (pipes). A terminal gets its end-of-file byte as ordinary input instead.
    StdinEof,
    /// The terminal has a new size.
    Resize {
        /// Width in columns.
        cols: u16,
        /// Height in rows.
        rows: u16,
    },
    /// Send a signal, 1 to 64: to the foreground group of a terminal, else to the command's group.
    Signal(i32),
    /// End the whole tree. A second one does not wait for the grace.
    Kill {
        /// Time between TERM and KILL, in milliseconds.
        grace_ms: u64,
    },
    /// The lowest offset that a reader still needs; none when nobody reads.
    Floor(Option<ByteOffset>),
    /// Tell the next end offset as soon as it is higher than the last one told.
    Arm,
    /// Tell everything.
    Status,
}

/// Holder to node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromHolder {
    /// The command runs.
    Started {
        /// Its process id.
        pid: i32,
        /// When, in milliseconds since 1970.
        unix_ms: u64,
    },
    /// The log now ends here. One per [`ToHolder::Arm`].
    Output {
        /// The offset behind the last byte.
        end: ByteOffset,
    },
    /// So many input bytes were handed to the command since it started.
    StdinTaken {
        /// Count from the start.
        total: u64,
    },
    /// The command takes no more input.
    StdinClosed,
    /// The end. The last frame of a session; the log is complete.
    Exited {
        /// How it ended.
        exit: Box<Exit>,
        /// What becomes of the holder.
        holder: Afterwards,
    },
    /// The answer to [`ToHolder::Status`], and the first frame on a new connection.
    Status(Status),
    /// Another connection took over; this one gets nothing more.
    Replaced,
    /// The terminal changed; also sent behind the first [`FromHolder::Status`] of a connection. Only of terminals.
    Terminal(TerminalFacts),
}

/// What is known of a session's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalFacts {
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
    /// What the program switched on.
    pub modes: Modes,
}

/// What a holder does when its session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Afterwards {
    /// It waits for another session on the same connection.
    Stays,
    /// It ends.
    Leaves,
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The command's process id.
    pub pid: i32,
    /// When it started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The offset behind the last byte of output.
    pub end: ByteOffset,
    /// Whether input can still be written.
    pub stdin: StdinState,
    /// Input bytes accepted from the node so far.
    pub stdin_accepted: u64,
    /// Input bytes handed to the command so far.
    pub stdin_taken: u64,
}

/// Whether input can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinState {
    /// It was never open.
    NotOpened,
    /// It is.
    Open,
    /// It was, and is closed now.
    Closed,
}

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than [`FRAME_MAX`].
    #[error("a frame of {0} bytes is above the limit of {FRAME_MAX}")]
    TooLong(usize),
    /// Not one of ours.
    #[error("a frame cannot be read or written")]
    Code(#[source] postcard::Error),
}

/// Appends `message` to `out` as one frame.
///
/// # Errors
/// When the message is above [`FRAME_MAX`]; `out` is then as before.
pub fn encode<T: Serialize>(message: &T, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let body = postcard::to_allocvec(message).map_err(FrameError::Code)?;
    if body.len() > FRAME_MAX {
        return Err(FrameError::TooLong(body.len()));
    }
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// Collects bytes until frames are whole.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Where the first frame that was not taken starts.
    at: usize,
}

impl FrameBuffer {
    /// Room to read more bytes into. Call [`FrameBuffer::next_frame`] until it has none before reading again, so that the
    /// buffer never holds more than one frame and one read.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        // A large frame leaves a large buffer; a holder lives long and should not keep it.
        if self.bytes.is_empty() && self.bytes.capacity() > 128 * 1024 {
            self.bytes = Vec::new();
        }
        self.bytes.reserve(8 * 1024);
        &mut self.bytes
    }

    /// Takes the next whole frame.
    ///
    /// # Errors
    /// When the bytes are none of ours; the connection is of no use afterwards.
    pub fn next_frame<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.bytes[self.at..];
        let Some((len, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        if len > FRAME_MAX {
            return Err(FrameError::TooLong(len));
        }
        let Some(body) = body.get(..len) else { return Ok(None) };
        let message = postcard::from_bytes(body).map_err(FrameError::Code)?;
        self.at += 4 + len;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_however_they_arrive() {
        let messages = [
            ToHolder::Arm,
            ToHolder::Stdin(vec![7; 70_000]),
            ToHolder::Floor(Some(ByteOffset(9))),
            ToHolder::Kill { grace_ms: 300 },
        ];
        let mut stream = Vec::new();
        for message in &messages {
            encode(message, &mut stream).unwrap();
        }
        for step in [1, 7, 5000, stream.len()] {
            let mut buffer = FrameBuffer::default();
            let mut got = Vec::new();
            for part in stream.chunks(step) {
                buffer.space().extend_from_slice(part);
                while let Some(message) = buffer.next_frame::<ToHolder>().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, messages, "in steps of {step}");
        }
    }

    #[test]
    fn bad_frames_are_refused() {
        let mut buffer = FrameBuffer::default();
        buffer.space().extend_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(buffer.next_frame::<ToHolder>(), Err(FrameError::TooLong(_))));
        let mut buffer = FrameBuffer::default();
        buffer.space().extend_from_slice(&[1, 0, 0, 0, 0xee]);
        assert!(matches!(buffer.next_frame::<ToHolder>(), Err(FrameError::Code(_))));
        let mut out = vec![1];
        let huge = ToHolder::Stdin(vec![0; FRAME_MAX]);
        assert!(matches!(encode(&huge, &mut out), Err(FrameError::TooLong(_))));
        assert_eq!(out, [1]);
    }
}
