//! Whether there is a terminal, how large it is, what it echoes, and what is left of it.

use e2e::{Desk, PATIENCE, eventually, helper};
use serde_json::json;

use super::{Seat, Viewer};

/// F153.
#[test]
fn a_terminal_has_a_size_and_gets_another_one() {
    let desk = Desk::new();
    let bash = Seat::shell(&desk);
    bash.enters("trap 'echo changed' WINCH; stty size");
    bash.until("the first size", |screen| screen.count("30 120") == 1 && screen.prompts());
    bash.does("resize", json!({ "cols": 100, "rows": 40 }));
    bash.enters("stty size");
    let screen = bash.until("the second size", |screen| screen.count("40 100") == 1 && screen.prompts());
    assert_eq!(screen.size, (100, 40));
    assert!(screen.has("changed"), "{screen}");

    let probe = Seat::at(&desk, &format!("exec {}", helper("tty-probe")));
    probe.shows("tty [true, true, true] size 120x30");
    probe.does("resize", json!({ "cols": 133, "rows": 50 }));
    probe.shows("winch 133x50");
    probe.does("signal", json!({ "signal": "INT" }));
    probe.ended(9);

    let size = desk.tool.exec("stty size", json!({ "pty": true, "cols": 80, "rows": 24 }));
    size.has(json!({ "status": "completed", "aggregated": "24 80" }));
}

/// F160.
#[test]
fn there_is_a_terminal_exactly_where_it_was_asked_for() {
    let desk = Desk::new();
    let command = "for n in 0 1 2; do test -t $n && echo tty || echo none; done";
    for (pty, wanted) in [(true, "tty\ntty\ntty\n"), (false, "none\nnone\nnone\n")] {
        let front = desk.tool.exec(command, json!({ "pty": pty }));
        front.has(json!({ "status": "completed", "exitCode": 0, "aggregated": wanted.trim_end() }));
        let behind = desk.tool.background(command, json!({ "pty": pty }));
        desk.tool.end(&behind).has(json!({ "status": "completed", "exitCode": 0, "aggregated": wanted }));
    }
}

/// F158: what is typed is echoed into the log, unless the program switches that off.
#[test]
fn what_is_typed_is_echoed_unless_the_program_says_no() {
    let desk = Desk::new();
    let secret = "pw123-hidden";
    let open = Seat::at(&desk, "read -r x; echo got ${#x}");
    open.reads();
    open.does("write", json!({ "data": format!("{secret}\n") }));
    assert_eq!(open.ended(0), format!("{secret}\ngot 12\n"));

    let closed = Seat::at(&desk, "stty -echo; read -r x; stty echo; echo got ${#x}");
    closed.reads();
    closed.does("write", json!({ "data": format!("{secret}\n") }));
    assert_eq!(closed.ended(0), "got 12\n");
    assert!(!closed.raw().windows(secret.len()).any(|part| part == secret.as_bytes()));
}

/// Switches on what full-screen programs do, and leaves it on.
const LEAVES: &str =
    r#"printf '\033[?1049h\033[>1u\033[?1h\033[?25l\033[?1002;1006h\033[?2004hleft on'; sleep 300"#;

/// What must have come to the person's terminal at the end.
const RESTORED: [&[u8]; 6] =
    [b"\x1b[?1049l", b"\x1b[<u", b"\x1b[?1l", b"\x1b[?25h", b"\x1b[?1002l", b"\x1b[?2004l"];

/// Waits until all of it came behind `left on`.
#[track_caller]
fn is_restored(person: &Viewer) {
    let has = |seen: &[u8], sequence: &[u8]| seen.windows(sequence.len()).any(|part| part == sequence);
    eventually(PATIENCE, || {
        let seen = person.seen();
        let at = seen.windows(7).position(|part| part == b"left on").unwrap();
        let missing = RESTORED.iter().filter(|sequence| !has(&seen[at..], sequence));
        let missing: Vec<_> = missing.map(|sequence| sequence.escape_ascii().to_string()).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("missing: {missing:?}")) }
    });
}

/// F161: whoever looks on gets a usable terminal back, however it ends.
#[test]
fn modes_that_were_left_on_end_with_the_view() {
    let desk = Desk::new();
    // The command is killed.
    let program = Seat::at(&desk, LEAVES);
    let mut person = Viewer::attach(&desk.bed, &[&program.id, "--stdin"], b"");
    person.wait_for(b"left on");
    program.does("signal", json!({ "signal": "KILL" }));
    assert_eq!(person.wait_end(), 137);
    is_restored(&person);

    // The person leaves.
    let program = Seat::at(&desk, LEAVES);
    let mut person = Viewer::attach(&desk.bed, &[&program.id, "--stdin"], b"");
    person.wait_for(b"left on");
    person.types(b"\r~.");
    assert_eq!(person.wait_end(), 0);
    is_restored(&person);
}

/// F161 for one who only looks.
#[test]
fn modes_that_were_left_on_end_with_a_view_without_input() {
    let desk = Desk::new();
    let program = Seat::at(&desk, LEAVES);
    let mut person = Viewer::attach(&desk.bed, &[&program.id], b"");
    person.wait_for(b"left on");
    program.does("signal", json!({ "signal": "KILL" }));
    assert_eq!(person.wait_end(), 137);
    is_restored(&person);
}
