//! The cases, by subject.

mod exits;
mod kills;
mod output;
mod restart;
mod stdin;
mod terminal;

use super::bed::Bed;

pub(crate) type Case = (&'static str, fn(&mut Bed));

pub(crate) fn all() -> Vec<Case> {
    [exits::CASES, output::CASES, stdin::CASES, terminal::CASES, kills::CASES, restart::CASES].concat()
}
