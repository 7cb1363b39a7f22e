//! From the expressions of ECMAScript (without flags) to those of the `regex` crate, which take linear time.
//!
//! What is accepted means what ECMAScript says it means: `$` only at the very end, ASCII `\d`, `\w` and `\b`, the
//! ECMAScript set for `\s`, `.` without the four line ends, `[]` and `[^]`, stray `{`, `}` and `]` as themselves. As there,
//! a character outside the basic plane is two units: see [`as_units`]. Greediness is dropped and groups are not captured:
//! neither changes whether something matches.
//!
//! Refused, each with its own [`ArgPatternFault`]:
//! - `(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`: linear time is not possible with them;
//! - `\1` to `\9`, `\k`: neither with these (outside a class `\1` may also be an octal number, depending on the groups);
//! - `(?i:…)` and the like;
//! - escapes whose meaning surprises: octal (`\01`, `[\1]`), a letter without a meaning (`\A`, `\z`, `\p`, `\e`), `\x`
//!   without two and `\u` without four hexadecimal digits (`\u{41}` is forty-one `u` without the `u` flag), `\c` without
//!   a letter.

mod class;
mod fault;
mod units;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt::Write};

use units::UnitSet;

pub use fault::{ArgPatternError, ArgPatternFault};
pub(super) use units::as_units;

/// Longest argument pattern, in characters.
pub const MAX_ARG_PATTERN_CHARS: usize = 4096;
/// Most groups within each other.
pub const MAX_GROUP_DEPTH: usize = 64;

/// A pattern in the other syntax. It is meant for texts that went through [`as_units`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// The expression.
    pub(super) expression: String,
    /// The pattern names NUL, as itself or as an escape (§2.5).
    pub(super) names_nul: bool,
}

pub(super) fn translate(pattern: &str) -> Result<Translated, ArgPatternError> {
    if pattern.chars().nth(MAX_ARG_PATTERN_CHARS).is_some() {
        return Err(ArgPatternError { fault: ArgPatternFault::TooLong, at: MAX_ARG_PATTERN_CHARS });
    }
    let mut translator = Translator {
        units: pattern.encode_utf16().collect(),
        at: 0,
        started: 0,
        out: String::new(),
        names_nul: false,
        depth: 0,
        names: BTreeSet::new(),
        before: Before::Nothing,
    };
    match translator.run() {
        Ok(()) => Ok(Translated { expression: translator.out, names_nul: translator.names_nul }),
        Err(fault) => Err(ArgPatternError { fault, at: translator.started }),
    }
}

/// What a quantifier would belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing, an assertion, or a quantifier.
    Nothing,
    /// Something that can be repeated.
    Atom,
}

/// What an escape stands for.
enum Escape {
    Unit(u16),
    Set(UnitSet),
}

struct Translator {
    units: Vec<u16>,
    /// Units taken.
    at: usize,
    /// Where the part that is being read began.
    started: usize,
    out: String,
    names_nul: bool,
    /// Open groups.
    depth: usize,
    names: BTreeSet<Vec<u16>>,
    before: Before,
}

impl Translator {
    fn run(&mut self) -> Result<(), ArgPatternFault> {
        loop {
            self.started = self.at;
            let Some(unit) = self.next() else { break };
            match ascii(unit) {
                '^' => self.unrepeatable(r"\A"),
                '$' => self.unrepeatable(r"\z"),
                '|' => self.unrepeatable("|"),
                '.' => self.set(&UnitSet::line_ends().complement()),
                '*' => self.quantifier("*")?,
                '+' => self.quantifier("+")?,
                '?' => self.quantifier("?")?,
                '{' => match self.counts()? {
                    Some(counts) => self.quantifier(&counts)?,
                    None => self.literal(unit),
                },
                '(' => self.open()?,
                ')' => {
                    self.depth = self.depth.checked_sub(1).ok_or(ArgPatternFault::UnmatchedParenthesis)?;
                    self.out.push(')');
                    self.before = Before::Atom;
                }
                '[' => {
                    let class = self.class()?;
                    self.set(&class);
                }
                '\\' => self.escape()?,
                _ => self.literal(unit),
            }
        }
        if self.depth > 0 { Err(ArgPatternFault::UnclosedGroup) } else { Ok(()) }
    }

    fn next(&mut self) -> Option<u16> {
        let unit = self.units.get(self.at).copied()?;
        self.at += 1;
        Some(unit)
    }

    fn peek(&self) -> Option<char> {
        self.ahead().next()
    }

    fn take(&mut self, letter: char) -> bool {
        let there = self.peek() == Some(letter);
        if there {
            self.next();
        }
        there
    }

    /// The letters that follow, without taking them.
    fn ahead(&self) -> impl Iterator<Item = char> {
        self.units.iter().skip(self.at).copied().map(ascii)
    }

    fn unrepeatable(&mut self, text: &str) {
        self.out.push_str(text);
        self.before = Before::Nothing;
    }

    fn set(&mut self, set: &UnitSet) {
        set.write(&mut self.out);
        self.before = Before::Atom;
    }

    fn literal(&mut self, unit: u16) {
        self.names_nul |= unit == 0;
        // Writing to a string cannot fail.
        let _ = write!(self.out, r"\x{{{:X}}}", u32::from(units::letter(unit)));
        self.before = Before::Atom;
    }

