//! Rows, the table for people and the JSON for tools.
#![allow(clippy::print_stdout)]

use serde::Serialize;

use crate::stats::Summary;
use crate::targets::{Better, Bound, Metric};

/// Samples of the sides, in the unit of the metric. Empty: not measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// Gateway and node host.
    pub(crate) ours: Vec<f64>,
    /// The opponent.
    pub(crate) openssh: Vec<f64>,
    /// The same job without a network.
    pub(crate) local: Vec<f64>,
}

/// How our median compares with the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The aim is met, or the must where there is no aim.
    Aim,
    /// The must is met, the aim is not.
    Must,
    /// The must is not met.
    Missed,
    /// The side that it is compared with was not measured.
    Unknown,
    /// There is no target.
    None,
}

/// One result.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    #[serde(flatten)]
    metric: Metric,
    ours: Option<Summary>,
    openssh: Option<Summary>,
    local: Option<Summary>,
    ratio_to_openssh: Option<f64>,
    ratio_to_local: Option<f64>,
    verdict: Verdict,
    note: String,
}

impl Row {
    /// Judges samples.
    pub(crate) fn new(metric: Metric, samples: &Samples, note: impl Into<String>) -> Self {
        let (ours, openssh, local) =
            (Summary::of(&samples.ours), Summary::of(&samples.openssh), Summary::of(&samples.local));
        let ratio = |other: &Option<Summary>| Some(ours.as_ref()?.p50 / other.as_ref()?.p50);
        let (ratio_to_openssh, ratio_to_local) = (ratio(&openssh), ratio(&local));
        let met = |bound: Bound| {
            let (value, limit) = match bound {
                Bound::OpenSsh(limit) => (ratio_to_openssh?, limit),
                Bound::Local(limit) => (ratio_to_local?, limit),
                Bound::Value(limit) => (ours.as_ref()?.p50, limit),
            };
            Some(match metric.better {
                Better::Lower => value <= limit,
                Better::Higher => value >= limit,
            })
        };
        let verdict = verdict(metric.must.map(met), metric.aim.map(met));
        Self { metric, ours, openssh, local, ratio_to_openssh, ratio_to_local, verdict, note: note.into() }
    }

    /// For a value that was read once.
    pub(crate) fn value(metric: Metric, ours: f64, note: impl Into<String>) -> Self {
        Self::new(metric, &Samples { ours: vec![ours], ..Samples::default() }, note)
    }

    fn cells(&self) -> [String; 12] {
        let p50 = |side: &Option<Summary>| number(side.as_ref().map(|s| s.p50));
        let tail = |pick: fn(&Summary) -> Option<f64>| number(self.ours.as_ref().and_then(pick));
        [
            self.metric.name.to_owned(),
            self.metric.unit.to_owned(),
            p50(&self.ours),
            tail(|s| s.p95),
            tail(|s| s.p99),
            p50(&self.openssh),
            p50(&self.local),
            number(self.ratio_to_openssh),
            number(self.ratio_to_local),
            bound(self.metric.better, self.metric.must),
            bound(self.metric.better, self.metric.aim),
            self.verdict.word().to_owned(),
        ]
    }
}

/// A bound is absent, unknown, met or not.
fn verdict(must: Option<Option<bool>>, aim: Option<Option<bool>>) -> Verdict {
    match (must, aim) {
        (None, None) => Verdict::None,
        (Some(Some(false)), _) => Verdict::Missed,
        (Some(None), _) | (None, Some(None)) => Verdict::Unknown,
        (_, Some(Some(true))) | (Some(Some(true)), None) => Verdict::Aim,
        (_, Some(_)) => Verdict::Must,
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Aim => "yes",
            Self::Must => "must only",
            Self::Missed => "NO",
            Self::Unknown => "?",
            Self::None => "",
        }
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

fn bound(better: Better, bound: Option<Bound>) -> String {
    let sign = match better {
        Better::Lower => "<=",
        Better::Higher => ">=",
    };
    match bound {
        None => String::new(),
        Some(Bound::OpenSsh(limit)) => format!("{sign} {limit} ssh"),
        Some(Bound::Local(limit)) => format!("{sign} {limit} local"),
        Some(Bound::Value(limit)) => format!("{sign} {limit}"),
    }
}

const HEAD: [&str; 12] =
    ["metric", "unit", "ours p50", "p95", "p99", "OpenSSH", "local", "/ssh", "/local", "must", "aim", "met?"];

/// Prints all rows to stdout, then their notes.
pub(crate) fn print(rows: &[Row]) {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    for line in &lines {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            // Words to the left, numbers to the right.
            0 | 1 | 9.. => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        println!("  {}: {}", row.metric.name, row.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{PARALLEL, WARM_TRUE};

    #[test]
    fn verdicts() {
        let row = |metric, ours: f64, openssh: &[f64], local: f64| {
            Row::new(metric, &Samples { ours: vec![ours], openssh: openssh.to_vec(), local: vec![local] }, "")
                .verdict
        };
        // Lower is better: at most OpenSSH, at best twice local.
        assert_eq!(row(WARM_TRUE, 1.5, &[2.8], 0.8), Verdict::Aim);
        assert_eq!(row(WARM_TRUE, 2.0, &[2.8], 0.8), Verdict::Must);
        assert_eq!(row(WARM_TRUE, 3.0, &[2.8], 0.8), Verdict::Missed);
        assert_eq!(row(WARM_TRUE, 3.0, &[], 0.8), Verdict::Unknown);
        // Higher is better: at least OpenSSH, at best twice that.
        assert_eq!(row(PARALLEL, 1330.0, &[660.0], 2400.0), Verdict::Aim);
        assert_eq!(row(PARALLEL, 700.0, &[660.0], 2400.0), Verdict::Must);
        assert_eq!(row(PARALLEL, 600.0, &[660.0], 2400.0), Verdict::Missed);
    }

    #[test]
    fn texts() {
        let table = [(None, ""), (Some(0.1234), "0.123"), (Some(12.34), "12.3"), (Some(1234.5), "1234")];
        for (value, text) in table {
            assert_eq!(number(value), text);
        }
        assert_eq!(bound(Better::Higher, Some(Bound::Local(0.5))), ">= 0.5 local");
    }
}
