//! Views of output: text made from the raw bytes of a session's log, for people and models (`runtime.md` §1.11, §2.4).
//!
//! Everything here is streaming: bytes or glyphs in, text out, with a bounded memory. The raw bytes stay the truth;
//! each glyph and each omission carries the byte offsets that it stands for, so that whoever needs more can ask for it.
//! The way is [`Cleaner`] (bytes to [`Glyph`]s), then one of [`TextBuilder`], [`Pager`], [`Searcher`] or [`Watcher`].
//! Nothing here reads a log, and nothing knows about terminals' screens.

mod clean;
mod ends;
mod fold;
mod lines;
mod search;
mod text;

pub use clean::{Cleaner, Glyph};
pub use lines::{Page, Pager, Window};
pub use search::{Found, Hit, Search, SearchError, Searcher, Watcher};
pub use text::{Piece, Text, TextBuilder};

#[cfg(test)]
mod tests;
