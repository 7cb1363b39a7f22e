//! The head and the tail of a long text, cut between what belongs together, with what lies between named.

use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation;

use super::clean::Glyph;
use super::fold::{Folded, LINE_MAX};
use super::text::{Piece, Text};

/// The longest grapheme cluster that is kept whole. Real ones stay below 30; marks can be heaped on without end.
const CLUSTER_MAX: usize = 64;

/// The most omissions that are named one by one at either side of a cut, and in it.
const OMISSIONS_MAX: usize = 256;

/// Keeps the first and the last characters of what is pushed. Memory: the characters kept, one line, and
/// [`OMISSIONS_MAX`] omissions three times.
#[derive(Debug)]
pub(super) struct Ends {
    max: usize,
    head_max: usize,
    /// Characters pushed so far.
    chars: u64,
    /// What must not be torn apart and may still grow.
    atom: Vec<Glyph>,
    /// Behind the last byte of `atom`.
    atom_end: u64,
    /// The last grapheme cluster of `atom`.
    cluster: String,
    cluster_chars: usize,
    head: Vec<Piece>,
    head_chars: usize,
    /// Behind the last byte in `head`.
    head_end: Option<u64>,
    /// The head takes no more.
    closed: bool,
    /// What lies between, in order.
    dropped: Vec<Omission>,
    tail: VecDeque<Entry>,
    tail_chars: usize,
    tail_omissions: usize,
}

#[derive(Debug, Clone, Copy)]
struct Omission {
    from: u64,
    to: u64,
    lost: bool,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Glyph {
        glyph: Glyph,
        /// The tail may begin here.
        first: bool,
    },
    Omitted(Omission),
}

impl Ends {
    /// Keeps `max` characters: half of them at the head, the rest at the tail.
    pub(super) fn new(max: usize) -> Self {
        Ends::with_head(max, max / 2)
    }

    /// Keeps `max` characters, all of them at the tail.
    pub(super) fn tail_only(max: usize) -> Self {
        Ends::with_head(max, 0)
    }

    fn with_head(max: usize, head_max: usize) -> Self {
        Ends {
            max,
            head_max,
            chars: 0,
            atom: Vec::new(),
            atom_end: 0,
            cluster: String::new(),
            cluster_chars: 0,
            head: Vec::new(),
            head_chars: 0,
            head_end: None,
            closed: false,
            dropped: Vec::new(),
            tail: VecDeque::new(),
            tail_chars: 0,
            tail_omissions: 0,
        }
    }

    pub(super) fn push(&mut self, Folded { glyph, joined }: Folded) {
        self.chars = self.chars.saturating_add(1);
        let same_cluster = self.continues(glyph.ch);
        let overlaps = joined || glyph.from < self.atom_end;
        if !(same_cluster || overlaps && self.atom.len() < LINE_MAX) {
            self.close_atom();
        }
        self.atom.push(glyph);
        self.atom_end = glyph.to.max(self.atom_end);
    }

    /// Bytes of which no text is there.
    pub(super) fn omit(&mut self, from: u64, to: u64, lost: bool) {
        self.close_atom();
        self.cluster.clear();
        if from >= to {
            return;
        }
        let omission = Omission { from, to, lost };
        if self.closed {
            self.tail.push_back(Entry::Omitted(omission));
            self.tail_omissions = self.tail_omissions.saturating_add(1);
            self.trim_tail();
        } else {
            self.head_end = self.head_end.max(Some(to));
            append(&mut self.head, Piece::Omitted { from, to, lost });
            self.closed = self.head.len() >= 2 * OMISSIONS_MAX;
        }
    }

    pub(super) fn finish(mut self) -> Text {
        self.close_atom();
        // An omission at the edge reaches up to what is shown: nothing but removed sequences lies between.
        if let (Some(first), Some(end)) = (self.dropped.first_mut(), self.head_end)
            && !first.lost
        {
            first.from = end.min(first.from);
        }
        let tail_start = self.tail_start();
        if let (Some(last), Some(from)) = (self.dropped.last_mut(), tail_start)
            && !last.lost
        {
            last.to = from.max(last.to);
        }
        let mut pieces = self.head;
        for omission in self.dropped {
            append(&mut pieces, omission.into());
        }
        for entry in self.tail {
            match entry {
                Entry::Glyph { glyph, .. } => append_char(&mut pieces, glyph.ch),
                Entry::Omitted(omission) => append(&mut pieces, omission.into()),
            }
        }
        Text { pieces, chars: self.chars }
    }

