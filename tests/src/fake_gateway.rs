//! A gateway made by hand: pairs any node, and sends it what a real gateway
//! would refuse to send.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gateway::server::peer::{Guarded, Peer, Proof};
use identity::{Authority, ClientGate, Role, ServerCertificate, Subject};
use proto::v1::enrolment_server::{Enrolment, EnrolmentServer};
use proto::v1::node_link_server::{NodeLink, NodeLinkServer};
use proto::v1::reply::Answer;
use proto::v1::request::Command;
use proto::v1::{self as pb, gateway_frame, node_frame};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::eventually::PATIENCE;
use crate::runtime;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A listening fake.
#[derive(Debug)]
pub struct FakeGateway {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its pin.
    pub fingerprint: String,
    links: Mutex<mpsc::Receiver<FakeLink>>,
    stop: CancellationToken,
}

/// A node that has said hello.
#[derive(Debug)]
pub struct FakeLink {
    /// What it said.
    pub hello: pb::Hello,
    to_node: mpsc::Sender<Result<pb::GatewayFrame, Status>>,
    from_node: Streaming<pb::NodeFrame>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Everybody;

impl ClientGate for Everybody {
    fn admits(&self, _subject: &Subject) -> bool {
        true
    }
}

#[derive(Debug)]
struct Service {
    authority: Authority,
    links: mpsc::Sender<FakeLink>,
}

impl FakeGateway {
    /// A fake that takes every node.
    pub fn start() -> Self {
        crate::block_on(Self::listen())
    }

