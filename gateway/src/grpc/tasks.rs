//! The ends of background commands, and the commands themselves (runtime spec §5.3, §5.6).

use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, Role, request::Command};
use tonic::{Request, Response, Status};

use super::Service;
use super::auth::Caller;
use crate::start;

/// Longest wait for an end.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Answer to a kill.
const ANSWER: Duration = Duration::from_secs(10);

type Answered<T> = Result<Response<T>, Status>;

pub(super) async fn take_events(
    service: &Service,
    request: Request<pb::TakeEventsRequest>,
) -> Answered<pb::TakeEventsReply> {
    let caller = service.require(&request, Role::Write)?;
    let request = request.into_inner();
    let agent = caller.agent(&request.agent_id)?;
    let gateway = &service.0;
    let until = tokio::time::sleep(Duration::from_millis(request.wait_ms).min(WAIT_MAX));
    tokio::pin!(until);
    let mut queued = gateway.tasks.queued();
    let mut taken = request.taken;
    loop {
        queued.borrow_and_update();
        let notices = gateway.tasks.take(&agent, &request.session_key, taken)?;
        // They are gone by now.
        taken = 0;
        if !notices.is_empty() {
            return Ok(Response::new(pb::TakeEventsReply { notices }));
        }
        tokio::select! {
            Ok(()) = queued.changed() => {}
            () = &mut until => return Ok(Response::new(pb::TakeEventsReply::default())),
            () = gateway.stopping.cancelled() => return Ok(Response::new(pb::TakeEventsReply::default())),
        }
    }
}

pub(super) fn list_tasks(
    service: &Service,
    request: Request<pb::ListTasksRequest>,
) -> Answered<pb::ListTasksReply> {
    let caller = service.require(&request, Role::Read)?;
    let agent = scope(&caller, &request.get_ref().agent_id)?;
    let tasks = service.0.tasks.list(agent.as_deref(), request.get_ref().running)?;
    Ok(Response::new(pb::ListTasksReply { tasks }))
}

pub(super) async fn stop_task(
    service: &Service,
    request: Request<pb::StopTaskRequest>,
) -> Answered<pb::StopTaskReply> {
    let caller = service.require(&request, Role::Write)?;
    let agent = scope(&caller, &request.get_ref().agent_id)?;
    let task = find(service.0.tasks.list(agent.as_deref(), false)?, &request.get_ref().task)?;
    if task.status() != pb::task::Status::Running {
        return Err(ended(&task).into());
    }
    let link = service.0.registry.find_connected(&task.node_id)?;
    // By its run id: the name of a session that is forgotten may have come again, perhaps for another agent.
    let is_it = |session: &pb::SessionInfo| {
        session.session_id == task.session_id && session.run_id == task.task_id && session.exit.is_none()
    };
    if !start::sessions_of(&link).await?.iter().any(is_it) {
        return Err(ended(&task).into());
    }
    let kill = Command::Kill(pb::KillRequest {
        session_id: task.session_id.clone(),
        grace_ms: 0,
        ..pb::KillRequest::default()
    });
    link.request(kill, ANSWER).await.map_err(|unanswered| unanswered.fault())?;
    Ok(Response::new(pb::StopTaskReply { task: Some(task) }))
}

fn ended(task: &pb::Task) -> Fault {
    let message = format!("the background command {} has ended already", task.session_id);
    Fault::new(ErrorCode::SessionEnded, message)
}

/// Whose commands a caller means: one who may see all sessions and names nobody means everybody's.
fn scope(caller: &Caller, named: &str) -> Result<Option<String>, Fault> {
    if named.is_empty() && caller.scope().is_none() {
        return Ok(None);
    }
    caller.agent(named).map(Some)
}

/// The command that a reference means: its run id or session, or a beginning of one that no other has. A name that comes
/// again means the command that runs, else the newest.
fn find(tasks: Vec<pb::Task>, reference: &str) -> Result<pb::Task, Fault> {
    let mut exact: Vec<pb::Task> = Vec::new();
    let mut begun: Vec<pb::Task> = Vec::new();
    for task in tasks {
        if reference == task.task_id || reference == task.session_id {
            exact.push(task);
        } else if is_prefix(reference, &task.session_id) || is_prefix(reference, &task.task_id) {
            begun.push(task);
        }
    }
    let runs = |task: &pb::Task| task.status() == pb::task::Status::Running;
    let is_exact = !exact.is_empty();
    let mut found = if is_exact { exact } else { begun };
    if found.iter().any(runs) {
        found.retain(runs);
    }
    // Names are given anew by each node, so that even two that run may share one.
    if found.len() > 1 && !(is_exact && found.iter().all(|task| !runs(task))) {
        let named: Vec<_> =
            found.iter().map(|task| format!("{} on {}", task.session_id, task.node_name)).collect();
        let message = format!("`{reference}` may be any of: {}", named.join(", "));
        return Err(Fault::new(ErrorCode::AmbiguousSession, message).hint("use the whole id of the task"));
    }
    found.into_iter().next().ok_or_else(|| {
        Fault::new(ErrorCode::UnknownTask, format!("no background command `{reference}`"))
            .hint("`gateway tasks` lists them; ended ones are kept for a week")
    })
}

/// Whether `id` may be meant by its beginning. `calm-reef` is a whole name and never short for `calm-reef-2`.
fn is_prefix(reference: &str, id: &str) -> bool {
    !reference.is_empty()
        && id.strip_prefix(reference).is_some_and(|rest| !(reference.contains('-') && rest.starts_with('-')))
}

#[cfg(test)]
mod tests;
