//! A node made by hand: says to a real gateway what `node-host` never would.

use fault::Fault;
use identity::{ClientIdentity, PairLink, Pin, PrivateKey};
use link::dial::dial;
use proto::v1::enrolment_client::EnrolmentClient;
use proto::v1::node_link_client::NodeLinkClient;
use proto::v1::{self as pb, gateway_frame, node_frame};
use rustls_pki_types::CertificateDer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::bed::TestBed;
use crate::eventually::PATIENCE;

/// A key that may be paired.
#[derive(Debug, Clone)]
pub struct RawNode {
    /// HOST:PORT of the gateway.
    pub address: String,
    /// What it accepts as its gateway.
    pub pin: Pin,
    /// Its key.
    pub key: PrivateKey,
    /// Its certificate, once it has one.
    pub certificate: Option<CertificateDer<'static>>,
}

/// An open link; dropping it ends it.
#[derive(Debug)]
pub struct RawLink {
    _to_gateway: mpsc::Sender<pb::NodeFrame>,
    answers: Streaming<pb::GatewayFrame>,
}

impl RawNode {
    /// An unpaired node with a fresh key.
    pub fn new(bed: &TestBed) -> Self {
        Self {
            address: bed.address().to_string(),
            pin: Pin::Fingerprint(bed.fingerprint().parse().expect("a fingerprint")),
            key: PrivateKey::generate().expect("a key"),
            certificate: None,
        }
    }

    /// A node that has redeemed an invite.
    pub async fn paired(bed: &TestBed) -> Self {
        let mut operator = bed.operator().await;
        let invite = operator.invite(pb::InviteRequest::default()).await.expect("an invite").into_inner();
        let link: PairLink = invite.link.parse().expect("a pairing link");
        let mut node = Self::new(bed);
        let reply = node.enrol(pb::EnrolRequest { invite_token: link.token, ..node.request() }).await;
        match reply.expect("an answer").outcome {
            Some(pb::enrol_reply::Outcome::Approved(approved)) => {
                let issued = approved.certificate.expect("a certificate");
                node.certificate = Some(CertificateDer::from(issued.certificate_der.to_vec()));
            }
            other => panic!("not approved: {other:?}"),
        }
        node
    }

    /// A node with a certificate made from the files of a real one.
    pub fn of_files(bed: &TestBed, node_dir: &std::path::Path) -> Self {
        let pem = std::fs::read_to_string(node_dir.join("node/node-key.pem")).expect("the node's key");
        let der = std::fs::read(node_dir.join("node/node-cert.pem")).expect("the node's certificate");
        Self {
            key: PrivateKey::from_pem(&pem).expect("a key"),
            certificate: Some(CertificateDer::from(der)),
            ..Self::new(bed)
        }
    }

    /// A sane request for a certificate.
    pub fn request(&self) -> pb::EnrolRequest {
        pb::EnrolRequest {
            csr_der: self.key.csr_der().expect("a request").into(),
            display_name: "raw".to_owned(),
            facts: None,
            protocol: Some(pb::ProtocolRange { min: proto::PROTOCOL_MIN, max: proto::PROTOCOL_MAX }),
            clock_unix_ms: now_ms(),
            invite_token: String::new(),
            wait_ms: 0,
        }
    }

    /// Asks for a certificate.
    pub async fn enrol(&self, request: pb::EnrolRequest) -> Result<pb::EnrolReply, Fault> {
        let tls = identity::client_config(self.pin, None).expect("a configuration");
        let dialled = dial(&self.address, tls).await.map_err(|e| Fault::from(&e))?;
        let reply = EnrolmentClient::new(dialled.channel).enrol(request).await;
        reply.map(tonic::Response::into_inner).map_err(|status| Fault::from_status(&status))
    }

    /// A sane first frame.
    pub fn hello(&self) -> pb::Hello {
        pb::Hello {
            protocol: Some(pb::ProtocolRange { min: proto::PROTOCOL_MIN, max: proto::PROTOCOL_MAX }),
            display_name: "raw".to_owned(),
            clock_unix_ms: now_ms(),
            security: pb::Security::Full.into(),
            ask: pb::Ask::Off.into(),
            ..pb::Hello::default()
        }
    }

    fn identity(&self) -> ClientIdentity {
        let cert_der = self.certificate.clone().expect("a certificate");
        ClientIdentity { cert_der, key: self.key.clone() }
    }

    /// Says hello: a welcome, or the typed refusal.
    pub async fn link(&self, hello: pb::Hello) -> Result<(pb::Welcome, RawLink), Fault> {
        let tls = identity::client_config(self.pin, Some(&self.identity())).expect("a configuration");
        let dialled = dial(&self.address, tls).await.map_err(|e| Fault::from(&e))?;
        let (frames, stream) = mpsc::channel(4);
        let first = pb::NodeFrame { frame: Some(node_frame::Frame::Hello(hello)) };
        frames.send(first).await.expect("room for the first frame");
        let mut client = NodeLinkClient::new(dialled.channel);
        let opened = client.open(ReceiverStream::new(stream)).await;
        let mut answers = opened.map_err(|status| Fault::from_status(&status))?.into_inner();
        let first = answers.message().await.map_err(|status| Fault::from_status(&status))?;
        match first.and_then(|frame| frame.frame) {
            Some(gateway_frame::Frame::Welcome(welcome)) => {
                Ok((welcome, RawLink { _to_gateway: frames, answers }))
            }
            Some(gateway_frame::Frame::Reject(reject)) => Err(reject.fault.expect("a reason").into()),
            other => panic!("neither welcome nor reject: {other:?}"),
        }
    }
}

impl RawLink {
    /// The next frame of the gateway, unless the stream is over.
    pub async fn next_frame(&mut self) -> Option<gateway_frame::Frame> {
        let next = async { self.answers.message().await.ok().flatten().and_then(|frame| frame.frame) };
        tokio::time::timeout(PATIENCE, next).await.expect("a frame in time")
    }
}

/// The clock of this machine.
fn now_ms() -> i64 {
    i64::try_from(time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).expect("a sane clock")
}
