//! Words as every POSIX shell reads them back.

/// The word in single quotes; a single quote inside becomes `'\''`.
#[must_use]
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
