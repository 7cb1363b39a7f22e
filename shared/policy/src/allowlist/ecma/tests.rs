//! What patterns mean, as ECMAScript without flags says, and which are refused.

use proptest::prelude::*;

use super::{super::room::Room, *};

/// As `new RegExp(pattern).test(text)`.
fn test(pattern: &str, text: &str) -> bool {
    let translated = translate(pattern).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
    Room::new().compile(&translated.expression).unwrap().is_match(&as_units(text))
}

#[test]
fn accepted_patterns_mean_what_ecmascript_says() {
    // Pattern, texts that match, texts that do not.
    let table: &[(&str, &[&str], &[&str])] = &[
        ("", &["", "x"], &[]),
        ("b", &["abc"], &["B", ""]),
        ("^a$", &["a"], &["a\n", "\na", "ba", "ab", ""]),
        ("a|", &["", "z"], &[]),
        ("^a|b$", &["ax", "xb"], &["xa", "bx"]),
        ("^(?:a|b)$", &["a", "b"], &["ab", "ax"]),
        ("^(a)(b)?$", &["a", "ab"], &["b"]),
        ("^(?<name>a)(?<_$1>b)$", &["ab"], &["a"]),
        ("^()$", &[""], &["x"]),
        ("^.$", &["a", "\u{85}", "\0", "é", "\t"], &["", "\n", "\r", "\u{2028}", "\u{2029}", "ab"]),
        ("^a*$", &["", "aaa"], &["b"]),
        ("^a+?$", &["a", "aaa"], &[""]),
        ("^a??$", &["", "a"], &["aa"]),
        ("^a{2}$", &["aa"], &["a", "aaa", "a{2}"]),
        ("^a{2,}$", &["aa", "aaaa"], &["a"]),
        ("^a{1,2}?$", &["a", "aa"], &["", "aaa"]),
        ("^a{0}$", &[""], &["a"]),
        ("^a{002}$", &["aa"], &["a"]),
        // Braces that are no counts are themselves.
        ("^a{,2}$", &["a{,2}"], &["a", "aa", ""]),
        ("^a{$", &["a{"], &["a"]),
        ("^a{x}$", &["a{x}"], &["ax"]),
        ("^a{1$", &["a{1"], &["a"]),
        ("^a{1,2,3}$", &["a{1,2,3}"], &["a"]),
        ("^{}$", &["{}"], &[""]),
        ("^}]$", &["}]"], &[]),
        ("^a{1}{$", &["a{"], &["a"]),
        ("^{+$", &["{", "{{"], &[""]),
        // Sets.
        (r"^\d$", &["7"], &["x", "\u{663}", "\u{ff17}"]),
        (r"^\D$", &["x", "\u{663}", "\n"], &["7"]),
        (r"^\w$", &["a", "Z", "_", "0"], &["é", "-", "\u{17f}"]),
        (r"^\W$", &["é", "-"], &["a", "_"]),
        (
            r"^\s$",
            &[
                " ", "\t", "\u{b}", "\u{c}", "\n", "\r", "\u{a0}", "\u{feff}", "\u{2028}", "\u{3000}",
                "\u{1680}",
            ],
            &["\u{85}", "\u{200b}", "\u{180e}", "x"],
        ),
        (r"^\S$", &["x", "\u{85}", "\u{200b}"], &[" ", "\u{feff}"]),
        // Word borders know ASCII words only.
        (r"\bb\b", &["a b c", "b", "éb", "b-c"], &["ab", "b_"]),
        (r"^\Ba", &[], &["a"]),
        (r"a\Bb", &["ab"], &["a b"]),
        (r"\B", &["", "éé", "ab"], &["a", "aéa"]),
        (r"[\b]", &["\u{8}"], &["b", " "]),
        // Classes.
        ("^[abc]$", &["a", "c"], &["d", ""]),
        ("^[^abc]$", &["d", "\n", "é"], &["a", ""]),
        ("^[a-cx]$", &["b", "x"], &["d", "-"]),
        ("^[a-]$", &["a", "-"], &["b"]),
        ("^[-a]$", &["a", "-"], &["b"]),
        ("^[+--]$", &["+", ",", "-"], &["."]),
        ("^[a-c-e]$", &["b", "-", "e"], &["d"]),
        (r"^[\d-x]$", &["5", "-", "x"], &["a"]),
        (r"^[x-\d]$", &["5", "-", "x"], &["y"]),
        (r"^[\w.]+$", &["a.b"], &["a b"]),
        (r"^[^\s]$", &["a"], &[" "]),
        (r"^[^\S]$", &[" "], &["a"]),
        (r"^[\s\S]$", &["\n", "a"], &[""]),
        ("[]", &[], &["", "a", "]"]),
        ("^[]|x", &["x"], &["y"]),
        ("^[^]$", &["\n", "a", "]"], &[""]),
        ("^[]a]$", &[], &["a", "]", "a]"]),
        (r"^[\]]$", &["]"], &["\\"]),
        // What other engines take for operators or nested classes.
        ("^[a&&b]$", &["a", "&", "b"], &["c"]),
        ("^[~~]$", &["~"], &[""]),
        ("^[[a]$", &["[", "a"], &["b"]),
        ("^[[:alpha:]]$", &["a]", ":]", "[]"], &["b", "z"]),
        ("^[ #]x$", &["#x", " x"], &["x"]),
        // Escapes.
        (r"^\/srv\/a\.b$", &["/srv/a.b"], &["/srv/axb"]),
        (r"^\^\$\\\.\*\+\?\(\)\[\]\{\}\|$", &[r"^$\.*+?()[]{}|"], &[]),
        (r"^\-\ \_\é$", &["- _é"], &[]),
        (r"^\t\n\v\f\r$", &["\t\n\u{b}\u{c}\r"], &[]),
        (r"^\cJ\cj$", &["\n\n"], &["cJ"]),
        (r"^\x41\u0042$", &["AB"], &["x41"]),
        (r"^[\x41-\u0043]$", &["B"], &["D", "x"]),
        (r"a\0b", &["a\0b"], &["a0b", "ab"]),
        (r"^[\0]$", &["\0"], &["0"]),
        ("^#x y$", &["#x y"], &["xy", ""]),
        // A character outside the basic plane is two units.
        ("^😀$", &["😀"], &["\u{1f601}"]),
        ("^.$", &[], &["😀", "\u{100000}"]),
        ("^..$", &["😀", "\u{100000}"], &["é"]),
        ("^[^a]{2}$", &["😀"], &[]),
        ("^[😀]$", &[], &["😀"]),
        ("^[😀]{2}$", &["😀"], &[]),
        ("^😀+$", &["😀"], &["😀😀"]),
        (r"^\ud83d\ude00$", &["😀"], &["😃"]),
        (r"^[\ud800-\udbff][\udc00-\udfff]$", &["😀"], &["ab"]),
        (r"^[\u0000-\uffff]{2}$", &["😀", "ab"], &["a"]),
    ];
    for (pattern, matching, others) in table {
        for text in *matching {
            assert!(test(pattern, text), "{pattern:?} does not match {text:?}");
        }
        for text in *others {
            assert!(!test(pattern, text), "{pattern:?} matches {text:?}");
        }
    }
}

