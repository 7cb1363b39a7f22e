//! A node host in a network namespace of its own, whose one wire can be pulled.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::bed::{GatewayOptions, TestBed};
use crate::eventually::{PATIENCE, eventually};
use crate::programs::{Program, program};

/// A gateway on one end of a wire and a node host, `n`, on the other.
#[derive(Debug)]
pub struct Partitioned {
    // Programs first: they end before the wire goes.
    node: Program,
    _gateway: Program,
    bed: TestBed,
    wire: Wire,
}

/// A namespace and a pair of interfaces. Both go when it is dropped.
#[derive(Debug)]
struct Wire {
    /// Of the namespace, and of the interface in it.
    name: String,
}

impl Partitioned {
    /// Makes the wire and both ends of it.
    ///
    /// # Errors
    /// Why it cannot be made here, for a person.
    pub fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root makes network namespaces".to_owned());
        }
        // Addresses of this process alone, from the range that is set aside for tests of networks (RFC 2544).
        let own = std::process::id();
        let base = format!("198.{}.{}", 18 + (own >> 14 & 1), own >> 6 & 255);
        let (near, far) =
            (format!("{base}.{}", (own & 63) * 4 + 1), format!("{base}.{}", (own & 63) * 4 + 2));
        let wire = Wire::new(&near, &far)?;

        let bed = TestBed::dark(GatewayOptions::default());
        let mut command = bed.command(&program("gateway"));
        command.args(["serve", "--listen", &format!("{near}:0")]).arg("--state-dir").arg(bed.gateway_dir());
        let gateway = Program::start(command, &bed.path("gateway.log"));
        let address: SocketAddr = eventually(PATIENCE, || {
            let log = gateway.log();
            let ready = log.lines().find_map(|line| line.strip_prefix("gateway: ready on "));
            ready.and_then(|rest| rest.split(' ').next()?.parse().ok()).ok_or(log)
        });

        let invite = bed.gateway_cli(["nodes", "invite", "--address", &address.to_string()]);
        let mut command = bed.command(Path::new("ip"));
        command
            .args(["netns", "exec", &wire.name])
            .arg(program("node-host"))
            .args(["run", "--pair", invite.ok().stdout_text().trim(), "--display-name", "n", "--state-dir"])
            .arg(bed.path("node-n"));
        let node = Program::start(command, &bed.path("node-n.log"));
        let made = Self { node, _gateway: gateway, bed, wire };
        made.wait_connected(1);
        Ok(made)
    }

    /// For the clients. Its gateway is not the bed's own.
    pub fn bed(&self) -> &TestBed {
        &self.bed
    }

    /// Waits until the node host has connected that often.
    #[track_caller]
    pub fn wait_connected(&self, times: usize) {
        eventually(PATIENCE, || {
            let log = self.node.log();
            let found = log.matches("node-host: connected to ").count();
            if found >= times { Ok(()) } else { Err(format!("{found} connections: {log}")) }
        });
    }

    /// Pulls the wire: nothing arrives any more, and nobody is told.
    pub fn pull(&self) {
        self.wire.set("down");
    }

    /// Plugs it in again.
    pub fn plug(&self) {
        self.wire.set("up");
    }
}

impl Wire {
    fn new(near: &str, far: &str) -> Result<Self, String> {
        let name = format!("farrun{}", std::process::id());
        let outside = format!("{name}o");
        // From here on it is cleaned up, also when only half of it can be made.
        let wire = Self { name };
        let inside = wire.name.as_str();
        ip(&["netns", "add", inside])?;
        ip(&["link", "add", &outside, "type", "veth", "peer", "name", inside, "netns", inside])?;
        ip(&["address", "add", &format!("{near}/30"), "dev", &outside])?;
        ip(&["link", "set", &outside, "up"])?;
        ip(&["-n", inside, "address", "add", &format!("{far}/30"), "dev", inside])?;
        ip(&["-n", inside, "link", "set", "lo", "up"])?;
        ip(&["-n", inside, "link", "set", inside, "up"])?;
        Ok(wire)
    }

    #[track_caller]
    fn set(&self, state: &str) {
        ip(&["-n", &self.name, "link", "set", &self.name, state]).expect("an interface of ours");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The namespace may outlive its name in a process that is still ending; the pair must not.
        let _ = ip(&["link", "delete", &format!("{}o", self.name)]);
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let made = Command::new("ip").args(args).output().map_err(|e| format!("`ip` does not start: {e}"))?;
    if made.status.success() {
        return Ok(());
    }
    Err(format!("`ip {}`: {}", args.join(" "), String::from_utf8_lossy(&made.stderr).trim()))
}
