use config::StateDir;
use fault::{ErrorCode, Fault};
use identity::{Fingerprint, Role as CertificateRole, Subject};
use tokio_stream::StreamExt as _;

use crate::approvals::{NewApproval, Ticket};
use crate::clock;
use crate::gateway::{Gateway, NODE_CERTIFICATE_LIFETIME, Settings};
use crate::server::peer::{Peer, Proof};
use crate::store::OperatorRecord;

use super::*;

struct Bed {
    service: Service,
    _dir: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            state: StateDir::resolve(Some(dir.path().join("state")), None, None).unwrap(),
            listen: ([127, 0, 0, 1], 0).into(),
            node_certificate_lifetime: NODE_CERTIFICATE_LIFETIME,
        };
        Self { service: Service(Gateway::open(settings).unwrap()), _dir: dir }
    }

    fn ask(&self, id: &str) -> Ticket {
        let plan = pb::Plan {
            command_text: "ls".to_owned(),
            expires_unix_ms: clock::now_ms() + 60_000,
            ..pb::Plan::default()
        };
        let new = NewApproval {
            id: Some(id.to_owned()),
            node: Fingerprint([7; 32]),
            node_name: "lab".to_owned(),
            plan,
            requested_by: "bob".to_owned(),
        };
        self.service.0.approvals.request(new).unwrap()
    }

    fn operator(&self, number: u8, role: Role) -> Proof {
        let id = Fingerprint([number; 32]);
        let operator = OperatorRecord {
            name: format!("operator-{number}"),
            id,
            roles: vec![role.into()],
            agent: policy::MAIN_AGENT.to_owned(),
            added_at: 0,
            not_after: i64::MAX,
        };
        self.service.0.registry.add_operator(operator).unwrap();
        Proof::Certificate(Subject { role: CertificateRole::Operator, fingerprint: id })
    }
}

fn local<T>(message: T) -> Request<T> {
    from(None, Proof::SameUser, message)
}

fn from<T>(address: Option<&str>, proof: Proof, message: T) -> Request<T> {
    let address = address.map(|address| address.parse().unwrap());
    let mut request = Request::new(message);
    request.extensions_mut().insert(Peer { address, proof });
    request
}

fn deny(id: &str) -> pb::ResolveRequest {
    pb::ResolveRequest {
        id: id.to_owned(),
        decision: pb::Decision::Deny.into(),
        ..pb::ResolveRequest::default()
    }
}

#[tokio::test]
async fn only_approvers_see_and_decide() {
    let bed = Bed::new();
    let _ticket = bed.ask("a");
    let node = Subject { role: CertificateRole::Node, fingerprint: Fingerprint([7; 32]) };
    let strangers = [
        (bed.operator(1, Role::Read), ErrorCode::PermissionDenied),
        (bed.operator(2, Role::Write), ErrorCode::PermissionDenied),
        (bed.operator(3, Role::Pairing), ErrorCode::PermissionDenied),
        (Proof::Certificate(node), ErrorCode::PermissionDenied),
        (Proof::Nothing, ErrorCode::Unauthenticated),
    ];
    let approvals = &bed.service;
    let reference = || pb::ApprovalRef { id: "a".to_owned() };
    for (proof, want) in strangers {
        let refused = [
            approvals.resolve(from(None, proof.clone(), deny("a"))).await.err(),
            approvals.get(from(None, proof.clone(), reference())).await.err(),
            approvals.wait(from(None, proof.clone(), pb::WaitApprovalRequest::default())).await.err(),
            approvals.history(from(None, proof.clone(), pb::ApprovalHistoryRequest::default())).await.err(),
            approvals.watch(from(None, proof.clone(), pb::WatchApprovalsRequest {})).await.err(),
            approvals.list(from(None, proof.clone(), pb::ListApprovalsRequest {})).await.err(),
        ];
        for (number, status) in refused.into_iter().enumerate() {
            let code = Fault::from_status(&status.unwrap()).code;
            assert_eq!(code, want, "{proof:?}, call {number}");
        }
    }
    assert!(!bed.service.0.approvals.reachable());
    let proof = bed.operator(4, Role::Approvals);
    let seen = approvals.get(from(None, proof.clone(), reference())).await.unwrap().into_inner();
    assert_eq!(seen.status(), pb::ApprovalStatus::Pending);
    let decided = approvals.resolve(from(Some("[::1]:9"), proof, deny("a"))).await.unwrap().into_inner();
    assert_eq!((decided.decided_by.as_str(), decided.decided_from.as_str()), ("operator-4", "[::1]:9"));
    let history = approvals.history(local(pb::ApprovalHistoryRequest { limit: 0 })).await.unwrap();
    let ids: Vec<_> = history.into_inner().approvals.into_iter().map(|a| a.approval_id).collect();
    assert_eq!(ids, ["a"]);
}

