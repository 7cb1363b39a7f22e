//! A client command whose stdout is checked as it comes.

use std::io::Read as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Checker;
use crate::eventually::{PATIENCE, eventually};
use crate::programs::{Ended, Sig, send_signal};

/// A reader that runs.
#[derive(Debug)]
pub struct Reader {
    child: Child,
    /// Kept open: the end of the input is one of the terminal's, too.
    _stdin: Option<ChildStdin>,
    seen: Arc<Mutex<Seen>>,
    stdout: Option<JoinHandle<()>>,
    stderr: Option<JoinHandle<String>>,
}

/// A reader that is over.
#[derive(Debug)]
pub struct ReaderEnd {
    /// How its process ended.
    pub ended: Ended,
    /// What it said.
    pub stderr: String,
    /// All output so far, of the readers before it as well.
    pub checker: Checker,
    /// The longest time without a byte since [`Reader::mark`].
    pub silence: Duration,
}

#[derive(Debug)]
struct Seen {
    checker: Checker,
    /// When the last byte came, or the mark was set.
    since: Instant,
    silence: Duration,
}

impl Seen {
    fn end_of_silence(&mut self) {
        let now = Instant::now();
        self.silence = self.silence.max(now.duration_since(self.since));
        self.since = now;
    }
}

impl Reader {
    /// Starts it; what it reads goes on where `checker` is.
    #[track_caller]
    pub fn start(mut command: Command, checker: Checker) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
        let stdin = child.stdin.take();
        let mut out = child.stdout.take().expect("piped");
        let mut err = child.stderr.take().expect("piped");
        let seen = Seen { checker, since: Instant::now(), silence: Duration::ZERO };
        let seen = Arc::new(Mutex::new(seen));
        let sink = Arc::clone(&seen);
        let stdout = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                let mut seen = sink.lock();
                seen.end_of_silence();
                seen.checker.take(&buffer[..count]);
            }
            sink.lock().end_of_silence();
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = err.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, _stdin: stdin, seen, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// How many bytes came, those of the readers before it included.
    pub fn received(&self) -> usize {
        self.seen.lock().checker.received()
    }

    /// Waits until so many bytes came.
    #[track_caller]
    pub fn wait_received(&mut self, bytes: usize) {
        eventually(PATIENCE, || {
            let received = self.received();
            match self.child.try_wait() {
                _ if received >= bytes => Ok(()),
                Ok(None) => Err(format!("{received} of {bytes} bytes")),
                ended => panic!("it ended with {ended:?} after {received} bytes"),
            }
        });
    }

    /// Measures silence from now on.
    pub fn mark(&self) {
        let mut seen = self.seen.lock();
        (seen.since, seen.silence) = (Instant::now(), Duration::ZERO);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Sig) {
        send_signal(self.child.id(), signal);
    }

    /// Whether its process is over.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    #[track_caller]
    pub fn finish(mut self, within: Duration) -> ReaderEnd {
        let ended = eventually(within, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(Ended::from(status)),
            Ok(None) => Err(format!("it still reads, {} bytes so far", self.received())),
            Err(e) => Err(e.to_string()),
        });
        if let Some(stdout) = self.stdout.take() {
            stdout.join().expect("a reader that does not panic");
        }
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut seen = self.seen.lock();
        // The reading thread is over; what takes the checker's place is never used.
        let checker = std::mem::replace(&mut seen.checker, Checker::new(Arc::default()));
        ReaderEnd { ended, stderr, checker, silence: seen.silence }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
