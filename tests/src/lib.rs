//! The bench for stories: real programs in temporary state directories, a
//! proxy that breaks the network on demand, and raw peers that say what the
//! programs never would.
//!
//! It knows the programs only from outside: command line, wire, files, `/proc`.
//! The stories themselves are in `tests/stories`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken bench is a failed test")]

mod bed;
mod cli;
mod eventually;
mod fake_gateway;
pub mod fault_matrix;
mod grpc;
mod node;
mod pattern;
pub mod proc;
mod programs;
mod proxy;
mod raw_node;
mod tool;

pub use bed::{GatewayOptions, TestBed};
pub use cli::{Outcome, Reading, Running};
pub use eventually::{PATIENCE, eventually, measured};
pub use fake_gateway::{FakeGateway, FakeLink, full_run};
pub use grpc::{Followed, Session, argv_request, follow, shell_request};
pub use node::{Node, NodeOptions, RunAs};
pub use pattern::pattern;
pub use programs::{Ended, Program, Sig, helper};
pub use proxy::{Cut, Direction, FaultProxy};
pub use raw_node::{RawLink, RawNode};
pub use tool::{Answer, Calling, Desk, Tool};

/// Runs a future to its end on the runtime that all stories share.
pub fn block_on<F: Future>(future: F) -> F::Output {
    runtime().block_on(future)
}

/// The runtime of proxies, fake peers and direct clients.
pub fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: std::sync::OnceLock<tokio::runtime::Runtime> = std::sync::OnceLock::new();
    RUNTIME.get_or_init(|| {
        identity::install_crypto_provider();
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}
