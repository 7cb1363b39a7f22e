//! After much work everything is as it was.

use e2e::{PATIENCE, TestBed, argv_request, block_on, eventually, follow, proc, shell_request};
use proto::v1 as pb;

#[test]
fn two_hundred_runs_leave_nothing_behind() {
    leave_nothing_behind(200, |round| match round % 4 {
        0 => argv_request("n", &["true"]),
        1 => shell_request("n", "echo out; echo err >&2; exit 3"),
        2 => argv_request("n", &["no-such-program"]),
        _ => shell_request("n", "sleep 300 & echo left"),
    });
}

#[test]
fn sixty_terminals_leave_nothing_behind() {
    leave_nothing_behind(60, |round| {
        let request = match round % 3 {
            0 => argv_request("n", &["tty"]),
            1 => shell_request("n", "stty size; exit 3"),
            _ => shell_request("n", "sleep 300 & echo left"),
        };
        let terminal = Some(pb::WindowSize { columns: 80, rows: 24 });
        pb::ExecRequest { stdin: pb::Stdin::Open.into(), terminal, ..request }
    });
}

fn leave_nothing_behind(rounds: usize, request: impl Fn(usize) -> pb::ExecRequest) {
    let bed = TestBed::new();
    let node = bed.node("n");
    let launcher = node.launcher().pid;
    let watched = [("gateway", bed.gateway().pid()), ("node-host", node.pid()), ("launcher", launcher)];
    let runs = |count: usize| {
        block_on(async {
            let mut tools = bed.tools().await;
            for round in 0..count {
                let events = tools.exec(request(round)).await.unwrap().into_inner();
                assert!(follow(events).await.unwrap().exit.is_some(), "round {round}");
            }
        });
    };
    // The first ones open what stays open.
    runs(8);
    let holders = || {
        let below = proc::descendants(launcher);
        // One spare waits for the next command.
        below.into_iter().filter(|p| p.name != "farrun-hold").collect::<Vec<_>>()
    };
    let count_holders = || proc::descendants(launcher).len();
    let settled = |wanted: Option<(Vec<usize>, usize)>| {
        let mut before = (Vec::new(), usize::MAX);
        eventually(PATIENCE, || {
            let now = (watched.map(|(_, pid)| proc::descriptors(pid)).to_vec(), count_holders());
            let good = match &wanted {
                Some((fds, holders)) => {
                    now.0.iter().zip(fds).all(|(now, then)| now <= then) && now.1 <= *holders
                }
                None => now == before,
            };
            before = now;
            if good {
                Ok(before.clone())
            } else {
                Err(format!("{before:?}, wanted {wanted:?} of {watched:?}"))
            }
        })
    };
    let start = settled(None);
    runs(rounds);
    settled(Some(start));
    assert_eq!(holders(), [], "only holders are below the launcher");
    let zombies: Vec<_> =
        watched.iter().flat_map(|(_, pid)| proc::descendants(*pid)).filter(|p| p.state == 'Z').collect();
    assert_eq!(zombies, [], "zombies");
}
