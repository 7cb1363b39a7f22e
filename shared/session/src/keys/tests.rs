use proptest::prelude::*;

use super::*;

fn keys(names: &[&str]) -> Keys {
    Keys { keys: names.iter().map(ToString::to_string).collect(), ..Keys::default() }
}

/// The bytes of one key and whether there was a warning.
fn press_in(name: &str, cursor: CursorKeys) -> (String, bool) {
    let encoded = encode(&keys(&[name]), cursor).unwrap();
    let bytes = encoded.strokes.concat();
    (String::from_utf8(bytes).unwrap(), !encoded.warnings.is_empty())
}

fn press(name: &str) -> (String, bool) {
    press_in(name, CursorKeys::Normal)
}

#[test]
fn every_named_key() {
    let rows = [
        ("enter return", "\r"),
        ("tab", "\t"),
        ("btab", "\x1b[Z"),
        ("escape esc", "\x1b"),
        ("space", " "),
        ("bspace backspace", "\x7f"),
        ("up", "\x1b[A"),
        ("down", "\x1b[B"),
        ("right", "\x1b[C"),
        ("left", "\x1b[D"),
        ("home", "\x1b[1~"),
        ("end", "\x1b[4~"),
        ("pageup pgup ppage", "\x1b[5~"),
        ("pagedown pgdn npage", "\x1b[6~"),
        ("insert ic", "\x1b[2~"),
        ("delete del dc", "\x1b[3~"),
        ("f1", "\x1bOP"),
        ("f2", "\x1bOQ"),
        ("f3", "\x1bOR"),
        ("f4", "\x1bOS"),
        ("f5", "\x1b[15~"),
        ("f6", "\x1b[17~"),
        ("f7", "\x1b[18~"),
        ("f8", "\x1b[19~"),
        ("f9", "\x1b[20~"),
        ("f10", "\x1b[21~"),
        ("f11", "\x1b[23~"),
        ("f12", "\x1b[24~"),
        ("kp0", "\x1bOp"),
        ("kp1", "\x1bOq"),
        ("kp2", "\x1bOr"),
        ("kp3", "\x1bOs"),
        ("kp4", "\x1bOt"),
        ("kp5", "\x1bOu"),
        ("kp6", "\x1bOv"),
        ("kp7", "\x1bOw"),
        ("kp8", "\x1bOx"),
        ("kp9", "\x1bOy"),
        ("kp/", "\x1bOo"),
        ("kp*", "\x1bOj"),
        ("kp-", "\x1bOm"),
        ("kp+", "\x1bOk"),
        ("kp.", "\x1bOn"),
        ("kpenter", "\x1bOM"),
    ];
    let mut listed = Vec::new();
    for (names, bytes) in rows {
        for name in names.split(' ') {
            listed.push(name);
            for spelled in [name.to_owned(), name.to_uppercase(), format!("  {name}\n")] {
                assert_eq!(press(&spelled), (bytes.to_owned(), false), "{spelled:?}");
            }
        }
    }
    assert_eq!(names().collect::<Vec<_>>(), listed);
}

