//! A session's journal: what must survive every process of ours.
//!
//! One file per session, JSON lines, each appended by one `write`. The receipt is written by node-host before the
//! command can start, the other lines by the holder; `lost` stands in for an exit that no holder could write. A last
//! line that was cut off is ignored. This module does not decide what the lines mean for a session.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use session::{Ended, Exit, Limits, OnDisconnect, RunId, SessionId};

use super::wire::Mode;

/// The file's name in the session directory.
pub(crate) const JOURNAL: &str = "journal";

/// The longest journal that is read, in bytes. A real one has three lines.
const JOURNAL_MAX: u64 = 1 << 20;

/// What was asked for, written before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) session_id: SessionId,
    pub(crate) run_id: RunId,
    /// Digest of the whole input of the run; tells a retry from another run with the same id.
    pub(crate) input_digest: [u8; 32],
    /// The command for lists.
    pub(crate) label: String,
    pub(crate) mode: Mode,
    /// Where it runs, as text. Not in journals of the first version.
    #[serde(default)]
    pub(crate) workdir: String,
    /// When it was asked for, in milliseconds since 1970.
    pub(crate) asked_unix_ms: u64,
    /// Not in journals of the first version, as what follows.
    #[serde(default)]
    pub(crate) owner: Owner,
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) answer_queries: bool,
}

/// Whose a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The agent; empty: none was named.
    pub agent: String,
    /// The agent's name of its own session; may be empty.
    pub session_key: String,
    /// What becomes of the command when nobody looks after it, as long as no later line says otherwise.
    pub on_disconnect: OnDisconnect,
}

impl Owner {
    /// Whether it is this agent. One that nobody was named for is the main agent's.
    pub fn is_of(&self, agent: &str) -> bool {
        let named = if self.agent.is_empty() { policy::MAIN_AGENT } else { self.agent.as_str() };
        named == agent
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Receipt(Receipt),
    Started {
        pid: i32,
        unix_ms: u64,
    },
    Exit(Exit),
    /// The newest counts.
    OnDisconnect(OnDisconnect),
}

/// A journal as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) receipt: Option<Receipt>,
    /// Process id and start in milliseconds since 1970.
    pub(crate) started: Option<(i32, u64)>,
    pub(crate) exit: Option<Exit>,
    pub(crate) on_disconnect: Option<OnDisconnect>,
}

/// Creates the journal of a new session with its receipt.
pub(crate) fn create(dir: &Path, receipt: Receipt) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(dir.join(JOURNAL))?;
    write_line(&mut file, &Line::Receipt(receipt))
}

/// Appends one line.
pub(crate) fn append(dir: &Path, line: &Line) -> io::Result<()> {
    write_line(&mut open(dir)?, line)
}

/// Opens a journal for appending.
pub(crate) fn open(dir: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(dir.join(JOURNAL))
}

/// Appends one line.
pub(crate) fn write_line(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Reads a journal; lines that cannot be read are passed over.
pub(crate) fn read(dir: &Path) -> io::Result<Journal> {
    let mut text = Vec::new();
    File::open(dir.join(JOURNAL))?.take(JOURNAL_MAX).read_to_end(&mut text)?;
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> Journal {
    let mut journal = Journal::default();
    for line in text.split(|&b| b == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Receipt(receipt)) => journal.receipt = journal.receipt.or(Some(receipt)),
            Ok(Line::Started { pid, unix_ms }) => journal.started = Some((pid, unix_ms)),
            Ok(Line::OnDisconnect(policy)) => journal.on_disconnect = Some(policy),
            // A holder's own word beats the guess of somebody who could not reach it.
            Ok(Line::Exit(exit)) => {
                if journal.exit.as_ref().is_none_or(|known| known.ended == Ended::Lost) {
                    journal.exit = Some(exit);
                }
            }
            Err(_) => {}
        }
    }
    if let (Some(receipt), Some(policy)) = (&mut journal.receipt, journal.on_disconnect.take()) {
        receipt.owner.on_disconnect = policy;
    }
    journal
}

#[cfg(test)]
mod tests {
    use session::{ByteOffset, Death};

    use super::*;

    fn exit(ended: Ended) -> Exit {
        Exit {
            ended,
            cancelled: false,
            final_offset: ByteOffset(2),
            leftovers_killed: 0,
            started_unix_ms: 1,
            ended_unix_ms: 2,
            duration_ms: 1,
        }
    }

    #[test]
    fn lines_come_back_and_a_torn_one_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let receipt = Receipt {
            session_id: "calm-reef".parse().unwrap(),
            run_id: "r1".parse().unwrap(),
            input_digest: [3; 32],
            label: "echo\nhi".into(),
            mode: Mode::TERMINAL,
            workdir: "/".into(),
            asked_unix_ms: 5,
            owner: Owner { agent: "a".into(), session_key: "k".into(), on_disconnect: OnDisconnect::Kill },
            limits: Limits::default(),
            answer_queries: true,
        };
        create(dir.path(), receipt.clone()).unwrap();
        assert!(create(dir.path(), receipt.clone()).is_err());
        append(dir.path(), &Line::Started { pid: 7, unix_ms: 8 }).unwrap();
        append(dir.path(), &Line::OnDisconnect(OnDisconnect::KeepFor(5000))).unwrap();
        append(dir.path(), &Line::Exit(exit(Ended::Lost))).unwrap();
        append(dir.path(), &Line::Exit(exit(Ended::Died(Death::Code(0))))).unwrap();
        append(dir.path(), &Line::Exit(exit(Ended::Lost))).unwrap();
        let want = Journal {
            receipt: Some(Receipt {
                owner: Owner { on_disconnect: OnDisconnect::KeepFor(5000), ..receipt.owner.clone() },
                ..receipt
            }),
            on_disconnect: None,
            started: Some((7, 8)),
            exit: Some(exit(Ended::Died(Death::Code(0)))),
        };
        assert_eq!(read(dir.path()).unwrap(), want);
        let path = dir.path().join(JOURNAL);
        let whole = std::fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|&b| b == b'\n').unwrap();
        let first = whole.iter().position(|&b| b == b'\n').unwrap();
        assert_eq!(parse(&whole[..last + 9]), want);
        assert_eq!(parse(&whole[..first - 1]), Journal::default());
    }
}
