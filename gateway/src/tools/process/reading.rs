//! What is read of a session: `poll`, `wait`, `log`, `search`, `screen` (runtime.md §2.3, §2.4).

use std::sync::atomic::Ordering;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, read_text::Fired, view_reply::View as Shown, view_request::View as Wanted};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::args::Args;
use super::super::ended::{self, Ended, omitted};
use super::super::{Answer, locate};
use super::{Target, facts, invalid};

/// Output of one poll, in characters (§1.11).
const POLL_CHARS: usize = 30_000;
/// Text of one page.
const LOG_CHARS: usize = 30_000;
/// The longest wait of `poll` (§2.3).
const POLL_MAX: Duration = Duration::from_secs(30);
/// Wait of a `wait` that names none, and the longest.
const WAIT: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// A node waits this long at most; more is asked for again.
const STEP: Duration = Duration::from_secs(25);
/// Advice on when to poll again, by polls in a row that found nothing (§2.3), in milliseconds.
const RETRY_MS: [u64; 4] = [5000, 10_000, 30_000, 60_000];
/// Bytes of a raw page.
const RAW_BYTES: u64 = 64 * 1024;

/// What is new since the last poll, perhaps after waiting for it.
pub(super) async fn poll(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let timeout = args.number("timeout")?.map_or(0.0, |ms| ms.clamp(0.0, POLL_MAX.as_millis() as f64));
    let offset = args.whole("offset")?;
    args.finish()?;
    let wait = pb::Wait { timeout_ms: timeout as u64, bytes: 1, ..pb::Wait::default() };
    look(target, offset, wait, Duration::from_millis(timeout as u64), Verb::Poll).await
}

/// What is new when something has happened: the end, a pattern, silence, a program that reads, so many bytes.
pub(super) async fn wait(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let timeout = args.whole("timeout")?.map_or(WAIT, Duration::from_millis).min(WAIT_MAX);
    let offset = args.whole("offset")?;
    let wait = pb::Wait {
        timeout_ms: 0,
        pattern: args.text("pattern")?.unwrap_or_default().to_owned(),
        ignore_case: args.flag("ignoreCase")?.unwrap_or(false),
        idle_ms: args.whole("idleMs")?.unwrap_or_default(),
        reads_input: args.flag("input")?.unwrap_or(false),
        bytes: args.whole("bytes")?.unwrap_or_default(),
    };
    // The end of the session ends every wait; asking for nothing else is asking for that.
    args.flag("exit")?;
    args.finish()?;
    look(target, offset, wait, timeout, Verb::Wait).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Poll,
    Wait,
}

