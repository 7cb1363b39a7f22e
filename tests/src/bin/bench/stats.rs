//! Percentiles of samples. Pure; units are the caller's.

use std::time::Duration;

use serde::Serialize;

/// Fewest samples from which a p95 or p99 says anything.
const TAIL_NEEDS: usize = 20;

/// What a set of samples looks like, in the unit of its row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Samples.
    pub(crate) n: usize,
    /// Smallest.
    pub(crate) min: f64,
    /// Median, nearest rank.
    pub p50: f64,
    /// None below 20 samples.
    pub p95: Option<f64>,
    /// None below 20 samples.
    pub p99: Option<f64>,
    /// Largest.
    pub(crate) max: f64,
    /// Arithmetic mean.
    pub(crate) mean: f64,
}

impl Summary {
    /// Of at least one sample; none of none.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let tail = |percent| (sorted.len() >= TAIL_NEEDS).then(|| nearest_rank(&sorted, percent));
        Some(Self {
            n: sorted.len(),
            min,
            p50: nearest_rank(&sorted, 50),
            p95: tail(95),
            p99: tail(99),
            max,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        })
    }
}

/// The smallest value that at least `percent` of the samples do not exceed.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (percent * sorted.len()).div_ceil(100).clamp(1, sorted.len());
    sorted[rank - 1]
}

/// Milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// 10^6 bytes a second.
pub(crate) fn mb_per_s(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / elapsed.as_secs_f64() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ranks() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let expected =
            Summary { n: 100, min: 1.0, p50: 50.0, p95: Some(95.0), p99: Some(99.0), max: 100.0, mean: 50.5 };
        assert_eq!(Summary::of(&hundred), Some(expected));
        let one = Summary { n: 1, min: 7.0, p50: 7.0, p95: None, p99: None, max: 7.0, mean: 7.0 };
        assert_eq!(Summary::of(&[7.0]), Some(one));
        assert_eq!(Summary::of(&[]), None);
    }
}
