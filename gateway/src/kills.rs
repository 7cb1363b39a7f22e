//! Ending sessions whose caller is gone, also while their node is away.

use std::sync::Arc;
use std::time::Duration;

use identity::Fingerprint;
use proto::v1::{self as pb, request::Command};

use crate::gateway::Gateway;
use crate::node_link::Unanswered;
use crate::start::{comes_back, sessions_of};

/// Kills at work at one time. Beyond it a session runs on to its deadline.
pub(crate) const KILLS_MAX: usize = 1024;
/// A node that does not come back within this time has ended the session by
/// its deadline, or somebody else must.
const WITHIN: Duration = Duration::from_secs(3600);
/// Answer to a kill.
const ANSWER: Duration = Duration::from_secs(10);

/// Ends a session, named by its id or its run id, in the background: now, or
/// when its node is back.
pub(crate) fn kill(gateway: &Arc<Gateway>, node: Fingerprint, name: String) {
    let Ok(slot) = Arc::clone(&gateway.kills).try_acquire_owned() else {
        tracing::warn!(%name, "too many kills are under way; this session runs on to its deadline");
        return;
    };
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        let _slot = slot;
        if tokio::time::timeout(WITHIN, until_answered(&gateway, &node, &name)).await.is_err() {
            tracing::warn!(%name, "its node did not come back; the session was not killed");
        }
    });
}

async fn until_answered(gateway: &Gateway, node: &Fingerprint, name: &str) {
    loop {
        let Ok(link) = comes_back(gateway, node, WITHIN).await else { return };
        // By list, since a run id may be all that is known of it. A run that is not there yet is not to start any more.
        let Ok(sessions) = sessions_of(&link).await else {
            link.closed().await;
            continue;
        };
        let wanted = |s: &&pb::SessionInfo| s.session_id == name || s.run_id == name;
        let kill = match sessions.iter().find(wanted) {
            Some(session) if session.exit.is_some() => return,
            Some(session) => {
                pb::KillRequest { session_id: session.session_id.clone(), ..pb::KillRequest::default() }
            }
            None => pb::KillRequest { run_id: name.to_owned(), ..pb::KillRequest::default() },
        };
        match link.request(Command::Kill(kill), ANSWER).await {
            Ok(_) | Err(Unanswered::Refused(_)) => return,
            Err(Unanswered::NotSent(_) | Unanswered::Lost(_)) => link.closed().await,
        }
    }
}
