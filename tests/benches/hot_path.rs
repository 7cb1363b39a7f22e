//! The pieces that every call and every byte of output pass, each by itself,
//! and then all of them together in one warm call.
//!
//! `cargo bench -p e2e`. It does not compare with anything else; `--bin bench`
//! does. The warm call needs a release build of `gateway` and `node-host` and
//! is left out without one.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::expect_used, reason = "a benchmark stops at its first failure, as a test does")]

// The same bed as `--bin bench` has; each of the two programs uses a part.
#[allow(dead_code, unused_imports)]
#[path = "../src/bin/bench/bed.rs"]
mod bed;
#[allow(dead_code, unused_imports)]
#[path = "../src/bin/bench/procfs.rs"]
mod procfs;
#[allow(dead_code, unused_imports)]
#[path = "../src/bin/bench/program.rs"]
mod program;

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use link::{CreditWindow, Outbox};
use proto::v1 as pb;
use tokio_stream::StreamExt as _;

use crate::bed::{Bed, Binaries, call, shell};

const CHUNK: usize = 64 * 1024;

/// Frames through the two queues, one at a time: no other task is woken.
fn outbox(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut group = criterion.benchmark_group("outbox");
    let ping = pb::NodeFrame { frame: Some(pb::node_frame::Frame::Pong(pb::Pong { nonce: 1 })) };
    group.bench_function("control", |bencher| {
        let (outbox, mut stream) = Outbox::new();
        bencher.iter(|| {
            runtime.block_on(async {
                outbox.control(ping.clone()).await.expect("open");
                black_box(stream.next().await)
            })
        });
    });
    let data = Bytes::from(vec![0; CHUNK]);
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("bulk 64 KiB", |bencher| {
        let (outbox, mut stream) = Outbox::new();
        bencher.iter(|| {
            runtime.block_on(async {
                outbox.bulk(data.clone()).await.expect("open");
                black_box(stream.next().await)
            })
        });
    });
    group.finish();
}

/// The reader's side of the credit for each chunk of a fast command.
fn credit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("credit");
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("a chunk consumed", |bencher| {
        let mut window = CreditWindow::new(0, Duration::ZERO);
        let (mut offset, mut now) = (0, Duration::ZERO);
        bencher.iter(|| {
            offset += CHUNK as u64;
            now += Duration::from_micros(60);
            black_box(window.consumed(offset, now, Duration::from_micros(200)))
        });
    });
    group.finish();
}

/// What a typical agent sets.
fn environment(criterion: &mut Criterion) {
    let typical = [
        ("CI", "1"),
        ("FORCE_COLOR", "0"),
        ("GIT_AUTHOR_NAME", "Agent"),
        ("LANG", "C.UTF-8"),
        ("NODE_ENV", "test"),
        ("PAGER", "cat"),
        ("PROJECT", "farrun"),
        ("TZ", "UTC"),
    ];
    assert!(policy::check_overrides(typical).is_ok());
    criterion.bench_function("environment/8 accepted overrides", |bencher| {
        bencher.iter(|| black_box(policy::check_overrides(black_box(typical))));
    });
    let refused = [("LD_PRELOAD", "/tmp/x.so"), ("path", "/tmp"), ("CI", "1")];
    assert!(policy::check_overrides(refused).is_err());
    criterion.bench_function("environment/refused overrides", |bencher| {
        bencher.iter(|| black_box(policy::check_overrides(black_box(refused))));
    });
}

/// Client, gateway, node host, holder, shell, and all the way back.
fn warm_call(criterion: &mut Criterion) {
    identity::install_crypto_provider();
    let binaries = match Binaries::find() {
        Ok(binaries) => binaries,
        Err(error) => {
            eprintln!("warm call left out: {error:#}");
            return;
        }
    };
    let bed = Bed::start(&binaries).expect("gateway and node host start");
    criterion.bench_function("warm call/true", |bencher| {
        bencher.iter_custom(|count| {
            let mut tools = bed.tools();
            let batch = async move {
                let begun = Instant::now();
                for _ in 0..count {
                    call(&mut tools, shell("true")).await?;
                }
                Ok(begun.elapsed())
            };
            bed.run(batch).expect("all calls succeed")
        });
    });
}

criterion_group!(hot_path, outbox, credit, environment, warm_call);
criterion_main!(hot_path);
