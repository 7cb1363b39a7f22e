//! Tools called as a model calls them: JSON in, a text and details out.

use std::ops::Index;
use std::path::Path;
use std::time::Duration;

use fault::Fault;
use gateway::cli::client::Connection;
use proto::v1::tools_client::ToolsClient;
use proto::v1::{self as pb, tool_event::Event};
use serde_json::{Value, json};
use tonic::Streaming;
use tonic::transport::Channel;

use crate::bed::TestBed;
use crate::block_on;
use crate::node::{Node, NodeOptions};

/// No call of a story takes longer.
const LONGEST: Duration = Duration::from_secs(150);
/// Bytes of one raw page.
const RAW_PAGE: u64 = 64 * 1024;

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For the model.
    pub text: String,
    /// For programs.
    pub details: Value,
    /// It was refused before anything ran.
    pub is_error: bool,
}

impl Answer {
    /// The session that it is about.
    #[track_caller]
    pub fn session(&self) -> String {
        self["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {self:?}")).to_owned()
    }

    /// A number of the details.
    #[track_caller]
    pub fn number(&self, name: &str) -> u64 {
        self[name].as_u64().unwrap_or_else(|| panic!("no number `{name}`: {self:?}"))
    }

    /// A text of the details.
    #[track_caller]
    pub fn string(&self, name: &str) -> &str {
        self[name].as_str().unwrap_or_else(|| panic!("no text `{name}`: {self:?}"))
    }

    /// Fails unless the details have these members, whatever else they have.
    #[track_caller]
    pub fn has(&self, members: Value) -> &Self {
        for (name, value) in members.as_object().expect("members of an object") {
            assert_eq!(&self[name.as_str()], value, "`{name}` of {self:?}");
        }
        self
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.details[name]
    }
}

impl From<pb::ToolResult> for Answer {
    fn from(result: pb::ToolResult) -> Self {
        let details = serde_json::from_str(&result.details_json).expect("details are JSON");
        Self { text: result.text, details, is_error: result.is_error }
    }
}

/// A caller of tools.
#[derive(Debug, Clone)]
pub struct Tool {
    client: ToolsClient<Channel>,
    template: pb::ToolCall,
}

impl Tool {
    /// The main agent, on the gateway's own machine.
    pub fn of(bed: &TestBed) -> Self {
        Self { client: block_on(bed.tools()), template: pb::ToolCall::default() }
    }

    /// Whoever an operator's identity file speaks for.
    pub fn remote(file: &Path) -> Self {
        let connection = block_on(Connection::remote(file)).expect("a remote connection");
        Self { client: connection.tools(), template: pb::ToolCall::default() }
    }

    /// One call on the gateway's own machine.
    #[track_caller]
    pub fn call(bed: &TestBed, arguments: Value) -> Answer {
        Self::of(bed).ask(arguments)
    }

    /// The same caller with another template of a call: agent, session key, call id, updates.
    pub fn with(&self, change: impl FnOnce(&mut pb::ToolCall)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.template);
        changed
    }

    /// Makes a call. `tool` in the arguments says which.
    #[track_caller]
    pub fn ask(&self, arguments: Value) -> Answer {
        self.begin(arguments).finish()
    }

    /// `exec` of a command with further parameters.
    #[track_caller]
    pub fn exec(&self, command: &str, more: Value) -> Answer {
        self.ask(join(json!({ "tool": "exec", "command": command }), more))
    }

    /// `exec` of a command that goes on behind the call; yields its session.
    #[track_caller]
    pub fn background(&self, command: &str, more: Value) -> String {
        let started = self.exec(command, join(json!({ "background": true }), more));
        started.has(json!({ "status": "running" })).session()
    }

    /// `process` with further parameters.
    #[track_caller]
    pub fn process(&self, action: &str, session: &str, more: Value) -> Answer {
        self.ask(join(json!({ "tool": "process", "action": action, "sessionId": session }), more))
    }

    /// Waits for the end of a session; yields all of its output from the first byte on.
    #[track_caller]
    pub fn end(&self, session: &str) -> Answer {
        let ended = self.process("wait", session, json!({ "offset": 0, "timeout": 100_000 }));
        assert_eq!(ended["reason"], "exit", "{ended:?}");
        ended
    }

    /// Waits for a pattern anywhere in a session's output.
    #[track_caller]
    pub fn wait_for(&self, session: &str, pattern: &str) -> Answer {
        let more = json!({ "offset": 0, "pattern": pattern, "timeout": 30_000 });
        let seen = self.process("wait", session, more);
        assert_eq!(seen["reason"], "pattern", "no `{pattern}`: {seen:?}");
        seen
    }

    /// The bytes of a session's log from `from` to `to`, page by page.
    #[track_caller]
    pub fn raw(&self, session: &str, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = from;
        while at < to {
            let end = to.min(at + RAW_PAGE);
            let page = self.process("log", session, json!({ "raw": true, "from": at, "to": end }));
            bytes.extend(base64(page.string("base64")));
            let next = page.number("to");
            assert!(next > at && next <= end, "a page that does not go on from {at}: {page:?}");
            at = next;
        }
        bytes
    }

    /// A call under way. Dropping it is a cancelled turn.
    #[track_caller]
    pub fn begin(&self, arguments: Value) -> Calling {
        self.open(arguments).unwrap_or_else(|fault| panic!("the call was not taken: {fault:?}"))
    }

    /// A call that the gateway may not take at all.
    ///
    /// # Errors
    /// It did not.
    pub fn open(&self, arguments: Value) -> Result<Calling, Fault> {
        let tool = arguments["tool"].as_str().expect("a call names its tool").to_owned();
        let call = pb::ToolCall { tool, arguments_json: arguments.to_string(), ..self.template.clone() };
        let mut client = self.client.clone();
        match block_on(client.call_tool(call)) {
            Ok(events) => Ok(Calling { events: events.into_inner() }),
            Err(status) => Err(Fault::from_status(&status)),
        }
    }
}

