//! Launcher, holders and sessions with real processes.
//!
//! The launcher must be forked while the process has one thread, so this test brings its own small runner.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bed;
mod cases;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    if let Some(code) = node_host::starter::intercept() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == bed::HOST_MODE) {
        bed::host(std::path::Path::new(&args[1]));
    }
    let wanted = |name: &str| {
        let filters: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let mut bed = bed::Bed::new();
    let began = Instant::now();
    let all = cases::all();
    let count = all.len();
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| wanted(name)).collect();
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed) = (0, 0);
    let filtered = count - chosen.len();
    for (name, case) in chosen {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&mut bed)));
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word}");
        if outcome.is_ok() { passed += 1 } else { failed += 1 }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {filtered} filtered out; \
         finished in {:.2}s\n",
        began.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
