//! Sessions as the wire shows them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use proto::v1 as pb;
use session::{Death, Ended, Exit, StartFailure, StreamTag};

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
    }
}

/// Sessions that are listed in full. With more, texts are cut, so that the longest list is far below the 4 MiB of a
/// frame.
const FULL_LIST_MAX: usize = 400;
/// The longest text in a long list, in characters.
const LISTED_TEXT_MAX: usize = 64;

/// A list of sessions, as messages of one frame.
pub(crate) fn sessions(list: &[SessionInfo]) -> Vec<pb::SessionInfo> {
    let mut messages: Vec<_> = list.iter().map(session).collect();
    if messages.len() > FULL_LIST_MAX {
        for message in &mut messages {
            cut(&mut message.label);
            if let Some(pb::Exit { how, note, .. }) = &mut message.exit {
                cut(note);
                if let Some(pb::exit::How::CouldNotStart(failure)) = how {
                    cut(&mut failure.detail);
                }
            }
        }
    }
    messages
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
