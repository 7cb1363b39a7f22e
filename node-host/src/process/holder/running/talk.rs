//! What a running holder and the node say to each other.

use std::time::Instant;

use super::super::connection;
use super::super::input::Overrun;
use super::super::stop::Cause;
use super::super::terminal::Terminal;
use super::{Running, bounded_grace};
use crate::process::wire::{FromHolder, Status, ToHolder};
use crate::sys;

impl Running<'_> {
    pub(super) fn accept(&mut self) {
        let Some(mut new) = self.listener.as_ref().and_then(connection::accept) else { return };
        if let Some(old) = &mut self.connection {
            let _ = old.send(&FromHolder::Replaced);
        }
        let _ = new.send(&FromHolder::Status(self.status()));
        self.connection = Some(new);
        self.forget_reader();
        self.tell_terminal();
    }

    /// A connection's wishes end with it.
    fn forget_reader(&mut self) {
        self.armed = false;
        self.told_end = self.log.end();
        self.log.set_floor(None);
    }

    fn status(&self) -> Status {
        Status {
            pid: self.pid.as_raw_pid(),
            started_unix_ms: self.started_unix_ms,
            end: self.log.end(),
            stdin: self.input.state(),
            stdin_accepted: self.input.accepted(),
            stdin_taken: self.input.taken(),
        }
    }

    pub(super) fn serve_connection(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let mut messages = Vec::new();
        let mut alive =
            connection.flush().is_ok() && connection.receive(|message| messages.push(message)).is_ok();
        if alive {
            self.connection = Some(connection);
        }
        for message in messages {
            alive &= self.obey(message).is_ok();
        }
        if !alive {
            self.connection = None;
            self.forget_reader();
        }
    }

    fn obey(&mut self, message: ToHolder) -> Result<(), Overrun> {
        match message {
            ToHolder::Stdin(bytes) => {
                self.input.push(&bytes)?;
                self.feed();
            }
            ToHolder::StdinEof if self.terminal.is_none() => {
                self.input.end();
                self.feed();
            }
            // A terminal's end of input is a byte like any other; a second start is nobody's.
            ToHolder::StdinEof | ToHolder::Start(_) => {}
            ToHolder::Resize { cols, rows } => {
                if let Some(terminal) = &mut self.terminal {
                    terminal.resize(cols, rows);
                }
            }
            ToHolder::Signal(number) => self.signal(number),
            ToHolder::Kill { grace_ms } => self.kill(Cause::Cancel, bounded_grace(grace_ms)),
            ToHolder::Floor(floor) => self.log.set_floor(floor),
            ToHolder::Arm => self.armed = true,
            ToHolder::Status => self.tell(&FromHolder::Status(self.status())),
        }
        Ok(())
    }

    fn signal(&self, number: i32) {
        let group = match &self.terminal {
            Some(terminal) => terminal.foreground_group(),
            None => self.death.is_none().then_some(self.pid),
        };
        if let Some(group) = group {
            // The group may be gone already, which is what most signals are sent for.
            let _ = sys::signal_group(group, number);
        }
    }

    pub(super) fn tell_end(&mut self) {
        let end = self.log.end();
        if self.armed && end > self.told_end {
            self.armed = false;
            self.told_end = end;
            // Whoever sees this output acts by what it switched on.
            if self.terminal.as_ref().is_some_and(Terminal::is_changed) {
                self.tell_terminal();
            }
            self.tell(&FromHolder::Output { end });
        }
    }

    pub(super) fn tell(&mut self, message: &FromHolder) {
        if let Some(connection) = &mut self.connection
            && connection.send(message).is_err()
        {
            self.connection = None;
            self.forget_reader();
        }
    }

    /// Tells what is known of the terminal, if there is one.
    pub(super) fn tell_terminal(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        let facts = terminal.report(Instant::now());
        self.tell(&FromHolder::Terminal(facts));
    }
}
