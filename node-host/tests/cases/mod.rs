//! The cases, by subject.

mod bound;
mod exits;
mod kills;
mod limits;
mod output;
mod restart;
mod retry;
mod stdin;
mod terminal;
mod terminal_facts;

use super::bed::Bed;

pub(crate) type Case = (&'static str, fn(&mut Bed));

/// The most that a holder may use of the processor while its command sleeps for two seconds, in ticks of 10 ms.
pub(crate) const IDLE_TICKS: u64 = 15;

/// What a process has used of the processor so far, in ticks.
pub(crate) fn ticks_of(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Behind the name, which may hold blanks, come fields 3 and up; user and system time are 14 and 15.
    let fields = text.rsplit(") ").next().unwrap().split(' ');
    fields.skip(14 - 3).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

pub(crate) fn all() -> Vec<Case> {
    let all = [
        exits::CASES,
        output::CASES,
        stdin::CASES,
        terminal::CASES,
        terminal_facts::CASES,
        kills::CASES,
        limits::CASES,
        restart::CASES,
        retry::CASES,
        bound::CASES,
    ];
    all.concat()
}
