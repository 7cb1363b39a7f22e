//! Where a session stands.

use proto::v1 as pb;

use super::text;
use crate::convert;
use crate::process::holder::unix_ms;
use crate::process::{Mode, reads};
use crate::sessions::Session;

/// The longest tail, in characters.
pub(super) const TAIL_MAX: usize = 4000;

/// Without a tail.
pub(super) fn of(session: &Session) -> pb::SessionState {
    let info = session.info();
    let last_output = session.last_output_unix_ms();
    let since = last_output.unwrap_or(info.started_unix_ms);
    let until = info.exit.as_ref().map_or_else(unix_ms, |exit| exit.ended_unix_ms);
    let reads_input = match (info.pid, &info.exit) {
        (Some(pid), None) if info.stdin_open => reads::reads_input(pid),
        _ => None,
    };
    let terminal = match info.mode {
        Mode::Terminal { cols, rows } => Some(match session.terminal() {
            Some(facts) => pb::TerminalState {
                columns: facts.cols.into(),
                rows: facts.rows.into(),
                application_cursor: facts.modes.application_cursor,
                bracketed_paste: facts.modes.bracketed_paste,
                alternate_screen: facts.modes.alternate_screen,
            },
            None => pb::TerminalState { columns: cols.into(), rows: rows.into(), ..Default::default() },
        }),
        Mode::Pipes { .. } => None,
    };
    pb::SessionState {
        idle_ms: until.saturating_sub(since),
        last_output_unix_ms: last_output.map_or(0, u64::cast_signed),
        reads_input,
        terminal,
        session: Some(convert::session(&info)),
        tail: String::new(),
        tail_cut: false,
    }
}

/// With the end of its output, at most `chars` characters.
pub(super) fn with_tail(session: &Session, chars: usize) -> pb::SessionState {
    let mut state = of(session);
    if chars > 0
        && let Ok((tail, cut)) = text::tail(session, chars)
    {
        (state.tail, state.tail_cut) = (tail, cut);
    }
    state
}
