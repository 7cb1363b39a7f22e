//! A client of OpenSSH's control socket (its PROTOCOL.mux, version 4).
//!
//! It runs a command over a master that is connected already, without starting
//! an `ssh` process: the nearest that OpenSSH has to one open client
//! connection, and so the fairest opponent.

use std::fs::File;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

const VERSION: u32 = 4;
const HELLO: u32 = 0x0000_0001;
const NEW_SESSION: u32 = 0x1000_0002;
const PERMISSION_DENIED: u32 = 0x8000_0002;
const FAILURE: u32 = 0x8000_0003;
const EXIT: u32 = 0x8000_0004;
const SESSION_OPENED: u32 = 0x8000_0006;
const TTY_ALLOC_FAIL: u32 = 0x8000_0008;
/// "No escape character".
const NO_ESCAPE: u32 = u32::MAX;
/// Largest message that is taken; real ones have a few dozen bytes.
const MESSAGE_MAX: u32 = 64 * 1024;
/// A silent master is given up after this.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A session that runs.
#[derive(Debug)]
pub(crate) struct Session {
    socket: UnixStream,
}

impl Session {
    /// Starts `command` with these three descriptors.
    pub(crate) fn open(control: &Path, command: &str, stdio: [BorrowedFd<'_>; 3]) -> anyhow::Result<Self> {
        let mut socket = UnixStream::connect(control).context("the control socket")?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        send(&mut socket, &words(&[HELLO, VERSION]))?;
        let hello = receive(&mut socket)?;
        ensure!(word(&hello, 0)? == HELLO, "no greeting from the master");
        // Request 1; reserved string; no terminal, X11, agent or subsystem.
        let mut request = words(&[NEW_SESSION, 1]);
        push_string(&mut request, "");
        request.extend(words(&[0, 0, 0, 0, NO_ESCAPE]));
        push_string(&mut request, "dumb");
        push_string(&mut request, command);
        send(&mut socket, &request)?;
        for descriptor in stdio {
            pass(&socket, descriptor)?;
        }
        let answer = receive(&mut socket)?;
        match word(&answer, 0)? {
            SESSION_OPENED => Ok(Self { socket }),
            PERMISSION_DENIED | FAILURE => {
                bail!("the master refused: {}", String::from_utf8_lossy(&answer[8..]))
            }
            other => bail!("the master answered {other:#x}"),
        }
    }

    /// Waits for the exit code.
    pub(crate) fn wait(mut self) -> anyhow::Result<u32> {
        loop {
            let message = receive(&mut self.socket)?;
            match word(&message, 0)? {
                EXIT => return word(&message, 8),
                TTY_ALLOC_FAIL => {}
                other => bail!("the master sent {other:#x} in a session"),
            }
        }
    }
}

/// Runs a command to its end, which must be code 0; yields its output.
pub(crate) fn call(control: &Path, null: &File, command: &str) -> anyhow::Result<Vec<u8>> {
    let (mut reader, writer) = std::io::pipe()?;
    let session = Session::open(control, command, [null.as_fd(), writer.as_fd(), writer.as_fd()])?;
    drop(writer);
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    let code = session.wait()?;
    ensure!(code == 0, "ssh: `{command}` ended with {code}");
    Ok(output)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn push_string(message: &mut Vec<u8>, text: &str) {
    message.extend((text.len() as u32).to_be_bytes());
    message.extend(text.as_bytes());
}

fn word(message: &[u8], at: usize) -> anyhow::Result<u32> {
    let bytes = message.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).context("a short message from the master")
}

/// Length and body in one write: a second small write would cost a wake-up.
fn send(socket: &mut UnixStream, body: &[u8]) -> anyhow::Result<()> {
    let mut message = words(&[body.len() as u32]);
    message.extend(body);
    Ok(socket.write_all(&message)?)
}

fn receive(socket: &mut UnixStream) -> anyhow::Result<Vec<u8>> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).context("the master closed the session")?;
    let length = u32::from_be_bytes(length);
    ensure!(length <= MESSAGE_MAX, "a message of {length} bytes from the master");
    let mut body = vec![0; length as usize];
    socket.read_exact(&mut body).context("the master closed the session")?;
    Ok(body)
}

/// One descriptor with one byte, as the master reads them.
fn pass(socket: &UnixStream, descriptor: BorrowedFd<'_>) -> anyhow::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ensure!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)), "no room for one descriptor");
    sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_form() {
        let mut message = words(&[NEW_SESSION, 1]);
        push_string(&mut message, "ls");
        assert_eq!(message, [0x10, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, b'l', b's']);
        assert_eq!(word(&message, 4).expect("is there"), 1);
        assert!(word(&message, 11).is_err());
    }
}
