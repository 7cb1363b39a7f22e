//! One interpreter's arguments, word by word.

use std::borrow::Cow;

use super::{
    InlineEval, Input,
    rules::{Operand, Rule},
};

pub(super) const STDIN: &str = "standard input";
const PROGRAM: &str = "program text";
const COMMAND: &str = "command";

/// How far the arguments of an interpreter are read.
pub(super) struct Scan {
    name: &'static str,
    rule: &'static Rule,
    operands: usize,
    /// An option named the file that holds the program.
    has_file: bool,
    /// `--` was seen.
    ended: bool,
    /// No word was seen yet.
    fresh: bool,
    /// What the next word is, where it is the value of an option.
    value: Option<ValueOf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueOf {
    File,
    /// A long option without its dashes, as that of `-W` of `gawk`.
    Long,
    /// A setting, `name=value`.
    Setting,
    Other,
}

impl Scan {
    pub(super) const fn new(name: &'static str, rule: &'static Rule) -> Self {
        Self { name, rule, operands: 0, has_file: false, ended: false, fresh: true, value: None }
    }

    pub(super) fn is_of(&self, rule: &'static Rule) -> bool {
        std::ptr::eq(self.rule, rule)
    }

    /// The next word, where the words are its arguments for sure.
    pub(super) fn exactly(&mut self, word: &str) -> Option<InlineEval> {
        match self.value.take() {
            Some(value) => self.value_of(value, word),
            None => self.word(word),
        }
    }

    /// The next word, where words may be missing or belong to something else: it may also be no value.
    pub(super) fn loosely(&mut self, word: &str) -> Option<InlineEval> {
        let value = self.value.take();
        value.and_then(|value| self.value_of(value, word)).or_else(|| self.word(word))
    }

    fn value_of(&mut self, value: ValueOf, word: &str) -> Option<InlineEval> {
        match value {
            ValueOf::File if is_stdin(word) => self.found(STDIN),
            ValueOf::Long => self.option(2, word),
            ValueOf::Setting => self.setting(word),
            ValueOf::File | ValueOf::Other => None,
        }
    }

    /// Settings in a value, one on each line.
    fn setting(&self, value: &str) -> Option<InlineEval> {
        let names = value.lines().map(|line| line.split('=').next().unwrap_or_default().trim());
        let name = names.into_iter().find(|name| self.rule.settings.contains(name))?;
        self.found(&format!("{name}="))
    }

    /// After the last word.
    pub(super) fn end(&self, input: Input) -> Option<InlineEval> {
        let reads_input = match self.rule.operand {
            Operand::Script => self.operands == 0 && !self.has_file,
            Operand::Session => true,
            Operand::Program | Operand::Command | Operand::Ignored => false,
        };
        if input == Input::Pipe && reads_input { self.found(STDIN) } else { None }
    }

    fn word(&mut self, word: &str) -> Option<InlineEval> {
        let word = &*if self.rule.windows { windows_word(word) } else { Cow::Borrowed(word) };
        let fresh = std::mem::replace(&mut self.fresh, false);
        if fresh
            && self.rule.first_letters
            && let Some(letter) = word.chars().find(|&letter| self.rule.code.contains(letter))
            && !word.starts_with('-')
        {
            return self.found(&letter.to_string());
        }
        let dashes = word.bytes().take_while(|&byte| byte == b'-').count().min(2);
        let name = word.get(dashes..).unwrap_or_default();
        if dashes > 0 && !name.is_empty() && (!self.ended || self.rule.after_end) {
            return self.option(dashes, name);
        }
        if word == "--" && !self.ended {
            self.ended = true;
            return None;
        }
        self.operand(word)
    }

    fn option(&mut self, dashes: usize, name: &str) -> Option<InlineEval> {
        let rule = self.rule;
        let (key, value) = match name.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (name, None),
        };
        if dashes == 1
            && !rule.no_cluster.contains(&key)
            && let Some(found) = self.letters(name)
        {
            return Some(found);
        }
        if let Some(long) = rule.long.iter().find(|long| is_option(long, key)) {
            let full = long.replace('|', "");
            let full = if dashes == 1 && key.len() == 1 { key } else { &full };
            return self.found(&format!("{}{full}", if dashes == 1 { "-" } else { "--" }));
        }
        if rule.long_file.iter().any(|long| is_option(long, key)) {
            return self.file(value);
        }
        if rule.long_setting.contains(&key) {
            return self.setting_in(value);
        }
        if value.is_none() && rule.long_value.contains(&key) {
            self.value = Some(ValueOf::Other);
        }
        None
    }

