//! What a run request says, checked field by field.
//!
//! Everything here depends on the request alone, so a retry comes to the same result whatever happened to the policy
//! or the disk since. It decides nothing.

use std::collections::BTreeMap;

use fault::{ErrorCode, Fault};
use policy::inline_eval::Input;
use policy::{Requested, check_overrides};
use proto::v1 as pb;
use session::{Limits, OnDisconnect, RunId};
use sha2::{Digest as _, Sha256};

use super::command::{self, Command};
use super::invalid;
use crate::convert;
use crate::process::{Mode, Stdin};
use crate::sessions::Owner;

/// Longest id of an agent and key of its session, in bytes: lists of sessions hold them.
const NAME_MAX: usize = 512;

/// A run request whose fields are in order.
#[derive(Debug)]
pub struct Asked {
    pub(super) run_id: RunId,
    pub(super) command: Command,
    pub(super) requested: Requested,
    /// The caller's side wants a person's yes for code.
    pub(super) strict_inline_eval: bool,
    /// Variables that the caller sets.
    pub(super) overrides: Vec<(String, String)>,
    pub(super) mode: Mode,
    pub(super) deadline_ms: Option<u64>,
    /// None: an unnamed one.
    pub(super) agent: Option<String>,
    /// As given.
    pub(super) workdir: String,
    /// The caller's name of its session; may be empty.
    pub(super) session_key: String,
    /// Somebody can be asked.
    pub(super) can_ask: bool,
    /// The decision about an earlier request for this run.
    pub(super) permit: Option<Box<pb::Permit>>,
    pub(super) input_digest: [u8; 32],
    pub(super) on_disconnect: OnDisconnect,
    pub(super) limits: Limits,
    /// Bytes of output that are kept; 0: the node's own bound.
    pub(super) log_bytes: u64,
    pub(super) answer_queries: bool,
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// When a field is missing or malformed, or an override is blocked.
    pub fn read(run: &pb::RunRequest) -> Result<Self, Fault> {
        let run_id = RunId::parse(&run.run_id).map_err(|e| invalid(format!("run id: {e}")))?;
        let command = command::parse(run.invocation.as_ref())?;
        let requested = requested(run)?;
        if run.agent_id.len() > NAME_MAX || run.session_key.len() > NAME_MAX {
            return Err(invalid(format!(
                "an agent's id and its session's key have at most {NAME_MAX} bytes"
            )));
        }
        let overrides =
            check_overrides(run.env.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(|rejected| {
                Fault::new(ErrorCode::EnvRejected, format!("SYSTEM_RUN_DENIED: {rejected}"))
                    .hint("leave these variables out; the node's own values are used")
            })?;
        Ok(Self {
            run_id,
            command,
            requested,
            strict_inline_eval: run.strict_inline_eval,
            overrides,
            mode: mode(run)?,
            deadline_ms: deadline(run.deadline.as_ref())?,
            agent: (!run.agent_id.is_empty()).then(|| run.agent_id.clone()),
            workdir: run.workdir.clone(),
            session_key: run.session_key.clone(),
            can_ask: run.can_ask,
            permit: run.permit.clone().map(Box::new),
            input_digest: digest(run),
            on_disconnect: convert::on_disconnect(run.on_disconnect.as_ref())?,
            limits: limits(run.limits.as_ref()),
            log_bytes: run.limits.map(|limits| limits.log_bytes).unwrap_or_default(),
            answer_queries: run.answer_queries,
        })
    }

    /// What stands behind the command's standard input. A shell or an interpreter would run what the caller types.
    pub(super) fn input(&self) -> Input {
        match self.mode {
            Mode::Terminal { .. } | Mode::Pipes { stdin: Stdin::Open } => Input::Pipe,
            Mode::Pipes { stdin: Stdin::Null } => Input::Other,
        }
    }

    /// The caller may type into it.
    pub(super) fn takes_input(&self) -> bool {
        self.input() == Input::Pipe
    }

    /// It runs in a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.mode, Mode::Terminal { .. })
    }

    /// Whose run it is.
    pub fn owner(&self) -> Owner {
        Owner {
            agent: self.agent.clone().unwrap_or_default(),
            session_key: self.session_key.clone(),
            on_disconnect: self.on_disconnect,
        }
    }

    /// The caller's name of the run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Digest of everything that the caller chose.
    pub fn input_digest(&self) -> &[u8; 32] {
        &self.input_digest
    }
}

