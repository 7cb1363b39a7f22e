//! What agents' sessions cost: many of them at one time, a flood that nobody reads, how soon an answer comes, readers that
//! stop. Agents call the tools over the Unix socket; OpenSSH has nothing to compare them with.

mod agent;
mod answers;
mod exec;
mod flood;
mod live;
mod stopped;
mod views;

use crate::measure::Sides;
use crate::report::{Row, Samples};
use crate::targets::Metric;

/// Measures. Each part has programs of its own.
pub(crate) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    type Part = fn(Sides<'_>) -> anyhow::Result<Vec<Row>>;
    let parts: [(&str, Part); 6] = [
        ("live", live::run),
        ("flood", flood::run),
        ("answers", answers::run),
        ("views", views::run),
        ("stopped", stopped::run),
        ("exec", exec::run),
    ];
    let only = std::env::var("BENCH_SESSIONS").unwrap_or_default();
    let mut rows = Vec::new();
    for (name, part) in parts {
        if only.is_empty() || only.split(',').any(|wanted| wanted == name) {
            eprintln!("bench: sessions: {name}");
            rows.extend(part(sides)?);
        }
    }
    Ok(rows)
}

/// A row of ours alone.
fn row(metric: Metric, ours: Vec<f64>, note: impl Into<String>) -> Row {
    Row::new(metric, &Samples { ours, ..Samples::default() }, note)
}
