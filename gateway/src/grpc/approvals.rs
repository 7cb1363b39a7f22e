//! The approvals service: what waits for a yes, and the answers.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use proto::v1::{self as pb, Role, approval_event::Event, approvals_server::Approvals};
use tokio::sync::{broadcast, mpsc};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::Service;
use super::auth::peer;
use crate::approvals::Resolution;

/// Longest wait for a decision.
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);
/// Closed requests in an answer, unless said otherwise, and at most.
const HISTORY: u32 = 50;
const HISTORY_MAX: u32 = 1000;
/// Events that wait for a watcher to read them.
const EVENTS_MAX: usize = 64;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Approvals for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::ApprovalEvent, Status>> + Send>>;

    async fn list(&self, request: Request<pb::ListApprovalsRequest>) -> Answered<pb::ListApprovalsReply> {
        self.require(&request, Role::Approvals)?;
        Ok(Response::new(pb::ListApprovalsReply { approvals: self.0.approvals.list() }))
    }

    async fn get(&self, request: Request<pb::ApprovalRef>) -> Answered<pb::Approval> {
        self.require(&request, Role::Approvals)?;
        Ok(Response::new(self.0.approvals.get(&request.into_inner().id)?))
    }

    async fn wait(&self, request: Request<pb::WaitApprovalRequest>) -> Answered<pb::Approval> {
        self.require(&request, Role::Approvals)?;
        let pb::WaitApprovalRequest { id, wait_ms } = request.into_inner();
        let within = if wait_ms == 0 { WAIT_MAX } else { Duration::from_millis(wait_ms).min(WAIT_MAX) };
        let approvals = &self.0.approvals;
        tokio::select! {
            waited = tokio::time::timeout(within, approvals.wait(&id)) => match waited {
                Ok(approval) => Ok(Response::new(approval?)),
                Err(_) => Ok(Response::new(approvals.get(&id)?)),
            },
            () = self.0.stopping.cancelled() => Ok(Response::new(approvals.get(&id)?)),
        }
    }

    async fn resolve(&self, request: Request<pb::ResolveRequest>) -> Answered<pb::Approval> {
        let by = self.require(&request, Role::Approvals)?.name().to_owned();
        let from = match peer(&request)?.address {
            Some(address) => address.to_string(),
            None => "unix socket".to_owned(),
        };
        let request = request.into_inner();
        Ok(Response::new(self.0.approvals.resolve(Resolution { request, by, from })?))
    }

    async fn history(
        &self,
        request: Request<pb::ApprovalHistoryRequest>,
    ) -> Answered<pb::ApprovalHistoryReply> {
        self.require(&request, Role::Approvals)?;
        let limit = match request.into_inner().limit {
            0 => HISTORY,
            limit => limit.min(HISTORY_MAX),
        };
        Ok(Response::new(pb::ApprovalHistoryReply { approvals: self.0.approvals.history(limit)? }))
    }

    async fn watch(&self, request: Request<pb::WatchApprovalsRequest>) -> Answered<Self::WatchStream> {
        self.require(&request, Role::Approvals)?;
        let gateway = Arc::clone(&self.0);
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let (open, mut events, watching) = gateway.approvals.watch();
        tokio::spawn(async move {
            // Who watches counts until it leaves.
            let _watching = watching;
            let mut open = open;
            loop {
                let caught_up = Event::CaughtUp(pb::approval_event::Caught {});
                for event in open.drain(..).map(Event::Requested).chain([caught_up]) {
                    if sender.send(Ok(pb::ApprovalEvent { event: Some(event) })).await.is_err() {
                        return;
                    }
                }
                loop {
                    let event = tokio::select! {
                        event = events.recv() => event,
                        () = sender.closed() => return,
                        () = gateway.stopping.cancelled() => return,
                    };
                    match event {
                        Ok(event) => {
                            if sender.send(Ok(event)).await.is_err() {
                                return;
                            }
                        }
                        // Too slow: everything that is open, anew.
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            open = gateway.approvals.all_open();
                            break;
                        }
                        Err(broadcast::error::RecvError::Closed) => return,
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}
