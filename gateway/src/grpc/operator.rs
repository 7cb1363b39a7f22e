//! The operator service: pairing, nodes, operators.

use std::net::SocketAddr;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use identity::PairLink;
use proto::v1::{self as pb, Role, operator_server::Operator, reply::Answer, request::Command};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tonic::{Request, Response, Status};

use super::Service;
use crate::clock;
use crate::pairing::Pending;
use crate::store::{InviteRecord, OperatorRecord};

/// An invite is good for this long, unless said otherwise.
const INVITE_TTL_MS: u64 = 10 * 60 * 1000;
/// Longest life of an invite.
const INVITE_TTL_MAX_MS: u64 = 7 * 24 * 3600 * 1000;
/// Answer to a question about a node's approvals document.
const APPROVALS_TIMEOUT: Duration = Duration::from_secs(10);
/// Operators in all.
const OPERATORS_MAX: usize = 256;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Operator for Service {
    async fn status(&self, request: Request<pb::StatusRequest>) -> Answered<pb::StatusReply> {
        self.require(&request, Role::Read)?;
        let gateway = &self.0;
        let nodes = gateway.registry.nodes();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Response::new(pb::StatusReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listen: gateway.settings.listen.to_string(),
            fingerprint: gateway.authority.fingerprint().to_hex(),
            nodes_paired: count(nodes.len()),
            nodes_connected: count(nodes.iter().filter(|n| n.connected).count()),
            pending: count(gateway.pairing.lock().open(clock::now_ms()).len()),
            started_unix_ms: gateway.started_at,
            pid: std::process::id(),
        }))
    }

    async fn list_nodes(&self, request: Request<pb::ListNodesRequest>) -> Answered<pb::ListNodesReply> {
        self.require(&request, Role::Read)?;
        Ok(Response::new(pb::ListNodesReply { nodes: self.0.registry.nodes() }))
    }

    async fn describe_node(&self, request: Request<pb::NodeRef>) -> Answered<pb::Node> {
        self.require(&request, Role::Read)?;
        let registry = &self.0.registry;
        let id = registry.find(&request.into_inner().node)?;
        let mut node = registry.describe(&id)?;
        if let Some(link) = registry.link(&id)
            && let Ok(sessions) = crate::start::sessions_of(&link).await
        {
            let running = sessions.iter().filter(|s| s.exit.is_none()).count();
            node.sessions_running = u32::try_from(running).unwrap_or(u32::MAX);
        }
        Ok(Response::new(node))
    }

    async fn list_pending(&self, request: Request<pb::ListPendingRequest>) -> Answered<pb::ListPendingReply> {
        self.require(&request, Role::Pairing)?;
        let open = self.0.pairing.lock().open(clock::now_ms());
        Ok(Response::new(pb::ListPendingReply { pending: open.into_iter().map(pending).collect() }))
    }

    async fn approve(&self, request: Request<pb::ApproveRequest>) -> Answered<pb::Node> {
        // A paired node runs commands, so `pairing` alone is not enough
        // (`runtime.md` §6.3).
        self.require(&request, Role::Pairing)?;
        let caller = self.require(&request, Role::Admin)?;
        let id = request.into_inner().request_id;
        let now = clock::now_ms();
        let taken = self.0.pairing.lock().take(&id, now)?;
        self.0.registry.pair(taken.fingerprint, &taken.display_name, &taken.facts, now)?;
        tracing::info!(node = %taken.fingerprint, by = caller.name(), "pairing approved");
        self.0.audit("node.paired", || {
            json!({ "nodeId": taken.fingerprint.to_hex(), "node": taken.display_name, "by": caller.name() })
        });
        Ok(Response::new(self.0.registry.describe(&taken.fingerprint)?))
    }

    async fn reject(&self, request: Request<pb::RejectRequest>) -> Answered<pb::RejectReply> {
        let caller = self.require(&request, Role::Pairing)?;
        let id = request.into_inner().request_id;
        let rejected = self.0.pairing.lock().reject(&id, clock::now_ms())?;
        tracing::info!(node = %rejected.fingerprint, by = caller.name(), "pairing rejected");
        Ok(Response::new(pb::RejectReply { rejected: Some(pending(rejected)) }))
    }

    async fn invite(&self, request: Request<pb::InviteRequest>) -> Answered<pb::InviteReply> {
        let caller = self.require(&request, Role::Admin)?;
        let request = request.into_inner();
        let ttl_ms = if request.ttl_ms == 0 { INVITE_TTL_MS } else { request.ttl_ms.min(INVITE_TTL_MAX_MS) };
        let address =
            if request.address.is_empty() { dialable(self.0.settings.listen)? } else { request.address };
        let token = PairLink::new_token().map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
        let link = PairLink::new(&address, self.0.authority.fingerprint(), &token)
            .map_err(|e| Fault::new(ErrorCode::InvalidRequest, e.to_string()))?;
        let now = clock::now_ms();
        let invite = InviteRecord {
            token_digest: Sha256::digest(token.as_bytes()).into(),
            display_name: request.display_name.chars().filter(|c| !c.is_control()).take(64).collect(),
            expires_at: now.saturating_add_unsigned(ttl_ms),
        };
        self.0.store.put_invite(&invite, now).map_err(crate::registry::store_fault)?;
        tracing::info!(by = caller.name(), ttl_ms, "invite made");
        Ok(Response::new(pb::InviteReply { link: link.to_string(), expires_unix_ms: invite.expires_at }))
    }

    async fn rename_node(&self, request: Request<pb::RenameRequest>) -> Answered<pb::Node> {
        self.require(&request, Role::Pairing)?;
        let request = request.into_inner();
        Ok(Response::new(self.0.registry.rename(&request.node, &request.display_name)?))
    }

    async fn remove_node(&self, request: Request<pb::NodeRef>) -> Answered<pb::Node> {
        let caller = self.require(&request, Role::Pairing)?;
        let node = self.0.registry.remove(&request.into_inner().node)?;
        self.0.tasks.node_removed(&self.0, &node.node_id);
        tracing::info!(node = node.node_id, by = caller.name(), "node removed");
        self.0.audit(
            "node.removed",
            || json!({ "nodeId": node.node_id, "node": node.display_name, "by": caller.name() }),
        );
        Ok(Response::new(node))
    }

    async fn get_node_approvals(&self, request: Request<pb::NodeRef>) -> Answered<pb::ApprovalsDocument> {
        self.require(&request, Role::Admin)?;
        let link = self.0.registry.find_connected(&request.into_inner().node)?;
        let command = Command::ApprovalsGet(pb::ApprovalsGetRequest {});
        let answer = link.request(command, APPROVALS_TIMEOUT).await.map_err(|e| e.fault())?;
        let outcome = match answer {
            Answer::ApprovalsGet(reply) => reply.outcome,
            _ => None,
        };
        match outcome.ok_or_else(unexpected)? {
            pb::approvals_get_reply::Outcome::Document(document) => Ok(Response::new(document)),
            pb::approvals_get_reply::Outcome::Refused(fault) => Err(Fault::from(fault).into()),
        }
    }

    async fn set_node_approvals(
        &self,
        request: Request<pb::SetNodeApprovalsRequest>,
    ) -> Answered<pb::ApprovalsDocument> {
        let caller = self.require(&request, Role::Admin)?;
        let request = request.into_inner();
        let link = self.0.registry.find_connected(&request.node)?;
        let command = Command::ApprovalsSet(pb::ApprovalsSetRequest {
            file: request.file,
            base_hash: request.base_hash.clone(),
        });
        let answer = link.request(command, APPROVALS_TIMEOUT).await.map_err(|e| e.fault())?;
        let outcome = match answer {
            Answer::ApprovalsSet(reply) => reply.outcome,
            _ => None,
        };
        match outcome.ok_or_else(unexpected)? {
            pb::approvals_set_reply::Outcome::Document(document) => {
                tracing::info!(
                    node = %link.node,
                    by = caller.name(),
                    from = request.base_hash,
                    to = document.hash,
                    "approvals document set"
                );
                self.0.audit("policy.changed", || {
                    json!({
                        "nodeId": link.node.to_hex(), "from": request.base_hash, "to": document.hash, "by": caller.name(),
                    })
                });
                Ok(Response::new(document))
            }
            pb::approvals_set_reply::Outcome::Refused(fault) => Err(Fault::from(fault).into()),
        }
    }

    async fn add_operator(&self, request: Request<pb::AddOperatorRequest>) -> Answered<pb::AddOperatorReply> {
        let caller = self.require(&request, Role::Admin)?;
        let request = request.into_inner();
        let mut roles: Vec<i32> = request.roles.clone();
        roles.sort_unstable();
        roles.dedup();
        let known = |role: &i32| Role::try_from(*role).is_ok_and(|role| role != Role::Unspecified);
        if roles.is_empty() || !roles.iter().all(known) {
            return Err(
                Fault::new(ErrorCode::InvalidRequest, "an operator has one or more known roles").into()
            );
        }
        let name = request.name.trim().to_owned();
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(
                Fault::new(ErrorCode::InvalidRequest, "an operator's name has 1 to 64 characters").into()
            );
        }
        if self.0.registry.operators().len() >= OPERATORS_MAX {
            return Err(Fault::new(ErrorCode::ResourceExhausted, "there are too many operators").into());
        }
        let signed = self.0.certify_operator(&request.csr_der)?;
        let operator = OperatorRecord {
            name,
            id: signed.fingerprint,
            roles,
            agent: agent_id(&request.agent_id)?,
            added_at: clock::now_ms(),
            not_after: clock::to_ms(signed.not_after),
        };
        self.0.registry.add_operator(operator.clone())?;
        tracing::info!(operator = operator.name, by = caller.name(), "operator added");
        Ok(Response::new(pb::AddOperatorReply {
            operator: Some(entry(operator)),
            certificate_der: signed.der.to_vec().into(),
            authority_der: self.0.authority.cert_der().to_vec().into(),
            address: dialable(self.0.settings.listen).unwrap_or_default(),
        }))
    }

    async fn list_operators(
        &self,
        request: Request<pb::ListOperatorsRequest>,
    ) -> Answered<pb::ListOperatorsReply> {
        self.require(&request, Role::Admin)?;
        let operators = self.0.registry.operators().into_iter().map(entry).collect();
        Ok(Response::new(pb::ListOperatorsReply { operators }))
    }

    async fn remove_operator(
        &self,
        request: Request<pb::RemoveOperatorRequest>,
    ) -> Answered<pb::OperatorEntry> {
        let caller = self.require(&request, Role::Admin)?;
        let removed = self.0.registry.remove_operator(&request.into_inner().name)?;
        tracing::info!(operator = removed.name, by = caller.name(), "operator removed");
        Ok(Response::new(entry(removed)))
    }
}

