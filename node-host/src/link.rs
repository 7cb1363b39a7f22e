//! The link to the gateway, from this side: dial, say hello, serve, and come
//! back for ever.
//!
//! Sessions do not depend on it: they go on while it is down.

mod absent;
mod feeds;
mod inputs;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::Pin;
use link::{Backoff, Outbox, dial::dial};
use proto::v1::{self as pb, gateway_frame, node_frame::Frame, node_link_client::NodeLinkClient};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::enrol::standing;
use crate::keys::Paired;
use crate::node::Node;
use crate::{convert, facts};

pub(crate) use absent::Absent;
pub(crate) use inputs::Inputs;

/// The gateway answers a hello at once.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);
/// A link that held for this long starts the back-off over.
const STABLE_AFTER: Duration = Duration::from_secs(5);
/// After being replaced by another process of the same identity.
const REPLACED_PAUSE: Duration = Duration::from_secs(30);
/// What a stopping node host tells the gateway.
const COME_BACK_IN_MS: u64 = 2000;
/// Largest frame that is taken: more than the gateway takes from a caller and
/// passes on.
const FRAME_MAX: usize = 8 * 1024 * 1024;
/// A renewal that failed is tried again after this.
const RENEW_RETRY: Duration = Duration::from_secs(10);

/// Sends frames of this node.
pub(crate) type NodeOutbox = Outbox<pb::NodeFrame>;

/// Why a link ended.
#[derive(Debug)]
enum End {
    /// It broke, or could not be made.
    Broken(Fault),
    /// The gateway is restarting and named a time.
    Draining(Duration),
    /// Another process with this identity took over.
    Replaced,
    /// This node host is stopping.
    Stopping,
    /// The gateway does not know this node any more.
    Removed(Fault),
}

/// The gateway does not know this node any more, and its certificate was forgotten.
#[derive(Debug)]
pub(crate) enum Removed {
    /// It was so at the first word.
    BeforeWelcome(Fault),
    /// It had welcomed this node with this pairing.
    AfterWelcome(Fault),
}

impl Removed {
    /// For the person at the terminal.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Removed::BeforeWelcome(fault) | Removed::AfterWelcome(fault) => fault,
        }
    }
}

/// How the links of one pairing went so far.
#[derive(Debug, Default)]
struct Course {
    backoff: Backoff,
    welcomes: u64,
}

