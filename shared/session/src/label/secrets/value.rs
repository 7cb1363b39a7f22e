//! How far a value reaches.

use super::{Quote, Scanner, Secret, known};

impl Scanner<'_> {
    /// The value that starts here, inside of `quote`: none if it is empty, or only names a variable or a command.
    /// `json` ends it at a comma or bracket, which a value of a shell may hold.
    pub(super) fn value(&self, start: usize, json: bool, quote: Option<Quote>) -> Option<Secret> {
        if json && matches!(self.get(start), Some('{' | '[')) {
            let end = self.end_of_brackets(start, quote);
            return Some(Secret { start, end, quote });
        }
        let mut value = self.word(start, json, quote);
        // `Bearer x` is one value.
        let first: String = self.slice(start, value.end).iter().collect();
        let next = self.blanks(value.end);
        if next > value.end && next < self.text.len() && known::is_scheme(&first) {
            value = Secret { start, ..self.word(next, json, value.quote) };
        }
        (value.end > start && !self.is_reference(start, value.end, quote)).then_some(value)
    }

    fn word(&self, start: usize, json: bool, mut quote: Option<Quote>) -> Secret {
        let mut at = start;
        while let Some(c) = self.get(at) {
            if quote.is_some_and(|quote| quote.mark == c) {
                // The shell's word may go on behind the quote.
                let goes_on = at > start && self.get(at + 1).is_some_and(|next| !ends_word(next));
                if !goes_on {
                    break;
                }
                quote = None;
                at += 1;
                continue;
            }
            let ends = match quote {
                Some(_) => c.is_whitespace() || c == '&',
                None => ends_word(c),
            };
            if ends || (json && matches!(c, ',' | '}' | ']')) {
                break;
            }
            at = match c {
                '\\' => self.end_of_escape(at),
                '\'' | '"' => self.end_of_inner(at, c, quote),
                _ => at + 1,
            };
        }
        Secret { start, end: at.min(self.text.len()), quote }
    }

    /// A quote opens here, as it is or escaped.
    pub(super) fn opens(&self, at: usize) -> bool {
        self.closing(at) > at && self.quote.is_none_or(|quote| self.get(at) != Some(quote.mark))
    }

    /// Behind `\x`, or behind the other end of `\" … \"`.
    fn end_of_escape(&self, at: usize) -> usize {
        let Some(mark @ ('\'' | '"')) = self.get(at + 1) else {
            return at + 2;
        };
        let rest = self.text.get(at + 2..).unwrap_or_default();
        match rest.windows(2).position(|pair| pair == ['\\', mark]) {
            Some(found) => at + 2 + found + 2,
            None => at + 2,
        }
    }

    /// Behind the quote that opens here; only behind the mark if the quote around it ends first.
    fn end_of_inner(&self, at: usize, mark: char, around: Option<Quote>) -> usize {
        let end = self.end_of_quote(at + 1, mark);
        match around {
            Some(around) if self.end_of_quote(at + 1, around.mark) < end => at + 1,
            _ => end + 1,
        }
    }

    /// The place of the mark that closes a quote, or the end of the text.
    pub(super) fn end_of_quote(&self, mut at: usize, mark: char) -> usize {
        while let Some(c) = self.get(at) {
            match c {
                '\\' if mark == '"' => at += 1,
                _ if c == mark => return at,
                _ => {}
            }
            at += 1;
        }
        self.text.len()
    }

    /// Behind the bracket that closes the one here, or before the quote's end.
    fn end_of_brackets(&self, start: usize, quote: Option<Quote>) -> usize {
        let limit = quote.map_or(self.text.len(), |quote| self.end_of_quote(start, quote.mark));
        let mut depth = 0_usize;
        for (at, c) in (start..limit).zip(self.slice(start, limit)) {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        limit
    }

    /// Nothing but `$NAME`, `${NAME}` or the start of `$(`, where a shell puts something in its place.
    pub(super) fn is_reference(&self, start: usize, end: usize, quote: Option<Quote>) -> bool {
        if quote.is_some_and(|quote| quote.mark == '\'') {
            return false;
        }
        let text: String = self.slice(start, end).iter().collect();
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text);
        let Some(name) = text.strip_prefix('$') else {
            return false;
        };
        if name.is_empty() {
            return self.get(end) == Some('(');
        }
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }
}

/// Ends a word of a shell outside of quotes.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`')
}
