//! Pages of lines, for `process log` (`runtime.md` §2.4).

use std::collections::VecDeque;

use super::clean::Glyph;
use super::ends::Ends;
use super::fold::{Fold, Folded};

/// The most lines that a page from the end can have. A page from a line on has no such bound.
const LAST_MAX: usize = 65536;

/// Which lines a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last lines, at most 65536.
    Last(usize),
    /// From a line on.
    From {
        /// The first line, counted from 0.
        line: u64,
        /// How many lines; all up to the end when absent.
        limit: Option<usize>,
    },
}

/// A page of lines, and where it lies in the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines, without the newline at the very end; omissions stand on lines of their own.
    pub text: String,
    /// Number of the first line, counted from 0.
    pub first_line: u64,
    /// How many lines the page covers.
    pub lines: u64,
    /// Lines of the whole; an empty one at the end does not count.
    pub total_lines: u64,
    /// Characters of the whole, newlines included.
    pub total_chars: u64,
    /// Merged offset of the page's first byte.
    pub from: u64,
    /// Merged offset behind the page's last byte.
    pub to: u64,
    /// Ranges in the page that the node no longer keeps.
    pub lost: Vec<(u64, u64)>,
    /// Ranges in the page that are kept but did not fit.
    pub cut: Vec<(u64, u64)>,
}

/// Builds a [`Page`] from the glyphs of a whole log, line by line as [`TextBuilder`](super::TextBuilder) folds them.
///
/// The page has at most `max_chars` characters, head and tail kept. A page of the last lines that is more than twice as
/// long keeps its tail only. Memory: twice `max_chars`, one line, and 16 bytes for each of the last lines.
#[derive(Debug)]
pub struct Pager {
    window: Window,
    fold: Fold,
    lines: Lines,
}

impl Pager {
    /// A pager for one page.
    pub fn new(window: Window, max_chars: usize) -> Self {
        let page = match window {
            Window::Last(lines) => Kept::Last(Last {
                max_chars,
                lines: lines.min(LAST_MAX),
                entries: VecDeque::new(),
                starts: VecDeque::new(),
                beheaded: None,
            }),
            Window::From { line, limit } => Kept::From(Range {
                first: line,
                end: limit.map(|limit| line.saturating_add(limit as u64)),
                ends: Ends::new(max_chars),
                bytes: None,
            }),
        };
        let lines = Lines { done: 0, partial: false, chars: 0, end: 0, kept: page };
        Pager { window, fold: Fold::default(), lines }
    }

    /// Takes the next glyph.
    pub fn push(&mut self, glyph: Glyph) {
        self.fold.push(glyph, &mut |folded| self.lines.push(folded));
    }

    /// The bytes from `from` to `to` are no longer kept. Ends the line.
    pub fn gap(&mut self, from: u64, to: u64) {
        self.fold.flush(&mut |folded| self.lines.push(folded));
        self.lines.gap(from, to);
    }

    /// The page.
    pub fn finish(mut self) -> Page {
        self.fold.flush(&mut |folded| self.lines.push(folded));
        let Lines { done, partial, chars, end, kept } = self.lines;
        let total = done.saturating_add(u64::from(partial));
        let first = match self.window {
            Window::Last(lines) => total.saturating_sub(lines.min(LAST_MAX) as u64),
            Window::From { line, .. } => line.min(total),
        };
        let behind = match self.window {
            Window::From { line, limit: Some(limit) } => line.saturating_add(limit as u64).min(total),
            Window::From { limit: None, .. } | Window::Last(_) => total,
        };
        let (ends, bytes) = match kept {
            Kept::From(range) => (range.ends, range.bytes),
            Kept::Last(last) => last.into_ends(first),
        };
        let (from, to) = bytes.unwrap_or((end, end));
        let text = ends.finish();
        let ranges = |want: bool| {
            text.omitted().filter(|&(_, _, lost)| lost == want).map(|(from, to, _)| (from, to)).collect()
        };
        let mut page = Page {
            text: text.render(),
            first_line: first,
            lines: behind.saturating_sub(first),
            total_lines: total,
            total_chars: chars,
            from,
            to,
            lost: ranges(true),
            cut: ranges(false),
        };
        if page.text.ends_with('\n') {
            page.text.pop();
        }
        page
    }
}

