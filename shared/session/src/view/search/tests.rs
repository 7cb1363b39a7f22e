use proptest::prelude::*;

use super::*;
use crate::view::tests::{glyphs, output};

fn search(pattern: &str) -> Search {
    Search { pattern: pattern.to_owned(), ignore_case: false, literal: false, before: 0, after: 0, max: 100 }
}

fn found(search: &Search, raw: &str) -> Found {
    let mut searcher = Searcher::new(search).unwrap();
    glyphs(raw.as_bytes()).into_iter().for_each(|glyph| searcher.push(glyph));
    searcher.finish()
}

fn hit(line: u64, from: u64, to: u64, text: &str) -> Hit {
    Hit { line, from, to, text: text.to_owned(), before: vec![], after: vec![] }
}

#[test]
fn lines_that_match() {
    let raw = "ok\n\x1b[31merror\x1b[0m: Größe\r\n10%\r20%\nError.\nlast error";
    for (search, hits) in [
        (search("error"), vec![hit(1, 8, 13, "error: Größe"), hit(4, 48, 53, "last error")]),
        (
            Search { ignore_case: true, ..search("ERROR") },
            vec![hit(1, 8, 13, "error: Größe"), hit(3, 36, 41, "Error."), hit(4, 48, 53, "last error")],
        ),
        (Search { ignore_case: true, ..search("GRÖSSE|größe") }, vec![hit(1, 19, 26, "error: Größe")]),
        (search("^error"), vec![hit(1, 8, 13, "error: Größe")]),
        (search("error$"), vec![hit(4, 48, 53, "last error")]),
        (Search { literal: true, ..search("r.") }, vec![hit(3, 40, 42, "Error.")]),
        (search("r\\.$"), vec![hit(3, 40, 42, "Error.")]),
        // Lines are searched in their last state.
        (search("10%"), vec![]),
        (search("2.%"), vec![hit(2, 32, 35, "20%")]),
        (search("nothing"), vec![]),
    ] {
        let total = hits.len() as u64;
        assert_eq!(found(&search, raw), Found { hits, total, total_lines: 5, lost: vec![] }, "{search:?}");
    }
}

#[test]
fn context_and_limits() {
    let raw = "a\nb\nx1\nc\nx2\nd\ne\nf\n";
    let full = |mut hit: Hit, before: &[&str], after: &[&str]| {
        hit.before = before.iter().map(|&line| line.to_owned()).collect();
        hit.after = after.iter().map(|&line| line.to_owned()).collect();
        hit
    };
    for (search, hits) in [
        (
            Search { before: 1, after: 2, ..search("x") },
            vec![
                full(hit(2, 4, 5, "x1"), &["b"], &["c", "x2"]),
                full(hit(4, 9, 10, "x2"), &["c"], &["d", "e"]),
            ],
        ),
        (Search { before: 9, max: 1, ..search("x") }, vec![full(hit(2, 4, 5, "x1"), &["a", "b"], &[])]),
        (
            Search { after: 9, max: 1, ..search("x") },
            vec![full(hit(2, 4, 5, "x1"), &[], &["c", "x2", "d", "e", "f"])],
        ),
        (Search { after: 9, max: 0, ..search("x") }, vec![]),
    ] {
        assert_eq!(found(&search, raw), Found { hits, total: 2, total_lines: 8, lost: vec![] }, "{search:?}");
    }
}

#[test]
fn a_gap_parts_lines() {
    let mut searcher = Searcher::new(&Search { before: 5, after: 5, ..search("xy|x$|^y") }).unwrap();
    glyphs(b"a\nx").into_iter().for_each(|glyph| searcher.push(glyph));
    searcher.gap(3, 10);
    searcher.gap(10, 20);
    for glyph in glyphs(b"y\nb") {
        searcher.push(Glyph { from: glyph.from + 20, to: glyph.to + 20, ..glyph });
    }
    let hits = vec![
        Hit { before: vec!["a".to_owned()], ..hit(1, 2, 3, "x") },
        Hit { after: vec!["b".to_owned()], ..hit(2, 20, 21, "y") },
    ];
    assert_eq!(searcher.finish(), Found { hits, total: 2, total_lines: 4, lost: vec![(3, 20)] });
}

#[test]
fn patterns_that_are_refused() {
    assert_eq!(Searcher::new(&search(&"a".repeat(1001))).unwrap_err(), SearchError::TooLong { chars: 1001 });
    for pattern in ["(", "a{1000}{1000}", "[z-a]", "(?<=a)b", r"\1"] {
        let error = Searcher::new(&search(pattern)).unwrap_err();
        assert!(matches!(error, SearchError::Pattern { .. }), "{pattern}");
        assert!(Watcher::new(pattern, false).is_err());
    }
    assert!(Searcher::new(&Search { literal: true, ..search("(") }).is_ok());
}

