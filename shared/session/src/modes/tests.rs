use proptest::prelude::*;

use super::*;

fn after(output: &str) -> Modes {
    let mut tracker = ModeTracker::new();
    tracker.feed(output.as_bytes());
    tracker.modes().clone()
}

fn queries(output: &str) -> u32 {
    ModeTracker::new().feed(output.as_bytes()).cursor_queries
}

const NONE: Modes = Modes {
    application_cursor: None,
    bracketed_paste: false,
    alternate_screen: false,
    mouse: false,
    kitty_keys: false,
    cursor_hidden: false,
};

#[test]
fn modes_go_on_and_off() {
    let normal = Modes { application_cursor: Some(false), ..NONE };
    let application = Modes { application_cursor: Some(true), ..NONE };
    let paste = Modes { bracketed_paste: true, ..NONE };
    let alternate = Modes { alternate_screen: true, ..NONE };
    let mouse = Modes { mouse: true, ..NONE };
    let kitty = Modes { kitty_keys: true, ..NONE };
    for (output, want) in [
        ("plain text\r\n", NONE),
        ("\x1b[?1h", application.clone()),
        ("\x1b[?1h\x1b[?1l", normal.clone()),
        ("\x1b[?1;2004h", Modes { application_cursor: Some(true), ..paste.clone() }),
        ("\x1b[?2004h$ ", paste.clone()),
        ("\x1b[?2004h$ \x1b[?2004l", NONE),
        ("\x1b[?1049h", alternate.clone()),
        ("\x1b[?47h", alternate.clone()),
        ("\x1b[?1047h\x1b[?1049l", NONE),
        ("\x1b[?1000;1006h", mouse.clone()),
        ("\x1b[?1002h\x1b[?1003h\x1b[?1003l", NONE),
        ("\x1b[?25l", Modes { cursor_hidden: true, ..NONE }),
        ("\x1b[?25l\x1b[?25h", NONE),
        ("\x1b[>1u", kitty.clone()),
        ("\x1b[>1u\x1b[<u", NONE),
        ("\x1b[>1u\x1b[>0u", NONE),
        ("\x1b[>1u\x1b[>0u\x1b[<1u", kitty.clone()),
        ("\x1b[>1u\x1b[>3u\x1b[<9u", NONE),
        ("\x1b[=5;1u", kitty.clone()),
        ("\x1b[=5u\x1b[=1;3u", kitty.clone()),
        ("\x1b[=5u\x1b[=5;3u", NONE),
        ("\x1b[=0u\x1b[=2;2u", kitty.clone()),
        // Everything back.
        ("\x1b[?1;25;1049;2004h\x1b[>1u\x1bc", normal.clone()),
        ("\x1b[?1;1000;2004h\x1b[?25l\x1b[>1u\x1b[!p", normal.clone()),
        ("\x1b[?1049h\x1b[!p", Modes { application_cursor: Some(false), ..alternate.clone() }),
        // Not what it looks like.
        ("\x1b[1h\x1b[2004h", NONE),
        ("\x1b[?1$p\x1b[?1 h\x1b[?1:1h\x1b[1?h\x1b[??1h", NONE),
        ("\x1b[?1\x18h\x1b[?1\u{e9}h", NONE),
        ("\x1b(c\x1b[?2004h", paste.clone()),
        ("\x1b[?65537h\x1b[?99999999999999999999h", NONE),
        // Controls inside a sequence, a sequence inside a string, an abandoned one.
        ("\x1b[?1\r\n;2004h", Modes { application_cursor: Some(true), ..paste.clone() }),
        ("\x1b]0;title\x1b[?1h", application.clone()),
        ("\x1b[?20\x1b[?1h", application.clone()),
        ("\x1b\x1b[?1h", application.clone()),
    ] {
        assert_eq!(after(output), want, "{output:?}");
    }
    let many = format!("\x1b[?{}2004h", "7;".repeat(1000));
    assert_eq!(after(&many), paste);
}

#[test]
fn cursor_queries_are_counted() {
    for (output, want) in [
        ("\x1b[6n", 1),
        ("\x1b[?6n", 1),
        ("a\x1b[6nb\x1b[?6n\x1b[06n", 3),
        ("\x1b[5n\x1b[>6n\x1b[6;1n\x1b[n\x1b[66n[6n", 0),
    ] {
        assert_eq!(queries(output), want, "{output:?}");
    }
}

#[test]
fn a_change_is_told_once() {
    let mut tracker = ModeTracker::new();
    for (output, changed) in [
        ("\x1b[?1", false),
        ("h", true),
        ("\x1b[?1h", false),
        ("x\x1b[?1l\x1b[?1h", true),
        ("\x1b[6n", false),
        ("\x1b[>1u", true),
        ("\x1bc", true),
        ("\x1bc", false),
    ] {
        assert_eq!(tracker.feed(output.as_bytes()).changed, changed, "{output:?}");
    }
}

#[test]
fn resetting_leaves_nothing_on() {
    assert_eq!(NONE.reset(), b"");
    assert_eq!(Modes { bracketed_paste: true, ..NONE }.reset(), b"\x1b[?2004l\x1b[?1004l\x1b[m");
    // F161: killed on the alternate screen with the kitty keys on.
    let mut viewer = ModeTracker::new();
    viewer.feed(b"\x1b[?1049h\x1b[>1u\x1b[?1;25;1003h\x1b[?25l\x1b[?2004h");
    let reset = viewer.modes().reset();
    viewer.feed(&reset);
    assert_eq!(viewer.modes(), &Modes { application_cursor: Some(false), ..NONE });
}

/// Output with many sequences, whole, broken and nested.
pub(crate) fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(
            &[
                "\x1b[?1h",
                "\x1b[?1l",
                "\x1b[?1;2004h",
                "\x1b[?25l",
                "\x1b[?1049h",
                "\x1b[?1049l",
                "\x1b[>1u",
                "\x1b[<u",
                "\x1b[6n",
                "\x1b[!p",
                "\x1bc",
                "\x1b",
                "\x1b[",
                "\x1b[?",
                "1",
                ";",
                "h",
                "l",
                "\x18",
                "text\r\n",
                "\x1b(",
                "\x1b]0;x\x07",
                "é",
            ][..]
        )
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_do_not_matter(output in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut whole = ModeTracker::new();
        let at_once = whole.feed(&output);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(output.len() + 1)).collect();
        cuts.extend([0, output.len()]);
        cuts.sort_unstable();
        let mut parts = ModeTracker::new();
        let mut sum = Seen::default();
        for range in cuts.windows(2) {
            let seen = parts.feed(&output[range[0]..range[1]]);
            sum.changed |= seen.changed;
            sum.cursor_queries += seen.cursor_queries;
        }
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(sum, at_once);
    }

    #[test]
    fn a_reset_undoes_any_modes(output in output()) {
        let mut tracker = ModeTracker::new();
        tracker.feed(&output);
        let modes = tracker.modes().clone();
        // The viewer's terminal is in no sequence; how deep the kitty stack is does not matter.
        let mut viewer = ModeTracker { modes: modes.clone(), ..ModeTracker::new() };
        viewer.kitty.push(u8::from(modes.kitty_keys));
        viewer.feed(&modes.reset());
        let left = Modes { application_cursor: modes.application_cursor.map(|_| false), ..NONE };
        prop_assert_eq!(viewer.modes(), &left);
    }
}
