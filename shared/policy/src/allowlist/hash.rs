//! Hashes that stand for one invocation, one command text or one set of variables (policy spec §2.5, §3.10, §7.7).

use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What an argument pattern begins with that means one exact argv in one directory.
pub(super) const CWD_ARGV: &str = "sha256:cwd-argv:v1:";
/// What the pattern of an entry begins with that means one exact command text.
pub(super) const NODE_COMMAND: &str = "=node-command:";
/// The older form of [`NODE_COMMAND`].
pub(super) const COMMAND: &str = "=command:";
/// Hex digits in such a pattern.
pub(super) const MARKER_DIGITS: usize = 16;

/// The argument pattern that means exactly these arguments (the program not among them) in exactly this directory.
///
/// `cwd` is freed of `.`, `..` and doubled slashes without a look at the disk; a trailing slash stays and counts.
#[must_use]
pub fn cwd_argv_hash(cwd: &str, args: &[String]) -> String {
    let cwd = normalised(cwd);
    let mut hash = Sha256::new();
    hash.update(format!("{}\0{cwd}\0{}\0", cwd.len(), args.len()));
    for arg in args {
        hash.update(format!("{}\0", arg.len()));
        hash.update(arg);
        hash.update([0]);
    }
    format!("{CWD_ARGV}{}", hex(hash))
}

/// The pattern of an entry that means exactly this command text.
#[must_use]
pub fn node_command_marker(text: &str) -> String {
    format!("{NODE_COMMAND}{}", marker_digits(text))
}

/// What such a pattern says about a text.
pub(super) fn marker_digits(text: &str) -> String {
    let mut digits = hex(Sha256::new_with_prefix(text));
    digits.truncate(MARKER_DIGITS);
    digits
}

/// What an approval remembers of the variables that come with a command; `None` where there are none.
#[must_use]
pub fn env_hash(variables: &[(String, String)]) -> Option<String> {
    if variables.is_empty() {
        return None;
    }
    let mut sorted: Vec<[&str; 2]> = variables.iter().map(|(key, value)| [&**key, &**value]).collect();
    sorted.sort_unstable();
    let json: Value = sorted.into_iter().map(|[key, value]| json!([key, value])).collect();
    Some(hex(Sha256::new_with_prefix(json.to_string())))
}

/// Whether a text is what such a hash looks like: an upper-case digit would never be equal to ours.
pub(super) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn normalised(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            // Above the root is the root.
            ".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let mut out = parts.join("/");
    if absolute {
        out.insert(0, '/');
    } else if out.is_empty() {
        out.push('.');
    }
    if path.ends_with('/') && !out.ends_with('/') {
        out.push('/');
    }
    out
}
