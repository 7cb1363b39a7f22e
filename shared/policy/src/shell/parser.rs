//! Commands and how they join.
//!
//! The accepted grammar nests nothing, so one loop over the tokens is enough.

use super::lexer::{Lexer, Place, RawWord, Token};
use super::{Dialect, Join, Label, MAX_CHARS, MAX_COMMANDS, Script, SimpleCommand, Unreadable};

pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Script, Unreadable> {
    if let Some(at) = end_of_limit(text) {
        return Err(Unreadable { label: Label::TooLong, at });
    }
    // No argv can carry one, and what a shell does with it differs.
    if let Some(at) = text.bytes().position(|byte| byte == 0) {
        return Err(Unreadable { label: Label::SyntaxError, at });
    }
    let mut parser = Parser { lexer: Lexer::new(text, dialect) };
    let mut commands = Vec::new();
    let mut join = Join::Start;
    while let Some(first) = parser.first_word(join)? {
        let at = first.start;
        let (command, next) = parser.command(join, first)?;
        if commands.len() == MAX_COMMANDS {
            return Err(Unreadable { label: Label::TooLong, at });
        }
        commands.push(command);
        let Some(next) = next else { break };
        join = next;
    }
    if commands.iter().all(|command| command.words.is_empty()) {
        return Err(Unreadable { label: Label::NoCommands, at: 0 });
    }
    Ok(Script { commands })
}

/// The byte at which a text gets too long.
fn end_of_limit(text: &str) -> Option<usize> {
    if text.len() <= MAX_CHARS {
        return None;
    }
    text.char_indices().nth(MAX_CHARS).map(|(at, _)| at)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
}

impl Parser<'_> {
    /// The first word of the next command, past blank lines; none where the text may end and does.
    fn first_word(&mut self, join: Join) -> Result<Option<RawWord>, Unreadable> {
        loop {
            match self.lexer.next(Place::Command)? {
                Token::Word(word) => return Ok(Some(word)),
                Token::Newline => {}
                Token::End => {
                    return match join {
                        Join::Start | Join::Then => Ok(None),
                        Join::And | Join::Or | Join::Pipe | Join::PipeBoth => {
                            Err(self.refused(Label::Incomplete))
                        }
                    };
                }
                Token::Open => return Err(self.refused(Label::Subshell)),
                Token::Semicolon
                | Token::And
                | Token::Or
                | Token::Pipe
                | Token::PipeBoth
                | Token::Ampersand
                | Token::Close => return Err(self.refused(Label::SyntaxError)),
            }
        }
    }

    /// Reads one command up to and with the operator that ends it. Yields how the next one joins, if the text goes on.
    fn command(&mut self, join: Join, first: RawWord) -> Result<(SimpleCommand, Option<Join>), Unreadable> {
        let mut command = SimpleCommand {
            join,
            negated: false,
            assignments: Vec::new(),
            // Where a text is nothing but short commands, room for more is what reading costs most.
            words: Vec::with_capacity(1),
        };
        let mut word = first;
        // Only before a pipeline; anywhere else it is a reserved word out of place.
        if !word.quoted && word.text == "!" && !join.is_pipe() {
            command.negated = true;
            word = match self.lexer.next(Place::Command)? {
                Token::Word(word) => word,
                Token::Open => return Err(self.refused(Label::Subshell)),
                _ => return Err(self.refused(Label::SyntaxError)),
            };
        }
        loop {
            self.add(&mut command, word)?;
            let place = if command.words.is_empty() { Place::Command } else { Place::Argument };
            let next = match self.lexer.next(place)? {
                Token::Word(next) => {
                    word = next;
                    continue;
                }
                Token::Newline | Token::Semicolon => Some(Join::Then),
                Token::And => Some(Join::And),
                Token::Or => Some(Join::Or),
                Token::Pipe => Some(Join::Pipe),
                Token::PipeBoth => Some(Join::PipeBoth),
                Token::End => None,
                Token::Ampersand => return Err(self.refused(Label::Background)),
                Token::Open => return Err(self.parenthesis(&command)),
                Token::Close => return Err(self.refused(Label::SyntaxError)),
            };
            return Ok((command, next));
        }
    }

    /// Puts a word where it belongs: an assignment, the program, or an argument.
    fn add(&self, command: &mut SimpleCommand, word: RawWord) -> Result<(), Unreadable> {
        if !command.words.is_empty() {
            command.words.push(word.into_word());
            return Ok(());
        }
        let refused = |label| Err(Unreadable { label, at: word.start });
        if let Some(target) = word.target {
            // What stands there before is not known; to dash `NAME+=value` is the name of a program.
            if target.appends {
                return refused(Label::DynamicArgument);
            }
            command.assignments.push(word.into_assignment(target));
            return Ok(());
        }
        if let Some(label) = reserved(&word) {
            // After an assignment a shell would look for a program of that name; no one means that.
            return refused(if command.assignments.is_empty() { label } else { Label::SyntaxError });
        }
        if assigns_element(&word) {
            return refused(Label::SyntaxError);
        }
        if word.glob || word.brace || word.tilde && !word.home {
            return refused(Label::DynamicExecutable);
        }
        command.words.push(word.into_word());
        Ok(())
    }

    /// Why the `(` that was just read cannot follow this command.
    fn parenthesis(&mut self, command: &SimpleCommand) -> Unreadable {
        let opening = self.refused(Label::SyntaxError);
        match (command.assignments.as_slice(), command.words.as_slice()) {
            ([], [name]) if matches!(self.lexer.next(Place::Argument), Ok(Token::Close)) => {
                Unreadable { label: Label::FunctionDefinition, at: name.span.start }
            }
            _ => opening,
        }
    }

    /// Why the last token cannot stand where it stands.
    const fn refused(&self, label: Label) -> Unreadable {
        Unreadable { label, at: self.lexer.start() }
    }
}

/// What a reserved word begins, or that it is out of place. Some are reserved in bash only; `time` is not among them,
/// as what it starts is an ordinary command.
fn reserved(word: &RawWord) -> Option<Label> {
    if word.quoted {
        return None;
    }
    Some(match word.text.as_str() {
        "if" => Label::If,
        "while" | "until" => Label::While,
        "for" | "select" => Label::For,
        "case" => Label::Case,
        "{" => Label::Group,
        "[[" => Label::Conditional,
        "function" => Label::FunctionDefinition,
        "coproc" => Label::Background,
        "!" | "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "]]" => {
            Label::SyntaxError
        }
        _ => return None,
    })
}

/// `NAME[…]=value`, which bash takes for an assignment to an array.
fn assigns_element(word: &RawWord) -> bool {
    word.glob && (word.text.contains("]=") || word.text.contains("]+="))
}
