use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const LIFE: UnixMs = 1000;

fn broker(ids: &[&str]) -> Broker<&'static str> {
    let mut broker = Broker::default();
    for id in ids {
        broker.request(id, 0, LIFE).unwrap();
    }
    broker
}

#[test]
fn the_first_answer_counts_and_each_end_has_its_own_word() {
    let mut b = broker(&["a", "b", "c", "d"]);
    assert_eq!(b.redeem("a", 1), Err(Late::Open));
    assert_eq!(b.resolve("A", "once", 1), Ok(Answer::First));
    assert_eq!(b.resolve("a", "once", 2), Ok(Answer::Same));
    assert_eq!(b.resolve("a", "deny", 3), Err(Late::AlreadyResolved));
    assert_eq!(b.redeem("a", 4), Ok("once"));
    assert_eq!(b.redeem("a", 5), Err(Late::AlreadyUsed));
    assert_eq!(b.resolve("b", "once", LIFE), Err(Late::Expired));
    assert_eq!(b.redeem("b", LIFE), Err(Late::Expired));
    assert!(b.cancel("c", 1));
    assert!(!b.cancel("c", 2));
    assert_eq!(b.resolve("c", "once", 3), Err(Late::Cancelled));
    assert_eq!(b.resolve("x", "once", 3), Err(Late::Unknown));
    assert_eq!(b.restart(), ["d"]);
    assert_eq!((b.resolve("d", "once", 3), b.open()), (Err(Late::Cancelled), 0));
}

#[test]
fn a_decision_is_good_for_its_grace_and_within_its_time() {
    let mut b = Broker::default();
    b.request("long", 0, 10 * GRACE_MS).unwrap();
    b.request("short", 0, LIFE).unwrap();
    assert_eq!(b.resolve("long", 1, 0), Ok(Answer::First));
    assert_eq!(b.redeem("long", GRACE_MS + 1), Err(Late::Expired));
    assert_eq!(b.redeem("long", GRACE_MS), Ok(1));
    assert_eq!(b.resolve("short", 1, LIFE - 1), Ok(Answer::First));
    assert_eq!(b.redeem("short", LIFE), Err(Late::Expired));
}

#[test]
fn references() {
    let b = broker(&["abc1", "abc2", "x"]);
    let table = [
        ("abc1", Ok("abc1")),
        ("ABC1", Ok("abc1")),
        ("abc", Err(Late::Ambiguous)),
        ("ab", Err(Late::Ambiguous)),
        ("a", Err(Late::Ambiguous)),
        ("X", Ok("x")),
        ("xy", Err(Late::Unknown)),
        ("", Err(Late::Unknown)),
    ];
    for (reference, want) in table {
        assert_eq!(b.find(reference), want.map(str::to_owned), "{reference}");
    }
}

#[test]
fn requests_are_bounded_and_their_ids_are_theirs() {
    let mut b: Broker<u8> = Broker::default();
    for number in 0..MAX_OPEN {
        b.request(&format!("r{number:04}"), 0, LIFE).unwrap();
    }
    assert_eq!(b.request("more", 0, LIFE), Err(Refused::Full));
    assert_eq!(b.request("R0000", 0, LIFE), Err(Refused::Taken));
    // People would answer one of the two and mean the other.
    for near in ["r000", "r", "r00001", "R0001x"] {
        assert_eq!(b.request(near, 0, LIFE), Err(Refused::Taken), "{near}");
    }
    assert!(b.is_free("S") && !b.is_free("R0000"));
    assert_eq!(b.request("a b", 0, LIFE), Err(Refused::Id(BadId)));
    assert_eq!(b.request("late", LIFE, LIFE), Err(Refused::Over));
    assert!(b.expire("r0000", LIFE));
    assert!(!b.expire("r0000", LIFE));
    assert_eq!(b.request("r0000", LIFE, 2 * LIFE), Err(Refused::Taken));
    // Whoever names the closed one with this beginning in mind would answer a new one.
    assert_eq!(b.request("r000", LIFE, 2 * LIFE), Err(Refused::Taken));
    // Under a closed one's id nothing is answered.
    assert!(b.is_free("r0000-2"));
    assert_eq!(b.request("more", LIFE, 2 * LIFE), Ok(()));
    for number in 0..MAX_CLOSED + 10 {
        let id = format!("c{number:04}");
        b.cancel("more", LIFE);
        if b.request(&id, LIFE, 2 * LIFE).is_ok() {
            b.cancel(&id, LIFE);
        }
    }
    assert!(b.closed.len() <= MAX_CLOSED && b.entries.len() <= MAX_CLOSED + MAX_OPEN);
}

