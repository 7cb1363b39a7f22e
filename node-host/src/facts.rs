//! What this machine and program are, for the people who pair it.

use std::ffi::OsStr;

use proto::v1 as pb;

use crate::convert;

/// The node commands that this version serves.
pub(crate) const COMMANDS: [&str; 5] = [
    "system.run",
    "system.run.prepare",
    "system.which",
    "system.execApprovals.get",
    "system.execApprovals.set",
];

/// The facts, with PATH as commands get it.
pub(crate) fn host_facts(path_env: &OsStr) -> pb::HostFacts {
    let uname = rustix::system::uname();
    pb::HostFacts {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        hostname: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        user: user(),
        path_env: convert::text(path_env),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The name for a node that was given none.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The protocol versions of this build.
pub(crate) fn protocol() -> pb::ProtocolRange {
    pb::ProtocolRange { min: proto::PROTOCOL_MIN, max: proto::PROTOCOL_MAX }
}

/// This machine's clock, milliseconds since the Unix epoch.
pub(crate) fn clock_unix_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    std::env::var("USER").unwrap_or_else(|_| format!("uid {uid}"))
}
