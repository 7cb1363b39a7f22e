//! Twenty floods on one node, each with a reader; one of the readers stops. What the others get, and how long a short
//! question takes beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use config::StateDir;
use gateway::cli::client::Connection;
use proto::v1 as pb;
use proto::v1::client_frame::Frame;
use proto::v1::session_event::Event;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::agent::Agent;
use super::row;
use crate::bed::{Bed, NODE, Tools};
use crate::measure::Sides;
use crate::report::Row;
use crate::stats::{Summary, mb_per_s, ms};
use crate::targets::{
    CONTROL_POLL, CONTROL_POLL_MAX, CONTROL_POLL_WITHOUT, CONTROL_STATUS, CONTROL_STATUS_MAX,
    CONTROL_STATUS_WITHOUT, Metric, STOPPED_ALL, STOPPED_LEAST, STOPPED_SHARE, UNSTOPPED_ALL,
    UNSTOPPED_LEAST,
};

const READERS: usize = 19;
const FLOOD: &str = "exec yes";
const IDLE: &str = "exec sleep 600";
/// Between two questions.
const PING: Duration = Duration::from_millis(20);
/// For the readers to find their pace.
const SETTLE: Duration = Duration::from_millis(500);
/// Frames that a reader sends.
const FRAMES_MAX: usize = 2;

/// What was seen in the turns of one kind.
#[derive(Debug, Default)]
struct Seen {
    /// MB/s of all readers together.
    all: Vec<f64>,
    /// MB/s of the slowest one.
    least: Vec<f64>,
    /// Milliseconds of each `Status`.
    status: Vec<f64>,
    /// Milliseconds of each poll of an idle session.
    polls: Vec<f64>,
}

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let state = StateDir::resolve(Some(bed.gateway_dir()), None, None)?;
    let (turns, lasts) = sides.scale.pick((5, Duration::from_secs(4)), (1, Duration::from_secs(1)));
    let [without, with] = bed.run(measured(bed.tools(), state, turns, lasts))?;

    let max = |samples: &[f64]| Summary::of(samples).map_or(f64::NAN, |summary| summary.max);
    let tail = |metric, samples: &[f64]| {
        let note = format!("the longest of {}; {:.1} ms without", samples.len(), max(&without.status));
        row(metric, vec![max(samples)], note)
    };
    let pings = |metric: Metric, samples: &[f64]| {
        row(
            metric,
            samples.to_vec(),
            format!("every 20 ms on a connection of its own, at most {:.1} ms", max(samples)),
        )
    };
    let share = with.all.iter().zip(&without.all).map(|(with, without)| with / without * 100.0).collect();
    Ok(vec![
        row(UNSTOPPED_ALL, without.all.clone(), format!("{READERS} readers and 20 writers, {turns} turns")),
        row(STOPPED_ALL, with.all.clone(), "the 20th reader is there and stopped"),
        row(STOPPED_SHARE, share, "of each pair of turns"),
        row(UNSTOPPED_LEAST, without.least.clone(), "the slowest of the 19"),
        row(STOPPED_LEAST, with.least.clone(), ""),
        pings(CONTROL_STATUS_WITHOUT, &without.status),
        pings(CONTROL_STATUS, &with.status),
        pings(CONTROL_POLL_WITHOUT, &without.polls),
        pings(CONTROL_POLL, &with.polls),
        tail(CONTROL_STATUS_MAX, &with.status),
        tail(CONTROL_POLL_MAX, &with.polls),
    ])
}

async fn measured(tools: Tools, state: StateDir, turns: usize, lasts: Duration) -> anyhow::Result<[Seen; 2]> {
    let mut agent = Agent::new(tools.clone());
    let idle = agent.start(IDLE, &[]).await?;
    let mut floods = Vec::new();
    for _ in 0..=READERS {
        floods.push(agent.start(FLOOD, &[]).await?);
    }
    let last = floods.pop().context("a session")?;
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..READERS).map(|_| AtomicU64::new(0)).collect());
    let mut readers = tokio::task::JoinSet::new();
    for (number, session) in floods.into_iter().enumerate() {
        let (tools, counts) = (tools.clone(), Arc::clone(&counts));
        readers.spawn(async move { read(attach(tools, &session).await?, &counts[number]).await });
    }
    let mut seen = [Seen::default(), Seen::default()];
    for _ in 0..turns {
        turn(&mut seen[0], &state, &idle, &counts, lasts).await?;
        // Reads its first bytes, then nothing more.
        let mut stopped = attach(tools.clone(), &last).await?;
        while !matches!(event(&mut stopped.events).await?, Event::Output(_)) {}
        turn(&mut seen[1], &state, &idle, &counts, lasts).await?;
    }
    if let Some(ended) = readers.try_join_next() {
        let reason = ended?;
        bail!("a reader ended early: {reason:?}");
    }
    Ok(seen)
}

