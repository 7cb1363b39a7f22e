//! Names of sessions and runs.
//!
//! A [`SessionId`] is chosen here and spoken by people; a [`RunId`] is chosen by the caller and makes a start
//! idempotent. Both are parsed once and safe as a file name afterwards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::words::{ADJECTIVES, NOUNS};

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing, or more than the limit.
    #[error("an id has 1 to {max} characters, this one has {len}")]
    Length {
        /// Length given, in bytes.
        len: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// A character that the kind of id does not allow.
    #[error("{found:?} is not allowed in this id; allowed are {allowed}")]
    Character {
        /// The first offending character.
        found: char,
        /// The allowed set, for people.
        allowed: &'static str,
    },
}

/// The name of a session: two plain words, `adjective-noun` (runtime.md §1.3).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// The longest accepted id, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Chooses a free name. On collision: suffix `-2` to `-12`, then three words, then random hexadecimal digits.
    ///
    /// `entropy` gives 64 fresh random bits per call; `taken` says whether a name is in use.
    pub fn pick(mut entropy: impl FnMut() -> u64, taken: impl Fn(&str) -> bool) -> SessionId {
        let pair = format!("{}-{}", word(&ADJECTIVES, entropy()), word(&NOUNS, entropy()));
        if !taken(&pair) {
            return SessionId(pair);
        }
        if let Some(free) = (2..=12).map(|n| format!("{pair}-{n}")).find(|name| !taken(name)) {
            return SessionId(free);
        }
        for _ in 0..8 {
            let name = format!("{}-{pair}", word(&ADJECTIVES, entropy()));
            if !taken(&name) {
                return SessionId(name);
            }
        }
        // 128 bits: no further question needed.
        SessionId(format!("{pair}-{:016x}{:016x}", entropy(), entropy()))
    }

    /// Reads an id.
    ///
    /// # Errors
    /// When the text is empty, too long, or has a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        text.parse()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn word<'a>(words: &[&'a str], bits: u64) -> &'a str {
    // The bias of the remainder is below 2^-57 for lists this short.
    words[(bits % words.len() as u64) as usize]
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        check(text, Self::MAX_LEN, "a-z, 0-9 and -", |c| matches!(c, 'a'..='z' | '0'..='9' | '-'))?;
        Ok(SessionId(text.to_owned()))
    }
}

/// The caller's name of a run. The same id with the same input is the same run, whatever got lost in between.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The longest accepted id, in bytes.
    pub const MAX_LEN: usize = 128;

    /// Reads an id.
    ///
    /// # Errors
    /// When the text is empty, too long, or has a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        text.parse()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        check(text, Self::MAX_LEN, "letters, digits and . _ : -", |c| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-')
        })?;
        Ok(RunId(text.to_owned()))
    }
}

fn check(
    text: &str,
    max: usize,
    allowed: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), IdError> {
    if text.is_empty() || text.len() > max {
        return Err(IdError::Length { len: text.len(), max });
    }
    match text.chars().find(|&c| !is_allowed(c)) {
        Some(found) => Err(IdError::Character { found, allowed }),
        None => Ok(()),
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

text_id!(SessionId);
text_id!(RunId);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zeros() -> u64 {
        0
    }

    #[test]
    fn collisions_walk_through_the_suffixes() {
        assert_eq!(SessionId::pick(zeros, |_| false).as_str(), "amber-anchor");
        assert_eq!(SessionId::pick(zeros, |name| name == "amber-anchor").as_str(), "amber-anchor-2");
        let two_words_taken = |name: &str| !name.starts_with("amber-amber");
        assert_eq!(SessionId::pick(zeros, two_words_taken).as_str(), "amber-amber-anchor");
        let last = SessionId::pick(zeros, |_| true);
        assert_eq!(last.as_str(), format!("amber-anchor-{}", "0".repeat(32)));
        assert_eq!(last.as_str().parse(), Ok(last.clone()));
    }

    #[test]
    fn run_ids_are_parsed() {
        for good in ["a", "r:1.2_x-Y", &"x".repeat(128)] {
            assert_eq!(good.parse::<RunId>().map(String::from), Ok(good.to_owned()));
        }
        assert_eq!("".parse::<RunId>(), Err(IdError::Length { len: 0, max: 128 }));
        assert_eq!("x".repeat(129).parse::<RunId>(), Err(IdError::Length { len: 129, max: 128 }));
        for bad in ["a/b", "a b", "ä", "a\n"] {
            assert!(matches!(bad.parse::<RunId>(), Err(IdError::Character { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_session_id_cannot_leave_its_directory() {
        for bad in ["..", "a/b", "A", ".", ""] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<SessionId>("\"../x\"").is_err());
    }

    proptest! {
        #[test]
        fn every_pick_parses_and_is_free(seed: [u64; 4], density in 0_u64..4) {
            let mut n = 0;
            let entropy = || { n += 1; seed[n % 4].rotate_left(n as u32) };
            let taken = |name: &str| name.len() as u64 % 4 < density && name.len() < 40;
            let id = SessionId::pick(entropy, taken);
            prop_assert!(!taken(id.as_str()));
            prop_assert_eq!(id.as_str().parse::<SessionId>(), Ok(id.clone()));
        }
    }
}