#[tokio::test]
async fn a_wait_ends_with_its_time_or_the_decision() {
    let bed = Bed::new();
    let _ticket = bed.ask("a");
    let wait = |wait_ms| bed.service.wait(local(pb::WaitApprovalRequest { id: "a".to_owned(), wait_ms }));
    assert_eq!(wait(1).await.unwrap().into_inner().status(), pb::ApprovalStatus::Pending);
    let (waited, decided) = tokio::join!(wait(0), bed.service.resolve(local(deny("a"))));
    let decided = decided.unwrap().into_inner();
    assert_eq!(decided.decided_from, "unix socket");
    assert_eq!(waited.unwrap().into_inner(), decided);
}

/// What a watcher is told until it has caught up once more.
async fn until_caught_up(stream: &mut <Service as Approvals>::WatchStream) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        match stream.next().await.unwrap().unwrap().event.unwrap() {
            Event::Requested(approval) => told.push(format!("+{}", approval.approval_id)),
            Event::Closed(approval) => told.push(format!("-{}", approval.approval_id)),
            Event::CaughtUp(_) => return told,
        }
    }
}

#[tokio::test]
async fn a_watcher_is_told_what_is_open_and_what_happens() {
    let bed = Bed::new();
    let _first = bed.ask("a");
    let mut stream = bed.service.watch(local(pb::WatchApprovalsRequest {})).await.unwrap().into_inner();
    assert!(bed.service.0.approvals.reachable());
    assert_eq!(until_caught_up(&mut stream).await, ["+a"]);
    let second = bed.ask("b");
    drop(second);
    let next = stream.next().await.unwrap().unwrap().event.unwrap();
    assert!(matches!(next, Event::Requested(approval) if approval.approval_id == "b"));
    let next = stream.next().await.unwrap().unwrap().event.unwrap();
    assert!(matches!(next, Event::Closed(approval) if approval.approval_id == "b"));
    bed.service.0.stopping.cancel();
    assert!(stream.next().await.is_none());
    assert!(!bed.service.0.approvals.reachable());
}

/// F200: what a slow watcher missed is made good by telling everything anew.
#[tokio::test]
async fn a_slow_watcher_misses_nothing_that_is_open() {
    let bed = Bed::new();
    let _first = bed.ask("a");
    let gone = bed.ask("gone");
    let mut stream = bed.service.watch(local(pb::WatchApprovalsRequest {})).await.unwrap().into_inner();
    assert_eq!(until_caught_up(&mut stream).await, ["+a", "+gone"]);
    drop(gone);
    let _second = bed.ask("b");
    // More than are kept for one who does not read.
    for number in 0..1100 {
        bed.service.0.approvals.note(pb::Approval {
            approval_id: format!("noted-{number}"),
            status: pb::ApprovalStatus::Denied.into(),
            ..pb::Approval::default()
        });
    }
    let told = until_caught_up(&mut stream).await;
    // Begun anew: who is not among them is not open any more.
    assert_eq!(told, ["+a", "+b"]);
}