async fn look(
    target: &Target<'_>,
    offset: Option<u64>,
    wait: pb::Wait,
    timeout: Duration,
    verb: Verb,
) -> Result<Answer, Fault> {
    let node = target.found.node.to_hex();
    // Whoever names an offset reads for itself: what the agent has seen stays as it is.
    let from = offset.unwrap_or_else(|| target.gateway.tasks.cursor(&node, target.id()));
    let until = Instant::now() + timeout;
    let (state, text) = loop {
        let left = until.saturating_duration_since(Instant::now());
        let step = u64::try_from(left.min(STEP).as_millis()).unwrap_or_default();
        let wanted = pb::ReadView {
            from_offset: from,
            to_offset: 0,
            wait: Some(pb::Wait { timeout_ms: step, ..wait.clone() }),
        };
        let read = locate::read(target.gateway, &target.call.agent, &target.found, POLL_CHARS, wanted);
        let (state, text) = tokio::select! {
            read = read => read?,
            () = target.call.events.closed() => {
                return Err(Fault::new(ErrorCode::Cancelled, "the call was cancelled; the session goes on"));
            }
        };
        if text.fired() != Fired::Timeout || until <= Instant::now() {
            break (state, text);
        }
    };
    let over = state.session.as_ref().and_then(|session| session.exit.clone());
    // One who is gone has read nothing: the next poll has it again.
    if offset.is_none() && !target.call.events.is_closed() {
        if text.next_offset > from {
            target.gateway.tasks.set_cursor(&node, target.id(), text.next_offset)?;
        }
        if over.is_some() {
            target.gateway.tasks.end_was_read(&node, target.id());
        }
    }
    let new = text.next_offset > from;
    let memory = target.gateway.tools.memory(&target.call.agent, &target.found);
    let empties = if new || over.is_some() {
        memory.empty_polls.store(0, Ordering::Relaxed);
        0
    } else {
        memory.empty_polls.fetch_add(1, Ordering::Relaxed) as usize
    };
    let mut details = match &over {
        Some(exit) => {
            let ended = Ended::of(exit, None);
            let mut details = ended::details(&state, exit, &ended);
            // Stopped because somebody here asked for it, and confirmed: that is no failure (§2.3).
            if exit.cancelled && !exit.timed_out {
                details.insert("status".into(), "completed".into());
                details.remove("failureKind");
            }
            details
        }
        None => {
            let mut details = Map::new();
            details.insert("status".into(), "running".into());
            details.insert("sessionId".into(), target.id().into());
            facts::input(&state, &mut details);
            if verb == Verb::Poll {
                let retry = RETRY_MS.get(empties).or(RETRY_MS.last()).copied();
                details
                    .insert("retryInMs".into(), if new { RETRY_MS.first().copied() } else { retry }.into());
            }
            details
        }
    };
    named(&state, &mut details);
    // As it is, so that pieces can be put together again.
    details.insert("aggregated".into(), text.text.clone().into());
    details.insert("offset".into(), from.into());
    details.insert("nextOffset".into(), text.next_offset.into());
    details.insert("omitted".into(), omitted(&text.omitted));
    if verb == Verb::Wait {
        details.insert("reason".into(), fired(text.fired()).into());
        if text.fired() == Fired::Pattern {
            details.insert(
                "match".into(),
                json!({ "text": text.matched, "from": text.matched_from, "to": text.matched_to }),
            );
        }
    }
    let body = text.text.trim_end_matches('\n');
    let mut out = if body.is_empty() { "(no new output)".to_owned() } else { body.to_owned() };
    match &over {
        Some(exit) => {
            out.push_str("\n\n");
            out.push_str(&end_line(exit));
        }
        None => {
            out.push_str("\n\nProcess still running.");
            out.push_str(&facts::hint(&state));
        }
    }
    Ok(Answer::new(out, Value::Object(details)))
}

fn end_line(exit: &pb::Exit) -> String {
    let ended = Ended::of(exit, None);
    if exit.cancelled && !exit.timed_out {
        return "Process was stopped by request.".to_owned();
    }
    let line = match (ended.code, ended.signal) {
        (Some(code), _) => format!("Process exited with code {code}."),
        (None, Some(signal)) => format!("Process exited with signal {signal}."),
        (None, None) => "Process exited in an unknown way.".to_owned(),
    };
    if ended.failure.is_some() { format!("{line}\n{}", ended.line) } else { line }
}

fn fired(fired: Fired) -> &'static str {
    match fired {
        Fired::Exit => "exit",
        Fired::Pattern => "pattern",
        Fired::Idle => "idle",
        Fired::ReadsInput => "input",
        Fired::Bytes => "bytes",
        Fired::Timeout | Fired::Unspecified => "timeout",
    }
}

fn named(state: &pb::SessionState, details: &mut Map<String, Value>) {
    let session = state.session.clone().unwrap_or_default();
    details.insert("name".into(), session::label::name(&session.label).into());
    details.insert("nodeId".into(), session.node_id.into());
    details.insert("node".into(), session.node_name.into());
}

/// Where it stands, as the details of a page begin.
fn standing(target: &Target<'_>, state: &pb::SessionState) -> Map<String, Value> {
    let mut details = match state.session.as_ref().and_then(|session| session.exit.as_ref()) {
        Some(exit) => ended::details(state, exit, &Ended::of(exit, None)),
        None => {
            let mut details = Map::new();
            details.insert("status".into(), "running".into());
            facts::input(state, &mut details);
            details
        }
    };
    details.insert("sessionId".into(), target.id().into());
    named(state, &mut details);
    details
}

