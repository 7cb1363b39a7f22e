//! The stories: what people and agents do with the programs, and what the world
//! does to them. One binary, so that linking happens once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod answers;
mod approvals;
mod asked;
mod background;
mod bad_input;
mod demo;
mod env_rejection;
mod exec_pipes;
mod exec_pty;
mod field_cases;
mod hostile_approvals;
mod hygiene;
mod link_manners;
mod listings;
mod node_killed;
mod operators;
mod pairing;
mod reconnect;
mod references;
mod removal;
mod renewal;
mod rules;
mod run_ids;
mod skew;
mod slow_reader;
mod terminal_programs;
mod tool_exec;
mod tool_process;
