//! What all links of one node host share.

use proto::v1 as pb;

use crate::enforce::{Door, ask_to_wire, security_to_wire};
use crate::link::Inputs;
use crate::sessions::Sessions;

/// One node host.
#[derive(Debug)]
pub struct Node {
    /// Its own name; the gateway may know it under another.
    pub display_name: String,
    /// What decides.
    pub door: Door,
    /// What runs.
    pub sessions: Sessions,
    /// What was typed.
    pub(crate) inputs: Inputs,
}

impl Node {
    /// The policy for an agent that no rule names, for display. A document
    /// that cannot be used denies.
    pub fn default_policy(&self) -> (pb::Security, pb::Ask) {
        match self.door.approvals().policy(None) {
            Ok(policy) => (security_to_wire(policy.security), ask_to_wire(policy.ask)),
            Err(_) => (pb::Security::Deny, pb::Ask::Off),
        }
    }

    /// Tells the person at the terminal, or the service's journal.
    pub fn announce(&self, line: &str) {
        eprintln!("{line}");
    }
}
