//! When and how keys come to a program.

use std::time::Duration;

use e2e::{Desk, measured};
use serde_json::json;

use super::{Seat, Viewer};

/// Names an Escape that stands alone, and what came close behind one.
const ESCAPES: &str = r#"#!/bin/bash
stty -echo raw
printf 'up.\r\n'
while IFS= read -r -N 1 key; do
    if [ "$key" = $'\e' ]; then
        if IFS= read -r -t 0.25 -N 1 next; then printf 'alt %s.\r\n' "$next"; else printf 'escape.\r\n'; fi
    else
        printf 'key %s.\r\n' "$key"
    fi
done
"#;

/// F151.
#[test]
fn an_escape_is_apart_from_the_next_key() {
    let desk = Desk::new();
    let program = Seat::at(&desk, &desk.bed.script("escapes", ESCAPES));
    program.shows("up.");
    let (_, took) = measured(|| program.keys(&["Escape", "u"]));
    assert!(
        took >= Duration::from_millis(50),
        "without being asked, for a program that is quicker: {took:?}"
    );
    program.until("the letter", |screen| screen.has(" u."));
    program.does("send-keys", json!({ "keys": ["Escape", "v"], "delayMs": 1500 }));
    let screen = program.shows("key v.");
    assert_eq!(screen.at_cursor(), "", "{screen}");
    assert!(screen.lines.ends_with(&["escape.".to_owned(), "key v.".to_owned()]), "{screen}");
    // In separate calls.
    program.keys(&["Escape"]);
    program.until("a second Escape", |screen| {
        screen.lines.ends_with(&["key v.".to_owned(), "escape.".to_owned()])
    });
    program.keys(&["w"]);
    program.shows("key w.");
    // Alt is asked for by name.
    program.keys(&["M-x"]);
    program.shows("alt x.");
}

/// Draws slowly, and throws away what is typed meanwhile.
const MENU: &str = r#"#!/bin/bash
stty -echo
items=(one two three four)
at=0
draw() {
    printf 'at %s.\n' "${items[at]}"
    while IFS= read -rs -t 0.1 -N 1; do :; done
}
draw
while IFS= read -rs -N 1 key; do
    if [ "$key" = $'\e' ]; then
        IFS= read -rs -N 2 -t 1 key
        [ "$key" = '[B' ] && at=$((at + 1))
        draw
    elif [ "$key" = $'\n' ]; then
        printf 'chose %s.\n' "${items[at]}"
        exit 0
    fi
done
"#;

/// F152.
#[test]
fn keys_wait_for_each_other_where_a_program_draws_slowly() {
    let desk = Desk::new();
    let menu = Seat::at(&desk, &desk.bed.script("menu", MENU));
    menu.shows("at one.");
    menu.does("wait", json!({ "idleMs": 500, "timeout": 30_000 }));
    menu.does("send-keys", json!({ "keys": ["Down", "Down", "Enter"], "delayMs": 800 }));
    menu.ended(0);
    assert!(menu.screen().has("chose three."), "{}", menu.screen());
}

/// Cursor keys follow the mode that the program is in; one that said nothing is in normal mode.
#[test]
fn cursor_keys_follow_the_program() {
    let desk = Desk::new();
    let cat = Seat::at(&desk, "stty -icanon -echo; printf 'ready\\n'; cat -v");
    cat.shows("ready");
    cat.reads();
    cat.keys(&["Up", "Left", "Home", "C-Right", "F1", "PageUp", "Enter"]);
    cat.until("normal mode", |screen| screen.has("^[[A^[[D^[[1~^[[1;5C^[OP^[[5~"));

    let cat = Seat::at(&desk, "stty -icanon -echo; printf '\\033[?1hready\\n'; cat -v");
    cat.shows("ready");
    cat.reads();
    cat.keys(&["Up", "Left", "Home", "C-Right", "Enter"]);
    cat.until("application mode", |screen| screen.has("^[OA^[OD^[OH^[[1;5C"));

    let cat = Seat::at(&desk, "stty -icanon -echo; printf '\\033[?1h\\033[?1lready\\n'; cat -v");
    cat.shows("ready");
    cat.reads();
    cat.keys(&["Up", "End", "Enter"]);
    cat.until("normal mode", |screen| screen.has("^[[A^[[4~"));
}

/// F148: who goes away types nothing.
#[test]
fn leaving_types_nothing() {
    let desk = Desk::new();
    let bash = Seat::shell(&desk);
    let mut person = Viewer::attach(&desk.bed, &[&bash.id, "--stdin"], b"");
    person.wait_for(b"ready> ");
    person.types(b"touch planted");
    bash.shows("touch planted");
    person.kill();
    // The same for one who says so.
    let mut person = Viewer::attach(&desk.bed, &[&bash.id, "--stdin"], b"");
    person.wait_for(b"touch planted");
    person.types(b"-too\r~.");
    // The Enter was typed, by the person; what is behind it was not.
    assert_eq!(person.wait_end(), 0);
    bash.until("a prompt", |screen| screen.prompts());
    assert!(!desk.bed.path("planted").exists());
    assert!(desk.bed.path("planted-too").exists());
    bash.enters("echo still-$((1 + 1))");
    bash.shows("still-2");
}
