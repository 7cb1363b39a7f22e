//! `stamp [--after-ms MS]`: for each line on stdin, waits, writes the time (CLOCK_MONOTONIC, in nanoseconds) as a line and
//! flushes it. Who gets the line knows how old it is.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use clap::Parser;
use rustix::time::{ClockId, clock_gettime};

#[derive(Parser)]
struct Args {
    /// Time for the reader to begin to wait.
    #[arg(long, default_value_t = 0)]
    after_ms: u64,
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        line?;
        std::thread::sleep(Duration::from_millis(args.after_ms));
        let now = clock_gettime(ClockId::Monotonic);
        // One write, so that no reader sees half of the number.
        stdout.write_all(format!("{}{:09}\n", now.tv_sec, now.tv_nsec).as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}