#[derive(Clone, Debug)]
enum Step {
    Request(usize, UnixMs),
    Resolve(usize, u8),
    Redeem(usize),
    Cancel(usize),
    Expire(usize),
    Restart,
    Pass(UnixMs),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..4_usize;
    prop_oneof![
        (id.clone(), 1..40_000_i64).prop_map(|(id, life)| Step::Request(id, life)),
        (id.clone(), 0..3_u8).prop_map(|(id, decision)| Step::Resolve(id, decision)),
        id.clone().prop_map(Step::Redeem),
        id.clone().prop_map(Step::Cancel),
        id.prop_map(Step::Expire),
        Just(Step::Restart),
        (0..20_000_i64).prop_map(Step::Pass),
    ]
}

/// A request as a person would keep it on paper: what happened to it, and when.
#[derive(Clone, Copy)]
struct Paper {
    expires: UnixMs,
    decided: Option<(u8, UnixMs)>,
    cancelled: bool,
    runs: u32,
}

impl Paper {
    fn is_expired(&self, now: UnixMs) -> bool {
        self.decided.is_none() && !self.cancelled && now >= self.expires
    }

    fn is_open(&self, now: UnixMs) -> bool {
        self.decided.is_none() && !self.cancelled && now < self.expires
    }

    fn resolve(&mut self, decision: u8, now: UnixMs) -> Result<Answer, Late> {
        match self.decided {
            Some((first, _)) if first == decision => Ok(Answer::Same),
            Some(_) => Err(Late::AlreadyResolved),
            None if self.cancelled => Err(Late::Cancelled),
            None if now >= self.expires => Err(Late::Expired),
            None => {
                self.decided = Some((decision, now));
                Ok(Answer::First)
            }
        }
    }

    fn redeem(&mut self, now: UnixMs) -> Result<u8, Late> {
        match self.decided {
            None if self.cancelled => Err(Late::Cancelled),
            None if now >= self.expires => Err(Late::Expired),
            None => Err(Late::Open),
            Some(_) if self.runs > 0 => Err(Late::AlreadyUsed),
            Some((_, at)) if now >= self.expires || now - at > GRACE_MS => Err(Late::Expired),
            Some((decision, _)) => {
                self.runs += 1;
                Ok(decision)
            }
        }
    }

    fn cancel(&mut self, now: UnixMs) -> bool {
        let open = self.is_open(now);
        self.cancelled |= open;
        open
    }
}

proptest! {
    /// Whatever the order: one run at most per decision, never after the end, and every answer is the expected one.
    #[test]
    fn one_run_at_most_per_decision_and_never_after_the_end(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut b: Broker<u8> = Broker::default();
        let mut papers: HashMap<usize, Paper> = HashMap::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Request(id, life) => {
                    let taken = papers.contains_key(&id);
                    let want = if taken { Err(Refused::Taken) } else { Ok(()) };
                    prop_assert_eq!(b.request(&id.to_string(), now, now + life), want);
                    papers.entry(id).or_insert(Paper {
                        expires: now + life,
                        decided: None,
                        cancelled: false,
                        runs: 0,
                    });
                }
                Step::Resolve(id, decision) => {
                    let want = papers.get_mut(&id).map_or(Err(Late::Unknown), |p| p.resolve(decision, now));
                    prop_assert_eq!(b.resolve(&id.to_string(), decision, now), want);
                }
                Step::Redeem(id) => {
                    let want = papers.get_mut(&id).map_or(Err(Late::Unknown), |p| p.redeem(now));
                    let run = b.redeem(&id.to_string(), now);
                    prop_assert_eq!(run, want);
                    if run.is_ok() {
                        prop_assert!(papers[&id].runs == 1 && now < papers[&id].expires);
                    }
                }
                Step::Cancel(id) => {
                    let want = papers.get_mut(&id).is_some_and(|paper| paper.cancel(now));
                    prop_assert_eq!(b.cancel(&id.to_string(), now), want);
                }
                Step::Expire(id) => {
                    let expired = b.expire(&id.to_string(), now);
                    // False also where another call had noticed before.
                    prop_assert!(!expired || papers[&id].is_expired(now));
                }
                Step::Restart => {
                    // Those whose time is over and that nobody looked at since are told of, too.
                    for id in b.restart() {
                        let paper = papers.get_mut(&id.parse::<usize>().unwrap()).unwrap();
                        prop_assert!(paper.decided.is_none() && !paper.cancelled);
                        paper.cancelled = true;
                    }
                    prop_assert_eq!(b.open(), 0);
                    prop_assert!(papers.values().all(|paper| !paper.is_open(now)));
                }
                Step::Pass(ms) => now += ms,
            }
            let open = papers.values().filter(|paper| paper.is_open(now)).count();
            prop_assert!(b.open() >= open && b.open() <= papers.len());
        }
    }
}
