//! One word: quotes, escapes, and what a shell would expand.

use super::{Lexer, Place};
use crate::shell::{Assignment, Dialect, Expansion, Label, Unreadable, Word};

/// A word as it was read, before the parser knows whether it assigns, runs or is passed on.
#[derive(Debug, Default)]
pub(in crate::shell) struct RawWord {
    /// Decoded.
    pub(in crate::shell) text: String,
    /// The first byte in the source.
    pub(in crate::shell) start: usize,
    /// The byte after the last.
    pub(in crate::shell) end: usize,
    /// Holds a quote or an escape: it is then no reserved word, whatever its text.
    pub(in crate::shell) quoted: bool,
    /// Holds an unquoted `*`, `?` or `[`.
    pub(in crate::shell) glob: bool,
    /// Holds an unquoted `{` or `}`.
    pub(in crate::shell) brace: bool,
    /// Holds an unquoted `~` where a shell looks for one.
    pub(in crate::shell) tilde: bool,
    /// Begins with an unquoted `~/`.
    pub(in crate::shell) home: bool,
    /// What stands before the first unquoted `=`, if that is a name.
    pub(in crate::shell) target: Option<Target>,
    /// An `=` was met; only the first can assign.
    equals: bool,
    /// The byte after the last unquoted `:`.
    after_colon: usize,
}

/// The left side of an assignment.
#[derive(Clone, Copy, Debug)]
pub(in crate::shell) struct Target {
    /// Bytes of the name, in the source as in the decoded text: it is unquoted.
    name: usize,
    /// `+=`.
    pub(in crate::shell) appends: bool,
}

impl Target {
    /// Bytes up to the value.
    const fn length(self) -> usize {
        self.name + if self.appends { 2 } else { 1 }
    }
}

impl RawWord {
    /// The word as a program or an argument.
    pub(in crate::shell) fn into_word(self) -> Word {
        // A tilde counts only alone, so that whoever puts the home directory there has the whole word.
        let expands = if self.glob {
            Some(Expansion::Glob)
        } else if self.brace {
            Some(Expansion::Brace)
        } else {
            self.tilde.then_some(Expansion::Tilde)
        };
        Word { text: self.text, span: self.start..self.end, expands }
    }

    /// The word as the assignment that `target` begins. A shell expands only tildes in a value.
    pub(in crate::shell) fn into_assignment(mut self, target: Target) -> Assignment {
        let value = Word {
            text: self.text.split_off(target.length()),
            span: self.start + target.length()..self.end,
            expands: self.tilde.then_some(Expansion::Tilde),
        };
        self.text.truncate(target.name);
        Assignment { name: self.text, value }
    }

    /// Takes note of an unquoted `=`, before it is part of the text.
    fn meet_equals(&mut self) {
        if self.equals || self.quoted {
            return;
        }
        self.equals = true;
        let (name, appends) = match self.text.strip_suffix('+') {
            Some(name) => (name, true),
            None => (self.text.as_str(), false),
        };
        let name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.bytes().next().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(name_byte) {
            self.target = Some(Target { name: name.len(), appends });
        }
    }

    /// Whether a shell takes a `~` at this byte for a home directory.
    fn expects_tilde(&self, at: usize) -> bool {
        at == self.start
            || self.target.is_some_and(|target| at == self.start + target.length() || at == self.after_colon)
    }
}

