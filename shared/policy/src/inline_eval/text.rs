//! Texts that a shell reads, wherever they stand among the words of a command.
//!
//! A text that cannot be read may put together any program's name, so it counts as code itself.

use std::borrow::Cow;

use super::{
    InlineEval, Input, MAX_PAYLOADS, anywhere, find,
    scan::{STDIN, is_stdin},
};
use crate::{
    command::{
        Tag,
        kind::{Kind, ShellKind, kind_of},
        name::fold,
    },
    shell::{self, Dialect},
};

const UNREADABLE: &str = "unreadable text";

/// Where a text was found.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// What reads it.
    pub(super) program: &'a str,
    pub(super) dialect: Dialect,
    pub(super) input: Input,
    /// Texts around it.
    pub(super) depth: usize,
}

/// Code in the text that `words` begin with. The words after it may be its `"$@"`.
pub(super) fn in_text(words: &[String], place: Place<'_>) -> Option<InlineEval> {
    let (text, after) = words.split_first()?;
    match shell::read(text, place.dialect) {
        Ok(script) if place.depth < MAX_PAYLOADS => script
            .commands
            .iter()
            .find_map(|command| {
                let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
                let input = if command.join.is_pipe() { Input::Pipe } else { place.input };
                find(&words, input, place.depth + 1)
            })
            .or_else(|| anywhere("", after, place.input)),
        // One that lies too deep is not read either. An interpreter that is seen in it makes the better reason.
        _ => anywhere("", words, place.input).or_else(|| Some(unreadable(place.program))),
    }
}

/// Code in the text of `eval`, or of a shell whose use is held, such as `bash -lc text`. `argv` begins with its name.
pub(super) fn in_held(argv: &[String], input: Input, depth: usize) -> Option<InlineEval> {
    let (word, args) = argv.split_first()?;
    let program = &*fold(word);
    let place = |dialect| Place { program, dialect, input, depth };
    match kind_of(program)? {
        Kind::ShellWord(Tag::Eval) if !args.is_empty() => in_text(&[args.join(" ")], place(Dialect::Bash)),
        Kind::Shell(kind) => {
            let Some(option) = args.iter().position(|word| is_cluster(word, 'c')) else {
                // A dash alone ends the options.
                let script = args.iter().any(|word| word != "-" && is_stdin(word));
                return script.then(|| InlineEval { program: program.to_owned(), form: STDIN.to_owned() });
            };
            let after = args.get(option + 1..)?;
            let text = after.iter().position(|word| !word.starts_with(['-', '+']))?;
            let dialect = if kind == ShellKind::Posix { Dialect::Posix } else { Dialect::Bash };
            in_text(after.get(text..)?, place(dialect))
        }
        _ => None,
    }
}

/// Looks for unreadable texts where any word may be a program.
#[derive(Default)]
pub(super) struct Texts<'a> {
    /// What was seen last that reads a text.
    program: Cow<'a, str>,
    /// `-c` gives a text.
    command: bool,
    /// `-S` of `env` does.
    split: bool,
    /// Every word does.
    every: bool,
    /// An option came that a text follows.
    expected: bool,
}

impl<'a> Texts<'a> {
    pub(super) fn new(program: &'a str) -> Self {
        let mut texts = Self::default();
        texts.note(program);
        texts
    }

    /// The next word.
    pub(super) fn word(&mut self, word: &'a str) -> Option<InlineEval> {
        let option = word.starts_with(['-', '+']);
        let found = if option {
            self.attached(word).and_then(|text| self.judge(text))
        } else if std::mem::take(&mut self.expected) || self.every {
            self.judge(word)
        } else {
            None
        };
        self.note(word);
        found
    }

    fn note(&mut self, word: &'a str) {
        let name = fold(word);
        match &*name {
            "env" => self.split = true,
            "flock" | "runuser" | "script" | "su" => self.command = true,
            "parallel" | "watch" => self.every = true,
            _ if matches!(kind_of(&name), Some(Kind::Shell(_))) => self.command = true,
            _ => return,
        }
        self.program = name;
    }

    /// The text in an option, if any. Where the rest of a word may also be letters, the next word is a text too.
    fn attached(&mut self, word: &'a str) -> Option<&'a str> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, text) = match long.split_once('=') {
                Some((name, text)) => (name, Some(text)),
                None => (long, None),
            };
            let is = |full: &str| !name.is_empty() && full.starts_with(name);
            if self.split && is("split-string") || self.command && (is("command") || is("session-command")) {
                self.expected |= text.is_none();
                return text;
            }
            return None;
        }
        let letter = match (self.split && is_cluster(word, 'S'), self.command && is_cluster(word, 'c')) {
            (true, _) => 'S',
            (_, true) => 'c',
            _ => return None,
        };
        self.expected = true;
        word.split_once(letter).map(|(_, text)| text).filter(|text| !text.is_empty())
    }

    fn judge(&self, text: &str) -> Option<InlineEval> {
        // `env -S` ends words with `\_` too.
        let mut plain = text.replace("\\_", " ");
        if self.every {
            // The `{}` of `parallel` stands for an argument. What expands does so behind a letter as well.
            plain = plain.replace(['{', '}'], "x");
        }
        shell::read(&plain, Dialect::Bash).is_err().then(|| unreadable(&self.program))
    }
}

fn is_cluster(word: &str, letter: char) -> bool {
    word.strip_prefix(['-', '+']).is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

fn unreadable(program: &str) -> InlineEval {
    InlineEval { program: program.to_owned(), form: UNREADABLE.to_owned() }
}