#[test]
fn long_lines_are_shown_around_the_match() {
    let (left, right) = ("l".repeat(1000), "r".repeat(1000));
    for (raw, want) in [
        (format!("{left}HIT{right}"), format!("…{}HIT{}…", "l".repeat(247), "r".repeat(248))),
        (format!("HIT{right}"), format!("HIT{}…", "r".repeat(495))),
        (format!("{left}HIT"), format!("…{}HIT", "l".repeat(495))),
        (format!("{left}HITrr"), format!("…{}HITrr", "l".repeat(493))),
        // 👩‍🚀 has three characters and is not torn.
        (
            format!("{}HIT{right}", "👩\u{200d}🚀".repeat(300)),
            format!("…{}HIT{}…", "👩\u{200d}🚀".repeat(82), "r".repeat(249)),
        ),
        (format!("HIT{}", "l".repeat(497)), format!("HIT{}", "l".repeat(497))),
    ] {
        let got = found(&search("HIT"), &raw);
        assert_eq!(got.hits[0].text, want);
        assert!(want.chars().count() <= SHOWN_MAX);
    }
    let got = found(&search(".*"), &left);
    assert_eq!(got.hits[0], hit(0, 0, 1000, &format!("{}…", "l".repeat(498))));
}

/// A line longer than what is held at once is searched in parts: no match is missed, none is made up.
#[test]
fn lines_longer_than_the_window() {
    let raw = format!("{}NEEDLE{}\n", "a".repeat(3 * LINE_MAX - 3), "b".repeat(3 * LINE_MAX));
    let at = 3 * LINE_MAX as u64 - 3;
    for (pattern, want) in [
        ("NEEDLE", Some((at, at + 6))),
        ("a+NEEDLEb", None),
        ("^NEEDLE", None),
        ("^a{5}", Some((0, 5))),
        ("aNEEDLEb{3}", Some((at - 1, at + 9))),
        ("b$", Some((raw.len() as u64 - 2, raw.len() as u64 - 1))),
        ("a$", None),
        ("^b", None),
    ] {
        let got = found(&search(pattern), &raw);
        let hits: Vec<_> = got.hits.iter().map(|hit| (hit.from, hit.to)).collect();
        if let Some(want) = want {
            assert_eq!((hits, got.total), (vec![want], 1), "{pattern}");
        } else if pattern.starts_with("a+") {
            assert_eq!((hits.len(), hits[0].1), (1, at + 7));
        } else {
            assert_eq!(hits, vec![], "{pattern}");
        }
    }
}

#[test]
fn a_watcher_sees_the_line_as_it_stands() {
    let watch = |pattern: &str, chunks: &[&str]| {
        let mut watcher = Watcher::new(pattern, false).unwrap();
        let mut at = 0;
        for (n, chunk) in chunks.iter().enumerate() {
            for glyph in glyphs(chunk.as_bytes()) {
                watcher.push(Glyph { from: glyph.from + at, to: glyph.to + at, ..glyph });
            }
            at += chunk.len() as u64;
            if let Some((from, to, text)) = watcher.matched() {
                return Some((n, from, to, text));
            }
        }
        None
    };
    let long = "a".repeat(40_000);
    for (pattern, chunks, want) in [
        ("ready", &["not yet\nre", "ady\n"][..], Some((1, 8, 13, "ready"))),
        (r"^>>> $", &["Python 3\r\n", ">>", "> "], Some((2, 10, 14, ">>> "))),
        (r"^>>> $", &["a>>> "], None),
        // Seen although it is replaced at once.
        ("50%", &["10%\r50%\r100%\n"], Some((0, 4, 7, "50%"))),
        ("1050", &["10%\r50%"], None),
        ("^$", &["a\n", "\n"], Some((1, 2, 2, ""))),
        ("a\nb", &["a\nb"], None),
        ("日本", &["\x1b[1m日\x1b[0m本"], Some((0, 4, 14, "日本"))),
        ("^a{3}$", &["aaab\x08 \x08"], Some((0, 0, 3, "aaa"))),
        ("HIT", &[&long, "HIT", &long], Some((1, 40_000, 40_003, "HIT"))),
        ("HIT", &[&format!("{long}HIT{long}")], Some((0, 40_000, 40_003, "HIT"))),
        ("^aHIT", &[&long, "HIT"], None),
        ("^a$", &[&long], None),
    ] {
        let want = want.map(|(n, from, to, text)| (n, from, to, text.to_owned()));
        assert_eq!(watch(pattern, chunks), want, "{pattern}");
    }
}

#[test]
fn a_watcher_does_not_match_across_a_gap() {
    let mut watcher = Watcher::new("ab", false).unwrap();
    watcher.push(Glyph { ch: 'a', from: 0, to: 1 });
    watcher.gap();
    watcher.push(Glyph { ch: 'b', from: 9, to: 10 });
    assert_eq!(watcher.matched(), None);
}

proptest! {
    /// A watcher finds what a search would, at the latest when the line ends.
    #[test]
    fn watcher_and_search_agree(bytes in output()) {
        let raw = String::from_utf8_lossy(&bytes).replace(['\r', '\x08'], "");
        let got = found(&search("a[bc]"), &raw);
        let mut watcher = Watcher::new("a[bc]", false).unwrap();
        glyphs(raw.as_bytes()).into_iter().for_each(|glyph| watcher.push(glyph));
        let first = got.hits.first().map(|hit| (hit.from, hit.to));
        prop_assert_eq!(watcher.matched().map(|(from, to, _)| (from, to)), first);
    }
}
