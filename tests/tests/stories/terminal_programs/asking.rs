//! Programs that ask their terminal where the cursor is: somebody answers, and only once (runtime.md §3).

use e2e::Desk;

use super::{Seat, Viewer};

/// Waits for a key, asks, shows the answer, and whatever else comes before the next `q`.
const SCRIPT: &str = r#"#!/bin/bash
stty -echo raw
printf 'press a key.\r\n'
IFS= read -r -N 1 key
printf '\033[6n'
IFS= read -r -d R answer
printf 'answer %q.\r\n' "$answer"
IFS= read -r -d q rest
printf 'rest %q.\r\n' "$rest"
stty sane
"#;

/// Waits until the script asked and was answered.
fn answered<'a>(desk: &'a Desk, script: &str) -> Seat<'a> {
    let asks = Seat::at(desk, script);
    asks.shows("press a key.");
    asks.keys(&["x"]);
    asks.shows(r"answer $'\E[1;1'.");
    asks
}

/// Ends the script, to which nothing was typed that it did not ask for.
#[track_caller]
fn heard_no_more(asks: &Seat<'_>) {
    asks.ended(0);
    assert!(asks.screen().has("rest ''."), "{}", asks.screen());
}

#[test]
fn a_question_for_the_cursor_is_answered() {
    let desk = Desk::new();
    let asks = answered(&desk, &desk.bed.script("ask", SCRIPT));
    asks.keys(&["q"]);
    heard_no_more(&asks);
    // The log has the question, the text does not.
    assert_eq!(asks.raw().windows(4).filter(|four| four == b"\x1b[6n").count(), 1);
}

/// The terminal of a person who looks on answers as well: the program hears one of the two.
#[test]
fn a_question_is_not_answered_twice() {
    let desk = Desk::new();
    let asks = Seat::at(&desk, &desk.bed.script("ask", SCRIPT));
    let person = Viewer::attach(&desk.bed, &[&asks.id, "--stdin"], b"\x1b[7;7R");
    person.wait_for(b"press a key.");
    person.types(b"x");
    person.wait_for(b"answer ");
    // Behind all that the person's terminal said, on the same way.
    person.types(b"q");
    person.wait_for(b"rest ");
    heard_no_more(&asks);
}

/// What was asked before a person came is no question to their terminal.
#[test]
fn an_old_question_is_not_asked_again() {
    let desk = Desk::new();
    let asks = answered(&desk, &desk.bed.script("ask", SCRIPT));
    let person = Viewer::attach(&desk.bed, &[&asks.id, "--stdin"], b"\x1b[7;7R");
    person.wait_for(b"answer ");
    person.types(b"q");
    person.wait_for(b"rest ");
    heard_no_more(&asks);
}
