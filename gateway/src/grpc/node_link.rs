//! The gateway's side of a node's long stream.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use link::{Outbox, OutboxStream};
use proto::v1::{self as pb, gateway_frame::Frame, node_frame, node_link_server::NodeLink};
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use super::Service;
use super::auth::peer;
use super::enrolment::{bounded, check_clock, check_versions};
use crate::clock;
use crate::config_cache::SkillBins;
use crate::node_link::Link;
use crate::registry::HelloFacts;
use crate::runs;

/// The first frame must be there by then.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the round trip is measured.
const PING_EVERY: Duration = Duration::from_secs(5);
/// What a stopping gateway tells its nodes.
const COME_BACK_IN_MS: u64 = 500;

#[tonic::async_trait]
impl NodeLink for Service {
    type OpenStream = Pin<Box<dyn Stream<Item = Result<pb::GatewayFrame, Status>> + Send>>;

    async fn open(
        &self,
        request: Request<Streaming<pb::NodeFrame>>,
    ) -> Result<Response<Self::OpenStream>, Status> {
        let node = self.require_node(&request)?;
        let address = peer(&request)?.address;
        let (outbox, stream): (_, OutboxStream<pb::GatewayFrame>) = Outbox::new();
        let service = self.clone();
        tokio::spawn(async move { service.serve_link(node, address, request.into_inner(), outbox).await });
        Ok(Response::new(Box::pin(stream.map(Ok))))
    }
}

impl Service {
    async fn serve_link(
        &self,
        node: Fingerprint,
        address: Option<SocketAddr>,
        mut frames: Streaming<pb::NodeFrame>,
        outbox: Outbox<pb::GatewayFrame>,
    ) {
        let (link, skills) = match self.greet(node, address, &mut frames, &outbox).await {
            Ok(greeted) => greeted,
            Err(fault) => {
                tracing::warn!(node = %node, %fault, "link refused");
                // The stream may be gone already; then nobody is left to tell.
                let _ = outbox.control(frame(Frame::Reject(pb::Reject { fault: Some(fault.into()) }))).await;
                return;
            }
        };
        drop(outbox);
        let why = self.pump(&link, &mut frames, skills).await;
        tracing::info!(node = %node, connection = link.connection, %why, "node disconnected");
        link.end(why);
        self.0.registry.detach(&link, clock::now_ms());
    }

    /// Hello and welcome; on success the link is the node's live one. With it the list of skill programs, of which the
    /// node has heard the current one.
    async fn greet(
        &self,
        node: Fingerprint,
        address: Option<SocketAddr>,
        frames: &mut Streaming<pb::NodeFrame>,
        outbox: &Outbox<pb::GatewayFrame>,
    ) -> Result<(Arc<Link>, watch::Receiver<SkillBins>), Fault> {
        let gateway = &self.0;
        let first = tokio::time::timeout(HELLO_TIMEOUT, frames.message()).await;
        let Ok(Ok(Some(pb::NodeFrame { frame: Some(node_frame::Frame::Hello(hello)) }))) = first else {
            return Err(Fault::new(ErrorCode::InvalidRequest, "a link starts with a hello"));
        };
        let protocol = check_versions(hello.protocol.as_ref())?;
        let clock_skew_ms = check_clock(hello.clock_unix_ms)?;
        let link = Link::new(node, gateway.registry.next_link(), outbox.clone());
        let hello_facts = HelloFacts {
            commands: hello.commands.into_iter().take(64).collect(),
            clock_skew_ms,
            security: hello.security,
            ask: hello.ask,
            protocol,
        };
        let now = clock::now_ms();
        let expires = gateway.registry.describe(&node)?.certificate_not_after_unix_ms;
        let lifetime =
            i64::try_from(gateway.settings.node_certificate_lifetime.as_millis()).unwrap_or(i64::MAX);
        let mut skills = gateway.config.skill_bins();
        let skill_bins = skills.borrow_and_update().to_vec();
        link.send(Frame::Welcome(pb::Welcome {
            protocol,
            gateway_version: env!("CARGO_PKG_VERSION").to_owned(),
            node_id: node.to_hex(),
            display_name: gateway.registry.name(&node),
            clock_unix_ms: now,
            renew_at_unix_ms: expires - lifetime / 3,
            skill_bins,
        }));
        let facts = bounded(hello.facts.unwrap_or_default());
        if let Some(older) = gateway.registry.attach(&link, address, facts, hello_facts, now)? {
            older.send(Frame::Replaced(pb::Replaced {}));
            older.end(Fault::new(ErrorCode::LinkReplaced, "a newer link of this node took over"));
        }
        tracing::info!(node = %node, connection = link.connection, "node connected");
        gateway.tasks.inventory(gateway, &node, &hello.inventory);
        // What ended while no link was up.
        for session in hello.inventory {
            runs::ended(
                gateway,
                node,
                pb::SessionEnded { session: Some(session), tail: bytes::Bytes::new() },
            );
        }
        Ok((link, skills))
    }

