use proptest::prelude::*;

use super::*;
use crate::view::tests::output;

const OUT: StreamTag = StreamTag::Stdout;
const ERR: StreamTag = StreamTag::Stderr;

/// The glyphs of `chunks`, one behind the other, and the cleaner's `settled` before the end.
fn clean(chunks: &[(StreamTag, &[u8])]) -> (Vec<Glyph>, u64) {
    let (mut cleaner, mut glyphs, mut at) = (Cleaner::default(), Vec::new(), 0);
    for &(stream, bytes) in chunks {
        cleaner.push(stream, at, bytes, &mut |glyph| glyphs.push(glyph));
        at += bytes.len() as u64;
    }
    let settled = cleaner.settled();
    cleaner.finish(&mut |glyph| glyphs.push(glyph));
    (glyphs, settled)
}

fn text(glyphs: &[Glyph]) -> String {
    glyphs.iter().map(|glyph| glyph.ch).collect()
}

fn cleaned(bytes: &[u8]) -> String {
    text(&clean(&[(OUT, bytes)]).0)
}

#[test]
fn what_is_shown() {
    for (raw, want) in [
        (&b"plain ~ \t\n\r\x08"[..], "plain ~ \t\n\r\x08"),
        // F168: binary output.
        (b"a\0b\x7f\x01\x0b\x0c\x07", r"a\x00b\x7f\x01\x0b\x0c\x07"),
        (b"\xff\xfe\x80\xc0\xaf\xf5", r"\xff\xfe\x80\xc0\xaf\xf5"),
        // A surrogate, an overlong form, a character beyond the last one.
        (b"\xed\xa0\x80", r"\xed\xa0\x80"),
        (b"\xe0\x80\x80", r"\xe0\x80\x80"),
        (b"\xf4\x90\x80\x80", r"\xf4\x90\x80\x80"),
        (b"\xe6\x97A\xe6\x97", r"\xe6\x97A\xe6\x97"),
        (b"\xe6\xe6\x97\xa5", r"\xe6日"),
        ("日本語 ÷ 😀".as_bytes(), "日本語 ÷ 😀"),
        // F164: joiners, flags, tags and variation selectors stay.
        ("👩\u{200d}🚀 🇫🇷 ❤\u{fe0f} می\u{200c}خواهم".as_bytes(), "👩\u{200d}🚀 🇫🇷 ❤\u{fe0f} می\u{200c}خواهم"),
        ("🏴\u{e0067}\u{e0062}\u{e007f}".as_bytes(), "🏴\u{e0067}\u{e0062}\u{e007f}"),
        // Tags without a flag are hidden text.
        ("a\u{e0067}🏴b\u{e0067}".as_bytes(), r"a\u{e0067}🏴b\u{e0067}"),
        ("🏴\u{e007f}\u{e0067}🏴\x1b[m\u{e0067}".as_bytes(), "🏴\u{e007f}\\u{e0067}🏴\\u{e0067}"),
        (
            "🏴\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e007f}".as_bytes(),
            "🏴\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\\u{e0061}\\u{e007f}",
        ),
        // F167: C1 controls and what hides or reorders text.
        (b"\xc2\x9b31m", r"\u{9b}31m"),
        (b"\x9b31m", r"\x9b31m"),
        (
            "a\u{202e}b\u{2066}\u{2069}\u{61c}\u{200e}\u{200f}".as_bytes(),
            r"a\u{202e}b\u{2066}\u{2069}\u{61c}\u{200e}\u{200f}",
        ),
        (
            "\u{feff}\u{2028}\u{2029}\u{ad}\u{200b}\u{2060}\u{e0001}".as_bytes(),
            r"\u{feff}\u{2028}\u{2029}\u{ad}\u{200b}\u{2060}\u{e0001}",
        ),
    ] {
        assert_eq!(cleaned(raw), want, "{raw:x?}");
    }
}