#[test]
fn modifiers() {
    for (name, bytes) in [
        // One character.
        ("a", "a"),
        ("é", "é"),
        ("S-a", "A"),
        ("S-1", "1"),
        ("C-a", "\x01"),
        ("c-A", "\x01"),
        ("C-@", "\0"),
        ("C-[", "\x1b"),
        ("C-\\", "\x1c"),
        ("C-_", "\x1f"),
        ("C-?", "\x7f"),
        ("M-x", "\x1bx"),
        ("M-S-x", "\x1bX"),
        ("C-M-x", "\x1b\x18"),
        ("M-C-C-m-x", "\x1b\x18"),
        ("M--", "\x1b-"),
        ("M-é", "\x1bé"),
        ("-", "-"),
        ("^", "^"),
        ("^c", "\x03"),
        ("^C", "\x03"),
        ("^[", "\x1b"),
        ("^^", "\x1e"),
        ("^?", "\x7f"),
        ("M-^x", "\x1b\x18"),
        // In the sequence.
        ("S-up", "\x1b[1;2A"),
        ("M-up", "\x1b[1;3A"),
        ("C-Right", "\x1b[1;5C"),
        ("C-M-S-left", "\x1b[1;8D"),
        ("C-home", "\x1b[1;5~"),
        ("S-end", "\x1b[4;2~"),
        ("C-PgUp", "\x1b[5;5~"),
        ("S-pagedown", "\x1b[6;2~"),
        ("S-ic", "\x1b[2;2~"),
        ("C-S-delete", "\x1b[3;6~"),
        ("C-f1", "\x1b[1;5P"),
        ("S-f5", "\x1b[15;2~"),
        // A prefix.
        ("M-enter", "\x1b\r"),
        ("M-bspace", "\x1b\x7f"),
        ("M-f5", "\x1b\x1b[15~"),
        ("M-kp0", "\x1b\x1bOp"),
        // Forms of their own.
        ("S-tab", "\x1b[Z"),
        ("M-S-tab", "\x1b\x1b[Z"),
        ("C-space", "\0"),
        ("C-M-space", "\x1b\0"),
    ] {
        assert_eq!(press(name), (bytes.to_owned(), false), "{name}");
    }
    for (name, bytes) in
        [("C-1", "1"), ("C-é", "é"), ("C-M-1", "\x1b1"), ("C-enter", "\r"), ("S-kp0", "\x1bOp")]
    {
        assert_eq!(press(name), (bytes.to_owned(), true), "{name}");
    }
}

#[test]
fn cursor_keys_follow_the_mode() {
    for (name, bytes) in [
        ("up", "\x1bOA"),
        ("down", "\x1bOB"),
        ("right", "\x1bOC"),
        ("left", "\x1bOD"),
        ("home", "\x1bOH"),
        ("end", "\x1bOF"),
        ("S-up", "\x1b[1;2A"),
        ("C-home", "\x1b[1;5~"),
        ("pageup", "\x1b[5~"),
        ("delete", "\x1b[3~"),
        ("f5", "\x1b[15~"),
        ("enter", "\r"),
    ] {
        assert_eq!(press_in(name, CursorKeys::Application), (bytes.to_owned(), false), "{name}");
    }
}

