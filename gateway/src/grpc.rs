//! The RPC services: translate, authorise, call. No logic of their own.

mod approvals;
mod auth;
mod enrolment;
mod node_link;
mod operator;
mod tasks;
mod tools;

use std::sync::Arc;

use proto::v1::approvals_server::ApprovalsServer;
use proto::v1::enrolment_server::EnrolmentServer;
use proto::v1::node_link_server::NodeLinkServer;
use proto::v1::operator_server::OperatorServer;
use proto::v1::tools_server::ToolsServer;
use tonic::service::Routes;

use crate::gateway::Gateway;

/// A request larger than this is refused: a command with its environment is at
/// most 2 MiB, the system's own limit.
const MESSAGE_MAX: usize = 4 * 1024 * 1024;

/// One service implementation per file, all over the same gateway.
#[derive(Debug, Clone)]
pub(crate) struct Service(pub(crate) Arc<Gateway>);

/// All services. Which of them a caller may use is decided per request.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> Routes {
    let service = Service(Arc::clone(gateway));
    Routes::new(NodeLinkServer::new(service.clone()).max_decoding_message_size(MESSAGE_MAX))
        .add_service(EnrolmentServer::new(service.clone()).max_decoding_message_size(64 * 1024))
        .add_service(OperatorServer::new(service.clone()).max_decoding_message_size(MESSAGE_MAX))
        .add_service(ApprovalsServer::new(service.clone()).max_decoding_message_size(64 * 1024))
        .add_service(ToolsServer::new(service).max_decoding_message_size(MESSAGE_MAX))
}
