//! Direct clients of a bed's gateway, and a session followed to its end.

use std::collections::HashMap;
use std::time::Duration;

use fault::Fault;
use gateway::cli::client::Connection;
use proto::v1::operator_client::OperatorClient;
use proto::v1::tools_client::ToolsClient;
use proto::v1::{self as pb, client_frame::Frame, session_event::Event};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::bed::TestBed;
use crate::eventually::PATIENCE;

impl TestBed {
    /// A direct client of the tools.
    pub async fn tools(&self) -> ToolsClient<Channel> {
        Connection::local(&self.state()).await.expect("a local connection").tools()
    }

    /// A direct client of the operator's calls.
    pub async fn operator(&self) -> OperatorClient<Channel> {
        Connection::local(&self.state()).await.expect("a local connection").operator()
    }
}

/// A request that runs `words` on a node.
pub fn argv_request(node: &str, words: &[&str]) -> pb::ExecRequest {
    let words = words.iter().map(|w| (*w).to_owned()).collect();
    request(node, pb::invocation::Form::Argv(pb::Argv { words }))
}

/// A request that runs shell text on a node.
pub fn shell_request(node: &str, text: &str) -> pb::ExecRequest {
    request(node, pb::invocation::Form::Shell(text.to_owned()))
}

fn request(node: &str, form: pb::invocation::Form) -> pb::ExecRequest {
    pb::ExecRequest {
        host: "node".to_owned(),
        node: node.to_owned(),
        invocation: Some(pb::Invocation { form: Some(form) }),
        env: HashMap::new(),
        ..pb::ExecRequest::default()
    }
}

/// What a followed session brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Followed {
    /// From `Started`.
    pub session: pb::SessionInfo,
    /// Bytes tagged stdout.
    pub stdout: Vec<u8>,
    /// Bytes tagged stderr.
    pub stderr: Vec<u8>,
    /// Offset after the last byte or gap.
    pub end: u64,
    /// Gaps that were named.
    pub gaps: Vec<pb::Gap>,
    /// The end.
    pub exit: Option<pb::Exit>,
    /// Input that was refused.
    pub input_refused: Vec<Fault>,
    /// How often the link was down.
    pub interruptions: u32,
    /// Approvals that it waited for.
    pub asked: Vec<pb::Approval>,
}

impl Followed {
    /// The exit code, if it ended by itself.
    pub fn code(&self) -> Option<i32> {
        match self.exit.as_ref()?.how {
            Some(pb::exit::How::Code(code)) => Some(code),
            _ => None,
        }
    }

    /// Takes one event; the offsets must join up.
    pub fn take(&mut self, event: pb::SessionEvent) {
        assert!(self.exit.is_none(), "an event after the exit: {event:?}");
        match event.event.expect("an event of a known kind") {
            Event::Started(started) => self.session = started.session.expect("a session"),
            Event::Output(output) => {
                for record in output.records {
                    assert_eq!(record.offset, self.end, "a record that does not join the one before");
                    self.end += record.data.len() as u64;
                    match record.stream() {
                        pb::Stream::Stdout => self.stdout.extend_from_slice(&record.data),
                        pb::Stream::Stderr => self.stderr.extend_from_slice(&record.data),
                        pb::Stream::Unspecified => panic!("a record of no stream"),
                    }
                }
            }
            Event::Gap(gap) => {
                assert_eq!(gap.from, self.end, "a gap that does not join");
                self.end = gap.to;
                self.gaps.push(gap);
            }
            Event::Exit(exit) => {
                assert_eq!(exit.final_offset, self.end, "the exit names another end than was read");
                self.exit = Some(exit);
            }
            Event::InputRefused(fault) => self.input_refused.push(fault.into()),
            Event::Interrupted(_) => self.interruptions += 1,
            Event::ApprovalPending(approval) => self.asked.push(approval),
            Event::Resumed(_) | Event::InputProgress(_) | Event::ApprovalClosed(_) => {}
        }
    }
}

/// Follows a stream to its end.
pub async fn follow(mut events: Streaming<pb::SessionEvent>) -> Result<Followed, Status> {
    let mut followed = Followed::default();
    while let Some(event) = events.message().await? {
        followed.take(event);
    }
    Ok(followed)
}

/// A session that is written to and read from.
#[derive(Debug)]
pub struct Session {
    frames: mpsc::Sender<pb::ClientFrame>,
    events: Streaming<pb::SessionEvent>,
    /// What came so far.
    pub so_far: Followed,
}

impl Session {
    /// Starts or attaches.
    pub async fn open(tools: &mut ToolsClient<Channel>, first: Frame) -> Result<Self, Status> {
        let (frames, stream) = mpsc::channel(16);
        frames.send(pb::ClientFrame { frame: Some(first) }).await.expect("room for the first frame");
        let events = tools.interact(ReceiverStream::new(stream)).await?.into_inner();
        Ok(Self { frames, events, so_far: Followed::default() })
    }

    /// Sends a frame.
    pub async fn send(&self, frame: Frame) {
        self.frames.send(pb::ClientFrame { frame: Some(frame) }).await.expect("an open call");
    }

    /// Reads until `enough`; fails after a while.
    pub async fn until(&mut self, enough: impl Fn(&Followed) -> bool) -> Result<(), Status> {
        let read = async {
            while !enough(&self.so_far) {
                let event = self.events.message().await?;
                self.so_far
                    .take(event.unwrap_or_else(|| panic!("the stream ended early: {:?}", self.so_far)));
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, read)
            .await
            .unwrap_or_else(|_| panic!("not enough: {:?}", Short(&self.so_far)))
    }

    /// Reads to the end of the stream.
    pub async fn finish(mut self, within: Duration) -> Result<Followed, Status> {
        let read = async {
            while let Some(event) = self.events.message().await? {
                self.so_far.take(event);
            }
            Ok::<(), Status>(())
        };
        tokio::time::timeout(within, read).await.expect("an end in time")?;
        Ok(self.so_far)
    }
}

/// Without the bytes.
struct Short<'a>(&'a Followed);

impl std::fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Followed { session, stdout, stderr, end, exit, interruptions, .. } = self.0;
        write!(
            f,
            "{} bytes out, {} err, end {end}, {interruptions} interruptions, exit {exit:?}, {session:?}",
            stdout.len(),
            stderr.len()
        )
    }
}
