//! Operators and words, one at a time.
//!
//! What is refused wherever it stands is refused here; whether a token may stand where it stands is for the parser.

mod ansi_c;
mod word;

pub(super) use word::RawWord;

use super::{Dialect, Label, Unreadable};

/// Where a word would stand. It decides how an expansion in it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the program is known: an assignment or the program itself.
    Command,
    /// After the program.
    Argument,
}

/// The next thing in a text.
#[derive(Debug)]
pub(super) enum Token {
    Word(RawWord),
    Newline,
    Semicolon,
    And,
    Or,
    Pipe,
    PipeBoth,
    Ampersand,
    Open,
    Close,
    End,
}

/// Walks through a text once, from the front to the back.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    dialect: Dialect,
    /// The next byte to read; always at the boundary of a character.
    at: usize,
    /// The first byte of the last token.
    start: usize,
    /// Where the current word stands.
    place: Place,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { text, dialect, at: 0, start: 0, place: Place::Command }
    }

    /// The first byte of the last token.
    pub(super) const fn start(&self) -> usize {
        self.start
    }

    /// Reads the next token; a word in it stands in `place`.
    pub(super) fn next(&mut self, place: Place) -> Result<Token, Unreadable> {
        self.skip_blanks()?;
        self.start = self.at;
        self.place = place;
        let Some(byte) = self.peek(0) else { return Ok(Token::End) };
        let (token, length) = match (byte, self.peek(1)) {
            (b'\n', _) => (Token::Newline, 1),
            (b';', _) => (Token::Semicolon, 1),
            (b'(', _) => (Token::Open, 1),
            (b')', _) => (Token::Close, 1),
            (b'|', Some(b'|')) => (Token::Or, 2),
            (b'|', Some(b'&')) if self.dialect == Dialect::Bash => (Token::PipeBoth, 2),
            // Two operators elsewhere, which no grammar has in a row.
            (b'|', Some(b'&')) => return Err(self.refused(Label::SyntaxError)),
            (b'|', _) => (Token::Pipe, 1),
            (b'&', Some(b'&')) => (Token::And, 2),
            (b'&', Some(b'>')) => return Err(self.refused(Label::Redirect)),
            (b'&', _) => (Token::Ampersand, 1),
            (b'<' | b'>', _) => return Err(self.refused(self.redirection())),
            _ => return self.word().map(Token::Word),
        };
        self.at += length;
        Ok(token)
    }

    /// Spaces, tabs, and a comment up to its newline. Called between words only: inside one, `#` is a character.
    fn skip_blanks(&mut self) -> Result<(), Unreadable> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.peek(0) != Some(b'#') {
            return Ok(());
        }
        let comment = self.skip(|byte| byte != b'\n');
        if comment.ends_with('\r') && self.peek(0).is_some() {
            return Err(Unreadable { label: Label::SyntaxError, at: self.at - 1 });
        }
        Ok(())
    }

    /// What the `<` or `>` at hand begins.
    fn redirection(&self) -> Label {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (_, Some(b'('), _) => Label::ProcessSubstitution,
            (Some(b'<'), Some(b'<'), Some(b'<')) => Label::HereString,
            (Some(b'<'), Some(b'<'), _) => Label::Heredoc,
            _ => Label::Redirect,
        }
    }

    /// The byte `ahead` bytes after the next one.
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Whether LF or CR LF stands `ahead` bytes after the next one.
    fn newline_at(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            Some(b'\n') => true,
            Some(b'\r') => self.peek(ahead + 1) == Some(b'\n'),
            _ => false,
        }
    }

    /// Skips bytes and yields what was skipped. `wanted` holds for every byte above ASCII or for none, so that no
    /// character is cut.
    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.bytes().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Why the byte at hand cannot be read.
    const fn refused(&self, label: Label) -> Unreadable {
        Unreadable { label, at: self.at }
    }
}