/// A call that was not answered yet.
#[derive(Debug)]
pub struct Calling {
    events: Streaming<pb::ToolEvent>,
}

impl Calling {
    /// Waits for an update, if the call asks for them, whose text has `part` in it.
    #[track_caller]
    pub fn update(&mut self, part: &str) -> Answer {
        loop {
            match self.next() {
                Event::Update(update) if update.text.contains(part) => return update.into(),
                Event::Result(result) => panic!("no update with `{part}` before {result:?}"),
                Event::Update(_) | Event::ApprovalPending(_) | Event::ApprovalClosed(_) => {}
            }
        }
    }

    /// Waits for the answer.
    #[track_caller]
    pub fn finish(mut self) -> Answer {
        loop {
            if let Event::Result(result) = self.next() {
                return result.into();
            }
        }
    }

    #[track_caller]
    fn next(&mut self) -> Event {
        let next = block_on(async { tokio::time::timeout(LONGEST, self.events.message()).await });
        let event = next.expect("an event in time").expect("a call that goes on");
        event.and_then(|event| event.event).expect("an answer before the end")
    }
}

/// One object of the members of two; the second one's win.
fn join(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// The bytes behind a base64 text.
#[track_caller]
fn base64(text: &str) -> Vec<u8> {
    let sextet = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no base64: {text}"),
    };
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().map(sextet).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let bits =
            four.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// A gateway with one node, where `exec` goes unless a call says otherwise.
#[derive(Debug)]
pub struct Desk {
    /// The gateway and everything around it.
    pub bed: TestBed,
    /// Its node, `n`.
    pub node: Node,
    /// The main agent.
    pub tool: Tool,
}

impl Desk {
    /// A bed with a connected node that `tools.exec` names.
    #[track_caller]
    pub fn new() -> Self {
        Self::with(|_| NodeOptions::default())
    }

    /// The same with a node of these options.
    #[track_caller]
    pub fn with(options: impl FnOnce(&TestBed) -> NodeOptions) -> Self {
        let bed = TestBed::new();
        configure(&bed, "{ tools: { exec: { host: 'node', node: 'n' } } }");
        let node = bed.invited("n", options(&bed));
        node.wait_connected(1);
        let tool = Tool::of(&bed);
        Self { bed, node, tool }
    }

    /// Replaces the gateway's configuration.
    pub fn configure(&self, text: &str) {
        configure(&self.bed, text);
    }

    /// A duration in seconds that no other process of this machine sleeps for.
    pub fn unique(&self, number: u32) -> String {
        format!("{number}.{}", self.bed.address().port())
    }
}

fn configure(bed: &TestBed, text: &str) {
    let config = bed.gateway_dir().join("openclaw.json");
    std::fs::write(&config, text).expect("a file of this bed");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&config, private).expect("a file of this bed");
}

impl Default for Desk {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (text, want) in
            [("", &b""[..]), ("AA==", b"\0"), ("aGk=", b"hi"), ("Zm9v", b"foo"), ("Zm9v/w==", b"foo\xff")]
        {
            assert_eq!(base64(text), want, "{text}");
        }
    }
}
