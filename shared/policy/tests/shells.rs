//! What the reader accepts is what the shells run: generated lines, and damaged ones, run by bash and dash with stubs
//! that write down what they were given.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "shells/expected.rs"]
mod expected;
#[path = "shells/lines.rs"]
mod lines;
#[path = "shells/machine.rs"]
mod machine;

use expected::{canonical, comparable, expected_runs};
use lines::{damaged, line, nasty, said, soup};
use machine::{Run, Shell};
use policy::shell::{Dialect, MAX_CHARS, quote, read};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

/// Cases of a property of which each is run, unless `PROPTEST_CASES` asks for another number.
const CASES: u32 = 100;

/// Cases of a property of which most are refused, and so cost nothing.
const CASES_TO_REFUSE: u32 = 600;

fn check_cases<S: Strategy>(cases: u32, strategy: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if let Err(failure) = TestRunner::new(config).run(&strategy, check) {
        panic!("{failure}");
    }
}

/// Lines of the accepted subset are read as they were meant and run as they were read, as they stand and when they are
/// written anew.
fn lines_run_as_read(dialect: Dialect, shells: &[&str]) {
    let shells: Vec<Shell> = shells.iter().filter_map(|name| Shell::find(name)).collect();
    let rewritten_by: Vec<Shell> = ["sh", "bash", "dash"].into_iter().filter_map(Shell::find).collect();
    check_cases(CASES, line(dialect), |(text, meant)| {
        let script =
            read(&text, dialect).map_err(|error| TestCaseError::fail(format!("{text:?}: {error}")))?;
        prop_assert_eq!(said(&script), meant, "{:?}", text);
        prop_assert!(comparable(&script), "{:?}", text);
        let expected = expected_runs(&script);
        for shell in &shells {
            shell.check(&text, &expected)?;
        }
        let rewritten = canonical(&script);
        for shell in &rewritten_by {
            shell.check(&rewritten, &expected)?;
        }
        Ok(())
    });
}

/// What is accepted of any text runs as it was read.
fn accepted_runs_as_read<S: Strategy<Value = String>>(texts: S, dialect: Dialect, shells: &[&str]) {
    let shells: Vec<Shell> = shells.iter().filter_map(|name| Shell::find(name)).collect();
    check_cases(CASES_TO_REFUSE, texts, |text| {
        let Ok(script) = read(&text, dialect) else { return Ok(()) };
        if comparable(&script) {
            let expected = expected_runs(&script);
            for shell in &shells {
                shell.check(&text, &expected)?;
            }
        }
        Ok(())
    });
}

#[test]
fn posix_lines() {
    lines_run_as_read(Dialect::Posix, &["dash", "bash"]);
}

#[test]
fn bash_lines() {
    lines_run_as_read(Dialect::Bash, &["bash"]);
}

#[test]
fn posix_soup() {
    accepted_runs_as_read(soup(), Dialect::Posix, &["dash", "bash"]);
}

#[test]
fn bash_soup() {
    accepted_runs_as_read(soup(), Dialect::Bash, &["bash"]);
}

#[test]
fn damaged_posix_lines() {
    accepted_runs_as_read(damaged(Dialect::Posix), Dialect::Posix, &["dash", "bash"]);
}

#[test]
fn damaged_bash_lines() {
    accepted_runs_as_read(damaged(Dialect::Bash), Dialect::Bash, &["bash"]);
}

#[test]
fn quoted_words() {
    let shells: Vec<Shell> = ["sh", "bash", "dash"].into_iter().filter_map(Shell::find).collect();
    let any_word = vec(prop_oneof![nasty(), any::<char>()], 0..12)
        .prop_map(|word| String::from_iter(word).replace('\0', ""));
    check_cases(CASES, vec(any_word, 0..5), |words| {
        let line = words.iter().fold("ok".to_owned(), |line, word| format!("{line} {}", quote(word)));
        let argv = std::iter::once("ok".to_owned()).chain(words).collect();
        let expected = vec![vec![Run { argv, a: None }]];
        for shell in &shells {
            shell.check(&line, &expected)?;
        }
        Ok(())
    });
}

/// The traps that the other tests rely on are set: what a shell would expand does show.
#[test]
fn expansions_would_show() {
    for name in ["bash", "dash"] {
        let Some(shell) = Shell::find(name) else { continue };
        let seen = |line| argv(shell.run(line));
        assert_eq!(seen("ok ?"), ["ok", "A", "k", "o", "x"], "{name}");
        assert_eq!(seen("ok ~/x 'a b'"), ["ok", "/the/home/x", "a b"], "{name}");
        assert_eq!(seen("no a && ok b || ! ok c || A=1 no d"), ["no", "a", "ok", "c", "no", "d"], "{name}");
        assert_eq!(
            shell.run("A=1; A=2 ok; ok").iter().map(|run| run.a.clone()).collect::<Vec<_>>(),
            [Some("2".to_owned()), None]
        );
    }
    if let Some(bash) = Shell::find("bash") {
        assert_eq!(bash.run("ok zz*"), []);
        assert_eq!(argv(bash.run("ok {a,b}")), ["ok", "a", "b"]);
    }
}

fn argv(runs: Vec<Run>) -> Vec<String> {
    runs.into_iter().flat_map(|run| run.argv).collect()
}

/// A long line arrives whole.
#[test]
fn long_words() {
    for name in ["bash", "dash"] {
        let Some(shell) = Shell::find(name) else { continue };
        let word = "é'".repeat(MAX_CHARS / 64);
        let line = format!("ok {}", quote(&word));
        let expected = vec![vec![Run { argv: vec!["ok".to_owned(), word], a: None }]];
        assert_eq!(expected_runs(&read(&line, Dialect::Posix).unwrap()), expected);
        shell.check(&line, &expected).unwrap();
    }
}
