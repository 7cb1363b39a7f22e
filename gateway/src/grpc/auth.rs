//! Who is calling, and may they?
//!
//! Asked for every request, from the live registry: a role that was taken away
//! is gone at once, also on a connection that is older.

use fault::{ErrorCode, Fault};
use identity::{Fingerprint, Role as CertificateRole};
use policy::MAIN_AGENT;
use proto::v1::Role;
use tonic::Request;
use tonic::transport::server::TcpConnectInfo;

use super::Service;
use crate::server::peer::{Peer, Proof};

/// A caller who may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The user that the gateway runs as, over the Unix socket: every role.
    Local,
    /// A remote operator, who speaks for one agent, or, as an admin, for any.
    Operator { name: String, agent: String, admin: bool },
}

impl Caller {
    /// For the log.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Local => "local",
            Self::Operator { name, .. } => name,
        }
    }

    /// The agent that a call is for: the caller's own, unless it may speak for others and names one.
    pub(crate) fn agent(&self, named: &str) -> Result<String, Fault> {
        let (own, any) = match self {
            Self::Local => (MAIN_AGENT, true),
            Self::Operator { agent, admin, .. } => (agent.as_str(), *admin),
        };
        match named.trim() {
            "" => Ok(own.to_owned()),
            named if any || named == own => Ok(named.to_owned()),
            named => Err(Fault::new(
                ErrorCode::PermissionDenied,
                format!("this credential speaks for the agent `{own}`, not for `{named}`"),
            )
            .hint("leave the agent out, or use a credential of that agent: `gateway operators add --agent`")),
        }
    }

    /// The agent whose sessions it may see; none: those of all.
    pub(crate) fn scope(&self) -> Option<&str> {
        match self {
            Self::Local | Self::Operator { admin: true, .. } => None,
            Self::Operator { agent, .. } => Some(agent),
        }
    }
}

impl Service {
    /// The caller, if it has `role` or one that implies it: `admin` implies
    /// all, every role implies `read`.
    pub(crate) fn require<T>(&self, request: &Request<T>, role: Role) -> Result<Caller, Fault> {
        match peer(request)?.proof {
            Proof::SameUser => Ok(Caller::Local),
            Proof::Certificate(subject) if subject.role == CertificateRole::Operator => {
                let operator = self.0.registry.operator(&subject.fingerprint).ok_or_else(unauthenticated)?;
                if operator.not_after < crate::clock::now_ms() {
                    return Err(Fault::new(
                        ErrorCode::Unauthenticated,
                        "this operator's certificate has expired",
                    )
                    .hint("`gateway operators remove` it and add it again"));
                }
                let has = |wanted: Role| operator.roles.contains(&(wanted as i32));
                if has(role) || has(Role::Admin) || (role == Role::Read && !operator.roles.is_empty()) {
                    Ok(Caller::Operator {
                        admin: has(Role::Admin),
                        name: operator.name,
                        agent: operator.agent,
                    })
                } else {
                    Err(Fault::new(
                        ErrorCode::PermissionDenied,
                        format!("operator `{}` lacks the role {}", operator.name, role_name(role)),
                    )
                    .hint("an admin grants roles: `gateway operators add --roles …`"))
                }
            }
            Proof::Certificate(_) => {
                Err(Fault::new(ErrorCode::PermissionDenied, "a node's certificate is not an operator's"))
            }
            Proof::Nothing => Err(unauthenticated()),
        }
    }

    /// The node that is calling.
    pub(crate) fn require_node<T>(&self, request: &Request<T>) -> Result<Fingerprint, Fault> {
        match peer(request)?.proof {
            Proof::Certificate(subject) if subject.role == CertificateRole::Node => {
                if self.0.registry.is_paired(&subject.fingerprint) {
                    Ok(subject.fingerprint)
                } else {
                    Err(Fault::new(ErrorCode::NodeRemoved, "this node was removed from the gateway"))
                }
            }
            Proof::Certificate(_) | Proof::SameUser => {
                Err(Fault::new(ErrorCode::PermissionDenied, "only a node opens a node link"))
            }
            Proof::Nothing => Err(unauthenticated()),
        }
    }
}

/// The peer of a request's connection.
pub(crate) fn peer<T>(request: &Request<T>) -> Result<Peer, Fault> {
    // The TCP information of the RPC layer's own listener must never stand in
    // for ours.
    debug_assert!(request.extensions().get::<TcpConnectInfo>().is_none());
    request
        .extensions()
        .get::<Peer>()
        .cloned()
        .ok_or_else(|| Fault::new(ErrorCode::Unauthenticated, "the connection has no identity"))
}

/// The short name of a role, as the command line takes it.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Unspecified => "unspecified",
        Role::Read => "read",
        Role::Write => "write",
        Role::Approvals => "approvals",
        Role::Pairing => "pairing",
        Role::Admin => "admin",
    }
}

fn unauthenticated() -> Fault {
    Fault::new(ErrorCode::Unauthenticated, "this call needs a client certificate that the gateway signed")
        .hint("`gateway operators add` makes one for a remote operator")
}
