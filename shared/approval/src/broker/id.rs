//! Ids of requests.

/// Longest id, in characters.
const ID_MAX: usize = 128;
/// What ids of other kinds of requests begin with.
const RESERVED: &str = "plugin:";

/// An id has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an approval id has 1 to 128 of A-Z a-z 0-9 . _ : -, is not `.` or `..`, and does not begin with `plugin:`"
)]
pub struct BadId;

/// Whether a text can be an id (policy spec §7.7).
///
/// # Errors
/// It cannot.
pub fn check_id(id: &str) -> Result<(), BadId> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let good = (1..=ID_MAX).contains(&id.len())
        && id.bytes().all(plain)
        && !matches!(id, "." | "..")
        && !id.to_ascii_lowercase().starts_with(RESERVED);
    if good { Ok(()) } else { Err(BadId) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let long = "a".repeat(ID_MAX);
        for good in ["a", "A.b_c:d-9", "...", "plugin", &long] {
            assert_eq!(check_id(good), Ok(()), "{good}");
        }
        let too_long = format!("{long}a");
        for bad in ["", ".", "..", "a b", "ä", "a/b", "plugin:x", "Plugin:x", &too_long] {
            assert_eq!(check_id(bad), Err(BadId), "{bad}");
        }
    }
}
