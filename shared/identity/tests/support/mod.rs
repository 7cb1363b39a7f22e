//! Two TLS ends joined by buffers, and the parties of a pairing. No socket, no clock of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use identity::{
    Authority, ClientGate, ClientIdentity, Pin, PrivateKey, Role, ServerCertificate, Subject, TlsProblem,
    client_config, presented_authority, server_config, server_name,
};
use rustls::{ClientConfig, ClientConnection, Connection, HandshakeKind, ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use time::OffsetDateTime;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// More passes than any handshake needs.
const MAX_PASSES: usize = 20;

pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Admits every subject, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Closed,
}

impl ClientGate for Gate {
    fn admits(&self, _subject: &Subject) -> bool {
        *self == Self::Open
    }
}

/// A gateway that listens.
pub(crate) struct Gateway {
    pub(crate) authority: Authority,
    pub(crate) certificate: Arc<ServerCertificate>,
    pub(crate) config: Arc<ServerConfig>,
}

impl Gateway {
    pub(crate) fn new(gate: Gate) -> Self {
        Self::started(gate, now())
    }

    /// A gateway whose server certificate was made at `at`, for a day.
    pub(crate) fn started(gate: Gate, at: OffsetDateTime) -> Self {
        let authority = Authority::create(at.min(now())).unwrap();
        Self::of(authority, gate, at)
    }

    pub(crate) fn of(authority: Authority, gate: Gate, at: OffsetDateTime) -> Self {
        let certificate = ServerCertificate::new(authority.issue_server(DAY, at).unwrap()).unwrap();
        let certificate = Arc::new(certificate);
        let config = server_config(authority.cert_der(), Arc::clone(&certificate), Arc::new(gate)).unwrap();
        Self { authority, certificate, config }
    }

    pub(crate) fn pin(&self) -> Pin {
        Pin::Fingerprint(self.authority.fingerprint())
    }

    /// A client whose certificate was signed at `at`, for a day.
    pub(crate) fn enrol(&self, role: Role, at: OffsetDateTime) -> ClientIdentity {
        let key = PrivateKey::generate().unwrap();
        let signed = self.authority.sign(&key.csr_der().unwrap(), role, DAY, at).unwrap();
        ClientIdentity { cert_der: signed.der, key }
    }
}

/// What both ends think at the end.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) client: Result<Finished, TlsProblem>,
    pub(crate) server: Result<Finished, TlsProblem>,
}

/// A complete handshake as one end saw it.
#[derive(Debug, PartialEq)]
pub(crate) struct Finished {
    pub(crate) kind: Option<HandshakeKind>,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) peer: Vec<CertificateDer<'static>>,
}

impl Outcome {
    /// Both ends finished; returns the client's and the server's view.
    pub(crate) fn finished(self) -> (Finished, Finished) {
        match self {
            Self { client: Ok(client), server: Ok(server) } => (client, server),
            other => panic!("handshake failed: {other:?}"),
        }
    }

    pub(crate) fn failed(self) -> (TlsProblem, TlsProblem) {
        match self {
            Self { client: Err(client), server: Err(server) } => (client, server),
            other => panic!("handshake did not fail on both sides: {other:?}"),
        }
    }
}

pub(crate) fn connect(gateway: &Gateway, pin: Pin, identity: Option<&ClientIdentity>) -> Outcome {
    handshake(&client_config(pin, identity).unwrap(), &gateway.config)
}

/// Runs a handshake until both ends have nothing more to say, alerts included.
pub(crate) fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Outcome {
    let mut client: Connection = ClientConnection::new(Arc::clone(client), server_name()).unwrap().into();
    let mut server: Connection = ServerConnection::new(Arc::clone(server)).unwrap().into();
    let (mut client_error, mut server_error) = (None, None);
    for _ in 0..MAX_PASSES {
        let forth = pass(&mut client, &mut server, &mut server_error);
        let back = pass(&mut server, &mut client, &mut client_error);
        if !forth && !back {
            let view = |error: Option<rustls::Error>, end: &Connection| match error {
                Some(error) => Err(TlsProblem::of(&error)),
                None if end.is_handshaking() => Err(TlsProblem::Other("stuck".to_owned())),
                None => Ok(Finished {
                    kind: end.handshake_kind(),
                    alpn: end.alpn_protocol().map(<[u8]>::to_vec),
                    peer: end.peer_certificates().unwrap_or_default().to_vec(),
                }),
            };
            return Outcome { client: view(client_error, &client), server: view(server_error, &server) };
        }
    }
    panic!("the handshake does not end");
}

/// Carries what `from` has to say to `to`; whether there was anything.
fn pass(from: &mut Connection, to: &mut Connection, error: &mut Option<rustls::Error>) -> bool {
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    let mut rest = wire.as_slice();
    while !rest.is_empty() && error.is_none() {
        to.read_tls(&mut rest).unwrap();
        *error = to.process_new_packets().err();
    }
    !wire.is_empty()
}

pub(crate) fn authority_behind(end: &Finished) -> identity::Fingerprint {
    presented_authority(&end.peer).unwrap()
}