    /// Passes frames on until the link is over; yields why.
    async fn pump(
        &self,
        link: &Arc<Link>,
        frames: &mut Streaming<pb::NodeFrame>,
        mut skills: watch::Receiver<SkillBins>,
    ) -> Fault {
        let lost = crate::node_link::link_lost;
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
        link.ping();
        let mut draining = None;
        loop {
            tokio::select! {
                next = frames.message() => match next {
                    Ok(Some(pb::NodeFrame { frame: Some(next) })) => match next {
                        node_frame::Frame::Renew(renew) => link.send(Frame::Renewed(self.renew(link, &renew))),
                        node_frame::Frame::Draining(notice) => {
                            draining = Some(Fault::new(
                                ErrorCode::Disconnected,
                                format!("the node host is restarting, back in {} ms", notice.come_back_in_ms),
                            ));
                        }
                        node_frame::Frame::SessionEnded(ended) => runs::ended(&self.0, link.node, ended),
                        node_frame::Frame::Hello(_) => {
                            return Fault::new(ErrorCode::InvalidRequest, "a second hello on one link");
                        }
                        other => link.on_frame(other),
                    },
                    // A kind of frame that this version does not know.
                    Ok(Some(pb::NodeFrame { frame: None })) => {}
                    Ok(None) => return draining.unwrap_or_else(lost),
                    Err(status) => {
                        tracing::debug!(%status, "link read failed");
                        return draining.unwrap_or_else(lost);
                    }
                },
                () = link.closed() => return lost(),
                Ok(()) = skills.changed() => {
                    let names = skills.borrow_and_update().to_vec();
                    link.send(Frame::SkillBins(pb::SkillBins { names }));
                }
                _ = tick.tick() => {
                    link.ping();
                    if let Some(fault) = self.expired(link) {
                        return fault;
                    }
                }
                () = self.0.stopping.cancelled() => {
                    link.send(Frame::Draining(pb::Draining { come_back_in_ms: COME_BACK_IN_MS }));
                    return Fault::new(ErrorCode::Draining, "the gateway is stopping")
                        .hint("sessions go on on their nodes; attach again when it is back");
                }
            }
        }
    }

    fn renew(&self, link: &Link, request: &pb::RenewRequest) -> pb::RenewReply {
        let outcome = match self.0.certify_node(&link.node, &request.csr_der) {
            Ok(issued) => pb::renew_reply::Outcome::Issued(issued),
            Err(fault) => {
                tracing::warn!(node = %link.node, %fault, "renewal refused");
                pb::renew_reply::Outcome::Refused(fault.into())
            }
        };
        pb::RenewReply { outcome: Some(outcome) }
    }

    /// A connection does not outlive the certificates of its node.
    fn expired(&self, link: &Link) -> Option<Fault> {
        let node = self.0.registry.describe(&link.node).ok()?;
        (clock::now_ms() > node.certificate_not_after_unix_ms).then(|| {
            Fault::new(ErrorCode::Unauthenticated, "the node's certificate expired and was not renewed")
        })
    }
}

fn frame(frame: Frame) -> pb::GatewayFrame {
    pb::GatewayFrame { frame: Some(frame) }
}
