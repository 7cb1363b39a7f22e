//! The life of requests for a person's yes, as a pure state machine (runtime spec §9).
//!
//! ```text
//! open ──resolve──▶ decided ──redeem──▶ used
//!   ├──expire──▶ expired
//!   └──cancel──▶ cancelled
//! ```
//! Each decision is redeemed at most once, and never after the request's time is over. Closed requests are remembered for
//! a while, so that a late answer hears what happened; older ones are the store's.

mod id;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

pub use id::{BadId, check_id};

/// Milliseconds since 1970.
pub type UnixMs = i64;

/// Requests that may be open at one time.
pub const MAX_OPEN: usize = 4096;
/// Closed requests that are remembered.
pub const MAX_CLOSED: usize = 4096;
/// How long a decision can be redeemed after it was taken, in milliseconds (policy spec §7.7).
pub const GRACE_MS: UnixMs = 15_000;

/// Where a request stands. `D` is a decision, compared to tell the same answer from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State<D> {
    /// Nobody has decided.
    Open,
    /// Somebody has.
    Decided {
        /// What.
        decision: D,
        /// When.
        at: UnixMs,
        /// It was redeemed.
        used: bool,
    },
    /// Its time was over.
    Expired,
    /// It was closed undecided.
    Cancelled,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// [`MAX_OPEN`] are open.
    #[error("{MAX_OPEN} approvals are open")]
    Full,
    /// The id is in use.
    #[error("the approval id is in use")]
    Taken,
    /// The id has another form.
    #[error(transparent)]
    Id(#[from] BadId),
    /// It would be over before it began.
    #[error("the approval's time is over before it begins")]
    Over,
}

/// Why an answer, or a redemption, does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Late {
    /// No such request is remembered.
    #[error("unknown approval id")]
    Unknown,
    /// Several ids begin so.
    #[error("several approval ids begin so; give the full one")]
    Ambiguous,
    /// Its time is over.
    #[error("the approval has expired")]
    Expired,
    /// It was closed undecided.
    #[error("the approval was closed before anybody decided")]
    Cancelled,
    /// Somebody decided otherwise before.
    #[error("the approval was decided otherwise before")]
    AlreadyResolved,
    /// The decision was redeemed before, or there is none.
    #[error("the approval was used before")]
    AlreadyUsed,
    /// Nobody has decided.
    #[error("the approval is not decided")]
    Open,
}

/// Whether an answer was the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It counts.
    First,
    /// It says the same as the one that counts.
    Same,
}

#[derive(Clone, Debug)]
struct Entry<D> {
    expires: UnixMs,
    state: State<D>,
}

/// All requests of one gateway.
#[derive(Clone, Debug)]
pub struct Broker<D> {
    /// By id in lower case.
    entries: BTreeMap<String, Entry<D>>,
    open: usize,
    /// Closed ones, oldest first.
    closed: VecDeque<String>,
}

impl<D> Default for Broker<D> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), open: 0, closed: VecDeque::new() }
    }
}

