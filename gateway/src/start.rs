//! From a request to a running session: choose the node, check, dispatch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use config::ExecConfig;
use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use node_host::enforce::{ask_to_wire, security_to_wire};
use prost::Message as _;
use proto::v1::{self as pb, reply::Answer, request::Command};

use crate::asking::{self, Begun, Caller};
use crate::feed::FeedReader;
use crate::follow::OnClose;
use crate::gateway::Gateway;
use crate::kills;
use crate::node_link::{Link, Unanswered};
use crate::requested::requested;
use crate::runs;

/// Limit of a run that names none (`runtime.md` §12).
const DEFAULT_TIMEOUT_MS: u64 = 1_800_000;
/// The node answers a run when the command was started, not when it ended.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A link lost while a run was on its way may come back within this time; the
/// run id then finds the session, or starts it once.
const RETRY_WITHIN: Duration = Duration::from_secs(30);
/// Largest run that is passed on: above what a system takes (2 MiB), so that
/// the node's own answer is heard, and below what a link carries.
const RUN_MAX: usize = 3 * 1024 * 1024;
/// Answer to a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A session with a reader at the wanted offset.
#[derive(Debug)]
pub struct Started {
    /// The link it was started or found over.
    pub link: Arc<Link>,
    /// What it looks like.
    pub session: pb::SessionInfo,
    /// Its output; none where it is read by views.
    pub reader: Option<FeedReader>,
    /// It was there before.
    pub existing: bool,
    /// Where it runs, when known.
    pub workdir: String,
    /// Variables of the request that do not reach the command.
    pub left_out_env: Vec<String>,
    /// The approval that let it run; empty where none was needed.
    pub approval_id: String,
    /// The rules that its allow-always stored.
    pub stored: Vec<String>,
    /// Why it stored none.
    pub not_stored: String,
}

/// How a command that is started is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// What becomes of it when its caller goes away.
    pub(crate) on_close: OnClose,
    /// Its output comes from its first byte on; otherwise views are asked for.
    pub(crate) follow: bool,
}

impl Manner {
    /// With a reader.
    pub(crate) fn followed(on_close: OnClose) -> Self {
        Self { on_close, follow: true }
    }
}

/// Chooses the node, adds the policy that is configured here and translates the request; refuses what a gateway can
/// already see is wrong. The node checks all of it again.
pub(crate) fn route(
    gateway: &Gateway,
    request: pb::ExecRequest,
) -> Result<(Arc<Link>, pb::RunRequest, ExecConfig), Fault> {
    check_host(&request)?;
    policy::check_overrides(request.env.iter().map(|(k, v)| (k.as_str(), v.as_str())))
        .map_err(|rejected| Fault::new(ErrorCode::EnvRejected, format!("Security Violation: {rejected}")))?;
    let agent = (!request.agent_id.is_empty()).then_some(request.agent_id.as_str());
    let exec = gateway.config.load()?.exec(agent);
    let requested = requested(&exec, &request)?;
    let link = gateway.registry.find_connected(&request.node)?;
    let stdin = match (request.stdin(), &request.terminal) {
        (pb::Stdin::Unspecified, None) => pb::Stdin::Closed,
        (pb::Stdin::Unspecified, Some(_)) => pb::Stdin::Open,
        (given, _) => given,
    };
    let deadline = request
        .deadline
        .unwrap_or(pb::Deadline { limit: Some(pb::deadline::Limit::TimeoutMs(DEFAULT_TIMEOUT_MS)) });
    let on_disconnect = request.on_disconnect.unwrap_or_else(|| {
        use pb::on_disconnect::Policy;
        let policy = match OnClose::of(request.on_close()) {
            OnClose::Kill => Policy::Kill(true),
            OnClose::Keep => Policy::Keep(true),
        };
        pb::OnDisconnect { policy: Some(policy) }
    });
    let run = pb::RunRequest {
        run_id: if request.run_id.is_empty() { new_run_id()? } else { request.run_id },
        invocation: request.invocation,
        workdir: request.workdir,
        env: request.env,
        stdin: stdin.into(),
        terminal: request.terminal,
        deadline: Some(deadline),
        security: security_to_wire(requested.security).into(),
        ask: ask_to_wire(requested.ask).into(),
        agent_id: request.agent_id,
        session_key: request.session_key,
        subscribe: None,
        strict_inline_eval: exec.strict_inline_eval,
        can_ask: false,
        permit: None,
        on_disconnect: Some(on_disconnect),
        limits: request.limits,
        answer_queries: request.answer_queries,
    };
    if run.encoded_len() > RUN_MAX {
        return Err(Fault::new(
            ErrorCode::CommandTooLong,
            format!("the command takes {} bytes, more than any system would", run.encoded_len()),
        )
        .hint("send the data as input (`--stdin`) or write it to a file first"));
    }
    Ok((link, run, exec))
}