    /// Letters behind one dash. Unknown ones are taken for options without a value: that finds more, not less.
    fn letters(&mut self, letters: &str) -> Option<InlineEval> {
        let rule = self.rule;
        for (at, letter) in letters.char_indices() {
            let rest = letters.get(at + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            if rule.code.contains(letter) {
                return self.found(&format!("-{letter}"));
            }
            if rule.file.contains(letter) {
                return self.file(rest);
            }
            if rule.as_long.contains(letter) {
                if let Some(rest) = rest {
                    return self.option(2, rest);
                }
                self.value = Some(ValueOf::Long);
                return None;
            }
            if rule.setting.contains(letter) {
                return self.setting_in(rest);
            }
            if rule.value.contains(letter) {
                self.value = rest.is_none().then_some(ValueOf::Other);
                return None;
            }
            if !rule.clusters || matches!(letter, ':' | '=') {
                return None;
            }
        }
        None
    }

    fn setting_in(&mut self, value: Option<&str>) -> Option<InlineEval> {
        if value.is_none() {
            self.value = Some(ValueOf::Setting);
        }
        self.setting(value?)
    }

    fn file(&mut self, value: Option<&str>) -> Option<InlineEval> {
        self.has_file = true;
        match value {
            Some(value) if is_stdin(value) => self.found(STDIN),
            Some(_) => None,
            None => {
                self.value = Some(ValueOf::File);
                None
            }
        }
    }

    fn operand(&mut self, word: &str) -> Option<InlineEval> {
        let rule = self.rule;
        let before = self.operands;
        self.operands += 1;
        match rule.operand {
            _ if before == 0 && rule.verbs.contains(&word) => self.found(word),
            // A program with verbs may have its script behind one.
            Operand::Script if before <= usize::from(!rule.verbs.is_empty()) && is_stdin(word) => {
                self.found(STDIN)
            }
            Operand::Program if before == 0 && !self.has_file => self.found(PROGRAM),
            Operand::Command => self.found(COMMAND),
            _ if rule.assigns => self.assignment(word),
            _ if rule.plus && word.starts_with('+') && !is_line_number(word) => self.found("+"),
            Operand::Script | Operand::Session | Operand::Program | Operand::Ignored => None,
        }
    }

    /// A variable of `make` that is a shell, its options, or holds what is expanded or run.
    fn assignment(&self, word: &str) -> Option<InlineEval> {
        let (name, value) = word.split_once('=')?;
        let runs = name.ends_with('!') || value.contains(['$', '`']);
        let name = name.trim_end_matches([':', '+', '?', '!']).trim();
        let special =
            matches!(name, "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS" | "GNUMAKEFLAGS" | "MAKEFILES" | "MAKE");
        if runs || special { self.found(&format!("{name}=")) } else { None }
    }

    // The last step of every path here, so that they read alike.
    #[allow(clippy::unnecessary_wraps)]
    fn found(&self, form: &str) -> Option<InlineEval> {
        Some(InlineEval { program: self.name.to_owned(), form: form.to_owned() })
    }
}

/// Whether `key` is `long` or an abbreviation of it. A bar in `long` ends the shortest one.
fn is_option(long: &str, key: &str) -> bool {
    let (least, rest) = long.split_once('|').unwrap_or((long, ""));
    key.strip_prefix(least).is_some_and(|more| rest.starts_with(more))
}

/// Whether a word names standard input, by whatever way to the file.
pub(super) fn is_stdin(word: &str) -> bool {
    if word == "-" {
        return true;
    }
    let mut parts = Vec::new();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    matches!(parts.as_slice(), [.., "dev", "stdin"] | [.., "dev", "fd", "0"])
        || matches!(parts.as_slice(), [.., "proc", _, "fd", "0"] | [.., "proc", _, "task", _, "fd", "0"])
}

/// Letter case does not matter there, and options may begin with a slash or with a dash of another kind.
fn windows_word(word: &str) -> Cow<'_, str> {
    let other_dash = ['/', '\u{2013}', '\u{2014}', '\u{2015}'];
    let plain = word.strip_prefix(other_dash).map_or(Cow::Borrowed(word), |rest| format!("-{rest}").into());
    plain.to_lowercase().into()
}

fn is_line_number(word: &str) -> bool {
    word.bytes().skip(1).all(|byte| byte.is_ascii_digit())
}