/// Lines (§2.4), or a range of bytes: `from`, `to`, and `raw` for the bytes as they are.
pub(super) async fn log(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let (offset, limit) = (args.whole("offset")?, args.whole("limit")?);
    let (from, to) = (args.whole("from")?, args.whole("to")?);
    let raw = args.flag("raw")?.unwrap_or(false);
    let max = args
        .whole("maxChars")?
        .map_or(LOG_CHARS, |chars| usize::try_from(chars).unwrap_or(LOG_CHARS).clamp(100, 200_000));
    args.finish()?;
    if raw || from.is_some() || to.is_some() {
        if offset.is_some() || limit.is_some() {
            return Err(invalid(
                "`offset` and `limit` count lines, `from` and `to` count bytes: use one pair",
            ));
        }
        return range(target, from.unwrap_or_default(), to, raw, max).await;
    }
    let wanted = pb::LogView { line: offset, limit };
    let (state, page) =
        match locate::view(target.gateway, &target.call.agent, &target.found, max, Wanted::Log(wanted))
            .await?
        {
            (state, Shown::Log(page)) => (state, page),
            _ => return Err(locate::unexpected()),
        };
    let mut details = standing(target, &state);
    let truncated = page.lines < page.total_lines || !page.omitted.is_empty();
    details.insert("output".into(), page.text.clone().into());
    details.insert("total".into(), page.total_lines.into());
    details.insert("totalLines".into(), page.total_lines.into());
    details.insert("totalChars".into(), page.total_chars.into());
    details.insert("truncated".into(), truncated.into());
    details.insert("firstLine".into(), page.first_line.into());
    details.insert("lines".into(), page.lines.into());
    details.insert("from".into(), page.from_offset.into());
    details.insert("to".into(), page.to_offset.into());
    details.insert("omitted".into(), omitted(&page.omitted));
    let mut text = if page.text.is_empty() { "(no output)".to_owned() } else { page.text };
    if offset.is_none() && limit.is_none() && page.lines < page.total_lines {
        text.push_str(&format!(
            "\n\n[showing the last {} of {} lines; page with offset and limit, or search]",
            page.lines, page.total_lines
        ));
    }
    text.push_str(&facts::hint(&state));
    Ok(Answer::new(text, Value::Object(details)))
}

async fn range(
    target: &Target<'_>,
    from: u64,
    to: Option<u64>,
    raw: bool,
    max: usize,
) -> Result<Answer, Fault> {
    if to.is_some_and(|to| to < from) {
        return Err(invalid("`to` lies before `from`"));
    }
    if raw {
        let wanted = to.map_or(RAW_BYTES, |to| (to - from).min(RAW_BYTES));
        let view = Wanted::Raw(pb::RawView {
            from_offset: from,
            max_bytes: u32::try_from(wanted.max(1)).unwrap_or(u32::MAX),
        });
        let (state, bytes) =
            match locate::view(target.gateway, &target.call.agent, &target.found, 1, view).await? {
                (state, Shown::Raw(bytes)) => (state, bytes),
                _ => return Err(locate::unexpected()),
            };
        let data: Vec<u8> = bytes.records.iter().flat_map(|record| record.data.iter().copied()).collect();
        let mut details = standing(target, &state);
        use base64::Engine as _;
        details.insert("base64".into(), base64::engine::general_purpose::STANDARD.encode(&data).into());
        details.insert("from".into(), from.into());
        details.insert("to".into(), bytes.next_offset.into());
        details.insert("omitted".into(), omitted(&bytes.omitted));
        return Ok(Answer::new(
            format!("{} bytes, offsets {from} to {}, in details.base64.", data.len(), bytes.next_offset),
            Value::Object(details),
        ));
    }
    let wanted = pb::ReadView { from_offset: from, to_offset: to.unwrap_or_default(), wait: None };
    let (state, page) = locate::read(target.gateway, &target.call.agent, &target.found, max, wanted).await?;
    let mut details = standing(target, &state);
    details.insert("output".into(), page.text.clone().into());
    details.insert("totalChars".into(), page.chars.into());
    details.insert("truncated".into(), (!page.omitted.is_empty()).into());
    details.insert("from".into(), from.into());
    details.insert("to".into(), page.next_offset.into());
    details.insert("omitted".into(), omitted(&page.omitted));
    let text = if page.text.is_empty() { "(no output)".to_owned() } else { page.text };
    Ok(Answer::new(text, Value::Object(details)))
}

