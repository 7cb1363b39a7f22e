//! What is remembered of runs whose session is gone, so that a late retry does not run its command again.
//!
//! Bounded by count: two generations of entries, in memory and as two files of JSON lines. When the newer one is full
//! it becomes the older one, which is forgotten then. So nothing is ever rewritten, and the newest [`GENERATION`] runs
//! at least are known at any time. It does not decide when a session goes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use session::{Ended, Exit, RunId, SessionId};

use crate::process::journal::Owner;

/// The file of the newer generation, in the directory of sessions.
const NEWER: &str = "receipts";

/// The file of the older generation.
const OLDER: &str = "receipts.old";

/// Entries of one generation; twice as many are kept at most. At the limit one entry every 180 ms, hour after hour,
/// still leaves each its 30 minutes.
const GENERATION: usize = 10_000;

/// The longest text of an exit that is kept, in characters.
const DETAIL_MAX: usize = 200;

/// The longest file that is read, in bytes: a full generation of long entries.
const FILE_MAX: u64 = GENERATION as u64 * 4096;

/// A run that is over and whose session is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Past {
    pub(super) run_id: RunId,
    /// Digest of the whole input of the run.
    pub(super) input_digest: [u8; 32],
    /// The name that its session had.
    pub(super) session_id: SessionId,
    /// Its end, long texts cut.
    pub(super) exit: Exit,
}

/// A run that was cancelled before it started.
#[derive(Debug, Serialize, Deserialize)]
struct Cancelled {
    cancelled: RunId,
    /// Whose run; empty: whoever's.
    #[serde(default)]
    agent: String,
}

/// What is remembered of a run.
#[derive(Debug)]
enum Entry {
    Past(Box<Past>),
    /// It was cancelled before it started, by this agent; empty: for whoever's it is.
    Cancelled(String),
}

/// All runs that are remembered.
#[derive(Debug)]
pub(super) struct Receipts {
    dir: PathBuf,
    /// Entries before a generation is full.
    generation: usize,
    newer: HashMap<RunId, Entry>,
    older: HashMap<RunId, Entry>,
    /// Lines in the newer file. One run may have two, after a crash.
    lines: usize,
    /// The newer file, once something was written.
    file: Option<File>,
}

impl Receipts {
    /// Reads what an earlier node host remembered in `dir`.
    ///
    /// # Errors
    /// When a file is there and cannot be read: to go on would run commands again.
    pub(super) fn open(dir: &Path) -> io::Result<Receipts> {
        Receipts::with_generation(dir, GENERATION)
    }

    fn with_generation(dir: &Path, generation: usize) -> io::Result<Receipts> {
        let (newer, lines) = read(&dir.join(NEWER))?;
        let (older, _) = read(&dir.join(OLDER))?;
        Ok(Receipts { dir: dir.to_owned(), generation, newer, older, lines, file: None })
    }

    /// The run of this name.
    pub(super) fn find(&self, run: &RunId) -> Option<&Past> {
        match self.entry(run)? {
            Entry::Past(past) => Some(past),
            Entry::Cancelled(_) => None,
        }
    }

    /// Whether this agent's run was cancelled before it started.
    pub(super) fn is_cancelled(&self, run: &RunId, owner: &Owner) -> bool {
        matches!(self.entry(run), Some(Entry::Cancelled(agent)) if agent.is_empty() || owner.is_of(agent))
    }

    fn entry(&self, run: &RunId) -> Option<&Entry> {
        self.newer.get(run).or_else(|| self.older.get(run))
    }

    /// A run that has not started will not start any more.
    pub(super) fn cancel(&mut self, run: &RunId, agent: &str) {
        self.add(run, &Cancelled { cancelled: run.clone(), agent: agent.to_owned() });
        self.newer.insert(run.clone(), Entry::Cancelled(agent.to_owned()));
    }

    /// Remembers a run. Call it before its session's directory is removed.
    pub(super) fn remember(&mut self, mut past: Past) {
        cut(&mut past.exit.ended);
        self.add(&past.run_id, &past);
        self.newer.insert(past.run_id.clone(), Entry::Past(Box::new(past)));
    }

    fn add(&mut self, run: &RunId, entry: &impl Serialize) {
        if self.lines >= self.generation {
            self.turn();
        }
        self.lines += 1;
        if let Err(error) = self.write(entry) {
            // A full disk, usually: removing sessions is what helps. Known until this process ends.
            self.file = None;
            tracing::warn!(%run, %error, "the end of a run could not be written down");
        }
    }

