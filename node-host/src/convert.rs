//! Sessions as the wire shows them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use fault::{ErrorCode, Fault};
use proto::v1 as pb;
use session::{Death, Ended, Exit, LimitHit, LimitKind, OnDisconnect, StartFailure, StreamTag};

use crate::process::Mode;
use crate::sessions::{Record, SessionInfo};

/// An end, as a message.
pub(crate) fn exit(exit: &Exit) -> pb::Exit {
    use pb::exit::How;
    let died = |death: &Death| match death {
        Death::Code(code) => How::Code(i32::from(*code)),
        Death::Signal(signal) => How::Signal(*signal),
        Death::Unreaped => How::Unreaped(pb::Unreaped {}),
    };
    let (how, timed_out, note) = match &exit.ended {
        Ended::Died(death) => (died(death), false, String::new()),
        Ended::TimedOut { then } => (died(then), true, String::new()),
        Ended::CouldNotStart { kind, errno, detail } => {
            use pb::could_not_start::Kind;
            let kind = match kind {
                StartFailure::NotFound => Kind::NotFound,
                StartFailure::NotExecutable => Kind::NotExecutable,
                StartFailure::Workdir => Kind::Workdir,
                StartFailure::Changed => Kind::Changed,
                StartFailure::TooLong | StartFailure::Terminal | StartFailure::Other => Kind::Other,
            };
            let failure = pb::CouldNotStart { kind: kind.into(), errno: *errno, detail: detail.clone() };
            (How::CouldNotStart(failure), false, String::new())
        }
        Ended::LogFailed { detail, then } => (
            died(then),
            false,
            format!("the output log could not be written, so the command was killed: {detail}"),
        ),
        Ended::LimitHit { then, .. } => (died(then), false, String::new()),
        Ended::Lost => (How::Lost(pb::Lost {}), false, String::new()),
    };
    pb::Exit {
        how: Some(how),
        timed_out,
        cancelled: exit.cancelled,
        final_offset: exit.final_offset.0,
        leftovers_killed: exit.leftovers_killed,
        started_unix_ms: exit.started_unix_ms.cast_signed(),
        ended_unix_ms: exit.ended_unix_ms.cast_signed(),
        duration_ms: exit.duration_ms,
        note,
        limit: match &exit.ended {
            Ended::LimitHit { hit, .. } => Some(limit_hit(hit)),
            _ => None,
        },
    }
}

fn limit_hit(hit: &LimitHit) -> pb::LimitHit {
    use pb::limit_hit::Kind;
    let kind = match hit.kind {
        LimitKind::Memory => Kind::Memory,
        LimitKind::Pids => Kind::Pids,
        LimitKind::Cpu => Kind::Cpu,
        LimitKind::FileSize => Kind::FileSize,
    };
    pb::LimitHit { kind: kind.into(), allowed: hit.allowed, used: hit.used }
}

/// Sessions that are listed in full. With more, texts are cut, so that the longest list is far below the 4 MiB of a
/// frame.
const FULL_LIST_MAX: usize = 400;
/// The longest text in a long list, in characters.
const LISTED_TEXT_MAX: usize = 64;

/// A list of sessions, as messages of one frame.
pub(crate) fn sessions(list: &[SessionInfo]) -> Vec<pb::SessionInfo> {
    let mut messages: Vec<_> = list.iter().map(session).collect();
    fit_in_a_frame(messages.iter_mut());
    messages
}

/// Cuts the texts of a long list.
pub(crate) fn fit_in_a_frame<'a>(messages: impl Iterator<Item = &'a mut pb::SessionInfo>) {
    let messages: Vec<_> = messages.collect();
    if messages.len() > FULL_LIST_MAX {
        for message in messages {
            cut(&mut message.label);
            cut(&mut message.workdir);
            cut(&mut message.session_key);
            if let Some(pb::Exit { how, note, .. }) = &mut message.exit {
                cut(note);
                if let Some(pb::exit::How::CouldNotStart(failure)) = how {
                    cut(&mut failure.detail);
                }
            }
        }
    }
}

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(LISTED_TEXT_MAX) {
        text.replace_range(at.., "…");
    }
}

/// A session, as a message.
pub(crate) fn session(info: &SessionInfo) -> pb::SessionInfo {
    pb::SessionInfo {
        session_id: info.id.to_string(),
        run_id: info.run_id.to_string(),
        label: info.label.clone(),
        started_unix_ms: info.started_unix_ms.cast_signed(),
        pid: info.pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default(),
        terminal: matches!(info.mode, Mode::Terminal { .. }),
        stdin_open: info.stdin_open,
        end_offset: info.end_offset.0,
        exit: info.exit.as_deref().map(exit),
        node_id: String::new(),
        node_name: String::new(),
        answers_queries: info.answers_queries,
        workdir: info.workdir.clone(),
        agent_id: info.owner.agent.clone(),
        session_key: info.owner.session_key.clone(),
        lease: Some(pb::Lease {
            on_disconnect: Some(on_disconnect_to_wire(info.owner.on_disconnect)),
            held: info.held,
            ends_unix_ms: info.ends_unix_ms.map_or(0, u64::cast_signed),
        }),
        limits: (!info.limits.is_none()).then(|| pb::Limits {
            memory_bytes: info.limits.memory_bytes.unwrap_or_default(),
            pids: info.limits.pids.unwrap_or_default(),
            cpu_ms: info.limits.cpu_ms.unwrap_or_default(),
            file_bytes: info.limits.file_bytes.unwrap_or_default(),
            log_bytes: 0,
        }),
    }
}

/// A policy, as a message.
pub fn on_disconnect_to_wire(policy: OnDisconnect) -> pb::OnDisconnect {
    use pb::on_disconnect::Policy;
    let policy = match policy {
        OnDisconnect::Keep => Policy::Keep(true),
        OnDisconnect::Kill => Policy::Kill(true),
        OnDisconnect::KeepFor(ms) => Policy::KeepForMs(ms),
    };
    pb::OnDisconnect { policy: Some(policy) }
}

/// A policy of a message; one that is not there keeps.
///
/// # Errors
/// An unknown one, or a time that is out of bounds.
pub(crate) fn on_disconnect(wire: Option<&pb::OnDisconnect>) -> Result<OnDisconnect, Fault> {
    use pb::on_disconnect::Policy;
    let Some(wire) = wire else { return Ok(OnDisconnect::Keep) };
    match wire.policy {
        Some(Policy::Keep(true)) => Ok(OnDisconnect::Keep),
        Some(Policy::Kill(true)) => Ok(OnDisconnect::Kill),
        Some(Policy::KeepForMs(ms)) => OnDisconnect::keep_for(ms)
            .ok_or_else(|| Fault::new(ErrorCode::InvalidRequest, "keep-for takes 1 s to 30 days")),
        Some(Policy::Keep(false) | Policy::Kill(false)) | None => {
            Err(Fault::new(ErrorCode::InvalidRequest, "the request names no known policy for a disconnect"))
        }
    }
}

/// A piece of output, as a message.
pub(crate) fn record(record: Record) -> pb::Record {
    pb::Record {
        offset: record.offset,
        stream: match record.stream {
            StreamTag::Stdout => pb::Stream::Stdout,
            StreamTag::Stderr => pb::Stream::Stderr,
        }
        .into(),
        time_ns: record.time_ns,
        data: record.bytes,
    }
}

/// Text of the system that may not be UTF-8.
pub(crate) fn text(value: &OsStr) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
