//! A reader that stops delays nobody, and loses nothing when it goes on.

use std::time::Duration;

use e2e::{
    PATIENCE, Reading, TestBed, argv_request, block_on, eventually, follow, helper, measured, pattern,
};

#[test]
fn a_stopped_reader_of_a_flood_delays_nobody() {
    // More than a node retains: the command has to wait for its reader.
    const BYTES: usize = 80 << 20;
    let bed = TestBed::new();
    let _node = bed.node("n");
    let flood = bed.spawn_cli(["exec", "--", &helper("emit"), &BYTES.to_string()], Reading::Later);
    let endless = bed.spawn_cli(["exec", "--", "yes"], Reading::Later);
    // Both floods have run into their readers when their ends stand still.
    let ends = || -> Vec<i64> {
        let listed = bed.gateway_cli(["sessions", "--json"]).json();
        listed["sessions"].as_array().unwrap().iter().filter_map(|s| s["endOffset"].as_i64()).collect()
    };
    let mut before = Vec::new();
    eventually(PATIENCE, || {
        let now = ends();
        let still = now == before && now.len() == 2 && now.iter().all(|end| *end > 0);
        before = now;
        if still { Ok(()) } else { Err(format!("{before:?}")) }
    });
    let mut slowest = Duration::ZERO;
    block_on(async {
        let mut tools = bed.tools().await;
        for _ in 0..20 {
            let started = std::time::Instant::now();
            let events = tools.exec(argv_request("n", &["printf", "hi"])).await.unwrap().into_inner();
            assert_eq!(follow(events).await.unwrap().stdout, b"hi");
            slowest = slowest.max(started.elapsed());
        }
    });
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    println!("slowest command beside two stopped floods: {slowest:?}");

    drop(endless);
    let (outcome, took) = measured(|| flood.finish(Duration::from_secs(60)));
    outcome.ok();
    assert!(
        outcome.stdout == pattern(BYTES),
        "{} of {BYTES} bytes, or changed, in {took:?}",
        outcome.stdout.len()
    );
}
