//! Plans that wait for a person's yes.
//!
//! In memory only: a restarted node host knows no plan, so no old decision is good for anything there. A plan leaves the
//! table with its first decision, whatever comes of that.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use fault::{ErrorCode, Fault};
use parking_lot::Mutex;
use policy::bind::Keepable;
use prost::Message as _;
use proto::v1 as pb;

use super::snapshot::Snapshot;

/// How long a plan can be decided (policy spec §7.7).
pub(super) const PLAN_LIFE: Duration = Duration::from_secs(30 * 60);
/// Open plans. A gateway keeps no more approvals open.
const OPEN_MAX: usize = 4096;
/// Their size on the wire, in all. A plan without long texts has 1 to 2 KiB.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Used plans that are remembered, to tell "used" from "never heard of".
const USED_MAX: usize = 4096;

/// A digest.
pub(super) type Digest = [u8; approval::HASH_BYTES];

/// A plan, and what it was made from.
#[derive(Debug)]
pub(super) struct Open {
    /// As it was sent.
    pub(super) plan: pb::Plan,
    /// The policy that asked.
    pub(super) snapshot: Snapshot,
    /// What an allow-always may keep.
    pub(super) keepable: Vec<Keepable>,
}

#[derive(Debug)]
struct Kept {
    open: Open,
    until: Instant,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Digest, Kept>,
    bytes: usize,
    used: VecDeque<Digest>,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct OpenPlans(Mutex<Table>);

impl OpenPlans {
    /// Adds a plan.
    ///
    /// # Errors
    /// The table is full.
    pub(super) fn add(&self, digest: Digest, open: Open, now: Instant) -> Result<(), Fault> {
        let bytes = open.plan.encoded_len();
        let mut table = self.0.lock();
        if table.open.len() >= OPEN_MAX || table.bytes + bytes > BYTES_MAX {
            table.forget_expired(now);
        }
        if table.open.len() >= OPEN_MAX || table.bytes + bytes > BYTES_MAX {
            return Err(Fault::new(
                ErrorCode::ApprovalLimit,
                "too many commands wait for a decision on this node",
            )
            .hint("decide or wait for some: `gateway approvals pending`"));
        }
        table.bytes += bytes;
        table.open.insert(digest, Kept { open, until: now + PLAN_LIFE, bytes });
        Ok(())
    }

    /// Looks at an open plan.
    pub(super) fn look<T>(&self, digest: &Digest, look: impl FnOnce(&Open) -> T) -> Option<T> {
        self.0.lock().open.get(digest).map(|kept| look(&kept.open))
    }

    /// Takes a plan out, once.
    ///
    /// # Errors
    /// It is over, was used, or was never there.
    pub(super) fn take(&self, digest: &Digest, now: Instant) -> Result<Open, Fault> {
        let again = "ask again: run the command once more";
        let mut table = self.0.lock();
        let Some(kept) = table.open.remove(digest) else {
            return Err(if table.used.contains(digest) {
                Fault::new(ErrorCode::ApprovalAlreadyUsed, "this approval was used; each is good for one run")
            } else {
                Fault::new(
                    ErrorCode::ApprovalNotFound,
                    "this node has no open plan of this digest: it was restarted, or the plan is another's",
                )
            }
            .hint(again));
        };
        table.bytes -= kept.bytes;
        if table.used.len() >= USED_MAX {
            table.used.pop_front();
        }
        table.used.push_back(*digest);
        if now >= kept.until {
            return Err(Fault::new(ErrorCode::ApprovalExpired, "the approval's time was over").hint(again));
        }
        Ok(kept.open)
    }
}

impl Table {
    fn forget_expired(&mut self, now: Instant) {
        let bytes = &mut self.bytes;
        self.open.retain(|_, kept| {
            let keep = now < kept.until;
            if !keep {
                *bytes -= kept.bytes;
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Open {
        let plan = pb::Plan { command_text: text.to_owned(), ..pb::Plan::default() };
        Open { plan, snapshot: Snapshot::default(), keepable: Vec::new() }
    }

    fn code(taken: Result<Open, Fault>) -> Result<String, ErrorCode> {
        taken.map(|open| open.plan.command_text).map_err(|fault| fault.code)
    }

    #[test]
    fn a_plan_is_taken_once_and_in_time() {
        let plans = OpenPlans::default();
        let now = Instant::now();
        for (number, text) in [(1, "a"), (2, "b")] {
            plans.add([number; 32], open(text), now).unwrap();
        }
        assert_eq!(plans.look(&[1; 32], |open| open.plan.command_text.clone()), Some("a".to_owned()));
        assert_eq!(code(plans.take(&[1; 32], now + PLAN_LIFE / 2)), Ok("a".to_owned()));
        assert_eq!(code(plans.take(&[1; 32], now)), Err(ErrorCode::ApprovalAlreadyUsed));
        assert_eq!(code(plans.take(&[3; 32], now)), Err(ErrorCode::ApprovalNotFound));
        assert_eq!(code(plans.take(&[2; 32], now + PLAN_LIFE)), Err(ErrorCode::ApprovalExpired));
        assert_eq!(code(plans.take(&[2; 32], now)), Err(ErrorCode::ApprovalAlreadyUsed));
        assert_eq!(plans.0.lock().bytes, 0);
    }

    #[test]
    fn is_bounded_and_makes_room_by_time() {
        let plans = OpenPlans::default();
        let now = Instant::now();
        let digest = |number: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            digest
        };
        for number in 0..OPEN_MAX {
            plans.add(digest(number), open("x"), now).unwrap();
        }
        let full = plans.add(digest(OPEN_MAX), open("x"), now).unwrap_err();
        assert_eq!(full.code, ErrorCode::ApprovalLimit);
        plans.add(digest(OPEN_MAX), open("x"), now + PLAN_LIFE).unwrap();
        assert_eq!(plans.0.lock().open.len(), 1);
        let large = "x".repeat(BYTES_MAX);
        assert_eq!(plans.add([7; 32], open(&large), now).unwrap_err().code, ErrorCode::ApprovalLimit);
    }
}
