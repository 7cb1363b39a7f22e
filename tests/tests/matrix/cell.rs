//! One cell: one fault in one part while a command of one mode writes.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::fault_matrix::{Checker, Difference, Reader, ReaderEnd};
use e2e::{Ended, Sig};

use crate::stage::{BYTES, CODE, Stage, stopped};
use crate::table::Seen;

/// How long a reader may take to its end; the command alone takes two and a half seconds.
const TO_THE_END: Duration = Duration::from_secs(90);
/// Exit code of `gateway` where nobody saw the end.
const UNKNOWN: Ended = Ended::Code(74);

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    Client,
    Gateway,
    Link,
    NodeHost,
    Holder,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    Stop,
    Cut,
    Stall,
}

/// How the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Foreground,
    Background,
    Pty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) component: Component,
    pub(crate) fault: Fault,
    pub(crate) mode: Mode,
}

/// What happened in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) seen: Seen,
    pub(crate) difference: Difference,
    /// How often the command ran.
    pub(crate) ran: usize,
    /// From the fault to the next byte, or to the end where there is none.
    pub(crate) took: Duration,
}

impl Cell {
    pub(crate) fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for component in
            [Component::Client, Component::Gateway, Component::Link, Component::NodeHost, Component::Holder]
        {
            for fault in [Fault::Kill, Fault::Stop, Fault::Cut, Fault::Stall] {
                for mode in [Mode::Foreground, Mode::Background, Mode::Pty] {
                    cells.push(Self { component, fault, mode });
                }
            }
        }
        cells
    }

    /// A process without a way of its own to the node cannot be cut off from it.
    fn is_as_stop(self) -> bool {
        self.fault == Fault::Stall && matches!(self.component, Component::Client | Component::Holder)
    }

    /// Plays it.
    pub(crate) fn run(self, written: &Arc<Vec<u8>>) -> Row {
        if self.is_as_stop() {
            return Row {
                cell: self,
                seen: Seen::AsStop,
                difference: Difference::default(),
                ran: 1,
                took: Duration::ZERO,
            };
        }
        let began = Instant::now();
        let mut stage = Stage::new();
        let mut reader = Reader::start(stage.start(self.mode), Checker::new(Arc::clone(written)));
        reader.wait_received(BYTES / 3);
        reader.mark();
        let broken = Instant::now();
        let (seen, end, took) = match (self.component, self.fault, self.mode) {
            (Component::Client, Fault::Kill | Fault::Cut, mode) => {
                let signal = if self.fault == Fault::Kill { Sig::Kill } else { Sig::Term };
                reader.signal(signal);
                let end = reader.finish(TO_THE_END);
                if mode == Mode::Background {
                    let silence = broken.elapsed();
                    let next = Reader::start(stage.attach(end.checker.received()), end.checker);
                    let end = next.finish(TO_THE_END);
                    let took = silence.max(end.silence);
                    (whole(&end, Some(Seen::ReadOn)), end, took)
                } else {
                    stage.wait_gone();
                    (ended_with_caller(&stage, &end, written), end, broken.elapsed())
                }
            }
            (Component::Holder, Fault::Kill | Fault::Cut, _) => {
                stage.break_holder(self.fault);
                let end = reader.finish(TO_THE_END);
                let took = broken.elapsed();
                stage.wait_gone();
                (ended_with_holder(&stage, &end, written), end, took)
            }
            _ => {
                match self.component {
                    Component::Client => stopped(|signal| reader.signal(signal)),
                    Component::Gateway => stage.break_gateway(self.fault),
                    Component::Link => stage.break_link(self.fault),
                    Component::NodeHost => stage.break_node(self.fault),
                    Component::Holder => stage.break_holder(self.fault),
                }
                let end = reader.finish(TO_THE_END);
                let took = end.silence;
                (whole(&end, None), end, took)
            }
        };
        stage.wait_gone();
        let (ran, difference) = (stage.runs(), end.checker.difference());
        assert_eq!((ran, difference), (1, Difference::default()), "{}", end.stderr);
        let session = stage.session();
        assert_eq!(session["exit"]["exitReason"], seen.exit_reason(), "{session}");
        println!("{self}: {seen:?}, {took:?} of {:?}", began.elapsed());
        Row { cell: self, seen, difference, ran, took }
    }
}

/// All output, then the exit of the command: how the reader got there.
#[track_caller]
fn whole(end: &ReaderEnd, known: Option<Seen>) -> Seen {
    let received = end.checker.received();
    assert_eq!(end.ended, Ended::Code(CODE), "after {received} bytes: {}", end.stderr);
    assert!(end.checker.is_whole(), "{received} of {BYTES}, {:?}", end.checker.difference());
    known.unwrap_or(match &end.stderr {
        said if said.contains("the gateway went away") => Seen::GatewayAway,
        said if said.contains("the node is back") => Seen::NodeAway,
        said if said.is_empty() => Seen::Pause,
        said => panic!("the reader said something else: {said}"),
    })
}

/// The command is over because its caller is. What it wrote can still be read.
#[track_caller]
fn ended_with_caller(stage: &Stage, end: &ReaderEnd, written: &Arc<Vec<u8>>) -> Seen {
    let kept = read_again(stage, written);
    assert!(kept.checker.received() >= end.checker.received(), "less is kept than was read");
    assert_ne!(kept.ended, Ended::Code(CODE), "{}", kept.stderr);
    Seen::EndedWithCaller
}

/// The command is over because its holder is. What was kept can still be read.
#[track_caller]
fn ended_with_holder(stage: &Stage, end: &ReaderEnd, written: &Arc<Vec<u8>>) -> Seen {
    let kept = read_again(stage, written);
    assert_eq!(kept.checker.received(), end.checker.received(), "the reader got all that is kept");
    assert_eq!(kept.ended, end.ended, "{} {}", end.stderr, kept.stderr);
    if end.ended == UNKNOWN { Seen::Lost } else { Seen::EndedByHolder }
}

/// Reads a session that is over from its first byte.
#[track_caller]
fn read_again(stage: &Stage, written: &Arc<Vec<u8>>) -> ReaderEnd {
    let end = Reader::start(stage.attach(0), Checker::new(Arc::clone(written))).finish(TO_THE_END);
    assert!(end.checker.is_prefix(), "{:?}: {}", end.checker.difference(), end.stderr);
    end
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.component, self.fault, self.mode)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Gateway => "gateway",
            Self::Link => "link",
            Self::NodeHost => "node-host",
            Self::Holder => "holder",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cut => "cut",
            Self::Stall => "stall",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreground => "foreground",
            Self::Background => "background",
            Self::Pty => "pty",
        })
    }
}
