//! The list of sessions: admission, idempotent starts, adoption, retention.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use session::{ByteOffset, Ended, Exit, LogLimits, RunId, SessionId, StartFailure};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hold::Hold;
use super::leased::Leases;
use super::live::{Progress, Session};
use super::pool::Pool;
use super::receipts::Receipts;
use super::request::{Limits, StartError, StartRequest};
use super::store;
use super::table::Table;
use super::tether::{self, Tether};
use crate::process::LauncherHandle;
use crate::process::holder::unix_ms;
use crate::process::journal::{self, Journal, Owner, Receipt};
use crate::process::wire::{self, FrameBuffer, LaunchSpec, ToHolder};

/// Spare holders that may turn out dead before a start gives up.
const HOLDER_TRIES: usize = 40;

/// How often the age of finished sessions is looked at.
const SWEEP: Duration = Duration::from_secs(60);

/// The longest label, in characters.
const LABEL_MAX: usize = 512;

/// How long a start that was under way when the node died may take to show its socket.
const ADOPT_WAIT: Duration = Duration::from_millis(500);

/// What becomes of output that nobody has read when the log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// The command waits.
    Hold,
    /// The oldest goes, and readers see a named gap.
    Drop,
}

/// All sessions of a node. Cheap to clone. When the last clone is gone the node lets go of its sessions, which run on.
#[derive(Debug, Clone)]
pub struct Sessions(Arc<Registry>);

/// What all clones share.
#[derive(Debug)]
pub(super) struct Registry {
    dir: PathBuf,
    limits: Limits,
    pool: Pool,
    table: Mutex<Table>,
    over: CancellationToken,
    leases: Arc<Leases>,
    _ends: DropGuard,
}

impl Sessions {
    /// Opens the directory of sessions: adopts those that run, lists those that are over, settles those whose holder
    /// died.
    ///
    /// # Errors
    /// When the directory cannot be made or read, or the launcher cannot be talked to.
    pub async fn open(dir: PathBuf, launcher: LauncherHandle, limits: Limits) -> io::Result<Sessions> {
        if let Err(error) = store::make_private(&dir) {
            match error.kind() {
                io::ErrorKind::AlreadyExists => {}
                io::ErrorKind::NotFound => {
                    std::fs::create_dir_all(dir.parent().unwrap_or(&dir))?;
                    store::make_private(&dir)?;
                }
                _ => return Err(error),
            }
        }
        let dir = dir.canonicalize()?;
        let table = Mutex::new(Table::new(Receipts::open(&dir)?));
        let over = CancellationToken::new();
        let pool = Pool::start(launcher.into_async()?, limits.spares, over.clone());
        let registry = Arc::new(Registry {
            dir,
            limits,
            pool,
            table,
            leases: Arc::default(),
            _ends: over.clone().drop_guard(),
            over,
        });
        registry.load().await?;
        registry.retire();
        tokio::spawn(sweep(Arc::downgrade(&registry), registry.over.clone()));
        Ok(Sessions(registry))
    }

    /// Starts a command, or finds the session of the same run.
    ///
    /// # Errors
    /// See [`StartError`]. After an error nothing runs.
    pub async fn start(&self, request: StartRequest) -> Result<Session, StartError> {
        match self.0.admit(&request)? {
            Admitted::Known(session) => Ok(session),
            Admitted::New(session, commands) => {
                self.0.launch_or_abandon(&session, commands, request, Unread::Drop).await?;
                Ok(session)
            }
        }
    }

    /// Like [`start`](Self::start), for a starter that reads all of it: from the first byte on the command waits
    /// rather than lose output, until the hold is moved or dropped.
    ///
    /// # Errors
    /// See [`StartError`]. After an error nothing runs.
    pub async fn start_held(&self, request: StartRequest) -> Result<(Session, Hold), StartError> {
        match self.0.admit(&request)? {
            Admitted::Known(session) => {
                let hold = session.hold(0);
                Ok((session, hold))
            }
            Admitted::New(session, commands) => {
                let hold = session.hold(0);
                self.0.launch_or_abandon(&session, commands, request, Unread::Hold).await?;
                Ok((session, hold))
            }
        }
    }