    async fn listen() -> Self {
        let now = OffsetDateTime::now_utc();
        let authority = Authority::create(now).expect("an authority");
        let fingerprint = authority.fingerprint().to_hex();
        let server = authority.issue_server(DAY, now).expect("a server certificate");
        let certificate = Arc::new(ServerCertificate::new(server).expect("a usable certificate"));
        let tls = identity::server_config(authority.cert_der(), certificate, Arc::new(Everybody));
        let acceptor = TlsAcceptor::from(tls.expect("a configuration"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (accepted, incoming) = mpsc::channel(8);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        runtime().spawn(async move {
            loop {
                let stream = tokio::select! {
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted.expect("a connection").0,
                };
                if let Ok(tls) = acceptor.accept(stream).await {
                    let peer = Peer { address: None, proof: Proof::Nothing };
                    let _ = accepted
                        .send(Ok::<_, std::io::Error>(Guarded::plain(tls, peer, stopped.clone())))
                        .await;
                }
            }
        });
        let (links, received) = mpsc::channel(8);
        let service = Arc::new(Service { authority, links });
        let serving = tonic::transport::Server::builder()
            .add_service(EnrolmentServer::from_arc(Arc::clone(&service)))
            .add_service(NodeLinkServer::from_arc(service))
            .serve_with_incoming_shutdown(ReceiverStream::new(incoming), stop.clone().cancelled_owned());
        runtime().spawn(serving);
        Self { address, fingerprint, links: Mutex::new(received), stop }
    }

    /// The next node that says hello.
    pub fn link(&self) -> FakeLink {
        crate::block_on(async {
            let mut links = self.links.lock().await;
            tokio::time::timeout(PATIENCE, links.recv()).await.expect("a hello in time").expect("a link")
        })
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl FakeLink {
    /// Asks the node and waits for its answer; other frames are passed over.
    pub fn ask(&mut self, command: Command) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = pb::Request { id, command: Some(command) };
        let frame = pb::GatewayFrame { frame: Some(gateway_frame::Frame::Request(request)) };
        let asked = async {
            self.to_node.send(Ok(frame)).await.expect("an open link");
            loop {
                let frame = self.from_node.message().await.expect("an open link").expect("an open link");
                if let Some(node_frame::Frame::Reply(reply)) = frame.frame
                    && reply.id == id
                {
                    return reply.answer.expect("an answer");
                }
            }
        };
        crate::block_on(async { tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time") })
    }

    /// The next frame of the node, unless its stream is over.
    pub fn next_frame(&mut self) -> Option<node_frame::Frame> {
        let next = async { self.from_node.message().await.ok().flatten().and_then(|frame| frame.frame) };
        crate::block_on(async { tokio::time::timeout(PATIENCE, next).await.expect("a frame in time") })
    }

    /// Asks for a run: the session, or the refusal.
    pub fn run(&mut self, run: pb::RunRequest) -> Result<pb::RunStarted, pb::Fault> {
        started(self.ask(Command::Run(run)))
    }

    /// Asks for runs without waiting in between; what became of each, in their order.
    pub fn run_together(&mut self, runs: Vec<pb::RunRequest>) -> Vec<Result<pb::RunStarted, pb::Fault>> {
        let ids: Vec<u64> = runs.iter().map(|_| self.next.fetch_add(1, Ordering::Relaxed)).collect();
        let mut answers = HashMap::new();
        let asked = async {
            for (id, run) in ids.iter().zip(runs) {
                let request = pb::Request { id: *id, command: Some(Command::Run(run)) };
                let frame = pb::GatewayFrame { frame: Some(gateway_frame::Frame::Request(request)) };
                self.to_node.send(Ok(frame)).await.expect("an open link");
            }
            while answers.len() < ids.len() {
                let frame = self.from_node.message().await.expect("an open link").expect("an open link");
                if let Some(node_frame::Frame::Reply(reply)) = frame.frame
                    && ids.contains(&reply.id)
                {
                    answers.insert(reply.id, reply.answer.expect("an answer"));
                }
            }
        };
        crate::block_on(async { tokio::time::timeout(PATIENCE, asked).await.expect("answers in time") });
        ids.iter().map(|id| started(answers.remove(id).expect("an answer"))).collect()
    }

    /// Asks for a run as a gateway that can ask a person: the plan to decide about, or the refusal.
    pub fn plan(&mut self, run: pb::RunRequest) -> Result<pb::Plan, pb::Fault> {
        match self.ask(Command::Run(pb::RunRequest { can_ask: true, ..run })) {
            Answer::Run(pb::RunReply { outcome: Some(pb::run_reply::Outcome::NeedsApproval(plan)) }) => {
                Ok(plan)
            }
            Answer::Run(pb::RunReply { outcome: Some(pb::run_reply::Outcome::Refused(fault)) })
            | Answer::Fault(fault) => Err(fault),
            other => panic!("nobody is to be asked: {other:?}"),
        }
    }

    /// How many sessions the node knows, ended ones too.
    pub fn sessions(&mut self) -> usize {
        match self.ask(Command::ListSessions(pb::ListSessionsRequest::default())) {
            Answer::ListSessions(reply) => reply.sessions.len(),
            other => panic!("no list of sessions: {other:?}"),
        }
    }
}

fn started(answer: Answer) -> Result<pb::RunStarted, pb::Fault> {
    match answer {
        Answer::Run(pb::RunReply { outcome: Some(pb::run_reply::Outcome::Started(started)) }) => Ok(started),
        Answer::Run(pb::RunReply { outcome: Some(pb::run_reply::Outcome::Refused(fault)) })
        | Answer::Fault(fault) => Err(fault),
        other => panic!("no answer to a run: {other:?}"),
    }
}

/// A run that says everything a node wants to be said.
pub fn full_run(run_id: &str, words: &[&str]) -> pb::RunRequest {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    pb::RunRequest {
        run_id: run_id.to_owned(),
        invocation: Some(pb::Invocation { form: Some(pb::invocation::Form::Argv(pb::Argv { words })) }),
        stdin: pb::Stdin::Closed.into(),
        deadline: Some(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(60_000)) }),
        security: pb::Security::Full.into(),
        ask: pb::Ask::Off.into(),
        ..pb::RunRequest::default()
    }
}

#[tonic::async_trait]
impl Enrolment for Service {
    async fn enrol(&self, request: Request<pb::EnrolRequest>) -> Result<Response<pb::EnrolReply>, Status> {
        let request = request.into_inner();
        let signed = self
            .authority
            .sign(&request.csr_der, Role::Node, DAY, OffsetDateTime::now_utc())
            .map_err(|e| Status::invalid_argument(e.to_string()))?;
        let millis = |moment: OffsetDateTime| moment.unix_timestamp() * 1000;
        let approved = pb::EnrolApproved {
            node_id: signed.fingerprint.to_hex(),
            display_name: request.display_name,
            certificate: Some(pb::IssuedCertificate {
                certificate_der: signed.der.to_vec().into(),
                authority_der: self.authority.cert_der().to_vec().into(),
                renew_at_unix_ms: millis(signed.not_after),
                not_after_unix_ms: millis(signed.not_after),
            }),
        };
        Ok(Response::new(pb::EnrolReply { outcome: Some(pb::enrol_reply::Outcome::Approved(approved)) }))
    }

    async fn standing(
        &self,
        _request: Request<pb::StandingRequest>,
    ) -> Result<Response<pb::StandingReply>, Status> {
        let state = pb::standing_reply::State::Paired.into();
        Ok(Response::new(pb::StandingReply { state, clock_unix_ms: 0 }))
    }
}

#[tonic::async_trait]
impl NodeLink for Service {
    type OpenStream = Pin<Box<dyn Stream<Item = Result<pb::GatewayFrame, Status>> + Send>>;

    async fn open(
        &self,
        request: Request<Streaming<pb::NodeFrame>>,
    ) -> Result<Response<Self::OpenStream>, Status> {
        let mut from_node = request.into_inner();
        let (to_node, stream) = mpsc::channel(16);
        let links = self.links.clone();
        // The answer's headers must leave before the node's first frame is
        // waited for.
        tokio::spawn(async move {
            let Ok(Some(pb::NodeFrame { frame: Some(node_frame::Frame::Hello(hello)) })) =
                from_node.message().await
            else {
                return;
            };
            let welcome = pb::Welcome {
                protocol: proto::PROTOCOL_MAX,
                display_name: hello.display_name.clone(),
                node_id: "f".repeat(64),
                renew_at_unix_ms: i64::MAX / 2,
                ..pb::Welcome::default()
            };
            let frame = pb::GatewayFrame { frame: Some(gateway_frame::Frame::Welcome(welcome)) };
            if to_node.send(Ok(frame)).await.is_ok() {
                let link = FakeLink { hello, to_node, from_node, next: AtomicU64::new(1) };
                // Nobody waits for it when the story is over.
                let _ = links.send(link).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}
