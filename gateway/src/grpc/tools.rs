//! The tools service: start, follow, attach, list, kill.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use futures_util::future::BoxFuture;
use proto::v1::{self as pb, Role, client_frame, reply::Answer, request::Command, tools_server::Tools};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Service;
use super::auth::Caller as Identity;
use crate::asking::{Begun, Caller};
use crate::follow::{Events as EventSender, Follow, OnClose};
use crate::input;
use crate::start::{self, Manner};
use crate::tools;

/// Events that may wait for a slow client. Credit stops the node beyond that.
const EVENTS_MAX: usize = 8;
/// Answer to a question that needs no waiting on the node.
const QUICK: Duration = Duration::from_secs(10);
/// Answer to a prepare (`runtime.md` §6.8).
const PREPARE: Duration = Duration::from_secs(15);

type Events = Pin<Box<dyn Stream<Item = Result<pb::SessionEvent, Status>> + Send>>;

#[tonic::async_trait]
impl Tools for Service {
    type ExecStream = Events;
    type InteractStream = Events;
    type EventsStream = Pin<Box<dyn Stream<Item = Result<pb::Notice, Status>> + Send>>;

    async fn exec(&self, request: Request<pb::ExecRequest>) -> Result<Response<Events>, Status> {
        let caller = self.require(&request, Role::Write)?;
        let request = for_agent(&caller, request.into_inner())?;
        let name = caller.name().to_owned();
        let on_close = OnClose::of_exec(&request);
        Ok(Response::new(self.stream(self.starter(request, name), on_close, None)))
    }

    async fn interact(
        &self,
        request: Request<Streaming<pb::ClientFrame>>,
    ) -> Result<Response<Events>, Status> {
        let caller = self.require(&request, Role::Write)?;
        let name = caller.name().to_owned();
        let mut frames = request.into_inner();
        let first = frames.message().await?.and_then(|frame| frame.frame);
        match first {
            Some(client_frame::Frame::Start(request)) => {
                let request = for_agent(&caller, request)?;
                let on_close = OnClose::of_exec(&request);
                let typing = Typing { writer: (request.input_writer, 0), frames };
                Ok(Response::new(self.stream(self.starter(request, name), on_close, Some(typing))))
            }
            Some(client_frame::Frame::Attach(request)) => {
                // Whoever attaches is a guest unless it says otherwise.
                let on_close = match request.on_close() {
                    pb::OnClose::Kill => OnClose::Kill,
                    pb::OnClose::Keep | pb::OnClose::Unspecified => OnClose::Keep,
                };
                let typing = Typing { writer: (request.input_writer, request.input_offset), frames };
                let gateway = Arc::clone(&self.0);
                let scope = caller.scope().map(str::to_owned);
                let start = move |_| async move {
                    let started = start::attach(&gateway, &request, on_close, scope.as_deref()).await?;
                    Ok(Begun::Started(Box::new(started)))
                };
                Ok(Response::new(self.stream(start, on_close, Some(typing))))
            }
            _ => Err(Fault::new(ErrorCode::InvalidRequest, "the first frame starts or attaches").into()),
        }
    }

    async fn list_sessions(
        &self,
        request: Request<pb::ListRequest>,
    ) -> Result<Response<pb::ListReply>, Status> {
        let caller = self.require(&request, Role::Read)?;
        let mine =
            |session: &pb::SessionInfo| caller.scope().is_none_or(|agent| start::is_of(session, agent));
        let node = request.into_inner().node;
        let links = if node.is_empty() {
            self.0.registry.links()
        } else {
            vec![self.0.registry.find_connected(&node)?]
        };
        let mut reply = pb::ListReply::default();
        if node.is_empty() {
            reply.unreachable.extend(self.0.registry.nodes().into_iter().filter(|n| !n.connected).map(|n| {
                let fault = Fault::new(ErrorCode::NodeOffline, "it is not connected");
                pb::NodeFault { node_id: n.node_id, node_name: n.display_name, fault: Some(fault.into()) }
            }));
        }
        for (link, sessions) in start::sessions_on(&links).await {
            let (node_id, node_name) = (link.node.to_hex(), self.0.registry.name(&link.node));
            match sessions {
                Ok(sessions) => reply.sessions.extend(sessions.into_iter().filter(mine).map(|s| {
                    pb::SessionInfo { node_id: node_id.clone(), node_name: node_name.clone(), ..s }
                })),
                Err(fault) => {
                    reply.unreachable.push(pb::NodeFault { node_id, node_name, fault: Some(fault.into()) });
                }
            }
        }
        reply.sessions.sort_by_key(|s| std::cmp::Reverse(s.started_unix_ms));
        Ok(Response::new(reply))
    }

