//! The policy specification as data: one line a case, in `cases/*.txt`.
//!
//! Every file begins with comments that say what its columns mean. What they share is read here: lines end a case,
//! tabs part its columns, `#` begins a comment line, and the first column is an id that no other case has: `T12-37`
//! for row 37 of §12 of the specification, `S3.2-5` for a row of §3.2, `F005a` for a field case, `G11-4` for a gap.
//! Expected values come from the specification and the decisions over it, never from a run of the code.

#[path = "cases/binding.rs"]
mod binding;
#[path = "cases/commands.rs"]
mod commands;
#[path = "cases/documents.rs"]
mod documents;
#[path = "cases/environment.rs"]
mod environment;
#[path = "cases/machine.rs"]
mod machine;
#[path = "cases/setup.rs"]
mod setup;

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

/// A line of a file.
struct Case<'a> {
    line: usize,
    id: &'a str,
    /// The columns after the id.
    columns: Vec<&'a str>,
}

/// What checks a case: the error says what was expected and what was found, or why the line cannot be read.
type Check = fn(&Case<'_>) -> Result<(), String>;

macro_rules! files {
    ($($file:ident: $check:path,)*) => {
        $(
            #[test]
            fn $file() {
                check_file(stringify!($file), $check);
            }
        )*

        #[test]
        fn every_file_is_read() {
            let mut found: Vec<String> = fs::read_dir(directory())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "txt"))
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            found.sort_unstable();
            let mut wanted = vec![$(stringify!($file)),*];
            wanted.sort_unstable();
            assert_eq!(found, wanted);
        }

        #[test]
        fn ids_are_given_once() {
            let mut places: BTreeMap<String, String> = BTreeMap::new();
            for file in [$(stringify!($file)),*] {
                let text = read(file);
                for case in cases(file, &text) {
                    let place = format!("{file}.txt:{}", case.line);
                    let before = places.insert(case.id.to_owned(), place.clone());
                    assert_eq!(before, None, "{place}: {} is there already", case.id);
                }
            }
        }
    };
}

files! {
    allowlist: commands::check,
    answers: commands::check,
    bind: binding::check_bind,
    documents: documents::check,
    environment: environment::check,
    field: commands::check,
    gaps: commands::check,
    inline_eval: commands::check,
    keep: binding::check_keep,
    plans: commands::check,
    runners: commands::check,
    safe_bins: commands::check,
    shell: commands::check,
    shells: commands::check,
    traps: commands::check,
    wrappers: commands::check,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn read(file: &str) -> String {
    let path = directory().join(format!("{file}.txt"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn cases<'a>(file: &str, text: &'a str) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut columns = line.split('\t');
        let id = columns.next().unwrap_or_default();
        let well_formed = id.starts_with(|first: char| first.is_ascii_uppercase()) && !id.contains(' ');
        assert!(well_formed, "{file}.txt:{}: no id", at + 1);
        cases.push(Case { line: at + 1, id, columns: columns.collect() });
    }
    assert!(!cases.is_empty(), "{file}.txt holds no case");
    cases
}

/// Runs all cases of a file before it fails, and then names each that did not hold.
fn check_file(file: &str, check: Check) {
    let text = read(file);
    let cases = cases(file, &text);
    let mut report = String::new();
    let mut failed = 0;
    for case in &cases {
        if let Err(difference) = check(case) {
            failed += 1;
            // Writing to a string cannot fail.
            let _ = write!(report, "\n{file}.txt:{}: {}: {difference}", case.line, case.id);
        }
    }
    assert!(failed == 0, "{failed} of the {} cases in {file}.txt do not hold:{report}", cases.len());
}

/// Text of a column, with its escapes undone: `\n`, `\r`, `\t`, `\0`, `\\`, `\s` (a space), `\u{2028}`, and `\x60{text}`
/// (60 times `text`, which holds no `}`). Any other backslash is an error, so none is taken for the shell's by mistake.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        let letter = letters.next().ok_or("a backslash at the end")?;
        rest = letters.as_str();
        out.push(match letter {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            's' => ' ',
            '\\' => '\\',
            'u' => {
                let (digits, after) = braced(rest)?;
                rest = after;
                let code =
                    u32::from_str_radix(digits, 16).map_err(|error| format!("\\u{{{digits}}}: {error}"))?;
                char::from_u32(code).ok_or("\\u of no character")?
            }
            'x' => {
                let (count, after) = rest.split_once('{').ok_or("\\x without a brace")?;
                let (repeated, after) = after.split_once('}').ok_or("\\x without its end")?;
                rest = after;
                let count: usize = count.parse().map_err(|error| format!("\\x{count}: {error}"))?;
                out.push_str(&repeated.repeat(count));
                continue;
            }
            other => return Err(format!("the escape \\{other} is not known")),
        });
    }
    out.push_str(rest);
    Ok(out)
}

fn braced(text: &str) -> Result<(&str, &str), String> {
    text.strip_prefix('{')
        .and_then(|text| text.split_once('}'))
        .ok_or_else(|| "a brace is missing".to_owned())
}

#[test]
fn escapes() {
    assert_eq!(unescape(r"a\\;\nb\u{a0}c\x3{ab}").unwrap(), "a\\;\nb\u{a0}cababab");
    for bad in [r"\;", "a\\", r"\u{110000}", r"\x{a}", r"\x3a"] {
        assert!(unescape(bad).is_err(), "{bad}");
    }
}