    fn quantifier(&mut self, text: &str) -> Result<(), ArgPatternFault> {
        if self.before == Before::Nothing {
            return Err(ArgPatternFault::NothingToRepeat);
        }
        self.take('?');
        self.unrepeatable(text);
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`, after the `{`. Anything else is a stray brace and left there.
    fn counts(&mut self) -> Result<Option<String>, ArgPatternFault> {
        let text: String = self
            .ahead()
            .take_while(|letter| letter.is_ascii_digit() || matches!(letter, ',' | '}'))
            .collect();
        let Some((inner, _)) = text.split_once('}') else { return Ok(None) };
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        if low.is_empty() || high.is_some_and(|high| high.contains(',')) {
            return Ok(None);
        }
        // A count that no number holds is too large in any case.
        let count = |digits: &str| digits.parse::<u16>().map_err(|_| ArgPatternFault::TooLarge);
        let least = count(low)?;
        let counts = match high {
            None => format!("{{{least}}}"),
            Some("") => format!("{{{least},}}"),
            Some(high) => {
                let most = count(high)?;
                if most < least {
                    return Err(ArgPatternFault::CountsOutOfOrder);
                }
                format!("{{{least},{most}}}")
            }
        };
        for _ in 0..=inner.len() {
            self.next();
        }
        Ok(Some(counts))
    }

    fn open(&mut self) -> Result<(), ArgPatternFault> {
        if self.take('?') {
            let ahead: String = self.ahead().take(2).collect();
            match &*ahead {
                _ if ahead.starts_with(':') => {
                    self.next();
                }
                "<=" | "<!" => return Err(ArgPatternFault::Lookaround),
                _ if ahead.starts_with(['=', '!']) => return Err(ArgPatternFault::Lookaround),
                _ if ahead.starts_with(['i', 'm', 's', '-']) => return Err(ArgPatternFault::Modifiers),
                _ if ahead.starts_with('<') => self.name()?,
                _ => return Err(ArgPatternFault::BadGroup),
            }
        }
        self.depth += 1;
        if self.depth > MAX_GROUP_DEPTH {
            return Err(ArgPatternFault::TooDeep);
        }
        self.unrepeatable("(?:");
        Ok(())
    }

    /// The name of a group, from its `<` to its `>`. Only ASCII ones: they are never used.
    fn name(&mut self) -> Result<(), ArgPatternFault> {
        self.next();
        let mut name = Vec::new();
        loop {
            let unit = self.next().ok_or(ArgPatternFault::BadGroup)?;
            match ascii(unit) {
                '>' if !name.is_empty() => break,
                'a'..='z' | 'A'..='Z' | '_' | '$' => name.push(unit),
                '0'..='9' if !name.is_empty() => name.push(unit),
                _ => return Err(ArgPatternFault::BadGroup),
            }
        }
        if self.names.insert(name) { Ok(()) } else { Err(ArgPatternFault::BadGroup) }
    }

    /// An escape outside a class.
    fn escape(&mut self) -> Result<(), ArgPatternFault> {
        match self.peek() {
            Some('b') => {
                self.next();
                self.unrepeatable(r"(?-u:\b)");
            }
            Some('B') => {
                self.next();
                self.unrepeatable(r"(?-u:\B)");
            }
            Some('1'..='9' | 'k') => return Err(ArgPatternFault::Backreference),
            _ => match self.atom_escape()? {
                Escape::Unit(unit) => self.literal(unit),
                Escape::Set(set) => self.set(&set),
            },
        }
        Ok(())
    }

    /// The escapes that mean the same inside and outside a class.
    fn atom_escape(&mut self) -> Result<Escape, ArgPatternFault> {
        let unit = self.next().ok_or(ArgPatternFault::LoneBackslash)?;
        let unit = match ascii(unit) {
            'd' => return Ok(Escape::Set(UnitSet::digits())),
            'D' => return Ok(Escape::Set(UnitSet::digits().complement())),
            'w' => return Ok(Escape::Set(UnitSet::word())),
            'W' => return Ok(Escape::Set(UnitSet::word().complement())),
            's' => return Ok(Escape::Set(UnitSet::spaces())),
            'S' => return Ok(Escape::Set(UnitSet::spaces().complement())),
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'v' => 0x0B,
            'c' => match self.next() {
                Some(unit) if ascii(unit).is_ascii_alphabetic() => unit % 32,
                _ => return Err(ArgPatternFault::UnclearEscape),
            },
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            '0' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => 0,
            'a'..='z' | 'A'..='Z' | '0'..='9' => return Err(ArgPatternFault::UnclearEscape),
            _ => unit,
        };
        Ok(Escape::Unit(unit))
    }

    fn hex(&mut self, digits: usize) -> Result<u16, ArgPatternFault> {
        let mut value = 0;
        for _ in 0..digits {
            let digit = self.next().and_then(|unit| ascii(unit).to_digit(16));
            value = value * 16 + digit.ok_or(ArgPatternFault::UnclearEscape)?;
        }
        u16::try_from(value).map_err(|_| ArgPatternFault::UnclearEscape)
    }
}

/// The unit as an ASCII character; U+FFFD where it is none, which means nothing in a pattern.
fn ascii(unit: u16) -> char {
    u8::try_from(unit).ok().filter(u8::is_ascii).map_or(char::REPLACEMENT_CHARACTER, char::from)
}