    /// Glyphs that there is room for, but in the head.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.tail.capacity().saturating_add(self.atom.capacity())
    }

    /// Whether `ch` belongs to the grapheme cluster before it; takes it into account for the next one.
    fn continues(&mut self, ch: char) -> bool {
        let mut continues = false;
        // Two of ASCII never belong together, a lone carriage return having been folded away.
        if !(ch.is_ascii() && self.cluster.is_ascii()) && self.cluster_chars < CLUSTER_MAX {
            self.cluster.push(ch);
            continues = self.cluster.graphemes(true).nth(1).is_none();
            self.cluster.pop();
        }
        if self.cluster.is_empty() || !continues {
            continues = false;
            self.cluster.clear();
            self.cluster_chars = 0;
        }
        self.cluster.push(ch);
        self.cluster_chars = self.cluster_chars.saturating_add(1);
        continues
    }

    fn close_atom(&mut self) {
        let atom = std::mem::take(&mut self.atom);
        if !self.closed {
            self.closed = atom.len() > self.head_max.saturating_sub(self.head_chars);
        }
        if self.closed {
            let mut first = true;
            for &glyph in &atom {
                self.tail.push_back(Entry::Glyph { glyph, first });
                first = false;
            }
            self.tail_chars = self.tail_chars.saturating_add(atom.len());
            self.trim_tail();
        } else if !atom.is_empty() {
            self.head_chars = self.head_chars.saturating_add(atom.len());
            self.head_end = self.head_end.max(Some(self.atom_end));
            atom.iter().for_each(|glyph| append_char(&mut self.head, glyph.ch));
        }
        self.atom = atom;
        self.atom.clear();
        self.atom_end = 0;
    }

    /// Drops from the front of the tail what is too much, whole atoms at a time.
    fn trim_tail(&mut self) {
        let max = self.max.saturating_sub(self.head_chars);
        while self.tail_chars > max || self.tail_omissions > OMISSIONS_MAX {
            self.drop_entry();
            while self.tail.front().is_some_and(|entry| matches!(entry, Entry::Glyph { first: false, .. })) {
                self.drop_entry();
            }
        }
    }

    fn drop_entry(&mut self) {
        let new = match self.tail.pop_front() {
            Some(Entry::Glyph { glyph, .. }) => {
                self.tail_chars = self.tail_chars.saturating_sub(1);
                Omission { from: glyph.from, to: glyph.to, lost: false }
            }
            Some(Entry::Omitted(omission)) => {
                self.tail_omissions = self.tail_omissions.saturating_sub(1);
                omission
            }
            None => return,
        };
        let full = self.dropped.len() >= OMISSIONS_MAX;
        match self.dropped.last_mut() {
            // Too many to name each: what is said to be there will turn out as a gap when it is asked for.
            Some(last) if full => {
                last.lost = last.lost && new.lost;
                last.from = new.from.min(last.from);
                last.to = new.to.max(last.to);
            }
            Some(last) if !last.lost && !new.lost => {
                last.from = new.from.min(last.from);
                last.to = new.to.max(last.to);
            }
            Some(last) if !last.lost => {
                last.to = new.from.max(last.to);
                self.dropped.push(new);
            }
            Some(last) if !new.lost => {
                let from = new.from.min(last.to);
                self.dropped.push(Omission { from, ..new });
            }
            Some(_) | None => self.dropped.push(new),
        }
    }

    /// The first byte of what is left of the tail.
    fn tail_start(&self) -> Option<u64> {
        let mut entries = self.tail.iter();
        match entries.next()? {
            Entry::Omitted(omission) => Some(omission.from),
            Entry::Glyph { glyph, .. } => entries
                .map_while(|entry| match entry {
                    Entry::Glyph { glyph, first: false } => Some(glyph.from),
                    Entry::Glyph { .. } | Entry::Omitted(_) => None,
                })
                .chain([glyph.from])
                .min(),
        }
    }
}

impl From<Omission> for Piece {
    fn from(Omission { from, to, lost }: Omission) -> Self {
        Piece::Omitted { from, to, lost }
    }
}

fn append_char(pieces: &mut Vec<Piece>, ch: char) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push(ch),
        Some(Piece::Omitted { .. }) | None => pieces.push(Piece::Text(String::from(ch))),
    }
}

/// Appends an omission; with the one before it, it becomes one where both are of one kind and touch.
fn append(pieces: &mut Vec<Piece>, piece: Piece) {
    if let (Some(Piece::Omitted { to: end, lost: was_lost, .. }), Piece::Omitted { from, to, lost }) =
        (pieces.last_mut(), &piece)
        && was_lost == lost
        // Between two that are still kept there is nothing to show, or there would be text.
        && (!*lost || *from <= *end)
    {
        *end = (*to).max(*end);
    } else {
        pieces.push(piece);
    }
}
