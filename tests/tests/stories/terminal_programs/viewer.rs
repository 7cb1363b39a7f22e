//! A person who looks at a session from a terminal of their own.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use e2e::{PATIENCE, TestBed, eventually};
use parking_lot::Mutex;
use portable_pty::{Child, CommandBuilder, PtySize, SlavePty, native_pty_system};

const SIZE: PtySize = PtySize { rows: 30, cols: 120, pixel_width: 0, pixel_height: 0 };

/// `gateway attach` at a terminal.
pub(super) struct Viewer {
    child: Box<dyn Child + Send + Sync>,
    writer: Arc<Mutex<Box<dyn std::io::Write + Send>>>,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Keeps the terminal open behind the client, so that its last words are read.
    _slave: Box<dyn SlavePty + Send>,
}

impl Viewer {
    /// Attaches with these further arguments. The terminal answers `answer` where a program asks for the cursor.
    pub(super) fn attach(bed: &TestBed, args: &[&str], answer: &'static [u8]) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let template = bed.cli_command(std::iter::once("attach").chain(args.iter().copied()));
        let mut command = CommandBuilder::new(template.get_program());
        command.args(template.get_args());
        command.env_clear();
        for (key, value) in template.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.cwd(bed.path(""));
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, keyboard) = (Arc::clone(&seen), Arc::clone(&writer));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut answered = 0;
            // EIO is how a terminal ends.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut seen = sink.lock();
                seen.extend_from_slice(&buffer[..count]);
                let asked = seen.windows(4).filter(|four| four == b"\x1b[6n").count();
                for _ in answered..asked {
                    let mut keyboard = keyboard.lock();
                    let _ = keyboard.write_all(answer).and_then(|()| keyboard.flush());
                }
                answered = asked;
            }
        });
        Self { child, writer, seen, _slave: pair.slave }
    }

    /// What came to the terminal so far.
    pub(super) fn seen(&self) -> Vec<u8> {
        self.seen.lock().clone()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, bytes: &[u8]) {
        eventually(PATIENCE, || {
            let seen = self.seen();
            if seen.windows(bytes.len()).any(|part| part == bytes) {
                return Ok(());
            }
            Err(format!("no {:?} in {:?}", bytes.escape_ascii().to_string(), seen.escape_ascii().to_string()))
        });
    }

    pub(super) fn types(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock();
        writer.write_all(bytes).unwrap();
        writer.flush().unwrap();
    }

    /// Takes the client away, as a closed window does.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[track_caller]
    pub(super) fn wait_end(&mut self) -> u32 {
        let (child, seen) = (&mut self.child, &self.seen);
        eventually(PATIENCE, || match child.try_wait() {
            Ok(Some(status)) => Ok(status.exit_code()),
            other => Err(format!("{other:?}: {}", seen.lock().escape_ascii())),
        })
    }
}
