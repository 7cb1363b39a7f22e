//! Views that read a whole log: pages of lines, and hits.

use fault::Fault;
use proto::v1 as pb;
use session::view::{Cleaner, Glyph};
use session::view::{Pager, Window};
use session::view::{Search, Searcher};

use super::{CHARS_MAX, unreadable};
use crate::enforce::invalid;
use crate::sessions::{Read, Session};

/// Bytes read in one go.
const BLOCK: usize = 64 * 1024;
/// Lines of a page that names none (runtime.md §2.4).
const LINES: usize = 200;

/// A page of lines.
pub(super) fn log(session: &Session, view: &pb::LogView, max: usize) -> Result<pb::LogPage, Fault> {
    let lines = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let window = match (view.line, view.limit) {
        (None, None) => Window::Last(LINES),
        (None, Some(limit)) => Window::Last(lines(limit)),
        (Some(line), limit) => Window::From { line, limit: limit.map(lines) },
    };
    let mut pager = Pager::new(window, max);
    through(session, &mut pager)?;
    let page = pager.finish();
    let omitted = page
        .lost
        .iter()
        .map(|&(from, to)| pb::Omitted { from, to, lost: true })
        .chain(page.cut.iter().map(|&(from, to)| pb::Omitted { from, to, lost: false }))
        .collect();
    Ok(pb::LogPage {
        text: page.text,
        first_line: page.first_line,
        lines: page.lines,
        total_lines: page.total_lines,
        total_chars: page.total_chars,
        from_offset: page.from,
        to_offset: page.to,
        omitted,
    })
}

/// Hits of a pattern.
pub(super) fn search(session: &Session, wanted: &Search) -> Result<pb::SearchHits, Fault> {
    let mut searcher = Searcher::new(wanted).map_err(|error| invalid(error.to_string()))?;
    through(session, &mut searcher)?;
    let mut found = searcher.finish();
    // The lines around count as well; what does not fit is in the total only.
    let mut room = CHARS_MAX;
    found.hits.retain(|hit| {
        let size = |line: &String| line.len() + 1;
        let taken = size(&hit.text) + hit.before.iter().chain(&hit.after).map(size).sum::<usize>();
        room = room.saturating_sub(taken);
        room > 0
    });
    Ok(pb::SearchHits {
        hits: found
            .hits
            .into_iter()
            .map(|hit| pb::search_hits::Hit {
                line: hit.line,
                from_offset: hit.from,
                to_offset: hit.to,
                text: hit.text,
                before: hit.before,
                after: hit.after,
            })
            .collect(),
        total: found.total,
        total_lines: found.total_lines,
        omitted: found.lost.iter().map(|&(from, to)| pb::Omitted { from, to, lost: true }).collect(),
    })
}

/// What takes a whole log.
trait Sink {
    fn push(&mut self, glyph: Glyph);
    fn gap(&mut self, from: u64, to: u64);
}

impl Sink for Pager {
    fn push(&mut self, glyph: Glyph) {
        Pager::push(self, glyph);
    }
    fn gap(&mut self, from: u64, to: u64) {
        Pager::gap(self, from, to);
    }
}

impl Sink for Searcher {
    fn push(&mut self, glyph: Glyph) {
        Searcher::push(self, glyph);
    }
    fn gap(&mut self, from: u64, to: u64) {
        Searcher::gap(self, from, to);
    }
}

fn through(session: &Session, sink: &mut impl Sink) -> Result<(), Fault> {
    let end = session.end();
    let mut reader = session.reader(0);
    let mut cleaner = Cleaner::default();
    // What comes meanwhile is for the next one who asks.
    while reader.position() < end {
        match reader.next(BLOCK).map_err(|error| unreadable(&error))? {
            Read::Data(records) => {
                for record in records {
                    cleaner.push(record.stream, record.offset, &record.bytes, &mut |glyph| sink.push(glyph));
                }
            }
            Read::Gap { from, to } => {
                cleaner.gap(from, to, &mut |glyph| sink.push(glyph));
                sink.gap(from, to);
            }
            Read::Empty | Read::End => break,
        }
    }
    cleaner.finish(&mut |glyph| sink.push(glyph));
    Ok(())
}
