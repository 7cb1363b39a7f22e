use std::path::Path;

use pb::approval_event::Event;
use pb::lasting::Until;
use tempfile::TempDir;

use crate::store::SqliteStore;

use super::*;

mod answers;

/// Approvals over a store that another test can open again.
pub(super) struct Bed {
    pub(super) approvals: Arc<Approvals>,
    store: Arc<SqliteStore>,
    stopping: CancellationToken,
    dir: TempDir,
}

impl Bed {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&store_path(&dir)).unwrap());
        let stopping = CancellationToken::new();
        let approvals = Approvals::open(Arc::clone(&store) as _, None, stopping.clone()).unwrap();
        Self { approvals: Arc::new(approvals), store, stopping, dir }
    }

    /// The same store, as the next process finds it.
    fn restarted(&self) -> Arc<Approvals> {
        let store = SqliteStore::open(&store_path(&self.dir)).unwrap();
        Arc::new(Approvals::open(Arc::new(store), None, CancellationToken::new()).unwrap())
    }

    /// From now on the store takes no approvals.
    fn break_store(&self) {
        let path = store_path(&self.dir);
        rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE approvals").unwrap();
    }

    fn stored(&self, id: &str) -> pb::Approval {
        let [approval] = self.store.approvals_like(id).unwrap().try_into().unwrap();
        approval
    }
}

fn store_path(dir: &TempDir) -> std::path::PathBuf {
    Path::new(dir.path()).join("gateway.db")
}

pub(super) fn plan() -> pb::Plan {
    let scope = |scope: pb::Scope, not_durable: &str| pb::AlwaysScope {
        scope: scope.into(),
        rules: vec![pb::ScopeRule { pattern: "/usr/bin/ls".to_owned(), ..pb::ScopeRule::default() }],
        not_durable: not_durable.to_owned(),
    };
    approval::seal(pb::Plan {
        command_text: "ls -l".to_owned(),
        session_key: "s".to_owned(),
        expires_unix_ms: i64::MAX,
        always: vec![
            scope(pb::Scope::Exact, "its script can be changed by its user"),
            scope(pb::Scope::Program, ""),
        ],
        ..pb::Plan::default()
    })
}

pub(super) fn new(id: &str, plan: pb::Plan) -> NewApproval {
    NewApproval {
        id: (!id.is_empty()).then(|| id.to_owned()),
        node: Fingerprint([7; 32]),
        node_name: "lab".to_owned(),
        plan,
        requested_by: "bob".to_owned(),
    }
}

pub(super) fn answer(id: &str, decision: pb::Decision) -> Resolution {
    Resolution {
        request: pb::ResolveRequest {
            id: id.to_owned(),
            decision: decision.into(),
            ..pb::ResolveRequest::default()
        },
        by: "ann".to_owned(),
        from: "unix socket".to_owned(),
    }
}

pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Fault>) -> ErrorCode {
    result.unwrap_err().code
}

fn ends(events: &mut broadcast::Receiver<pb::ApprovalEvent>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    while let Ok(event) = events.try_recv() {
        found.push(match event.event.unwrap() {
            Event::Requested(approval) => ("requested", approval.approval_id),
            Event::Closed(approval) => ("closed", approval.approval_id),
            Event::CaughtUp(_) => ("caught up", String::new()),
        });
    }
    found
}