    async fn kill(
        &self,
        request: Request<pb::KillSessionRequest>,
    ) -> Result<Response<pb::KillSessionReply>, Status> {
        let caller = self.require(&request, Role::Write)?;
        let request = request.into_inner();
        let found = start::find_session(&self.0, &request.session, &request.node, caller.scope()).await;
        let (link, session) = match found {
            Err(fault) if fault.code == ErrorCode::UnknownSession && request.before_start => {
                let link = self.0.registry.find_connected(&request.node)?;
                let kill = pb::KillRequest {
                    run_id: request.session,
                    agent_id: caller.scope().unwrap_or_default().to_owned(),
                    ..pb::KillRequest::default()
                };
                link.request(Command::Kill(kill), QUICK).await.map_err(|e| e.fault())?;
                return Ok(Response::new(pb::KillSessionReply { session: None }));
            }
            found => found?,
        };
        if let Some(exit) = &session.exit {
            let how = match exit.how {
                Some(pb::exit::How::Code(code)) => format!(" with code {code}"),
                Some(pb::exit::How::Signal(signal)) => format!(" by signal {signal}"),
                _ => String::new(),
            };
            return Err(Fault::new(
                ErrorCode::SessionEnded,
                format!("session {} has ended already{how}", session.session_id),
            )
            .into());
        }
        let command = Command::Kill(pb::KillRequest {
            session_id: session.session_id.clone(),
            grace_ms: request.grace_ms,
            ..pb::KillRequest::default()
        });
        link.request(command, QUICK).await.map_err(|e| e.fault())?;
        Ok(Response::new(pb::KillSessionReply { session: Some(session) }))
    }

    async fn prepare(&self, request: Request<pb::ExecRequest>) -> Result<Response<pb::Plan>, Status> {
        let caller = self.require(&request, Role::Write)?;
        let (link, mut run, _) = start::route(&self.0, for_agent(&caller, request.into_inner())?)?;
        // The plan is shown, not decided about.
        run.can_ask = true;
        let command = Command::Prepare(pb::PrepareRequest { run: Some(run) });
        let outcome = match link.request(command, PREPARE).await.map_err(|e| e.fault())? {
            Answer::Prepare(reply) => reply.outcome,
            _ => None,
        };
        match outcome {
            Some(pb::prepare_reply::Outcome::Plan(plan)) => Ok(Response::new(plan)),
            Some(pb::prepare_reply::Outcome::Refused(fault)) => Err(Fault::from(fault).into()),
            None => Err(Fault::new(ErrorCode::Internal, "the node answered with something else").into()),
        }
    }

