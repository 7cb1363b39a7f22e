//! Measures gateway and node host beside OpenSSH and a local spawn, all in one
//! run and in turns, so that every side meets the same load.
//!
//! It owns the run: what is measured, the warnings, the table, the JSON. It
//! builds nothing; build the release first.

mod approvals;
mod bed;
mod measure;
mod mux;
mod procfs;
mod program;
mod report;
mod sessions;
mod sshd;
mod stats;
mod targets;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::{Parser, ValueEnum as _};
use serde_json::json;

use crate::bed::Binaries;
use crate::measure::{Measurement, Scale, Sides};
use crate::sshd::Sshd;

/// Busier than this before the run, and the figures are doubtful.
const BUSY_SHARE: f64 = 0.1;
const BUSY_WINDOW: Duration = Duration::from_secs(2);

/// Measures gateway and node host beside OpenSSH and a local spawn.
///
/// Needs a release build of both programs beside it (cargo build --release -p
/// gateway -p node-host) and, for the other side, OpenSSH's server and client.
/// Exit codes: 0 everything was measured, whatever the figures; 1 something
/// could not be measured; 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "bench", version, about, max_term_width = 100)]
struct Cli {
    /// Few samples: shows that it works, not how fast.
    #[arg(long)]
    quick: bool,
    /// Only these.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Write all figures there.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    identity::install_crypto_provider();
    let binaries = Binaries::find()?;
    let load_before = procfs::load_average();
    let mut warnings = warnings(&load_before);
    let ssh = Sshd::start().map_err(|error| warnings.push(format!("no OpenSSH side: {error:#}"))).ok();
    for warning in &warnings {
        eprintln!("bench: warning: {warning}");
    }

    let scale = if cli.quick { Scale::Quick } else { Scale::Full };
    let sides = Sides { binaries: &binaries, ssh: ssh.as_ref(), scale };
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for measurement in Measurement::value_variants() {
        if !cli.only.is_empty() && !cli.only.contains(measurement) {
            continue;
        }
        let name = format!("{measurement:?}").to_lowercase();
        eprintln!("bench: {name} (load {})", procfs::load_average());
        match measurement.run(sides) {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                eprintln!("bench: {name} failed: {error:#}");
                failures.push(json!({ "measurement": name, "error": format!("{error:#}") }));
            }
        }
    }
    report::print(&rows);
    if let Some(path) = &cli.json {
        let document = json!({
            "version": 1,
            "atUnixMs": SystemTime::UNIX_EPOCH.elapsed()?.as_millis() as u64,
            "machine": procfs::machine(),
            "load": { "before": load_before, "after": procfs::load_average() },
            "quick": cli.quick,
            "openssh": ssh.as_ref().map(|ssh| &ssh.facts),
            "warnings": warnings,
            "rows": rows,
            "failures": failures,
        });
        let text = serde_json::to_string_pretty(&document)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What makes the figures doubtful.
fn warnings(load: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if cfg!(debug_assertions) {
        warnings.push("this is a debug build; use `cargo run --release -p e2e --bin bench`".to_owned());
    }
    let last_minute: f64 = load.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0.0);
    let busy = procfs::busy_share(BUSY_WINDOW);
    if busy > BUSY_SHARE || last_minute > procfs::cores() as f64 / 2.0 {
        warnings.push(format!("the machine is busy ({:.0} % of its cores, load {load})", busy * 100.0));
    }
    warnings
}
