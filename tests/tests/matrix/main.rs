//! The failure matrix: what becomes of a session when a part of the system fails. It is written to
//! `docs/failure-matrix.md`, and compared with it.
//!
//! `UPDATE_MATRIX=1 cargo test -p e2e --test matrix` writes the file anew. `MATRIX_ONLY='gateway kill'` plays a part of
//! it, and prints that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod cell;
mod long;
mod partition;
mod stage;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use e2e::pattern;
use parking_lot::Mutex;

use cell::{Cell, Row};

/// Cells at one time. Each has its own gateway and node host.
const WORKERS: usize = 4;

#[test]
fn every_fault_in_every_part_and_mode() {
    let only = std::env::var("MATRIX_ONLY").unwrap_or_default();
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.to_string().contains(&only)).collect();
    let written = Arc::new(pattern(stage::BYTES));
    let rows = Mutex::new(Vec::new());
    let failed = Mutex::new(Vec::new());
    let queue = Mutex::new(cells.iter().copied());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(cell) = next(&queue) {
                    match catch_unwind(AssertUnwindSafe(|| cell.run(&written))) {
                        Ok(row) => rows.lock().push(row),
                        Err(_) => failed.lock().push(cell.to_string()),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "these cells failed, see above: {failed:#?}");
    let mut rows: Vec<Row> = rows.into_inner();
    rows.sort_by_key(|row| cells.iter().position(|cell| *cell == row.cell));
    if only.is_empty() {
        table::compare(&rows);
    } else {
        print!("{}", table::render(&rows));
    }
}

/// Not held while the cell runs.
fn next(queue: &Mutex<impl Iterator<Item = Cell>>) -> Option<Cell> {
    queue.lock().next()
}
