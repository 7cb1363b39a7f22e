//! Says `ready`, then takes no notice of SIGTERM and SIGINT.

use std::io::Write as _;

use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    writeln!(std::io::stdout(), "ready")?;
    std::io::stdout().flush()?;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}
