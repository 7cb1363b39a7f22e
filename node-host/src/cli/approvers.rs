//! `node-host approvers`: the people whose signed decisions count on this machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use config::{Config, StateDir};
use fault::Fault;
use identity::PublicKey;
use serde_json::json;

use super::say;
use crate::app::fail;
use crate::approvers::{Approver, ApproversFile};

/// The arguments of `node-host approvers`.
#[derive(Debug, Clone, Args)]
pub(super) struct ApproversArgs {
    /// Where keys, policy and sessions lie [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: ApproversCommand,
}

/// The subcommands of `node-host approvers`.
#[derive(Debug, Clone, Subcommand)]
enum ApproversCommand {
    /// Let the decisions of a person count. Compare the fingerprint with what they see.
    Add {
        /// What they are called here.
        name: String,
        /// Their public key, as `gateway approvals key` prints it.
        key: PublicKey,
    },
    /// Show whose decisions count.
    List,
    /// Let the decisions of a person count no longer.
    Remove {
        /// What they are called here.
        name: String,
    },
}

/// What a subcommand has to say, for people and as JSON.
#[derive(Debug, PartialEq)]
struct Answer {
    text: String,
    json: serde_json::Value,
}

/// Does what the command line says.
pub(super) fn run(args: ApproversArgs) -> ExitCode {
    match answer(args.state_dir, args.command) {
        Ok(answer) if args.json => say(&format!("{:#}\n", answer.json)),
        Ok(answer) => say(&answer.text),
        Err(fault) => return fail(&fault),
    }
    ExitCode::SUCCESS
}

fn answer(state_dir: Option<PathBuf>, command: ApproversCommand) -> Result<Answer, Fault> {
    let state = StateDir::from_process(state_dir)
        .map_err(|error| Fault::new(error.code(), error.to_string()).hint(error.hint()))?;
    let file = ApproversFile::new(state.approvers());
    // Read first: who cannot be told whether signatures are required is told what is wrong before anything changes.
    let required =
        Config::load(&state.openclaw_json()).map_err(|error| Fault::from(&error))?.require_signed();
    let (text, mut json) = match command {
        ApproversCommand::Add { name, key } => {
            let added = file.add(&name, key, now_ms())?;
            let name = added.name.escape_debug();
            (format!("added {name}\nfingerprint {}\n", key.fingerprint()), json!({ "added": person(&added) }))
        }
        ApproversCommand::List => {
            let approvers = file.load()?;
            let mut text: String = approvers.iter().map(line).collect();
            if approvers.is_empty() {
                text = "no approver is enrolled\n".to_owned();
            }
            (text, json!({ "approvers": approvers.iter().map(person).collect::<Vec<_>>() }))
        }
        ApproversCommand::Remove { name } => {
            let removed = file.remove(&name)?;
            (format!("removed {}\n", removed.name.escape_debug()), json!({ "removed": person(&removed) }))
        }
    };
    let nobody = file.load()?.is_empty();
    json["requireSigned"] = required.into();
    Ok(Answer { text: text + &requirement(required, nobody, &state), json })
}

/// Whether signatures are required, and what follows from that.
fn requirement(required: bool, nobody: bool, state: &StateDir) -> String {
    let file = state.openclaw_json();
    let file = file.display().to_string();
    match (required, nobody) {
        (true, false) => {
            "approvals.requireSigned is on: only decisions that one of them signed count\n".to_owned()
        }
        (true, true) => {
            "approvals.requireSigned is on and nobody is enrolled: what needs a yes cannot run\n".to_owned()
        }
        (false, _) => format!(
            "approvals.requireSigned is off: decisions count without a signature; to switch it on, write\n  \
             approvals: {{ requireSigned: true }}\ninto {}\n",
            file.escape_debug()
        ),
    }
}

fn line(approver: &Approver) -> String {
    let Approver { name, key, .. } = approver;
    format!("{}  {key}  fingerprint {}\n", name.escape_debug(), key.fingerprint())
}

fn person(approver: &Approver) -> serde_json::Value {
    json!({
        "name": approver.name,
        "key": approver.key.to_string(),
        "fingerprint": approver.key.fingerprint().to_hex(),
        "addedAtMs": approver.added_at_ms,
    })
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use config::write_private;
    use fault::ErrorCode;
    use identity::PrivateKey;

    use super::*;

    fn text(dir: &std::path::Path, command: ApproversCommand) -> String {
        answer(Some(dir.to_path_buf()), command).unwrap().text
    }

    #[test]
    fn people_come_and_go_and_each_answer_says_what_counts() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("state");
        let key = PrivateKey::generate().unwrap().public().unwrap();
        let fingerprint = key.fingerprint();
        let off = format!(
            "approvals.requireSigned is off: decisions count without a signature; to switch it on, write\n  \
             approvals: {{ requireSigned: true }}\ninto {}\n",
            here.join("openclaw.json").display()
        );
        let on = "approvals.requireSigned is on: only decisions that one of them signed count\n";
        let alone = "approvals.requireSigned is on and nobody is enrolled: what needs a yes cannot run\n";
        let add = || ApproversCommand::Add { name: "ann".to_owned(), key };

        assert_eq!(text(&here, ApproversCommand::List), format!("no approver is enrolled\n{off}"));
        assert_eq!(text(&here, add()), format!("added ann\nfingerprint {fingerprint}\n{off}"));
        assert_eq!(answer(Some(here.clone()), add()).unwrap_err().code, ErrorCode::InvalidRequest);
        write_private(&here.join("openclaw.json"), b"{ approvals: { requireSigned: true } }").unwrap();
        let list = format!("ann  {key}  fingerprint {fingerprint}\n{on}");
        assert_eq!(text(&here, ApproversCommand::List), list);
        let remove = || ApproversCommand::Remove { name: "ann".to_owned() };
        assert_eq!(text(&here, remove()), format!("removed ann\n{alone}"));
        assert_eq!(answer(Some(here), remove()).unwrap_err().code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn nothing_changes_under_a_configuration_that_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("state");
        let key = PrivateKey::generate().unwrap().public().unwrap();
        write_private(&here.join("openclaw.json"), b"{ approvals: { requireSigned: 'yes' } }").unwrap();
        let add = ApproversCommand::Add { name: "ann".to_owned(), key };
        assert_eq!(answer(Some(here.clone()), add).unwrap_err().code, ErrorCode::ConfigInvalid);
        assert!(fs::symlink_metadata(here.join("node")).is_err());
    }
}