/// Keeps a link up until the node host stops (`Ok`) or is no longer welcome.
pub(crate) async fn keep(
    node: &Arc<Node>,
    paired: &mut Paired,
    stopping: &CancellationToken,
) -> Result<(), Removed> {
    let mut course = Course::default();
    loop {
        let end = once(node, paired, &mut course, stopping).await;
        let pause = match end {
            End::Stopping => return Ok(()),
            End::Removed(fault) if course.welcomes == 0 => return Err(Removed::BeforeWelcome(fault)),
            End::Removed(fault) => return Err(Removed::AfterWelcome(fault)),
            End::Replaced => {
                tracing::warn!("another node host with this identity took over the link");
                REPLACED_PAUSE
            }
            End::Draining(pause) => {
                tracing::info!(?pause, "the gateway is restarting");
                pause.min(REPLACED_PAUSE) + course.backoff.next(random())
            }
            End::Broken(fault) => {
                let pause = course.backoff.next(random());
                tracing::warn!(%fault, hint = fault.hint, ?pause, "no link to the gateway, trying again");
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.cancelled() => return Ok(()),
        }
    }
}

/// One connection, from dialling to its end.
async fn once(
    node: &Arc<Node>,
    paired: &mut Paired,
    course: &mut Course,
    stopping: &CancellationToken,
) -> End {
    // Before the hello: what ends after its inventory was made is told.
    let ends = node.ends();
    let connected = async {
        match connect(node, paired).await {
            Ok(connected) => Ok(connected),
            Err(fault) => Err(explain(paired, fault).await),
        }
    };
    let connected = tokio::select! {
        connected = connected => connected,
        () = stopping.cancelled() => return End::Stopping,
    };
    let (outbox, frames, welcome) = match connected {
        Ok(connected) => connected,
        Err(end) => return end,
    };
    let since = tokio::time::Instant::now();
    course.welcomes += 1;
    node.door.name_skills(welcome.skill_bins.clone());
    if !welcome.display_name.is_empty() {
        node.door.call_it(&welcome.display_name);
    }
    tracing::info!(gateway = paired.address, name = welcome.display_name, "connected");
    node.announce(&format!(
        "node-host: connected to {} as {} ({})",
        paired.address,
        welcome.display_name,
        welcome.node_id.get(..12).unwrap_or(&welcome.node_id)
    ));
    node.sessions.set_linked(true);
    let end = serve(node, paired, (outbox, frames), ends, &welcome, stopping).await;
    node.sessions.set_linked(false);
    // A link that breaks as soon as it is up is no reason to hurry.
    if since.elapsed() >= STABLE_AFTER {
        course.backoff.reset();
    }
    match end {
        End::Broken(fault) => tokio::select! {
            end = explain(paired, fault) => end,
            () = stopping.cancelled() => End::Stopping,
        },
        other => other,
    }
}

type Connected = (NodeOutbox, Streaming<pb::GatewayFrame>, pb::Welcome);

async fn connect(node: &Node, paired: &Paired) -> Result<Connected, Fault> {
    let tls = identity::client_config(Pin::Fingerprint(paired.gateway), Some(&paired.identity))
        .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
    let dialled = dial(&paired.address, tls).await.map_err(|e| Fault::from(&e))?;
    let (outbox, stream) = Outbox::new();
    let hello = Frame::Hello(pb::Hello {
        protocol: Some(facts::protocol()),
        display_name: node.display_name.clone(),
        facts: Some(facts::host_facts(&node.door.path_env())),
        commands: facts::COMMANDS.map(str::to_owned).to_vec(),
        inventory: convert::sessions(&node.sessions.list()),
        clock_unix_ms: facts::clock_unix_ms(),
        security: node.default_policy().0.into(),
        ask: node.default_policy().1.into(),
    });
    // The queue is new and empty.
    let _ = outbox.try_control(pb::NodeFrame { frame: Some(hello) });
    let mut client = NodeLinkClient::new(dialled.channel).max_decoding_message_size(FRAME_MAX);
    let mut frames = client.open(stream).await.map_err(|status| lost(&status))?.into_inner();
    let first = tokio::time::timeout(WELCOME_TIMEOUT, frames.message())
        .await
        .map_err(|_| Fault::new(ErrorCode::Timeout, "the gateway did not answer the hello"))?
        .map_err(|status| lost(&status))?;
    match first.and_then(|frame| frame.frame) {
        Some(gateway_frame::Frame::Welcome(welcome)) => Ok((outbox, frames, welcome)),
        Some(gateway_frame::Frame::Reject(pb::Reject { fault: Some(fault) })) => Err(fault.into()),
        _ => Err(Fault::new(ErrorCode::Disconnected, "the gateway closed the link")),
    }
}

async fn serve(
    node: &Arc<Node>,
    paired: &mut Paired,
    (outbox, mut frames): (NodeOutbox, Streaming<pb::GatewayFrame>),
    mut ends: broadcast::Receiver<pb::SessionEnded>,
    welcome: &pb::Welcome,
    stopping: &CancellationToken,
) -> End {
    let link = requests::Serving::new(Arc::clone(node), outbox.clone());
    let mut renew = Box::pin(tokio::time::sleep(until(welcome.renew_at_unix_ms)));
    loop {
        let frame = tokio::select! {
            frame = frames.message() => match frame {
                Ok(Some(frame)) => frame.frame,
                Ok(None) => return End::Broken(Fault::new(ErrorCode::Disconnected, "the gateway closed the link")),
                Err(status) => return End::Broken(lost(&status)),
            },
            () = &mut renew => {
                match paired.renewal_request() {
                    Ok(csr_der) => {
                        let frame = Frame::Renew(pb::RenewRequest { csr_der: csr_der.into() });
                        if outbox.control(pb::NodeFrame { frame: Some(frame) }).await.is_err() {
                            return End::Broken(Fault::new(ErrorCode::Disconnected, "the link is closed"));
                        }
                    }
                    Err(fault) => tracing::error!(%fault, "no renewal request could be made"),
                }
                renew.as_mut().reset(tokio::time::Instant::now() + RENEW_RETRY);
                continue;
            }
            ended = ends.recv() => {
                let Ok(ended) = ended else {
                    return End::Broken(Fault::new(ErrorCode::Disconnected, "the gateway reads too slowly"));
                };
                let frame = pb::NodeFrame { frame: Some(Frame::SessionEnded(ended)) };
                if outbox.control(frame).await.is_err() {
                    return End::Broken(Fault::new(ErrorCode::Disconnected, "the link is closed"));
                }
                continue;
            }
            () = stopping.cancelled() => {
                let frame = Frame::Draining(pb::Draining { come_back_in_ms: COME_BACK_IN_MS });
                // Best effort: the gateway sees the end of the stream anyway.
                let _ = outbox.control(pb::NodeFrame { frame: Some(frame) }).await;
                drop(link);
                drop(outbox);
                // Lets the frame leave: the gateway ends the stream when ours ends.
                let _ = tokio::time::timeout(Duration::from_millis(500), frames.message()).await;
                return End::Stopping;
            }
        };
        match frame {
            Some(gateway_frame::Frame::Renewed(reply)) => match paired.renewed(reply) {
                Ok(renew_at) => {
                    tracing::info!("certificate renewed");
                    renew.as_mut().reset(tokio::time::Instant::now() + until(renew_at));
                }
                Err(fault) => tracing::error!(%fault, "certificate not renewed"),
            },
            Some(gateway_frame::Frame::Draining(notice)) => {
                return End::Draining(Duration::from_millis(notice.come_back_in_ms));
            }
            Some(gateway_frame::Frame::Replaced(_)) => return End::Replaced,
            Some(other) => {
                if let Err(fault) = link.on_frame(other) {
                    return End::Broken(fault);
                }
            }
            // A kind of frame that this version does not know.
            None => {}
        }
    }
}

/// A refused certificate only shows as a closed connection, so the gateway is
/// asked without one where this node stands.
async fn explain(paired: &Paired, fault: Fault) -> End {
    let may_be_removed = matches!(
        fault.code,
        ErrorCode::Unauthenticated
            | ErrorCode::NodeRemoved
            | ErrorCode::NotPaired
            | ErrorCode::Disconnected
            | ErrorCode::GatewayUnreachable
    );
    if !may_be_removed {
        return End::Broken(fault);
    }
    match standing(paired).await {
        Ok(pb::standing_reply::State::Removed | pb::standing_reply::State::Unknown) => {
            paired.forget_certificate();
            End::Removed(
                Fault::new(
                    ErrorCode::NodeRemoved,
                    format!("the gateway {} does not know this node any more", paired.address),
                )
                .hint("run `node-host run` again to ask for pairing anew"),
            )
        }
        Ok(_) | Err(_) => End::Broken(fault),
    }
}

/// A broken link in words. A TLS alert hides in the status' causes.
fn lost(status: &Status) -> Fault {
    if status.metadata().contains_key(fault::CODE_KEY) {
        return Fault::from_status(status);
    }
    let problem = std::error::Error::source(status).and_then(identity::TlsProblem::of_chain);
    match problem {
        Some(identity::TlsProblem::Refused) => {
            Fault::new(ErrorCode::Unauthenticated, "the gateway refused this node's certificate")
        }
        Some(identity::TlsProblem::Clock { detail }) => {
            Fault::new(ErrorCode::ClockSkew, format!("the gateway refused this node's certificate: {detail}"))
                .hint("compare the clocks of both machines")
        }
        Some(problem) => Fault::new(ErrorCode::Disconnected, format!("the link was lost: {problem}")),
        None => Fault::new(ErrorCode::Disconnected, format!("the link was lost: {}", status.message())),
    }
}

fn until(unix_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(unix_ms.saturating_sub(facts::clock_unix_ms())).unwrap_or(0))
}

pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // Without entropy the delays lose their jitter, nothing else.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_le_bytes(bytes)
}