#[test]
fn unknown_names_are_text_and_say_so() {
    for (name, sent, warning) in [
        ("hello", "hello", r#""hello" is no key, sent as text"#),
        ("Entr", "Entr", r#""Entr" is no key, sent as text; did you mean "enter"?"#),
        ("C-pagedwn", "C-pagedwn", r#""C-pagedwn" is no key, sent as text; did you mean "pagedown"?"#),
        ("S-expr", "S-expr", r#""S-expr" is no key, sent as text"#),
        ("C-", "C-", r#""C-" is no key, sent as text"#),
        ("^up", "^up", r#""^up" is no key, sent as text; did you mean "up"?"#),
        ("a\x1bb", "a\x1bb", r#""a\u{1b}b" is no key, sent as text"#),
        (" ", "", r#"an empty key name; skipped (the space bar is "space")"#),
    ] {
        let encoded = encode(&keys(&[name]), CursorKeys::Normal).unwrap();
        assert_eq!(encoded.strokes.concat(), sent.as_bytes(), "{name}");
        assert_eq!(encoded.warnings, [warning]);
    }
}

#[test]
fn the_order_is_literal_hex_keys_with_a_stroke_each() {
    let all = Keys {
        literal: "ls é".to_owned(),
        hex: ["1b", "0x5B", "0Xa", " 7 ", "", "0x", "123", "+1", "zz"].map(str::to_owned).into(),
        keys: ["down", "Enter"].map(str::to_owned).into(),
    };
    let encoded = encode(&all, CursorKeys::Normal).unwrap();
    assert_eq!(
        encoded.strokes,
        [b"ls \xc3\xa9".to_vec(), b"\x1b[\x0a\x07".to_vec(), b"\x1b[B".to_vec(), b"\r".to_vec()]
    );
    assert_eq!(
        encoded.warnings,
        ["", "0x", "123", "+1", "zz"].map(|bad| format!("{bad:?} is not one or two hex digits; skipped"))
    );
}

#[test]
fn limits() {
    assert_eq!(encode(&Keys::default(), CursorKeys::Normal), Err(KeyError::NoKeys));
    let most = Keys { literal: "x".repeat(MAX_BYTES), ..Keys::default() };
    assert_eq!(encode(&most, CursorKeys::Normal).unwrap().strokes.concat().len(), MAX_BYTES);
    let over = Keys { keys: vec!["a".to_owned()], ..most };
    assert_eq!(encode(&over, CursorKeys::Normal), Err(KeyError::TooLong { max: MAX_BYTES }));
    let bad = encode(&keys(&["C-1"; 100]), CursorKeys::Normal).unwrap();
    assert_eq!(bad.warnings.len(), MAX_WARNINGS + 1);
    assert_eq!(bad.warnings.last().map(String::as_str), Some("84 more warnings"));
}

#[test]
fn pastes() {
    for (text, bracketed, want) in [
        ("ls\npwd\r\nid\r", false, "ls\rpwd\rid\r"),
        ("ls\npwd", true, "\x1b[200~ls\rpwd\x1b[201~"),
        ("", true, "\x1b[200~\x1b[201~"),
        ("a\tb é", true, "\x1b[200~a\tb é\x1b[201~"),
        ("x\x1b[201~rm -rf /\n", true, "\x1b[200~x[201~rm -rf /\r\x1b[201~"),
        ("x\x1b\x1b[201~[201~\x03\x04\u{9b}201~\x7f", true, "\x1b[200~x[201~[201~201~\x1b[201~"),
        ("\x1b[A\x03", false, "\x1b[A\x03"),
    ] {
        assert_eq!(paste(text, bracketed), Ok(want.as_bytes().to_vec()), "{text:?}");
    }
    assert_eq!(paste("", false), Err(KeyError::NothingToPaste));
    assert_eq!(paste(&"x".repeat(MAX_BYTES), true), Err(KeyError::TooLong { max: MAX_BYTES }));
}

/// Names, pieces of names, and anything.
fn any_name() -> impl Strategy<Value = String> {
    let known: Vec<&str> = names().collect();
    let part = prop_oneof![
        prop::sample::select(known).prop_map(str::to_owned),
        "[cmsCMS^-]{1,3}",
        ".{0,6}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_input_is_answered_within_bounds(
        literal in ".{0,20}",
        hex in prop::collection::vec(".{0,4}", 0..8),
        names in prop::collection::vec(any_name(), 0..30),
        application: bool,
    ) {
        let input: usize = literal.len() + hex.len() + names.iter().map(|name| name.len() + 8).sum::<usize>();
        let cursor = if application { CursorKeys::Application } else { CursorKeys::Normal };
        let all = Keys { literal, hex, keys: names };
        match encode(&all, cursor) {
            Ok(encoded) => {
                prop_assert!(encoded.strokes.concat().len() <= input);
                prop_assert!(encoded.strokes.iter().all(|stroke| !stroke.is_empty()));
                prop_assert!(encoded.warnings.len() <= MAX_WARNINGS + 1);
                prop_assert!(encoded.warnings.iter().all(|line| !line.contains(char::is_control)));
            }
            Err(e) => prop_assert_eq!(e, KeyError::NoKeys),
        }
    }

    #[test]
    fn a_bracketed_paste_has_one_end(text in r"([a-z\n]|\x1b|\x1b\[20[01]~|\[201~|.){0,30}") {
        let bytes = paste(&text, true).unwrap();
        let inner = &bytes[PASTE_START.len()..bytes.len() - PASTE_END.len()];
        prop_assert!(bytes.starts_with(PASTE_START.as_bytes()) && bytes.ends_with(PASTE_END.as_bytes()));
        prop_assert!(!inner.contains(&0x1b) && !inner.contains(&b'\n'));
    }
}
