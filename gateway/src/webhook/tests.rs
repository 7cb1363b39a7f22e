//! Against a real listener on loopback.

use std::os::unix::fs::PermissionsExt;

use pb::exit::How;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::gateway::{NODE_CERTIFICATE_LIFETIME, Settings};
use crate::review::tests::server::{Reply, Server, http as answer, serve};
use crate::store::TaskRecord;
use crate::tasks::NotifyOnExit;

use super::*;

const SECRET: &str = "0123456789abcdef";

/// A gateway whose webhook is a server of the test.
struct Bed {
    gateway: Arc<Gateway>,
    wakes: Arc<Wakes>,
    server: Server,
    /// Requests that were seen.
    count: watch::Receiver<usize>,
    dir: TempDir,
}

impl Bed {
    /// The server says of each request, from 0, what it answers.
    async fn new(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let (counter, count) = watch::channel(0);
        let server = serve(None, move |_| {
            let mut number = 0;
            counter.send_modify(|count| number = std::mem::replace(count, *count + 1));
            reply(number)
        })
        .await;
        let dir = tempfile::tempdir().unwrap();
        let state = config::StateDir::from_process(Some(dir.path().to_path_buf())).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let settings = Settings { state, listen, node_certificate_lifetime: NODE_CERTIFICATE_LIFETIME };
        let gateway = Gateway::open(settings).unwrap();
        let wakes = Arc::new(Wakes { backoff: [Duration::ZERO; 4], ..Wakes::default() });
        let bed = Self { gateway, wakes, server, count, dir };
        bed.write("wake.key", &format!("{SECRET}\n"), 0o600);
        let url = format!("http://127.0.0.1:{}/wake", bed.server.url.port);
        let webhook = serde_json::json!({ "url": url, "secretFile": "wake.key" });
        let config = serde_json::json!({ "tools": { "exec": { "notifyWebhook": webhook } } });
        bed.write("openclaw.json", &config.to_string(), 0o600);
        bed
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }

    /// The end of a command waits for its agent, and nobody has been woken for it.
    fn queue(&self, number: u32, session_key: &str) -> pb::Notice {
        let task = task(number, session_key);
        let notice = pb::Notice {
            run_id: task.task_id.clone(),
            node_id: task.node_id.clone(),
            session_id: task.session_id.clone(),
            agent_id: task.agent_id.clone(),
            session_key: task.session_key.clone(),
            unix_ms: clock::now_ms(),
            text: "secret output".to_owned(),
            ..pb::Notice::default()
        };
        self.gateway.store.add_task(&TaskRecord { task, event: true, empty_success: true }).unwrap();
        self.gateway.store.queue_completion(&notice, 20).unwrap();
        notice
    }

    /// The requests, once there are so many.
    async fn seen(&mut self, count: usize) -> Vec<String> {
        self.count.wait_for(|seen| *seen >= count).await.unwrap();
        self.server.seen.lock().clone()
    }

    /// What waits to be told to a session's agent: nothing is open, or what was told before, or this.
    fn open(&self, session_key: &str) -> Option<Option<String>> {
        let state = self.wakes.state.lock();
        let news = state.open.get(&("main".to_owned(), session_key.to_owned()))?;
        Some(news.as_ref().map(|news| news.session_id.clone()))
    }
}

fn task(number: u32, session_key: &str) -> pb::Task {
    pb::Task {
        task_id: format!("run-{number}"),
        node_id: "ab".to_owned(),
        session_id: format!("reef-{number}"),
        agent_id: "main".to_owned(),
        session_key: session_key.to_owned(),
        ..pb::Task::default()
    }
}

fn news() -> (Key, News) {
    (("main".to_owned(), "k".to_owned()), News { session_id: "reef-1".to_owned() })
}

fn body(request: &str) -> serde_json::Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_request_is_signed_and_says_who_has_news() {
    let mut bed = Bed::new(|_| answer("204 No Content", "")).await;
    bed.queue(1, "k");
    let notice = bed.queue(2, "k");
    bed.wakes.queued(&bed.gateway, &notice);
    let seen = bed.seen(1).await;
    let [request] = seen.as_slice() else { panic!("{seen:?}") };
    let (head, text) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /wake HTTP/1.1\r\n"), "{head}");
    let header = |name: &str| {
        let found =
            head.lines().find_map(|line| line.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)));
        found.unwrap_or_else(|| panic!("{name}: {head}")).1
    };
    let (timestamp, signed) = (header("X-Farrun-Timestamp"), header("X-Farrun-Signature"));
    assert!(timestamp.parse::<i64>().unwrap().abs_diff(clock::now_ms() / 1000) <= 60, "{timestamp}");
    assert_eq!(signed, signature(SECRET.as_bytes(), timestamp, text));
    let want = serde_json::json!({
        "source": "exec-event", "intent": "event", "reason": "exec-event", "agentId": "main", "sessionKey": "k",
        "contextKey": "exec:reef-2", "pending": 2,
    });
    assert_eq!(body(request), want);
}

