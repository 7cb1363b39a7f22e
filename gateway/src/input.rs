//! What a caller sends to a running session: bytes, half-close, sizes, signals.
//!
//! Each caller is one writer with its own offsets. What the node has not
//! confirmed is kept and sent again after a lost link; the node skips what it
//! has taken already, so nothing is typed twice.

mod writer;

use std::sync::Arc;
use std::time::Duration;

use identity::Fingerprint;
use proto::v1::{self as pb, client_frame, request::Command, session_event::Event};
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::feed::COME_BACK_WITHIN;
use crate::follow::Handle;
use crate::gateway::Gateway;
use crate::kills;
use crate::node_link::Link;
use crate::start::comes_back;

pub(crate) use writer::Writer;

/// Bytes on their way to a node, unconfirmed. The caller is not read beyond it.
const UNCONFIRMED_MAX: usize = 256 * 1024;
/// Answer to a resize, signal or kill.
const QUICK: Duration = Duration::from_secs(10);

/// Passes a caller's frames on until the session or the caller ends.
pub(crate) async fn pump(
    gateway: Arc<Gateway>,
    node: Fingerprint,
    session: String,
    (writer_id, confirmed): (u64, u64),
    mut frames: Streaming<pb::ClientFrame>,
    follow: Handle,
) {
    let mut writer = Writer::new(writer_id, confirmed, UNCONFIRMED_MAX);
    // What the caller was not told yet.
    let mut taken_untold = None;
    let mut connection: Option<(Arc<Link>, mpsc::Receiver<pb::InputTaken>)> = None;
    let mut reading = true;
    loop {
        if writer.is_unconfirmed() && connection.as_ref().is_none_or(|(link, _)| link.is_closed()) {
            let link = tokio::select! {
                () = follow.done.cancelled() => return,
                link = comes_back(&gateway, &node, COME_BACK_WITHIN) => link,
            };
            let Ok(link) = link else { return };
            writer.rewind();
            connection = link.open_writer(writer.id()).ok().map(|taken| (link, taken));
            continue;
        }
        if let Some((link, _)) = &connection
            && let Some(piece) = writer.next_piece()
        {
            let input = pb::Input {
                session_id: session.clone(),
                writer: writer.id(),
                offset: piece.offset,
                data: piece.data,
                eof: piece.eof,
                // Many keys share one answer.
                confirm_now: false,
            };
            if link.send_input(input).await.is_err() {
                link.end(crate::node_link::link_lost());
            }
            continue;
        }
        tokio::select! {
            () = follow.done.cancelled() => break,
            taken = next_taken(&mut connection) => match taken {
                Some(pb::InputTaken { fault: Some(fault), .. }) => {
                    writer.refused();
                    let event = pb::SessionEvent { event: Some(Event::InputRefused(fault)) };
                    if follow.events.send(Ok(event)).await.is_err() {
                        break;
                    }
                }
                Some(taken) => {
                    writer.confirmed(taken.total, taken.eof);
                    taken_untold = Some(pb::InputProgress { total: taken.total, eof: taken.eof });
                }
                // The link is over: what is unconfirmed goes over the next one.
                None => connection = None,
            },
            // Only when there is room: a caller that reads no events must not
            // stop its own input.
            permit = follow.events.reserve(), if taken_untold.is_some() => match permit {
                Ok(permit) => {
                    let event = taken_untold.take().map(Event::InputProgress);
                    permit.send(Ok(pb::SessionEvent { event }));
                }
                Err(_) => break,
            },
            frame = frames.message(), if reading && writer.has_room() => match frame {
                Ok(Some(pb::ClientFrame { frame: Some(frame) })) => match frame {
                    client_frame::Frame::Input(data) => writer.push(data),
                    client_frame::Frame::InputEof(true) => writer.finish(),
                    client_frame::Frame::Detach(true) => {
                        follow.detach.cancel();
                        break;
                    }
                    other => command(&gateway, &node, &session, other),
                },
                Ok(Some(pb::ClientFrame { frame: None })) => {}
                // Half-closed, or gone: the follower notices the latter.
                Ok(None) | Err(_) => reading = false,
            },
        }
    }
    if let Some((link, _)) = connection {
        link.close_writer(writer.id());
    }
}

async fn next_taken(
    connection: &mut Option<(Arc<Link>, mpsc::Receiver<pb::InputTaken>)>,
) -> Option<pb::InputTaken> {
    match connection {
        Some((_, taken)) => taken.recv().await,
        None => std::future::pending().await,
    }
}

/// Resize, signal, kill: asked for without waiting for an answer.
fn command(gateway: &Arc<Gateway>, node: &Fingerprint, session: &str, frame: client_frame::Frame) {
    let session_id = session.to_owned();
    let command = match frame {
        client_frame::Frame::Resize(size) => {
            Command::Resize(pb::ResizeRequest { session_id, size: Some(size) })
        }
        client_frame::Frame::Signal(signal) => Command::Signal(pb::SignalRequest { session_id, signal }),
        client_frame::Frame::Kill(true) => {
            Command::Kill(pb::KillRequest { session_id, ..pb::KillRequest::default() })
        }
        _ => return,
    };
    if let Command::Kill(kill) = command {
        kills::kill(gateway, *node, kill.session_id);
        return;
    }
    let Some(link) = gateway.registry.link(node) else { return };
    tokio::spawn(async move {
        if let Err(error) = link.request(command, QUICK).await {
            tracing::info!(fault = %error.fault(), "a command to a session did not succeed");
        }
    });
}
