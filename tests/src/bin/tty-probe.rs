//! Says what it finds at its three descriptors, then every new window size, and
//! leaves with 9 on Ctrl-C.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut resized = signal(SignalKind::window_change())?;
    let (stdin, mut stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let size = || tcgetwinsize(std::io::stdout()).map(|s| format!("{}x{}", s.ws_col, s.ws_row));
    let terminals = [stdin.is_terminal(), stdout.is_terminal(), stderr.is_terminal()];
    writeln!(stdout, "tty {terminals:?} size {}", size()?)?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                writeln!(stdout, "interrupted")?;
                return Ok(ExitCode::from(9));
            }
            _ = resized.recv() => writeln!(stdout, "winch {}", size()?)?,
        }
    }
}
