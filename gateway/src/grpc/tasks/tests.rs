use std::sync::Arc;

use config::StateDir;
use identity::{Fingerprint, Role as CertificateRole, Subject};
use pb::exit::How;
use proto::v1::tools_server::Tools as _;

use crate::gateway::{Gateway, NODE_CERTIFICATE_LIFETIME, Settings};
use crate::server::peer::{Peer, Proof};
use crate::store::OperatorRecord;
use crate::tasks::NotifyOnExit;

use super::*;

struct Bed {
    service: Service,
    _dir: tempfile::TempDir,
}

impl Bed {
    /// A command of the main agent and one of another, in the background.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            state: StateDir::resolve(Some(dir.path().join("state")), None, None).unwrap(),
            listen: ([127, 0, 0, 1], 0).into(),
            node_certificate_lifetime: NODE_CERTIFICATE_LIFETIME,
        };
        let gateway = Gateway::open(settings).unwrap();
        let notify = NotifyOnExit { on_exit: true, empty_success: true };
        for agent in ["main", "other"] {
            gateway.tasks.begin(&gateway, task(agent), notify).unwrap();
        }
        Self { service: Service(gateway), _dir: dir }
    }

    /// The command of an agent ends.
    fn end(&self, agent: &str) {
        let gateway: &Arc<Gateway> = &self.service.0;
        let session = pb::SessionInfo {
            session_id: task(agent).session_id,
            run_id: task(agent).task_id,
            exit: Some(pb::Exit { how: Some(How::Code(0)), ..pb::Exit::default() }),
            ..pb::SessionInfo::default()
        };
        let ended = pb::SessionEnded { session: Some(session), tail: bytes::Bytes::new() };
        gateway.tasks.ended(gateway, "ab", &ended);
    }

    fn operator(&self, number: u8, role: Role, agent: &str) -> Proof {
        let id = Fingerprint([number; 32]);
        let operator = OperatorRecord {
            name: format!("operator-{number}"),
            id,
            roles: vec![role.into()],
            agent: agent.to_owned(),
            added_at: 0,
            not_after: i64::MAX,
        };
        self.service.0.registry.add_operator(operator).unwrap();
        Proof::Certificate(Subject { role: CertificateRole::Operator, fingerprint: id })
    }

    async fn take(&self, proof: Proof, agent: &str, wait_ms: u64) -> Result<Vec<String>, ErrorCode> {
        let message =
            pb::TakeEventsRequest { agent_id: agent.to_owned(), wait_ms, ..pb::TakeEventsRequest::default() };
        let reply = self.service.take_events(from(proof, message)).await;
        let notices = reply.map_err(|status| Fault::from_status(&status).code)?.into_inner().notices;
        Ok(notices.into_iter().map(|notice| notice.session_id).collect())
    }

    async fn list(&self, proof: Proof, agent: &str) -> Result<Vec<String>, ErrorCode> {
        let message = pb::ListTasksRequest { agent_id: agent.to_owned(), running: false };
        let reply = self.service.list_tasks(from(proof, message)).await;
        let tasks = reply.map_err(|status| Fault::from_status(&status).code)?.into_inner().tasks;
        Ok(tasks.into_iter().map(|task| task.session_id).collect())
    }

    async fn stop(&self, proof: Proof, task: &str) -> ErrorCode {
        let message = pb::StopTaskRequest { task: task.to_owned(), agent_id: String::new() };
        Fault::from_status(&self.service.stop_task(from(proof, message)).await.unwrap_err()).code
    }
}

fn task(agent: &str) -> pb::Task {
    pb::Task {
        task_id: format!("run-{agent}"),
        node_id: "ab".to_owned(),
        session_id: format!("reef-{agent}"),
        agent_id: agent.to_owned(),
        ..pb::Task::default()
    }
}

fn from<T>(proof: Proof, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(Peer { address: None, proof });
    request
}

