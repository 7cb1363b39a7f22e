//! A wire that is pulled: packets go nowhere and nobody is told.

use std::sync::Arc;
use std::time::Duration;

use e2e::fault_matrix::{Checker, Difference, Partitioned, Reader, hold};
use e2e::{Ended, helper, pattern};

const BYTES: usize = 8 << 20;
/// About twelve seconds, so that the command writes for as long as the wire is out.
const PACE: &str = "--chunk 65536 --every-ms 100";
const OUT: Duration = Duration::from_secs(10);
const TO_THE_END: Duration = Duration::from_secs(90);

#[test]
fn a_wire_that_is_out_for_ten_seconds_costs_no_byte() {
    let parts = match Partitioned::new() {
        Ok(parts) => parts,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let bed = parts.bed();
    let runs = bed.path("runs");
    let emit = format!("echo started >> {}; {} {BYTES} {PACE}", runs.display(), helper("emit"));
    let written = Arc::new(pattern(BYTES));

    let foreground = bed.cli_command(["exec", "--shell", "--", &emit]);
    let mut foreground = Reader::start(foreground, Checker::new(Arc::clone(&written)));
    bed.exec(["--detach", "--run-id", "job", "--shell", "--", &emit]).ok();
    let mut background = Reader::start(bed.cli_command(["attach", "job"]), Checker::new(written));
    for reader in [&mut foreground, &mut background] {
        reader.wait_received(BYTES / 8);
    }

    parts.pull();
    hold(OUT, || false);
    let read = [foreground.received(), background.received()];
    assert!(read.iter().all(|read| *read < BYTES / 2), "the wire was not out: {read:?}");
    parts.plug();

    for end in [foreground.finish(TO_THE_END), background.finish(TO_THE_END)] {
        let found = (end.ended, end.checker.received(), end.checker.difference());
        assert_eq!(found, (Ended::Code(0), BYTES, Difference::default()), "{}", end.stderr);
        assert!(end.checker.is_whole(), "another SHA-256");
    }
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "started\n".repeat(2));
}
