//! Classes: what stands between `[` and `]`.

use super::{ArgPatternFault, Escape, Translator, UnitSet, ascii};

impl Translator {
    /// A class, after its `[`.
    pub(super) fn class(&mut self) -> Result<UnitSet, ArgPatternFault> {
        let negated = self.take('^');
        let mut set = UnitSet::default();
        while !self.take(']') {
            let first = self.class_atom()?;
            // A `-` before the `]` is itself, and is read as the next part.
            if !(self.peek() == Some('-') && self.ahead().nth(1) != Some(']')) {
                add(&mut set, &first);
                continue;
            }
            self.next();
            match (first, self.class_atom()?) {
                (Escape::Unit(first), Escape::Unit(last)) if first <= last => set.add(first, last),
                (Escape::Unit(_), Escape::Unit(_)) => return Err(ArgPatternFault::RangeOutOfOrder),
                // `[\d-x]`: no range, and the `-` is itself.
                (first, last) => {
                    add(&mut set, &first);
                    add(&mut set, &Escape::Unit(u16::from(b'-')));
                    add(&mut set, &last);
                }
            }
        }
        Ok(if negated { set.complement() } else { set })
    }

    fn class_atom(&mut self) -> Result<Escape, ArgPatternFault> {
        let unit = self.next().ok_or(ArgPatternFault::UnclosedClass)?;
        let atom = if ascii(unit) != '\\' {
            Escape::Unit(unit)
        } else if self.take('b') {
            // A backspace, here.
            Escape::Unit(0x08)
        } else {
            self.atom_escape()?
        };
        self.names_nul |= matches!(atom, Escape::Unit(0));
        Ok(atom)
    }
}

fn add(set: &mut UnitSet, part: &Escape) {
    match part {
        Escape::Unit(unit) => set.add(*unit, *unit),
        Escape::Set(other) => set.add_all(other),
    }
}
