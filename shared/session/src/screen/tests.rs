use proptest::prelude::*;

use super::*;
use crate::modes::{ModeTracker, tests::output};

fn drawn(cols: u16, rows: u16, output: &str) -> Rendered {
    let mut screen = Screen::new(cols, rows);
    screen.feed(output.as_bytes());
    screen.render()
}

fn lines(output: &str) -> Vec<String> {
    drawn(10, 4, output).lines
}

#[test]
fn an_empty_screen() {
    let want = Rendered { cursor_visible: true, cols: 120, rows: 30, ..Rendered::default() };
    assert_eq!(drawn(120, 30, ""), want);
    assert_eq!(drawn(120, 30, "\r\n  \r\n\x1b[H"), want);
}

#[test]
fn a_shell_prompt() {
    let want = Rendered {
        lines: vec!["$ ls".to_owned(), "a  b".to_owned(), "$".to_owned()],
        cursor_row: 2,
        cursor_col: 2,
        cursor_visible: true,
        cols: 20,
        rows: 5,
        alternate: false,
    };
    assert_eq!(
        drawn(20, 5, "\x1b[?2004h$ lx\x08 \x08s\r\n\x1b[?2004l\x1b[34ma\x1b[0m  b\r\n\x1b[?2004h$ "),
        want
    );
}

