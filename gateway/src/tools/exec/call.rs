//! The parameters of `exec` (runtime.md §1.1), and the request that they make.

use std::collections::HashMap;
use std::time::Duration;

use config::ExecConfig;
use fault::{ErrorCode, Fault};
use node_host::on_disconnect_to_wire;
use proto::v1 as pb;
use serde_json::{Map, Value};
use session::OnDisconnect;

use super::super::Call;
use super::super::args::Args;

/// Window of a call that names none, and its bounds, in milliseconds (§1.3).
const YIELD_MS: u64 = 10_000;
const YIELD_MIN_MS: u64 = 10;
const YIELD_MAX_MS: u64 = 120_000;
/// Time limit of a command, in seconds (§1.4).
const TIMEOUT_S: f64 = 1800.0;
/// A longer time limit is none that anybody means.
const TIMEOUT_MAX_S: f64 = 3.2e8;
/// A terminal's size (§3).
const COLUMNS: u64 = 120;
const ROWS: u64 = 30;

/// The parameters of the tool, those of the seeds first.
const PARAMETERS: [&str; 21] = [
    "title",
    "command",
    "workdir",
    "env",
    "yieldMs",
    "background",
    "timeout",
    "timeoutSeconds",
    "timeoutSec",
    "pty",
    "elevated",
    "host",
    "security",
    "ask",
    "node",
    "stdin",
    "cols",
    "rows",
    "onDisconnect",
    "limits",
    "tool",
];

/// A call, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExecCall {
    pub(super) command: String,
    pub(super) background: bool,
    /// How long the call waits.
    pub(super) window: Duration,
    /// None: no limit.
    pub(super) timeout_s: Option<f64>,
    pub(super) warnings: Vec<String>,
    pub(super) notify_on_exit: bool,
    pub(super) notify_empty_success: bool,
    on_disconnect: Option<OnDisconnect>,
    workdir: String,
    env: HashMap<String, String>,
    terminal: Option<(u32, u32)>,
    stdin: bool,
    host: String,
    node: String,
    security: pb::Security,
    ask: pb::Ask,
    limits: pb::Limits,
}

impl ExecCall {
    /// Reads the arguments.
    pub(super) fn read(args: &Args<'_>, config: &ExecConfig, call: &Call) -> Result<Self, Fault> {
        args.only(&PARAMETERS)?;
        let command = args.text("command")?.unwrap_or_default().to_owned();
        if command.trim().is_empty() {
            return Err(invalid("`command` is missing: say what to run"));
        }
        // A label for people; it has no effect.
        args.text("title")?;
        let background = args.flag("background")?.unwrap_or(false);
        let window = args.whole("yieldMs")?.or(config.background_ms).unwrap_or(YIELD_MS);
        let (timeout_s, mut warnings) = timeout(args, config)?;
        if args.flag("elevated")?.unwrap_or(false) {
            return Err(invalid(
                "`elevated` has no meaning on a node: what may run there is the node's own policy",
            ));
        }
        let pty = args.flag("pty")?.unwrap_or(false);
        let size = (args.whole("cols")?.unwrap_or(COLUMNS), args.whole("rows")?.unwrap_or(ROWS));
        let stdin = args.flag("stdin")?.unwrap_or(false);
        let host = args.text("host")?.or(config.host.as_deref()).unwrap_or_default().to_owned();
        let node = match args.text("node")? {
            Some(node) if !node.trim().is_empty() => node.to_owned(),
            _ if !call.node.is_empty() => call.node.clone(),
            _ => config.node.clone().unwrap_or_default(),
        };
        let on_disconnect = match args.text("onDisconnect")? {
            Some(text) => Some(text.parse().map_err(|error| invalid(format!("onDisconnect: {error}")))?),
            None => None,
        };
        if !pty && (args.value("cols").is_some() || args.value("rows").is_some()) {
            warnings.push("`cols` and `rows` have no meaning without `pty`".to_owned());
        }
        let read = Self {
            background: background || args.whole("yieldMs")? == Some(0),
            window: Duration::from_millis(window.clamp(YIELD_MIN_MS, YIELD_MAX_MS)),
            timeout_s,
            warnings,
            notify_on_exit: config.notify_on_exit.unwrap_or(true),
            notify_empty_success: config.notify_on_exit_empty_success.unwrap_or(false),
            on_disconnect,
            workdir: args.text("workdir")?.unwrap_or_default().to_owned(),
            env: variables(args.object("env")?)?,
            terminal: if pty { Some(cells(size)?) } else { None },
            stdin,
            host,
            node,
            security: security(args.text("security")?)?,
            ask: ask(args.text("ask")?)?,
            limits: limits(args.object("limits")?)?,
            command,
        };
        Ok(read)
    }

    /// The request to the node.
    pub(super) fn request(&self, call: &Call) -> pb::ExecRequest {
        let limit = match self.timeout_s {
            Some(seconds) => pb::deadline::Limit::TimeoutMs(((seconds * 1000.0) as u64).max(1)),
            None => pb::deadline::Limit::None(true),
        };
        let on_disconnect = if self.background {
            self.background_policy()
        } else {
            self.on_disconnect.unwrap_or(OnDisconnect::Kill)
        };
        pb::ExecRequest {
            host: self.host.clone(),
            node: self.node.clone(),
            invocation: Some(pb::Invocation {
                form: Some(pb::invocation::Form::Shell(self.command.clone())),
            }),
            workdir: self.workdir.clone(),
            env: self.env.clone(),
            deadline: Some(pb::Deadline { limit: Some(limit) }),
            stdin: if self.stdin || self.terminal.is_some() { pb::Stdin::Open } else { pb::Stdin::Closed }
                .into(),
            terminal: self.terminal.map(|(columns, rows)| pb::WindowSize { columns, rows }),
            on_close: if self.background { pb::OnClose::Keep } else { pb::OnClose::Kill }.into(),
            run_id: call.call_id.clone(),
            agent_id: call.agent.clone(),
            session_key: call.session_key.clone(),
            security: self.security.into(),
            ask: self.ask.into(),
            on_disconnect: Some(on_disconnect_to_wire(on_disconnect)),
            limits: (self.limits != pb::Limits::default()).then_some(self.limits),
            answer_queries: true,
            ..pb::ExecRequest::default()
        }
    }

