//! Finds what looks like a secret in a command and masks it.
//!
//! The text is read once from left to right. Only the quote that a place stands in is known, **not** the whole
//! grammar of a shell: commands in quotes are commands too, and a header or a JSON text is neither. In doubt more
//! is masked than need be.

mod known;
mod value;

use known::{Given, Program};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// How far a URL's user name and password are looked for, in characters.
const URL_MAX: usize = 2048;

/// A text with its secrets masked.
pub(super) fn masked(text: &[char]) -> String {
    let mut scanner =
        Scanner { text, at: 0, out: String::new(), quote: None, programs: Vec::new(), url_end: 0 };
    while scanner.at < text.len() {
        match scanner.secret() {
            Some(secret) => scanner.mask(secret),
            None => scanner.pass(),
        }
    }
    scanner.out
}

/// A quote that was opened and the place behind its opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quote {
    mark: char,
    inside: usize,
}

/// Characters to mask, and the quote that is open behind them.
struct Secret {
    start: usize,
    end: usize,
    quote: Option<Quote>,
}

struct Scanner<'a> {
    text: &'a [char],
    at: usize,
    out: String,
    quote: Option<Quote>,
    /// The programs named in this simple command that take secrets as options.
    programs: Vec<&'static Program>,
    /// Before this place stands a URL, whose parts name no programs.
    url_end: usize,
}

