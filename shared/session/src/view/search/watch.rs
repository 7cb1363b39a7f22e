//! The watch for a text that is still to come, for `wait`.

use super::pattern::{Line, Part, Pattern, SearchError};
use crate::view::clean::Glyph;
use crate::view::fold::{Fold, LINE_MAX};

/// How many characters may come in one line before it is looked at.
const LOOK_EVERY: usize = LINE_MAX / 2;

/// Looks for a pattern in output as it comes. It sees the current line as it stands, up to its last 16384 characters:
/// when the line ends, when a `\r` is about to replace it, and whenever it is asked. In a longer line a match of up to 8192
/// characters is found.
#[derive(Debug)]
pub struct Watcher {
    pattern: Pattern,
    fold: Fold,
    /// Characters of the line that were not looked at yet.
    unseen: usize,
    /// The beginning of the line is gone.
    headless: bool,
    found: Option<(u64, u64, String)>,
}

impl Watcher {
    /// # Errors
    /// [`SearchError`] when the pattern cannot be used.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, SearchError> {
        let pattern = Pattern::new(pattern, ignore_case, false)?;
        Ok(Watcher { pattern, fold: Fold::default(), unseen: 0, headless: false, found: None })
    }

    /// Takes the next glyph. After a match nothing more is looked at.
    pub fn push(&mut self, glyph: Glyph) {
        if self.found.is_some() {
            return;
        }
        match glyph.ch {
            '\n' => {
                // An empty line matches too.
                self.look(Part::Last, Some(glyph.from));
                self.fold.push(glyph, &mut |_| {});
                self.headless = false;
            }
            '\r' => {
                self.look_at_new();
                self.fold.push(glyph, &mut |_| {});
            }
            _ => {
                self.fold.push(glyph, &mut |_| self.headless = true);
                self.unseen = self.unseen.saturating_add(1);
                if self.unseen >= LOOK_EVERY {
                    self.look(Part::More, None);
                }
            }
        }
    }

    /// Bytes are missing here: a match does not reach over them.
    pub fn gap(&mut self) {
        if self.found.is_none() {
            self.look_at_new();
            self.fold.flush(&mut |_| {});
            self.headless = false;
        }
    }

    /// The first match: its first byte, the byte behind it, and its text.
    pub fn matched(&mut self) -> Option<(u64, u64, String)> {
        if self.found.is_none() {
            self.look_at_new();
        }
        self.found.clone()
    }

    fn look_at_new(&mut self) {
        if self.unseen > 0 {
            self.look(Part::Last, None);
        }
    }

    fn look(&mut self, part: Part, end: Option<u64>) {
        self.unseen = 0;
        let mut line = Line::default();
        self.fold.current().for_each(|glyph| line.push(glyph));
        if let Some(at) = end {
            line.end_at(at);
        }
        if self.headless {
            line.behead();
        }
        if let Some(range) = self.pattern.find(&line, part) {
            let (from, to) = line.bytes(&range);
            self.found = Some((from, to, line.text().get(range).unwrap_or_default().to_owned()));
        }
    }
}
