//! How texts are read, and that any text is read or refused in time.

mod refused;

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// A command without its spans: join, negation, assignments as written but decoded, words.
type Plain = (Join, bool, Vec<String>, Vec<String>);

fn plain(script: Script) -> Vec<Plain> {
    let assignment = |assignment: Assignment| format!("{}={}", assignment.name, assignment.value.text);
    let command = |command: SimpleCommand| {
        (
            command.join,
            command.negated,
            command.assignments.into_iter().map(assignment).collect(),
            command.words.into_iter().map(|word| word.text).collect(),
        )
    };
    script.commands.into_iter().map(command).collect()
}

fn label(text: &str, dialect: Dialect) -> Option<Label> {
    read(text, dialect).err().map(|unreadable| unreadable.label)
}

fn simple(join: Join, words: &[&str]) -> Plain {
    (join, false, Vec::new(), words.iter().map(|&word| word.to_owned()).collect())
}

#[test]
fn only_bash_reads() {
    for (text, posix, bash) in [
        ("$'git' log", Label::DynamicExecutable, vec![simple(Join::Start, &["git", "log"])]),
        (
            r#"a $'\n\t\\\'\"\?\a\b\e\E\f\r\v'"#,
            Label::DynamicArgument,
            vec![simple(Join::Start, &["a", "\n\t\\'\"?\x07\x08\x1b\x1b\x0c\r\x0b"])],
        ),
        (
            r"a $'\1\101\1011\x41\x411\x4g\u41\u00e9\u20ACx\U1f600'",
            Label::DynamicArgument,
            vec![simple(Join::Start, &["a", "\x01AA1AA1\x04gAé€x😀"])],
        ),
        (r"a $'\xc3\xa9\303\251'", Label::DynamicArgument, vec![simple(Join::Start, &["a", "éé"])]),
        ("a x$'\n'y", Label::DynamicArgument, vec![simple(Join::Start, &["a", "x\ny"])]),
        ("a $'`$(id)\"'", Label::DynamicArgument, vec![simple(Join::Start, &["a", "`$(id)\""])]),
        ("a |& b", Label::SyntaxError, vec![simple(Join::Start, &["a"]), simple(Join::PipeBoth, &["b"])]),
    ] {
        assert_eq!(label(text, Dialect::Posix), Some(posix), "{text:?}");
        assert_eq!(read(text, Dialect::Bash).map(plain), Ok(bash), "{text:?}");
    }
}

