//! What a record costs. Run with `cargo test -p audit speed -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use super::*;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let log = Log::open(dir.path()).unwrap();
    let data = json!({
        "sessionId": "0123456789abcdef", "runId": "0123456789abcdef0123456789abcdef", "command": "git status --short",
        "cwd": "/home/ann/project", "approvalId": "0123456789abcdef",
    });
    let timed = |count: usize, write: &dyn Fn()| {
        median(
            (0..count)
                .map(|_| {
                    let begun = Instant::now();
                    write();
                    begun.elapsed()
                })
                .collect(),
        )
    };
    let append = timed(50_000, &|| log.append("run.started", data.clone()).unwrap());
    let durable = timed(500, &|| log.append_durable("approval.decided", data.clone()).unwrap());
    drop(log);
    let timed = |what: &dyn Fn()| {
        let begun = Instant::now();
        what();
        begun.elapsed()
    };
    let verified = timed(&|| drop(verify(dir.path()).unwrap()));
    let opened = timed(&|| drop(Log::open(dir.path()).unwrap()));
    let listed = timed(&|| drop(list(dir.path(), &Filter { limit: 50, ..Filter::default() }).unwrap()));
    eprintln!("append {append:?}, durable {durable:?} (medians)");
    eprintln!("50500 records: verify {verified:?}, open {opened:?}, list {listed:?}");
}
