//! Terminals.

use bytes::Bytes;
use node_host::process::Mode;
use node_host::sessions::StartRequest;
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, descriptors_of, eventually, stat};
use crate::cases::{IDLE_TICKS, ticks_of};

pub(crate) const CASES: &[Case] = &[
    ("terminal::is_one_and_has_a_size", size),
    ("terminal::pipes_are_none", no_terminal),
    ("terminal::resize_is_heard", resize),
    ("terminal::ctrl_c_reaches_the_trap", ctrl_c),
    ("terminal::echo_and_end_of_input", echo_and_eof),
    ("terminal::no_tail_is_lost", tail),
    ("terminal::closing_types_nothing", types_nothing),
    ("terminal::one_that_nobody_has_open_can_be_opened_again", reopened),
    ("terminal::a_grandchild_does_not_keep_it", grandchild),
];

fn pty(request: &mut StartRequest) {
    request.mode = Mode::TERMINAL;
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).replace('\r', "")
}

fn write(bed: &Bed, session: &node_host::sessions::Session, bytes: &'static [u8]) {
    bed.runtime.block_on(session.write_stdin(Bytes::from_static(bytes))).unwrap();
}

fn size(bed: &mut Bed) {
    let (exit, output) =
        bed.run("stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; echo $TERM", pty);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(text(&output), "30 120\ntty\nxterm-256color\n");
    let (_, output) = bed.run("echo $TERM; ps -o tty= -p $$", |r| {
        pty(r);
        r.env.push((b"TERM".to_vec(), b"vt100".to_vec()));
    });
    assert!(text(&output).starts_with("vt100\npts/"), "{:?}", text(&output));
    let (exit, _) = bed.run("exit 7", pty);
    assert_eq!(exit.ended, Ended::Died(Death::Code(7)));
}

fn no_terminal(bed: &mut Bed) {
    let (_, output) = bed.run("test -t 0 || test -t 1 || (: </dev/tty) 2>/dev/null || echo none", |_| {});
    assert_eq!(output, b"none\n");
}

fn resize(bed: &mut Bed) {
    let script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done";
    let session = bed.start(script, pty);
    bed.read_until(&session, "ready");
    bed.runtime.block_on(session.resize(100, 40)).unwrap();
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(text(&output), "ready\n40 100\n");
}

fn ctrl_c(bed: &mut Bed) {
    let session = bed.start("trap 'exit 9' INT; echo ready; while :; do sleep 0.02; done", pty);
    bed.read_until(&session, "ready");
    write(bed, &session, b"\x03");
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(9)));
    assert!(text(&output).contains("^C"), "{:?}", text(&output));
    let session = bed.start("trap 'exit 9' INT; echo ready; while :; do sleep 0.02; done", pty);
    bed.read_until(&session, "ready");
    bed.runtime.block_on(session.signal(2)).unwrap();
    assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Code(9)));
}

fn echo_and_eof(bed: &mut Bed) {
    let session = bed.start("cat; echo done", pty);
    write(bed, &session, b"hello\n");
    bed.read_until(&session, "hello\r\nhello\r\n");
    bed.runtime.block_on(session.close_stdin()).unwrap();
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert!(text(&output).ends_with("done\n"));
}

fn tail(bed: &mut Bed) {
    let word = "y".repeat(20_480);
    for _ in 0..50 {
        let (_, output) = bed.run(&format!("/bin/echo -n {word}"), pty);
        assert_eq!(output.len(), 20_480);
    }
}

fn types_nothing(bed: &mut Bed) {
    let dir = tempfile::tempdir().unwrap();
    let session = bed.start("exec >typed; echo ready >/dev/tty; cat", |r| {
        pty(r);
        r.cwd = dir.path().to_owned();
    });
    bed.read_until(&session, "ready");
    write(bed, &session, b"touch planted");
    bed.read_until(&session, "touch planted");
    bed.runtime.block_on(session.kill(std::time::Duration::ZERO)).unwrap();
    let (exit, output) = bed.end_of(&session);
    assert!(exit.cancelled);
    assert_eq!(text(&output), "ready\ntouch planted");
    assert_eq!(std::fs::read(dir.path().join("typed")).unwrap(), b"");
}

fn reopened(bed: &mut Bed) {
    // What a program does that logs into a file and asks for a password.
    let script = "echo up; exec </dev/null >/dev/null 2>&1; sleep 2; exec </dev/tty >/dev/tty; \
                  echo password; read word; echo got $word";
    let session = bed.start(script, pty);
    bed.read_until(&session, "up");
    let (_, holder) = stat(session.info().pid.unwrap()).unwrap();
    let before = ticks_of(holder);
    bed.read_until(&session, "password");
    let spent = ticks_of(holder) - before;
    assert!(spent < IDLE_TICKS, "{spent} ticks");
    assert!(session.info().stdin_open);
    write(bed, &session, b"swordfish\n");
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(text(&output), "up\npassword\nswordfish\ngot swordfish\n");
}

fn grandchild(bed: &mut Bed) {
    let before = descriptors_of(bed.launcher_pid);
    let (exit, output) = bed.run("trap '' HUP; sleep 387 & echo done", pty);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(text(&output), "done\n");
    assert!(exit.duration_ms < 3000 && exit.leftovers_killed == 1, "{exit:?}");
    eventually("the descriptors' return", || (descriptors_of(bed.launcher_pid) <= before).then_some(()));
}
