//! The `gateway` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The node host of `demo` is this program, too.
    node_host::starter::intercept().unwrap_or_else(gateway::cli::main)
}
