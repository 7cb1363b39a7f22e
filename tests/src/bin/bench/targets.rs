//! What is measured and what counts as good enough. The only place to change a
//! target. Bounds hold for medians of one run, so both sides met the same load.

mod sessions;

use serde::Serialize;

pub(crate) use sessions::*;

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// Times, memory.
    Lower,
    /// Rates.
    Higher,
}

/// A limit for our median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "against", content = "limit")]
pub(crate) enum Bound {
    /// A multiple of OpenSSH's median.
    OpenSsh(f64),
    /// A multiple of the local median.
    Local(f64),
    /// A value in the unit of the row.
    Value(f64),
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Metric {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Which way is good.
    pub(crate) better: Better,
    /// Worse than this is a fault.
    pub(crate) must: Option<Bound>,
    /// What we would like.
    pub(crate) aim: Option<Bound>,
}

const fn lower(name: &'static str, unit: &'static str, must: Option<Bound>, aim: Option<Bound>) -> Metric {
    Metric { name, unit, better: Better::Lower, must, aim }
}

const fn higher(name: &'static str, unit: &'static str, must: Option<Bound>, aim: Option<Bound>) -> Metric {
    Metric { name, unit, better: Better::Higher, must, aim }
}

/// Not slower, not larger than what a user would pick instead.
const AS_OPENSSH: Option<Bound> = Some(Bound::OpenSsh(1.0));
const TWICE_OPENSSH: Option<Bound> = Some(Bound::OpenSsh(2.0));
const ECHO_MUST: Option<Bound> = Some(Bound::OpenSsh(3.0));
const ECHO_AIM: Option<Bound> = Some(Bound::OpenSsh(1.5));

/// A warm call that does nothing.
pub(crate) const WARM_TRUE: Metric = lower("warm exec `true`", "ms", AS_OPENSSH, Some(Bound::Local(2.0)));
/// A warm call that prints.
pub(crate) const WARM_ECHO: Metric = lower("warm exec `echo hi`", "ms", AS_OPENSSH, Some(Bound::Local(2.0)));
/// Calls in parallel.
pub(crate) const PARALLEL: Metric = higher("32 in parallel", "calls/s", AS_OPENSSH, TWICE_OPENSSH);
/// How long one of them takes.
pub(crate) const PARALLEL_EACH: Metric = lower("32 in parallel, each", "ms", None, None);
/// A flood.
pub(crate) const STREAM: Metric = higher("1 GiB of output", "MB/s", AS_OPENSSH, TWICE_OPENSSH);
/// A terminal in raw mode, echo by the program.
pub(crate) const ECHO_RAW: Metric = lower("terminal echo, raw", "ms", ECHO_MUST, ECHO_AIM);
/// A terminal in line mode, echo by its kernel.
pub(crate) const ECHO_COOKED: Metric = lower("terminal echo, cooked", "ms", ECHO_MUST, ECHO_AIM);

const MIB: f64 = 1024.0;
const fn mib(value: f64) -> Option<Bound> {
    Some(Bound::Value(value * MIB))
}

/// A gateway with one node and nothing to do.
pub(crate) const GATEWAY_RSS: Metric = lower("gateway idle, RSS", "KiB", mib(30.0), mib(15.0));
/// The same, shared pages counted in part.
pub(crate) const GATEWAY_PSS: Metric = lower("gateway idle, PSS", "KiB", None, None);
/// A gateway that served some thousand calls.
pub(crate) const GATEWAY_USED_RSS: Metric = lower("gateway after the load, RSS", "KiB", mib(30.0), mib(15.0));
/// A node host with nothing to do.
pub(crate) const NODE_RSS: Metric = lower("node-host idle, RSS", "KiB", mib(20.0), mib(10.0));
/// The same, shared pages counted in part.
pub(crate) const NODE_PSS: Metric = lower("node-host idle, PSS", "KiB", None, None);
/// Its launcher.
pub(crate) const LAUNCHER_RSS: Metric = lower("launcher, RSS", "KiB", None, None);
/// The same, shared pages counted in part.
pub(crate) const LAUNCHER_PSS: Metric = lower("launcher, PSS", "KiB", None, None);
/// Holder of one idle session.
pub(crate) const HOLDER_RSS: Metric = lower("holder of a session, RSS", "KiB", mib(3.0), mib(1.5));
/// The same, shared pages counted in part.
pub(crate) const HOLDER_PSS: Metric = lower("holder of a session, PSS", "KiB", None, None);
/// What one more idle session adds on all sides, its command not counted.
pub(crate) const SESSION_RSS: Metric = lower("each idle session, RSS", "KiB", None, None);
/// The same, shared pages counted in part.
pub(crate) const SESSION_PSS: Metric = lower("each idle session, PSS", "KiB", None, None);
/// What one more idle node adds to the gateway.
pub(crate) const PER_NODE_RSS: Metric = lower("gateway, each idle node, RSS", "KiB", None, None);

const GATEWAY_START_MUST: Option<Bound> = Some(Bound::Value(300.0));
const GATEWAY_START_AIM: Option<Bound> = Some(Bound::Value(50.0));
const NODE_START_MUST: Option<Bound> = Some(Bound::Value(500.0));
const NODE_START_AIM: Option<Bound> = Some(Bound::Value(150.0));

/// From the start of the process to its ready line.
pub(crate) const START_GATEWAY: Metric = lower("gateway start", "ms", GATEWAY_START_MUST, GATEWAY_START_AIM);
/// With a CA to make.
pub(crate) const START_FRESH: Metric =
    lower("gateway start, fresh state", "ms", GATEWAY_START_MUST, GATEWAY_START_AIM);
/// From the start of the process to its connected line.
pub(crate) const START_NODE: Metric = lower("node-host start", "ms", NODE_START_MUST, NODE_START_AIM);

const DECIDED_MUST: Option<Bound> = Some(Bound::Value(20.0));
const LISTED_MUST: Option<Bound> = Some(Bound::Value(50.0));
const UNASKED_MUST: Option<Bound> = Some(Bound::Value(1.0));

/// From the approver's yes to the caller's `Started`.
pub(crate) const YES_PROGRAM: Metric = lower("yes to start, /bin/true", "ms", DECIDED_MUST, None);
/// From the approver's yes to the caller's `Exit`.
pub(crate) const YES_PROGRAM_EXIT: Metric = lower("yes to exit, /bin/true", "ms", None, None);
/// The same for four programs.
pub(crate) const YES_PIPELINE: Metric = lower("yes to start, 4-program pipeline", "ms", DECIDED_MUST, None);
/// The same for four programs.
pub(crate) const YES_PIPELINE_EXIT: Metric = lower("yes to exit, 4-program pipeline", "ms", None, None);
/// The same for an interpreter and its file.
pub(crate) const YES_SCRIPT: Metric = lower("yes to start, /bin/sh script.sh", "ms", DECIDED_MUST, None);
/// The same for an interpreter and its file.
pub(crate) const YES_SCRIPT_EXIT: Metric = lower("yes to exit, /bin/sh script.sh", "ms", None, None);
/// From the call to the request that a person sees.
pub(crate) const ASKED: Metric = lower("call to request, all three", "ms", None, None);
/// How long the approver waits for the answer to a yes.
pub(crate) const RESOLVED: Metric = lower("Resolve, all three", "ms", None, None);

/// `Approvals.List`.
pub(crate) const LISTED: Metric = lower("1000 open: List", "ms", LISTED_MUST, None);
/// The command line, from the start of its process to its end.
pub(crate) const LISTED_CLI: Metric = lower("1000 open: approvals pending --json", "ms", LISTED_MUST, None);
/// What the open requests take.
pub(crate) const OPEN_GATEWAY_RSS: Metric = lower("1000 open: gateway, RSS", "KiB", None, None);
/// The same on the node, which keeps the plans.
pub(crate) const OPEN_NODE_RSS: Metric = lower("1000 open: node-host, RSS", "KiB", None, None);

/// A run that is allowed, where nobody could be asked.
pub(crate) const UNASKED_NEVER: Metric = lower("allowed /bin/true, never asks", "ms", None, None);
/// The same where somebody could be.
pub(crate) const UNASKED_INLINE: Metric = lower("allowed /bin/true, could ask", "ms", None, None);
/// The same with its plan looked at first.
pub(crate) const UNASKED_PREPARED: Metric = lower("allowed /bin/true, prepared first", "ms", None, None);
/// What being able to ask adds, in pairs.
pub(crate) const ADDED_INLINE: Metric = lower("added by being able to ask", "ms", UNASKED_MUST, None);
/// What `Prepare` adds, in pairs.
pub(crate) const ADDED_PREPARED: Metric = lower("added by Prepare", "ms", UNASKED_MUST, None);
