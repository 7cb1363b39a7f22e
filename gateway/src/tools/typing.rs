//! Typing into a session for an agent: every byte once, in the order of the calls, until the node took it.

use std::time::Duration;

use bytes::Bytes;
use fault::{ErrorCode, Fault};
use proto::v1 as pb;
use tokio::time::Instant;

use super::state::Found;
use crate::gateway::Gateway;
use crate::input::Writer;
use crate::start::comes_back;

/// Input that one call may send, in bytes.
const WINDOW: usize = 256 * 1024;
/// How long a program may leave input lying.
const PATIENCE: Duration = Duration::from_secs(20);

/// The one writer of this gateway for a session: calls take turns.
#[derive(Debug)]
pub(super) struct Typist {
    writer: Writer,
}

/// What is typed.
#[derive(Debug, Default)]
pub(super) struct Strokes {
    /// With a pause between each.
    pub(super) strokes: Vec<Vec<u8>>,
    pub(super) pause: Duration,
    /// Nothing comes after.
    pub(super) eof: bool,
}

/// Types, and waits until the node has taken all of it.
///
/// # Errors
/// The input is closed or was never open, the session is over, or the program does not read: the text says how much was
/// taken.
pub(super) async fn type_in(
    gateway: &Gateway,
    agent: &str,
    found: &Found,
    wanted: Strokes,
) -> Result<(), Fault> {
    let memory = gateway.tools.memory(agent, found);
    let ended = wanted.eof;
    let mut typist = memory.typist.lock().await;
    let result = typist
        .get_or_insert_with(|| Typist { writer: Writer::new(0, 0, WINDOW) })
        .work(gateway, found, wanted)
        .await;
    if result.is_err() || ended {
        // What was not taken must not be typed with the next call, and behind an end of input comes a new beginning: a
        // terminal has more than one.
        *typist = None;
    }
    result
}

impl Typist {
    async fn work(&mut self, gateway: &Gateway, found: &Found, wanted: Strokes) -> Result<(), Fault> {
        let last = wanted.strokes.len().saturating_sub(1);
        if wanted.strokes.is_empty() && wanted.eof {
            self.writer.finish();
            return self.drain(gateway, found).await;
        }
        for (index, stroke) in wanted.strokes.into_iter().enumerate() {
            if index > 0 && !wanted.pause.is_zero() {
                tokio::time::sleep(wanted.pause).await;
            }
            self.writer.push(Bytes::from(stroke));
            if index == last && wanted.eof {
                self.writer.finish();
            }
            if !wanted.pause.is_zero() || index == last {
                self.drain(gateway, found).await?;
            }
        }
        Ok(())
    }

    /// Sends what was not sent, and waits until all of it was taken.
    async fn drain(&mut self, gateway: &Gateway, found: &Found) -> Result<(), Fault> {
        let mut until = Instant::now() + PATIENCE;
        while self.writer.is_unconfirmed() {
            let link =
                comes_back(gateway, &found.node, until.saturating_duration_since(Instant::now())).await?;
            let mut taken = link.open_writer(self.writer.id())?;
            self.writer.rewind();
            let outcome = loop {
                while let Some(piece) = self.writer.next_piece() {
                    let last = !self.writer.has_unsent();
                    let input = pb::Input {
                        session_id: found.session.clone(),
                        writer: self.writer.id(),
                        offset: piece.offset,
                        data: piece.data,
                        eof: piece.eof,
                        confirm_now: last,
                    };
                    if link.send_input(input).await.is_err() {
                        break;
                    }
                }
                match tokio::time::timeout_at(until, taken.recv()).await {
                    Ok(Some(pb::InputTaken { fault: Some(fault), .. })) => break Err(fault.into()),
                    Ok(Some(taken)) => {
                        if taken.total > self.writer.base() {
                            until = Instant::now() + PATIENCE;
                        }
                        self.writer.confirmed(taken.total, taken.eof);
                        if !self.writer.is_unconfirmed() {
                            break Ok(());
                        }
                    }
                    // The link is over: what is unconfirmed goes over the next one.
                    Ok(None) => break Ok(()),
                    Err(_) => {
                        break Err(Fault::new(
                            ErrorCode::Timeout,
                            format!(
                                "the program does not read its input: {} bytes of this session's input were taken, the rest waits",
                                self.writer.base()
                            ),
                        )
                        .hint("look at it with `screen` or `log`; the rest may still be read later"));
                    }
                }
            };
            link.close_writer(self.writer.id());
            outcome?;
        }
        Ok(())
    }
}
