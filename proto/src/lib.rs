//! The wire between agents, gateway and node hosts: generated code and
//! nothing else. Logic and domain types live in the crates that use it.

/// Package `relay.v1`.
#[allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("relay.v1");
}

/// The descriptor set of all files, without comments and positions.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The protocol version that this build speaks, newest.
pub const PROTOCOL_MAX: u32 = 1;

/// The protocol version that this build speaks, oldest.
pub const PROTOCOL_MIN: u32 = 1;