/// Passes when a moment is over by the clock that the code reads.
async fn reach(moment: UnixMs) {
    while clock::now_ms() < moment {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_yes_is_taken_once_and_is_written_down() {
    let bed = Bed::new();
    let mut ticket = bed.approvals.request(new("", plan())).unwrap();
    let asked = ticket.approval().clone();
    assert_eq!(bed.stored(&asked.approval_id), asked);
    assert_eq!(
        asked,
        pb::Approval {
            approval_id: asked.approval_id.clone(),
            node_id: Fingerprint([7; 32]).to_hex(),
            node_name: "lab".to_owned(),
            plan: Some(plan()),
            allowed: vec![1, 2, 3],
            created_unix_ms: asked.created_unix_ms,
            expires_unix_ms: asked.created_unix_ms + LIFE_MS,
            requested_by: "bob".to_owned(),
            status: pb::ApprovalStatus::Pending.into(),
            ..pb::Approval::default()
        }
    );
    // A beginning, in the other case, from another connection.
    let slug = asked.approval_id[..8].to_uppercase();
    let closed = bed.approvals.resolve(answer(&slug, pb::Decision::AllowOnce)).unwrap();
    let decided = pb::Approval {
        status: pb::ApprovalStatus::Allowed.into(),
        reason: "user".to_owned(),
        decision: pb::Decision::AllowOnce.into(),
        decided_by: "ann".to_owned(),
        decided_from: "unix socket".to_owned(),
        closed_unix_ms: closed.closed_unix_ms,
        ..asked.clone()
    };
    assert_eq!(closed, decided);
    assert_eq!(bed.stored(&asked.approval_id), decided);
    let Outcome::Allowed(permit) = ticket.decided().await else { panic!("no permit") };
    assert_eq!(
        permit,
        pb::Permit {
            approval_id: asked.approval_id.clone(),
            plan_digest: plan().digest,
            decision: pb::Decision::AllowOnce.into(),
            decided_by: "ann".to_owned(),
            decided_unix_ms: closed.closed_unix_ms,
            ..pb::Permit::default()
        }
    );
    // The decision is used.
    assert!(matches!(ticket.decided().await, Outcome::Cancelled(_)));
    ticket.close("started as x");
    let known = bed.approvals.get(&slug).unwrap();
    assert_eq!((known.status(), known.outcome.as_str()), (pb::ApprovalStatus::Allowed, "started as x"));
    assert!(bed.approvals.list().is_empty());
}

#[tokio::test]
async fn what_nobody_waits_for_is_closed() {
    let bed = Bed::new();
    let (_, mut events, _watching) = bed.approvals.watch();
    let waiting = tokio::spawn({
        let approvals = Arc::clone(&bed.approvals);
        let ticket = approvals.request(new("a", plan())).unwrap();
        async move { (approvals.wait("a").await, drop(ticket)).0 }
    });
    // Dropping the task drops the ticket.
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(
        code(bed.approvals.resolve(answer("a", pb::Decision::AllowOnce))),
        ErrorCode::ApprovalCancelled
    );
    let closed = bed.approvals.get("a").unwrap();
    assert_eq!((closed.status(), closed.reason.as_str()), (pb::ApprovalStatus::Cancelled, "run-aborted"));
    assert_eq!(ends(&mut events), [("requested", "a".to_owned()), ("closed", "a".to_owned())]);

    let ticket = bed.approvals.request(new("b", plan())).unwrap();
    bed.stopping.cancel();
    drop(ticket);
    assert_eq!(bed.stored("b").reason, "gateway-restart");
}

#[tokio::test]
async fn a_late_yes_starts_nothing() {
    let bed = Bed::new();
    let (_, mut events, _watching) = bed.approvals.watch();
    let short = || pb::Plan { expires_unix_ms: clock::now_ms() + 20, ..plan() };
    // Its timer is the first to notice.
    let mut ticket = bed.approvals.request(new("timer", short())).unwrap();
    assert!(matches!(ticket.decided().await, Outcome::Expired));
    assert_eq!(
        code(bed.approvals.resolve(answer("timer", pb::Decision::AllowOnce))),
        ErrorCode::ApprovalExpired
    );
    // The late answer is.
    let mut ticket = bed.approvals.request(new("answer", short())).unwrap();
    reach(ticket.approval().expires_unix_ms).await;
    assert!(bed.approvals.list().is_empty());
    assert_eq!(
        code(bed.approvals.resolve(answer("answer", pb::Decision::AllowOnce))),
        ErrorCode::ApprovalExpired
    );
    assert_eq!(bed.stored("answer").status(), pb::ApprovalStatus::Expired);
    assert!(matches!(ticket.decided().await, Outcome::Expired));
    // The caller that leaves is.
    let ticket = bed.approvals.request(new("leaving", short())).unwrap();
    reach(ticket.approval().expires_unix_ms).await;
    drop(ticket);
    assert_eq!(bed.stored("leaving").reason, "timeout");
    let told =
        ["timer", "answer", "leaving"].map(|id| ["requested", "closed"].map(|kind| (kind, id.to_owned())));
    assert_eq!(ends(&mut events), told.concat());
    // A plan that is over is not asked about.
    let over = pb::Plan { expires_unix_ms: clock::now_ms(), ..plan() };
    assert_eq!(code(bed.approvals.request(new("over", over))), ErrorCode::ApprovalExpired);
}

#[tokio::test]
async fn who_waits_is_woken() {
    let bed = Bed::new();
    let mut ticket = bed.approvals.request(new("a", plan())).unwrap();
    let waiting = {
        let approvals = Arc::clone(&bed.approvals);
        tokio::spawn(async move { approvals.wait("A").await })
    };
    tokio::task::yield_now().await;
    // A wait that was given up takes nothing with it.
    assert!(tokio::time::timeout(std::time::Duration::ZERO, ticket.decided()).await.is_err());
    bed.approvals.resolve(answer("a", pb::Decision::Deny)).unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().status(), pb::ApprovalStatus::Denied);
    assert!(matches!(ticket.decided().await, Outcome::Denied));
    drop(ticket);
    assert_eq!(bed.approvals.wait("a").await.unwrap().status(), pb::ApprovalStatus::Denied);
    assert_eq!(code(bed.approvals.wait("b").await), ErrorCode::ApprovalNotFound);
}

#[tokio::test]
async fn a_restart_closes_what_was_open_and_forgets_what_is_old() {
    let bed = Bed::new();
    let _ticket = bed.approvals.request(new("open", plan())).unwrap();
    let now = clock::now_ms();
    for (id, closed) in [("old", now - HISTORY_MS - 1000), ("young", now - HISTORY_MS + 60_000)] {
        bed.approvals.note(pb::Approval {
            approval_id: id.to_owned(),
            status: pb::ApprovalStatus::Denied.into(),
            closed_unix_ms: closed,
            ..pb::Approval::default()
        });
    }
    let after = bed.restarted();
    let open = after.get("open").unwrap();
    assert_eq!((open.status(), open.reason.as_str()), (pb::ApprovalStatus::Cancelled, "gateway-restart"));
    assert_eq!(code(after.resolve(answer("open", pb::Decision::AllowOnce))), ErrorCode::ApprovalCancelled);
    assert_eq!(code(after.request(new("OPEN", plan()))), ErrorCode::ApprovalIdTaken);
    let ids: Vec<_> = after.history(10).unwrap().into_iter().map(|approval| approval.approval_id).collect();
    assert_eq!(ids, ["open", "young"]);
    assert!(after.list().is_empty());
}

#[tokio::test]
async fn what_is_not_on_disk_is_neither_asked_nor_decided() {
    let bed = Bed::new();
    let (_, mut events, _watching) = bed.approvals.watch();
    let ticket = bed.approvals.request(new("a", plan())).unwrap();
    bed.break_store();
    assert_eq!(code(bed.approvals.request(new("b", plan()))), ErrorCode::StoreUnreadable);
    assert_eq!(code(bed.approvals.resolve(answer("a", pb::Decision::AllowOnce))), ErrorCode::StoreUnreadable);
    assert_eq!(ends(&mut events), [("requested", "a".to_owned())]);
    let open: Vec<_> = bed.approvals.list().into_iter().map(|approval| approval.approval_id).collect();
    assert_eq!(open, ["a"]);
    drop(ticket);
}

#[tokio::test]
async fn requests_that_cannot_be_shown_or_named_are_refused() {
    let bed = Bed::new();
    let (_, mut events, _watching) = bed.approvals.watch();
    let long = pb::Plan { command_text: format!("echo ok{};id", " ".repeat(20_000)), ..plan() };
    assert_eq!(code(bed.approvals.request(new("a", long))), ErrorCode::CommandDisplayLimit);
    for id in [".", "a b", "plugin:x", "ä"] {
        assert_eq!(code(bed.approvals.request(new(id, plan()))), ErrorCode::InvalidRequest, "{id}");
    }
    assert_eq!(ends(&mut events), []);
    let _open = bed.approvals.request(new("abc", plan())).unwrap();
    for id in ["abc", "ABC", "ab", "abcd"] {
        assert_eq!(code(bed.approvals.request(new(id, plan()))), ErrorCode::ApprovalIdTaken, "{id}");
    }
    // Of the random ones, those that begin like a chosen one are not used.
    let tickets: Vec<_> =
        ["0", "1", "2", "3", "", "", "", ""].map(|id| bed.approvals.request(new(id, plan())).unwrap()).into();
    let random = tickets.iter().skip(4).map(|ticket| &ticket.approval().approval_id);
    assert!(random.into_iter().all(|id| id.len() == 32 && !id.starts_with(['0', '1', '2', '3'])));
}

#[tokio::test]
async fn watchers_hear_of_everything_and_make_it_possible_to_ask() {
    let bed = Bed::new();
    assert!(!bed.approvals.reachable());
    let first = bed.approvals.request(new("a", plan())).unwrap();
    let (open, mut events, watching) = bed.approvals.watch();
    assert!(bed.approvals.reachable());
    assert_eq!(open, [first.approval().clone()]);
    let _second = bed.approvals.request(new("b", plan())).unwrap();
    bed.approvals.resolve(answer("b", pb::Decision::Deny)).unwrap();
    bed.approvals.resolve(answer("b", pb::Decision::Deny)).unwrap();
    assert_eq!(ends(&mut events), [("requested", "b".to_owned()), ("closed", "b".to_owned())]);
    drop(watching);
    assert!(!bed.approvals.reachable());
}

#[tokio::test]
async fn lists_are_short_and_in_order() {
    let bed = Bed::new();
    let now = clock::now_ms();
    let long = |ms| pb::Plan {
        command_text: "ä".repeat(600),
        segments: vec![pb::PlanSegment::default()],
        expires_unix_ms: now + ms,
        ..plan()
    };
    let _tickets: Vec<_> = [("late", 60_000), ("soon", 30_000), ("last", 90_000)]
        .map(|(id, ms)| bed.approvals.request(new(id, long(ms))).unwrap())
        .into();
    let list = bed.approvals.list();
    let ids: Vec<_> = list.iter().map(|approval| approval.approval_id.as_str()).collect();
    assert_eq!(ids, ["soon", "late", "last"]);
    let shown = list.first().and_then(|approval| approval.plan.clone()).unwrap();
    assert_eq!((shown.command_text, shown.segments), ("ä".repeat(512), vec![]));
    assert!(list.iter().all(|approval| approval.cut));
    assert!(!bed.approvals.get("soon").unwrap().cut);
    // One message holds the list, whatever is open.
    let many = vec![list.first().unwrap().clone(); 10_000];
    let fit = that_fit(many);
    assert!((1000..10_000).contains(&fit.len()));
    let reply = pb::ListApprovalsReply { approvals: fit };
    assert!(prost::Message::encoded_len(&reply) <= 3 * 1024 * 1024);
}
