//! A reviewer that is a program on this machine: the request on its standard input, the verdict on its standard output.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::{ANSWER_MAX, Failure};

/// Where it looks for programs of its own.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What it may see of the gateway's environment.
const PASSED: [&str; 6] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "TZ", "USER"];

/// Runs it and yields what it printed. `key` is the variable that it gets besides. The caller limits the time: dropping
/// this kills the program and what it started.
pub(super) async fn ask(
    command: &[String],
    key: Option<(&str, &str)>,
    request: &str,
) -> Result<String, Failure> {
    let [program, args @ ..] = command else { return Err(Failure::NoReviewer) };
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("PATH", PATH)
        .envs(key)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // It may repeat the command there, which belongs into no log.
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(Failure::NotStarted)?;
    let mut running = Running(child);
    let (Some(mut input), Some(output)) = (running.0.stdin.take(), running.0.stdout.take()) else {
        return Err(Failure::NoAnswer);
    };
    let mut answer = Vec::new();
    let mut output = output.take(ANSWER_MAX as u64 + 1);
    let written = async {
        // One that knows its answer need not read.
        let _ = input.write_all(request.as_bytes()).await;
        drop(input);
        std::future::pending::<std::io::Result<usize>>().await
    };
    // The end of its answer is the end: one that answers too much may never read the rest.
    let read = tokio::select! {
        read = output.read_to_end(&mut answer) => read,
        never = written => never,
    };
    read.map_err(|_| Failure::NoAnswer)?;
    if answer.len() > ANSWER_MAX {
        return Err(Failure::TooLong);
    }
    let status = running.0.wait().await.map_err(|_| Failure::NoAnswer)?;
    if !status.success() {
        return Err(Failure::Ended(status.to_string()));
    }
    String::from_utf8(answer).map_err(|_| Failure::NoAnswer)
}

/// Kills the group of a program that was not waited for.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // There is no id once it was waited for: then the number may be another's.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = id {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
