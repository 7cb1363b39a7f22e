//! What agents' sessions must reach.

use super::{Bound, Metric, higher, lower, mib};

const LIVE_NODE_MUST: Option<Bound> = mib(64.0);
const LIVE_HOLDER_MUST: Option<Bound> = mib(2.0);

/// `exec` in the background, until its answer.
pub(crate) const LIVE_START: Metric = lower("1000 live: start of each", "ms", None, None);
/// Beside all of them.
pub(crate) const LIVE_NODE_RSS: Metric = lower("1000 live: node-host, RSS", "KiB", LIVE_NODE_MUST, None);
/// The same.
pub(crate) const LIVE_GATEWAY_RSS: Metric = lower("1000 live: gateway, RSS", "KiB", None, None);
/// Pages of the program's text, which all holders share, count in full.
pub(crate) const LIVE_HOLDER_RSS: Metric = lower("1000 live: holder, RSS", "KiB", LIVE_HOLDER_MUST, None);
/// Shared pages count in part.
pub(crate) const LIVE_HOLDER_PSS: Metric = lower("1000 live: holder, PSS", "KiB", LIVE_HOLDER_MUST, None);
/// What the next one adds.
pub(crate) const LIVE_HOLDER_OWN: Metric = lower("1000 live: holder, private", "KiB", LIVE_HOLDER_MUST, None);
/// All of them.
pub(crate) const LIVE_LIST: Metric = lower("1000 live: list", "ms", None, None);
/// One of them.
pub(crate) const LIVE_POLL: Metric = lower("1000 live: poll", "ms", None, None);

