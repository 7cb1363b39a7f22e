//! Lines of the accepted subset, damaged ones, and text without an order.

use policy::shell::{Dialect, Join, Script, SimpleCommand};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{Index, select},
};

use crate::machine::STUBS;

/// A piece of text as it stands in a line, and what it means.
#[derive(Clone, Debug)]
struct Piece {
    source: String,
    text: String,
}

impl Piece {
    fn same(text: &str) -> Self {
        Self { source: text.to_owned(), text: text.to_owned() }
    }
}

fn joined(pieces: Vec<Piece>) -> Piece {
    let text = pieces.iter().map(|piece| piece.text.as_str()).collect();
    Piece { source: pieces.into_iter().map(|piece| piece.source).collect(), text }
}

/// Characters that one shell or another treats, or has treated, in a way of its own.
pub(crate) fn nasty() -> impl Strategy<Value = char> {
    let all: Vec<char> = " \t\n\r'\"\\$`*?[]{}~=:#!&|;<>()^%+-,./@_axA0é日😀\
        \u{1}\u{7}\u{b}\u{c}\u{1b}\u{7f}\u{80}\u{81}\u{85}\u{88}\u{a0}\u{2028}\u{202e}\u{3000}\u{feff}"
        .chars()
        .collect();
    select(all)
}