#[tokio::test]
async fn a_waiting_agent_hears_of_its_own_end_at_once() {
    let bed = Bed::new();
    assert_eq!(bed.take(Proof::SameUser, "", 0).await, Ok(vec![]));
    let waits = async {
        let taken = bed.take(Proof::SameUser, "", 30_000).await;
        assert_eq!(taken, Ok(vec!["reef-main".to_owned()]));
    };
    let ends = async {
        bed.end("other");
        tokio::task::yield_now().await;
        bed.end("main");
    };
    tokio::join!(waits, ends);
    assert_eq!(bed.take(Proof::SameUser, "other", 0).await, Ok(vec!["reef-other".to_owned()]));
}

#[tokio::test]
async fn agents_reach_what_is_theirs() {
    let bed = Bed::new();
    bed.end("main");
    bed.end("other");
    let writer = bed.operator(1, Role::Write, "other");
    let reader = bed.operator(2, Role::Read, "other");
    let admin = bed.operator(3, Role::Admin, "other");
    let both = || vec!["reef-other".to_owned(), "reef-main".to_owned()];
    let of = |agent: &str| Ok(vec![format!("reef-{agent}")]);
    let denied = || Err(ErrorCode::PermissionDenied);
    assert_eq!(bed.take(writer.clone(), "", 0).await, of("other"));
    assert_eq!(bed.take(writer.clone(), "main", 0).await, denied());
    assert_eq!(bed.take(reader.clone(), "", 0).await, denied());
    assert_eq!(bed.take(admin.clone(), "main", 0).await, of("main"));
    assert_eq!(bed.list(reader.clone(), "").await, of("other"));
    assert_eq!(bed.list(reader.clone(), "main").await, denied());
    assert_eq!(bed.list(admin.clone(), "").await, Ok(both()));
    assert_eq!(bed.list(Proof::SameUser, "").await, Ok(both()));
    assert_eq!(bed.list(Proof::SameUser, "main").await, of("main"));
    // What is another agent's is not there.
    assert_eq!(bed.stop(writer.clone(), "reef-main").await, ErrorCode::UnknownTask);
    assert_eq!(bed.stop(writer.clone(), "reef-none").await, ErrorCode::UnknownTask);
    assert_eq!(bed.stop(writer, "reef-other").await, ErrorCode::SessionEnded);
    assert_eq!(bed.stop(admin, "reef-main").await, ErrorCode::SessionEnded);
    assert_eq!(bed.stop(reader, "reef-other").await, ErrorCode::PermissionDenied);
}

#[tokio::test]
async fn a_command_whose_node_is_away_is_not_stopped() {
    let bed = Bed::new();
    assert_eq!(bed.stop(Proof::SameUser, "reef-main").await, ErrorCode::UnknownNode);
}

#[test]
fn a_command_is_found_by_what_is_its_own() {
    let task = |task_id: &str, session_id: &str, status: pb::task::Status| pb::Task {
        task_id: task_id.to_owned(),
        session_id: session_id.to_owned(),
        status: status.into(),
        ..pb::Task::default()
    };
    use pb::task::Status::{Failed, Running, Succeeded};
    let tasks = [
        task("r1", "calm-reef", Running),
        task("r2", "calm-reef", Failed),
        task("r3", "calm-tide", Failed),
        task("r4", "calm-tide", Succeeded),
        task("x5", "red-buoy-2", Running),
    ];
    let table = [
        ("r2", Ok("r2")),
        ("calm-reef", Ok("r1")),
        ("calm-tide", Ok("r3")),
        ("calm", Ok("r1")),
        ("red", Ok("x5")),
        ("x", Ok("x5")),
        ("calm-t", Err(ErrorCode::AmbiguousSession)),
        ("red-buoy", Err(ErrorCode::UnknownTask)),
        ("", Err(ErrorCode::UnknownTask)),
        ("calm-reef-2", Err(ErrorCode::UnknownTask)),
    ];
    for (reference, want) in table {
        let found = find(tasks.to_vec(), reference).map(|task| task.task_id).map_err(|fault| fault.code);
        assert_eq!(found, want.map(str::to_owned), "{reference}");
    }
}
