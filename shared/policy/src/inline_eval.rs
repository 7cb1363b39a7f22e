//! Code in the arguments of an interpreter (policy spec §5 and §11 gap 9).
//!
//! One table says which arguments of which program are code. The program is looked for behind transparent wrappers; behind
//! everything else that starts commands every later word may be one, so that more is found there than is true.

mod rules;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod text;

use scan::{STDIN, Scan, is_stdin};
use table::{Entry, entry_of};
use text::{Place, Texts, in_held, in_text};

use crate::command::{
    Form, ShellUse, Subject,
    kind::{Kind, Runner, kind_of},
    name::fold,
    read_command,
};

/// Most interpreters that a command may name where any word may be one; more are taken for code. It bounds the time.
const MAX_NAMED: usize = 8;

/// Texts of shells inside each other that are read; a deeper one is taken for code.
const MAX_PAYLOADS: usize = 2;

/// An interpreter that is given code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineEval {
    /// The interpreter, as the table names it.
    pub program: String,
    /// What gives it the code, such as `-c`.
    pub form: String,
}

/// How the command gets its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// From the command before it, or from the caller.
    Pipe,
    /// Otherwise.
    Other,
}

/// Looks for code in a command, also behind wrappers and carriers and in the text of a shell. The whole argv is scanned.
#[must_use]
pub fn find_inline_eval(argv: &[String], input: Input) -> Option<InlineEval> {
    find(argv, input, 0)
}

fn find(argv: &[String], input: Input, depth: usize) -> Option<InlineEval> {
    // A shell would take these for assignments, and so may whatever gets these words.
    let assignments = argv.iter().take_while(|word| is_assignment(word)).count();
    let argv = argv.get(assignments..)?;
    let kind = kind_of(&fold(argv.first()?));
    // An ordinary program, or an interpreter by its own name.
    if kind.is_none() {
        return of_program(argv, input);
    }
    // Which file a name stands for does not matter here.
    let started = read_command(argv, Form::Shell, &|_| true);
    let rest = argv.get(started.program..)?;
    match started.subject {
        Subject::Program => of_program(rest, input),
        Subject::Shell(ShellUse::Bare) => None,
        Subject::Shell(ShellUse::Script { at }) => is_stdin(argv.get(at)?).then(|| InlineEval {
            program: rest.first().map(|word| fold(word).into_owned()).unwrap_or_default(),
            form: STDIN.to_owned(),
        }),
        Subject::Shell(ShellUse::Payload { at, dialect }) => {
            let program = &*fold(rest.first()?);
            in_text(argv.get(at..)?, Place { program, dialect, input, depth })
        }
        Subject::Held(_) => of_program(rest, input)
            .or_else(|| in_held(rest, input, depth))
            .or_else(|| anywhere(rest.first()?, rest.get(1..)?, input)),
    }
}

/// A program and its arguments, with no wrapper before it.
fn of_program(argv: &[String], input: Input) -> Option<InlineEval> {
    let (word, args) = argv.split_first()?;
    match entry_of(word)? {
        (_, Entry::Carrier) => anywhere(word, args, input),
        (name, Entry::Interpreter(rule)) => {
            let mut scan = Scan::new(name, rule);
            let found = args.iter().find_map(|word| scan.exactly(word)).or_else(|| scan.end(input));
            found.or_else(|| starts_package(word, args).then(|| anywhere(word, args, input)).flatten())
        }
    }
}

/// Whether a package manager starts a command, which its arguments then hold.
fn starts_package(word: &str, args: &[String]) -> bool {
    match kind_of(&fold(word)) {
        Some(Kind::Runner(Runner::Npx)) => true,
        Some(Kind::Runner(_)) => args
            .iter()
            .any(|word| matches!(word.as_str(), "dlx" | "exe" | "exec" | "explore" | "node" | "run" | "x")),
        _ => false,
    }
}

/// Takes every word for a program that may be started with the words after it, and text for words. `program` is what
/// they are given to.
fn anywhere(program: &str, words: &[String], input: Input) -> Option<InlineEval> {
    let mut scans: Vec<Scan> = Vec::new();
    let mut texts = Texts::new(program);
    for word in words {
        let found = visit(&mut scans, word)
            .or_else(|| attached(word).find_map(|name| note(&mut scans, name)))
            .or_else(|| is_text(word).then(|| text_words(word).find_map(|word| visit(&mut scans, &word)))?)
            .or_else(|| texts.word(word));
        if found.is_some() {
            return found;
        }
    }
    scans.iter().find_map(|scan| scan.end(input))
}

/// There are few scans, so the whole takes linear time.
fn visit(scans: &mut Vec<Scan>, word: &str) -> Option<InlineEval> {
    scans.iter_mut().find_map(|scan| scan.loosely(word)).or_else(|| note(scans, word))
}

/// Begins to scan the arguments of an interpreter, if the word names one.
fn note(scans: &mut Vec<Scan>, word: &str) -> Option<InlineEval> {
    let Some((name, Entry::Interpreter(rule))) = entry_of(word) else { return None };
    let new = Scan::new(name, rule);
    if let Some(scan) = scans.iter_mut().find(|scan| scan.is_of(rule)) {
        *scan = new;
    } else if scans.len() < MAX_NAMED {
        scans.push(new);
    } else {
        return Some(InlineEval { program: name.to_owned(), form: "many interpreters".to_owned() });
    }
    None
}

fn is_text(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";&|()<>{}$`'\"\\".contains(c))
        || (word.starts_with("--") && word.contains('='))
}

/// What may be the first word of the text in an option such as `-Stext`, `-vStext` or `-ctext`.
fn attached(word: &str) -> impl Iterator<Item = &str> {
    let text = word.split_once("\\_").map_or(word, |(first, _)| first);
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    let letters = first.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    (1..=4).filter_map(move |at| letters.get(at..)).filter(|text| !text.is_empty())
}

/// The words of a text that some shell, or `env -S`, splits; without quotes, and more than there are.
fn text_words(text: &str) -> impl Iterator<Item = String> {
    let breaks = |c: char| c.is_whitespace() || ";&|()<>{}$`=,".contains(c);
    // `\_` parts words for `env -S`.
    text.split("\\_")
        .flat_map(move |text| text.split(breaks))
        .map(|word| word.replace(['\'', '"', '\\'], ""))
        .filter(|word| !word.is_empty())
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
