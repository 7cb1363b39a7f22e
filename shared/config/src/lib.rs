//! Where the programs keep their files, and how private files are written and read.
//!
//! Owns the choice and the checks of the state directory and the names in it. It does not own what the files hold, and
//! it reads the process environment in one place only ([`StateDir::from_process`]).

mod private;
mod state_dir;

pub use private::{PrivateFileError, PrivateMode, read_private, write_private};
pub use state_dir::{STATE_DIR_FLAG, STATE_DIR_VARIABLE, StateDir, StateDirError};
