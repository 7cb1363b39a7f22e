//! Finding an agent's session, and asking its node about it for as long as that makes sense.

use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use proto::v1::{self as pb, reply::Answer, request::Command};
use tokio::time::Instant;

use super::state::Found;
use crate::gateway::Gateway;
use crate::node_link::Unanswered;
use crate::start::{comes_back, find_session};

/// Answer to a question that needs no waiting on the node.
pub(super) const QUICK: Duration = Duration::from_secs(20);
/// What an answer may take on top of a wait.
const MARGIN: Duration = Duration::from_secs(5);
/// How long a link that was lost while a question was open has to come back.
const RETURN: Duration = Duration::from_secs(20);

/// The session that an agent means: by id, run id, or a beginning of the id. Those of others are not there.
pub(super) async fn locate(gateway: &Gateway, agent: &str, reference: &str) -> Result<Found, Fault> {
    if let Some(found) = gateway.tools.find(agent, reference) {
        return Ok(found);
    }
    let (link, session) = find_session(gateway, reference, "", Some(agent)).await?;
    let found = Found { node: link.node, session: session.session_id };
    gateway.tools.note(agent, &found);
    Ok(found)
}

/// Asks the node of a session. The question must be one that may be asked twice: a lost link is waited for.
pub(super) async fn ask(
    gateway: &Gateway,
    found: &Found,
    command: Command,
    waits: Duration,
) -> Result<Answer, Fault> {
    let until = Instant::now() + waits + MARGIN.max(QUICK);
    loop {
        let link = match gateway.registry.link(&found.node) {
            Some(link) => link,
            None if !gateway.registry.is_paired(&found.node) => {
                return Err(Fault::new(ErrorCode::NodeRemoved, "the session's node was removed"));
            }
            None => comes_back(gateway, &found.node, Duration::ZERO)
                .await
                .map_err(|fault| fault.hint("the session goes on there; ask again when the node is back"))?,
        };
        match link.request(command.clone(), waits + QUICK).await {
            Ok(answer) => return Ok(answer),
            Err(Unanswered::Refused(fault)) => return Err(fault),
            Err(Unanswered::NotSent(fault) | Unanswered::Lost(fault)) => {
                let left = until.saturating_duration_since(Instant::now()).min(RETURN);
                if left.is_zero() || fault.code == ErrorCode::Timeout {
                    return Err(fault);
                }
                comes_back(gateway, &found.node, left).await?;
            }
        }
    }
}

/// One view of a session.
pub(super) async fn view(
    gateway: &Gateway,
    agent: &str,
    found: &Found,
    max_chars: usize,
    view: pb::view_request::View,
) -> Result<(pb::SessionState, pb::view_reply::View), Fault> {
    let waits = match &view {
        pb::view_request::View::Read(pb::ReadView { wait: Some(wait), .. }) => {
            Duration::from_millis(wait.timeout_ms)
        }
        _ => Duration::ZERO,
    };
    let request = pb::ViewRequest {
        session_id: found.session.clone(),
        agent_id: agent.to_owned(),
        max_chars: u32::try_from(max_chars).unwrap_or(u32::MAX),
        view: Some(view),
    };
    let answer = ask(gateway, found, Command::View(request), waits).await;
    if answer.as_ref().is_err_and(|fault| fault.code == ErrorCode::UnknownSession) {
        gateway.tools.forget(agent, &found.session);
    }
    match answer? {
        Answer::View(pb::ViewReply { state: Some(mut state), view: Some(view) }) => {
            if let Some(session) = &mut state.session {
                session.node_id = found.node.to_hex();
                session.node_name = gateway.registry.name(&found.node);
            }
            Ok((state, view))
        }
        _ => Err(unexpected()),
    }
}

/// New output of a session.
pub(super) async fn read(
    gateway: &Gateway,
    agent: &str,
    found: &Found,
    max_chars: usize,
    wanted: pb::ReadView,
) -> Result<(pb::SessionState, pb::ReadText), Fault> {
    match view(gateway, agent, found, max_chars, pb::view_request::View::Read(wanted)).await? {
        (state, pb::view_reply::View::Read(text)) => Ok((state, text)),
        _ => Err(unexpected()),
    }
}

/// Does something to a session that is done or refused.
pub(super) async fn act(gateway: &Arc<Gateway>, found: &Found, command: Command) -> Result<(), Fault> {
    match ask(gateway, found, command, Duration::ZERO).await? {
        Answer::Done(_) => Ok(()),
        _ => Err(unexpected()),
    }
}

pub(super) fn unexpected() -> Fault {
    Fault::new(ErrorCode::Internal, "the node answered with something else")
}
