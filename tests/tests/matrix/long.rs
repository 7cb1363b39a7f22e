//! Much output with a fault every second.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use e2e::fault_matrix::{Checker, Difference, Reader, ReaderEnd, hold};
use e2e::{Cut, Ended, FaultProxy, Node, NodeOptions, Sig, TestBed, helper, pattern};

const BYTES: usize = 256 << 20;
/// About 25 MB/s.
const PACE: &str = "--chunk 262144 --every-ms 10";
const CODE: i32 = 7;
const EVERY: Duration = Duration::from_secs(1);
/// Shorter than the time between two faults, so that each comes to something that works.
const STALL: Duration = Duration::from_millis(400);
const TO_THE_END: Duration = Duration::from_secs(180);

/// More than a log keeps (64 MiB): the caller in the foreground holds it, so the command waits for its reader. A second
/// reader is killed again and again, and reads on where it was.
#[test]
fn a_fault_every_second_costs_no_byte_of_256_mib() {
    let bed = TestBed::new();
    let proxy = FaultProxy::new(bed.address());
    let node = bed.invited("n", NodeOptions { via: Some(proxy.address()), ..NodeOptions::default() });
    node.wait_connected(1);
    let runs = bed.path("runs");
    let emit = format!("{} {BYTES} {PACE}", helper("emit"));
    let text = format!("echo started >> {}; {emit} && exit {CODE}", runs.display());
    let written = Arc::new(pattern(BYTES));

    let caller = bed.cli_command(["exec", "--run-id", "job", "--shell", "--", &text]);
    let mut caller = Reader::start(caller, Checker::new(Arc::clone(&written)));
    caller.wait_received(1);
    let mut second = Reader::start(attach(&bed, 0), Checker::new(written));
    second.wait_received(1);
    let mut parts = Parts { bed, proxy, node, second };

    let mut faults = 0;
    let kinds = [Parts::cut, Parts::restart_gateway, Parts::restart_node, Parts::stall, Parts::kill_second];
    for fault in kinds.into_iter().cycle() {
        hold(EVERY, || caller.is_over());
        if caller.is_over() {
            break;
        }
        parts = fault(parts);
        faults += 1;
    }

    for end in [caller.finish(TO_THE_END), parts.second.finish(TO_THE_END)] {
        let ReaderEnd { ended, stderr, checker, .. } = end;
        let found = (ended, checker.received(), checker.difference());
        assert_eq!(found, (Ended::Code(CODE), BYTES, Difference::default()), "{stderr}");
        assert!(checker.is_whole(), "another SHA-256");
    }
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "started\n");
    assert!(faults >= 8, "only {faults} faults: the command was too fast");
    println!("{faults} faults");
}

fn attach(bed: &TestBed, from: usize) -> Command {
    bed.cli_command(["attach", "job", "--from", &from.to_string()])
}

/// What can fail. Each fault is over when its function returns.
struct Parts {
    bed: TestBed,
    proxy: FaultProxy,
    node: Node,
    second: Reader,
}

impl Parts {
    fn cut(self) -> Self {
        self.proxy.cut(Cut::Reset);
        self
    }

    fn restart_gateway(mut self) -> Self {
        self.bed.stop_gateway(Sig::Kill);
        // The kernel resets what a dead process had open; the proxy would keep the node's half of it.
        self.proxy.cut(Cut::Reset);
        self.bed.start_gateway();
        self
    }

    fn restart_node(self) -> Self {
        self.node.stop(Sig::Kill);
        self.node.restart();
        self
    }

    fn stall(self) -> Self {
        self.proxy.stall();
        hold(STALL, || false);
        self.proxy.heal();
        self
    }

    fn kill_second(mut self) -> Self {
        self.second.signal(Sig::Kill);
        let end = self.second.finish(TO_THE_END);
        self.second = Reader::start(attach(&self.bed, end.checker.received()), end.checker);
        self
    }
}
