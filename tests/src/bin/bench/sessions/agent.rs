//! An agent that calls the tools.

use anyhow::{Context as _, bail, ensure};
use proto::v1 as pb;
use serde_json::{Value, json};

use crate::bed::{NODE, Tools};

/// Calls tools on one connection.
#[derive(Debug, Clone)]
pub(super) struct Agent(Tools);

impl Agent {
    pub(super) fn new(tools: Tools) -> Self {
        Self(tools)
    }

    /// Calls a tool; yields the details of its result. A refusal and a failure are errors.
    pub(super) async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let call = pb::ToolCall {
            tool: tool.to_owned(),
            arguments_json: arguments.to_string(),
            node: NODE.to_owned(),
            ..pb::ToolCall::default()
        };
        let mut events = self.0.call_tool(call).await?.into_inner();
        while let Some(event) = events.message().await? {
            if let Some(pb::tool_event::Event::Result(result)) = event.event {
                let details: Value = serde_json::from_str(&result.details_json)?;
                let failed = result.is_error || details["code"].is_string();
                ensure!(!failed, "`{tool}` {arguments} failed: {}", result.text);
                return Ok(details);
            }
        }
        bail!("`{tool}` ended without a result")
    }

    /// Starts a command in the background; yields its session.
    pub(super) async fn start(&mut self, command: &str, more: &[(&str, Value)]) -> anyhow::Result<String> {
        let mut arguments = json!({ "command": command, "background": true });
        for (name, value) in more {
            arguments[*name] = value.clone();
        }
        let details = self.call("exec", &arguments).await?;
        Ok(details["sessionId"].as_str().context("a session")?.to_owned())
    }

    /// An action of `process` on a session.
    pub(super) async fn process(
        &mut self,
        action: &str,
        session: &str,
        more: &[(&str, Value)],
    ) -> anyhow::Result<Value> {
        let mut arguments = json!({ "action": action, "sessionId": session });
        for (name, value) in more {
            arguments[*name] = value.clone();
        }
        self.call("process", &arguments).await
    }

    /// Ends a session, and waits for its end.
    pub(super) async fn end(&mut self, session: &str) -> anyhow::Result<()> {
        self.process("kill", session, &[]).await?;
        let details = self.process("wait", session, &[("timeout", 20_000.into())]).await?;
        ensure!(details["status"] != "running", "session {session} goes on");
        Ok(())
    }
}
