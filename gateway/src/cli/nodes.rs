//! `gateway nodes …` and `gateway status`.

use std::time::Duration;

use clap::Subcommand;
use fault::Fault;
use proto::v1 as pb;
use serde_json::{Value, json};
use tonic::Status;

use super::output::{ask, moment, print_json, safe, security, short, table};
use super::{Common, parse_duration};

#[derive(Debug, Subcommand)]
pub(super) enum NodesCommand {
    /// Paired nodes, connected ones first.
    #[command(alias = "status")]
    List {
        /// Only connected ones.
        #[arg(long)]
        connected: bool,
    },
    /// Everything about one node.
    Describe {
        /// Id, name, or the first six or more characters of the id.
        node: String,
    },
    /// Machines that ask to be paired.
    Pending,
    /// Pair a machine that asks. Compare the words first.
    Approve {
        /// From `gateway nodes pending`.
        request_id: String,
    },
    /// Turn a machine away.
    Reject {
        /// From `gateway nodes pending`.
        request_id: String,
    },
    /// Print one line that pairs one machine: `node-host run --pair '<link>'`.
    Invite {
        /// Name of the new node; its own unless given.
        #[arg(long)]
        name: Option<String>,
        /// How long the link is good.
        #[arg(long, default_value = "10m", value_parser = parse_duration)]
        ttl: Duration,
        /// Where the new node reaches this gateway; the listen address unless given.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
    },
    /// Give a node another name.
    Rename {
        /// The node.
        node: String,
        /// Its new name.
        name: String,
    },
    /// Remove a node: cut off at once, and not let in again.
    Remove {
        /// The node.
        node: String,
    },
}

pub(super) async fn run(common: &Common, command: NodesCommand) -> Result<u8, Fault> {
    let mut operator = common.connect().await?.operator();
    let failed = |status: Status| Fault::from_status(&status);
    match command {
        NodesCommand::List { connected } => {
            let reply = operator.list_nodes(pb::ListNodesRequest {}).await.map_err(failed)?.into_inner();
            let nodes: Vec<_> = reply.nodes.into_iter().filter(|n| n.connected || !connected).collect();
            print_nodes(common, &nodes);
        }
        NodesCommand::Describe { node } => {
            let node = operator.describe_node(pb::NodeRef { node }).await.map_err(failed)?.into_inner();
            describe(common, &node);
        }
        NodesCommand::Pending => {
            let reply = operator.list_pending(pb::ListPendingRequest {}).await.map_err(failed)?.into_inner();
            print_pending(common, &reply.pending);
        }
        NodesCommand::Approve { request_id } => {
            let node =
                operator.approve(pb::ApproveRequest { request_id }).await.map_err(failed)?.into_inner();
            say(
                common,
                &format!("paired {} ({})", safe(&node.display_name), short(&node.node_id)),
                node_json(&node),
            );
            if !common.json {
                eprintln!("gateway: {}", policy_there(&node));
            }
        }
        NodesCommand::Reject { request_id } => {
            let reply = operator.reject(pb::RejectRequest { request_id }).await.map_err(failed)?.into_inner();
            let request = reply.rejected.unwrap_or_default();
            say(common, &format!("rejected {}", safe(&request.display_name)), pending_json(&request));
        }
        NodesCommand::Invite { name, ttl, address } => {
            let request = pb::InviteRequest {
                display_name: name.unwrap_or_default(),
                ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
                address: address.unwrap_or_default(),
            };
            let reply = operator.invite(request).await.map_err(failed)?.into_inner();
            let value = json!({ "link": reply.link, "expiresAtMs": reply.expires_unix_ms });
            say(common, &reply.link, value);
        }
        NodesCommand::Rename { node, name } => {
            let request = pb::RenameRequest { node, display_name: name };
            let node = operator.rename_node(request).await.map_err(failed)?.into_inner();
            say(
                common,
                &format!("{} is now {}", short(&node.node_id), safe(&node.display_name)),
                node_json(&node),
            );
        }
        NodesCommand::Remove { node } => {
            let node = operator.remove_node(pb::NodeRef { node }).await.map_err(failed)?.into_inner();
            say(
                common,
                &format!("removed {} ({})", safe(&node.display_name), short(&node.node_id)),
                node_json(&node),
            );
        }
    }
    Ok(0)
}

/// `gateway status`.
pub(super) async fn status(common: &Common) -> Result<u8, Fault> {
    let status = common
        .connect()
        .await?
        .operator()
        .status(pb::StatusRequest {})
        .await
        .map_err(|status| Fault::from_status(&status))?
        .into_inner();
    if common.json {
        print_json(&json!({
            "version": status.version,
            "listen": status.listen,
            "fingerprint": status.fingerprint,
            "nodesPaired": status.nodes_paired,
            "nodesConnected": status.nodes_connected,
            "pending": status.pending,
            "startedAtMs": status.started_unix_ms,
            "pid": status.pid,
        }));
    } else {
        say_line!("gateway {} (pid {}) on {}", status.version, status.pid, status.listen);
        say_line!("fingerprint {}", status.fingerprint);
        say_line!(
            "nodes {} paired, {} connected, {} asking",
            status.nodes_paired,
            status.nodes_connected,
            status.pending
        );
    }
    Ok(0)
}

fn say(common: &Common, line: &str, value: Value) {
    if common.json {
        print_json(&value);
    } else {
        say_line!("{line}");
    }
}

