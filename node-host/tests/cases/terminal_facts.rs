//! What is known of a terminal: its size, its modes, and who answers when it is asked.

use bytes::Bytes;
use node_host::process::Mode;
use node_host::process::wire::TerminalFacts;
use node_host::sessions::{Session, Sessions, StartRequest};
use session::modes::Modes;
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, limits, request, within};

pub(crate) const CASES: &[Case] = &[
    ("terminal_facts::size_and_modes_are_told", told),
    ("terminal_facts::the_last_state_is_told_before_the_end", last_state),
    ("terminal_facts::the_next_node_hears_them", next_node),
    ("terminal_facts::pipes_have_none", pipes),
    ("terminal_facts::cursor_queries_are_answered_on_request", answered),
    ("terminal_facts::answers_do_not_count_as_input", not_counted),
];

fn pty(request: &mut StartRequest) {
    request.mode = Mode::TERMINAL;
}

fn facts(cols: u16, rows: u16, modes: Modes) -> TerminalFacts {
    TerminalFacts { cols, rows, modes }
}

fn wait_for(bed: &Bed, session: &Session, wanted: &TerminalFacts) {
    let mut progress = session.progress();
    bed.runtime.block_on(within(async {
        loop {
            let seen = progress.borrow_and_update().terminal.clone();
            if seen.as_ref() == Some(wanted) {
                return;
            }
            if progress.changed().await.is_err() {
                panic!("it ended with {seen:?}");
            }
        }
    }));
}

fn told(bed: &mut Bed) {
    let script = "stty -echo; read x; printf '\\033[?2004h\\033[?1h\\033[?25l'; read x; \
                  printf '\\033[?10'; sleep 0.1; printf '49h'; read x; stty cols 90; \
                  printf '\\033[?2004l'; read x";
    let session = bed.start(script, pty);
    let go_on = || bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"\n"))).unwrap();
    wait_for(bed, &session, &facts(120, 30, Modes::default()));
    go_on();
    let mut modes = Modes {
        bracketed_paste: true,
        application_cursor: Some(true),
        cursor_hidden: true,
        ..Modes::default()
    };
    wait_for(bed, &session, &facts(120, 30, modes.clone()));
    bed.runtime.block_on(session.resize(100, 40)).unwrap();
    wait_for(bed, &session, &facts(100, 40, modes.clone()));
    go_on();
    modes.alternate_screen = true;
    wait_for(bed, &session, &facts(100, 40, modes.clone()));
    go_on();
    // The program set a size of its own.
    modes.bracketed_paste = false;
    wait_for(bed, &session, &facts(90, 40, modes));
    go_on();
    assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Code(0)));
}

fn last_state(bed: &mut Bed) {
    // Many changes in a burst, and the end right behind it.
    let script = "n=0; while [ $n -lt 500 ]; do printf '\\033[?2004h\\033[?1049h\\033[?2004l\\033[?1049l'; \
                  n=$((n+1)); done; printf '\\033[?1h\\033[?1000h'";
    for _ in 0..5 {
        let session = bed.start(script, pty);
        assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Code(0)));
        let modes = Modes { application_cursor: Some(true), mouse: true, ..Modes::default() };
        let last = session.progress().borrow().terminal.clone();
        assert_eq!(last, Some(facts(120, 30, modes)));
    }
}

fn next_node(bed: &mut Bed) {
    let deep = tempfile::tempdir().unwrap();
    let dir = deep.path().join("sessions");
    let open = |bed: &Bed| {
        let launcher = bed.spare_launcher();
        bed.runtime.block_on(Sessions::open(dir.clone(), launcher, limits())).unwrap()
    };
    let first = open(bed);
    let mut wanted = request(&["/bin/sh", "-c", "printf '\\033[?2004hup'; read x; exit 5"]);
    wanted.mode = Mode::Terminal { cols: 77, rows: 11 };
    let session = bed.runtime.block_on(first.start(wanted)).unwrap();
    bed.read_until(&session, "up");
    let id = session.id().clone();
    drop((first, session));

    let second = open(bed);
    let session = second.find(&id).unwrap();
    wait_for(bed, &session, &facts(77, 11, Modes { bracketed_paste: true, ..Modes::default() }));
    bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"\n"))).unwrap();
    assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Code(5)));
}

fn pipes(bed: &mut Bed) {
    let session = bed.start("printf '\\033[?2004h\\033[6n'", |r| r.answer_queries = true);
    assert_eq!(bed.end_of(&session).1, b"\x1b[?2004h\x1b[6n");
    assert_eq!(session.progress().borrow().terminal, None);
}

/// Asks for the cursor, reads what comes within half a second and shows it.
const ASK: &str = "stty raw -echo min 0 time 5; printf '\\033[6n\\033[6n'; \
                   got=$(dd bs=1 count=12 2>/dev/null | od -An -c | tr -s ' '); stty sane; echo \"<$got>\"";

fn answered(bed: &mut Bed) {
    for (answer, want) in [(true, "< 033 [ 1 ; 1 R 033 [ 1 ; 1 R>"), (false, "<>")] {
        let (exit, output) = bed.run(ASK, |r| {
            pty(r);
            r.answer_queries = answer;
        });
        assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains(want), "{output:?}");
    }
}

fn not_counted(bed: &mut Bed) {
    // More questions than may wait, to a program that does not read yet; then more input than one window holds.
    let script = "stty raw -echo; n=0; while [ $n -lt 500 ]; do printf '\\033[6n'; n=$((n+1)); done; echo up; \
                  sleep 0.3; head -c 600000 | tr -dc x | wc -c";
    let session = bed.start(script, |r| {
        pty(r);
        r.answer_queries = true;
    });
    bed.read_until(&session, "up");
    bed.runtime.block_on(within(session.write_stdin(Bytes::from(vec![b'x'; 600_000])))).unwrap();
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    let output = String::from_utf8_lossy(&output).into_owned();
    let typed: usize = output.rsplit("up").next().unwrap().trim().parse().unwrap();
    // Some of what `head` took were answers, 6 bytes each.
    assert!((596_000..600_000).contains(&typed), "{typed}");
}
