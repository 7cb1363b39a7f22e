//! The command line client of a bed: to its end, or while it runs.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use crate::eventually::{PATIENCE, eventually};
use crate::programs::{Ended, Sig, send_signal};

/// What a client command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// All of its stdout.
    pub stdout: Vec<u8>,
    /// All of its stderr.
    pub stderr: String,
}

impl Outcome {
    /// Its exit code; -1 for a signal.
    pub fn code(&self) -> i32 {
        match self.ended {
            Ended::Code(code) => code,
            Ended::Signal(_) => -1,
        }
    }

    /// Fails unless it ended with 0.
    #[track_caller]
    pub fn ok(&self) -> &Self {
        assert_eq!(self.ended, Ended::Code(0), "stdout: {}\nstderr: {}", self.stdout_text(), self.stderr);
        self
    }

    /// Fails unless it failed with this exit code, this error code, and a hint.
    #[track_caller]
    pub fn refused(&self, exit: i32, code: &str) -> &Self {
        // Some texts of the wire start with their code; it is said once.
        let says = |line: &str| {
            let text = line.strip_prefix("gateway: ").and_then(|rest| rest.strip_prefix(code));
            text.is_some_and(|text| text.starts_with([':', ' ']) && !text.contains(code))
        };
        assert!(
            self.ended == Ended::Code(exit) && self.stderr.lines().any(says),
            "wanted exit {exit} and {code}, got {:?}\nstdout: {}\nstderr: {}",
            self.ended,
            self.stdout_text(),
            self.stderr
        );
        self
    }

    /// Fails unless stderr has a hint line.
    #[track_caller]
    pub fn hinted(&self) -> &Self {
        assert!(self.stderr.lines().any(|line| line.starts_with("hint: ")), "no hint: {}", self.stderr);
        self
    }

    /// Its stdout as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.ok();
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout_text()))
    }

    /// Its stdout as one JSON document a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout_text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// Whether output is read as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is.
    Now,
    /// Not before [`Running::read_on`].
    Later,
}

/// A client command that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    gate: Arc<(Mutex<Reading>, Condvar)>,
}

#[derive(Debug)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts any command with its streams caught.
    pub fn of(mut command: Command, reading: Reading) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
        let gate = Arc::new((Mutex::new(reading), Condvar::new()));
        let stdout = Capture::start(child.stdout.take().expect("piped"), Arc::clone(&gate));
        let open = Arc::new((Mutex::new(Reading::Now), Condvar::new()));
        let stderr = Capture::start(child.stderr.take().expect("piped"), open);
        let stdin = child.stdin.take();
        Self { child, stdin, stdout, stderr, gate }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets output be read from now on.
    pub fn read_on(&self) {
        *self.gate.0.lock() = Reading::Now;
        self.gate.1.notify_all();
    }

    /// Writes to its stdin.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("an open stdin");
        stdin.write_all(bytes).expect("stdin takes bytes");
        stdin.flush().expect("stdin takes bytes");
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Sig) {
        send_signal(self.pid(), signal);
    }

    /// What came on stdout so far.
    pub fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes.lock().clone()
    }

    /// What came on stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes.lock()).into_owned()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until stdout has `text` in it.
    #[track_caller]
    pub fn wait_stdout(&mut self, text: &str) {
        self.wait_for(text, |running| String::from_utf8_lossy(&running.stdout.bytes.lock()).into_owned());
    }

    /// Waits until stderr has `text` in it.
    #[track_caller]
    pub fn wait_stderr(&mut self, text: &str) {
        self.wait_for(text, Self::stderr);
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str, seen: impl Fn(&Self) -> String) {
        eventually(PATIENCE, || {
            let now = seen(self);
            if now.contains(text) {
                Ok(())
            } else {
                Err(format!("no `{text}` in {now:?}; stderr {}", self.stderr()))
            }
        });
    }

    /// Closes stdin, reads to the end and waits for the process.
    #[track_caller]
    pub fn finish(mut self, deadline: Duration) -> Outcome {
        self.close_stdin();
        self.read_on();
        let ended = eventually(deadline, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(Ended::from(status)),
            Ok(None) => Err(format!(
                "still running after {} bytes of output; stderr: {}",
                self.stdout.bytes.lock().len(),
                self.stderr()
            )),
            Err(e) => Err(e.to_string()),
        });
        let stdout = self.stdout.finish();
        let stderr = String::from_utf8_lossy(&self.stderr.finish()).into_owned();
        Outcome { ended, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.read_on();
    }
}

impl Capture {
    fn start(mut from: impl std::io::Read + Send + 'static, gate: Arc<(Mutex<Reading>, Condvar)>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let mut reading = gate.0.lock();
                while *reading == Reading::Later {
                    gate.1.wait(&mut reading);
                }
                drop(reading);
                match from.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => sink.lock().extend_from_slice(&buffer[..count]),
                }
            }
        });
        Self { bytes, thread: Some(thread) }
    }

    fn finish(&mut self) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a reader that does not panic");
        }
        std::mem::take(&mut self.bytes.lock())
    }
}
