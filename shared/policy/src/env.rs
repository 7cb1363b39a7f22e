//! Environment rules (policy spec §6): what a caller may set, what a command inherits, what a shell wrapper keeps.
//!
//! The names lie in `table`, the one list for gateway, node and tests. This module never sees the process environment.

mod inherited;
mod overrides;
mod table;
#[cfg(test)]
mod tests;

pub use inherited::{PassList, clean_inherited};
pub use overrides::{EnvRejection, MAX_OVERRIDES, check_overrides, reduce_for_shell_wrapper};

/// Variables that every command gets after cleaning, so that scripts and shell rules can tell (§6.3, runtime spec
/// §4.4).
pub const CHILD_MARKERS: [(&str, &str); 2] = [("OPENCLAW_CLI", "1"), ("OPENCLAW_SHELL", "exec")];
