//! The current line, as a terminal without escape sequences would show it: carriage return and backspace.

use std::collections::VecDeque;

use super::clean::Glyph;

/// The most characters of a line that can still change. What is older is settled as it stands.
pub(super) const LINE_MAX: usize = 16384;

/// A character whose place is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) glyph: Glyph,
    /// No cut may lie in front of it: by a backspace, bytes in front of it come after bytes behind it.
    pub(super) joined: bool,
}

/// Folds one line at a time. `\r\n` is a newline; text after a lone `\r` replaces the line; `\b` steps back by one
/// character, which the next one overwrites.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// What stands before the cursor, in order of its bytes.
    left: VecDeque<Glyph>,
    /// What stands behind the cursor, the nearest last.
    right: Vec<Glyph>,
    /// A `\r` came, and nothing after it yet.
    returned: bool,
}

impl Fold {
    /// Takes the next glyph and gives out those that can no longer change. A newline is given out behind its line.
    pub(super) fn push(&mut self, glyph: Glyph, sink: &mut impl FnMut(Folded)) {
        match glyph.ch {
            '\n' => {
                self.flush(sink);
                sink(Folded { glyph, joined: false });
            }
            '\r' => self.returned = true,
            '\x08' if self.returned => {}
            '\x08' => self.step_back(),
            _ => {
                if self.returned {
                    self.clear();
                }
                // The characters of one escape take one place together.
                if !self.left.back().is_some_and(|last| same(last, &glyph)) {
                    self.overwrite();
                }
                self.left.push_back(glyph);
                if self.left.len().saturating_add(self.right.len()) > LINE_MAX
                    && let Some(glyph) = self.left.pop_front()
                {
                    sink(Folded { glyph, joined: false });
                }
            }
        }
    }

    /// Gives out the line as it stands: it ended, or bytes are missing, or nothing more comes.
    pub(super) fn flush(&mut self, sink: &mut impl FnMut(Folded)) {
        if self.right.is_empty() {
            self.left.iter().for_each(|&glyph| sink(Folded { glyph, joined: false }));
        } else {
            let line: Vec<Glyph> = self.current().collect();
            // The lowest offset from each place on: a cut needs all in front of it to end before.
            let mut lowest: Vec<u64> = line
                .iter()
                .rev()
                .scan(u64::MAX, |low, glyph| {
                    *low = glyph.from.min(*low);
                    Some(*low)
                })
                .collect();
            lowest.reverse();
            let mut end = 0;
            for (&glyph, low) in line.iter().zip(lowest) {
                sink(Folded { glyph, joined: end > low });
                end = glyph.to.max(end);
            }
        }
        self.clear();
    }

    /// The line as it stands, without what has already been given out. Blanks behind the cursor were written to erase.
    pub(super) fn current(&self) -> impl Iterator<Item = Glyph> {
        let blanks = self.right.iter().take_while(|glyph| glyph.ch == ' ').count();
        self.left.iter().chain(self.right.iter().skip(blanks).rev()).copied()
    }

    /// Glyphs that there is room for.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.left.capacity().saturating_add(self.right.capacity())
    }

    fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
        self.returned = false;
    }

    fn step_back(&mut self) {
        if let Some(glyph) = self.left.pop_back() {
            self.right.push(glyph);
            while let Some(more) = self.left.pop_back_if(|more| same(more, &glyph)) {
                self.right.push(more);
            }
        }
    }

    fn overwrite(&mut self) {
        if let Some(glyph) = self.right.pop() {
            while self.right.pop_if(|more| same(more, &glyph)).is_some() {}
        }
    }
}

/// Whether two glyphs are parts of one escape.
fn same(a: &Glyph, b: &Glyph) -> bool {
    (a.from, a.to) == (b.from, b.to)
}
