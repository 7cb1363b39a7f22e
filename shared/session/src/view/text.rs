//! Output as one text of bounded length: head and tail kept, every omission named.

use std::fmt::Write as _;

use super::clean::Glyph;
use super::ends::Ends;
use super::fold::Fold;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Characters to show.
    Text(String),
    /// Bytes that are not shown.
    Omitted {
        /// Merged offset of the first byte.
        from: u64,
        /// Merged offset behind the last byte.
        to: u64,
        /// No longer kept by the node; otherwise the bytes can be asked for.
        lost: bool,
    },
}

/// A text and what is missing in it. Two pieces of text never follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The parts, in order.
    pub pieces: Vec<Piece>,
    /// Characters of the whole range before the cut.
    pub chars: u64,
}

impl Text {
    /// The text for people and models: each omission stands on a line of its own.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let mut marked = false;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    if marked && !text.starts_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(text);
                    marked = false;
                }
                Piece::Omitted { from, to, lost } => {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    let bytes = to.saturating_sub(*from);
                    let what = if *lost { "no longer kept" } else { "omitted" };
                    // Writing to a string does not fail.
                    let _ = write!(out, "[... {bytes} bytes {what}: offsets {from} to {to} ...]");
                    marked = true;
                }
            }
        }
        out
    }

    /// What is not shown: first byte, behind the last byte, and whether it is lost.
    pub fn omitted(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Omitted { from, to, lost } => Some((*from, *to, *lost)),
        })
    }
}

/// Builds a [`Text`] of at most `max_chars` characters from glyphs: the head gets half of them, the tail the rest.
///
/// Lines are folded to their last state: `\r\n` is a newline, text after a lone `\r` replaces the line, `\b` steps back
/// one character. A cut lies between grapheme clusters, and its range runs from behind the last byte shown before it to
/// the first byte shown after it. Memory: `max_chars` and one line of at most 16384 characters.
#[derive(Debug)]
pub struct TextBuilder {
    fold: Fold,
    ends: Ends,
}

impl TextBuilder {
    /// A builder that keeps `max_chars` characters. Marks of omissions come on top.
    pub fn new(max_chars: usize) -> Self {
        TextBuilder { fold: Fold::default(), ends: Ends::new(max_chars) }
    }

    /// Takes the next glyph.
    pub fn push(&mut self, glyph: Glyph) {
        self.fold.push(glyph, &mut |folded| self.ends.push(folded));
    }

    /// The bytes from `from` to `to` are no longer kept. Ends the line.
    pub fn gap(&mut self, from: u64, to: u64) {
        self.fold.flush(&mut |folded| self.ends.push(folded));
        self.ends.omit(from, to, true);
    }

    /// The bytes from `from` to `to` exist and were not read. Ends the line.
    pub fn skip(&mut self, from: u64, to: u64) {
        self.fold.flush(&mut |folded| self.ends.push(folded));
        self.ends.omit(from, to, false);
    }

    /// The text.
    pub fn finish(mut self) -> Text {
        self.fold.flush(&mut |folded| self.ends.push(folded));
        self.ends.finish()
    }
}

#[cfg(test)]
mod tests;
