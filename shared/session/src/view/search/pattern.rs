//! A compiled pattern, and the line that it is matched against.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::view::clean::Glyph;

/// The most characters of a pattern.
const PATTERN_MAX: usize = 1000;

/// The most memory of a compiled pattern, in bytes.
const COMPILED_MAX: usize = 1024 * 1024;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// More than 1000 characters.
    #[error("the pattern has {chars} characters; at most {PATTERN_MAX} are allowed")]
    TooLong {
        /// Its characters.
        chars: usize,
    },
    /// Not a regular expression, or one that needs more than 1 MiB once compiled.
    #[error("the pattern is not usable: {message}")]
    Pattern {
        /// What the parser says; may have several lines.
        message: String,
    },
}

#[derive(Debug)]
pub(super) struct Pattern(Regex);

/// What the text at hand is of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The line goes on behind it.
    More,
    /// The line ends with it, as far as is known.
    Last,
}

impl Pattern {
    pub(super) fn new(pattern: &str, ignore_case: bool, literal: bool) -> Result<Self, SearchError> {
        let chars = pattern.chars().count();
        if chars > PATTERN_MAX {
            return Err(SearchError::TooLong { chars });
        }
        let source = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        RegexBuilder::new(&source)
            .case_insensitive(ignore_case)
            .size_limit(COMPILED_MAX)
            .dfa_size_limit(COMPILED_MAX)
            .build()
            .map(Pattern)
            .map_err(|error| SearchError::Pattern { message: error.to_string() })
    }

    /// The first match in the line. Where the line goes on, one that touches the end is left for later: it may be longer,
    /// or none at all. Where the line's beginning is gone, `^` does not match.
    pub(super) fn find(&self, line: &Line, part: Part) -> Option<Range<usize>> {
        let start = if line.headless { line.text.chars().next().map_or(0, char::len_utf8) } else { 0 };
        let found = self.0.find_at(&line.text, start)?.range();
        (part == Part::Last || found.end < line.text.len()).then_some(found)
    }
}

/// A line, or its last characters, with the bytes that they came from.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// For each character: where it begins in `text`, and its bytes in the log.
    places: Vec<(usize, u64, u64)>,
    /// The beginning is gone.
    headless: bool,
    /// Where the line ends in the log.
    end: u64,
}

impl Line {
    pub(super) fn push(&mut self, glyph: Glyph) {
        self.places.push((self.text.len(), glyph.from, glyph.to));
        self.text.push(glyph.ch);
        self.end = glyph.to;
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn chars(&self) -> usize {
        self.places.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.places.clear();
        self.headless = false;
    }

    /// Says where in the log the line ends.
    pub(super) fn end_at(&mut self, at: u64) {
        self.end = at;
    }

    /// Says that characters before these are not there.
    pub(super) fn behead(&mut self) {
        self.headless = true;
    }

    pub(super) fn keep_last(&mut self, chars: usize) {
        let gone = self.places.len().saturating_sub(chars);
        let cut = self.places.get(gone).map_or(self.text.len(), |&(at, _, _)| at);
        self.text.drain(..cut);
        self.places.drain(..gone);
        for place in &mut self.places {
            place.0 = place.0.saturating_sub(cut);
        }
        self.headless |= gone > 0;
    }

    /// The bytes in the log of a range of `text`. An empty one lies where the character behind it, or
    /// the line's end, is.
    pub(super) fn bytes(&self, range: &Range<usize>) -> (u64, u64) {
        let first = self.places.partition_point(|&(at, _, _)| at < range.start);
        let behind = self.places.partition_point(|&(at, _, _)| at < range.end);
        let places = self.places.get(first..behind).unwrap_or_default();
        match (places.iter().map(|place| place.1).min(), places.iter().map(|place| place.2).max()) {
            (Some(from), Some(to)) => (from, to),
            _ => {
                let at = self.places.get(first).map_or(self.end, |place| place.1);
                (at, at)
            }
        }
    }
}
