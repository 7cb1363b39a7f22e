//! Scripts that run from a descriptor, by their first line.
//!
//! A shell that the system starts for `#!` takes the descriptor's path for the script's name, and many scripts go by
//! their name (`$0`). A shell that is told to read the descriptor under another name (`-c '. …' NAME`) does not.

/// Interpreters that run a script from whatever they are given. Others look at the path behind it.
const READ_DESCRIPTORS: [&str; 9] = ["awk", "gawk", "lua", "mawk", "perl", "php", "python", "ruby", "sed"];
/// Shells, which do too, and can be told the script's name.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// A name without its directories and version.
fn plain(interpreter: &str) -> &str {
    let name = interpreter.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// Whether it is a shell that can be told the name of its script.
pub(crate) fn is_shell(interpreter: &str) -> bool {
    SHELLS.contains(&plain(interpreter))
}

/// Whether an interpreter of this name runs a script from a descriptor.
pub(crate) fn reads_descriptors(interpreter: &str) -> bool {
    READ_DESCRIPTORS.contains(&plain(interpreter)) || is_shell(interpreter)
}

/// The words after a shell and its options that have it run a script from a descriptor, under its own name.
pub(crate) fn shell_words(descriptor: i32, name: &str) -> [String; 3] {
    ["-c".to_owned(), format!(". /proc/self/fd/{descriptor}"), name.to_owned()]
}

/// The interpreter in a first line and its one argument, as the system reads it.
fn read(first: &[u8]) -> Option<(&str, Option<&str>)> {
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t']);
    let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim_matches([' ', '\t']);
    (!program.is_empty()).then_some((program, (!rest.is_empty()).then_some(rest)))
}

/// The interpreter that a script names; behind `env` the one that it is told to look for.
pub(crate) fn interpreter(first: &[u8]) -> Option<&str> {
    let (program, argument) = read(first)?;
    if plain(program) != "env" {
        return Some(program);
    }
    argument?.split_ascii_whitespace().find(|word| !word.starts_with('-'))
}

/// The program and the words that run a shell script from a descriptor under the name that it was called by. None for
/// other scripts, and for first lines with more in them than a shell and one option.
pub(crate) fn as_shell(first: &[u8], descriptor: i32, argv: &[Vec<u8>]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let (program, argument) = read(first)?;
    let mut words = vec![program.as_bytes().to_vec()];
    match argument {
        // `env` looks the shell up, as it would.
        Some(shell) if plain(program) == "env" && is_shell(shell) && !shell.contains(char::is_whitespace) => {
            words.push(shell.as_bytes().to_vec());
        }
        // Options that say where the text comes from are for another day.
        Some(option) if is_shell(program) && is_plain_option(option) => {
            words.push(option.as_bytes().to_vec())
        }
        None if is_shell(program) => {}
        _ => return None,
    }
    let (name, rest) = argv.split_first()?;
    words.push(b"-c".to_vec());
    words.push(format!(". /proc/self/fd/{descriptor}").into_bytes());
    words.push(name.clone());
    words.extend(rest.iter().cloned());
    Some((program.as_bytes().to_vec(), words))
}

/// `-e`, `-eux` and the like: settings that each shell has.
fn is_plain_option(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty() && letters.bytes().all(|letter| b"aefhmnuvxCE".contains(&letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_told_the_name_of_their_script() {
        let argv = ["/x/tool", "a b"].map(|word| word.as_bytes().to_vec());
        let words = |first: &str| {
            as_shell(first.as_bytes(), 101, &argv).map(|(program, words)| {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (text(program), words.into_iter().map(text).collect::<Vec<_>>().join("|"))
            })
        };
        let tail = "-c|. /proc/self/fd/101|/x/tool|a b";
        let table = [
            ("#!/bin/sh\necho", Some(("/bin/sh", "/bin/sh|"))),
            ("#! /bin/bash -eu \n", Some(("/bin/bash", "/bin/bash|-eu|"))),
            ("#!/usr/bin/env bash\n", Some(("/usr/bin/env", "/usr/bin/env|bash|"))),
            ("#!/usr/bin/env -S bash -e\n", None),
            ("#!/bin/sh -s\n", None),
            ("#!/usr/bin/python3\n", None),
            ("#!/usr/bin/env node\n", None),
            ("echo\n", None),
            ("#!\n", None),
        ];
        for (first, want) in table {
            let want = want.map(|(program, head)| (program.to_owned(), format!("{head}{tail}")));
            assert_eq!(words(first), want, "{first}");
        }
        assert_eq!(as_shell(b"#!/bin/sh\n", 101, &[]), None);
    }

    #[test]
    fn interpreters_by_name() {
        let table = [
            ("#!/bin/sh\n", Some("/bin/sh"), true),
            ("#!/usr/bin/env python3.11\n", Some("python3.11"), true),
            ("#!/usr/bin/env -S node --x\n", Some("node"), false),
            ("\x7fELF", None, false),
        ];
        for (first, name, reads) in table {
            assert_eq!(interpreter(first.as_bytes()), name);
            assert_eq!(name.is_some_and(reads_descriptors), reads, "{first}");
        }
    }
}