fn pending(request: Pending) -> pb::PendingNode {
    pb::PendingNode {
        request_id: request.request_id,
        fingerprint: request.fingerprint.to_hex(),
        display_name: request.display_name,
        facts: Some(request.facts),
        remote_address: request.address.to_string(),
        first_seen_unix_ms: request.first_seen,
        expires_unix_ms: request.expires_at,
        words: request.words,
    }
}

fn entry(operator: OperatorRecord) -> pb::OperatorEntry {
    pb::OperatorEntry {
        name: operator.name,
        fingerprint: operator.id.to_hex(),
        roles: operator.roles,
        added_unix_ms: operator.added_at,
        not_after_unix_ms: operator.not_after,
        agent_id: operator.agent,
    }
}

/// The id of an agent; none: the main one's.
fn agent_id(named: &str) -> Result<String, Fault> {
    match named.trim() {
        "" => Ok(policy::MAIN_AGENT.to_owned()),
        named if named.len() <= 64 && !named.chars().any(char::is_control) => Ok(named.to_owned()),
        _ => Err(Fault::new(ErrorCode::InvalidRequest, "an agent's id has 1 to 64 characters")),
    }
}

/// The address that another machine dials. A wildcard address is none.
fn dialable(listen: SocketAddr) -> Result<String, Fault> {
    if listen.ip().is_unspecified() {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            "the gateway listens on every address, so it does not know which one the node can reach",
        )
        .hint("say it: `--address HOST:PORT`"));
    }
    Ok(listen.to_string())
}

fn unexpected() -> Fault {
    Fault::new(ErrorCode::Internal, "the node answered with something else")
}