impl<D: Clone + PartialEq> Broker<D> {
    /// Takes a request under an id that nobody has, in any case. Nor may it be the beginning of another one, or begin with
    /// an open one: people answer by beginnings, and would answer the wrong request.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn request(&mut self, id: &str, now: UnixMs, expires: UnixMs) -> Result<(), Refused> {
        check_id(id)?;
        if expires <= now {
            return Err(Refused::Over);
        }
        let key = id.to_lowercase();
        if !self.is_free(&key) {
            return Err(Refused::Taken);
        }
        if self.open >= MAX_OPEN {
            return Err(Refused::Full);
        }
        self.entries.insert(key, Entry { expires, state: State::Open });
        self.open += 1;
        Ok(())
    }

    /// Whether a request can have this id, as far as the ids of others go.
    #[must_use]
    pub fn is_free(&self, id: &str) -> bool {
        let key = id.to_lowercase();
        let begins_another =
            self.entries.range(key.clone()..).next().is_some_and(|(other, _)| other.starts_with(&key));
        // Under the id of a closed one nothing can be answered by mistake.
        let is_open = |start| self.entries.get(start).is_some_and(|entry| entry.state == State::Open);
        !begins_another && !(1..key.len()).any(|end| key.get(..end).is_some_and(is_open))
    }

    /// The whole id (in lower case) that an id, or a unique beginning of one, means. An exact one is itself even where
    /// others begin with it.
    ///
    /// # Errors
    /// [`Late::Unknown`] or [`Late::Ambiguous`].
    pub fn find(&self, reference: &str) -> Result<String, Late> {
        let key = reference.to_lowercase();
        if key.is_empty() {
            return Err(Late::Unknown);
        }
        if self.entries.contains_key(&key) {
            return Ok(key);
        }
        let mut found = self.entries.range(key.clone()..).take_while(|(id, _)| id.starts_with(&key));
        match (found.next(), found.next()) {
            (Some((id, _)), None) => Ok(id.clone()),
            (None, _) => Err(Late::Unknown),
            (Some(_), Some(_)) => Err(Late::Ambiguous),
        }
    }

    /// Where a request stands at this moment.
    #[must_use]
    pub fn state(&mut self, id: &str, now: UnixMs) -> Option<State<D>> {
        let key = id.to_lowercase();
        self.expire_one(&key, now);
        self.entries.get(&key).map(|entry| entry.state.clone())
    }

    /// A person decides. The first answer counts.
    ///
    /// # Errors
    /// It came too late, or says something else than the first one.
    pub fn resolve(&mut self, id: &str, decision: D, now: UnixMs) -> Result<Answer, Late> {
        let key = id.to_lowercase();
        self.expire_one(&key, now);
        let entry = self.entries.get_mut(&key).ok_or(Late::Unknown)?;
        match &entry.state {
            State::Decided { decision: first, .. } if *first == decision => Ok(Answer::Same),
            State::Decided { .. } => Err(Late::AlreadyResolved),
            State::Expired => Err(Late::Expired),
            State::Cancelled => Err(Late::Cancelled),
            State::Open => {
                entry.state = State::Decided { decision, at: now, used: false };
                self.close(key);
                Ok(Answer::First)
            }
        }
    }

    /// Uses a decision, once, within its grace and before the request's time is over.
    ///
    /// # Errors
    /// There is none, it was used, or it came too late.
    pub fn redeem(&mut self, id: &str, now: UnixMs) -> Result<D, Late> {
        let key = id.to_lowercase();
        self.expire_one(&key, now);
        let entry = self.entries.get_mut(&key).ok_or(Late::Unknown)?;
        match &mut entry.state {
            State::Open => Err(Late::Open),
            State::Expired => Err(Late::Expired),
            State::Cancelled => Err(Late::Cancelled),
            State::Decided { used: true, .. } => Err(Late::AlreadyUsed),
            State::Decided { decision, at, used } => {
                if now >= entry.expires || now.saturating_sub(*at) > GRACE_MS {
                    return Err(Late::Expired);
                }
                *used = true;
                Ok(decision.clone())
            }
        }
    }

    /// Closes an open request undecided. False where it is not open.
    pub fn cancel(&mut self, id: &str, now: UnixMs) -> bool {
        let key = id.to_lowercase();
        self.expire_one(&key, now);
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        if entry.state != State::Open {
            return false;
        }
        entry.state = State::Cancelled;
        self.close(key);
        true
    }

    /// Closes an open request whose time is over. False where it is not, or is closed.
    pub fn expire(&mut self, id: &str, now: UnixMs) -> bool {
        self.expire_one(&id.to_lowercase(), now)
    }

    /// Closes all that are open, as a restart does; yields their ids in lower case.
    pub fn restart(&mut self) -> Vec<String> {
        let open: Vec<_> =
            self.entries.iter().filter(|(_, e)| e.state == State::Open).map(|(id, _)| id.clone()).collect();
        for id in &open {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.state = State::Cancelled;
            }
            self.close(id.clone());
        }
        open
    }

    /// How many are open, those whose time is over and who were not looked at since included.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    fn expire_one(&mut self, key: &str, now: UnixMs) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        if entry.state != State::Open || now < entry.expires {
            return false;
        }
        entry.state = State::Expired;
        self.close(key.to_owned());
        true
    }

    fn close(&mut self, key: String) {
        self.open = self.open.saturating_sub(1);
        self.closed.push_back(key);
        if self.closed.len() > MAX_CLOSED
            && let Some(oldest) = self.closed.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }
}
