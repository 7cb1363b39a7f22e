//! Search in a log, and the watch for a text that is still to come. Patterns are regular expressions of the `regex` crate,
//! whose time is linear in the text; they see the cleaned and folded lines, one at a time.

mod pattern;
mod watch;

use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation;

use self::pattern::{Line, Part, Pattern};
use super::clean::Glyph;
use super::fold::{Fold, LINE_MAX};

pub use self::pattern::SearchError;
pub use self::watch::Watcher;

/// The most characters of a line in a result.
const SHOWN_MAX: usize = 500;

/// The most lines before and after a hit.
const CONTEXT_MAX: usize = 50;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// A regular expression of at most 1000 characters.
    pub pattern: String,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
    /// Whether the pattern is a plain text.
    pub literal: bool,
    /// Lines before each hit, at most 50.
    pub before: usize,
    /// Lines after each hit, at most 50.
    pub after: usize,
    /// The most hits to give out; those beyond are counted.
    pub max: usize,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The line's number, counted from 0.
    pub line: u64,
    /// Merged offset of the first byte of the line's first match.
    pub from: u64,
    /// Merged offset behind the match.
    pub to: u64,
    /// The line, cut to at most 500 characters around the match; `…` stands for what is cut.
    pub text: String,
    /// Lines before it, each cut to 500 characters. None from beyond a gap.
    pub before: Vec<String>,
    /// Lines after it, likewise.
    pub after: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The first hits, in order.
    pub hits: Vec<Hit>,
    /// How many lines match.
    pub total: u64,
    /// How many lines there are.
    pub total_lines: u64,
    /// Ranges that could not be searched since the node no longer keeps them.
    pub lost: Vec<(u64, u64)>,
}

/// Searches the glyphs of a log. Memory: the hits, and two lines of at most 16384 characters; in a longer line a match of
/// up to that length is found.
#[derive(Debug)]
pub struct Searcher {
    fold: Fold,
    scan: Scan,
}

impl Searcher {
    /// # Errors
    /// [`SearchError`] when the pattern cannot be used.
    pub fn new(search: &Search) -> Result<Self, SearchError> {
        let scan = Scan {
            pattern: Pattern::new(&search.pattern, search.ignore_case, search.literal)?,
            before: search.before.min(CONTEXT_MAX),
            after: search.after.min(CONTEXT_MAX),
            max: search.max,
            line: Line::default(),
            opening: None,
            hit: None,
            earlier: VecDeque::new(),
            owed: 0,
            found: Found::default(),
        };
        Ok(Searcher { fold: Fold::default(), scan })
    }

    /// Takes the next glyph.
    pub fn push(&mut self, glyph: Glyph) {
        self.fold.push(glyph, &mut |folded| self.scan.push(folded.glyph));
    }

    /// The bytes from `from` to `to` are no longer kept. Ends the line.
    pub fn gap(&mut self, from: u64, to: u64) {
        self.flush();
        self.scan.gap(from, to);
    }

    /// The result.
    pub fn finish(mut self) -> Found {
        self.flush();
        self.scan.found
    }

    fn flush(&mut self) {
        self.fold.flush(&mut |folded| self.scan.push(folded.glyph));
        if !self.scan.line.is_empty() {
            self.scan.end_line();
        }
    }
}

#[derive(Debug)]
struct Scan {
    pattern: Pattern,
    before: usize,
    after: usize,
    max: usize,
    /// The current line, or its last characters.
    line: Line,
    /// How the current line begins, once `line` no longer holds that.
    opening: Option<String>,
    /// The first match in the current line: its bytes, and what to show of the line.
    hit: Option<(u64, u64, String)>,
    /// The lines before the current one.
    earlier: VecDeque<String>,
    /// How many of the last hits still want lines after them.
    owed: usize,
    found: Found,
}

