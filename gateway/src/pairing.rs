//! Who asks to be paired: the table of pending requests.
//!
//! Pure: events and time in, decisions out. It lives in memory only; a node
//! repeats its request every few seconds, and the id of a request follows from
//! its key, so after a restart of the gateway the same request is back under
//! the same id.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fault::{ErrorCode, Fault};
use identity::Fingerprint;
use proto::v1::HostFacts;

use crate::store::UnixMs;

/// A request ends this long after the node's last retry (`runtime.md` §6.3).
pub const REQUEST_TTL_MS: i64 = 5 * 60 * 1000;
/// Requests in all. More are refused, the ones that are there stay.
const MAX_PENDING: usize = 128;
/// Requests from one address.
const MAX_PER_ADDRESS: usize = 16;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Derived from the key: the same node has the same request.
    pub request_id: String,
    /// The node's key.
    pub fingerprint: Fingerprint,
    /// The name it would like.
    pub display_name: String,
    /// What it says about itself.
    pub facts: HostFacts,
    /// Where it comes from.
    pub address: IpAddr,
    /// First knock.
    pub first_seen: UnixMs,
    /// End, unless it knocks again.
    pub expires_at: UnixMs,
    /// The short authentication words.
    pub words: String,
    /// An operator said no; the node is told until the entry expires.
    rejected: bool,
}

/// What a node says when it knocks.
#[derive(Debug, Clone)]
pub struct Knock {
    /// Its key.
    pub fingerprint: Fingerprint,
    /// The name it would like.
    pub display_name: String,
    /// What it says about itself.
    pub facts: HostFacts,
    /// Where it comes from.
    pub address: IpAddr,
}

/// The table.
#[derive(Debug, Default)]
pub struct Pairing {
    requests: BTreeMap<Fingerprint, Pending>,
}

impl Pairing {
    /// A node asks, for the first time or again. `words` is called for a new
    /// request only: deriving them is slow on purpose.
    pub fn knock(
        &mut self,
        knock: Knock,
        now: UnixMs,
        words: impl FnOnce() -> String,
    ) -> Result<&Pending, Fault> {
        self.is_new(&knock.fingerprint, knock.address, now)?;
        let request = self.requests.entry(knock.fingerprint).or_insert_with(|| Pending {
            request_id: request_id(&knock.fingerprint),
            fingerprint: knock.fingerprint,
            display_name: String::new(),
            facts: HostFacts::default(),
            address: knock.address,
            first_seen: now,
            expires_at: now,
            words: words(),
            rejected: false,
        });
        if request.rejected {
            return Err(Fault::new(ErrorCode::RequestRejected, "an operator rejected this pairing request"));
        }
        request.display_name = knock.display_name;
        request.facts = knock.facts;
        request.expires_at = now + REQUEST_TTL_MS;
        Ok(request)
    }

    /// Whether this key has no request yet, so that words are needed for one;
    /// an error when there is no room for it.
    pub fn is_new(&mut self, key: &Fingerprint, address: IpAddr, now: UnixMs) -> Result<bool, Fault> {
        self.expire(now);
        if self.requests.contains_key(key) {
            return Ok(false);
        }
        let from_there = self.requests.values().filter(|p| p.address == address).count();
        if self.requests.len() >= MAX_PENDING || from_there >= MAX_PER_ADDRESS {
            return Err(Fault::new(ErrorCode::TooManyRequests, "too many pairing requests are open")
                .hint("approve or reject some: `gateway nodes pending`"));
        }
        Ok(true)
    }

    /// The open requests, oldest first.
    pub fn open(&mut self, now: UnixMs) -> Vec<Pending> {
        self.expire(now);
        let mut open: Vec<_> = self.requests.values().filter(|p| !p.rejected).cloned().collect();
        open.sort_by_key(|p| (p.first_seen, p.fingerprint));
        open
    }

    /// Takes a request out, to approve it.
    pub fn take(&mut self, request_id: &str, now: UnixMs) -> Result<Pending, Fault> {
        let fingerprint = self.find(request_id, now)?;
        self.requests.remove(&fingerprint).ok_or_else(|| unknown(request_id))
    }