    /// The session with this name.
    pub fn find(&self, id: &SessionId) -> Option<Session> {
        self.0.table.lock().find(id).cloned()
    }

    /// The session of this run.
    pub fn find_run(&self, run: &RunId) -> Option<Session> {
        self.0.table.lock().find_run(run).cloned()
    }

    /// The session of an agent's run (empty: whoever's) that is to be ended. A run that has not started will not start any more, also after a
    /// restart.
    pub fn cancel(&self, run: &RunId, agent: &str) -> Option<Session> {
        self.0.table.lock().cancel(run, agent)
    }

    /// The session that a start of this run would find, if it would not start anything.
    ///
    /// # Errors
    /// [`StartError::RunIdConflict`] and [`StartError::Forgotten`], as the start would.
    pub fn find_retry(
        &self,
        run: &RunId,
        input_digest: &[u8; 32],
        owner: &Owner,
    ) -> Result<Option<Session>, StartError> {
        self.0.table.lock().known(run, input_digest, owner).map(|session| session.cloned())
    }

    /// All sessions, oldest first.
    pub fn list(&self) -> Vec<super::SessionInfo> {
        let mut list: Vec<_> = self.0.table.lock().sessions().map(Session::info).collect();
        list.sort_by(|a, b| (a.started_unix_ms, &a.id).cmp(&(b.started_unix_ms, &b.id)));
        list
    }

    /// The node has a link from now on, or none: over one, whoever looked after a session may come back.
    pub fn set_linked(&self, linked: bool) {
        if linked {
            self.0.table.lock().sessions().for_each(Session::contact);
        }
        self.0.leases.set_linked(linked);
    }

    /// Waits until sessions are to be ended because nobody looks after them.
    pub async fn abandoned(&self) -> Vec<Session> {
        loop {
            // Registered before looking: news in between wakes us.
            let news = self.0.leases.news.notified();
            let (mut due, mut next) = (Vec::new(), None::<u64>);
            for session in self.0.table.lock().sessions() {
                match session.abandoned_in_ms() {
                    Some(0) => due.push(session.clone()),
                    Some(ms) => next = Some(next.map_or(ms, |next| next.min(ms))),
                    None => {}
                }
            }
            if !due.is_empty() {
                return due;
            }
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep(Duration::from_millis(next.unwrap_or_default())), if next.is_some() => {}
            }
        }
    }

    /// Removes a finished session and its output; its run stays known. One that runs stays.
    pub fn forget(&self, id: &SessionId) {
        let gone = self.0.table.lock().forget(id);
        remove_dirs(gone.into_iter().collect());
    }
}

enum Admitted {
    Known(Session),
    New(Session, mpsc::Receiver<ToHolder>),
}

impl Registry {
    /// Reserves name and place, so that a second call with the same run id finds the first.
    fn admit(&self, request: &StartRequest) -> Result<Admitted, StartError> {
        let mut table = self.table.lock();
        if let Some(session) = table.known(&request.run_id, &request.input_digest, &request.owner)? {
            return Ok(Admitted::Known(session.clone()));
        }
        let max = self.limits.live_max;
        if table.live(max) >= max {
            return Err(StartError::TooManySessions { max });
        }
        let session_id = SessionId::pick(random, |name| {
            name.parse().is_ok_and(|id: SessionId| table.find(&id).is_some()) || self.dir.join(name).exists()
        });
        let receipt = Receipt {
            session_id,
            run_id: request.run_id.clone(),
            input_digest: request.input_digest,
            label: request.label.chars().take(LABEL_MAX).collect(),
            mode: request.mode,
            workdir: request.cwd.display().to_string(),
            asked_unix_ms: unix_ms(),
            owner: request.owner.clone(),
            limits: request.limits,
            answer_queries: request.answer_queries,
        };
        let dir = self.dir.join(receipt.session_id.as_str());
        let (session, commands) = Session::new(receipt, dir, Progress::default(), Arc::clone(&self.leases));
        table.insert(session.clone());
        Ok(Admitted::New(session, commands))
    }