/// Lines that hold a pattern.
pub(super) async fn search(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let number = |n: Option<u64>| n.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let around = args.whole("context")?;
    let wanted = pb::SearchView {
        pattern: args.text("pattern")?.unwrap_or_default().to_owned(),
        ignore_case: args.flag("ignoreCase")?.unwrap_or(false),
        literal: args.flag("literal")?.unwrap_or(false),
        before: number(args.whole("before")?.or(around)),
        after: number(args.whole("after")?.or(around)),
        limit: number(args.whole("limit")?),
    };
    args.finish()?;
    if wanted.pattern.is_empty() {
        return Err(invalid("`pattern` is missing: say what to look for"));
    }
    let pattern = wanted.pattern.clone();
    let (state, hits) =
        match locate::view(target.gateway, &target.call.agent, &target.found, 0, Wanted::Search(wanted))
            .await?
        {
            (state, Shown::Search(hits)) => (state, hits),
            _ => return Err(locate::unexpected()),
        };
    let mut lines = Vec::new();
    for hit in &hits.hits {
        let first = hit.line.saturating_sub(hit.before.len() as u64);
        lines.extend(hit.before.iter().zip(first..).map(|(line, number)| format!("{number}- {line}")));
        lines.push(format!("{}: {}", hit.line, hit.text));
        lines.extend(hit.after.iter().zip(hit.line + 1..).map(|(line, number)| format!("{number}- {line}")));
    }
    let shown = hits.hits.len() as u64;
    match hits.total {
        0 => lines.push(format!("No line of {} matches `{pattern}`.", hits.total_lines)),
        total if total > shown => lines.push(format!("[{shown} of {total} matching lines shown]")),
        _ => {}
    }
    let mut details = standing(target, &state);
    let found: Vec<Value> = hits
        .hits
        .iter()
        .map(|hit| {
            json!({
                "line": hit.line, "from": hit.from_offset, "to": hit.to_offset, "text": hit.text, "before": hit.before,
                "after": hit.after,
            })
        })
        .collect();
    details.insert("hits".into(), found.into());
    details.insert("total".into(), hits.total.into());
    details.insert("totalLines".into(), hits.total_lines.into());
    details.insert("omitted".into(), omitted(&hits.omitted));
    Ok(Answer::new(lines.join("\n"), Value::Object(details)))
}

/// The terminal as it looks.
pub(super) async fn screen(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    args.finish()?;
    let view = Wanted::Screen(pb::ScreenView {});
    let (state, screen) =
        match locate::view(target.gateway, &target.call.agent, &target.found, 0, view).await? {
            (state, Shown::Screen(screen)) => (state, screen),
            _ => return Err(locate::unexpected()),
        };
    let mut details = standing(target, &state);
    details.insert("lines".into(), screen.lines.clone().into());
    details.insert(
        "cursor".into(),
        json!({ "row": screen.cursor_row, "column": screen.cursor_column, "visible": screen.cursor_visible }),
    );
    details.insert("cols".into(), screen.columns.into());
    details.insert("rows".into(), screen.rows.into());
    details.insert("nextOffset".into(), screen.offset.into());
    details.insert("alternateScreen".into(), screen.alternate_screen.into());
    let mut text = screen.lines.join("\n");
    text.push_str(&format!(
        "\n[screen {}x{}, cursor at row {}, column {}]",
        screen.columns,
        screen.rows,
        screen.cursor_row + 1,
        screen.cursor_column + 1
    ));
    text.push_str(&facts::hint(&state));
    Ok(Answer::new(text, Value::Object(details)))
}
