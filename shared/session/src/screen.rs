//! A terminal's screen as text (runtime.md §3; the action `screen`).
//!
//! Fed with a program's raw output, it shows what a person would see. Colours and scrolled-off lines are **not**
//! kept: the log has them.

use std::fmt;
use std::str;

use avt::parser::Function;
use avt::{ScreenKind, Terminal};

/// The widest screen, in cells.
pub const MAX_COLS: u16 = 1000;

/// The tallest screen, in cells.
pub const MAX_ROWS: u16 = 500;

/// A terminal that keeps its screen.
pub struct Screen {
    parser: avt::Parser,
    terminal: Terminal,
    /// The start of a character whose other bytes did not come yet.
    partial: Vec<u8>,
}

/// The screen at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The rows from the top, without spaces at their ends and without empty rows at the bottom. No control
    /// characters, nothing invisible, nothing that changes the direction of text.
    pub lines: Vec<String>,
    /// The cursor's row, from 0.
    pub cursor_row: u16,
    /// The cursor's column, from 0.
    pub cursor_col: u16,
    /// The program did not hide the cursor.
    pub cursor_visible: bool,
    /// Width in cells.
    pub cols: u16,
    /// Height in cells.
    pub rows: u16,
    /// The alternate screen is shown: a full-screen program runs.
    pub alternate: bool,
}

impl Screen {
    /// An empty screen. Sizes are kept within 1 to [`MAX_COLS`] and 1 to [`MAX_ROWS`].
    pub fn new(cols: u16, rows: u16) -> Screen {
        let (cols, rows) = size(cols, rows);
        let Ok(terminal) = Terminal::new(cols, rows) else {
            unreachable!("only a size of zero is refused; a test asks for it");
        };
        Screen { parser: avt::Parser::default(), terminal, partial: Vec::new() }
    }

    /// Draws the next bytes of output. A character may be cut between calls; bytes that are no UTF-8 show as U+FFFD.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.partial.is_empty() {
            self.draw(bytes);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            self.draw(&joined);
        }
    }

    fn draw(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.print(chunk.valid());
            match str::from_utf8(chunk.invalid()) {
                Ok(_) => {}
                Err(e) if e.error_len().is_none() && chunks.peek().is_none() => {
                    self.partial = chunk.invalid().to_vec();
                }
                Err(_) => self.print("\u{fffd}"),
            }
        }
    }

    fn print(&mut self, text: &str) {
        let cols = self.terminal.size().0;
        let functions =
            text.chars().filter_map(|c| self.parser.feed(c)).filter_map(|function| match function {
                Function::Print(c) if c.is_control() || is_hidden(c) => None,
                // Five bytes must not cost 65 535 steps: no program repeats beyond its line.
                Function::Rep(count) => Some(Function::Rep(count.min(cells(cols)))),
                other => Some(other),
            });
        self.terminal.execute(functions);
    }

    /// Follows a change of the terminal's size.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        let (cols, rows) = size(cols, rows);
        self.terminal.resize(cols, rows);
    }

    /// What is on the screen.
    pub fn render(&self) -> Rendered {
        let mut lines: Vec<String> = self.terminal.screen().visible_lines().map(row).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let (cols, rows) = self.terminal.size();
        let cursor = self.terminal.cursor();
        Rendered {
            lines,
            cursor_row: cells(cursor.row.min(rows - 1)),
            // Behind a full row the cursor waits on no cell.
            cursor_col: cells(cursor.col.min(cols - 1)),
            cursor_visible: cursor.visible,
            cols: cells(cols),
            rows: cells(rows),
            alternate: self.terminal.active_screen_kind() == ScreenKind::Alternate,
        }
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("size", &self.terminal.size()).finish_non_exhaustive()
    }
}

fn size(cols: u16, rows: u16) -> (usize, usize) {
    (usize::from(cols.clamp(1, MAX_COLS)), usize::from(rows.clamp(1, MAX_ROWS)))
}

/// A count of cells, which is never above [`MAX_COLS`].
fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn row(line: &avt::Line) -> String {
    let mut text = line.text();
    text.truncate(text.trim_end().len());
    text
}

/// Takes no cell on a terminal, and in a text only hides, reorders or breaks. Accents stay: they are part of what is
/// written.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
