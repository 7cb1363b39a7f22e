//! New output as text.

use std::io;

use fault::Fault;
use proto::v1 as pb;
use session::view::Cleaner;
use session::view::{Text, TextBuilder};

use super::unreadable;
use crate::sessions::{Read, Session};

/// Bytes read in one go.
const BLOCK: usize = 64 * 1024;
/// How far behind the newest output something that is not whole yet may hold a text back, in bytes.
const HELD_BACK_MAX: u64 = 8 * 1024;
/// Bytes beyond which the middle of a range is not even read, for each character that is shown.
const BYTES_PER_CHAR: u64 = 8;

/// The output of a range, at most `max` characters of it.
pub(super) fn between(session: &Session, from: u64, to: u64, max: usize) -> Result<pb::ReadText, Fault> {
    let over = session.is_over_at(to);
    let (mut text, mut settled) = build(session, from, to, max, over).map_err(|e| unreadable(&e))?;
    // A character or an escape sequence is under way: what comes behind its beginning is shown when it is whole.
    if settled < to && !over {
        if to - settled <= HELD_BACK_MAX {
            (text, _) = build(session, from, settled, max, true).map_err(|e| unreadable(&e))?;
        } else {
            (text, settled) = build(session, from, to, max, true).map_err(|e| unreadable(&e))?;
        }
    }
    let omitted = text.omitted().map(|(from, to, lost)| pb::Omitted { from, to, lost }).collect();
    Ok(pb::ReadText {
        from_offset: from,
        next_offset: settled.max(from),
        chars: text.chars,
        text: text.render(),
        omitted,
        ..pb::ReadText::default()
    })
}

/// The text, and the offset before which everything is whole. `last`: nothing more comes, what was begun is shown.
fn build(session: &Session, from: u64, to: u64, max: usize, last: bool) -> io::Result<(Text, u64)> {
    let mut builder = TextBuilder::new(max);
    let mut cleaner = Cleaner::default();
    let part = (max as u64).saturating_mul(BYTES_PER_CHAR).max(BLOCK as u64);
    if to.saturating_sub(from) > part.saturating_mul(2) {
        feed(session, from, from + part, &mut cleaner, &mut builder)?;
        cleaner.finish(&mut |glyph| builder.push(glyph));
        cleaner = Cleaner::default();
        let tail = line_start(session, to - part)?;
        builder.skip(from + part, tail);
        feed(session, tail, to, &mut cleaner, &mut builder)?;
    } else {
        feed(session, from, to, &mut cleaner, &mut builder)?;
    }
    let settled = if last { to } else { cleaner.settled().min(to) };
    if last {
        cleaner.finish(&mut |glyph| builder.push(glyph));
    }
    Ok((builder.finish(), if to == from { to } else { settled }))
}

/// The first start of a line at or behind an offset, looked for in one block: a text that begins there begins with
/// nothing half.
fn line_start(session: &Session, at: u64) -> io::Result<u64> {
    match session.reader(at).next(BLOCK)? {
        Read::Data(records) => Ok(records
            .iter()
            .find_map(|record| {
                let end = record.bytes.iter().position(|&byte| byte == b'\n')?;
                Some(record.offset + end as u64 + 1)
            })
            .unwrap_or(at)),
        Read::Gap { .. } | Read::Empty | Read::End => Ok(at),
    }
}

fn feed(
    session: &Session,
    from: u64,
    to: u64,
    cleaner: &mut Cleaner,
    builder: &mut TextBuilder,
) -> io::Result<()> {
    let mut reader = session.reader(from);
    while reader.position() < to {
        let room = usize::try_from(to - reader.position()).unwrap_or(BLOCK).min(BLOCK);
        match reader.next(room)? {
            Read::Data(records) => {
                for record in records {
                    cleaner
                        .push(record.stream, record.offset, &record.bytes, &mut |glyph| builder.push(glyph));
                }
            }
            Read::Gap { from, to: end } => {
                cleaner.gap(from, end.min(to), &mut |glyph| builder.push(glyph));
                builder.gap(from, end.min(to));
            }
            Read::Empty | Read::End => break,
        }
    }
    Ok(())
}

/// The end of the output, at most `max` characters, and whether that is not all of it.
pub(super) fn tail(session: &Session, max: usize) -> io::Result<(String, bool)> {
    let end = session.end();
    let wanted = (max as u64).saturating_mul(BYTES_PER_CHAR);
    let from = match end.saturating_sub(wanted) {
        0 => 0,
        at => line_start(session, at)?,
    };
    // All of it in the builder's second half, so that the cut is at the front.
    let (text, _) = build(session, from, end, usize::try_from(wanted).unwrap_or(max), true)?;
    let text = text.render();
    let surplus = text.chars().count().saturating_sub(max);
    let cut = from > 0 || surplus > 0;
    Ok((last(&text, max).to_owned(), cut))
}

/// The last characters of a text.
fn last(text: &str, max: usize) -> &str {
    let at = text.char_indices().rev().nth(max.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.get(at..).unwrap_or_default()
}