/// What is read in a while, and how long questions take meanwhile.
async fn turn(
    seen: &mut Seen,
    state: &StateDir,
    idle: &str,
    counts: &[AtomicU64],
    lasts: Duration,
) -> anyhow::Result<()> {
    tokio::time::sleep(SETTLE).await;
    let read = || counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let over = Arc::new(AtomicBool::new(false));
    let pinger = {
        let (state, idle, over) = (state.clone(), idle.to_owned(), Arc::clone(&over));
        std::thread::spawn(move || ping(&state, &idle, &over))
    };
    let (before, begun) = (read(), Instant::now());
    tokio::time::sleep(lasts).await;
    let (after, took) = (read(), begun.elapsed());
    over.store(true, Ordering::Relaxed);
    let pings = tokio::task::spawn_blocking(move || pinger.join()).await?;
    let (status, polls) = pings.ok().context("the questions failed")??;
    let rates: Vec<f64> =
        after.iter().zip(&before).map(|(after, before)| mb_per_s(after - before, took)).collect();
    seen.all.push(rates.iter().sum());
    seen.least.push(rates.iter().copied().fold(f64::INFINITY, f64::min));
    seen.status.extend(status);
    seen.polls.extend(polls);
    Ok(())
}

/// Asks on a thread and a connection of its own, so that the readers' work here is no part of the answer's time.
fn ping(state: &StateDir, idle: &str, over: &AtomicBool) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = Connection::local(state).await?;
        let (mut operator, mut agent) = (connection.operator(), Agent::new(connection.tools()));
        let (mut status, mut polls) = (Vec::new(), Vec::new());
        let mut clock = tokio::time::interval(PING);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !over.load(Ordering::Relaxed) {
            clock.tick().await;
            let begun = Instant::now();
            operator.status(pb::StatusRequest::default()).await?;
            status.push(ms(begun.elapsed()));
            let begun = Instant::now();
            agent.process("poll", idle, &[]).await?;
            polls.push(ms(begun.elapsed()));
        }
        Ok((status, polls))
    })
}

/// A reader. It is there as long as both parts are.
struct Attached {
    _frames: mpsc::Sender<pb::ClientFrame>,
    events: Streaming<pb::SessionEvent>,
}

async fn attach(mut tools: Tools, session: &str) -> anyhow::Result<Attached> {
    let (frames, receiver) = mpsc::channel(FRAMES_MAX);
    let attach = pb::AttachRequest {
        session: session.to_owned(),
        node: NODE.to_owned(),
        on_close: pb::OnClose::Keep.into(),
        ..pb::AttachRequest::default()
    };
    frames.send(pb::ClientFrame { frame: Some(Frame::Attach(attach)) }).await?;
    let events = tools.interact(ReceiverStream::new(receiver)).await?.into_inner();
    Ok(Attached { _frames: frames, events })
}

/// Counts what comes, for ever.
async fn read(mut attached: Attached, count: &AtomicU64) -> anyhow::Result<()> {
    loop {
        match event(&mut attached.events).await? {
            Event::Output(output) => {
                let bytes: usize = output.records.iter().map(|record| record.data.len()).sum();
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Event::Exit(exit) => bail!("a flood ended: {exit:?}"),
            // A flood is faster than its readers, and nobody waits for them.
            Event::Gap(_) => {}
            other => ensure!(matches!(other, Event::Started(_) | Event::InputProgress(_)), "{other:?}"),
        }
    }
}

async fn event(events: &mut Streaming<pb::SessionEvent>) -> anyhow::Result<Event> {
    let event = events.message().await?.context("the stream ended")?;
    event.event.context("an event of an unknown kind")
}