impl Scanner<'_> {
    fn get(&self, at: usize) -> Option<char> {
        self.text.get(at).copied()
    }

    fn before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).and_then(|at| self.get(at))
    }

    fn slice(&self, start: usize, end: usize) -> &[char] {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The first place from `at` on whose character does not please.
    fn run(&self, at: usize, pleases: impl Fn(char) -> bool) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|&c| !pleases(c)).unwrap_or(rest.len())
    }

    fn blanks(&self, at: usize) -> usize {
        self.run(at, char::is_whitespace)
    }

    /// Writes what comes before the secret, and the mask.
    fn mask(&mut self, secret: Secret) {
        let before: String = self.slice(self.at, secret.start).iter().collect();
        self.out.push_str(&before);
        self.out.push_str(MASK);
        // Something was masked, so this moves on.
        self.at = secret.end.max(self.at + 1);
        self.quote = secret.quote;
    }

    /// Writes one character and keeps track of quotes and commands.
    fn pass(&mut self) {
        let Some(c) = self.get(self.at) else {
            return;
        };
        self.out.push(c);
        self.at += 1;
        match (c, self.quote) {
            ('\\', quote) if quote.is_none_or(|quote| quote.mark != '\'') => {
                self.out.extend(self.get(self.at));
                self.at += 1;
            }
            (c, Some(quote)) if c == quote.mark => self.quote = None,
            ('\'' | '"', None) => self.quote = Some(Quote { mark: c, inside: self.at }),
            (';' | '|' | '&' | '(' | ')' | '\n', _) => self.programs.clear(),
            _ => {}
        }
    }

    /// The secret whose description starts here, if one does.
    fn secret(&mut self) -> Option<Secret> {
        let before = self.before(self.at);
        if self.slice(self.at, self.at + 3) == [':', '/', '/'] {
            let start = self.at + 3;
            let in_url = |c: char| !c.is_whitespace() && !"'\"`<>".contains(c);
            self.url_end = self.run(start, in_url).min(start + URL_MAX);
            return self.url(start, self.url_end);
        }
        if before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
            && let Some(length) = known::shape(self.text.get(self.at..).unwrap_or_default())
        {
            return Some(self.until(self.at, self.at + length));
        }
        if before.is_some_and(is_name) {
            return None;
        }
        let end = self.run(self.at, is_name);
        let word: String = self.slice(self.at, end).iter().collect();
        let starts_word = before.is_none_or(|c| c.is_whitespace() || "'\"`(;&|/".contains(c));
        if starts_word
            && self.at >= self.url_end
            && let Some(program) = known::program(&word)
            && !self.programs.iter().any(|known| std::ptr::eq(*known, program))
        {
            self.programs.push(program);
        }
        if before.is_none_or(|c| c.is_whitespace() || "'\"".contains(c))
            && let Some(secret) = self.option(&word)
        {
            return Some(secret);
        }
        if known::is_scheme(&word) && end < self.blanks(end) {
            return self.value(self.blanks(end), false, self.quote);
        }
        if known::is_secret(&word) { self.named(&word, end) } else { None }
    }

    fn until(&self, start: usize, end: usize) -> Secret {
        Secret { start, end, quote: self.quote }
    }

    /// What belongs to the name that ends at `end`: `name=v`, `name: v`, `"name": "v"`, `--name v`.
    fn named(&self, name: &str, end: usize) -> Option<Secret> {
        let closing = self.closing(end);
        let quoted_name = closing > end;
        let sign = self.blanks(closing);
        let value = match self.get(sign) {
            Some('=') => {
                // `==`, and spaces where they cannot mean an empty value.
                let behind = self.run(sign, |c| c == '=');
                let spaced = sign > closing || self.quote.is_some();
                if spaced { self.blanks(behind) } else { behind }
            }
            Some(':') if sign == closing || quoted_name => {
                // A path with a colon is a mount or a host, not a header.
                if self.before(self.at) == Some('/') || self.get(sign + 1) == Some('/') {
                    return None;
                }
                let behind = self.run(sign, |c| matches!(c, ':' | '='));
                self.blanks(behind)
            }
            Some(_) if name.starts_with('-') && closing == end && sign > end => {
                if self.is_option(sign) {
                    return None;
                }
                sign
            }
            _ => return None,
        };
        let header = self.get(sign) == Some(':');
        // The name's closing quote may be that of a shell, as in a here-document.
        let open = self.quote.filter(|quote| !quoted_name || self.get(end) != Some(quote.mark));
        match self.quote {
            // The whole of `'Header: v'` or `"NAME=v w"` belongs together.
            Some(quote) if !quoted_name && (header || quote.inside == self.at) && !self.opens(value) => {
                let end = self.end_of_quote(value, quote.mark);
                (end > value && !self.is_reference(value, end, Some(quote))).then(|| self.until(value, end))
            }
            _ => self.value(value, quoted_name, open),
        }
    }

    /// Behind the quote that closes a quoted name, also an escaped one.
    fn closing(&self, at: usize) -> usize {
        let mark = if self.get(at) == Some('\\') { at + 1 } else { at };
        match self.get(mark) {
            Some('"' | '\'') => mark + 1,
            _ => at,
        }
    }

    /// An option stands here, not the value of the option before.
    fn is_option(&self, at: usize) -> bool {
        let name = self.run(at, |c| c == '-');
        let end = self.run(name, |c| c.is_ascii_alphabetic() || c == '-');
        matches!(name - at, 1 | 2)
            && self.get(name).is_some_and(|c| c.is_ascii_alphabetic())
            && self.get(end).is_none_or(|c| c.is_whitespace() || c == '=')
    }

    /// The secret in an option of a program that is known to take one.
    fn option(&self, word: &str) -> Option<Secret> {
        let mut options = self.programs.iter().flat_map(|program| program.options);
        options.find_map(|&(flag, given)| {
            let value = self.option_value(word, flag, given)?;
            let value = self.value(value, false, self.quote)?;
            let Given::Behind(mark) = given else {
                return Some(value);
            };
            let start = self.run(value.start, |c| c != mark) + 1;
            (start < value.end).then_some(Secret { start, ..value })
        })
    }

    /// Where the value of `flag` starts if the word here has that flag.
    fn option_value(&self, word: &str, flag: &str, given: Given) -> Option<usize> {
        let behind = self.at + flag.chars().count();
        let next = self.blanks(behind);
        let attached = next == behind;
        if word.starts_with(flag) && (attached || self.at + word.chars().count() == behind) {
            return match given {
                Given::Attached if attached => Some(behind),
                Given::Attached => None,
                // `--user=x` of a long option; `-ux` of a short one.
                _ if flag.starts_with("--") && attached => {
                    (self.get(behind) == Some('=')).then_some(behind + 1)
                }
                _ => Some(next),
            };
        }
        // `-sSu user:secret`: only where no more than what is behind a colon is masked.
        let letter = flag.strip_prefix('-').filter(|letter| letter.len() == 1)?;
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let offset = cluster.find(letter).filter(|_| matches!(given, Given::Behind(_)))?;
        Some(self.blanks(self.at + 2 + cluster.get(..offset)?.chars().count()))
    }

    /// The password in `://user:password@host`, where `start` is behind the slashes.
    fn url(&self, start: usize, end: usize) -> Option<Secret> {
        let host_end = self.run(start, |c| !"/?#".contains(c)).min(end);
        let last_at = |end| self.slice(start, end).iter().rposition(|&c| c == '@').map(|at| start + at);
        let colon = start + self.slice(start, host_end).iter().position(|&c| c == ':').unwrap_or(end - start);
        let port = self.slice(colon + 1, host_end);
        if let Some(at) = last_at(host_end) {
            if colon < at {
                return (colon + 1 < at).then(|| self.until(colon + 1, at));
            }
            // A token in the place of the user.
            let web = matches!(self.before(self.at), Some('p' | 's'));
            return (web && at - start >= 20).then(|| self.until(start, at));
        }
        // A password with a slash in it; a port is none.
        let at = last_at(end)?;
        let is_port = !port.is_empty() && port.iter().all(char::is_ascii_digit);
        (colon < host_end && !is_port).then(|| self.until(colon + 1, at))
    }
}

/// Of a name: letters, digits and what joins them. A dash in front makes it an option.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}
