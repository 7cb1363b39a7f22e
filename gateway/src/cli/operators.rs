//! `gateway operators …`: people and programs that reach the gateway from
//! elsewhere.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Subcommand, ValueEnum};
use config::write_private;
use fault::{ErrorCode, Fault};
use identity::{Fingerprint, PrivateKey};
use proto::v1 as pb;
use serde_json::json;

use super::Common;
use super::client::OperatorFile;
use super::output::{moment, print_json, safe, short, table};

#[derive(Debug, Subcommand)]
pub(super) enum OperatorsCommand {
    /// Make an identity for a remote operator and write it to a file.
    Add {
        /// Its name.
        name: String,
        /// What it may do.
        #[arg(long, value_enum, value_delimiter = ',', default_value = "read,write")]
        roles: Vec<Role>,
        /// The agent that it speaks for: it sees and ends the sessions of this agent only. An admin may speak for any.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// The file to write (0600). Carry it over a channel you trust.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Where the operator reaches this gateway; the listen address unless given.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
    },
    /// List operators.
    List,
    /// Remove an operator and cut its connections.
    Remove {
        /// Its name.
        name: String,
    },
}

/// What an operator may do. `admin` implies all, each implies `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    /// See nodes and sessions.
    Read,
    /// Run, attach, kill.
    Write,
    /// Answer approvals.
    Approvals,
    /// See, reject, rename and remove nodes.
    Pairing,
    /// Everything.
    Admin,
}

impl From<Role> for pb::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Read => Self::Read,
            Role::Write => Self::Write,
            Role::Approvals => Self::Approvals,
            Role::Pairing => Self::Pairing,
            Role::Admin => Self::Admin,
        }
    }
}

pub(super) async fn run(common: &Common, command: OperatorsCommand) -> Result<u8, Fault> {
    let mut operator = common.connect().await?.operator();
    match command {
        OperatorsCommand::Add { name, roles, agent, out, address } => {
            // The key is made here and never sent.
            let internal = |e: identity::IdentityError| Fault::new(ErrorCode::Internal, e.to_string());
            let key = PrivateKey::generate().map_err(internal)?;
            let request = pb::AddOperatorRequest {
                name,
                roles: roles.into_iter().map(|role| pb::Role::from(role).into()).collect(),
                csr_der: key.csr_der().map_err(internal)?.into(),
                agent_id: agent.unwrap_or_default(),
            };
            let reply =
                operator.add_operator(request).await.map_err(|s| Fault::from_status(&s))?.into_inner();
            let entry = reply.operator.unwrap_or_default();
            let authority = rustls_pki_types::CertificateDer::from(reply.authority_der.to_vec());
            let fingerprint = Fingerprint::of_certificate(&authority).map_err(internal)?;
            let address = address.unwrap_or(reply.address);
            if address.is_empty() {
                return Err(Fault::new(
                    ErrorCode::InvalidRequest,
                    "the gateway listens on every address, so the file would name none",
                )
                .hint("remove the operator again and add it with `--address HOST:PORT`"));
            }
            let file = OperatorFile {
                version: 1,
                name: entry.name.clone(),
                address,
                fingerprint: fingerprint.to_hex(),
                certificate: STANDARD.encode(&reply.certificate_der),
                key: key.to_pem(),
            };
            let text = serde_json::to_string_pretty(&file)
                .map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
            write_private(&out, format!("{text}\n").as_bytes())
                .map_err(|e| Fault::new(ErrorCode::StateDirUnusable, e.to_string()))?;
            say_line!("wrote {}; use it with `gateway --identity {} …`", out.display(), out.display());
        }
        OperatorsCommand::List => {
            let reply = operator
                .list_operators(pb::ListOperatorsRequest {})
                .await
                .map_err(|s| Fault::from_status(&s))?
                .into_inner();
            if common.json {
                let all: Vec<_> = reply
                    .operators
                    .iter()
                    .map(|o| {
                        json!({
                            "name": o.name,
                            "fingerprint": o.fingerprint,
                            "roles": role_names(o),
                            "agentId": o.agent_id,
                            "addedAtMs": o.added_unix_ms,
                            "notAfterMs": o.not_after_unix_ms,
                        })
                    })
                    .collect();
                print_json(&json!({ "operators": all }));
            } else {
                let rows: Vec<_> = reply
                    .operators
                    .iter()
                    .map(|o| {
                        vec![
                            safe(&o.name),
                            short(&o.fingerprint).to_owned(),
                            role_names(o).join(","),
                            safe(&o.agent_id),
                            moment(o.not_after_unix_ms),
                        ]
                    })
                    .collect();
                table(&["OPERATOR", "KEY", "ROLES", "AGENT", "UNTIL"], &rows);
            }
        }
        OperatorsCommand::Remove { name } => {
            let removed = operator
                .remove_operator(pb::RemoveOperatorRequest { name })
                .await
                .map_err(|s| Fault::from_status(&s))?
                .into_inner();
            say_line!("removed {}", safe(&removed.name));
        }
    }
    Ok(0)
}

fn role_names(operator: &pb::OperatorEntry) -> Vec<&'static str> {
    operator
        .roles
        .iter()
        .filter_map(|role| pb::Role::try_from(*role).ok())
        .map(|role| match role {
            pb::Role::Unspecified => "unspecified",
            pb::Role::Read => "read",
            pb::Role::Write => "write",
            pb::Role::Approvals => "approvals",
            pb::Role::Pairing => "pairing",
            pb::Role::Admin => "admin",
        })
        .collect()
}