#[test]
fn what_is_removed() {
    for (raw, want) in [
        (&b"\x1b[31mred\x1b[0m"[..], "red"),
        (b"\x1b[?25l\x1b[>4;1m\x1b[ q\x1b[38:2::1:2:3mx", "x"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab"),
        ("\x1b]2;日本\x07a".as_bytes(), "a"),
        (b"\x1bPq#0;2\n~~\x07\x1b\\a\x1bXs\x1b\\b\x1b^p\x1b\\c\x1b_G1\x1b\\d", "abcd"),
        (b"\x1b(B\x1b)0\x1b#8\x1b%Ga\x1b=\x1b>\x1b7\x1b8\x1bM\x1bcb", "ab"),
        // CAN and SUB end whatever was begun.
        (b"\x1b[31\x18a\x1b]0;t\x1ab\x1b\x18c\x1bPq\x1b\x18d", "abcd"),
        // An ESC in a string that is no terminator begins the next sequence.
        (b"\x1b]0;title\x1b[31ma", "a"),
    ] {
        assert_eq!(cleaned(raw), want, "{raw:x?}");
    }
}

#[test]
fn what_is_no_sequence_is_shown() {
    for (raw, want) in [
        (&b"a\x1b"[..], r"a\x1b"),
        (b"\x1b\x1b[1ma", r"\x1ba"),
        (b"\x1b\na", "\\x1b\na"),
        ("\x1b日".as_bytes(), r"\x1b日"),
        (b"\x1b[31", r"\x1b[31"),
        // A newline is never part of a CSI or an OSC.
        (b"\x1b[31\nhello", "\\x1b[31\nhello"),
        (b"\x1b]0;title\r\nhello\x1b[m", "\\x1b]0;title\r\nhello"),
        (b"\x1b[31\x1b[32ma", r"\x1b[31a"),
        (b"\x1b[3\x07a", r"\x1b[3\x07a"),
        ("\x1b]0;日".as_bytes(), r"\x1b]0;日"),
        (b"\x1b]0;a\x1b", r"\x1b]0;a\x1b"),
        (b"\x1bPa\xe6\x97", r"\x1bPa\xe6\x97"),
    ] {
        assert_eq!(cleaned(raw), want, "{raw:x?}");
    }
}

#[test]
fn a_sequence_has_a_bound() {
    for (start, max) in [
        ("\x1b[", CSI_MAX),
        ("\x1b(", CSI_MAX),
        ("\x1b]", STRING_MAX),
        ("\x1bP", STRING_MAX),
        ("\x1b_", STRING_MAX),
    ] {
        let filler = if start == "\x1b(" { "/" } else { "1" };
        let whole = |len: usize| format!("{start}{}", filler.repeat(len - start.len()));
        let end = if max == CSI_MAX { "m" } else { "\x1b\\" };
        // One below the bound a sequence can still end, and two bytes may be needed for that.
        let fits = whole(max - end.len());
        assert_eq!(cleaned(format!("{fits}{end}a").as_bytes()), "a");
        let long = whole(max);
        assert_eq!(
            cleaned(format!("{long}\x1b[31ma").as_bytes()),
            format!("{}a", long.replace('\x1b', r"\x1b"))
        );
    }
}

/// F162: 日本語 read four bytes at a time, with the other stream speaking in between.
#[test]
fn split_characters() {
    let raw = "日本語".as_bytes();
    let chunks: Vec<_> = raw.chunks(4).flat_map(|chunk| [(OUT, chunk), (ERR, &b"!"[..])]).collect();
    let (glyphs, settled) = clean(&chunks);
    let glyph = |ch, from, to| Glyph { ch, from, to };
    let want = [
        glyph('日', 0, 3),
        glyph('!', 4, 5),
        glyph('本', 3, 7),
        glyph('!', 9, 10),
        glyph('語', 7, 11),
        glyph('!', 11, 12),
    ];
    assert_eq!((glyphs, settled), (want.to_vec(), 12));
}

#[test]
fn offsets_of_escapes() {
    let glyph = |ch, from, to| Glyph { ch, from, to };
    let escape = |text: &str, from, to| text.chars().map(|ch| glyph(ch, from, to)).collect::<Vec<_>>();
    let want = [escape(r"\x07", 0, 1), escape(r"\u{9b}", 1, 3), vec![glyph('a', 7, 8)]].concat();
    assert_eq!(clean(&[(OUT, b"\x07\xc2\x9b\x1b[1ma")]), (want, 8));
}

#[test]
fn settled_stands_before_what_is_begun() {
    for (chunks, want) in [
        (&[(OUT, &b"ab"[..])][..], 2),
        (&[(OUT, b"ab\xe6\x97")], 2),
        (&[(OUT, b"ab\x1b]0;tit")], 2),
        (&[(OUT, b"ab\xe6"), (ERR, b"cd")], 2),
        // Tags may follow.
        (&[(OUT, "ab🏴".as_bytes()), (ERR, b"cd")], 2),
        (&[(OUT, "ab🏴".as_bytes()), (ERR, b"cd"), (OUT, b" ")], 9),
        (&[(OUT, b"ab\xe6"), (ERR, b"c\xe6"), (OUT, b"\x97\xa5")], 2),
        (&[(OUT, b"ab\xe6"), (ERR, b"c\xe6"), (OUT, b"\x97\xa5"), (ERR, b"\x97\xa5")], 9),
    ] {
        assert_eq!(clean(chunks).1, want, "{chunks:x?}");
    }
}

#[test]
fn half_a_character_does_not_hold_the_other_stream_up_for_ever() {
    let other = vec![b'x'; LAG_MAX as usize];
    let (glyphs, settled) = clean(&[(OUT, b"\xe6"), (ERR, &other), (OUT, b"\x97\xa5")]);
    assert_eq!(settled, LAG_MAX + 3);
    let want = format!(r"{}\xe6x\x97\xa5", "x".repeat(other.len() - 1));
    assert_eq!(text(&glyphs), want);
}

#[test]
fn a_gap_shows_what_was_begun() {
    let (mut cleaner, mut glyphs) = (Cleaner::default(), Vec::new());
    let mut sink = |glyph: Glyph| glyphs.push(glyph);
    cleaner.push(OUT, 0, b"a\x1b[3", &mut sink);
    cleaner.push(ERR, 4, b"\xe6", &mut sink);
    cleaner.gap(5, 100, &mut sink);
    assert_eq!(cleaner.settled(), 100);
    cleaner.push(OUT, 100, b"1mb", &mut sink);
    assert_eq!(text(&glyphs), r"a\x1b[3\xe61mb");
}

/// The same bytes as records of any size of both streams.
fn records() -> impl Strategy<Value = Vec<(StreamTag, Vec<u8>)>> {
    let record = (prop::bool::weighted(0.3), output());
    prop::collection::vec(record, 0..6).prop_map(|records| {
        records.into_iter().map(|(err, bytes)| (if err { ERR } else { OUT }, bytes)).collect()
    })
}

proptest! {
    #[test]
    fn chunks_do_not_matter(records in records(), size in 1_usize..9) {
        let whole: Vec<_> = records.iter().map(|(stream, bytes)| (*stream, &bytes[..])).collect();
        let split: Vec<_> = whole.iter().flat_map(|&(stream, bytes)| bytes.chunks(size).map(move |chunk| (stream, chunk))).collect();
        prop_assert_eq!(clean(&whole), clean(&split));
    }

    #[test]
    fn nothing_dangerous_is_shown(bytes in output()) {
        let shown = cleaned(&bytes);
        let bad = shown.chars().find(|&ch| ch.is_control() && !"\t\n\r\x08".contains(ch) || ch == '\u{202e}' || ch == '\u{fffd}');
        prop_assert_eq!(bad, None);
    }

    #[test]
    fn of_one_stream_offsets_rise(bytes in output()) {
        let (glyphs, _) = clean(&[(OUT, &bytes)]);
        for pair in glyphs.windows(2) {
            let same = (pair[0].from, pair[0].to) == (pair[1].from, pair[1].to);
            prop_assert!(same || pair[0].to <= pair[1].from);
        }
        prop_assert!(glyphs.iter().all(|glyph| glyph.from < glyph.to && glyph.to <= bytes.len() as u64));
    }

    /// Whoever stops at any place and goes on at `settled` with a fresh cleaner sees the same.
    #[test]
    fn reading_goes_on_at_settled(records in records(), stop in any::<prop::sample::Index>()) {
        let bytes: Vec<(StreamTag, u8)> =
            records.iter().flat_map(|(stream, bytes)| bytes.iter().map(|&byte| (*stream, byte))).collect();
        let read = |from: usize, to: usize| {
            let (mut cleaner, mut glyphs) = (Cleaner::default(), Vec::new());
            for (at, &(stream, byte)) in bytes.iter().enumerate().take(to).skip(from) {
                cleaner.push(stream, at as u64, &[byte], &mut |glyph| glyphs.push(glyph));
            }
            let settled = cleaner.settled();
            if to == bytes.len() {
                cleaner.finish(&mut |glyph| glyphs.push(glyph));
            }
            (glyphs, settled)
        };
        let (mut first, settled) = read(0, stop.index(bytes.len() + 1));
        first.retain(|glyph| glyph.from < settled);
        first.extend(read(settled as usize, bytes.len()).0);
        prop_assert_eq!(first, read(0, bytes.len()).0);
    }
}
