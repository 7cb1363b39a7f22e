//! The `node-host` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    node_host::cli::main()
}
