//! A shell with line editing and jobs.

use e2e::{Desk, PATIENCE, eventually, proc};
use serde_json::json;

use super::Seat;
use super::seat::{PROMPT, Screen};

/// The one process with this argument.
#[track_caller]
fn process(argument: &str) -> u32 {
    eventually(PATIENCE, || match proc::with_argument(argument).as_slice() {
        [one] => Ok(one.pid),
        other => Err(format!("{other:?}")),
    })
}

#[test]
fn a_line_is_edited_recalled_and_completed() {
    let desk = Desk::new();
    std::fs::write(desk.bed.path("wanted-file.txt"), "what it holds\n").unwrap();
    let bash = Seat::shell(&desk);
    bash.enters("echo one-$((1 + 1))");
    bash.shows("one-2");
    bash.until("the next prompt", Screen::prompts);
    bash.keys(&["Up", "Enter"]);
    bash.until("both", |screen| screen.count("one-2") == 2 && screen.prompts());
    // Beginning of the line, its end, back a word, and the rest of it cut off.
    bash.types("cho mid");
    bash.keys(&["C-a", "e", "C-e", "d", "l", "e", "Enter"]);
    bash.until("an edited line", |screen| screen.count("middle") == 1 && screen.prompts());
    bash.types("echo kept dropped");
    bash.keys(&["M-b", "C-k", "Enter"]);
    bash.until("the cut line", |screen| screen.count("kept") == 1 && screen.prompts());
    bash.types("cat wanted-");
    bash.keys(&["Tab"]);
    bash.shows("cat wanted-file.txt");
    bash.keys(&["Enter"]);
    bash.until("the file", |screen| screen.count("what it holds") == 1 && screen.prompts());
    // The end of input at the start of a line leaves.
    bash.keys(&["C-d"]);
    bash.ended(0);
}

/// F154.
#[test]
fn pasted_lines_wait_for_enter_where_the_program_asked_for_brackets() {
    let desk = Desk::new();
    let bash = Seat::shell(&desk);
    let text = "echo one-$((1 + 1))\necho two-$((1 + 2))";
    assert_eq!(bash.pastes(text)["bracketed"], true);
    let screen = bash.shows("echo two-");
    assert!(!screen.has("one-2"), "{screen}");
    bash.does("submit", json!({}));
    bash.until("both answers", |screen| {
        screen.count("one-2") == 1 && screen.count("two-3") == 1 && screen.prompts()
    });

    // Without brackets the first line runs while the second one waits.
    let plain =
        bash.does("paste", json!({ "text": "echo a-$((1 + 1))\necho b-$((1 + 2))", "bracketed": false }));
    assert_eq!(plain["bracketed"], false);
    let second = format!("{PROMPT} echo b-$((1 + 2))");
    bash.until("half of it", |screen| screen.count("a-2") == 1 && screen.at_cursor() == second);
    bash.keys(&["Enter"]);
    bash.until("the rest", |screen| screen.count("b-3") == 1 && screen.prompts());

    // A text cannot close its brackets and run what follows.
    bash.pastes("echo safe\x1b[201~\necho escaped-$((3 + 3))\n");
    let screen = bash.shows("echo escaped-");
    assert!(!screen.has("escaped-6"), "{screen}");

    // The program that is in front never asked for them.
    let cat = Seat::at(&desk, "cat");
    cat.reads();
    assert_eq!(cat.pastes("here\n")["bracketed"], false);
    cat.until("the echo and the answer", |screen| screen.count("here") == 2);
    cat.keys(&["C-d"]);
    assert_eq!(cat.ended(0), "here\nhere\n");
}

/// F155.
#[test]
fn ctrl_c_interrupts_and_the_programs_own_code_is_told() {
    let desk = Desk::new();
    let bash = Seat::shell(&desk);
    let sleep = desk.unique(100);
    bash.enters(&format!("sleep {sleep}"));
    let pid = process(&sleep);
    bash.keys(&["C-c"]);
    bash.until("a prompt", |screen| screen.has("^C") && screen.prompts());
    assert!(!proc::is_alive(pid));
    bash.enters("echo code-$?");
    bash.shows("code-130");

    let trap = Seat::at(&desk, "trap 'exit 9' INT; echo up; while :; do sleep 0.1; done");
    trap.shows("up");
    trap.keys(&["C-c"]);
    assert_eq!(trap.ended(9), "up\n^C");
}

#[test]
fn a_job_is_stopped_and_goes_on() {
    let desk = Desk::new();
    let bash = Seat::shell(&desk);
    let sleep = desk.unique(200);
    bash.enters(&format!("sleep {sleep}"));
    let pid = process(&sleep);
    bash.keys(&["C-z"]);
    bash.until("a prompt", |screen| screen.has("Stopped") && screen.prompts());
    assert_eq!(proc::of(pid).unwrap().state, 'T');
    bash.enters("bg; echo done-$((2 + 2))");
    bash.shows("done-4");
    eventually(PATIENCE, || match proc::of(pid).map(|process| process.state) {
        Some('S') => Ok(()),
        state => Err(format!("{state:?}")),
    });
    bash.enters("fg");
    bash.until("the job in front", |screen| {
        screen.at_cursor() == "" && screen.count(&format!("sleep {sleep}")) == 1
    });
    assert!(proc::is_alive(pid), "it is the same process");
    bash.keys(&["C-c"]);
    bash.until("a prompt", Screen::prompts);
    assert!(!proc::is_alive(pid));
}
