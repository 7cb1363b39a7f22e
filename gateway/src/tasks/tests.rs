//! Over a real store, which the next process opens again.

use pb::exit::How;
use tempfile::TempDir;

use crate::gateway::{NODE_CERTIFICATE_LIFETIME, Settings};

use super::*;

const NODE: &str = "ab12";
const ALWAYS: NotifyOnExit = NotifyOnExit { on_exit: true, empty_success: true };
const USUAL: NotifyOnExit = NotifyOnExit { on_exit: true, empty_success: false };

fn open(dir: &TempDir) -> Arc<Gateway> {
    let state = config::StateDir::from_process(Some(dir.path().to_path_buf())).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    Gateway::open(Settings { state, listen, node_certificate_lifetime: NODE_CERTIFICATE_LIFETIME }).unwrap()
}

fn new() -> (TempDir, Arc<Gateway>) {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(&dir);
    (dir, gateway)
}

fn task(number: u32) -> pb::Task {
    pb::Task {
        task_id: format!("run-{number}"),
        label: "make".to_owned(),
        status: pb::task::Status::Running.into(),
        node_id: NODE.to_owned(),
        node_name: "box".to_owned(),
        session_id: format!("reef-{number}"),
        agent_id: "main".to_owned(),
        session_key: "k".to_owned(),
        started_unix_ms: 1000 + i64::from(number),
        ..pb::Task::default()
    }
}

fn code(code: i32) -> pb::Exit {
    pb::Exit { how: Some(How::Code(code)), ended_unix_ms: clock::now_ms(), ..pb::Exit::default() }
}

fn end(number: u32, exit: pb::Exit, tail: &str) -> pb::SessionEnded {
    let task = task(number);
    let session = pb::SessionInfo {
        session_id: task.session_id,
        run_id: task.task_id,
        exit: Some(exit),
        ..pb::SessionInfo::default()
    };
    pb::SessionEnded { session: Some(session), tail: tail.as_bytes().to_vec().into() }
}

fn texts(gateway: &Gateway, session_key: &str) -> Vec<String> {
    let ends = gateway.tasks.take("main", session_key, 0).unwrap();
    ends.into_iter().map(|notice| notice.text).collect()
}

fn statuses(gateway: &Gateway) -> Vec<(String, pb::task::Status)> {
    let tasks = gateway.tasks.list(None, false).unwrap();
    tasks.into_iter().map(|task| (task.session_id.clone(), task.status())).collect()
}

#[tokio::test]
async fn when_an_end_is_told() {
    let loud = pb::Exit { final_offset: 3, ..code(0) };
    let killed = pb::Exit { how: Some(How::Signal(15)), cancelled: true, ..loud.clone() };
    let never = NotifyOnExit { on_exit: false, empty_success: true };
    let nobody = pb::Task { agent_id: String::new(), session_key: String::new(), ..task(1) };
    let keyless = pb::Task { session_key: String::new(), ..task(1) };
    let agentless = pb::Task { agent_id: String::new(), ..task(1) };
    // The command, what is configured, whether its agent reads the end before it is there, the end; whether it is told.
    let table = [
        (task(1), USUAL, false, loud.clone(), true),
        (task(1), never, false, loud.clone(), false),
        (nobody, USUAL, false, loud.clone(), false),
        (keyless, USUAL, false, loud.clone(), true),
        (agentless, USUAL, false, loud.clone(), true),
        (task(1), USUAL, true, loud.clone(), false),
        (task(1), USUAL, false, killed.clone(), false),
        (task(1), USUAL, false, pb::Exit { how: Some(How::Unreaped(pb::Unreaped {})), ..killed }, true),
        (task(1), USUAL, false, code(0), false),
        (task(1), ALWAYS, false, code(0), true),
        (task(1), USUAL, false, code(1), true),
    ];
    for (task, notify, is_read, exit, want) in table {
        let (_dir, gateway) = new();
        let session_key = task.session_key.clone();
        gateway.tasks.begin(&gateway, task.clone(), notify).unwrap();
        if is_read {
            gateway.tasks.end_was_read(NODE, "reef-1");
        }
        gateway.tasks.ended(&gateway, NODE, &end(1, exit.clone(), "out"));
        assert_eq!(texts(&gateway, &session_key).len(), usize::from(want), "{task:?} {notify:?} {exit:?}");
        assert_eq!(gateway.notices.next(0).is_some(), want, "{task:?} {notify:?} {exit:?}");
        assert_eq!(statuses(&gateway).len(), 1);
    }
}

