//! `process` as agents call it, with the real programs: whose sessions, reading, typing, ending, leases.

mod ending;
mod leases;
mod reading;
mod scope;
mod typing;
mod waiting;