impl Scan {
    fn push(&mut self, glyph: Glyph) {
        if glyph.ch == '\n' {
            self.line.end_at(glyph.from);
            self.end_line();
            return;
        }
        self.line.push(glyph);
        if self.line.chars() >= 2 * LINE_MAX {
            self.look(Part::More);
            self.opening.get_or_insert_with(|| shorten(self.line.text(), 0, 0));
            self.line.keep_last(LINE_MAX);
        }
    }

    fn gap(&mut self, from: u64, to: u64) {
        self.earlier.clear();
        self.owed = 0;
        match self.found.lost.last_mut() {
            Some(last) if last.1 >= from => last.1 = to.max(last.1),
            Some(_) | None => self.found.lost.push((from, to)),
        }
    }

    fn look(&mut self, part: Part) {
        if self.hit.is_none()
            && let Some(range) = self.pattern.find(&self.line, part)
        {
            let (from, to) = self.line.bytes(&range);
            self.hit = Some((from, to, shorten(self.line.text(), range.start, range.end)));
        }
    }

    fn end_line(&mut self) {
        self.look(Part::Last);
        let (from_hit, wanted) = (self.hit.take(), self.before > 0 || self.owed > 0);
        let opening = self.opening.take();
        let line = self.found.total_lines;
        self.found.total_lines = line.saturating_add(1);
        let shown = wanted.then(|| opening.unwrap_or_else(|| shorten(self.line.text(), 0, 0)));
        self.line.clear();
        if let Some(shown) = &shown {
            self.pay(shown);
        }
        if let Some((from, to, text)) = from_hit {
            self.found.total = self.found.total.saturating_add(1);
            if self.found.hits.len() < self.max {
                let before = self.earlier.iter().cloned().collect();
                self.found.hits.push(Hit { line, from, to, text, before, after: Vec::new() });
                self.owed = if self.after > 0 { self.owed.saturating_add(1) } else { 0 };
            }
        }
        if let Some(shown) = shown
            && self.before > 0
        {
            self.earlier.push_back(shown);
            if self.earlier.len() > self.before {
                self.earlier.pop_front();
            }
        }
    }

    /// Gives a line to the hits that want it.
    fn pay(&mut self, line: &str) {
        let first = self.found.hits.len().saturating_sub(self.owed);
        for hit in self.found.hits.iter_mut().skip(first) {
            hit.after.push(line.to_owned());
            if hit.after.len() >= self.after {
                self.owed = self.owed.saturating_sub(1);
            }
        }
    }
}

/// At most [`SHOWN_MAX`] characters of `text` around the bytes from `start` to `end`, cut between grapheme clusters.
fn shorten(text: &str, start: usize, end: usize) -> String {
    if text.chars().nth(SHOWN_MAX).is_none() {
        return text.to_owned();
    }
    // Two characters are set aside for the marks.
    let room = SHOWN_MAX.saturating_sub(2);
    let matched = text.get(start..end).unwrap_or_default().chars().count();
    let around = room.saturating_sub(matched);
    let (left, right) = text.split_at_checked(start).unwrap_or(("", text));
    // What one side does not need goes to the other.
    let behind = right.chars().skip(matched).take(room).count();
    let before_max = (around / 2).max(around.saturating_sub(behind));
    let before = fitting(left.graphemes(true).rev(), before_max);
    let begin = start.saturating_sub(before.bytes);
    let rest = text.get(begin..).unwrap_or(right);
    let shown = fitting(rest.graphemes(true), room).bytes;
    let mut out = String::new();
    if begin > 0 {
        out.push('…');
    }
    out.push_str(rest.get(..shown).unwrap_or_default());
    if shown < rest.len() {
        out.push('…');
    }
    out
}

#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    chars: usize,
    bytes: usize,
}

/// How much of `clusters` has at most `max` characters.
fn fitting<'a>(clusters: impl Iterator<Item = &'a str>, max: usize) -> Fit {
    clusters
        .scan(Fit::default(), |fit, cluster| {
            fit.chars = fit.chars.saturating_add(cluster.chars().count());
            fit.bytes = fit.bytes.saturating_add(cluster.len());
            (fit.chars <= max).then_some(*fit)
        })
        .last()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