    async fn launch_or_abandon(
        self: &Arc<Self>,
        session: &Session,
        commands: mpsc::Receiver<ToHolder>,
        request: StartRequest,
        unread: Unread,
    ) -> Result<(), StartError> {
        let abandoned = Abandoned { registry: self, session };
        self.launch(session, commands, request, unread).await?;
        std::mem::forget(abandoned);
        Ok(())
    }

    async fn launch(
        self: &Arc<Self>,
        session: &Session,
        commands: mpsc::Receiver<ToHolder>,
        request: StartRequest,
        unread: Unread,
    ) -> Result<(), StartError> {
        let (dir, receipt) = (&session.0.dir, &session.0.receipt);
        let spec = LaunchSpec {
            session_id: receipt.session_id.clone(),
            run_id: request.run_id,
            dir: dir.clone(),
            argv: request.argv,
            env: request.env,
            cwd: request.cwd,
            mode: request.mode,
            deadline_ms: request.deadline_ms,
            kill_grace_ms: request.kill_grace_ms,
            log: self.log_limits(request.log_bytes),
            bound: request.bound,
            limits: request.limits,
            answer_queries: request.answer_queries,
        };
        let mut frames = Vec::new();
        wire::encode(&ToHolder::Start(Box::new(spec)), &mut frames).map_err(StartError::TooLong)?;
        let floor = match unread {
            // With the start itself: a fast command could fill the log before a later frame arrived.
            Unread::Hold => Some(ByteOffset::START),
            Unread::Drop => None,
        };
        wire::encode(&ToHolder::Floor(floor), &mut frames).map_err(StartError::TooLong)?;
        wire::encode(&ToHolder::Arm, &mut frames).map_err(StartError::TooLong)?;
        // The receipt comes before anything can run: a retry after a crash must find it.
        store::make_private(dir).map_err(StartError::Record)?;
        journal::create(dir, receipt.clone()).map_err(StartError::Record)?;
        let stream = self.hand_over(&frames).await?;
        let registry = Arc::downgrade(self);
        let tether = Tether::new(session.clone(), stream, FrameBuffer::default(), commands, registry)
            .told_floor(floor);
        tokio::spawn(tether.run(self.over.clone()));
        Ok(())
    }

    /// Never more than the node's own bound.
    fn log_limits(&self, wanted: u64) -> LogLimits {
        if wanted == 0 || wanted >= self.limits.log.cap { self.limits.log } else { LogLimits::capped(wanted) }
    }

    async fn hand_over(&self, frames: &[u8]) -> Result<UnixStream, StartError> {
        let mut failure = io::Error::from(io::ErrorKind::BrokenPipe);
        for _ in 0..HOLDER_TRIES {
            let mut stream = self.pool.take().await.map_err(StartError::Holder)?;
            match stream.write_all(frames).await {
                Ok(()) => return Ok(stream),
                // One that left or was killed: it has read nothing whole, so nothing runs.
                Err(error) => failure = error,
            }
        }
        Err(StartError::HandOver(failure))
    }

