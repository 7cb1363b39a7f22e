//! Where the programs keep their files, and how private files are written and read.
//!
//! Owns the choice and the checks of the state directory and the names in it. It does not own what the files hold, and
//! it reads the process environment in one place only ([`StateDir::from_process`]).

mod approvals_file;
mod chain;
mod openclaw;
mod private;
mod stamp;
mod state_dir;

pub use approvals_file::{ApprovalsError, ApprovalsFile, Change, LastGood, Loaded, Malformed, RuleUsage};
pub use openclaw::{
    Config, ConfigError, ConfigFile, ExecConfig, MAX_CONFIG_BYTES, NotifyWebhook, ReviewerConfig, ReviewerUrl,
};
pub use private::{LinkFault, Openness, PrivateFileError, PrivateMode, read_private, write_private};
pub use stamp::FileStamp;
pub use state_dir::{STATE_DIR_FLAG, STATE_DIR_VARIABLE, StateDir, StateDirError};
