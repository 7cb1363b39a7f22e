//! Enrolment: how a machine without a certificate gets one.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::{AuthWords, Fingerprint};
use proto::v1::{self as pb, enrol_reply::Outcome, enrolment_server::Enrolment};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status};

use super::{Service, auth::peer};
use crate::clock;
use crate::pairing::Knock;

/// Longest wait for a decision in one call; the node asks again.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Longest text of each fact.
const FACT_MAX: usize = 4096;
/// Clocks further apart than this make certificates invalid: they are
/// back-dated by an hour.
pub(super) const SKEW_MAX_MS: i64 = 60 * 60 * 1000;

#[tonic::async_trait]
impl Enrolment for Service {
    async fn enrol(&self, request: Request<pb::EnrolRequest>) -> Result<Response<pb::EnrolReply>, Status> {
        let address = peer(&request)?.address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |a| a.ip());
        Ok(Response::new(self.enrol_from(address, request.into_inner()).await?))
    }

    async fn standing(
        &self,
        request: Request<pb::StandingRequest>,
    ) -> Result<Response<pb::StandingReply>, Status> {
        let key: Fingerprint = request
            .into_inner()
            .fingerprint
            .parse()
            .map_err(|_| Fault::new(ErrorCode::InvalidRequest, "malformed fingerprint"))?;
        let state = self.0.registry.standing(&key);
        Ok(Response::new(pb::StandingReply { state: state.into(), clock_unix_ms: clock::now_ms() }))
    }
}

impl Service {
    async fn enrol_from(&self, address: IpAddr, request: pb::EnrolRequest) -> Result<pb::EnrolReply, Fault> {
        check_versions(request.protocol.as_ref())?;
        check_clock(request.clock_unix_ms)?;
        let key = identity_of(&request.csr_der)?;
        let facts = bounded(request.facts.unwrap_or_default());
        let gateway = &self.0;

        if !request.invite_token.is_empty() && !gateway.registry.is_paired(&key) {
            let digest: [u8; 32] = Sha256::digest(request.invite_token.as_bytes()).into();
            let now = clock::now_ms();
            let invite =
                gateway.store.take_invite(&digest, now).map_err(crate::registry::store_fault)?.ok_or_else(
                    || {
                        Fault::new(
                            ErrorCode::InviteInvalid,
                            "this pairing link was used, has expired or is not ours",
                        )
                        .hint("make a new one: `gateway nodes invite`")
                    },
                )?;
            let name =
                if invite.display_name.is_empty() { &request.display_name } else { &invite.display_name };
            gateway.registry.pair(key, name, &facts, now)?;
            gateway.pairing.lock().forget(&key);
            tracing::info!(node = %key, "paired by invite");
        }

        let deadline = Instant::now() + Duration::from_millis(request.wait_ms).min(WAIT_MAX);
        let mut changes = gateway.registry.changes();
        let mut words = String::new();
        loop {
            changes.borrow_and_update();
            // A paired key that asks again lost its certificate: the request
            // is signed with that very key, so it may have another.
            if gateway.registry.is_paired(&key) {
                let certificate = gateway.certify_node(&key, &request.csr_der)?;
                return Ok(pb::EnrolReply {
                    outcome: Some(Outcome::Approved(pb::EnrolApproved {
                        node_id: key.to_hex(),
                        display_name: gateway.registry.name(&key),
                        certificate: Some(certificate),
                    })),
                });
            }
            let knock = Knock {
                fingerprint: key,
                display_name: request.display_name.chars().filter(|c| !c.is_control()).take(64).collect(),
                facts: facts.clone(),
                address,
            };
            let new = gateway.pairing.lock().is_new(&key, address, clock::now_ms())?;
            if new && words.is_empty() {
                words = self.words(key).await?;
            }
            let pending = {
                let mut pairing = gateway.pairing.lock();
                let pending = pairing.knock(knock, clock::now_ms(), || words.clone())?;
                pb::EnrolPending {
                    request_id: pending.request_id.clone(),
                    expires_unix_ms: pending.expires_at,
                }
            };
            let waited = tokio::select! {
                waited = timeout_at(deadline, changes.changed()) => waited.is_ok(),
                () = gateway.stopping.cancelled() => false,
            };
            if !waited {
                return Ok(pb::EnrolReply { outcome: Some(Outcome::Pending(pending)) });
            }
        }
    }
}

impl Service {
    /// The words for a node. Slow on purpose, so not on the event loop, and for
    /// strangers only one at a time.
    async fn words(&self, node: Fingerprint) -> Result<String, Fault> {
        let _turn = self.0.deriving.lock().await;
        let authority = self.0.authority.fingerprint();
        tokio::task::spawn_blocking(move || AuthWords::derive(&authority, &node).to_string())
            .await
            .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))
    }
}

/// The key of a certificate request that proves that its sender has it.
fn identity_of(csr_der: &[u8]) -> Result<Fingerprint, Fault> {
    identity::Authority::requested_key(csr_der).map_err(|e| {
        Fault::new(ErrorCode::InvalidRequest, format!("the certificate request was refused: {e}"))
    })
}

/// Refuses a peer that shares no protocol version with this program, naming
/// both ranges.
pub(super) fn check_versions(theirs: Option<&pb::ProtocolRange>) -> Result<u32, Fault> {
    let theirs = theirs.copied().unwrap_or_default();
    let (min, max) = (proto::PROTOCOL_MIN, proto::PROTOCOL_MAX);
    let common = max.min(theirs.max);
    if common < min || common < theirs.min || theirs.max == 0 {
        let (old, which) = if theirs.max < min { ("node host", "that") } else { ("gateway", "this") };
        return Err(Fault::new(
            ErrorCode::VersionSkew,
            format!("the node speaks protocol {} to {}, this gateway {min} to {max}", theirs.min, theirs.max),
        )
        .hint(format!("update {which} {old}")));
    }
    Ok(common)
}

/// Refuses a peer whose clock is so far off that certificates would not work.
pub(super) fn check_clock(theirs_ms: i64) -> Result<i64, Fault> {
    let ours = clock::now_ms();
    let skew = theirs_ms.saturating_sub(ours);
    if skew.saturating_abs() > SKEW_MAX_MS {
        return Err(Fault::new(
            ErrorCode::ClockSkew,
            format!(
                "the node's clock is {} s {} the gateway's",
                (skew / 1000).abs(),
                if skew < 0 { "behind" } else { "ahead of" }
            ),
        )
        .hint("set the clock of one of the machines: certificates tolerate one hour"));
    }
    Ok(skew)
}

/// Facts without control characters and of bounded length: they are shown to
/// people who decide.
pub(super) fn bounded(mut facts: pb::HostFacts) -> pb::HostFacts {
    for fact in [
        &mut facts.os,
        &mut facts.arch,
        &mut facts.hostname,
        &mut facts.kernel,
        &mut facts.user,
        &mut facts.path_env,
        &mut facts.version,
    ] {
        *fact = fact.chars().filter(|c| !c.is_control()).take(FACT_MAX).collect();
    }
    facts
}
