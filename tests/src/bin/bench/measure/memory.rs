//! Resident memory of programs that have nothing to do, and what one more
//! session or node adds. No other gateway or node host may run beside them: they
//! would share pages and make the PSS look small.

use std::collections::HashSet;
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use proto::v1 as pb;
use proto::v1::session_event::Event;
use rustix::process::Signal;

use super::Sides;
use crate::bed::{Bed, NODE, NODE_READY, READY_WITHIN, call, shell};
use crate::mux;
use crate::procfs::{Memory, Process};
use crate::program::Program;
use crate::report::{Row, Samples};
use crate::sshd::Sshd;
use crate::targets::{
    GATEWAY_PSS, GATEWAY_RSS, GATEWAY_USED_RSS, HOLDER_PSS, HOLDER_RSS, LAUNCHER_PSS, LAUNCHER_RSS, NODE_PSS,
    NODE_RSS, PER_NODE_RSS, SESSION_PSS, SESSION_RSS,
};

const SESSIONS: u32 = 20;
const NODES: u32 = 10;
/// What an idle session runs.
const COMMAND: &str = "exec sleep 600";
/// A state that is waited for comes within this time.
const WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
/// Readings in a row that must be equal before a program counts as idle.
const EQUAL_READINGS: usize = 5;

pub(super) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let bed = Bed::start(sides.binaries)?;
    let gateway = settled(|| bed.gateway().memory());
    let node = settled(|| bed.node().memory());
    let launcher = bed.node().descendants().first().copied().context("node-host has no launcher")?;
    let launched = settled(|| launcher.memory());

    let (first, _) = idle_sessions(&bed, 1)?;
    let command = first.iter().next().copied().context("the session has a process")?;
    let holder =
        Process::of(command).and_then(Process::parent).and_then(Process::of).context("it has a holder")?;
    ensure!(holder.parent() == Some(launcher.pid), "the holder is not the launcher's child");
    let held = settled(|| holder.memory());

    let before = settled(|| all_but(&bed, &first));
    let (commands, sessions) = idle_sessions(&bed, SESSIONS)?;
    let per_session = settled(|| all_but(&bed, &commands)).growth_each(before, SESSIONS);
    end_sessions(&bed, &sessions)?;
    let per_node = per_node(&bed)?;
    let calls = sides.scale.pick(2000, 50);
    let used = used(&bed, calls)?;
    drop(bed);

    let (ssh, shared) = match sides.ssh {
        Some(ssh) => (Some(over_own_connections(ssh)?), Some(over_one_connection(ssh)?)),
        None => (None, None),
    };
    let pair = |metric, ours: f64, openssh: Option<f64>, note: &str| {
        let samples = Samples { ours: vec![ours], openssh: openssh.into_iter().collect(), local: Vec::new() };
        Row::new(metric, &samples, note)
    };
    let sharing = shared.map_or_else(String::new, |m| {
        format!(
            "OpenSSH: a connection each; on one shared connection it is {:.0} KiB RSS, {:.0} KiB PSS",
            m.rss, m.pss
        )
    });
    Ok(vec![
        Row::value(GATEWAY_RSS, gateway.rss, ""),
        Row::value(GATEWAY_PSS, gateway.pss, ""),
        Row::value(GATEWAY_USED_RSS, used.rss, format!("after {calls} calls")),
        Row::value(NODE_RSS, node.rss, ""),
        Row::value(NODE_PSS, node.pss, ""),
        Row::value(LAUNCHER_RSS, launched.rss, ""),
        Row::value(LAUNCHER_PSS, launched.pss, ""),
        Row::value(HOLDER_RSS, held.rss, ""),
        Row::value(HOLDER_PSS, held.pss, ""),
        pair(SESSION_RSS, per_session.rss, ssh.map(|m| m.rss), &sharing),
        pair(
            SESSION_PSS,
            per_session.pss,
            ssh.map(|m| m.pss),
            "gateway, node-host, launcher and holders together",
        ),
        Row::value(PER_NODE_RSS, per_node.rss, format!("growth by {NODES} nodes")),
    ])
}

/// Everything of ours but the commands.
fn all_but(bed: &Bed, commands: &HashSet<u32>) -> Memory {
    let below = bed.node().descendants();
    let ours = below.into_iter().filter(|process| !commands.contains(&process.pid));
    Memory::sum(ours.chain([bed.gateway(), bed.node()]))
}

