//! Pairing, from this side: ask, show the words, wait, store.

use std::time::Duration;

use config::StateDir;
use fault::{ErrorCode, Fault};
use identity::{AuthWords, Fingerprint, Pin, PrivateKey};
use link::{Backoff, dial::dial};
use proto::v1::{self as pb, enrol_reply::Outcome, enrolment_client::EnrolmentClient};
use tokio_util::sync::CancellationToken;

use crate::facts;
use crate::keys::Paired;
use crate::link::random;
use crate::node::Node;

/// How long the gateway may keep one question open.
const WAIT_MS: u64 = 15_000;
/// A question that is unanswered for longer is asked anew.
const CALL_TIMEOUT: Duration = Duration::from_secs(25);
/// Answer to a question about this node's standing.
const STANDING_TIMEOUT: Duration = Duration::from_secs(5);

/// Whom to ask, and how.
#[derive(Debug, Clone)]
pub(crate) struct Enrolment {
    /// HOST:PORT.
    pub address: String,
    /// What is known of the gateway's identity.
    pub pin: Pin,
    /// Token of an invite; empty: a person decides.
    pub token: String,
}

/// Asks until a decision is there. `None`: the node host is stopping.
pub(crate) async fn enrol(
    node: &Node,
    state: &StateDir,
    key: &PrivateKey,
    enrolment: &Enrolment,
    stopping: &CancellationToken,
) -> Result<Option<Paired>, Fault> {
    let mut backoff = Backoff::default();
    let mut shown = None;
    loop {
        let asked = tokio::select! {
            asked = ask(node, key, enrolment) => asked,
            () = stopping.cancelled() => return Ok(None),
        };
        let pause = match asked {
            Ok((Outcome::Approved(approved), gateway)) => {
                return Paired::store(state, &enrolment.address, gateway, key, &approved).map(Some);
            }
            Ok((Outcome::Pending(pending), gateway)) => {
                backoff.reset();
                if shown != Some((pending.request_id.clone(), gateway)) {
                    announce(node, &pending, gateway, key).await;
                    shown = Some((pending.request_id, gateway));
                }
                Duration::ZERO
            }
            Err(fault) if is_final(fault.code) => return Err(fault),
            Err(fault) => {
                let pause = backoff.next(random());
                tracing::warn!(%fault, hint = fault.hint, ?pause, "pairing request not delivered, trying again");
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.cancelled() => return Ok(None),
        }
    }
}

async fn ask(node: &Node, key: &PrivateKey, enrolment: &Enrolment) -> Result<(Outcome, Fingerprint), Fault> {
    let internal = |e: identity::IdentityError| Fault::new(ErrorCode::Internal, e.to_string());
    let tls = identity::client_config(enrolment.pin, None).map_err(internal)?;
    let dialled = dial(&enrolment.address, tls).await.map_err(|e| Fault::from(&e))?;
    let request = pb::EnrolRequest {
        csr_der: key.csr_der().map_err(internal)?.into(),
        display_name: node.display_name.clone(),
        facts: Some(facts::host_facts(&node.door.path_env())),
        protocol: Some(facts::protocol()),
        clock_unix_ms: facts::clock_unix_ms(),
        invite_token: enrolment.token.clone(),
        wait_ms: WAIT_MS,
    };
    let mut client = EnrolmentClient::new(dialled.channel);
    let reply = tokio::time::timeout(CALL_TIMEOUT, client.enrol(request))
        .await
        .map_err(|_| Fault::new(ErrorCode::Timeout, "the gateway did not answer the pairing request"))?
        .map_err(|status| Fault::from_status(&status))?
        .into_inner();
    let outcome = reply
        .outcome
        .ok_or_else(|| Fault::new(ErrorCode::Internal, "an empty answer to a pairing request"))?;
    Ok((outcome, dialled.authority))
}

async fn announce(node: &Node, pending: &pb::EnrolPending, gateway: Fingerprint, key: &PrivateKey) {
    let own = key.fingerprint();
    // Slow on purpose, so not on the event loop.
    let words = tokio::task::spawn_blocking(move || AuthWords::derive(&gateway, &own).to_string()).await;
    let id = &pending.request_id;
    node.announce(&format!("node-host: pairing request {id} is waiting for a person"));
    if let Ok(words) = words {
        node.announce(&format!("node-host: words: {words}"));
    }
    node.announce(&format!(
        "node-host: on the gateway, if it shows the same words: gateway nodes approve {id}"
    ));
}

/// Where this node stands, asked without a certificate.
pub(crate) async fn standing(paired: &Paired) -> Result<pb::standing_reply::State, Fault> {
    let tls = identity::client_config(Pin::Fingerprint(paired.gateway), None)
        .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
    let ask = async {
        let dialled = dial(&paired.address, tls).await.map_err(|e| Fault::from(&e))?;
        let request = pb::StandingRequest { fingerprint: paired.identity.key.fingerprint().to_hex() };
        EnrolmentClient::new(dialled.channel)
            .standing(request)
            .await
            .map(|reply| reply.into_inner().state())
            .map_err(|status| Fault::from_status(&status))
    };
    tokio::time::timeout(STANDING_TIMEOUT, ask).await.unwrap_or_else(|_| {
        Err(Fault::new(ErrorCode::Timeout, "the gateway did not say where this node stands"))
    })
}

/// Answers that asking again does not change.
fn is_final(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RequestRejected
            | ErrorCode::InviteInvalid
            | ErrorCode::OtherAuthority
            | ErrorCode::InvalidRequest
            | ErrorCode::VersionSkew
            | ErrorCode::ClockSkew
    )
}
