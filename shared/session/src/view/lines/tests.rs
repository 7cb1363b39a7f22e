use proptest::prelude::*;

use super::*;
use crate::view::TextBuilder;
use crate::view::tests::{glyphs, output};

fn page(raw: &str, window: Window, max_chars: usize) -> Page {
    let mut pager = Pager::new(window, max_chars);
    glyphs(raw.as_bytes()).into_iter().for_each(|glyph| pager.push(glyph));
    pager.finish()
}

fn from(line: u64, limit: usize) -> Window {
    Window::From { line, limit: Some(limit) }
}

#[test]
fn windows() {
    let raw = "a\nb\r\n\n10%\r20%\ne\n";
    let want = |text: &str, first_line, lines, from, to| Page {
        text: text.to_owned(),
        first_line,
        lines,
        total_lines: 5,
        total_chars: 11,
        from,
        to,
        ..Page::default()
    };
    for (window, want) in [
        (Window::Last(2), want("20%\ne", 3, 2, 10, 16)),
        (Window::Last(3), want("\n20%\ne", 2, 3, 5, 16)),
        (Window::Last(200), want("a\nb\n\n20%\ne", 0, 5, 0, 16)),
        (Window::Last(0), want("", 5, 0, 16, 16)),
        (Window::From { line: 0, limit: None }, want("a\nb\n\n20%\ne", 0, 5, 0, 16)),
        (Window::From { line: 3, limit: None }, want("20%\ne", 3, 2, 10, 16)),
        (from(1, 2), want("b\n", 1, 2, 2, 6)),
        (from(1, 1), want("b", 1, 1, 2, 5)),
        (from(4, 9), want("e", 4, 1, 14, 16)),
        (from(5, 9), want("", 5, 0, 16, 16)),
        (from(9, 9), want("", 5, 0, 16, 16)),
        (from(2, 0), want("", 2, 0, 16, 16)),
        (from(u64::MAX, usize::MAX), want("", 5, 0, 16, 16)),
    ] {
        assert_eq!(page(raw, window, 1000), want, "{window:?}");
    }
}

#[test]
fn lines_are_counted_as_people_count() {
    for (raw, lines, chars) in
        [("", 0, 0), ("\n", 1, 1), ("a", 1, 1), ("a\n", 1, 2), ("a\n\n", 2, 3), ("a\r", 1, 1), ("\r\n", 1, 1)]
    {
        for window in [Window::Last(9), from(0, 9)] {
            let page = page(raw, window, 9);
            assert_eq!((page.total_lines, page.lines, page.total_chars), (lines, lines, chars), "{raw:?}");
        }
    }
}

#[test]
fn a_gap_ends_the_line_and_is_named() {
    let whole = "ab\n[... 10 bytes no longer kept: offsets 2 to 12 ...]\ncd\nef";
    for (window, text, first_line, lines, bytes, lost) in [
        (Window::Last(9), whole, 0, 3, (0, 18), vec![(2, 12)]),
        (from(0, 9), whole, 0, 3, (0, 18), vec![(2, 12)]),
        (Window::Last(2), &whole[3..], 1, 2, (2, 18), vec![(2, 12)]),
        (from(1, 1), &whole[3..whole.len() - 3], 1, 1, (2, 15), vec![(2, 12)]),
        (from(0, 1), "ab", 0, 1, (0, 2), vec![]),
        (Window::Last(1), "ef", 2, 1, (15, 18), vec![]),
    ] {
        let mut pager = Pager::new(window, 100);
        glyphs(b"ab").into_iter().for_each(|glyph| pager.push(glyph));
        pager.gap(2, 12);
        for glyph in glyphs(b"cd\nef\n") {
            pager.push(Glyph { from: glyph.from + 12, to: glyph.to + 12, ..glyph });
        }
        let want = Page {
            text: text.to_owned(),
            first_line,
            lines,
            total_lines: 3,
            total_chars: 8,
            from: bytes.0,
            to: bytes.1,
            lost,
            cut: vec![],
        };
        assert_eq!(pager.finish(), want, "{window:?}");
    }
}

#[test]
fn a_page_is_bounded() {
    let raw = "0123456789\nabcdefghij\n";
    let both = "01\n[... 18 bytes omitted: offsets 2 to 20 ...]\nj";
    let tail = "[... 12 bytes omitted: offsets 0 to 12 ...]\nbcdefghij";
    let cut = "[... 9 bytes omitted: offsets 11 to 20 ...]\nj";
    for (window, max, text, bytes, ranges) in [
        (from(0, 9), 4, both, (0, 22), vec![(2, 20)]),
        (Window::Last(9), 10, tail, (0, 22), vec![(0, 12)]),
        (Window::Last(1), 2, cut, (11, 22), vec![(11, 20)]),
        (Window::Last(1), 0, "[... 11 bytes omitted: offsets 11 to 22 ...]", (11, 22), vec![(11, 22)]),
        (from(1, 1), 0, "[... 11 bytes omitted: offsets 11 to 22 ...]", (11, 22), vec![(11, 22)]),
    ] {
        let got = page(raw, window, max);
        assert_eq!(
            (got.text.as_str(), (got.from, got.to), got.cut),
            (text, bytes, ranges),
            "{window:?} {max}"
        );
    }
}

proptest! {
    /// The last lines are the same as those from the line on at which they begin.
    #[test]
    fn both_windows_agree(bytes in output(), lines in 0_usize..6) {
        let raw = String::from_utf8_lossy(&bytes);
        let last = page(&raw, Window::Last(lines), 1000);
        let first = last.total_lines.saturating_sub(lines as u64);
        prop_assert_eq!(last, page(&raw, Window::From { line: first, limit: None }, 1000));
    }

    /// Pages one behind the other make up the whole text.
    #[test]
    fn pages_make_up_the_whole(bytes in output(), size in 1_usize..4) {
        let raw = String::from_utf8_lossy(&bytes);
        let mut builder = TextBuilder::new(1000);
        glyphs(raw.as_bytes()).into_iter().for_each(|glyph| builder.push(glyph));
        let whole = builder.finish().render();
        let total = page(&raw, from(0, 0), 9).total_lines;
        let pages: Vec<String> = (0..total).step_by(size).map(|line| page(&raw, from(line, size), 1000).text).collect();
        prop_assert_eq!(pages.join("\n"), whole.strip_suffix('\n').unwrap_or(&whole));
    }
}