#[test]
fn others_are_refused_with_their_place() {
    use ArgPatternFault::*;
    let table = [
        ("a(?=b)", Lookaround, 1),
        ("(?!b)", Lookaround, 0),
        ("(?<=b)", Lookaround, 0),
        ("a(?<!b)", Lookaround, 1),
        (r"(a)\1", Backreference, 3),
        (r"\9", Backreference, 0),
        (r"(?<n>a)\k<n>", Backreference, 7),
        (r"\k", Backreference, 0),
        ("(?i:a)", Modifiers, 0),
        ("(?-s:a)", Modifiers, 0),
        (r"a\01", UnclearEscape, 1),
        (r"[\1]", UnclearEscape, 0),
        (r"\p{L}", UnclearEscape, 0),
        (r"\A", UnclearEscape, 0),
        (r"\z", UnclearEscape, 0),
        (r"[\B]", UnclearEscape, 0),
        (r"\x4", UnclearEscape, 0),
        (r"\xg0", UnclearEscape, 0),
        (r"\u{41}", UnclearEscape, 0),
        (r"\u00e", UnclearEscape, 0),
        (r"\c", UnclearEscape, 0),
        (r"\c1", UnclearEscape, 0),
        (r"[\c_]", UnclearEscape, 0),
        (r"a\", LoneBackslash, 1),
        ("*", NothingToRepeat, 0),
        ("^*", NothingToRepeat, 1),
        ("a|+", NothingToRepeat, 2),
        ("(?)", BadGroup, 0),
        ("a**", NothingToRepeat, 2),
        ("a{1}{2}", NothingToRepeat, 4),
        ("a???", NothingToRepeat, 3),
        ("{2}", NothingToRepeat, 0),
        (r"\b+", NothingToRepeat, 2),
        ("a{3,2}", CountsOutOfOrder, 1),
        ("a{99999}", TooLarge, 1),
        ("[z-a]", RangeOutOfOrder, 0),
        ("[a--b]", RangeOutOfOrder, 0),
        ("x[a", UnclosedClass, 1),
        ("[a-", UnclosedClass, 0),
        ("((a)", UnclosedGroup, 4),
        ("a)", UnmatchedParenthesis, 1),
        ("(?a)", BadGroup, 0),
        ("(?P<n>a)", BadGroup, 0),
        ("(?#note)", BadGroup, 0),
        ("(?<1>a)", BadGroup, 0),
        ("(?<>a)", BadGroup, 0),
        ("(?<n>a)(?<n>b)", BadGroup, 7),
    ];
    for (pattern, fault, at) in table {
        assert_eq!(translate(pattern), Err(ArgPatternError { fault, at }), "{pattern:?}");
    }
    let deep = "(".repeat(MAX_GROUP_DEPTH + 1);
    assert_eq!(translate(&deep).unwrap_err().fault, TooDeep);
    let long = "é".repeat(MAX_ARG_PATTERN_CHARS + 1);
    assert_eq!(translate(&long).unwrap_err().fault, TooLong);
}

#[test]
fn nul_is_seen_in_every_form() {
    for pattern in ["a\0", r"a\0", r"\x00", r"\u0000", "[\0]", r"[^\0]", r"[\0-a]"] {
        assert!(translate(pattern).unwrap().names_nul, "{pattern:?}");
    }
    for pattern in ["", "0", r"\\0", r"[^a]", r"\W", "."] {
        assert!(!translate(pattern).unwrap().names_nul, "{pattern:?}");
    }
}

proptest! {
    /// Pieces that mean something, in any order.
    #[test]
    fn what_is_translated_compiles(pattern in r"(\(|\)|\[|\]|\^|\$|\||\*|\?|\{1,2\}|\{|-|\\|[a-c]|\\[dDwWsSbB0]|😀|\(\?:|\PC){0,16}") {
        if let Ok(translated) = translate(&pattern) {
            prop_assert!(Room::new().compile(&translated.expression).is_ok(), "{pattern:?} {translated:?}");
        }
    }

    #[test]
    fn a_quoted_text_matches_itself_alone(text in any::<String>(), other in any::<String>()) {
        let pattern: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let pattern = format!("^{pattern}$");
        prop_assert!(test(&pattern, &text));
        prop_assert_eq!(test(&pattern, &other), text == other);
    }
}