/// What the node said to a run.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It runs.
    Started(Box<Started>),
    /// A person must say yes to this plan.
    NeedsApproval(Arc<Link>, Box<pb::Plan>),
}

/// Starts a session, exactly once, and reads it from its first byte. Where a person must be asked, that comes first.
pub(crate) async fn start(
    gateway: &Arc<Gateway>,
    request: pb::ExecRequest,
    manner: Manner,
    caller: Caller,
) -> Result<Begun, Fault> {
    let (link, mut run, exec) = route(gateway, request)?;
    run.can_ask = asking::can_ask(gateway, &caller, &exec);
    let sent = send(gateway, link, &run, manner).await;
    match sent.inspect_err(|fault| runs::denied(gateway, &run, fault, &caller.name))? {
        Sent::Started(started) => {
            runs::started(gateway, &started, &run, &caller.name);
            Ok(Begun::Started(started))
        }
        Sent::NeedsApproval(link, plan) => {
            Box::pin(asking::ask(gateway, link, run, *plan, manner, caller, &exec)).await
        }
    }
}

/// Has the node decide about a run, and start it at most once however often it is asked.
pub(crate) async fn send(
    gateway: &Arc<Gateway>,
    mut link: Arc<Link>,
    run: &pb::RunRequest,
    manner: Manner,
) -> Result<Sent, Fault> {
    let on_close = manner.on_close;
    let until = Instant::now() + START_TIMEOUT + RETRY_WITHIN;
    // Once an attempt went unanswered, no later answer proves that nothing ran.
    let mut may_run = false;
    loop {
        let (node, why) = (
            link.node,
            match dispatch(&link, run.clone(), manner).await {
                Ok(sent) => return Ok(sent),
                Err(Unanswered::Refused(fault)) if !may_run => return Err(fault),
                Err(Unanswered::NotSent(fault)) if !may_run => {
                    return Err(Fault::new(
                        ErrorCode::NotDispatched,
                        format!("the command was not sent: {}", fault.message),
                    )
                    .hint("nothing ran; it is safe to try again"));
                }
                Err(Unanswered::Refused(fault)) => {
                    return Err(unknown(gateway, &link.node, run, on_close, &fault));
                }
                Err(Unanswered::NotSent(fault) | Unanswered::Lost(fault)) => fault,
            },
        );
        may_run = true;
        tracing::info!(node = %node, run = run.run_id, %why, "run unanswered, waiting for the node");
        let left = until.saturating_duration_since(Instant::now()).min(RETRY_WITHIN);
        // An answer that cannot be understood will not get better.
        if left.is_zero() || why.code == ErrorCode::Internal {
            return Err(unknown(gateway, &node, run, on_close, &why));
        }
        link = match comes_back(gateway, &node, left).await {
            Ok(link) => link,
            // The caller finds the next gateway, and the same run id there.
            Err(fault) if fault.code == ErrorCode::Draining => return Err(fault),
            Err(fault) => return Err(unknown(gateway, &node, run, on_close, &fault)),
        };
    }
}

/// Nobody knows whether the run started. One whose caller waited for it is
/// ended should it turn up.
fn unknown(
    gateway: &Arc<Gateway>,
    node: &Fingerprint,
    run: &pb::RunRequest,
    on_close: OnClose,
    why: &Fault,
) -> Fault {
    if on_close == OnClose::Kill {
        kills::kill(gateway, *node, run.run_id.clone());
    }
    let name = gateway.registry.name(node);
    Fault::new(
        ErrorCode::OutcomeUnknown,
        format!("run {} may have started on {name}: {}", run.run_id, why.message),
    )
    .hint("check before you repeat it; `gateway sessions` lists it once the node is back")
}