fn print_nodes(common: &Common, nodes: &[pb::Node]) {
    if common.json {
        print_json(&json!({ "nodes": nodes.iter().map(node_json).collect::<Vec<_>>() }));
        return;
    }
    let connected = nodes.iter().filter(|n| n.connected).count();
    say_line!("Paired: {} · Connected: {connected}", nodes.len());
    let rows: Vec<_> = nodes
        .iter()
        .map(|n| {
            let facts = n.facts.clone().unwrap_or_default();
            vec![
                safe(&n.display_name),
                short(&n.node_id).to_owned(),
                if n.connected { "connected" } else { "offline" }.to_owned(),
                n.remote_address.clone(),
                safe(&format!("{}/{}", facts.os, facts.arch)),
                moment(n.last_seen_unix_ms),
            ]
        })
        .collect();
    if !rows.is_empty() {
        table(&["NODE", "ID", "STATUS", "ADDRESS", "SYSTEM", "LAST SEEN"], &rows);
    }
}

fn describe(common: &Common, node: &pb::Node) {
    if common.json {
        print_json(&node_json(node));
        return;
    }
    let facts = node.facts.clone().unwrap_or_default();
    let lines = [
        ("name", safe(&node.display_name)),
        ("id", node.node_id.clone()),
        ("status", if node.connected { "connected" } else { "offline" }.to_owned()),
        ("address", node.remote_address.clone()),
        ("system", safe(&format!("{} {} {}", facts.os, facts.arch, facts.kernel))),
        ("host", safe(&facts.hostname)),
        ("user", safe(&facts.user)),
        ("version", format!("{} (protocol {})", safe(&facts.version), node.protocol)),
        ("policy", policy_at_connect(node).unwrap_or_else(|| "not known: it never connected".to_owned())),
        ("PATH", safe(&facts.path_env)),
        ("commands", safe(&node.commands.join(" "))),
        ("clock", format!("{} ms from the gateway's", node.clock_skew_ms)),
        ("paired", moment(node.approved_unix_ms)),
        ("connected", moment(node.connected_unix_ms)),
        ("last seen", moment(node.last_seen_unix_ms)),
        ("certificate", format!("until {}", moment(node.certificate_not_after_unix_ms))),
        ("sessions", format!("{} running", node.sessions_running)),
    ];
    for (name, value) in lines {
        say_line!("{name:<12}{value}");
    }
}

/// What the node said holds there. It may have been changed on the node since.
fn policy_at_connect(node: &pb::Node) -> Option<String> {
    let known = !security(node.security).is_empty();
    known.then(|| format!("security={} ask={} (at connect)", security(node.security), ask(node.ask)))
}

/// Whose word decides what runs on a node that was just paired. A node reports its policy once it is connected.
fn policy_there(node: &pb::Node) -> String {
    let policy = policy_at_connect(node).map_or_else(
        || "its own policy decides what runs there; the built-in one is security=full".to_owned(),
        |policy| format!("its own policy decides what runs there: {policy}"),
    );
    format!("{policy}; on that machine: node-host policy show / node-host policy set --security allowlist")
}

fn print_pending(common: &Common, pending: &[pb::PendingNode]) {
    if common.json {
        print_json(&json!({ "pending": pending.iter().map(pending_json).collect::<Vec<_>>() }));
        return;
    }
    if pending.is_empty() {
        say_line!("no machine asks to be paired");
    }
    for request in pending {
        let facts = request.facts.clone().unwrap_or_default();
        say_line!("{}  {}  from {}", request.request_id, safe(&request.display_name), request.remote_address);
        say_line!("  system       {}", safe(&format!("{} {} as {}", facts.os, facts.arch, facts.user)));
        say_line!("  words        {}", request.words);
        say_line!("  fingerprint  {}", request.fingerprint);
        say_line!("  expires      {}", moment(request.expires_unix_ms));
        say_line!("  if the node shows the same words: gateway nodes approve {}", request.request_id);
    }
}

fn node_json(node: &pb::Node) -> Value {
    let facts = node.facts.clone().unwrap_or_default();
    json!({
        "nodeId": node.node_id,
        "displayName": node.display_name,
        "connected": node.connected,
        "platform": facts.os,
        "arch": facts.arch,
        "kernel": facts.kernel,
        "hostname": facts.hostname,
        "user": facts.user,
        "version": facts.version,
        "protocol": node.protocol,
        "pathEnv": facts.path_env,
        "commands": node.commands,
        "remoteIp": node.remote_address,
        "security": security(node.security),
        "ask": ask(node.ask),
        "approvedAtMs": node.approved_unix_ms,
        "connectedAtMs": node.connected_unix_ms,
        "lastSeenAtMs": node.last_seen_unix_ms,
        "certificateNotAfterMs": node.certificate_not_after_unix_ms,
        "clockSkewMs": node.clock_skew_ms,
        "sessionsRunning": node.sessions_running,
    })
}

fn pending_json(request: &pb::PendingNode) -> Value {
    json!({
        "requestId": request.request_id,
        "displayName": request.display_name,
        "fingerprint": request.fingerprint,
        "remoteIp": request.remote_address,
        "words": request.words,
        "firstSeenAtMs": request.first_seen_unix_ms,
        "expiresAtMs": request.expires_unix_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_of_a_new_node_is_said_as_far_as_it_is_known() {
        let commands = "on that machine: node-host policy show / node-host policy set --security allowlist";
        let known = pb::Node {
            security: pb::Security::Allowlist.into(),
            ask: pb::Ask::OnMiss.into(),
            ..pb::Node::default()
        };
        let table = [
            (
                pb::Node::default(),
                format!(
                    "its own policy decides what runs there; the built-in one is security=full; {commands}"
                ),
            ),
            (
                known,
                format!(
                    "its own policy decides what runs there: security=allowlist ask=on-miss (at connect); {commands}"
                ),
            ),
        ];
        for (node, want) in table {
            assert_eq!(policy_there(&node), want);
        }
    }
}