    fn turn(&mut self) {
        self.older = std::mem::take(&mut self.newer);
        (self.file, self.lines) = (None, 0);
        let (newer, older) = (self.dir.join(NEWER), self.dir.join(OLDER));
        match std::fs::rename(&newer, older) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the list of finished runs could not be turned over"),
        }
    }

    fn write(&mut self, entry: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let path = self.dir.join(NEWER);
                let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
                // Ends a line that a full disk or a crash cut off.
                file.write_all(b"\n")?;
                self.file.insert(file)
            }
        };
        file.write_all(&line)
    }
}

/// The entries of a file and the number of its lines; lines that cannot be read are passed over.
fn read(path: &Path) -> io::Result<(HashMap<RunId, Entry>, usize)> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => _ = file.take(FILE_MAX).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let count = lines.clone().count();
    let entries = lines.filter_map(|line| {
        let past = serde_json::from_slice::<Past>(line)
            .map(|past| (past.run_id.clone(), Entry::Past(Box::new(past))));
        past.or_else(|_| {
            serde_json::from_slice::<Cancelled>(line).map(|run| (run.cancelled, Entry::Cancelled(run.agent)))
        })
        .ok()
    });
    Ok((entries.collect(), count))
}

/// Cuts the text of an end.
fn cut(ended: &mut Ended) {
    match ended {
        Ended::CouldNotStart { detail, .. } | Ended::LogFailed { detail, .. } => {
            if let Some((at, _)) = detail.char_indices().nth(DETAIL_MAX) {
                detail.replace_range(at.., "…");
            }
        }
        Ended::Died(_) | Ended::TimedOut { .. } | Ended::LimitHit { .. } | Ended::Lost => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use session::{ByteOffset, Death, StartFailure};

    use super::*;

    fn past(n: u8, ended: Ended) -> Past {
        Past {
            run_id: format!("r{n}").parse().unwrap(),
            input_digest: [n; 32],
            session_id: "calm-reef".parse().unwrap(),
            exit: Exit {
                ended,
                cancelled: false,
                final_offset: ByteOffset(2),
                leftovers_killed: 0,
                started_unix_ms: 1,
                ended_unix_ms: 2,
                duration_ms: 1,
            },
        }
    }

    fn code(n: u8) -> Past {
        past(n, Ended::Died(Death::Code(n)))
    }

    fn known(receipts: &Receipts, upto: u8) -> Vec<u8> {
        (0..upto).filter(|n| receipts.find(&format!("r{n}").parse().unwrap()) == Some(&code(*n))).collect()
    }

    #[test]
    fn the_newest_survive_a_restart_at_any_point() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..20 {
            // A new one for each: as if the node host died in between.
            let mut receipts = Receipts::with_generation(dir.path(), 4).unwrap();
            receipts.remember(code(n));
            let first = (n / 4).saturating_sub(1) * 4;
            let want: Vec<u8> = (first..=n).collect();
            assert_eq!(known(&receipts, 20), want);
            assert_eq!(known(&Receipts::with_generation(dir.path(), 4).unwrap(), 20), want);
        }
        for name in [NEWER, OLDER] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_line_that_was_cut_off_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NEWER);
        let mut receipts = Receipts::open(dir.path()).unwrap();
        receipts.remember(code(0));
        receipts.remember(code(1));
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
        let mut receipts = Receipts::open(dir.path()).unwrap();
        assert_eq!(known(&receipts, 3), [0]);
        receipts.remember(code(2));
        assert_eq!(known(&Receipts::open(dir.path()).unwrap(), 3), [0, 2]);
    }

    #[test]
    fn a_run_that_was_cancelled_before_it_started_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let run: RunId = "r9".parse().unwrap();
        let mut receipts = Receipts::open(dir.path()).unwrap();
        let of = |agent: &str| Owner { agent: agent.to_owned(), ..Owner::default() };
        assert!(!receipts.is_cancelled(&run, &of("a")));
        receipts.cancel(&run, "a");
        for receipts in [receipts, Receipts::open(dir.path()).unwrap()] {
            // Another agent's run of the same name is another run.
            assert!(receipts.is_cancelled(&run, &of("a")) && !receipts.is_cancelled(&run, &of("b")));
            assert_eq!(receipts.find(&run), None);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let ended = |detail: String| Ended::CouldNotStart { kind: StartFailure::NotFound, errno: 2, detail };
        let mut receipts = Receipts::open(dir.path()).unwrap();
        receipts.remember(past(1, ended("ü".repeat(100_000))));
        let want = past(1, ended("ü".repeat(DETAIL_MAX) + "…"));
        assert_eq!(receipts.find(&want.run_id), Some(&want));
        assert_eq!(Receipts::open(dir.path()).unwrap().find(&want.run_id), Some(&want));
    }
}