#[tokio::test]
async fn an_end_is_final_and_told_once_whatever_comes_first() {
    for end_first in [false, true] {
        let (_dir, gateway) = new();
        let first = end(1, pb::Exit { final_offset: 4, ..code(3) }, "oops");
        if end_first {
            gateway.tasks.ended(&gateway, NODE, &first);
            assert_eq!(statuses(&gateway), []);
        }
        gateway.tasks.begin(&gateway, task(1), USUAL).unwrap();
        if !end_first {
            assert_eq!(statuses(&gateway), [("reef-1".to_owned(), pb::task::Status::Running)]);
        }
        gateway.tasks.ended(&gateway, "another", &end(1, code(9), "forged"));
        gateway.tasks.ended(&gateway, NODE, &first);
        gateway.tasks.ended(&gateway, NODE, &end(1, code(0), "again"));
        // The same call, made again.
        gateway.tasks.begin(&gateway, task(1), USUAL).unwrap();
        let [ended] = gateway.tasks.list(Some("main"), false).unwrap().try_into().unwrap();
        let exit = first.session.unwrap().exit.unwrap();
        let want = pb::Task {
            status: pb::task::Status::Failed.into(),
            ended_unix_ms: exit.ended_unix_ms,
            exit: Some(exit.clone()),
            ..task(1)
        };
        assert_eq!(ended, want);
        let [told] = gateway.tasks.take("main", "k", 0).unwrap().try_into().unwrap();
        let want = pb::Notice {
            seq: 1,
            unix_ms: told.unix_ms,
            kind: pb::notice::Kind::BackgroundEnded.into(),
            text: "Exec completed (reef-1, code 3) :: oops".to_owned(),
            run_id: "run-1".to_owned(),
            node_id: NODE.to_owned(),
            session_id: "reef-1".to_owned(),
            agent_id: "main".to_owned(),
            session_key: "k".to_owned(),
            exit: Some(exit),
            ..pb::Notice::default()
        };
        assert_eq!(told, want);
        assert_eq!(gateway.tasks.take("main", "k", 1).unwrap(), []);
        assert_eq!(gateway.tasks.take("main", "k", 0).unwrap(), []);
    }
}

#[tokio::test]
async fn what_waits_survives_a_restart_and_is_taken_by_number() {
    let (dir, gateway) = new();
    for number in 1..=3 {
        gateway.tasks.begin(&gateway, task(number), ALWAYS).unwrap();
    }
    let other = pb::Task { session_key: "other".to_owned(), ..task(4) };
    gateway.tasks.begin(&gateway, other, ALWAYS).unwrap();
    for number in [1, 2, 4] {
        gateway.tasks.ended(&gateway, NODE, &end(number, code(0), ""));
    }
    gateway.tasks.set_cursor(NODE, "reef-3", 77).unwrap();
    drop(gateway);
    let gateway = open(&dir);
    assert_eq!((gateway.tasks.cursor(NODE, "reef-3"), gateway.tasks.cursor(NODE, "reef-1")), (77, 0));
    let text = |number| format!("Exec completed (reef-{number}, code 0)");
    assert_eq!(texts(&gateway, "k"), [text(1), text(2)]);
    let numbers = |taken| -> Vec<u64> {
        gateway.tasks.take("main", "k", taken).unwrap().iter().map(|notice| notice.seq).collect()
    };
    assert_eq!([numbers(0), numbers(1), numbers(0), numbers(2)], [vec![1, 2], vec![2], vec![2], vec![]]);
    assert_eq!(texts(&gateway, "other"), [text(4)], "another session's numbers take nothing");
    // The node says in its inventory how the third one ended.
    gateway.tasks.ended(&gateway, NODE, &end(3, code(0), ""));
    let ends = gateway.tasks.take("main", "k", 0).unwrap();
    assert_eq!(ends.iter().map(|n| (n.seq, n.text.clone())).collect::<Vec<_>>(), [(4, text(3))]);
}

