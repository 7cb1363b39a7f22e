//! Output compared with what was written, piece by piece as it comes.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Bytes of a numbered line of [`crate::pattern`].
const LINE: usize = 16;
/// Digits of its number.
const DIGITS: usize = LINE - 1;

/// What is wrong with what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Bytes left out in the middle.
    pub lost: usize,
    /// Bytes that came again.
    pub repeated: usize,
    /// Bytes that are neither: changed ones, or ones that were never written.
    pub foreign: usize,
}

/// Compares with a pattern. The numbers in it say what a jump is.
#[derive(Debug)]
pub struct Checker {
    written: Arc<Vec<u8>>,
    /// Where in `written` the next byte belongs.
    at: usize,
    /// Bytes after a jump, until there is a whole line that says where they belong.
    unplaced: Vec<u8>,
    received: usize,
    difference: Difference,
    hash: Sha256,
}

impl Checker {
    /// Expects `written`, which is a [`crate::pattern`].
    pub fn new(written: Arc<Vec<u8>>) -> Self {
        Self {
            written,
            at: 0,
            unplaced: Vec::new(),
            received: 0,
            difference: Difference::default(),
            hash: Sha256::new(),
        }
    }

    /// Takes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        self.hash.update(bytes);
        if self.unplaced.is_empty() {
            let same = self.same(bytes);
            self.at += same;
            self.unplaced.extend_from_slice(&bytes[same..]);
        } else {
            self.unplaced.extend_from_slice(bytes);
        }
        while !self.unplaced.is_empty() && self.place() {}
    }

    /// How many bytes came.
    pub fn received(&self) -> usize {
        self.received
    }

    /// What is wrong so far. Bytes that could not be placed yet count as foreign.
    pub fn difference(&self) -> Difference {
        let foreign = self.difference.foreign + self.unplaced.len();
        Difference { foreign, ..self.difference }
    }

    /// Whether what came has the SHA-256 of as many bytes as were written first.
    pub fn is_prefix(&self) -> bool {
        let written = self.written.get(..self.received);
        written.is_some_and(|written| self.hash.clone().finalize() == Sha256::digest(written))
    }

    /// Whether it is all that was written.
    pub fn is_whole(&self) -> bool {
        self.received == self.written.len() && self.is_prefix()
    }

    /// How many of `bytes` are what belongs next.
    fn same(&self, bytes: &[u8]) -> usize {
        let wanted = self.written.get(self.at..).unwrap_or_default();
        let wanted = &wanted[..wanted.len().min(bytes.len())];
        if bytes.starts_with(wanted) {
            return wanted.len();
        }
        bytes.iter().zip(wanted).take_while(|(a, b)| a == b).count()
    }

    /// Finds where the unplaced bytes belong. Yields whether that was progress.
    fn place(&mut self) -> bool {
        let same = self.same(&self.unplaced);
        if same > 0 {
            self.at += same;
            self.unplaced.drain(..same);
            return true;
        }
        let Some(before) = self.unplaced.iter().take(LINE).position(|b| *b == b'\n') else {
            return self.unplaced.len() >= LINE && self.skip();
        };
        let Some(digits) = self.unplaced.get(before + 1..before + 1 + DIGITS) else { return false };
        let number = std::str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let belongs = number.and_then(|number| (number * LINE).checked_sub(before + 1));
        match belongs {
            Some(at) if at > self.at => self.difference.lost += at - self.at,
            Some(at) if at < self.at => self.difference.repeated += self.at - at,
            _ => return self.skip(),
        }
        self.at = belongs.unwrap_or(self.at);
        true
    }

    /// One byte instead of the one that belongs there.
    fn skip(&mut self) -> bool {
        self.difference.foreign += 1;
        self.unplaced.remove(0);
        self.at += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn jumps_are_told_apart() {
        const LEN: usize = 4000;
        let written = pattern(LEN);
        let right = Difference::default();
        let lost = Difference { lost: 1003, ..right };
        let repeated = Difference { repeated: 517, ..right };
        let foreign = Difference { foreign: 1, ..right };
        let mut changed = written.clone();
        changed[77] = b'#';
        for (bytes, want) in [
            (written.clone(), right),
            (written[..1999].to_vec(), right),
            ([&written[..500], &written[1503..]].concat(), lost),
            ([&written[..1000], &written[483..]].concat(), repeated),
            (changed, foreign),
            ([&written[..], b"x"].concat(), foreign),
        ] {
            for piece in [1, 7, 640, LEN] {
                let mut checker = Checker::new(Arc::new(written.clone()));
                bytes.chunks(piece).for_each(|piece| checker.take(piece));
                let found = (checker.received(), checker.difference(), checker.is_prefix());
                let prefix = written.starts_with(&bytes);
                assert_eq!(found, (bytes.len(), want, prefix), "in pieces of {piece}");
                assert_eq!(checker.is_whole(), bytes == written);
            }
        }
    }
}