    /// Says no; the node learns it at its next retry.
    pub fn reject(&mut self, request_id: &str, now: UnixMs) -> Result<Pending, Fault> {
        let fingerprint = self.find(request_id, now)?;
        let request = self.requests.get_mut(&fingerprint).ok_or_else(|| unknown(request_id))?;
        request.rejected = true;
        request.expires_at = now + REQUEST_TTL_MS;
        Ok(request.clone())
    }

    /// Drops the request of a key that was paired another way.
    pub fn forget(&mut self, key: &Fingerprint) {
        self.requests.remove(key);
    }

    fn find(&mut self, request_id: &str, now: UnixMs) -> Result<Fingerprint, Fault> {
        self.expire(now);
        self.requests
            .values()
            .find(|p| !p.rejected && p.request_id == request_id)
            .map(|p| p.fingerprint)
            .ok_or_else(|| unknown(request_id))
    }

    fn expire(&mut self, now: UnixMs) {
        self.requests.retain(|_, p| p.expires_at > now);
    }
}

/// Ten hex digits that follow from the key.
pub fn request_id(fingerprint: &Fingerprint) -> String {
    let mut id = fingerprint.to_hex();
    id.truncate(10);
    id
}

fn unknown(request_id: &str) -> Fault {
    Fault::new(ErrorCode::UnknownRequest, format!("no open pairing request `{request_id}`"))
        .hint("requests end five minutes after the node's last retry: `gateway nodes pending`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knock(id: u8, address: [u8; 4]) -> Knock {
        Knock {
            fingerprint: Fingerprint([id; 32]),
            display_name: format!("n{id}"),
            facts: HostFacts::default(),
            address: IpAddr::from(address),
        }
    }

    #[test]
    fn retries_refresh_one_request() {
        let mut pairing = Pairing::default();
        let first = pairing.knock(knock(7, [1, 1, 1, 1]), 0, || "a b".into()).unwrap().clone();
        let again =
            pairing.knock(knock(7, [1, 1, 1, 1]), 1000, || panic!("words are derived once")).unwrap().clone();
        assert_eq!(first.request_id, "0707070707");
        assert_eq!(again, Pending { expires_at: 1000 + REQUEST_TTL_MS, ..first });
        assert_eq!(pairing.open(1000 + REQUEST_TTL_MS - 1), [again]);
        assert_eq!(pairing.open(1000 + REQUEST_TTL_MS), []);
    }

    #[test]
    fn decisions() {
        let mut pairing = Pairing::default();
        let id = pairing.knock(knock(1, [1, 1, 1, 1]), 0, String::new).unwrap().request_id.clone();
        assert_eq!(pairing.take("nope", 1).unwrap_err().code, ErrorCode::UnknownRequest);
        assert_eq!(pairing.take(&id, 1).unwrap().fingerprint, Fingerprint([1; 32]));
        assert_eq!(pairing.take(&id, 1).unwrap_err().code, ErrorCode::UnknownRequest);

        let id = pairing.knock(knock(2, [1, 1, 1, 1]), 0, String::new).unwrap().request_id.clone();
        pairing.reject(&id, 1).unwrap();
        assert_eq!(pairing.open(2), []);
        assert_eq!(pairing.take(&id, 2).unwrap_err().code, ErrorCode::UnknownRequest);
        let refused = pairing.knock(knock(2, [1, 1, 1, 1]), 3, String::new).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RequestRejected);
        let later = 1 + REQUEST_TTL_MS;
        assert!(pairing.knock(knock(2, [1, 1, 1, 1]), later, String::new).is_ok());
    }

    #[test]
    fn a_flood_is_bounded_and_harms_nobody_else() {
        let mut pairing = Pairing::default();
        pairing.knock(knock(200, [9, 9, 9, 9]), 0, String::new).unwrap();
        let flood =
            (0..100).filter(|i| pairing.knock(knock(*i, [1, 1, 1, 1]), 1, String::new).is_ok()).count();
        assert_eq!(flood, MAX_PER_ADDRESS);
        assert!(pairing.knock(knock(200, [9, 9, 9, 9]), 2, String::new).is_ok());
        assert!(pairing.knock(knock(201, [9, 9, 9, 9]), 2, String::new).is_ok());
    }
}
