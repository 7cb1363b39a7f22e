//! An agent in front of a program in a terminal.

use std::fmt;
use std::time::Instant;

use e2e::{Answer, Desk, PATIENCE};
use serde_json::{Value, json};

/// What stands before the cursor of a [`Seat::shell`] that waits for a command.
pub(super) const PROMPT: &str = "ready>";

/// A program in a terminal, and the agent that uses it.
pub(super) struct Seat<'a> {
    desk: &'a Desk,
    pub(super) id: String,
}

/// What a person would see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) lines: Vec<String>,
    /// Row and column, from 0.
    pub(super) cursor: (u64, u64),
    pub(super) alternate: bool,
    /// Columns and rows.
    pub(super) size: (u64, u64),
    /// What was written behind this is not on it.
    offset: u64,
    running: bool,
}

impl<'a> Seat<'a> {
    /// Starts a command in a terminal of 120 columns and 30 rows, in the directory of the bed.
    #[track_caller]
    pub(super) fn at(desk: &'a Desk, command: &str) -> Self {
        let more = json!({ "pty": true, "workdir": desk.bed.path("").display().to_string() });
        Self { desk, id: desk.tool.background(command, more) }
    }

    /// A shell with line editing that waits for a command.
    #[track_caller]
    pub(super) fn shell(desk: &'a Desk) -> Self {
        let prompt = format!("HISTFILE=/dev/null PS1='{PROMPT} ' exec bash --norc --noprofile -i");
        let shell = Self::at(desk, &prompt);
        shell.until("a prompt", Screen::prompts);
        shell
    }

    /// A call of `process` that works.
    #[track_caller]
    pub(super) fn does(&self, action: &str, more: Value) -> Answer {
        let answer = self.desk.tool.process(action, &self.id, more);
        assert!(answer["error"].is_null() && !answer.is_error, "{action}: {answer:?}");
        answer
    }

    #[track_caller]
    pub(super) fn keys(&self, keys: &[&str]) {
        let sent = self.does("send-keys", json!({ "keys": keys }));
        assert_eq!(sent["warnings"], json!([]), "{sent:?}");
    }

    /// Types text as it is.
    #[track_caller]
    pub(super) fn types(&self, text: &str) {
        self.does("send-keys", json!({ "literal": text }));
    }

    /// Types text and Enter.
    #[track_caller]
    pub(super) fn enters(&self, text: &str) {
        self.does("send-keys", json!({ "literal": text, "keys": ["Enter"] }));
    }

    #[track_caller]
    pub(super) fn pastes(&self, text: &str) -> Answer {
        self.does("paste", json!({ "text": text }))
    }

    #[track_caller]
    pub(super) fn screen(&self) -> Screen {
        let screen = self.does("screen", json!({}));
        let lines = screen["lines"].as_array().unwrap();
        Screen {
            lines: lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect(),
            cursor: (screen["cursor"]["row"].as_u64().unwrap(), screen["cursor"]["column"].as_u64().unwrap()),
            alternate: screen["alternateScreen"].as_bool().unwrap(),
            size: (screen.number("cols"), screen.number("rows")),
            offset: screen.number("nextOffset"),
            running: screen["status"] == "running",
        }
    }

    /// Looks at the screen each time that the program wrote something, until it is as it should be.
    #[track_caller]
    pub(super) fn until(&self, what: &str, enough: impl Fn(&Screen) -> bool) -> Screen {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if enough(&screen) {
                return screen;
            }
            assert!(screen.running && Instant::now() < give_up, "never {what}: {screen}");
            self.does("wait", json!({ "offset": screen.offset, "bytes": 1, "timeout": 5000 }));
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) -> Screen {
        self.until(&format!("{text:?}"), |screen| screen.has(text))
    }

    /// Waits until the program reads its terminal.
    #[track_caller]
    pub(super) fn reads(&self) {
        let reads = self.does("wait", json!({ "input": true, "timeout": 30_000 }));
        assert_eq!(reads["reason"], "input", "{reads:?}");
    }

    /// Waits for the end; yields all of the output as text.
    #[track_caller]
    pub(super) fn ended(&self, code: i32) -> String {
        let ended = self.desk.tool.end(&self.id);
        ended.has(json!({ "status": "completed", "exitCode": code }));
        ended.string("aggregated").to_owned()
    }

    /// Every byte so far.
    #[track_caller]
    pub(super) fn raw(&self) -> Vec<u8> {
        let end = self.screen().offset;
        self.desk.tool.raw(&self.id, 0, end)
    }
}

impl Screen {
    pub(super) fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// How many rows are exactly this.
    pub(super) fn count(&self, row: &str) -> usize {
        self.lines.iter().filter(|line| *line == row).count()
    }

    pub(super) fn row(&self, row: usize) -> &str {
        self.lines.get(row).map_or("", String::as_str)
    }

    /// The row of the cursor.
    pub(super) fn at_cursor(&self) -> &str {
        self.row(self.cursor.0 as usize)
    }

    /// A [`Seat::shell`] waits for a command.
    pub(super) fn prompts(&self) -> bool {
        self.at_cursor() == PROMPT
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, cursor at {:?}, running: {}", self.size, self.cursor, self.running)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "| {line}"))
    }
}

/// Whether a program is not on this machine; a story about it has nothing to show then.
pub(super) fn missing(program: &str) -> bool {
    let dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = dirs.iter().any(|dir| std::path::Path::new(dir).join(program).exists());
    if !found {
        println!("skipped: {program} is not installed");
    }
    !found
}