    async fn events(
        &self,
        request: Request<pb::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        let caller = self.require(&request, Role::Read)?;
        let pb::EventsRequest { mut after, follow } = request.into_inner();
        let gateway = Arc::clone(&self.0);
        let (notices, receiver) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(async move {
            let mut newest = gateway.notices.newest();
            loop {
                newest.borrow_and_update();
                while let Some(notice) = gateway.notices.next(after) {
                    after = notice.seq;
                    // What others run is none of its business.
                    if caller.scope().is_some_and(|agent| !is_for(&notice, agent)) {
                        continue;
                    }
                    if notices.send(Ok(notice)).await.is_err() {
                        return;
                    }
                }
                let more = async { follow && newest.changed().await.is_ok() };
                tokio::select! {
                    more = more => if !more { return },
                    () = notices.closed() => return,
                    () = gateway.stopping.cancelled() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    type CallToolStream = Pin<Box<dyn Stream<Item = Result<pb::ToolEvent, Status>> + Send>>;

    async fn call_tool(
        &self,
        request: Request<pb::ToolCall>,
    ) -> Result<Response<Self::CallToolStream>, Status> {
        let caller = self.require(&request, Role::Write)?;
        let request = request.into_inner();
        let agent = caller.agent(&request.agent_id)?;
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let call = tools::Call {
            agent,
            session_key: request.session_key.clone(),
            by: caller.name().to_owned(),
            call_id: request.call_id.clone(),
            wait: request.approval_wait(),
            node: request.node.clone(),
            updates: request.updates,
            events,
        };
        // A task of its own: a caller that leaves in the middle of a start must not leave a command behind.
        tokio::spawn(tools::serve(Arc::clone(&self.0), call, request.tool, request.arguments_json));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn take_events(
        &self,
        request: Request<pb::TakeEventsRequest>,
    ) -> Result<Response<pb::TakeEventsReply>, Status> {
        super::tasks::take_events(self, request).await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> Result<Response<pb::ListTasksReply>, Status> {
        super::tasks::list_tasks(self, request)
    }

    async fn stop_task(
        &self,
        request: Request<pb::StopTaskRequest>,
    ) -> Result<Response<pb::StopTaskReply>, Status> {
        super::tasks::stop_task(self, request).await
    }

    async fn which(
        &self,
        request: Request<pb::WhichOnNodeRequest>,
    ) -> Result<Response<pb::WhichReply>, Status> {
        self.require(&request, Role::Read)?;
        let request = request.into_inner();
        let link = self.0.registry.find_connected(&request.node)?;
        let command = Command::Which(pb::WhichRequest { bins: request.bins });
        match link.request(command, QUICK).await.map_err(|e| e.fault())? {
            Answer::Which(reply) => Ok(Response::new(reply)),
            _ => Err(Fault::new(ErrorCode::Internal, "the node answered with something else").into()),
        }
    }
}

impl Service {
    /// Starts what is asked for; the caller hears of it when a person has to be asked.
    fn starter(
        &self,
        request: pb::ExecRequest,
        name: String,
    ) -> impl FnOnce(EventSender) -> BoxFuture<'static, Result<Begun, Fault>> + Send + 'static {
        let gateway = Arc::clone(&self.0);
        let on_close = OnClose::of_exec(&request);
        move |events| {
            Box::pin(async move {
                let caller = Caller {
                    events,
                    wait: request.approval_wait(),
                    approval_id: request.approval_id.clone(),
                    name,
                };
                start::start(&gateway, request, Manner::followed(on_close), caller).await
            })
        }
    }

    /// Starts (or finds) a session and follows it into a stream of events.
    ///
    /// All of it in a task of its own: a caller that leaves while its start is
    /// unanswered must not leave a command behind that nobody owns.
    fn stream<F>(
        &self,
        start: impl FnOnce(EventSender) -> F + Send + 'static,
        on_close: OnClose,
        typing: Option<Typing>,
    ) -> Events
    where
        F: Future<Output = Result<Begun, Fault>> + Send + 'static,
    {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let gateway = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut started = match start(events.clone()).await {
                Ok(Begun::Started(started)) => *started,
                Ok(Begun::Pending) => return,
                Err(fault) => {
                    // A caller that is gone needs no error.
                    let _ = events.send(Err(fault.into())).await;
                    return;
                }
            };
            let (node, session) = (started.link.node, started.session.session_id.clone());
            let Some(reader) = started.reader.take() else { return };
            let (follow, handle) = Follow::new(Arc::clone(&gateway), started, reader, on_close, events);
            if let Some(Typing { writer, frames }) = typing {
                tokio::spawn(input::pump(gateway, node, session, writer, frames, handle));
            }
            follow.run().await;
        });
        Box::pin(ReceiverStream::new(receiver))
    }
}

/// Whether a notice is about a command of this agent.
fn is_for(notice: &pb::Notice, agent: &str) -> bool {
    let named = if notice.agent_id.is_empty() { policy::MAIN_AGENT } else { notice.agent_id.as_str() };
    named == agent
}

/// The request as the caller may make it: for its own agent, unless it speaks for others.
fn for_agent(caller: &Identity, request: pb::ExecRequest) -> Result<pb::ExecRequest, Fault> {
    let named = request.agent_id.trim();
    // Where nobody says otherwise the main agent stays unnamed, as it was.
    let agent_id = match caller.agent(named)? {
        agent if named.is_empty() && agent == policy::MAIN_AGENT => String::new(),
        agent => agent,
    };
    Ok(pb::ExecRequest { agent_id, ..request })
}

/// The caller's side of a session: which writer it is, and what it sends.
struct Typing {
    writer: (u64, u64),
    frames: Streaming<pb::ClientFrame>,
}
