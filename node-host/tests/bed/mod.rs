//! What the cases share: sessions in a temporary directory, short ways to run and read.

use std::cell::RefCell;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use node_host::process::{Launcher, LauncherHandle, Mode};
use node_host::sessions::{Limits, Read, Record, Session, Sessions, StartRequest};
use session::{Exit, LogLimits};
use tokio::runtime::Runtime;

/// First argument of this program when it plays a node host that will be killed.
pub(crate) const HOST_MODE: &str = "host-mode";

/// As many as the cases take.
const SPARE_LAUNCHERS: usize = 16;

/// How long a case waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static RUNS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Bed {
    pub(crate) launcher_pid: i32,
    /// Forked at the start for cases that open sessions of their own.
    spare_launchers: RefCell<Vec<LauncherHandle>>,
    pub(crate) sessions: Option<Sessions>,
    pub(crate) runtime: Runtime,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) fn limits() -> Limits {
    // No stay: cases see what is let go of at once.
    Limits { finished_stay: Duration::ZERO, log: LogLimits::capped(128 << 20), ..Limits::default() }
}

impl Bed {
    /// Must be the first thing that the process does.
    pub(crate) fn new() -> Bed {
        let launcher = Launcher::fork().unwrap();
        let launcher_pid = launcher.pid();
        let spare_launchers = RefCell::new((0..SPARE_LAUNCHERS).map(|_| Launcher::fork().unwrap()).collect());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let sessions =
            runtime.block_on(Sessions::open(dir.path().join("sessions"), launcher, limits())).unwrap();
        Bed { launcher_pid, spare_launchers, sessions: Some(sessions), runtime, dir }
    }

    /// A launcher for sessions of a case's own.
    pub(crate) fn spare_launcher(&self) -> LauncherHandle {
        self.spare_launchers.borrow_mut().pop().expect("SPARE_LAUNCHERS are enough")
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        self.sessions.as_ref().unwrap()
    }

    /// Starts a shell text.
    pub(crate) fn start(&self, text: &str, change: impl FnOnce(&mut StartRequest)) -> Session {
        let mut request = request(&["/bin/sh", "-c", text]);
        change(&mut request);
        self.runtime.block_on(self.sessions().start(request)).unwrap()
    }

    /// Runs a shell text to its end: exit and output.
    pub(crate) fn run(&self, text: &str, change: impl FnOnce(&mut StartRequest)) -> (Exit, Vec<u8>) {
        let session = self.start(text, change);
        self.end_of(&session)
    }

    /// Waits for the end: exit and all output.
    pub(crate) fn end_of(&self, session: &Session) -> (Exit, Vec<u8>) {
        self.runtime.block_on(async {
            let output = concat(&read_all(session, 0).await);
            (exit_of(session).await, output)
        })
    }

    /// Reads from the start until the output holds `wanted`.
    pub(crate) fn read_until(&self, session: &Session, wanted: &str) -> String {
        self.runtime.block_on(within(async {
            let mut reader = session.reader(0);
            let mut progress = session.progress();
            let mut output = Vec::new();
            loop {
                progress.borrow_and_update();
                match reader.next(1 << 16).unwrap() {
                    Read::Data(records) => output.extend(concat(&records)),
                    Read::Empty => progress.changed().await.unwrap(),
                    other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&output)),
                }
                let text = String::from_utf8_lossy(&output);
                if text.contains(wanted) {
                    return text.into_owned();
                }
            }
        }))
    }
}

/// A request with an id of its own and a plain environment.
pub(crate) fn request(argv: &[&str]) -> StartRequest {
    let n = RUNS.fetch_add(1, Ordering::Relaxed);
    let variable = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    StartRequest {
        run_id: format!("run-{}-{n}", std::process::id()).parse().unwrap(),
        input_digest: [7; 32],
        label: argv.join(" "),
        argv: argv.iter().map(ToString::to_string).collect(),
        env: vec![variable("PATH", "/usr/bin:/bin"), variable("HOME", "/")],
        cwd: PathBuf::from("/"),
        mode: Mode::PIPES,
        deadline_ms: None,
        kill_grace_ms: 300,
        bound: None,
        owner: Default::default(),
        limits: Default::default(),
        log_bytes: 0,
        answer_queries: false,
    }
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

pub(crate) async fn exit_of(session: &Session) -> Exit {
    let mut progress = session.progress();
    let progress = within(progress.wait_for(|p| p.exit.is_some())).await.unwrap();
    Exit::clone(progress.exit.as_ref().unwrap())
}

/// Reads to the end; a gap is a failure.
pub(crate) async fn read_all(session: &Session, from: u64) -> Vec<Record> {
    let mut reader = session.reader(from);
    let mut progress = session.progress();
    let mut all = Vec::new();
    within(async {
        loop {
            progress.borrow_and_update();
            match reader.next(1 << 16).unwrap() {
                Read::Data(records) => all.extend(records),
                Read::Empty => progress.changed().await.unwrap(),
                Read::End => return all,
                Read::Gap { from, to } => panic!("a gap from {from} to {to}"),
            }
        }
    })
    .await
}

pub(crate) fn concat(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| record.bytes.iter().copied()).collect()
}

/// Waits until `value` is `Some`.
pub(crate) fn eventually<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Live processes whose command line holds `mark`.
pub(crate) fn processes_with(mark: &str) -> Vec<i32> {
    let holds = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() as i32 && String::from_utf8_lossy(&line).contains(mark)
    };
    pids().filter(holds).collect()
}

pub(crate) fn pids() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
}

/// State and parent of a process.
pub(crate) fn stat(pid: i32) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit(") ").next()?.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub(crate) fn children_of(parent: i32) -> Vec<i32> {
    pids().filter(|&pid| stat(pid).is_some_and(|(_, p)| p == parent)).collect()
}

pub(crate) fn descriptors_of(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Plays a node host: starts a session that counts, says so, and waits to be killed.
pub(crate) fn host(dir: &Path) -> ! {
    let launcher = Launcher::fork().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sessions = runtime.block_on(Sessions::open(dir.to_owned(), launcher, limits())).unwrap();
    let mut counting = request(&[
        "/bin/sh",
        "-c",
        "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); sleep 0.01; done",
    ]);
    counting.run_id = "counting".parse().unwrap();
    let session = runtime.block_on(sessions.start(counting)).unwrap();
    let mut progress = session.progress();
    runtime.block_on(progress.wait_for(|p| p.end > 20)).unwrap();
    println!("{}", session.id());
    loop {
        std::thread::park();
    }
}

/// This program as a node host in `dir`; gives the name of its session.
pub(crate) fn spawn_host(dir: &Path) -> (Child, Arc<str>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(HOST_MODE)
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().into())
}