/// The same with terminals.
pub(crate) const LIVE_TTY_START: Metric = lower("200 terminals: start of each", "ms", None, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_NODE_RSS: Metric =
    lower("200 terminals: node-host, RSS", "KiB", LIVE_NODE_MUST, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_GATEWAY_RSS: Metric = lower("200 terminals: gateway, RSS", "KiB", None, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_HOLDER_RSS: Metric =
    lower("200 terminals: holder, RSS", "KiB", LIVE_HOLDER_MUST, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_HOLDER_PSS: Metric =
    lower("200 terminals: holder, PSS", "KiB", LIVE_HOLDER_MUST, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_HOLDER_OWN: Metric =
    lower("200 terminals: holder, private", "KiB", LIVE_HOLDER_MUST, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_LIST: Metric = lower("200 terminals: list", "ms", None, None);
/// The same with terminals.
pub(crate) const LIVE_TTY_POLL: Metric = lower("200 terminals: poll", "ms", None, None);

const FLOOD_MUST: Option<Bound> = mib(8.0);

/// Growth while nobody reads.
pub(crate) const FLOOD_NODE: Metric = lower("flood, unread: node-host grows", "KiB", FLOOD_MUST, None);
/// The same.
pub(crate) const FLOOD_GATEWAY: Metric = lower("flood, unread: gateway grows", "KiB", FLOOD_MUST, None);
/// Growth while it is polled twice a second.
pub(crate) const FLOOD_POLLED_NODE: Metric = lower("flood, polled: node-host grows", "KiB", FLOOD_MUST, None);
/// The same.
pub(crate) const FLOOD_POLLED_GATEWAY: Metric =
    lower("flood, polled: gateway grows", "KiB", FLOOD_MUST, None);
/// What holds the flood.
pub(crate) const FLOOD_HOLDER: Metric = lower("flood: holder, RSS", "KiB", None, None);
/// The cap and the segment that is written.
pub(crate) const FLOOD_DISK: Metric = lower("flood: its files", "KiB", mib(72.0), None);
/// Beside the flood, which takes both cores.
pub(crate) const POLL_FLOOD: Metric = lower("flood: poll", "ms", None, None);

const ANSWER_MUST: Option<Bound> = Some(Bound::Value(2.0));

/// From the program's write to the agent's answer.
pub(crate) const ANSWER_POLL: Metric = lower("written to answer, poll", "ms", ANSWER_MUST, None);
/// The same.
pub(crate) const ANSWER_PATTERN: Metric = lower("written to answer, wait pattern", "ms", ANSWER_MUST, None);
/// The same.
pub(crate) const ANSWER_BYTES: Metric = lower("written to answer, wait bytes", "ms", ANSWER_MUST, None);
/// The same.
pub(crate) const ANSWER_TTY: Metric = lower("written to answer, poll of a terminal", "ms", ANSWER_MUST, None);

/// Head and tail of much that is new.
pub(crate) const VIEW_POLL_FIRST: Metric = lower("60 MiB: first poll", "ms", None, None);
/// Nothing is new.
pub(crate) const VIEW_POLL_NEXT: Metric = lower("60 MiB: next poll", "ms", None, None);
/// As it is called most.
pub(crate) const VIEW_LOG: Metric = lower("60 MiB: log", "ms", None, None);
/// By line numbers.
pub(crate) const VIEW_LOG_PAGE: Metric = lower("60 MiB: log, a page in the middle", "ms", None, None);
/// A text.
pub(crate) const VIEW_SEARCH: Metric = lower("60 MiB: search, rare", "ms", None, None);
/// A pattern.
pub(crate) const VIEW_SEARCH_MANY: Metric = lower("60 MiB: search, frequent", "ms", None, None);
/// After all of these.
pub(crate) const VIEW_NODE_RSS: Metric = lower("60 MiB: node-host, RSS", "KiB", None, None);
/// The whole output so far is drawn.
pub(crate) const VIEW_SCREEN_FIRST: Metric = lower("`top`: first screen", "ms", None, None);
/// Only what is new is drawn.
pub(crate) const VIEW_SCREEN: Metric = lower("`top`: next screen", "ms", None, None);

const CONTROL_MUST: Option<Bound> = Some(Bound::Value(50.0));

/// 19 readers, nobody stopped.
pub(crate) const UNSTOPPED_ALL: Metric = higher("19 readers", "MB/s", None, None);
/// Beside one that stopped.
pub(crate) const STOPPED_ALL: Metric = higher("19 readers, a 20th stopped", "MB/s", None, None);
/// Unaffected, as far as turns of some seconds tell.
pub(crate) const STOPPED_SHARE: Metric =
    higher("of the rate without it", "%", Some(Bound::Value(95.0)), None);
/// The slowest.
pub(crate) const UNSTOPPED_LEAST: Metric = higher("19 readers, slowest", "MB/s", None, None);
/// The slowest.
pub(crate) const STOPPED_LEAST: Metric = higher("19 readers, a 20th stopped, slowest", "MB/s", None, None);
/// The gateway alone.
pub(crate) const CONTROL_STATUS_WITHOUT: Metric = lower("control beside 20 floods: status", "ms", None, None);
/// The gateway alone.
pub(crate) const CONTROL_STATUS: Metric = lower("control, one stopped: status", "ms", CONTROL_MUST, None);
/// Gateway, link and node.
pub(crate) const CONTROL_POLL_WITHOUT: Metric = lower("control beside 20 floods: poll", "ms", None, None);
/// Gateway, link and node.
pub(crate) const CONTROL_POLL: Metric = lower("control, one stopped: poll", "ms", CONTROL_MUST, None);
/// The longest.
pub(crate) const CONTROL_STATUS_MAX: Metric =
    lower("control, one stopped: status, max", "ms", CONTROL_MUST, None);
/// The longest.
pub(crate) const CONTROL_POLL_MAX: Metric =
    lower("control, one stopped: poll, max", "ms", CONTROL_MUST, None);

/// The tool.
pub(crate) const EXEC_TOOL: Metric = lower("exec `true` by the tool", "ms", None, None);
/// The call below it.
pub(crate) const EXEC_CALL: Metric = lower("exec `true` by Tools.Exec", "ms", None, None);
