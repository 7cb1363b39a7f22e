//! Arguments against a profile (policy spec §4.3).
//!
//! The reading follows what `getopt_long` of GNU and BSD makes of the same words. Where the two differ, and one of them
//! would take a word for a file, the word is refused.

use super::{
    SafeBinMiss,
    profile::{Profile, Takes},
};

/// A reason, as a sentence ends with it.
type Reason = &'static str;

const DENIED: Reason = "this flag is not allowed";
const UNKNOWN: Reason = "this flag is unknown, or short for more than one";
const NEEDS_VALUE: Reason = "this flag needs a value";
const NEEDS_ATTACHED: Reason = "this flag needs a value with `=`";
const NEEDS_NUMBER: Reason = "the value must be a number, or attached to its flag";
const NEEDS_SIZE: Reason = "the value must be a number, with a sign and a unit at most";
const NO_VALUE: Reason = "this flag takes no value";
const TOO_MANY: Reason = "it could be a file, and no further positional argument is allowed";
const AFTER_OPERAND: Reason = "after `-`, some systems take it for a file";

/// Whether the arguments pass.
pub(super) fn check(profile: &Profile, args: &[String]) -> Result<(), SafeBinMiss> {
    let mut reader = Reader { profile, args, next: 0, positional: 0, stdin_named: false };
    reader.read().map_err(|reason| SafeBinMiss::Argument { index: reader.next, reason })?;
    if reader.positional < profile.min_positional {
        return Err(SafeBinMiss::TooFew { min: profile.min_positional });
    }
    Ok(())
}

struct Reader<'a> {
    profile: &'a Profile,
    args: &'a [String],
    /// The place of the next argument, which is also the number of the one being read, from 1.
    next: usize,
    positional: usize,
    /// An operand was there that names no file.
    stdin_named: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), Reason> {
        let mut flags_ended = false;
        while let Some(arg) = self.take() {
            if arg.is_empty() || arg == "-" {
                self.stdin_named = true;
                continue;
            }
            // BSD, and GNU with POSIXLY_CORRECT, read no flags after the first operand: they are files then.
            if self.stdin_named && self.profile.max_positional == Some(0) {
                return Err(AFTER_OPERAND);
            }
            if flags_ended || !arg.starts_with('-') {
                self.positional(arg)?;
            } else if arg == "--" {
                flags_ended = true;
            } else if let Some(long) = arg.strip_prefix("--") {
                self.long(long)?;
            } else {
                self.cluster(arg)?;
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Option<&'a str> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn positional(&mut self, arg: &str) -> Result<(), Reason> {
        self.positional += 1;
        if self.profile.max_positional.is_some_and(|max| self.positional > max) {
            return Err(TOO_MANY);
        }
        literal(arg)
    }

    fn long(&mut self, flag: &str) -> Result<(), Reason> {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        match (self.profile.long(name), value) {
            (Takes::Denied, _) => Err(DENIED),
            (Takes::Unknown, _) => Err(UNKNOWN),
            (Takes::Nothing, None) => Ok(()),
            (Takes::Nothing, Some(_)) => Err(NO_VALUE),
            (Takes::Attached, None) => Err(NEEDS_ATTACHED),
            (Takes::Value | Takes::Count | Takes::Attached, Some(value)) => literal(value),
            (Takes::Size, Some(value)) => size(value),
            (Takes::Size, None) => size(self.take().ok_or(NEEDS_VALUE)?),
            (Takes::Value, None) => self.following_value(),
            (Takes::Count, None) => self.following_number(),
        }
    }

    /// `-zf1`: flags without a value, then at most one with a value, which is the rest or the next argument.
    fn cluster(&mut self, arg: &str) -> Result<(), Reason> {
        if self.profile.denies(arg) {
            return Err(DENIED);
        }
        let mut letters = arg.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            match self.profile.short(letter) {
                Takes::Denied => return Err(DENIED),
                Takes::Unknown => return Err(UNKNOWN),
                Takes::Nothing => {}
                Takes::Value | Takes::Count | Takes::Attached if !rest.is_empty() => return literal(rest),
                Takes::Size if !rest.is_empty() => return size(rest),
                Takes::Size => return size(self.take().ok_or(NEEDS_VALUE)?),
                Takes::Value => return self.following_value(),
                Takes::Count => return self.following_number(),
                Takes::Attached => return Err(NEEDS_ATTACHED),
            }
        }
        Ok(())
    }

    /// The next argument, whatever it looks like: so do the programs, also with an empty one or a dash.
    fn following_value(&mut self) -> Result<(), Reason> {
        literal(self.take().ok_or(NEEDS_VALUE)?)
    }

    fn following_number(&mut self) -> Result<(), Reason> {
        let value = self.take().ok_or(NEEDS_VALUE)?;
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { Ok(()) } else { Err(NEEDS_NUMBER) }
    }
}

/// Whether a value is a count as `head` and `tail` of GNU read it: `5`, `+5`, `-5`, `5b`, `5k`, `5kB`, `5MiB`.
fn size(value: &str) -> Result<(), Reason> {
    literal(value)?;
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    let unit = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let known = matches!(unit, "" | "b")
        || unit
            .strip_prefix(['k', 'K', 'm', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y', 'R', 'Q'])
            .is_some_and(|rest| matches!(rest, "" | "B" | "iB"));
    if known && unit.len() < number.len() { Ok(()) } else { Err(NEEDS_SIZE) }
}

/// Whether a word means itself, to a shell as well, and does not begin like a path. Looks at the text only.
fn literal(word: &str) -> Result<(), Reason> {
    if word.contains(['*', '?', '[', ']']) {
        return Err("it holds a glob character");
    }
    if word.contains(['{', '}']) {
        return Err("it holds a brace");
    }
    if word.contains('\0') {
        return Err("it holds a NUL");
    }
    let mut rest = word;
    while let Some((_, after)) = rest.split_once('$') {
        if after.starts_with(expands) {
            return Err("it holds a `$` that a shell would expand");
        }
        rest = after;
    }
    if is_path_like(word) { Err("it begins like a path") } else { Ok(()) }
}

/// Whether a `$` before this letter means something to a shell.
fn expands(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '(' | '@' | '#' | '!' | '-' | '$' | '\'' | '"')
}

fn is_path_like(word: &str) -> bool {
    let drive = |word: &str| {
        let mut bytes = word.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && bytes.next() == Some(b':')
            && matches!(bytes.next(), Some(b'\\' | b'/'))
    };
    word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../") || drive(word)
}
