//! `emit BYTES [--stderr BYTES] [--chunk BYTES --every-ms MS]`: a known pattern
//! on stdout (and on stderr), at once or in paced chunks.

use std::io::Write as _;
use std::time::Duration;

use clap::Parser;

#[derive(Parser)]
struct Args {
    stdout: usize,
    #[arg(long, default_value_t = 0)]
    stderr: usize,
    #[arg(long, default_value_t = 65536)]
    chunk: usize,
    #[arg(long, default_value_t = 0)]
    every_ms: u64,
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let (out, err) = (e2e::pattern(args.stdout), e2e::pattern(args.stderr));
    let mut stderr = err.chunks(args.chunk);
    for piece in out.chunks(args.chunk) {
        std::io::stdout().write_all(piece)?;
        std::io::stdout().flush()?;
        if let Some(piece) = stderr.next() {
            std::io::stderr().write_all(piece)?;
        }
        if args.every_ms > 0 {
            std::thread::sleep(Duration::from_millis(args.every_ms));
        }
    }
    for piece in stderr {
        std::io::stderr().write_all(piece)?;
    }
    Ok(())
}