fn piece(dialect: Dialect) -> BoxedStrategy<Piece> {
    let bare: Vec<char> =
        "axA0é日%+-,./@_]^=:!\u{1}\u{b}\u{c}\u{7f}\u{81}\u{88}\u{a0}\u{2028}".chars().collect();
    let bare = vec(select(bare), 1..4).prop_map(|text| Piece::same(&String::from_iter(text)));
    let dollar = select(vec!["$/", "$%", "$=", "a$.", "$,"]).prop_map(Piece::same);
    let inside = select(vec!["a#", "\rx"]).prop_map(Piece::same);
    let single = vec(nasty(), 0..6).prop_map(|text| {
        let text = String::from_iter(text).replace('\'', "");
        Piece { source: format!("'{text}'"), text }
    });
    let double = vec(nasty(), 0..6).prop_map(|text| {
        let escaped = |&character: &char| match character {
            '"' | '\\' | '$' | '`' => format!("\\{character}"),
            _ => character.to_string(),
        };
        Piece {
            source: format!("\"{}\"", text.iter().map(escaped).collect::<String>()),
            text: text.iter().collect(),
        }
    });
    let kept = select(vec![r#""\a""#, r#""\'""#, r#""\!""#, r#""$""#, r#""$ ""#, r#""\*""#, r#""\}""#])
        .prop_map(|source| Piece { source: source.to_owned(), text: source.trim_matches('"').to_owned() });
    let escaped =
        nasty().prop_filter("a line continuation", |&character| character != '\n').prop_map(|character| {
            // CR would be joined by a newline after the word, which is refused.
            let character = if character == '\r' { '\t' } else { character };
            Piece { source: format!("\\{character}"), text: character.to_string() }
        });
    let any =
        prop_oneof![4 => bare, 1 => dollar, 1 => inside, 2 => single, 2 => double, 1 => kept, 2 => escaped];
    match dialect {
        Dialect::Posix => any.boxed(),
        Dialect::Bash => prop_oneof![6 => any, 1 => ansi_c()].boxed(),
    }
}

/// `$'…'`.
fn ansi_c() -> impl Strategy<Value = Piece> {
    let character = (nasty(), 0..6_u8, any::<char>()).prop_map(|(nasty, how, random)| {
        let (source, text) = match (how, nasty) {
            (0, '\n') => (r"\n".to_owned(), nasty),
            (0, '\t') => (r"\t".to_owned(), nasty),
            (0, '\u{1b}') => (r"\e".to_owned(), nasty),
            (1, _) if nasty.is_ascii() => (format!("\\{:03o}", u32::from(nasty)), nasty),
            (2, _) if nasty.is_ascii() => (format!("\\x{:02x}", u32::from(nasty)), nasty),
            (3, _) if u32::from(nasty) < 0x1_0000 => (format!("\\u{:04X}", u32::from(nasty)), nasty),
            (4, _) if random != '\0' => (format!("\\U{:08x}", u32::from(random)), random),
            (_, '\'' | '\\' | '"' | '?') => (format!("\\{nasty}"), nasty),
            _ => (nasty.to_string(), nasty),
        };
        Piece { source, text: text.to_string() }
    });
    vec(character, 0..5).prop_map(|characters| {
        let Piece { source, text } = joined(characters);
        Piece { source: format!("$'{source}'"), text }
    })
}

/// A word, and none that a shell would expand.
fn word(dialect: Dialect) -> impl Strategy<Value = Piece> {
    vec(piece(dialect), 1..4).prop_map(joined)
}

/// The name of a stub, quoted somehow.
fn program(dialect: Dialect) -> impl Strategy<Value = Piece> {
    let forms: &[&str] = match dialect {
        Dialect::Posix => &["@", "'@'", "\"@\"", "\\@", "''@", "@\"\""],
        Dialect::Bash => &["@", "'@'", "\"@\"", "\\@", "''@", "$'@'"],
    };
    (select(STUBS.to_vec()), select(forms.to_vec()))
        .prop_map(|((name, _), form)| Piece { source: form.replace('@', name), text: name.to_owned() })
}

/// One command of a line, and what stands before it.
#[derive(Clone, Debug)]
struct Generated {
    operator: (Join, &'static str),
    negated: bool,
    assignment: Option<(&'static str, Piece)>,
    words: Vec<Piece>,
}

fn generated(dialect: Dialect) -> impl Strategy<Value = Generated> {
    let mut operators = vec![
        (Join::Then, ";"),
        (Join::Then, " ; "),
        (Join::Then, "\n"),
        (Join::Then, ";\n"),
        (Join::Then, " # it's $(x) \\\n\n"),
        (Join::And, "&&"),
        (Join::And, " && "),
        (Join::And, " &&\n# c\n"),
        (Join::Or, "||"),
        (Join::Or, " ||\n\t"),
        (Join::Pipe, "|"),
        (Join::Pipe, " |\n"),
    ];
    let assigns = vec!["A=", "B=", "_b0="];
    if dialect == Dialect::Bash {
        operators.extend([(Join::PipeBoth, "|&"), (Join::PipeBoth, " |& # c\n")]);
    }
    (
        select(operators),
        prop::bool::weighted(0.2),
        option::weighted(0.2, (select(assigns), word(dialect))),
        option::weighted(0.9, (program(dialect), vec(word(dialect), 0..4))),
    )
        .prop_map(|(operator, negated, assignment, words)| {
            let words: Vec<Piece> =
                words.into_iter().flat_map(|(program, rest)| std::iter::once(program).chain(rest)).collect();
            // Not nothing at all.
            let assignment = assignment.or_else(|| words.is_empty().then(|| ("A=", Piece::same(""))));
            Generated { operator, negated: negated && !operator.0.is_pipe(), assignment, words }
        })
}

/// What a command says, without spans.
pub(crate) type Said = (Join, bool, Option<String>, Vec<String>);

/// A line, and what it says.
pub(crate) fn line(dialect: Dialect) -> impl Strategy<Value = (String, Vec<Said>)> {
    let ending = select(vec!["", ";", "\n", " # done", " ;\n"]);
    (program(dialect), vec(generated(dialect), 0..5), ending).prop_map(|(first, rest, ending)| {
        let mut source = first.source;
        let mut said = vec![(Join::Start, false, None, vec![first.text])];
        for command in rest {
            source.push_str(command.operator.1);
            source.push_str(if command.negated { "! " } else { "" });
            let assignment = command.assignment.map(|(name, value)| {
                source.extend([name, &value.source, " "]);
                format!("{name}{}", value.text)
            });
            source.push_str(
                &command.words.iter().map(|word| word.source.as_str()).collect::<Vec<_>>().join(" "),
            );
            let words = command.words.into_iter().map(|word| word.text).collect();
            said.push((command.operator.0, command.negated, assignment, words));
        }
        (source + ending, said)
    })
}

pub(crate) fn said(script: &Script) -> Vec<Said> {
    let one = |command: &SimpleCommand| {
        let assignment = command
            .assignments
            .first()
            .map(|assignment| format!("{}={}", assignment.name, assignment.value.text));
        let words = command.words.iter().map(|word| word.text.clone()).collect();
        (command.join, command.negated, assignment, words)
    };
    script.commands.iter().map(one).collect()
}

/// What means something somewhere, or looks as if it did.
const SNIPPETS: &[&str] = &[
    "?",
    "*",
    "[a-z]",
    "{a,b}",
    "{x}",
    "~",
    "~/x",
    " ~ ",
    " A=~",
    " A=x:~",
    " A=x:~/y ",
    "A=~ ",
    "$[1+1]",
    "\"$[1]\"",
    "$\"x\"",
    "$x",
    "\"$x\"",
    "$_",
    "$$",
    "${A}",
    "$(ok x)",
    "`ok x`",
    "\"`ok x`\"",
    "$((1))",
    "$\u{e9}",
    "$'\\101'",
    "$'\\1011'",
    "$'\\x411'",
    "$'\\u00e91'",
    "$'\\303\\251'",
    "$'\\777'",
    "$'a\\0b'",
    "$'\\z'",
    "$'\\cA'",
    "$'",
    "\"$'x'\"",
    "'A'=x ",
    "\\A=x ",
    "A\\=x ",
    "A=x ",
    "A+=x ",
    "A=x A+=y ",
    "A=1 ",
    "A[1]=x ",
    "A=(x) ",
    "1A=x ",
    "! ",
    " ! ",
    "!x ",
    "\r",
    "\r\n",
    " \r ",
    " \r",
    "\n",
    "\\\n",
    " \\\n ",
    "\\\r\n",
    "#",
    " #",
    " # x\n",
    "\n# 'x\n",
    "\u{a0}",
    " \u{a0} ",
    " \u{2003}",
    " \u{b}",
    " \u{c} ",
    ";",
    "; ",
    ";;",
    "&&",
    "&& ",
    "|| ",
    "| ",
    "|&",
    " |& no ",
    "&",
    " & ",
    ">f ",
    "2>&1 ",
    "<f ",
    "<(ok x)",
    "<<<x ",
    "<<x\n",
    "()",
    "(",
    ")",
    "(ok x)",
    "@(x|k)",
    "!(x)",
    "=(x)",
    "{ ok; }",
    "if ok; then ",
    "fi ",
    "[[ x ]] ",
    "coproc ",
    "function ",
    "select ",
    "in ",
    "'",
    "\"",
    "\\",
    "''",
    "\"\"",
    "'x y'",
    "\"x'y\"",
    "\\'",
    "\\\"",
    "=",
    ":",
    "]",
    "}",
    "\u{1}",
    "\u{7f}",
    "\u{81}",
    " no x",
    "ok ",
    "no ",
    "x",
    " k ",
];

/// Text without an order.
pub(crate) fn soup() -> impl Strategy<Value = String> {
    let beginning = select(vec!["", "ok ", "ok ", "ok x", "! ok "]);
    let filler = select(vec!["ok ", "no ", "x", " ", " k ", "\n", " && ok ", " || no ", ";ok "]);
    let piece = prop_oneof![2 => filler, 3 => select(SNIPPETS)];
    (beginning, vec(piece, 0..8)).prop_map(|(beginning, pieces)| beginning.to_owned() + &pieces.concat())
}

/// A line with something put in, left out or moved.
pub(crate) fn damaged(dialect: Dialect) -> impl Strategy<Value = String> {
    let edit = (any::<Index>(), 0..8_u8, select(SNIPPETS));
    (line(dialect), vec(edit, 1..3)).prop_map(|((line, _), edits)| {
        let mut characters: Vec<char> = line.chars().collect();
        for (place, how, snippet) in edits {
            if characters.is_empty() {
                break;
            }
            let at = place.index(characters.len());
            let blank = characters.iter().skip(at).position(|&character| character == ' ');
            let at = match how {
                // Most snippets mean most where a word begins.
                0 => 0,
                1..=3 => blank.map_or(at, |ahead| at + ahead + 1),
                _ => at,
            };
            match how {
                0..=5 => drop(characters.splice(at..at, snippet.chars())),
                6 => drop(characters.remove(at)),
                _ => {
                    let other = (at + 1) % characters.len();
                    characters.swap(at, other);
                }
            }
        }
        characters.into_iter().collect()
    })
}
