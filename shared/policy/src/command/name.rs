//! From a word to the name that a table may know it by.

use std::borrow::Cow;

const EXECUTABLE_SUFFIXES: [&str; 4] = [".bat", ".cmd", ".com", ".exe"];

/// The last part of a path in lower case, without an executable's suffix. Does not allocate where nothing changes.
pub(crate) fn fold(word: &str) -> Cow<'_, str> {
    let base = word.rsplit(['/', '\\']).next().unwrap_or(word);
    // A file system that ignores case ignores it for other letters too (the Kelvin sign is a `k`).
    if base.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
        let lower = base.to_lowercase();
        Cow::Owned(without_suffix(&lower).to_owned())
    } else {
        Cow::Borrowed(without_suffix(base))
    }
}

fn without_suffix(mut name: &str) -> &str {
    while let Some(shorter) = EXECUTABLE_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) {
        name = shorter;
    }
    name
}

/// The name itself, then shorter ones without its version: `python3.12t`, `python3.12`, `python3`, `python`.
pub(crate) fn versions(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| {
        let digits = match name.strip_suffix(['d', 'm', 't']) {
            Some(rest) if rest.ends_with(|last: char| last.is_ascii_digit()) => rest,
            _ => name,
        };
        let shorter = digits.trim_end_matches(|last: char| last.is_ascii_digit());
        let shorter = shorter.strip_suffix(['.', '-']).unwrap_or(shorter);
        (shorter.len() < digits.len() && !shorter.is_empty()).then_some(shorter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_names() {
        let table = [
            ("git", "git"),
            ("/usr/bin/git", "git"),
            ("./ENV", "env"),
            ("C:\\Windows\\Cmd.EXE", "cmd"),
            ("npx.cmd", "npx"),
            ("env.exe.bat", "env"),
            ("tas\u{212a}set", "taskset"),
            (".", "."),
            ("/bin/", ""),
            ("", ""),
        ];
        for (word, name) in table {
            assert_eq!(fold(word), name, "{word:?}");
        }
        assert!(matches!(fold("/usr/bin/git"), Cow::Borrowed(_)));
    }

    #[test]
    fn names_without_their_version() {
        let table: [(&str, &[&str]); 6] = [
            ("git", &["git"]),
            ("python3.12t", &["python3.12t", "python3", "python"]),
            ("lua5.4", &["lua5.4", "lua5", "lua"]),
            ("nodejs-18", &["nodejs-18", "nodejs"]),
            ("linux32", &["linux32", "linux"]),
            ("42", &["42"]),
        ];
        for (name, shorter) in table {
            assert_eq!(versions(name).collect::<Vec<_>>(), shorter, "{name:?}");
        }
    }
}