/// Starts sessions that nobody follows; yields the processes of the commands
/// of all sessions there are, and the sessions.
fn idle_sessions(bed: &Bed, count: u32) -> anyhow::Result<(HashSet<u32>, Vec<String>)> {
    let mut tools = bed.tools();
    bed.run(async move {
        for _ in 0..count {
            let request = pb::ExecRequest { on_close: pb::OnClose::Keep.into(), ..shell(COMMAND) };
            let mut events = tools.exec(request).await?.into_inner();
            match events.message().await?.and_then(|event| event.event) {
                Some(Event::Started(_)) => {}
                other => bail!("a session did not start: {other:?}"),
            }
        }
        let deadline = Instant::now() + WITHIN;
        loop {
            let sessions =
                tools.list_sessions(pb::ListRequest { node: NODE.to_owned() }).await?.into_inner().sessions;
            if sessions.iter().all(|session| session.pid != 0) {
                ensure!(sessions.iter().all(|session| session.exit.is_none()), "an idle session ended");
                let commands = sessions.iter().map(|session| session.pid).collect();
                return Ok((commands, sessions.into_iter().map(|session| session.session_id).collect()));
            }
            ensure!(Instant::now() < deadline, "a session has no process");
            tokio::time::sleep(POLL).await;
        }
    })
}

fn end_sessions(bed: &Bed, sessions: &[String]) -> anyhow::Result<()> {
    let (mut tools, sessions) = (bed.tools(), sessions.to_vec());
    bed.run(async move {
        for session in sessions {
            let request =
                pb::KillSessionRequest { before_start: false, session, node: NODE.to_owned(), grace_ms: 0 };
            tools.kill(request).await?;
        }
        let deadline = Instant::now() + WITHIN;
        loop {
            let reply = tools.list_sessions(pb::ListRequest { node: NODE.to_owned() }).await?.into_inner();
            if reply.sessions.iter().all(|session| session.exit.is_some()) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "a killed session did not end");
            tokio::time::sleep(POLL).await;
        }
    })
}

/// The gateway when it has worked.
fn used(bed: &Bed, calls: usize) -> anyhow::Result<Memory> {
    let mut tools = bed.tools();
    bed.run(async move {
        for _ in 0..calls {
            call(&mut tools, shell("echo hi")).await?;
        }
        Ok(())
    })?;
    Ok(settled(|| bed.gateway().memory()))
}

/// What one more idle node adds to the gateway.
fn per_node(bed: &Bed) -> anyhow::Result<Memory> {
    let before = settled(|| bed.gateway().memory());
    let start = |index: u32| {
        let name = format!("idle-{index}");
        let link = bed.invite(&name)?;
        let node = bed.binaries.start_node(&bed.scratch().join(&name), Some(&link))?;
        node.line(NODE_READY, READY_WITHIN)?;
        Ok(node)
    };
    let _nodes = (0..NODES).map(start).collect::<anyhow::Result<Vec<Program>>>()?;
    Ok(settled(|| bed.gateway().memory()).growth_each(before, NODES))
}

/// What one more idle session adds to the server, each on a connection of its
/// own as for separate clients.
fn over_own_connections(ssh: &Sshd) -> anyhow::Result<Memory> {
    let before = settled(|| servers(ssh));
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(ssh.client().args(["h", COMMAND]).stdout(Stdio::null()).spawn()?);
    }
    let growth = started(ssh).map(|()| settled(|| servers(ssh)).growth_each(before, SESSIONS));
    end_commands(ssh);
    for client in &mut clients {
        crate::program::stop(client);
    }
    growth
}

/// The same over a connection that is there.
fn over_one_connection(ssh: &Sshd) -> anyhow::Result<Memory> {
    let before = settled(|| servers(ssh));
    let null = ssh.null.as_fd();
    let open = |_| mux::Session::open(ssh.control(0), COMMAND, [null; 3]);
    let sessions = (0..SESSIONS).map(open).collect::<anyhow::Result<Vec<_>>>();
    let growth = started(ssh).map(|()| settled(|| servers(ssh)).growth_each(before, SESSIONS));
    end_commands(ssh);
    // A command that a signal ended has no exit code for the master to report:
    // it closes the session instead.
    sessions?;
    growth
}

/// Waits until all commands run.
fn started(ssh: &Sshd) -> anyhow::Result<()> {
    let deadline = Instant::now() + WITHIN;
    while commands(ssh).len() < SESSIONS as usize {
        ensure!(Instant::now() < deadline, "OpenSSH did not start {SESSIONS} sessions");
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// They would outlive their connections.
fn end_commands(ssh: &Sshd) {
    for process in commands(ssh) {
        process.signal(Signal::TERM);
    }
}

fn commands(ssh: &Sshd) -> Vec<Process> {
    ssh.process().descendants().into_iter().filter(|process| process.comm() == "sleep").collect()
}

fn servers(ssh: &Sshd) -> Memory {
    let below = ssh.process().descendants().into_iter().filter(|process| process.comm().starts_with("sshd"));
    Memory::sum(below.chain([ssh.process()]))
}

/// Reads until nothing changes any more, for a bounded time.
fn settled(read: impl Fn() -> Memory) -> Memory {
    let deadline = Instant::now() + WITHIN;
    let (mut last, mut equal) = (read(), 1);
    while equal < EQUAL_READINGS && Instant::now() < deadline {
        std::thread::sleep(POLL);
        let now = read();
        equal = if now.rss == last.rss { equal + 1 } else { 1 };
        last = now;
    }
    last
}