fn requested(run: &pb::RunRequest) -> Result<Requested, Fault> {
    let security = match run.security() {
        pb::Security::Deny => policy::Security::Deny,
        pb::Security::Allowlist => policy::Security::Allowlist,
        pb::Security::Full => policy::Security::Full,
        pb::Security::Unspecified => return Err(invalid("the request names no known security")),
    };
    let ask = match run.ask() {
        pb::Ask::Off => policy::Ask::Off,
        pb::Ask::OnMiss => policy::Ask::OnMiss,
        pb::Ask::Always => policy::Ask::Always,
        pb::Ask::Unspecified => return Err(invalid("the request names no known ask")),
    };
    Ok(Requested { security, ask })
}

fn mode(run: &pb::RunRequest) -> Result<Mode, Fault> {
    match (&run.terminal, run.stdin()) {
        (Some(size), pb::Stdin::Open) => {
            let cells = |n: u32| u16::try_from(n).ok().filter(|n| *n > 0);
            match (cells(size.columns), cells(size.rows)) {
                (Some(cols), Some(rows)) => Ok(Mode::Terminal { cols, rows }),
                _ => Err(invalid("a terminal has 1 to 65535 columns and rows")),
            }
        }
        (Some(_), _) => Err(invalid("a terminal's input is always open")),
        (None, pb::Stdin::Open) => Ok(Mode::Pipes { stdin: Stdin::Open }),
        (None, pb::Stdin::Closed) => Ok(Mode::Pipes { stdin: Stdin::Null }),
        (None, pb::Stdin::Unspecified) => Err(invalid("the request does not say what standard input is")),
    }
}

fn limits(wire: Option<&pb::Limits>) -> Limits {
    let some = |n: u64| (n > 0).then_some(n);
    wire.map_or_else(Limits::default, |wire| Limits {
        memory_bytes: some(wire.memory_bytes),
        pids: (wire.pids > 0).then_some(wire.pids),
        cpu_ms: some(wire.cpu_ms),
        file_bytes: some(wire.file_bytes),
    })
}

fn deadline(deadline: Option<&pb::Deadline>) -> Result<Option<u64>, Fault> {
    match deadline.and_then(|d| d.limit) {
        Some(pb::deadline::Limit::TimeoutMs(ms)) if ms > 0 => Ok(Some(ms)),
        Some(pb::deadline::Limit::None(true)) => Ok(None),
        Some(_) | None => Err(invalid("the request names no deadline (none is said with `none`)")),
    }
}

/// Digest of everything that the caller chose, for the receipt: the same run
/// id with other input is refused.
pub(super) fn digest(run: &pb::RunRequest) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    match run.invocation.as_ref().and_then(|i| i.form.as_ref()) {
        Some(pb::invocation::Form::Shell(text)) => {
            field(b"shell");
            field(text.as_bytes());
        }
        Some(pb::invocation::Form::Argv(argv)) => {
            field(b"argv");
            field(&(argv.words.len() as u64).to_le_bytes());
            for word in &argv.words {
                field(word.as_bytes());
            }
        }
        None => field(b"none"),
    }
    field(run.workdir.as_bytes());
    let sorted: BTreeMap<_, _> = run.env.iter().collect();
    field(&(sorted.len() as u64).to_le_bytes());
    for (key, value) in sorted {
        field(key.as_bytes());
        field(value.as_bytes());
    }
    field(&run.stdin.to_le_bytes());
    let size = run.terminal.unwrap_or_default();
    field(&size.columns.to_le_bytes());
    field(&size.rows.to_le_bytes());
    match run.deadline.as_ref().and_then(|d| d.limit) {
        Some(pb::deadline::Limit::TimeoutMs(ms)) => field(&ms.to_le_bytes()),
        Some(pb::deadline::Limit::None(_)) | None => field(b"none"),
    }
    field(run.agent_id.as_bytes());
    field(run.session_key.as_bytes());
    // What becomes of it when nobody looks after it may change with every try; what it may use may not. Without limits
    // the digest is that of earlier versions.
    if let Some(limits) = run.limits.filter(|limits| *limits != pb::Limits::default()) {
        field(b"limits");
        field(&limits.memory_bytes.to_le_bytes());
        field(&limits.pids.to_le_bytes());
        field(&limits.cpu_ms.to_le_bytes());
        field(&limits.file_bytes.to_le_bytes());
        field(&limits.log_bytes.to_le_bytes());
    }
    hash.finalize().into()
}
