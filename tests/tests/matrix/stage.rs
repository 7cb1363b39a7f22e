//! What a cell of the matrix plays on: a gateway, a fault proxy, a node host, and a command that writes a pattern.

use std::process::Command;
use std::time::Duration;

use e2e::fault_matrix::hold;
use e2e::proc::Process;
use e2e::{Cut, FaultProxy, Node, NodeOptions, Sig, TestBed, eventually, helper, proc};
use serde_json::Value;

use crate::cell::{Fault, Mode};

/// What the command writes, in about two and a half seconds.
pub(crate) const BYTES: usize = 8 << 20;
const CHUNK: &str = "65536";
const EVERY_MS: &str = "20";
/// How it ends.
pub(crate) const CODE: i32 = 7;
/// How long something is stopped or stalled.
const WHILE: Duration = Duration::from_secs(2);
/// How long connections are refused: long enough for the pauses between attempts to grow.
const REFUSED: Duration = Duration::from_secs(3);
/// How long a process may live after the end of its session.
const AFTERMATH: Duration = Duration::from_secs(2);

/// All that takes part.
pub(crate) struct Stage {
    pub(crate) bed: TestBed,
    proxy: FaultProxy,
    node: Node,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let bed = TestBed::new();
        let proxy = FaultProxy::new(bed.address());
        let node = bed.invited("n", NodeOptions { via: Some(proxy.address()), ..NodeOptions::default() });
        node.wait_connected(1);
        Self { bed, proxy, node }
    }

    /// Starts the command, and what reads it from its first byte.
    pub(crate) fn start(&self, mode: Mode) -> Command {
        let runs = self.bed.path("runs");
        let emit = format!("{} {BYTES} --chunk {CHUNK} --every-ms {EVERY_MS}", helper("emit"));
        let text = format!("echo started >> {}; {emit} && exit {CODE}", runs.display());
        // The terminal must not change the bytes.
        let raw = format!("stty raw -echo; {text}");
        let mark = self.mark();
        let common = ["--run-id", "job", "--env", &mark, "--shell", "--"];
        match mode {
            Mode::Foreground => {
                self.bed.cli_command(["exec"].into_iter().chain(common).chain([text.as_str()]))
            }
            Mode::Background => {
                self.bed.exec(["--detach"].into_iter().chain(common).chain([text.as_str()])).ok();
                self.attach(0)
            }
            Mode::Pty => {
                let pty = ["exec", "--pty"].into_iter().chain(common);
                self.bed.cli_command(pty.chain([raw.as_str()]))
            }
        }
    }

    /// A variable of the command and of all that it starts, and of nothing else.
    fn mark(&self) -> String {
        format!("MATRIX_STAGE={}", self.bed.path("").display())
    }

    /// The processes of the command.
    fn command(&self) -> Vec<Process> {
        proc::with_environment(&self.mark())
    }

    /// Reads on from this byte.
    pub(crate) fn attach(&self, from: usize) -> Command {
        self.bed.cli_command(["attach", "job", "--from", &from.to_string()])
    }

    /// How often the command ran.
    pub(crate) fn runs(&self) -> usize {
        std::fs::read_to_string(self.bed.path("runs")).unwrap_or_default().lines().count()
    }

    /// The session as the list shows it.
    pub(crate) fn session(&self) -> Value {
        let listed = self.bed.gateway_cli(["sessions", "--json"]).json();
        listed["sessions"].as_array().unwrap().iter().find(|s| s["runId"] == "job").unwrap().clone()
    }

    /// Waits until nothing of the command is left.
    #[track_caller]
    pub(crate) fn wait_gone(&self) {
        eventually(AFTERMATH, || {
            let left = self.command();
            if left.is_empty() { Ok(()) } else { Err(format!("the command is left: {left:?}")) }
        });
    }

    pub(crate) fn break_gateway(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => {
                self.bed.stop_gateway(Sig::Kill);
                // The kernel resets what a dead process had open; the proxy would keep the node's half of it.
                self.proxy.cut(Cut::Reset);
                self.bed.start_gateway();
            }
            Fault::Cut => {
                self.bed.stop_gateway(Sig::Term);
                self.bed.start_gateway();
            }
            Fault::Stop => stopped(|signal| self.bed.gateway().signal(signal)),
            Fault::Stall => self.stall(),
        }
    }

    pub(crate) fn break_link(&self, fault: Fault) {
        match fault {
            Fault::Kill => self.proxy.cut(Cut::Reset),
            Fault::Cut => self.proxy.cut(Cut::Close),
            Fault::Stop => {
                self.proxy.block();
                hold(REFUSED, || false);
                self.proxy.heal();
            }
            Fault::Stall => {
                self.proxy.stall();
                self.node.wait_log("no link to the gateway");
                self.proxy.heal();
            }
        }
    }

    pub(crate) fn break_node(&self, fault: Fault) {
        match fault {
            Fault::Kill => {
                self.node.stop(Sig::Kill);
                self.node.restart();
            }
            Fault::Cut => {
                self.node.stop(Sig::Term);
                self.node.restart();
            }
            Fault::Stop => stopped(|signal| self.node.signal(signal)),
            Fault::Stall => self.stall(),
        }
    }

    pub(crate) fn break_holder(&self, fault: Fault) {
        let holder = self.holder();
        match fault {
            Fault::Kill => send(holder, Sig::Kill),
            Fault::Cut => send(holder, Sig::Term),
            Fault::Stop | Fault::Stall => stopped(|signal| send(holder, signal)),
        }
    }

    /// Shorter than what makes an end give the link up.
    fn stall(&self) {
        self.proxy.stall();
        hold(WHILE, || false);
        self.proxy.heal();
    }

    /// The process that holds the session: the nearest one of its name above the command.
    fn holder(&self) -> u32 {
        let mut process = self.command().into_iter().next().expect("a command that runs");
        while process.name != "farrun-hold" {
            process = proc::of(process.parent).unwrap();
        }
        process.pid
    }
}

/// SIGSTOP for a while.
pub(crate) fn stopped(signal: impl Fn(Sig)) {
    signal(Sig::Stop);
    hold(WHILE, || false);
    signal(Sig::Cont);
}

fn send(pid: u32, signal: Sig) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal.into()).unwrap();
}
