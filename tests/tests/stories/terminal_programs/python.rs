//! A dialogue with an interpreter.

use e2e::Desk;
use serde_json::json;

use super::{Seat, missing};

#[test]
fn python_answers() {
    if missing("python3") {
        return;
    }
    let desk = Desk::new();
    // Newer ones come with an editor of their own; the basic one is the same everywhere. In place of the shell, which
    // would take a Ctrl-C for itself as well.
    let python = Seat::at(&desk, "PYTHON_BASIC_REPL=1 PYTHON_HISTORY=/dev/null exec python3 -q");
    let prompts = || python.until("a prompt", |screen| screen.at_cursor() == ">>>");
    prompts();
    python.reads();
    python.enters("6 * 7");
    python.until("the answer", |screen| screen.count("42") == 1);
    prompts();
    python.pastes("def twice(x):\n    return x * 2\n");
    python.until("the next line of a block", |screen| screen.at_cursor() == "...");
    python.does("submit", json!({}));
    prompts();
    python.enters("twice('日本')");
    python.shows("'日本日本'");
    python.enters("input('name? ')");
    python.until("a question", |screen| screen.at_cursor() == "name?");
    python.enters("Zoë");
    python.shows("'Zoë'");
    python.enters("import time; print('go' + 'ing'); time.sleep(1000)");
    python.until("it busy", |screen| screen.count("going") == 1);
    python.keys(&["C-c"]);
    python.shows("KeyboardInterrupt");
    prompts();
    python.enters("exit(3)");
    python.ended(3);
}
