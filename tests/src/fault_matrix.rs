//! What the failure matrix measures with: output that is checked while it comes, a reader that is killed and goes on,
//! a fault that is held for a while, a real partition.

mod checker;
mod partition;
mod reader;

use std::time::{Duration, Instant};

pub use checker::{Checker, Difference};
pub use partition::Partitioned;
pub use reader::{Reader, ReaderEnd};

use crate::eventually::{PATIENCE, eventually};

/// Lets a fault last for `time`, or until `over` says that there is nothing left to disturb.
#[track_caller]
pub fn hold(time: Duration, mut over: impl FnMut() -> bool) {
    let until = Instant::now() + time;
    eventually(time + PATIENCE, || {
        if over() || Instant::now() >= until { Ok(()) } else { Err("the fault lasts".to_owned()) }
    });
}
