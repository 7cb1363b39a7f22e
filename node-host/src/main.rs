//! The `node-host` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    node_host::starter::intercept().unwrap_or_else(node_host::cli::main)
}
