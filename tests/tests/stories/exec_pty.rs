//! Commands in a terminal, with the client at a real terminal of its own.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use e2e::{PATIENCE, TestBed, eventually, helper, pattern};
use parking_lot::Mutex;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::termios::{LocalModes, tcgetattr};

/// A client at a terminal.
struct AtTerminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn std::io::Write + Send>,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Our own look at the client's terminal.
    tty: std::fs::File,
}

const SIZE: PtySize = PtySize { rows: 40, cols: 100, pixel_width: 0, pixel_height: 0 };

impl AtTerminal {
    fn start(bed: &TestBed, args: &[&str]) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let template = bed.cli_command(args.iter().copied());
        let mut command = CommandBuilder::new(template.get_program());
        command.args(template.get_args());
        command.env_clear();
        for (key, value) in template.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.cwd(bed.path(""));
        let tty = std::fs::File::open(pair.master.tty_name().unwrap()).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // EIO is how a terminal ends.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                sink.lock().extend_from_slice(&buffer[..count]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, writer, seen, tty }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock()).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        eventually(PATIENCE, || {
            let seen = self.text();
            if seen.contains(text) { Ok(()) } else { Err(format!("no {text:?} in {seen:?}")) }
        });
    }

    fn type_in(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).unwrap();
        self.writer.flush().unwrap();
    }

    fn is_cooked(&self) -> bool {
        tcgetattr(&self.tty).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    #[track_caller]
    fn wait_end(&mut self) -> u32 {
        let (child, seen) = (&mut self.child, &self.seen);
        eventually(PATIENCE, || match child.try_wait() {
            Ok(Some(status)) => Ok(status.exit_code()),
            other => Err(format!("{other:?}: {}", String::from_utf8_lossy(&seen.lock()))),
        })
    }
}

#[test]
fn a_terminal_with_its_size_its_changes_and_ctrl_c() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let mut client = AtTerminal::start(&bed, &["exec", "--pty", "--", &helper("tty-probe")]);
    client.wait_for("tty [true, true, true] size 100x40");
    assert!(!client.is_cooked(), "the client's terminal is raw meanwhile");
    client.master.resize(PtySize { rows: 24, cols: 133, ..SIZE }).unwrap();
    client.wait_for("winch 133x24");
    client.type_in(b"\x03");
    client.wait_for("interrupted");
    assert_eq!(client.wait_end(), 9);
    assert!(client.is_cooked(), "raw mode was left behind");
}

#[test]
fn a_shell_in_a_terminal() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let script = "stty size; trap 'echo trapped; exit 9' INT; echo up; while :; do sleep 0.1; done";
    let mut client = AtTerminal::start(&bed, &["exec", "--pty", "--shell", "--", script]);
    client.wait_for("40 100");
    client.wait_for("up");
    client.type_in(b"\x03");
    client.wait_for("trapped");
    assert_eq!(client.wait_end(), 9);
}

#[test]
fn the_tail_of_a_terminal_is_not_lost() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    // No line end conversion, so that the bytes compare.
    let script = format!("stty -opost; exec {} 20480", helper("emit"));
    for _ in 0..10 {
        let mut client = AtTerminal::start(&bed, &["exec", "--pty", "--shell", "--", &script]);
        assert_eq!(client.wait_end(), 0);
        let wanted = String::from_utf8(pattern(20_480)).unwrap();
        eventually(PATIENCE, || {
            let seen = client.text();
            // The client's own terminal may add carriage returns while cooked.
            let seen = seen.replace('\r', "");
            if seen == wanted { Ok(()) } else { Err(format!("{} of 20480 bytes", seen.len())) }
        });
    }
}

#[test]
fn tilde_dot_leaves_and_the_end_of_input_is_typed() {
    let bed = TestBed::new();
    let _node = bed.node("n");
    let mut client = AtTerminal::start(&bed, &["exec", "--pty", "--", "cat"]);
    // Typed ahead: it reaches the command whenever that is there.
    client.type_in(b"hello\r");
    client.wait_for("hello\r\nhello\r\n");
    client.type_in(b"\x04");
    assert_eq!(client.wait_end(), 0);

    let id = bed.exec(["--detach", "--pty", "--", "cat"]).ok().stdout_text().trim().to_owned();
    let mut guest = AtTerminal::start(&bed, &["attach", "--stdin", &id]);
    guest.type_in(b"there\r");
    guest.wait_for("there\r\nthere\r\n");
    guest.type_in(b"\r~.");
    assert_eq!(guest.wait_end(), 0);
    assert!(guest.is_cooked(), "raw mode was left behind");
    let listed = bed.gateway_cli(["sessions"]).ok().stdout_text();
    assert!(listed.contains("running"), "it goes on: {listed}");
}
