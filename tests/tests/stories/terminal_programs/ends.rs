//! The last bytes of a terminal, and when it is over.

use std::sync::atomic::{AtomicBool, Ordering};

use e2e::{Desk, PATIENCE, eventually, proc};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Seat;

/// F104.
#[test]
fn the_tail_of_a_terminal_is_not_lost() {
    let desk = Desk::new();
    let text: String = ('a'..='z').cycle().take(20 * 1024).collect();
    for round in 0..50 {
        let ended = desk.tool.exec(&format!("exec /bin/echo -n {text}"), json!({ "pty": true }));
        ended.has(json!({ "status": "completed", "exitCode": 0, "outputBytes": text.len(), "omitted": [] }));
        assert!(ended["aggregated"] == text, "round {round}: {ended:?}");
    }
}

/// F144: the end of a terminal is an error of the system, and none of the command.
#[test]
fn the_end_of_a_terminal_is_no_error() {
    let desk = Desk::new();
    let ended = desk.tool.exec("printf x", json!({ "pty": true }));
    ended.has(json!({ "status": "completed", "exitCode": 0, "exitReason": "exit", "aggregated": "x" }));
}

/// F145: signals that interrupt the holder's reads and writes cost no byte.
#[test]
fn a_storm_of_signals_costs_nothing() {
    const LINES: u64 = 300;
    let desk = Desk::new();
    // Children of the command that end all the time, and signals from outside.
    let command = "(trap 'exit 0' TERM; while :; do /bin/true; done) & stty -echo; cat; kill $!";
    let started = desk.tool.exec(command, json!({ "pty": true, "background": true }));
    let id = started.session();
    let shell = proc::of(u32::try_from(started.number("pid")).unwrap()).unwrap();
    let holder = Pid::from_raw(i32::try_from(shell.parent).unwrap()).unwrap();
    let over = AtomicBool::new(false);
    let wanted: Vec<String> = (0..LINES).map(|n| format!("line {n}")).collect();
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) && kill_process(holder, Signal::CHILD).is_ok() {
                std::thread::yield_now();
            }
        });
        // The storm must end, whatever else fails.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&over);
        let reads = desk.tool.process("wait", &id, json!({ "input": true }));
        assert_eq!(reads["reason"], "input", "{reads:?}");
        for ten in wanted.chunks(10) {
            let typed = desk.tool.process("write", &id, json!({ "data": ten.join("\n") + "\n" }));
            assert!(typed["error"].is_null(), "{typed:?}");
        }
        desk.tool.process("write", &id, json!({ "eof": true }));
        desk.tool.end(&id)
    });
    output.has(json!({ "status": "completed", "exitCode": 0 }));
    let lines: Vec<&str> = output.string("aggregated").lines().collect();
    assert_eq!(lines, wanted);
}

/// F147: what hangs on to the terminal does not keep its session.
#[test]
fn a_grandchild_does_not_hold_the_terminal() {
    let desk = Desk::new();
    let sleep = desk.unique(300);
    let command = format!("(trap '' HUP; exec sleep {sleep}) & echo done");
    let ended = desk.tool.exec(&command, json!({ "pty": true, "yieldMs": 30_000 }));
    ended.has(json!({ "status": "completed", "exitCode": 0, "aggregated": "done" }));
    assert!(ended.number("durationMs") < 10_000, "{ended:?}");
    eventually(PATIENCE, || match proc::with_argument(&sleep).as_slice() {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

/// F156.
#[test]
fn the_end_of_input_in_the_middle_of_a_line() {
    let desk = Desk::new();
    let cat = Seat::at(&desk, "cat; echo over");
    cat.reads();
    cat.does("write", json!({ "data": "abc", "eof": true }));
    assert_eq!(cat.ended(0), "abcabcover\n");

    // By key, the first one hands over the line and the second one ends.
    let cat = Seat::at(&desk, "cat; echo over");
    cat.reads();
    cat.types("abc");
    cat.keys(&["C-d"]);
    cat.shows("abcabc");
    cat.keys(&["C-d"]);
    assert_eq!(cat.ended(0), "abcabcover\n");

    // An ordinary line is behind it already.
    let cat = Seat::at(&desk, "stty -echo; cat; cat");
    cat.reads();
    cat.does("write", json!({ "data": "one\n", "eof": true }));
    cat.reads();
    cat.does("write", json!({ "data": "two\n", "eof": true }));
    assert_eq!(cat.ended(0), "one\ntwo\n");
}