    /// Whether the command is ended when its call is cancelled.
    pub(super) fn ends_with_call(&self) -> bool {
        !self.background && self.on_disconnect.unwrap_or(OnDisconnect::Kill) == OnDisconnect::Kill
    }

    fn background_policy(&self) -> OnDisconnect {
        self.on_disconnect.unwrap_or(OnDisconnect::Keep)
    }

    /// What holds from the moment on that the call returns.
    pub(super) fn on_background(&self) -> pb::OnDisconnect {
        on_disconnect_to_wire(self.background_policy())
    }

    pub(super) fn on_disconnect_text(&self) -> String {
        self.background_policy().to_string()
    }
}

/// Seconds, and what is to be said about it. The newest name is the seeds' own; older spellings are taken and named.
fn timeout(args: &Args<'_>, config: &ExecConfig) -> Result<(Option<f64>, Vec<String>), Fault> {
    let names = ["timeout", "timeoutSeconds", "timeoutSec"];
    let mut given = None;
    let mut warnings = Vec::new();
    for name in names {
        if let Some(value) = args.number(name)? {
            if given.is_some_and(|earlier| earlier != value) {
                return Err(invalid("`timeout` is given twice, with different values"));
            }
            if name == "timeoutSec" {
                warnings.push("`timeoutSec` is an older spelling of `timeout`".to_owned());
            }
            given = Some(value);
        }
    }
    let seconds = match given {
        Some(seconds) if seconds <= 0.0 => None,
        Some(seconds) => Some(seconds),
        None => Some(config.timeout_seconds.map_or(TIMEOUT_S, |seconds| seconds as f64)),
    };
    Ok((seconds.filter(|seconds| *seconds < TIMEOUT_MAX_S), warnings))
}

fn variables(env: Option<&Map<String, Value>>) -> Result<HashMap<String, String>, Fault> {
    let Some(env) = env else { return Ok(HashMap::new()) };
    env.iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(number) => Ok((name.clone(), number.to_string())),
            Value::Bool(flag) => Ok((name.clone(), flag.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(invalid(format!("env.{name} must be text")))
            }
        })
        .collect()
}

fn cells((columns, rows): (u64, u64)) -> Result<(u32, u32), Fault> {
    let cell = |n: u64| u32::try_from(n).ok().filter(|n| (1..=1000).contains(n));
    match (cell(columns), cell(rows)) {
        (Some(columns), Some(rows)) => Ok((columns, rows)),
        _ => Err(invalid("a terminal has 1 to 1000 `cols` and `rows`")),
    }
}

fn security(word: Option<&str>) -> Result<pb::Security, Fault> {
    match word.map(str::trim) {
        None | Some("") => Ok(pb::Security::Unspecified),
        Some("deny") => Ok(pb::Security::Deny),
        Some("allowlist") => Ok(pb::Security::Allowlist),
        Some("full") => Ok(pb::Security::Full),
        Some(other) => Err(invalid(format!("`security` is deny, allowlist or full, not `{other}`"))),
    }
}

fn ask(word: Option<&str>) -> Result<pb::Ask, Fault> {
    match word.map(str::trim) {
        None | Some("") => Ok(pb::Ask::Unspecified),
        Some("off") => Ok(pb::Ask::Off),
        Some("on-miss") => Ok(pb::Ask::OnMiss),
        Some("always") => Ok(pb::Ask::Always),
        Some(other) => Err(invalid(format!("`ask` is off, on-miss or always, not `{other}`"))),
    }
}

/// `{memory, pids, cpuSeconds, fileSize, output}`; sizes in bytes or as `512m`, `2g`.
fn limits(limits: Option<&Map<String, Value>>) -> Result<pb::Limits, Fault> {
    let Some(limits) = limits else { return Ok(pb::Limits::default()) };
    let args = Args::new(limits);
    let read = pb::Limits {
        memory_bytes: size(&args, "memory", 16 << 20)?,
        pids: u32::try_from(args.whole("pids")?.unwrap_or_default())
            .map_err(|_| invalid("limits.pids is too large"))?,
        cpu_ms: args.number("cpuSeconds")?.map_or(0, |seconds| (seconds.max(0.001) * 1000.0) as u64),
        file_bytes: size(&args, "fileSize", 1)?,
        log_bytes: size(&args, "output", 1)?,
    };
    args.finish()?;
    Ok(read)
}

fn size(args: &Args<'_>, name: &'static str, least: u64) -> Result<u64, Fault> {
    let bytes = match args.value(name) {
        None => return Ok(0),
        Some(Value::String(text)) => parse_size(text),
        Some(value) => value.as_u64(),
    };
    match bytes {
        Some(bytes) if bytes >= least => Ok(bytes),
        Some(_) => Err(invalid(format!("limits.{name} must be at least {least} bytes"))),
        None => Err(invalid(format!("limits.{name} is a number of bytes, or as 512m, 2g"))),
    }
}

/// Bytes, or as `512m`, `2g`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "b" => 1_u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, what)
}
