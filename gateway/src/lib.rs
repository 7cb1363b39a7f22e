//! The gateway: pairs node hosts, routes commands to them and streams their
//! output. It caches and routes; it never holds the only copy of anything
//! about a session.
//!
//! The way of a command: `cli::exec` or an agent → `grpc::tools` → `start`
//! (choose the node, dispatch) → `node_link` (the link) → the node host; back
//! through `node_link` → `feed` → `follow` → the caller.

mod approvals;
mod asking;
pub mod cli;
mod clock;
mod config_cache;
pub mod feed;
pub mod follow;
pub mod gateway;
mod grpc;
mod http;
mod input;
mod kills;
pub mod node_link;
mod notices;
pub mod pairing;
pub mod reference;
pub mod registry;
mod requested;
mod review;
mod runs;
pub mod serve;
pub mod server;
mod start;
pub mod store;
mod tasks;
mod tools;
mod webhook;