impl Lexer<'_> {
    /// Reads the word that begins here.
    pub(super) fn word(&mut self) -> Result<RawWord, Unreadable> {
        let mut word = RawWord { start: self.at, ..RawWord::default() };
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' => break,
                b'\'' => self.single_quoted(&mut word)?,
                b'"' => self.double_quoted(&mut word)?,
                b'\\' => self.escaped(&mut word)?,
                b'$' => self.dollar(&mut word, Quoting::None)?,
                b'`' => return Err(self.refused(Label::CommandSubstitution)),
                // A shell would keep the CR in the word, which no one who sends CR LF means.
                b'\r' if self.newline_at(0) => return Err(self.refused(Label::SyntaxError)),
                b'*' | b'?' | b'[' | b'{' | b'}' | b'~' | b'=' | b':' | b'\r' => self.mark(&mut word, byte),
                _ => word.text.push_str(self.skip(is_plain)),
            }
        }
        word.end = self.at;
        // Alone it is no pattern but the name of `test`, or an argument.
        word.glob &= word.quoted || word.text != "[";
        Ok(word)
    }

    /// An unquoted character that may mean something.
    fn mark(&mut self, word: &mut RawWord, byte: u8) {
        match byte {
            b'*' | b'?' | b'[' => word.glob = true,
            b'{' | b'}' => word.brace = true,
            b'=' => word.meet_equals(),
            b':' => word.after_colon = self.at + 1,
            b'~' if word.expects_tilde(self.at) => {
                word.tilde = true;
                word.home |= self.at == word.start && self.peek(1) == Some(b'/');
            }
            _ => {}
        }
        self.take(word);
    }

    fn single_quoted(&mut self, word: &mut RawWord) -> Result<(), Unreadable> {
        let opening = self.refused(Label::SyntaxError);
        word.quoted = true;
        self.at += 1;
        word.text.push_str(self.skip(|byte| byte != b'\''));
        self.peek(0).ok_or(opening)?;
        self.at += 1;
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut RawWord) -> Result<(), Unreadable> {
        let opening = self.refused(Label::SyntaxError);
        word.quoted = true;
        self.at += 1;
        loop {
            word.text.push_str(self.skip(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`')));
            match self.peek(0).ok_or(opening)? {
                b'\\' if self.newline_at(1) => return Err(self.refused(Label::LineContinuation)),
                b'\\' => {
                    if matches!(self.peek(1), Some(b'"' | b'\\' | b'$' | b'`')) {
                        self.at += 1;
                    }
                    self.take(word);
                }
                b'$' => self.dollar(word, Quoting::Double)?,
                b'`' => return Err(self.refused(Label::CommandSubstitution)),
                _ => {
                    self.at += 1;
                    return Ok(());
                }
            }
        }
    }

    /// A backslash outside quotes.
    fn escaped(&mut self, word: &mut RawWord) -> Result<(), Unreadable> {
        if self.newline_at(1) {
            return Err(self.refused(Label::LineContinuation));
        }
        let opening = self.refused(Label::SyntaxError);
        word.quoted = true;
        self.at += 1;
        self.peek(0).ok_or(opening)?;
        self.take(word);
        Ok(())
    }

    /// A `$` that is not in single quotes. Literal only where every shell takes it so.
    fn dollar(&mut self, word: &mut RawWord, quoting: Quoting) -> Result<(), Unreadable> {
        match self.peek(1) {
            Some(b'(') if self.peek(2) != Some(b'(') => Err(self.refused(Label::CommandSubstitution)),
            Some(b'\'') if quoting == Quoting::None && self.dialect == Dialect::Bash => {
                self.ansi_c_quoted(word)
            }
            Some(b'\'' | b'"') if quoting == Quoting::None => Err(self.dynamic(word)),
            Some(opening @ (b'(' | b'{' | b'[')) => Err(self.expansion(word, opening)),
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'_') => Err(self.dynamic(word)),
            // In some locales bash counts bytes above ASCII among the letters of a name.
            Some(byte) if byte.is_ascii_alphanumeric() || !byte.is_ascii() => Err(self.dynamic(word)),
            _ => {
                self.take(word);
                Ok(())
            }
        }
    }

    /// Why `${…}`, `$((…))` or bash's older `$[…]` cannot be read: a command inside it counts for more than the value.
    fn expansion(&self, word: &RawWord, opening: u8) -> Unreadable {
        let closing = match opening {
            b'(' => b')',
            b'{' => b'}',
            _ => b']',
        };
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let mut depth = 0_usize;
        let mut escaped = false;
        for (offset, &byte) in rest.iter().enumerate() {
            if escaped {
                escaped = false;
                continue;
            }
            let runs = byte == b'`'
                || byte == b'$' && rest.get(offset + 1) == Some(&b'(') && rest.get(offset + 2) != Some(&b'(');
            if runs {
                return Unreadable { label: Label::CommandSubstitution, at: self.at + offset };
            }
            escaped = byte == b'\\';
            if byte == opening {
                depth += 1;
            } else if byte == closing {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
        }
        self.dynamic(word)
    }

    /// Why a value that is known only when the text runs cannot be read.
    fn dynamic(&self, word: &RawWord) -> Unreadable {
        self.refused(match self.place {
            Place::Command if word.target.is_none() => Label::DynamicExecutable,
            Place::Command | Place::Argument => Label::DynamicArgument,
        })
    }

    /// The next character becomes part of the word as it is.
    fn take(&mut self, word: &mut RawWord) {
        if let Some(character) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            word.text.push(character);
            self.at += character.len_utf8();
        }
    }
}

/// What a `$` stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

/// Whether an unquoted byte is a character of a word and nothing else.
const fn is_plain(byte: u8) -> bool {
    !matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b'|'
            | b'&'
            | b';'
            | b'('
            | b')'
            | b'<'
            | b'>'
            | b'\''
            | b'"'
            | b'\\'
            | b'$'
            | b'`'
            | b'*'
            | b'?'
            | b'['
            | b'{'
            | b'}'
            | b'~'
            | b'='
            | b':'
    )
}
