//! Short words that two people compare while a node is being paired.
//!
//! Owns the derivation and the word list (`words.txt`: 1024 words, no two of them one letter apart, each told by its
//! first four letters). When to show the words, and that both sides must confirm them, is the callers' business.

use std::fmt;
use std::num::NonZeroU32;

use ring::pbkdf2;

use crate::fingerprint::Fingerprint;

/// Number of words shown.
const COUNT: usize = 6;

/// Bits per word: the list has 2^10 words.
const BITS: u32 = 10;

/// The list, one word per line. The order is part of the protocol: both sides must have the same one.
const LIST: &str = include_str!("words.txt");

/// Separates this use of the two keys from every other, and names the version of list and derivation.
const DOMAIN: &[u8] = b"farrun pairing words 1";

/// Iterations of PBKDF2. Both sides derive the words once per pairing, in about 15 ms.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(60_000).unwrap();

/// Six words derived from the gateway's authority and the node's key.
///
/// # Strength
/// The words carry 60 bits, stretched by PBKDF2-HMAC-SHA256 with 60 000 iterations: a guess costs 2^17 hash
/// computations. A man in the middle presents a key of his own to each side and needs both to show the same words. Where
/// he can choose one key only, that takes 2^60 guesses. Where he can choose both he looks for a collision: about 2^31
/// guesses, 2^48 hash computations, hours on one strong graphics card; and since a gateway's key is known for years, he
/// can do most of it beforehand and shorten what remains once he sees the node's key. So the words stop everybody who
/// did not prepare for this very gateway, requests must expire within minutes, and the pairing link, which carries the
/// whole fingerprint of the gateway, is the stronger way: against it there is nothing to grind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthWords([&'static str; COUNT]);

impl AuthWords {
    /// The words for the gateway whose authority has the key `gateway_ca`, and the node whose own key is `node`.
    ///
    /// Takes about 15 ms of processor time on purpose: call it off the event loop, and once per request.
    pub fn derive(gateway_ca: &Fingerprint, node: &Fingerprint) -> Self {
        let mut secret = [0; 64];
        secret[..32].copy_from_slice(&gateway_ca.0);
        secret[32..].copy_from_slice(&node.0);
        let mut derived = [0; 8];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, DOMAIN, &secret, &mut derived);
        let bits = u64::from_be_bytes(derived);
        let list: Vec<&'static str> = LIST.lines().collect();
        Self(std::array::from_fn(|position| {
            let shift = u64::BITS - BITS * (position as u32 + 1);
            // The mask keeps the index inside the list; a test keeps the list at 2^10 words.
            list.get((bits >> shift) as usize & ((1 << BITS) - 1)).copied().unwrap_or_default()
        }))
    }

    /// The words in order.
    pub fn words(&self) -> [&'static str; COUNT] {
        self.0
    }
}

impl fmt::Display for AuthWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl fmt::Debug for AuthWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthWords({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn list_has_1024_plain_words_that_cannot_be_confused() {
        let words: Vec<&str> = LIST.lines().collect();
        assert_eq!(words.len(), 1 << BITS);
        assert!(words.is_sorted());
        for word in &words {
            assert!((3..=7).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        }
        let beginnings: BTreeSet<&str> = words.iter().map(|word| word.get(..4).unwrap_or(word)).collect();
        assert_eq!(beginnings.len(), words.len(), "each word is told by its first four letters");
        for (index, left) in words.iter().enumerate() {
            for right in &words[index + 1..] {
                assert!(!one_letter_apart(left, right), "{left} {right}");
            }
        }
    }

    #[test]
    fn words_depend_on_both_keys_and_their_parts() {
        let (one, two) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        let words = AuthWords::derive(&one, &two);
        assert_eq!(words, AuthWords::derive(&one, &two));
        for other in [(two, one), (one, one), (two, two)] {
            assert_ne!(words, AuthWords::derive(&other.0, &other.1));
        }
        // A fixed answer: gateway and node of different releases must show the same words.
        assert_eq!(words.to_string(), "azure jackal dwarf owner awake gallon");
    }

    fn one_letter_apart(left: &str, right: &str) -> bool {
        let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
        match long.len() - short.len() {
            0 => short.bytes().zip(long.bytes()).filter(|(a, b)| a != b).count() == 1,
            1 => (0..long.len()).any(|at| format!("{}{}", &long[..at], &long[at + 1..]) == short),
            _ => false,
        }
    }
}