#[test]
fn words_are_decoded() {
    for (text, words) in [
        (r#"g"i"t log"#, &["git", "log"] as &[&str]),
        (r"\g\i't' log", &["git", "log"]),
        ("git log '$(curl evil.example)'", &["git", "log", "$(curl evil.example)"]),
        (r#"git log "; curl x""#, &["git", "log", "; curl x"]),
        (r"git log \; curl", &["git", "log", ";", "curl"]),
        (r"git log \& \| \< \> \( \) \' \  x", &["git", "log", "&", "|", "<", ">", "(", ")", "'", " ", "x"]),
        (r#"a "\$X \`id\` \" \\ \n \' \x""#, &["a", "$X `id` \" \\ \\n \\' \\x"]),
        (r#"a "$" "$ x" "5$." $ a$ $/ $= "$'x'""#, &["a", "$", "$ x", "5$.", "$", "a$", "$/", "$=", "$'x'"]),
        (r#"a $\x "$\x""#, &["a", "$x", r"$\x"]),
        ("a '' \"\" ''''", &["a", "", "", ""]),
        ("'' x", &["", "x"]),
        (r"a 'x\' 'x\y'", &["a", r"x\", r"x\y"]),
        ("a 'x\ny' \"x\ny\" 'x\\\ny'", &["a", "x\ny", "x\ny", "x\\\ny"]),
        ("a 'x\r\ny' \"x\r\ny\" x\ry \r \\\r", &["a", "x\r\ny", "x\r\ny", "x\ry", "\r", "\r"]),
        ("echo a\rb", &["echo", "a\rb"]),
        ("git\u{a0}log", &["git\u{a0}log"]),
        ("\u{202e}git log\u{2028}x\u{2003}y\x0bz\x0c", &["\u{202e}git", "log\u{2028}x\u{2003}y\x0bz\x0c"]),
        ("a\tb \t c", &["a", "b", "c"]),
        ("a b#c ''#d \\# '#'", &["a", "b#c", "#d", "#", "#"]),
        ("a # b; $(id) ' \\", &["a"]),
        ("a #b \\", &["a"]),
        ("# x\\\na", &["a"]),
        ("# it's\n  a", &["a"]),
        ("a;", &["a"]),
        ("a ;\n\n", &["a"]),
        ("\n\n a\n", &["a"]),
        ("time ls", &["time", "ls"]),
        ("a in x", &["a", "in", "x"]),
        ("a if then { } ! [[ function", &["a", "if", "then", "{", "}", "!", "[[", "function"]),
        (r#"\if 'then' "{" x"#, &["if", "then", "{", "x"]),
        ("'!' x", &["!", "x"]),
        ("!x y", &["!x", "y"]),
        ("[ -f x ]", &["[", "-f", "x", "]"]),
        ("gh x '`a` $b'", &["gh", "x", "`a` $b"]),
        ("1=x y", &["1=x", "y"]),
        ("A-B=x y", &["A-B=x", "y"]),
        ("=x y", &["=x", "y"]),
        ("\"A\"=x y", &["A=x", "y"]),
        (r"A\=x y", &["A=x", "y"]),
        ("é=x y", &["é=x", "y"]),
        ("env A=x y", &["env", "A=x", "y"]),
    ] {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            let read = read(text, dialect).map(plain);
            assert_eq!(read, Ok(vec![simple(Join::Start, words)]), "{text:?} {dialect:?}");
        }
    }
}

#[test]
fn commands_join() {
    let (a, b) = (|| simple(Join::Start, &["a"]), |join| simple(join, &["b"]));
    let negated = |join, word: &str| (join, true, Vec::new(), vec![word.to_owned()]);
    let assigned = |join, assignments: &[&str], words: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        (join, false, owned(assignments), owned(words))
    };
    for (text, commands) in [
        ("a; b", vec![a(), b(Join::Then)]),
        ("a;b;", vec![a(), b(Join::Then)]),
        ("a\nb", vec![a(), b(Join::Then)]),
        ("a # c\n\n # d\n b # e", vec![a(), b(Join::Then)]),
        ("a;\nb", vec![a(), b(Join::Then)]),
        ("a && b", vec![a(), b(Join::And)]),
        ("a&&b", vec![a(), b(Join::And)]),
        ("a &&\n\n# c\n b", vec![a(), b(Join::And)]),
        ("a || b", vec![a(), b(Join::Or)]),
        ("a||\nb", vec![a(), b(Join::Or)]),
        ("a | b", vec![a(), b(Join::Pipe)]),
        ("a|\n# c\nb", vec![a(), b(Join::Pipe)]),
        ("! a | b", vec![negated(Join::Start, "a"), b(Join::Pipe)]),
        ("a && ! b", vec![a(), negated(Join::And, "b")]),
        ("a\n! b", vec![a(), negated(Join::Then, "b")]),
        ("a ||\n! b", vec![a(), negated(Join::Or, "b")]),
        ("A=1 B='x y' a", vec![assigned(Join::Start, &["A=1", "B=x y"], &["a"])]),
        ("A= a", vec![assigned(Join::Start, &["A="], &["a"])]),
        ("A=b=c a", vec![assigned(Join::Start, &["A=b=c"], &["a"])]),
        ("PATH=/x; b", vec![assigned(Join::Start, &["PATH=/x"], &[]), b(Join::Then)]),
        ("_a1=\"\"\nb", vec![assigned(Join::Start, &["_a1="], &[]), b(Join::Then)]),
        ("A=if b", vec![assigned(Join::Start, &["A=if"], &["b"])]),
        ("A=[x]=y b", vec![assigned(Join::Start, &["A=[x]=y"], &["b"])]),
    ] {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            assert_eq!(read(text, dialect).map(plain), Ok(commands.clone()), "{text:?} {dialect:?}");
        }
    }
}

#[test]
fn expansions_are_named() {
    use Expansion::{Brace, Glob, Tilde};
    for (text, expected) in [
        ("*", Some(Glob)),
        ("a?", Some(Glob)),
        ("a[", Some(Glob)),
        ("[a]", Some(Glob)),
        ("[", None),
        ("]", None),
        ("'['", None),
        ("''[", Some(Glob)),
        ("'*'?", Some(Glob)),
        ("'*'", None),
        (r"\*\?\[", None),
        ("\"*\"", None),
        ("{a,b}", Some(Brace)),
        ("{", Some(Brace)),
        ("}", Some(Brace)),
        ("{}", Some(Brace)),
        (r"\{a,b\}", None),
        ("'{a,b}'", None),
        ("~", Some(Tilde)),
        ("~/x", Some(Tilde)),
        ("~root", Some(Tilde)),
        ("~+", Some(Tilde)),
        ("~\"/x\"", Some(Tilde)),
        (r"\~", None),
        ("'~'/x", None),
        ("a~", None),
        ("''~", None),
        ("a:~", None),
        ("A=~/x", Some(Tilde)),
        ("A=x:~", Some(Tilde)),
        ("A=x:'y':~", Some(Tilde)),
        ("A=x~", None),
        ("A='~'", None),
        ("A=''~", None),
        (r"A=\~", None),
        (r"A=x\:~", None),
        ("A=x':'~", None),
        ("A=b=~", None),
        (r"A\=~", None),
        ("'A'=~", None),
        ("--a=~", None),
        ("~/*", Some(Glob)),
        ("~/{a,b}", Some(Brace)),
        ("{a,*}", Some(Glob)),
    ] {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            let script = read(&format!("a {text}"), dialect).expect(text);
            assert_eq!(script.commands[0].words[1].expands, expected, "{text:?} {dialect:?}");
        }
    }
    for (text, expected) in [("A=*", None), ("A={a,b}", None), ("A=~", Some(Tilde)), ("A=*:~/x", Some(Tilde))]
    {
        let script = read(&format!("{text} a"), Dialect::Posix).expect(text);
        assert_eq!(script.commands[0].assignments[0].value.expands, expected, "{text:?}");
    }
}

#[test]
fn whole_script() {
    let word = |text: &str, span, expands| Word { text: text.to_owned(), span, expands };
    let expected = Script {
        commands: vec![
            SimpleCommand {
                join: Join::Start,
                negated: true,
                assignments: vec![
                    Assignment { name: "A".to_owned(), value: word("x y", 4..9, None) },
                    Assignment { name: "B".to_owned(), value: word("", 12..12, None) },
                ],
                words: vec![
                    word("~/bin/é", 13..21, Some(Expansion::Tilde)),
                    word("", 22..24, None),
                    word("*", 25..26, Some(Expansion::Glob)),
                ],
            },
            SimpleCommand {
                join: Join::PipeBoth,
                negated: false,
                assignments: Vec::new(),
                words: vec![word("ab", 28..32, None)],
            },
        ],
    };
    assert_eq!(read("! A='x y' B= ~/bin/é '' *|&a\"b\"; # c", Dialect::Bash), Ok(expected));
}

#[test]
fn the_number_of_commands_is_bounded() {
    let of = |count: usize| "a;".repeat(count);
    assert_eq!(read(&of(MAX_COMMANDS), Dialect::Bash).unwrap().commands.len(), MAX_COMMANDS);
    let refused = Unreadable { label: Label::TooLong, at: 2 * MAX_COMMANDS };
    assert_eq!(read(&of(MAX_COMMANDS + 1), Dialect::Bash), Err(refused));
}

#[test]
fn length_counts_characters() {
    let longest = format!("a {}", "é".repeat(MAX_CHARS - 2));
    assert!(read(&longest, Dialect::Posix).is_ok());
    let too_long = Unreadable { label: Label::TooLong, at: longest.len() };
    assert_eq!(read(&format!("{longest}x"), Dialect::Posix), Err(too_long));
    assert_eq!(label(&"(".repeat(MAX_CHARS + 1), Dialect::Bash), Some(Label::TooLong));
}

/// Whatever is repeated, time grows with the length only, and nothing with the depth.
#[test]
fn longest_texts_are_read_in_time() {
    for unit in [
        "a",
        "a ",
        "a;",
        "a\n",
        "'",
        "\"",
        "''",
        "\"a\"",
        "\\a",
        "$",
        "$(",
        "${",
        "${a",
        "$((",
        "$[",
        "(",
        "((",
        "{ ",
        "[",
        "*",
        "~",
        "=",
        "A=",
        "A= ",
        "A=b:~",
        "a=~:",
        "a|",
        "a&&",
        "! ",
        "#",
        "#\n",
        " ",
        "\t#a\n",
        "\r",
        "é",
        "'\\''",
        "$'\\x41'",
        "a |& ",
        "`",
        "<",
        "<(",
        "if ",
        "a && ! b ||\n",
    ] {
        for head in ["", "a ", "a \"", "a '", "a ${", "a $'", "# "] {
            let mut text = head.to_owned();
            text.extend(unit.chars().cycle().take(MAX_CHARS - head.len()));
            // On a busy machine one reading may have to wait for others.
            let in_time = (0..20).any(|_| {
                let start = Instant::now();
                let _ = read(&text, Dialect::Bash);
                start.elapsed() < Duration::from_millis(100)
            });
            assert!(in_time, "{unit:?} after {head:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            check_positions(&text, dialect)?;
        }
    }

    #[test]
    fn any_mix_of_meaningful_characters_is_read_or_refused(text in "[a-c =~:é'\"\\\\$(){}\\[*#;&|<>!\n\r\t\u{a0}]{0,40}") {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            check_positions(&text, dialect)?;
        }
    }

    #[test]
    fn a_quoted_word_is_read_back(word in any::<String>()) {
        let quoted = quote(&word);
        let read = read(&format!("a {quoted}"), Dialect::Posix);
        if word.contains('\0') {
            prop_assert!(read.is_err());
        } else {
            let expected = Word { text: word, span: 2..2 + quoted.len(), expands: None };
            prop_assert_eq!(&read.unwrap().commands[0].words[1], &expected);
        }
    }
}

/// Spans are in order, apart, inside the text and on characters' boundaries; a fault lies inside the text.
fn check_positions(text: &str, dialect: Dialect) -> Result<(), TestCaseError> {
    let script = match read(text, dialect) {
        Ok(script) => script,
        Err(Unreadable { at, .. }) => {
            prop_assert!(text.is_char_boundary(at));
            return Ok(());
        }
    };
    let mut end = 0;
    let words = script.commands.iter().flat_map(|command| {
        command.assignments.iter().map(|assignment| &assignment.value).chain(&command.words)
    });
    for Word { span, .. } in words {
        prop_assert!(end <= span.start && span.start <= span.end && text.get(span.clone()).is_some());
        end = span.end;
    }
    Ok(())
}
