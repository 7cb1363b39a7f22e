//! Input writers: each has its own offsets, and what was taken from it is
//! remembered across links, so that a repeat types nothing twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use proto::v1::{self as pb, node_frame::Frame};
use session::SessionId;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::NodeOutbox;
use crate::node::Node;
use crate::sessions::{Session, StdinError};

/// Frames of one writer that may wait for the command to read. The gateway
/// keeps at most 256 KiB unconfirmed, so only one that ignores that meets it.
const QUEUE_MAX: usize = 1024;
/// Input is confirmed after this many bytes (a quarter of what may be
/// unconfirmed) or this long after the first of them.
const CONFIRM_AT: u64 = 64 * 1024;
const CONFIRM_WITHIN: Duration = Duration::from_millis(20);
/// Writers that are remembered.
const WRITERS_MAX: usize = 4096;

/// What was taken from one writer. None: nothing was heard of it since this
/// node host started, so its own word counts.
type Taken = Arc<AsyncMutex<Option<Progress>>>;

/// How much of one writer's input was taken, and whether its end was.
#[derive(Debug, Clone, Copy)]
struct Progress {
    total: u64,
    eof: bool,
}

/// What was taken from each writer, for all links of this node host.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    taken: Mutex<HashMap<(SessionId, u64), Taken>>,
}

impl Inputs {
    fn of(&self, session: &SessionId, writer: u64, sessions: &crate::sessions::Sessions) -> Taken {
        let mut taken = self.taken.lock();
        if taken.len() >= WRITERS_MAX {
            taken.retain(|(id, _), _| sessions.find(id).is_some_and(|s| s.info().exit.is_none()));
        }
        Arc::clone(taken.entry((session.clone(), writer)).or_default())
    }
}

/// The writers of one link.
#[derive(Debug, Default)]
pub(super) struct Writers {
    queues: Mutex<HashMap<u64, mpsc::Sender<pb::Input>>>,
}

impl Writers {
    /// Queues input for its session, in order.
    pub(super) fn on_input(&self, node: &Arc<Node>, outbox: &NodeOutbox, input: pb::Input) {
        let writer = input.writer;
        let mut queues = self.queues.lock();
        queues.retain(|_, queue| !queue.is_closed());
        let queue = match queues.get(&writer) {
            Some(queue) => queue.clone(),
            None => {
                let (queue, inputs) = mpsc::channel(QUEUE_MAX);
                queues.insert(writer, queue.clone());
                tokio::spawn(write_all(Arc::clone(node), outbox.clone(), inputs));
                queue
            }
        };
        drop(queues);
        if queue.try_send(input).is_err() {
            let fault = Fault::new(ErrorCode::ResourceExhausted, "more input than was confirmed");
            answer(outbox, refused(writer, 0, fault));
        }
    }
}

/// Writes one writer's input until its link or its session ends.
async fn write_all(node: Arc<Node>, outbox: NodeOutbox, mut inputs: mpsc::Receiver<pb::Input>) {
    let mut owed = Owed::default();
    loop {
        let next = tokio::select! {
            next = inputs.recv() => next,
            () = owed.due() => {
                owed.pay(&outbox);
                continue;
            }
        };
        let Some(input) = next else {
            owed.pay(&outbox);
            return;
        };
        let (writer, confirm_now) = (input.writer, input.confirm_now);
        let found = SessionId::parse(&input.session_id)
            .ok()
            .and_then(|id| node.sessions.find(&id).map(|session| (id, session)));
        let Some((id, session)) = found else {
            let fault = Fault::new(
                ErrorCode::UnknownSession,
                format!("this node has no session `{}`", input.session_id),
            );
            answer(&outbox, refused(writer, 0, fault));
            return;
        };
        let taken = node.inputs.of(&id, writer, &node.sessions);
        // Held while writing: a repeat over the next link waits for this one.
        let mut taken = taken.lock().await;
        let progress = taken.get_or_insert(Progress { total: input.offset, eof: false });
        match write(&session, input, progress).await {
            Ok(()) => {
                owed.add(pb::InputTaken { writer, total: progress.total, fault: None, eof: progress.eof });
                if confirm_now || progress.eof || owed.bytes() >= CONFIRM_AT {
                    owed.pay(&outbox);
                }
            }
            Err(fault) => {
                answer(&outbox, refused(writer, progress.total, fault));
                return;
            }
        }
    }
}

/// A confirmation that waits a little, so that each typed byte does not cost a
/// frame of its own on the way back.
#[derive(Debug, Default)]
struct Owed {
    taken: Option<pb::InputTaken>,
    /// Total of the last confirmation.
    paid: u64,
    since: Option<tokio::time::Instant>,
}

impl Owed {
    fn add(&mut self, taken: pb::InputTaken) {
        self.taken = Some(taken);
        self.since.get_or_insert_with(tokio::time::Instant::now);
    }

    fn bytes(&self) -> u64 {
        self.taken.as_ref().map_or(0, |taken| taken.total.saturating_sub(self.paid))
    }

    /// Resolves when the confirmation must not wait any longer.
    async fn due(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + CONFIRM_WITHIN).await,
            None => std::future::pending().await,
        }
    }

    fn pay(&mut self, outbox: &NodeOutbox) {
        self.since = None;
        if let Some(taken) = self.taken.take() {
            self.paid = taken.total;
            answer(outbox, taken);
        }
    }
}

/// Writes what was not taken before.
async fn write(session: &Session, input: pb::Input, taken: &mut Progress) -> Result<(), Fault> {
    if input.offset > taken.total {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            format!("input at {} while {} bytes were taken: some is missing", input.offset, taken.total),
        ));
    }
    let seen = usize::try_from(taken.total - input.offset).unwrap_or(usize::MAX);
    let fresh = input.data.slice(seen.min(input.data.len())..);
    if !fresh.is_empty() {
        let count = fresh.len() as u64;
        session.write_stdin(fresh).await.map_err(|e| refusal(&e))?;
        taken.total += count;
    }
    if input.eof && !taken.eof {
        session.close_stdin().await.map_err(|e| refusal(&e))?;
        taken.eof = true;
    }
    Ok(())
}

fn refusal(error: &StdinError) -> Fault {
    match error {
        StdinError::Ended { .. } => Fault::new(ErrorCode::SessionEnded, error.to_string()),
        StdinError::NotOpened => Fault::new(ErrorCode::StdinClosed, error.to_string())
            .hint("start the command with `--stdin` (parameter stdin: open), or with `--pty`"),
        _ => Fault::new(ErrorCode::StdinClosed, error.to_string()),
    }
}

fn refused(writer: u64, total: u64, fault: Fault) -> pb::InputTaken {
    pb::InputTaken { writer, total, fault: Some(fault.into()), eof: false }
}

fn answer(outbox: &NodeOutbox, taken: pb::InputTaken) {
    // A full queue means a dead link; the writer repeats over the next one.
    let _ = outbox.try_control(pb::NodeFrame { frame: Some(Frame::InputTaken(taken)) });
}
