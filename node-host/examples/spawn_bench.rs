//! Measures sessions against bare processes, both sides in turn under the same load.
//!
//! `cargo run --release -p node-host --example spawn_bench [runs]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node_host::process::{Launcher, Mode};
use node_host::sessions::{Limits, Read, Session, Sessions, StartRequest};
use portable_pty::{PtySize, native_pty_system};

fn main() {
    let launcher = Launcher::fork().unwrap();
    let runs = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let sessions = Sessions::open(dir.path().join("s"), launcher, Limits::default()).await.unwrap();
        tokio::spawn(async move { all(&sessions, runs).await }).await.unwrap();
    });
}

async fn all(sessions: &Sessions, runs: usize) {
    start_to_exit(sessions, runs).await;
    parallel(sessions, runs, 32).await;
    echo(sessions, runs).await;
    flood(sessions).await;
}

fn request(name: &str, argv: &[&str], mode: Mode) -> StartRequest {
    StartRequest {
        run_id: name.parse().unwrap(),
        input_digest: [0; 32],
        label: argv.join(" "),
        argv: argv.iter().map(ToString::to_string).collect(),
        env: std::env::vars().map(|(k, v)| (k.into_bytes(), v.into_bytes())).collect(),
        cwd: PathBuf::from("/"),
        mode,
        deadline_ms: None,
        kill_grace_ms: 300,
        bound: None,
        owner: Default::default(),
        limits: Default::default(),
        log_bytes: 0,
        answer_queries: false,
    }
}

async fn ended(session: &Session) {
    session.progress().wait_for(|p| p.exit.is_some()).await.unwrap();
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!("{what:<34} p50 {:.3} ms   p99 {:.3} ms   n {}", at(50), at(99), times.len());
}

async fn start_to_exit(sessions: &Sessions, runs: usize) {
    let (mut bare, mut held) = (Vec::new(), Vec::new());
    for n in 0..runs {
        let began = Instant::now();
        Command::new("/bin/sh").args(["-c", "true"]).current_dir("/").status().unwrap();
        bare.push(began.elapsed());
        let began = Instant::now();
        let wanted = request(&format!("t{n}"), &["/bin/sh", "-c", "true"], Mode::PIPES);
        let session = sessions.start(wanted).await.unwrap();
        ended(&session).await;
        held.push(began.elapsed());
    }
    report("sh -c true, spawn and wait", bare);
    report("sh -c true, session", held);
}

async fn parallel(sessions: &Sessions, runs: usize, width: usize) {
    let began = Instant::now();
    let mut workers = Vec::new();
    for worker in 0..width {
        let sessions = sessions.clone();
        workers.push(tokio::spawn(async move {
            for n in 0..runs / width {
                let wanted = request(&format!("p{worker}.{n}"), &["/bin/true"], Mode::PIPES);
                let session = sessions.start(wanted).await.unwrap();
                ended(&session).await;
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let done = runs / width * width;
    println!("{width} in parallel                     {:.0}/s", done as f64 / began.elapsed().as_secs_f64());
}

async fn echo(sessions: &Sessions, runs: usize) {
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut writer = pair.master.take_writer().unwrap();
    let session = sessions.start(request("echo", &["sleep", "1000"], Mode::TERMINAL)).await.unwrap();
    session.progress().wait_for(|p| p.started.is_some()).await.unwrap();
    let (mut output, mut progress) = (session.reader(0), session.progress());
    let (mut bare, mut held) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let began = Instant::now();
        writer.write_all(b"x").unwrap();
        reader.read_exact(&mut [0]).unwrap();
        bare.push(began.elapsed());
        let began = Instant::now();
        session.write_stdin(Bytes::from_static(b"x")).await.unwrap();
        loop {
            progress.borrow_and_update();
            match output.next(1 << 16).unwrap() {
                Read::Empty => progress.changed().await.unwrap(),
                Read::Data(_) => break,
                other => panic!("{other:?}"),
            }
        }
        held.push(began.elapsed());
    }
    session.kill(Duration::ZERO).await.unwrap();
    ended(&session).await;
    report("one byte echoed, bare terminal", bare);
    report("one byte echoed, session", held);
}

async fn flood(sessions: &Sessions) {
    for (name, reads) in [("into the log", false), ("into the log and read", true)] {
        let argv = ["head", "-c", "1073741824", "/dev/zero"];
        let began = Instant::now();
        let session = sessions.start(request(&format!("flood{reads}"), &argv, Mode::PIPES)).await.unwrap();
        session.progress().wait_for(|p| p.started.is_some()).await.unwrap();
        let holder = parent(session.info().pid.unwrap());
        let mut total = 0;
        let hold = reads.then(|| session.hold(0));
        if let Some(hold) = &hold {
            let (mut output, mut progress) = (session.reader(0), session.progress());
            loop {
                progress.borrow_and_update();
                match output.next(1 << 16).unwrap() {
                    Read::Empty => progress.changed().await.unwrap(),
                    Read::Data(records) => {
                        total += records.iter().map(|r| r.bytes.len()).sum::<usize>();
                        hold.advance(output.position());
                    }
                    Read::Gap { .. } => panic!("held output is never dropped"),
                    Read::End => break,
                }
            }
            assert_eq!(total, 1 << 30);
        } else {
            session.progress().wait_for(|p| p.end > 512 << 20).await.unwrap();
            println!("holder at work: {}", memory(holder));
        }
        ended(&session).await;
        println!("1 GiB {name:<28} {:.0} MB/s", (1_u64 << 30) as f64 / 1e6 / began.elapsed().as_secs_f64());
    }
    let idle = sessions.start(request("idle", &["sleep", "1000"], Mode::PIPES)).await.unwrap();
    idle.progress().wait_for(|p| p.started.is_some()).await.unwrap();
    println!("idle holder:    {}", memory(parent(idle.info().pid.unwrap())));
    idle.kill(Duration::ZERO).await.unwrap();
    ended(&idle).await;
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

fn memory(pid: i32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or("?").to_owned()
    };
    let (rss, anon, file) = (field("VmRSS"), field("RssAnon"), field("RssFile"));
    format!("resident {rss} KiB (own {anon} KiB, shared file pages {file} KiB)")
}