    async fn load(self: &Arc<Self>) -> io::Result<()> {
        let mut loads = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.is_dir() {
                let registry = Arc::clone(self);
                // At the same time, since a holder may be slow to greet.
                loads.push(tokio::spawn(async move { registry.load_one(&path).await }));
            }
        }
        for load in loads {
            // A panic in one leaves the others.
            let _ = load.await;
        }
        Ok(())
    }

    async fn load_one(self: &Arc<Self>, dir: &Path) {
        let Journal { receipt, started, exit, .. } = match journal::read(dir) {
            Ok(journal) => journal,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Journal::default(),
            // Unreadable for now is not the same as empty: its command may run.
            Err(error) => {
                tracing::error!(dir = %dir.display(), %error, "a session cannot be read; it is left as it is");
                return;
            }
        };
        let Some(receipt) = receipt else {
            // The node died between making the directory and writing the receipt: nothing ran.
            store::remove(dir);
            return;
        };
        if self.table.lock().is_past(&receipt.run_id, &receipt.session_id) {
            store::remove(dir);
            return;
        }
        let asked = receipt.asked_unix_ms;
        if let Some(exit) = exit {
            self.insert_finished(receipt, dir, exit, started);
            return;
        }
        match connect_soon(dir).await {
            Ok((mut stream, inbox, status)) => {
                let (session, commands) =
                    Session::new(receipt, dir.to_owned(), Progress::default(), Arc::clone(&self.leases));
                self.table.lock().insert(session.clone());
                let mut frame = Vec::new();
                let armed = wire::encode(&ToHolder::Arm, &mut frame).is_ok();
                // A failure is noticed by the session's task.
                let _ = armed && stream.write_all(&frame).await.is_ok();
                let mut tether = Tether::new(session, stream, inbox, commands, Arc::downgrade(self));
                tether.adopt(status.as_ref());
                tokio::spawn(tether.run(self.over.clone()));
            }
            Err(error) if tether::is_gone(&error) => {
                self.insert_finished(receipt, dir, tether::settle(dir, asked), started);
            }
            Err(error) => {
                tracing::error!(dir = %dir.display(), %error, "a holder cannot be reached; its session is left as it is");
            }
        }
    }

    fn insert_finished(&self, receipt: Receipt, dir: &Path, exit: Exit, started: Option<(i32, u64)>) {
        let (session, _) =
            Session::new(receipt, dir.to_owned(), tether::finished(exit, started), Arc::clone(&self.leases));
        let mut table = self.table.lock();
        table.insert(session.clone());
        table.ended(&session);
    }

    /// Takes a holder whose session is over, for another one.
    pub(super) fn give_back(&self, holder: UnixStream) {
        self.pool.give_back(holder);
    }

    /// A session's task is done; the session itself may go on elsewhere.
    pub(super) fn on_end(&self, session: &Session) {
        // Measured before the table is locked.
        session.0.disk_use();
        self.table.lock().ended(session);
        self.retire();
    }

    /// Lets go of finished sessions that are too many, too old or too large.
    fn retire(&self) {
        // Their runs are written down before their directories go.
        let gone = self.table.lock().retire(&self.limits, unix_ms());
        remove_dirs(gone);
    }
}

/// Connects to a holder. One that has just been started may not listen yet.
async fn connect_soon(dir: &Path) -> io::Result<(UnixStream, FrameBuffer, Option<wire::Status>)> {
    let until = tokio::time::Instant::now() + ADOPT_WAIT;
    loop {
        match tether::connect(dir).await {
            Err(error)
                if (error.kind() == io::ErrorKind::NotFound || !tether::is_gone(&error))
                    && tokio::time::Instant::now() < until
                    && journal::read(dir).is_ok_and(|journal| journal.exit.is_none()) =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            result => return result,
        }
    }
}

/// Removing many megabytes takes a while; not on a thread that serves others.
fn remove_dirs(sessions: Vec<Session>) {
    if sessions.is_empty() {
        return;
    }
    let remove = move || sessions.iter().for_each(|session| store::remove(&session.0.dir));
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(remove)),
        Err(_) => remove(),
    }
}

async fn sweep(registry: Weak<Registry>, over: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = over.cancelled() => return,
        }
        let Some(registry) = registry.upgrade() else { return };
        registry.retire();
    }
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    // Fails only on kernels far older than this program runs on; the name is then less random, still free.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}

/// Cleans up behind a start that failed or whose caller went away.
struct Abandoned<'a> {
    registry: &'a Registry,
    session: &'a Session,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.registry.table.lock().abandon(self.session.id());
        store::remove(&self.session.0.dir);
        // For a second caller with the same run id, who may hold the session already.
        let now = unix_ms();
        self.session.0.set_exit(Exit {
            ended: Ended::CouldNotStart {
                kind: StartFailure::Other,
                errno: 0,
                detail: "the start was given up before the command ran".into(),
            },
            cancelled: false,
            final_offset: ByteOffset::START,
            leftovers_killed: 0,
            started_unix_ms: self.session.0.receipt.asked_unix_ms,
            ended_unix_ms: now,
            duration_ms: now.saturating_sub(self.session.0.receipt.asked_unix_ms),
        });
    }
}
