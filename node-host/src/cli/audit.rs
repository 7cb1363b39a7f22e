//! `node-host audit` and `gateway audit`: what was written down, and whether all of it still stands there.
//!
//! They read files; nothing need run.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use audit::{Filter, Record, shown};
use clap::{Args, Subcommand};
use config::StateDir;
use fault::{ErrorCode, Fault};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::say;
use super::text::{one_line, parse_duration};
use crate::app::fail;

/// The arguments of `node-host audit`.
#[derive(Debug, Clone, Args)]
pub(super) struct AuditArgs {
    /// Where keys, policy and sessions lie [env: OPENCLAW_STATE_DIR] [default: ~/.openclaw].
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: AuditCommand,
}

/// The subcommands of `audit`, of either program.
#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// Show the last records, the newest at the end.
    List(ListArgs),
    /// Check that no record was changed, lost or moved.
    Verify,
}

/// The flags of `audit list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// At most so many, the newest.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only of this kind: `run.started`, or a beginning such as `approval`. May be given several times.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only of the last `90s`, `10m`, `2h`, `30d`.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Only with this text: of a command, an id, a name.
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
}

/// Does what the command line says.
pub(super) fn run(args: AuditArgs) -> ExitCode {
    let text = StateDir::from_process(args.state_dir)
        .map_err(|error| Fault::new(error.code(), error.to_string()).hint(error.hint()))
        .and_then(|state| args.command.text(&state.node_audit(), args.json));
    match text {
        Ok(text) => say(&text),
        Err(fault) => return fail(&fault),
    }
    ExitCode::SUCCESS
}

impl AuditCommand {
    /// What the command has to say about the log in `dir`; `json` in JSON, a record on a line.
    ///
    /// # Errors
    /// [`ErrorCode::AuditBroken`] names the first record that is not what it was; or the files cannot be read.
    pub fn text(&self, dir: &Path, json: bool) -> Result<String, Fault> {
        match self {
            Self::List(args) => args.text(dir, json),
            Self::Verify => verify(dir, json),
        }
    }
}

impl ListArgs {
    fn text(&self, dir: &Path, json: bool) -> Result<String, Fault> {
        let filter = Filter {
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            kinds: self.kind.clone(),
            contains: self.contains.clone().unwrap_or_default(),
            since_ms: self.since.map_or(0, |since| unix_ms(SystemTime::now().checked_sub(since))),
        };
        let records = audit::list(dir, &filter).map_err(|error| unreadable(dir, &error))?;
        if records.is_empty() && !json {
            return Ok(format!("no such record in {}\n", one_line(&dir.display().to_string())));
        }
        records.iter().map(|record| if json { json_line(record) } else { Ok(line(record)) }).collect()
    }
}

/// A record for people, on one line whatever it holds.
fn line(record: &Record) -> String {
    let Record { time, kind, .. } = record;
    format!("{}  {}  {}\n", moment(*time), one_line(kind), one_line(&shown(record)))
}

fn json_line(record: &Record) -> Result<String, Fault> {
    serde_json::to_string(record)
        .map(|text| text + "\n")
        .map_err(|error| Fault::new(ErrorCode::Internal, format!("record {}: {error}", record.seq)))
}

fn verify(dir: &Path, json: bool) -> Result<String, Fault> {
    let place = one_line(&dir.display().to_string());
    let intact = audit::verify(dir).map_err(|broken| {
        Fault::new(ErrorCode::AuditBroken, one_line(&broken.to_string())).hint(format!(
            "keep a copy of {place} as it is: what stands before that place is as it was written, what follows may not be"
        ))
    })?;
    if json {
        let audit::Verified { records, first_seq, last_seq, hash, recovered } = intact;
        let line = json!({
            "intact": true, "records": records, "firstSeq": first_seq, "lastSeq": last_seq, "hash": hash,
            "recovered": recovered,
        });
        return Ok(format!("{line}\n"));
    }
    if intact.records == 0 {
        // A log that was taken away as a whole looks the same.
        return Ok(format!("0 records, chain intact; nothing was written down in {place}\n"));
    }
    let mut text = format!(
        "{} records, chain intact, the last is {} {}\n",
        intact.records, intact.last_seq, intact.hash
    );
    if intact.recovered > 0 {
        // The chain alone does not show it: it went on from what was left.
        text += &format!(
            "starts that found its end cut, lost or changed: {}; `audit list --kind audit.recovered` says how\n",
            intact.recovered
        );
    }
    Ok(text)
}

fn unreadable(dir: &Path, error: &io::Error) -> Fault {
    Fault::new(
        ErrorCode::StateDirUnusable,
        format!("{} cannot be read: {error}", one_line(&dir.display().to_string())),
    )
    .hint("only the user of the service can read it")
}

/// Milliseconds since 1970; 0 for what is before that.
fn unix_ms(moment: Option<SystemTime>) -> i64 {
    let since = moment.and_then(|moment| moment.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A moment for people. One that no calendar has is shown as its number.
fn moment(unix_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000))
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{unix_ms} ms"))
}

#[cfg(test)]
mod tests;