#[test]
fn signatures() {
    // As `openssl dgst -sha256 -hmac key` prints it for `1.{}`.
    let want = "sha256=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224";
    assert_eq!(signature(b"key", "1", "{}"), want);
}

#[tokio::test]
async fn ends_that_come_too_early_wait_and_some_wake_nobody() {
    let mut bed = Bed::new(|_| answer("200 OK", "{}")).await;
    let first = bed.queue(1, "k");
    bed.wakes.queued(&bed.gateway, &first);
    bed.seen(1).await;
    for number in 2..=3 {
        let notice = bed.queue(number, "k");
        bed.wakes.queued(&bed.gateway, &notice);
        assert_eq!(bed.open("k"), Some(Some(format!("reef-{number}"))));
    }
    for session_key in ["subagent:x", "agent:main:subagent:x"] {
        let notice = bed.queue(9, session_key);
        bed.wakes.queued(&bed.gateway, &notice);
        assert_eq!(bed.open(session_key), None, "{session_key}");
    }
    // Another session need not wait.
    let other = bed.queue(4, "other");
    bed.wakes.queued(&bed.gateway, &other);
    let seen = bed.seen(2).await;
    let keys: Vec<_> = seen.iter().map(|request| body(request)["sessionKey"].clone()).collect();
    assert_eq!(keys, ["k", "other"]);
    bed.write("openclaw.json", "{}", 0o600);
    let notice = bed.queue(5, "unconfigured");
    bed.wakes.queued(&bed.gateway, &notice);
    assert_eq!(bed.open("unconfigured"), None);
}

#[tokio::test]
async fn ends_that_were_taken_meanwhile_wake_nobody() {
    let bed = Bed::new(|_| answer("200 OK", "{}")).await;
    let notice = bed.queue(1, "k");
    bed.gateway.tasks.take("main", "k", u64::MAX).unwrap();
    let (key, news) = news();
    bed.wakes.state.lock().open.insert(key.clone(), Some(news));
    bed.wakes.serve(&bed.gateway, &key).await;
    assert_eq!(bed.open("k"), None);
    assert_eq!(bed.server.seen.lock().len(), 0, "{notice:?}");
}

#[tokio::test]
async fn a_failed_request_is_tried_again_a_few_times() {
    let wake = async |bed: &Bed| {
        let (key, news) = news();
        bed.wakes.wake(&bed.gateway, &key, &news, 1).await;
        bed.server.seen.lock().len()
    };
    let bed =
        Bed::new(|number| if number < 2 { answer("500 Oh", "") } else { answer("202 Accepted", "") }).await;
    assert_eq!(wake(&bed).await, 3);
    let bed = Bed::new(|_| answer("302 Found", "")).await;
    assert_eq!(wake(&bed).await, 5);
    // A long answer is an answer.
    let bed = Bed::new(|_| answer("200 OK", &"x".repeat(ANSWER_MAX + 1))).await;
    assert_eq!(wake(&bed).await, 1);
    // Nothing is sent that nobody could check, or with a key that others know.
    for (secret, mode) in [(SECRET, 0o644), ("short\n", 0o600), ("", 0o600)] {
        bed.write("wake.key", secret, mode);
        assert_eq!(wake(&bed).await, 1, "{secret} {mode:o}");
    }
}

#[tokio::test]
async fn the_ledger_wakes() {
    let mut bed = Bed::new(|_| answer("204 No Content", "")).await;
    let notify = NotifyOnExit { on_exit: true, empty_success: false };
    bed.gateway.tasks.begin(&bed.gateway, task(1, "k"), notify).unwrap();
    let session = pb::SessionInfo {
        session_id: "reef-1".to_owned(),
        run_id: "run-1".to_owned(),
        exit: Some(pb::Exit { how: Some(How::Code(1)), final_offset: 3, ..pb::Exit::default() }),
        ..pb::SessionInfo::default()
    };
    let ended = pb::SessionEnded { session: Some(session), tail: bytes::Bytes::from_static(b"out") };
    bed.gateway.tasks.ended(&bed.gateway, "ab", &ended);
    let seen = bed.seen(1).await;
    assert_eq!(body(&seen[0])["contextKey"], "exec:reef-1");
    assert!(!seen[0].contains("out"), "{}", seen[0]);
}

#[tokio::test]
async fn what_waited_at_the_start_wakes_when_a_node_is_back() {
    let bed = Bed::new(|_| answer("204 No Content", "")).await;
    bed.queue(1, "k");
    bed.queue(2, "k");
    let Bed { gateway, server, mut count, dir: _dir, wakes: _ } = bed;
    let settings = gateway.settings.clone();
    drop(gateway);
    let next = Gateway::open(settings).unwrap();
    let node = identity::Fingerprint([1; 32]);
    next.tasks.inventory(&next, &node, &[]);
    next.tasks.inventory(&next, &node, &[]);
    count.wait_for(|seen| *seen >= 1).await.unwrap();
    let told: Vec<_> = server.seen.lock().iter().map(|request| body(request)["contextKey"].clone()).collect();
    assert_eq!(told, ["exec:reef-2"]);
}