#[tokio::test]
async fn an_end_that_nobody_came_to_tell_is_told_by_the_next_process() {
    let (dir, gateway) = new();
    gateway.tasks.begin(&gateway, task(1), USUAL).unwrap();
    // Its node is not there to show the output, and this process ends before it has given up.
    gateway.tasks.ended(&gateway, NODE, &end(1, pb::Exit { final_offset: 9, ..code(0) }, ""));
    assert_eq!(statuses(&gateway), [("reef-1".to_owned(), pb::task::Status::Succeeded)]);
    assert_eq!(texts(&gateway, "k").len(), 0, "the question has not been asked yet");
    let next = open_beside(&dir);
    assert_eq!(next.take("main", "k", 0).unwrap().len(), 1);
    // The old one's answer comes too late.
    let mut queued = gateway.tasks.queued();
    tokio::task::yield_now().await;
    assert!(!queued.has_changed().unwrap());
    queued.mark_unchanged();
    assert_eq!(texts(&gateway, "k"), ["Exec completed (reef-1, code 0)"]);
}

/// The same ledger, as a process that starts now finds it.
fn open_beside(dir: &TempDir) -> Tasks {
    let path = config::StateDir::from_process(Some(dir.path().to_path_buf())).unwrap().gateway_db();
    Tasks::open(Arc::new(crate::store::SqliteStore::open(&path).unwrap())).unwrap()
}

#[tokio::test]
async fn the_queue_keeps_the_newest_of_each_session() {
    let (_dir, gateway) = new();
    for number in 1..=21 {
        gateway.tasks.begin(&gateway, task(number), ALWAYS).unwrap();
        gateway.tasks.ended(&gateway, NODE, &end(number, code(0), ""));
    }
    let want: Vec<_> =
        (2..=21).map(|n| format!("Exec completed ({}, code 0)", &format!("reef-{n}"))).collect();
    assert_eq!(texts(&gateway, "k"), want);
    // A session's name comes again, with another command that ends alike.
    let again = pb::Task { task_id: "run-21b".to_owned(), ..task(21) };
    gateway.tasks.begin(&gateway, again, ALWAYS).unwrap();
    let mut ended = end(21, code(0), "");
    ended.session.as_mut().unwrap().run_id = "run-21b".to_owned();
    gateway.tasks.ended(&gateway, NODE, &ended);
    assert_eq!(texts(&gateway, "k"), want, "the same is not told twice");
    assert_eq!(statuses(&gateway).len(), 22);
}

#[tokio::test]
async fn an_end_that_was_read_is_withdrawn() {
    let (_dir, gateway) = new();
    for number in 1..=2 {
        gateway.tasks.begin(&gateway, task(number), ALWAYS).unwrap();
        gateway.tasks.ended(&gateway, NODE, &end(number, code(0), ""));
    }
    gateway.tasks.end_was_read(NODE, "reef-1");
    gateway.tasks.end_was_read("another", "reef-2");
    assert_eq!(texts(&gateway, "k"), ["Exec completed (reef-2, code 0)"]);
    gateway.tasks.end_was_read(NODE, "reef-2");
    gateway.tasks.end_was_read(NODE, "reef-2");
    assert_eq!(texts(&gateway, "k"), [""; 0]);
}