async fn dispatch(link: &Arc<Link>, mut run: pb::RunRequest, manner: Manner) -> Result<Sent, Unanswered> {
    let pause = manner.on_close == OnClose::Kill;
    let may_ask = run.can_ask && run.permit.is_none();
    let reader = if manner.follow {
        let (reader, subscribe) = link.open_feed(None, 0, pause).map_err(Unanswered::NotSent)?;
        run.subscribe = Some(subscribe);
        Some(reader)
    } else {
        None
    };
    let subscription = run.subscribe.as_ref().map(|subscribe| subscribe.subscription);
    let answer = link.request(Command::Run(run), START_TIMEOUT).await?;
    let Answer::Run(pb::RunReply { outcome: Some(outcome) }) = answer else {
        return Err(Unanswered::Lost(Fault::new(
            ErrorCode::Internal,
            "the node answered with something else",
        )));
    };
    match outcome {
        pb::run_reply::Outcome::Started(pb::RunStarted {
            session: Some(session),
            existing,
            workdir,
            left_out_env,
            stored,
            not_stored,
        }) => {
            if let Some(subscription) = subscription.filter(|_| !pause) {
                link.share_feed(subscription, &session.session_id);
            }
            Ok(Sent::Started(Box::new(Started {
                link: Arc::clone(link),
                session,
                reader,
                existing,
                workdir,
                left_out_env,
                approval_id: String::new(),
                stored,
                not_stored,
            })))
        }
        pb::run_reply::Outcome::Started(_) => Err(Unanswered::Lost(Fault::new(
            ErrorCode::Internal,
            "the node started a session and did not name it",
        ))),
        pb::run_reply::Outcome::Refused(fault) => Err(Unanswered::Refused(fault.into())),
        pb::run_reply::Outcome::NeedsApproval(plan) if may_ask => {
            Ok(Sent::NeedsApproval(Arc::clone(link), Box::new(plan)))
        }
        pb::run_reply::Outcome::NeedsApproval(_) => Err(Unanswered::Refused(Fault::new(
            ErrorCode::Internal,
            "the node asked though nobody can be asked; nothing ran",
        ))),
    }
}

/// Finds a session and reads it from an offset.
pub(crate) async fn attach(
    gateway: &Gateway,
    request: &pb::AttachRequest,
    on_close: OnClose,
    scope: Option<&str>,
) -> Result<Started, Fault> {
    let (link, session) = find_session(gateway, &request.session, &request.node, scope).await?;
    if request.from_offset > session.end_offset {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            format!("session {} has {} bytes so far", session.session_id, session.end_offset),
        ));
    }
    // Whoever attaches so that the command ends with them takes the lease over; the node holds to it without us.
    let policy = request.on_disconnect.or_else(|| {
        let kill = pb::OnDisconnect { policy: Some(pb::on_disconnect::Policy::Kill(true)) };
        (on_close == OnClose::Kill).then_some(kill)
    });
    if let Some(policy) = policy.filter(|_| session.exit.is_none()) {
        let lease = pb::LeaseRequest {
            session_id: session.session_id.clone(),
            agent_id: String::new(),
            on_disconnect: Some(policy),
        };
        link.request(Command::Lease(lease), LIST_TIMEOUT).await.map_err(Unanswered::fault)?;
    }
    let reader = link.read(&session.session_id, request.from_offset, on_close == OnClose::Kill)?;
    Ok(Started {
        link,
        session,
        reader: Some(reader),
        existing: true,
        workdir: String::new(),
        left_out_env: Vec::new(),
        approval_id: String::new(),
        stored: Vec::new(),
        not_stored: String::new(),
    })
}

/// The session that a reference (id or unique prefix, also a run id) means,
/// over all connected nodes or on one. Only one agent's where one is named: those of others are not there.
pub(crate) async fn find_session(
    gateway: &Gateway,
    reference: &str,
    node: &str,
    agent: Option<&str>,
) -> Result<(Arc<Link>, pb::SessionInfo), Fault> {
    let links =
        if node.is_empty() { gateway.registry.links() } else { vec![gateway.registry.find_connected(node)?] };
    let mut exact = Vec::new();
    let mut prefixed = Vec::new();
    let mut unreachable: Vec<String> = if node.is_empty() {
        gateway.registry.nodes().into_iter().filter(|n| !n.connected).map(|n| n.display_name).collect()
    } else {
        Vec::new()
    };
    for (link, sessions) in sessions_on(&links).await {
        match sessions {
            Ok(sessions) => {
                for session in
                    sessions.into_iter().filter(|session| agent.is_none_or(|agent| is_of(session, agent)))
                {
                    let found = (Arc::clone(&link), session);
                    if found.1.session_id == reference || found.1.run_id == reference {
                        exact.push(found);
                    } else if is_prefix(reference, &found.1.session_id) {
                        prefixed.push(found);
                    }
                }
            }
            Err(_) => unreachable.push(gateway.registry.name(&link.node)),
        }
    }
    let mut found = if exact.is_empty() { prefixed } else { exact };
    if found.len() > 1 {
        let named: Vec<_> = found
            .iter()
            .map(|(link, s)| format!("{} on {}", s.session_id, gateway.registry.name(&link.node)))
            .collect();
        return Err(Fault::new(
            ErrorCode::AmbiguousSession,
            format!("`{reference}` may be any of: {}", named.join(", ")),
        )
        .hint("use the whole name, and `--node`"));
    }
    found.pop().ok_or_else(|| {
        let fault = Fault::new(ErrorCode::UnknownSession, format!("no session `{reference}`"));
        if unreachable.is_empty() {
            fault.hint("`gateway sessions` lists them; ended ones are kept for half an hour")
        } else {
            // It may be on one of those: not known is not the same as not there.
            Fault::new(
                ErrorCode::NodeOffline,
                format!(
                    "no connected node has a session `{reference}`; not connected: {}",
                    unreachable.join(", ")
                ),
            )
            .hint("sessions go on there; try again when the node is back")
        }
    })
}

