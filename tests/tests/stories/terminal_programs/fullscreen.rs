//! Programs that own the whole screen.

use e2e::Desk;
use serde_json::json;

use super::{Seat, missing};

#[test]
fn vim_writes_what_was_typed() {
    if missing("vim") {
        return;
    }
    let desk = Desk::new();
    let vim = Seat::at(&desk, "vim -u NONE -N -i NONE letter.txt");
    assert!(vim.shows("\"letter.txt\" [New]").alternate);
    vim.keys(&["i"]);
    vim.shows("-- INSERT --");
    vim.types("wörld 日本語 e\u{301} 👩\u{200d}🚀");
    vim.keys(&["Enter"]);
    vim.types("second");
    let screen = vim.shows("second");
    assert!(screen.row(0).starts_with("wörld 日本語 e\u{301}"), "{screen}");
    assert_eq!(screen.cursor, (1, 6), "{screen}");
    // The cursor keys of application mode, which vim switches on.
    vim.keys(&["Up", "Home"]);
    vim.types("Hello ");
    vim.shows("Hello wörld");
    vim.keys(&["Down", "End"]);
    vim.types(" line");
    vim.shows("second line");
    // An Escape and the command behind it are two keys, not one with Alt (F151).
    vim.keys(&["Escape", "o", "t", "h", "i", "r", "d"]);
    vim.shows("third");
    vim.keys(&["Escape", "u"]);
    vim.until("an undone line", |screen| !screen.has("third") && !screen.has("INSERT"));
    vim.enters(":set term?");
    vim.shows("term=xterm-256color");
    let raw = vim.raw();
    let switched = |sequence: &[u8]| raw.windows(sequence.len()).any(|part| part == sequence);
    assert!(switched(b"\x1b[?1h") && switched(b"\x1b[?1049h"), "{}", raw.escape_ascii());
    vim.enters(":wq");
    vim.ended(0);
    assert!(!vim.screen().alternate, "{}", vim.screen());
    assert_eq!(
        std::fs::read_to_string(desk.bed.path("letter.txt")).unwrap(),
        "Hello wörld 日本語 e\u{301} 👩\u{200d}🚀\nsecond line\n"
    );
}

#[test]
fn a_paste_in_vim_is_text_and_no_keys() {
    if missing("vim") {
        return;
    }
    let desk = Desk::new();
    let vim = Seat::at(&desk, "vim -u NONE -N -i NONE pasted.txt");
    vim.shows("\"pasted.txt\" [New]");
    vim.enters(":set autoindent");
    vim.keys(&["i"]);
    vim.shows("-- INSERT --");
    // With indentation by the editor, lines that are typed would walk to the right.
    let text = "if a:\n    if b:\n        c\n    d\n";
    assert_eq!(vim.pastes(text)["bracketed"], true);
    vim.until("the last line", |screen| screen.row(3) == "    d" && screen.cursor == (4, 0));
    vim.keys(&["Escape", "Z", "Z"]);
    vim.ended(0);
    assert_eq!(std::fs::read_to_string(desk.bed.path("pasted.txt")).unwrap(), format!("{text}\n"));
}

#[test]
fn less_pages_and_searches() {
    if missing("less") {
        return;
    }
    let desk = Desk::new();
    let lines: String = (1..=1000).map(|n| format!("line {n} of it\n")).collect();
    std::fs::write(desk.bed.path("long.txt"), lines).unwrap();
    let less = Seat::at(&desk, "less long.txt");
    let top = |line: u32| {
        let wanted = format!("line {line} of it");
        less.until(&wanted, |screen| screen.row(0) == wanted)
    };
    assert!(top(1).alternate);
    // A page is the screen but its last row.
    less.keys(&["PageDown"]);
    assert_eq!(top(30).row(28), "line 58 of it");
    less.keys(&["space"]);
    top(59);
    less.keys(&["PageUp"]);
    top(30);
    less.keys(&["Down", "Down", "Up"]);
    top(31);
    less.enters("/line 500 ");
    top(500);
    less.keys(&["n"]);
    less.shows("Pattern not found");
    less.keys(&["Enter", "G"]);
    let last = less.shows("(END)");
    assert_eq!((last.row(0), last.row(28)), ("line 972 of it", "line 1000 of it"), "{last}");
    less.keys(&["g"]);
    top(1);
    less.keys(&["q"]);
    less.ended(0);
    assert!(!less.screen().alternate);
}

/// F166: a text for a model holds no codes, the log has them all.
#[test]
fn top_is_readable_as_screen_and_as_text() {
    if missing("top") {
        return;
    }
    let desk = Desk::new();
    let top = Seat::at(&desk, "top -d 0.2");
    let screen = top.until("a header and a table", |screen| screen.has("load average") && screen.has("PID"));
    assert!(screen.row(0).starts_with("top - "), "{screen}");
    // Some more pictures of it.
    let seen = top.does("wait", json!({ "bytes": 20_000, "timeout": 60_000 }));
    assert_eq!(seen["reason"], "bytes", "{seen:?}");
    top.keys(&["q"]);
    top.ended(0);
    let raw = top.raw();
    // Later pictures leave out the rows that did not change.
    let log = top.does("log", json!({ "offset": 0, "maxChars": 100_000 }));
    let text = log.string("output");
    let codes = |text: &str| text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).count();
    assert!(text.contains("PID") && text.contains("load average"), "{text}");
    assert_eq!((codes(text), codes(&log.text)), (0, 0), "{text:?}");
    assert!(raw.len() > 20_000 && raw.starts_with(b"\x1b["), "{} bytes", raw.len());
    assert!(log.text.len() < raw.len(), "{} of {} bytes", log.text.len(), raw.len());
}