/// Counts lines and hands what lies in them on.
#[derive(Debug)]
struct Lines {
    /// Lines that are over.
    done: u64,
    /// Whether the line behind those has characters.
    partial: bool,
    chars: u64,
    /// Behind the last byte seen.
    end: u64,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    From(Range),
    Last(Last),
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Glyph(Folded),
    Gap { from: u64, to: u64 },
}

impl Lines {
    fn push(&mut self, folded: Folded) {
        self.chars = self.chars.saturating_add(1);
        self.end = folded.glyph.to.max(self.end);
        self.keep(Item::Glyph(folded));
        self.partial = folded.glyph.ch != '\n';
        if !self.partial {
            self.done = self.done.saturating_add(1);
        }
    }

    fn gap(&mut self, from: u64, to: u64) {
        if self.partial {
            self.done = self.done.saturating_add(1);
            self.partial = false;
        }
        self.end = to.max(self.end);
        self.keep(Item::Gap { from, to });
    }

    fn keep(&mut self, item: Item) {
        match &mut self.kept {
            Kept::From(range) => range.keep(self.done, item),
            Kept::Last(last) => last.keep(self.done, item),
        }
    }
}

/// A page whose lines are known by number.
#[derive(Debug)]
struct Range {
    first: u64,
    end: Option<u64>,
    ends: Ends,
    bytes: Option<(u64, u64)>,
}

impl Range {
    fn keep(&mut self, line: u64, item: Item) {
        if line >= self.first && self.end.is_none_or(|end| line < end) {
            widen(&mut self.bytes, &item);
            feed(&mut self.ends, &item);
        }
    }
}

/// A page whose first line is only known at the end.
#[derive(Debug)]
struct Last {
    max_chars: usize,
    lines: usize,
    /// What may lie in the page, with the number of its line.
    entries: VecDeque<(u64, Item)>,
    /// The first byte of each line in the page, with the line's number.
    starts: VecDeque<(u64, u64)>,
    /// The line of the last entry that was dropped since there were too many.
    beheaded: Option<u64>,
}

impl Last {
    fn keep(&mut self, line: u64, item: Item) {
        if self.starts.back().is_none_or(|&(last, _)| last != line) {
            self.starts.push_back((line, item.range().0));
        }
        if matches!(item, Item::Glyph(_)) {
            // The line of this glyph is the last one so far.
            let first = line.saturating_add(1).saturating_sub(self.lines as u64);
            while self.entries.pop_front_if(|&mut (line, _)| line < first).is_some() {}
            while self.starts.pop_front_if(|&mut (line, _)| line < first).is_some() {}
        }
        self.entries.push_back((line, item));
        if self.entries.len() > self.max_chars.saturating_mul(2).max(1) {
            self.beheaded = self.entries.pop_front().map(|(line, _)| line);
        }
    }

    /// The page's text and its bytes, once its first line is known.
    fn into_ends(self, first: u64) -> (Ends, Option<(u64, u64)>) {
        let mut bytes = None;
        let mut entries =
            self.entries.iter().filter(|&&(line, _)| line >= first).map(|(_, item)| item).peekable();
        let mut ends = Ends::new(self.max_chars);
        if self.beheaded.is_some_and(|line| line >= first)
            && let (Some(&(_, from)), Some(item)) = (self.starts.front(), entries.peek())
        {
            let to = item.range().0;
            ends = Ends::tail_only(self.max_chars);
            ends.omit(from, to, false);
            bytes = Some((from, to));
        }
        for item in entries {
            widen(&mut bytes, item);
            feed(&mut ends, item);
        }
        (ends, bytes)
    }
}

impl Item {
    fn range(&self) -> (u64, u64) {
        match *self {
            Item::Glyph(Folded { glyph: Glyph { from, to, .. }, .. }) | Item::Gap { from, to } => (from, to),
        }
    }
}

fn widen(bytes: &mut Option<(u64, u64)>, item: &Item) {
    let (from, to) = item.range();
    *bytes = Some(bytes.map_or((from, to), |(start, end)| (from.min(start), to.max(end))));
}

fn feed(ends: &mut Ends, item: &Item) {
    match *item {
        Item::Glyph(folded) => ends.push(folded),
        Item::Gap { from, to } => ends.omit(from, to, true),
    }
}

#[cfg(test)]
mod tests;