/// Whether a session is this agent's. One that nobody was named for is the main agent's.
pub(crate) fn is_of(session: &pb::SessionInfo, agent: &str) -> bool {
    let named = if session.agent_id.is_empty() { policy::MAIN_AGENT } else { session.agent_id.as_str() };
    named == agent
}

/// Whether a person may mean `id` by its beginning. `calm-reef` is a whole id
/// and never short for `calm-reef-2`.
fn is_prefix(reference: &str, id: &str) -> bool {
    !reference.is_empty()
        && id.strip_prefix(reference).is_some_and(|rest| !(reference.contains('-') && rest.starts_with('-')))
}

/// Asks several nodes at once.
pub(crate) async fn sessions_on(
    links: &[Arc<Link>],
) -> Vec<(Arc<Link>, Result<Vec<pb::SessionInfo>, Fault>)> {
    let asked = links.iter().map(|link| async { (Arc::clone(link), sessions_of(link).await) });
    futures_util::future::join_all(asked).await
}

/// Asks one node.
pub(crate) async fn sessions_of(link: &Arc<Link>) -> Result<Vec<pb::SessionInfo>, Fault> {
    let command = Command::ListSessions(pb::ListSessionsRequest {});
    match link.request(command, LIST_TIMEOUT).await.map_err(Unanswered::fault)? {
        Answer::ListSessions(reply) => Ok(reply.sessions),
        _ => Err(Fault::new(ErrorCode::Internal, "the node answered with something else")),
    }
}

/// Waits for a live link of a node; an error when it was removed or did not
/// come back in time.
pub(crate) async fn comes_back(
    gateway: &Gateway,
    node: &Fingerprint,
    within: Duration,
) -> Result<Arc<Link>, Fault> {
    let mut changes = gateway.registry.changes();
    let wait = async {
        loop {
            changes.borrow_and_update();
            if let Some(link) = gateway.registry.link(node) {
                return Ok(link);
            }
            if !gateway.registry.is_paired(node) {
                return Err(Fault::new(ErrorCode::NodeRemoved, "the node was removed"));
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return Err(gateway.registry.offline(node));
                },
                () = gateway.stopping.cancelled() => {
                    return Err(Fault::new(ErrorCode::Draining, "the gateway is stopping"));
                }
            }
        }
    };
    tokio::time::timeout(within, wait).await.unwrap_or_else(|_| Err(gateway.registry.offline(node)))
}

/// Hosts of this version (`runtime.md` §1.6, field case F219).
fn check_host(request: &pb::ExecRequest) -> Result<(), Fault> {
    match request.host.trim().to_lowercase().as_str() {
        "node" => Ok(()),
        "" | "auto" if !request.node.is_empty() => Ok(()),
        known @ ("" | "auto" | "gateway" | "sandbox") => {
            let named = if known.is_empty() { "auto" } else { known };
            Err(Fault::new(ErrorCode::UnknownHost, format!("host `{named}` is not served by this version"))
                .hint("use host=node"))
        }
        other => Err(Fault::new(
            ErrorCode::UnknownHost,
            format!("unknown host `{other}`; it is one of auto, sandbox, gateway, node"),
        )
        .hint(format!("to run on the machine `{other}`: host=node node={other}"))),
    }
}

/// A run id for a caller that chose none.
pub(crate) fn new_run_id() -> Result<String, Fault> {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Fault::new(ErrorCode::Internal, format!("no random numbers: {e}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
