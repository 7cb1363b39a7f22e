//! What is typed into a session: `write`, `send-keys`, `submit`, `paste` (runtime.md §2.5).

use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1 as pb;
use serde_json::{Value, json};
use session::keys::{self, CursorKeys, Keys};

use super::super::Answer;
use super::super::args::Args;
use super::super::typing::{Strokes, type_in};
use super::{Target, invalid};

/// Longest input of one call, in bytes.
const INPUT_MAX: usize = 200 * 1024;
/// Longest pause between two keys.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause between an Escape and what comes behind it, where none is asked for: closer together they read as Alt.
const AFTER_ESCAPE: Duration = Duration::from_millis(60);
/// Ends a terminal's input at the start of a line; elsewhere it only hands over the line.
const END_OF_INPUT: u8 = 0x04;

impl Target<'_> {
    /// The session, if something can be typed into it; the error says what would make it so.
    async fn writable(&self) -> Result<pb::SessionState, Fault> {
        let state = self.state().await?;
        self.running(&state)?;
        let session = state.session.clone().unwrap_or_default();
        if !session.stdin_open {
            return Err(Fault::new(
                ErrorCode::StdinClosed,
                format!("the input of session {} is closed, or was never open", self.id()),
            )
            .hint("start it with `stdin: true` (a pipe) or `pty: true` (a terminal)"));
        }
        Ok(state)
    }

    async fn type_in(&self, strokes: Strokes) -> Result<(), Fault> {
        let size: usize = strokes.strokes.iter().map(Vec::len).sum();
        if size > INPUT_MAX {
            return Err(invalid(format!(
                "{size} bytes of input are more than one call may send ({INPUT_MAX})"
            ))
            .hint("send it in parts"));
        }
        type_in(self.gateway, &self.call.agent, &self.found, strokes).await
    }

    fn typed(&self, state: &pb::SessionState, text: String, more: &Value) -> Answer {
        let label = state.session.as_ref().map(|session| session.label.clone()).unwrap_or_default();
        let mut details =
            json!({ "status": "running", "sessionId": self.id(), "name": session::label::name(&label) });
        if let (Value::Object(details), Value::Object(more)) = (&mut details, more) {
            details.extend(more.clone());
        }
        Answer::new(text, details)
    }
}

pub(super) async fn write(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let data = args.text("data")?.unwrap_or_default();
    let eof = args.flag("eof")?.unwrap_or(false);
    args.finish()?;
    let state = target.writable().await?;
    let mut bytes = data.as_bytes().to_vec();
    let terminal = state.terminal.is_some();
    if terminal && eof && !bytes.is_empty() && !bytes.ends_with(b"\n") {
        // In the middle of a line the first one only hands the line over.
        bytes.push(END_OF_INPUT);
    }
    let strokes = if bytes.is_empty() { Vec::new() } else { vec![bytes] };
    if !strokes.is_empty() || eof {
        target.type_in(Strokes { strokes, eof, ..Strokes::default() }).await?;
    }
    let closed = match (eof, terminal) {
        (true, true) => ", and typed the end of input",
        (true, false) => ", and closed its input",
        (false, _) => "",
    };
    let chars = data.chars().count();
    Ok(target.typed(
        &state,
        format!("Wrote {chars} characters to session {}{closed}.", target.id()),
        &Value::Null,
    ))
}

pub(super) async fn send_keys(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let keys = Keys {
        literal: args.text("literal")?.unwrap_or_default().to_owned(),
        hex: args.texts("hex")?,
        keys: args.texts("keys")?,
    };
    let pause = args.whole("delayMs")?.map(Duration::from_millis);
    args.finish()?;
    let state = target.writable().await?;
    let application = state.terminal.as_ref().and_then(|terminal| terminal.application_cursor);
    // A program that said nothing has not switched it on.
    let cursor = if application == Some(true) { CursorKeys::Application } else { CursorKeys::Normal };
    let encoded = keys::encode(&keys, cursor).map_err(|error| invalid(error.to_string()))?;
    let escape_inside = encoded.strokes.iter().rev().skip(1).any(|stroke| stroke == b"\x1b");
    let pause = pause.unwrap_or(if escape_inside { AFTER_ESCAPE } else { Duration::ZERO }).min(PAUSE_MAX);
    let bytes: usize = encoded.strokes.iter().map(Vec::len).sum();
    target.type_in(Strokes { strokes: encoded.strokes, pause, eof: false }).await?;
    let mut text = format!("Sent {bytes} bytes to session {}.", target.id());
    for warning in &encoded.warnings {
        text.push_str("\nWarning: ");
        text.push_str(warning);
    }
    Ok(target.typed(&state, text, &json!({ "bytes": bytes, "warnings": encoded.warnings })))
}

pub(super) async fn submit(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    args.finish()?;
    let state = target.writable().await?;
    // A pipe has no line discipline that would make a new line of it.
    let enter = if state.terminal.is_some() { keys::SUBMIT.to_vec() } else { b"\n".to_vec() };
    target.type_in(Strokes { strokes: vec![enter], ..Strokes::default() }).await?;
    Ok(target.typed(&state, format!("Submitted session {} (sent Enter).", target.id()), &Value::Null))
}

/// In brackets where the program asked for them, so that a shell does not run a pasted text line by line (field case
/// F154); `bracketed` forces it either way.
pub(super) async fn paste(target: &Target<'_>, args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.text("text")?.unwrap_or_default();
    let wanted = args.flag("bracketed")?;
    args.finish()?;
    let state = target.writable().await?;
    let bracketed =
        wanted.unwrap_or_else(|| state.terminal.as_ref().is_some_and(|terminal| terminal.bracketed_paste));
    let bytes = if state.terminal.is_some() {
        keys::paste(text, bracketed).map_err(|error| invalid(error.to_string()))?
    } else if text.is_empty() {
        return Err(invalid("nothing to paste: `text` is empty"));
    } else {
        text.as_bytes().to_vec()
    };
    target.type_in(Strokes { strokes: vec![bytes], ..Strokes::default() }).await?;
    let chars = text.chars().count();
    let how = if bracketed { " in brackets" } else { "" };
    Ok(target.typed(
        &state,
        format!("Pasted {chars} characters to session {}{how}.", target.id()),
        &json!({ "bracketed": bracketed }),
    ))
}