#[test]
fn text_flows_as_on_a_terminal() {
    for (output, want) in [
        // Wrap, the wait behind a full row, scroll.
        ("0123456789ab", &["0123456789", "ab"][..]),
        ("0123456789\r\nab", &["0123456789", "ab"]),
        ("1\r\n2\r\n3\r\n4\r\n5", &["2", "3", "4", "5"]),
        ("\x1b[?7l0123456789ab", &["012345678b"]),
        // Progress, tabs, erasing.
        ("10%\r20%\r100%", &["100%"]),
        ("a\tb", &["a       b"]),
        ("garbage\x1b[2K\rok", &["ok"]),
        ("one\r\ntwo\x1b[2J\x1b[Hnew", &["new"]),
        // Insert mode, inserted and deleted characters and lines, a scroll region.
        ("ac\x1b[D\x1b[4hb\x1b[4l", &["abc"]),
        ("abc\r\x1b[2P", &["c"]),
        ("ab\r\x1b[@x", &["xab"]),
        ("1\r\n2\x1b[H\x1b[L0", &["0", "1", "2"]),
        ("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n5", &["1", "3", "5", "4"]),
        ("a\x1b[3b", &["aaaa"]),
        ("\x1b(0lqk\x1b(B", &["┌─┐"]),
        // Wide characters, also at the margin and half overwritten.
        ("日本", &["日本"]),
        ("123456789日", &["123456789", "日"]),
        ("日本\x1b[2GX", &[" X本"]),
        ("e\u{301}", &["e\u{301}"]),
        // Nothing of a title, a query or an unknown sequence is shown.
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b[6n\x1b[>1u\x1bP1$r\x1b\\c", &["abc"]),
        // A program may not make the screen larger.
        ("\x1b[8;9000;9000ta", &["a"]),
    ] {
        assert_eq!(lines(output), want, "{output:?}");
    }
}

#[test]
fn an_editor_leaves_the_screen_as_it_was() {
    let mut screen = Screen::new(12, 4);
    screen.feed(
        b"$ vim x\r\n\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[1;4r\x1b[m\x1b[H\x1b[2J",
    );
    screen.feed(b"\x1b[?25l\x1b[1;1Hhello\r\n\x1b[94m~\x1b[3;1H~\x1b[m\x1b[4;1H\"x\" 1L\x1b[1;3H\x1b[?25h");
    let inside = Rendered {
        lines: ["hello", "~", "~", "\"x\" 1L"].map(str::to_owned).into(),
        cursor_row: 0,
        cursor_col: 2,
        cursor_visible: true,
        cols: 12,
        rows: 4,
        alternate: true,
    };
    assert_eq!(screen.render(), inside);
    screen.feed(b"\x1b[?2004l\x1b[?1l\x1b>\x1b[?1049l\x1b[23;0;0t");
    let after = Rendered {
        lines: vec!["$ vim x".to_owned()],
        cursor_row: 1,
        cursor_col: 0,
        alternate: false,
        ..inside
    };
    assert_eq!(screen.render(), after);
}

#[test]
fn the_cursor_stays_on_the_screen() {
    let at = |output| {
        let Rendered { cursor_row, cursor_col, cursor_visible, .. } = drawn(10, 4, output);
        (cursor_row, cursor_col, cursor_visible)
    };
    assert_eq!(at("0123456789"), (0, 9, true));
    assert_eq!(at("\x1b[99;99H"), (3, 9, true));
    assert_eq!(at("\x1b[?25lab"), (0, 2, false));
}

#[test]
fn invisible_and_reordering_characters_are_left_out() {
    assert_eq!(lines("a\u{202e}b\u{200b}c\u{e0041}d\u{2028}e\x7f\x07"), ["abcde"]);
}

#[test]
fn broken_characters_are_marked() {
    let mut screen = Screen::new(10, 2);
    screen.feed(b"a\xffb\xe6\x97c\xe6");
    screen.feed(b"\x97");
    assert_eq!(screen.render().lines, ["a\u{fffd}b\u{fffd}c"]);
    screen.feed(b"\xa5!");
    assert_eq!(screen.render().lines, ["a\u{fffd}b\u{fffd}c日!"]);
}

#[test]
fn sizes_are_bounded() {
    assert_eq!((drawn(0, 0, "").cols, drawn(0, 0, "").rows), (1, 1));
    let mut screen = Screen::new(4, 2);
    screen.feed(b"abcdef");
    screen.resize(8, 3);
    assert_eq!(screen.render().lines, ["abcdef"]);
    screen.resize(u16::MAX, u16::MAX);
    let Rendered { cols, rows, lines, .. } = screen.render();
    assert_eq!((cols, rows, lines), (MAX_COLS, MAX_ROWS, vec!["abcdef".to_owned()]));
}

proptest! {
    #[test]
    fn any_output_draws_and_pieces_do_not_matter(
        steps in prop::collection::vec((output(), prop::option::weighted(0.2, (0_u16..20, 0_u16..8))), 0..6),
        cut: prop::sample::Index,
        cols in 0_u16..30,
        rows in 0_u16..8,
    ) {
        let mut whole = Screen::new(cols, rows);
        let mut parts = Screen::new(cols, rows);
        for (output, resized) in &steps {
            whole.feed(output);
            let (a, b) = output.split_at(cut.index(output.len() + 1));
            parts.feed(a);
            parts.feed(b);
            if let Some((cols, rows)) = *resized {
                whole.resize(cols, rows);
                parts.resize(cols, rows);
            }
        }
        let shown = whole.render();
        prop_assert_eq!(&parts.render(), &shown);
        prop_assert!(shown.lines.len() <= usize::from(shown.rows));
        prop_assert!(shown.cursor_row < shown.rows && shown.cursor_col < shown.cols);
        prop_assert!(shown.lines.iter().flat_map(|line| line.chars()).all(|c| !c.is_control() && !is_hidden(c)));
    }

    /// Two readers of the same output must not disagree about what the program switched on. Left out are the soft
    /// reset, behind which avt keeps the cursor keys' mode, and 8-bit controls, which programs do not use in UTF-8.
    #[test]
    fn screen_and_modes_agree(output in output()) {
        let output = String::from_utf8_lossy(&output).replace(|c| c == '!' || ('\u{80}'..'\u{a0}').contains(&c), "");
        let mut tracker = ModeTracker::new();
        tracker.feed(output.as_bytes());
        let mut screen = Screen::new(80, 24);
        screen.feed(output.as_bytes());
        let modes = tracker.modes();
        let shown = screen.render();
        prop_assert_eq!(screen.terminal.cursor_key_app_mode(), modes.application_cursor == Some(true));
        prop_assert_eq!((shown.alternate, !shown.cursor_visible), (modes.alternate_screen, modes.cursor_hidden));
    }
}