#[tokio::test]
async fn commands_that_their_node_does_not_know_are_over() {
    let (_dir, gateway) = new();
    for number in 1..=3 {
        gateway.tasks.begin(&gateway, task(number), USUAL).unwrap();
    }
    gateway.tasks.begin(&gateway, pb::Task { node_id: "other".to_owned(), ..task(4) }, USUAL).unwrap();
    let there = |number| end(number, code(0), "").session.unwrap();
    let renamed = pb::SessionInfo { run_id: "another".to_owned(), ..there(2) };
    let missing = gateway.tasks.missing(NODE, &[there(1), renamed.clone()]);
    assert_eq!(missing, [task(3), task(2)]);
    // By the time it is asked, the third one has started.
    gateway.tasks.lost(&gateway, &missing, &[there(1), renamed, there(3)]);
    let running = |n| (format!("reef-{n}"), pb::task::Status::Running);
    let want = [running(4), running(3), ("reef-2".to_owned(), pb::task::Status::Failed), running(1)];
    assert_eq!(statuses(&gateway), want);
    assert_eq!(texts(&gateway, "k"), ["Exec failed (reef-2, end unknown) :: the node no longer knows it"]);
}

#[tokio::test]
async fn a_name_that_comes_again_is_read_from_its_start() {
    let (_dir, gateway) = new();
    let cursor = |number: u32| gateway.tasks.cursor(NODE, &format!("reef-{number}"));
    for number in 1..=2 {
        gateway.tasks.begin(&gateway, task(number), USUAL).unwrap();
        gateway.tasks.set_cursor(NODE, &format!("reef-{number}"), 7).unwrap();
    }
    let long_ago = clock::now_ms() - CURSOR_MS - 1000;
    gateway.tasks.ended(&gateway, NODE, &end(1, pb::Exit { ended_unix_ms: long_ago, ..code(1) }, ""));
    gateway.tasks.ended(&gateway, NODE, &end(2, code(1), ""));
    assert_eq!((cursor(1), cursor(2)), (0, 7));
    // Now some other session has it.
    gateway.tasks.set_cursor(NODE, "reef-1", 3).unwrap();
    assert_eq!(cursor(1), 3);
    gateway.tasks.begin(&gateway, pb::Task { task_id: "new".to_owned(), ..task(2) }, USUAL).unwrap();
    assert_eq!(cursor(2), 0);
}

#[tokio::test]
async fn the_ledger_and_the_early_ends_are_bounded() {
    let (_dir, gateway) = new();
    let store = &gateway.store;
    for number in 1..=3 {
        gateway.tasks.begin(&gateway, task(number), ALWAYS).unwrap();
        let exit = pb::Exit { ended_unix_ms: 100 * i64::from(number), ..code(0) };
        // Kept although it is old: somebody has yet to be told.
        store
            .finish_task(&TaskRecord {
                task: pb::Task {
                    status: pb::task::Status::Succeeded.into(),
                    ended_unix_ms: exit.ended_unix_ms,
                    exit: Some(exit),
                    ..task(number)
                },
                event: number == 1,
                empty_success: false,
            })
            .unwrap();
    }
    let sessions = || -> Vec<String> {
        store.tasks(None, false).unwrap().into_iter().map(|task| task.session_id).collect()
    };
    store.forget_tasks(0, 3).unwrap();
    assert_eq!(sessions(), ["reef-3", "reef-2", "reef-1"]);
    store.forget_tasks(0, 1).unwrap();
    assert_eq!(sessions(), ["reef-3", "reef-1"]);
    store.forget_tasks(1000, 9).unwrap();
    assert_eq!(sessions(), ["reef-1"]);
    for number in 0..EARLY_MAX as u32 + 2 {
        gateway.tasks.ended(&gateway, NODE, &end(100 + number, code(0), ""));
    }
    assert_eq!(gateway.tasks.early.lock().len(), EARLY_MAX);
    for number in 0..CURSORS_MAX + 2 {
        gateway.tasks.set_cursor(NODE, &number.to_string(), 5).unwrap();
    }
    let of = |number: usize| gateway.tasks.cursor(NODE, &number.to_string());
    assert_eq!((of(0), of(CURSORS_MAX + 1)), (0, 5));
}
