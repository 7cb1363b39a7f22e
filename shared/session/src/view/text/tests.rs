use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::offset::StreamTag::{Stderr as ERR, Stdout as OUT};
use crate::view::clean::Cleaner;
use crate::view::tests::{glyphs, output};

fn build(bytes: &[u8], max: usize) -> Text {
    let mut builder = TextBuilder::new(max);
    glyphs(bytes).into_iter().for_each(|glyph| builder.push(glyph));
    builder.finish()
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

fn omitted(from: u64, to: u64) -> Piece {
    Piece::Omitted { from, to, lost: false }
}

fn lost(from: u64, to: u64) -> Piece {
    Piece::Omitted { from, to, lost: true }
}

#[test]
fn lines_are_folded() {
    for (raw, want) in [
        // F169.
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r50%", "50%"),
        ("long line\rshort\n", "short\n"),
        ("done\r", "done"),
        ("done\r\r\n", "done\n"),
        ("a\n\rb", "a\nb"),
        ("\r\r\ra", "a"),
        // A sequence between does not count as text.
        ("50%\r\x1b[K\n", "50%\n"),
        // Backspace steps, the next character overwrites.
        ("abc\x08 \x08\n", "ab\n"),
        ("abc\x08\x08\x08   \x08\x08\x08x\n", "x\n"),
        ("abc\x08\x08\n", "abc\n"),
        ("abc\x08\x08X\n", "aXc\n"),
        ("|\x08/\x08-\x08\\\x08done\n", "done\n"),
        ("b\x08bo\x08ol\x08ld\x08d", "bold"),
        ("\x08\x08a", "a"),
        ("a\n\x08b", "a\nb"),
        ("abc\r\x08", "abc"),
        ("日本\x08x", "日x"),
        // One escape takes one place.
        ("a\x07\x08b", "ab"),
        ("abc\x08\x08\x07", r"a\x07c"),
    ] {
        let got = build(raw.as_bytes(), 1000);
        assert_eq!(got, Text { pieces: vec![text(want)], chars: want.chars().count() as u64 }, "{raw:?}");
    }
    assert_eq!(build(b"", 10), Text::default());
}

#[test]
fn of_a_long_line_only_the_end_can_change() {
    let raw = format!("{}\rnew", "a".repeat(20000));
    assert_eq!(build(raw.as_bytes(), 100_000).render(), format!("{}new", "a".repeat(20000 - 16384)));
}

#[test]
fn head_and_tail_are_kept() {
    let flags = "🇫🇷".repeat(6);
    for (raw, max, pieces) in [
        ("0123456789", 10, vec![text("0123456789")]),
        ("0123456789", 9, vec![text("0123"), omitted(4, 5), text("56789")]),
        ("0123456789", 1, vec![omitted(0, 9), text("9")]),
        ("0123456789", 0, vec![omitted(0, 10)]),
        ("01\x1b[1m2345\x1b[0m6789", 4, vec![text("01"), omitted(2, 16), text("89")]),
        ("01\x1b[1m2345\x1b[0m67", 4, vec![text("01"), omitted(2, 14), text("67")]),
        // Bytes and characters differ.
        ("日本語日本語", 2, vec![text("日"), omitted(3, 15), text("語")]),
        // F164: what belongs together is shown whole or not at all.
        (
            "👩\u{200d}🚀👩\u{200d}🚀👩\u{200d}🚀",
            7,
            vec![text("👩\u{200d}🚀"), omitted(11, 22), text("👩\u{200d}🚀")],
        ),
        ("👩\u{200d}🚀👩\u{200d}🚀👩\u{200d}🚀", 5, vec![omitted(0, 22), text("👩\u{200d}🚀")]),
        (&flags, 7, vec![text("🇫🇷"), omitted(8, 32), text("🇫🇷🇫🇷")]),
        ("e\u{301}e\u{301}e\u{301}", 3, vec![omitted(0, 6), text("e\u{301}")]),
        // An escape is not torn.
        ("\x01\x02\x03", 11, vec![text(r"\x01"), omitted(1, 2), text(r"\x03")]),
        ("a\r\nb\r\nc\r\nd", 4, vec![text("a\n"), omitted(3, 8), text("\nd")]),
        // By a backspace, bytes in front of the cut come after bytes behind it: what is between goes as a whole.
        ("abcdef\x08\x08\x08\x08\x08X\n12345", 8, vec![text("a"), omitted(1, 12), text("\n12345")]),
    ] {
        let got = build(raw.as_bytes(), max);
        assert_eq!(got.pieces, pieces, "{raw:?} {max}");
    }
}

#[test]
fn gaps_and_skipped_bytes_are_named() {
    enum Step {
        Text(u64, &'static str),
        Gap(u64, u64),
        Skip(u64, u64),
    }
    use Step::{Gap, Skip, Text};
    for (steps, max, pieces) in [
        (vec![Text(0, "ab"), Gap(2, 9), Text(9, "cd")], 9, vec![text("ab"), lost(2, 9), text("cd")]),
        // A gap ends the line: the text before it stands.
        (vec![Text(0, "ab\r"), Gap(3, 9), Text(9, "cd")], 9, vec![text("ab"), lost(3, 9), text("cd")]),
        (vec![Gap(0, 5), Gap(5, 9), Skip(9, 12), Skip(12, 20)], 9, vec![lost(0, 9), omitted(9, 20)]),
        (vec![Gap(3, 3)], 9, vec![]),
        (vec![Text(0, "abcd"), Skip(4, 9), Text(9, "efgh")], 4, vec![text("ab"), omitted(2, 11), text("gh")]),
        (
            vec![Text(0, "abcd"), Gap(4, 9), Text(9, "efgh")],
            4,
            vec![text("ab"), omitted(2, 4), lost(4, 9), omitted(9, 11), text("gh")],
        ),
        (
            vec![Text(0, "abcd"), Gap(4, 9), Text(9, "ef")],
            4,
            vec![text("ab"), omitted(2, 4), lost(4, 9), text("ef")],
        ),
        (
            vec![Text(0, "ab"), Gap(2, 9), Text(9, "efgh")],
            4,
            vec![text("ab"), lost(2, 9), omitted(9, 11), text("gh")],
        ),
    ] {
        let mut builder = TextBuilder::new(max);
        for step in steps {
            match step {
                Text(at, text) => (at..)
                    .zip(text.chars())
                    .for_each(|(from, ch)| builder.push(Glyph { ch, from, to: from + 1 })),
                Gap(from, to) => builder.gap(from, to),
                Skip(from, to) => builder.skip(from, to),
            }
        }
        assert_eq!(builder.finish().pieces, pieces);
    }
}

#[test]
fn marks_stand_on_their_own_line() {
    let mark = "[... 7 bytes omitted: offsets 2 to 9 ...]";
    for (pieces, want) in [
        (vec![text("ab"), omitted(2, 9), text("cd")], format!("ab\n{mark}\ncd")),
        (vec![text("ab\n"), omitted(2, 9), text("\ncd\n")], format!("ab\n{mark}\ncd\n")),
        (vec![omitted(2, 9)], mark.to_owned()),
        (
            vec![omitted(2, 9), lost(9, 10)],
            format!("{mark}\n[... 1 bytes no longer kept: offsets 9 to 10 ...]"),
        ),
    ] {
        assert_eq!(Text { pieces, chars: 0 }.render(), want);
    }
}

/// F166: what a full-screen program sends is mostly not text.
#[test]
fn a_screenful_of_codes() {
    let mut raw = String::from("\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[H\x1b[2J\x1b(B\x1b[m");
    raw += "top - 10:00:00 up 1 day,  1 user\x1b(B\x1b[m\x1b[39;49m\x1b(B\x1b[m\x1b[39;49m\x1b[K\r\n";
    raw += "Tasks:\x1b(B\x1b[m\x1b[39;49m\x1b[1m   2 \x1b(B\x1b[m\x1b[39;49mtotal\x1b[K\r\n";
    raw += "\x1b[K\r\n\x1b[7m  PID COMMAND \x1b(B\x1b[m\x1b[39;49m\x1b[K\r\n";
    raw += "\x1b(B\x1b[m    1 init    \x1b(B\x1b[m\x1b[39;49m\x1b[K\r\n\x1b[J\x1b[?12l\x1b[?25h\x1b[?1l\x1b>";
    let want = "top - 10:00:00 up 1 day,  1 user\nTasks:   2 total\n\n  PID COMMAND \n    1 init    \n";
    assert_eq!(build(raw.as_bytes(), 1000).render(), want);
}

/// Zalgo: marks without end are no reason to keep them without end.
#[test]
fn heaped_marks_are_cut() {
    let raw = format!("a{}", "\u{301}".repeat(1000));
    let got = build(raw.as_bytes(), 200);
    assert_eq!(got.chars, 1001);
    let shown: usize = got
        .pieces
        .iter()
        .map(|piece| if let Piece::Text(text) = piece { text.chars().count() } else { 0 })
        .sum();
    assert!((100..=200).contains(&shown), "{shown}");
}

#[test]
fn many_gaps_stay_bounded() {
    let mut builder = TextBuilder::new(10);
    for n in 0..100_000 {
        builder.push(Glyph { ch: 'a', from: n * 10, to: n * 10 + 1 });
        builder.gap(n * 10 + 1, n * 10 + 10);
    }
    let got = builder.finish();
    assert!(got.pieces.len() < 1000, "{}", got.pieces.len());
    assert_eq!(got.omitted().last(), Some((999_991, 1_000_000, true)));
    let mut end = 0;
    for (from, to, _) in got.omitted() {
        assert!(from <= end + 1 && from < to, "{from} {to} behind {end}");
        end = to;
    }
}

/// What is kept does not grow with what is read, in one line or in many.
#[test]
fn memory_is_bounded() {
    for line in [10, u64::MAX] {
        let mut builder = TextBuilder::new(1000);
        for n in 0..500_000 {
            builder.push(Glyph { ch: if n % line == 9 { '\n' } else { 'a' }, from: n, to: n + 1 });
        }
        assert!(builder.fold.held() <= 2 * 16384 && builder.ends.held() <= 4000);
        let got = builder.finish();
        assert_eq!((got.chars, got.omitted().count()), (500_000, 1));
    }
}

/// With two streams a split character may reach over a cut; every byte that is not shown is named all the same.
#[test]
fn a_cut_beside_a_split_character() {
    let (mut cleaner, mut builder) = (Cleaner::default(), TextBuilder::new(4));
    let mut at = 0;
    for (stream, bytes) in [(OUT, &b"ab\xe6"[..]), (ERR, b"cdefgh"), (OUT, b"\x97\xa5ij")] {
        cleaner.push(stream, at, bytes, &mut |glyph| builder.push(glyph));
        at += bytes.len() as u64;
    }
    // 日 lies from 2 to 11, around `cdefgh`.
    assert_eq!(builder.finish().pieces, vec![text("ab"), omitted(2, 11), text("ij")]);
}

proptest! {
    #[test]
    fn a_text_is_bounded_and_part_of_the_whole(bytes in output(), max in 0_usize..40) {
        let whole = build(&bytes, usize::MAX);
        let cut = build(&bytes, max);
        prop_assert_eq!(whole.chars, cut.chars);
        let full = whole.render();
        let parts: Vec<&str> = cut.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Omitted { .. } => None,
        }).collect();
        prop_assert!(parts.iter().map(|part| part.chars().count()).sum::<usize>() <= max);
        match (&cut.pieces[..], &parts[..]) {
            ([], _) => prop_assert_eq!(full.as_str(), ""),
            ([Piece::Text(_)], [all]) => prop_assert_eq!(*all, full.as_str()),
            (_, []) => {}
            ([Piece::Text(_), ..], [head]) => prop_assert!(full.starts_with(head)),
            (_, [tail]) => prop_assert!(full.ends_with(tail)),
            (_, [head, tail]) => prop_assert!(full.starts_with(head) && full.ends_with(tail)),
            _ => prop_assert!(false, "more than a head and a tail"),
        }
        // The cuts lie between grapheme clusters.
        let borders: Vec<usize> = full.grapheme_indices(true).map(|(at, _)| at).chain([full.len()]).collect();
        if let Some(Piece::Text(head)) = cut.pieces.first() {
            prop_assert!(borders.contains(&head.len()));
        }
        if let Some(Piece::Text(tail)) = cut.pieces.last() {
            prop_assert!(borders.contains(&(full.len() - tail.len())));
        }
    }

    /// Each byte with something to show is shown, replaced by what came later in its line, or in the one omission.
    #[test]
    fn omissions_are_exact(bytes in output(), max in 0_usize..40) {
        let all = glyphs(&bytes);
        let cut = build(&bytes, max);
        if let Some((from, to, lost)) = cut.omitted().next() {
            prop_assert!(!lost && from < to && to <= bytes.len() as u64);
            // What is omitted, read by itself with its line, is as long as what is missing.
            let shown: usize = cut.pieces.iter()
                .map(|piece| if let Piece::Text(text) = piece { text.chars().count() } else { 0 }).sum();
            let mut fold = Fold::default();
            let mut folded = Vec::new();
            all.iter().for_each(|&glyph| fold.push(glyph, &mut |one| folded.push(one.glyph)));
            fold.flush(&mut |one| folded.push(one.glyph));
            let inside = folded.iter().filter(|glyph| from <= glyph.from && glyph.to <= to).count();
            let outside = folded.iter().filter(|glyph| glyph.to <= from || to <= glyph.from).count();
            prop_assert_eq!((inside, outside), (folded.len() - shown, shown));
        }
        prop_assert!(cut.omitted().count() <= 1);
    }
}
