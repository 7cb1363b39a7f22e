//! Sets of UTF-16 units, and texts as units: ECMAScript matches units, not characters.

use std::{borrow::Cow, fmt::Write};

/// Where the units that are halves of a character lie in a text made by [`as_units`].
const HALVES: u32 = 0x10_0000;
const FIRST_HALF: u16 = 0xD800;
const LAST_HALF: u16 = 0xDFFF;

/// A text with one character for each unit. The characters outside the basic plane become two, taken from a part of the
/// private planes; those that lie there themselves become two as well, so the two are never mixed up.
pub(in super::super) fn as_units(text: &str) -> Cow<'_, str> {
    if text.chars().all(|letter| letter.len_utf16() == 1) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.encode_utf16().map(letter).collect())
}

/// The character that stands for a unit.
pub(super) fn letter(unit: u16) -> char {
    let code = match unit {
        FIRST_HALF..=LAST_HALF => HALVES + u32::from(unit - FIRST_HALF),
        _ => u32::from(unit),
    };
    // Every number of both arms is a character.
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A set of units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitSet(Vec<(u16, u16)>);

impl UnitSet {
    /// `\d`.
    pub(super) fn digits() -> Self {
        Self(vec![(0x30, 0x39)])
    }

    /// `\w`.
    pub(super) fn word() -> Self {
        Self(vec![(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
    }

    /// `\s`.
    pub(super) fn spaces() -> Self {
        Self(vec![
            (0x09, 0x0D),
            (0x20, 0x20),
            (0xA0, 0xA0),
            (0x1680, 0x1680),
            (0x2000, 0x200A),
            (0x2028, 0x2029),
            (0x202F, 0x202F),
            (0x205F, 0x205F),
            (0x3000, 0x3000),
            (0xFEFF, 0xFEFF),
        ])
    }

    /// What `.` leaves out.
    pub(super) fn line_ends() -> Self {
        Self(vec![(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
    }

    pub(super) fn add(&mut self, first: u16, last: u16) {
        self.0.push((first, last));
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    pub(super) fn complement(&self) -> Self {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let mut out = Vec::new();
        // Wider than a unit: after the last unit nothing is left.
        let mut next = 0_u32;
        for (first, last) in sorted {
            if let Some(before) =
                u32::from(first).checked_sub(1).and_then(|before| u16::try_from(before).ok())
                && let Ok(from) = u16::try_from(next)
                && from <= before
            {
                out.push((from, before));
            }
            next = next.max(u32::from(last) + 1);
        }
        if let Ok(from) = u16::try_from(next) {
            out.push((from, u16::MAX));
        }
        Self(out)
    }

    /// The set as a class of the `regex` crate.
    pub(super) fn write(&self, out: &mut String) {
        if self.0.is_empty() {
            // No character at all.
            out.push_str(r"[^\x{0}-\x{10FFFF}]");
            return;
        }
        out.push('[');
        for &(first, last) in &self.0 {
            write_part(out, first, last, 0, FIRST_HALF - 1);
            write_part(out, first, last, FIRST_HALF, LAST_HALF);
            write_part(out, first, last, LAST_HALF + 1, u16::MAX);
        }
        out.push(']');
    }
}

/// Writes what a range has in common with another. Within each of the three the characters follow each other.
fn write_part(out: &mut String, first: u16, last: u16, low: u16, high: u16) {
    let (first, last) = (first.max(low), last.min(high));
    if first <= last {
        // Writing to a string cannot fail.
        let _ = write!(out, r"\x{{{:X}}}-\x{{{:X}}}", u32::from(letter(first)), u32::from(letter(last)));
    }
}
