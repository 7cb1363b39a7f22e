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
    assert_eq!(b.request("a b", 0, LIFE), Err(Refused::Id(BadId)));
    assert_eq!(b.request("late", LIFE, LIFE), Err(Refused::Over));
    assert!(b.expire("r0000", LIFE));
    assert!(!b.expire("r0000", LIFE));
    assert_eq!(b.request("r0000", LIFE, 2 * LIFE), Err(Refused::Taken));
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

/// What a request looks like to somebody who only watches answers.
#[derive(Clone, Copy, Default)]
struct Seen {
    expires: UnixMs,
    decided: Option<(u8, UnixMs)>,
    redeemed: u32,
    dead: bool,
}

proptest! {
    #[test]
    fn one_run_at_most_per_decision_and_never_after_the_end(steps in proptest::collection::vec(step(), 1..200)) {
        let mut b: Broker<u8> = Broker::default();
        let mut seen: HashMap<usize, Seen> = HashMap::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Request(id, life) => {
                    if b.request(&id.to_string(), now, now + life).is_ok() {
                        // An id is never used again while it is remembered.
                        prop_assert!(!seen.contains_key(&id));
                        seen.insert(id, Seen { expires: now + life, ..Seen::default() });
                    }
                }
                Step::Resolve(id, decision) => match b.resolve(&id.to_string(), decision, now) {
                    Ok(Answer::First) => {
                        let known = seen.get_mut(&id).unwrap();
                        prop_assert!(known.decided.is_none() && !known.dead && now < known.expires);
                        known.decided = Some((decision, now));
                    }
                    Ok(Answer::Same) => prop_assert_eq!(seen[&id].decided.unwrap().0, decision),
                    Err(Late::AlreadyResolved) => prop_assert_ne!(seen[&id].decided.unwrap().0, decision),
                    Err(Late::Unknown) => prop_assert!(!seen.contains_key(&id)),
                    Err(Late::Expired) => prop_assert!(now >= seen[&id].expires && seen[&id].decided.is_none()),
                    Err(Late::Cancelled) => prop_assert!(seen[&id].dead),
                    Err(other) => prop_assert!(false, "{other:?}"),
                },
                Step::Redeem(id) => {
                    if let Ok(decision) = b.redeem(&id.to_string(), now) {
                        let known = seen.get_mut(&id).unwrap();
                        let (first, at) = known.decided.unwrap();
                        prop_assert_eq!(first, decision);
                        prop_assert!(!known.dead && now < known.expires && now - at <= GRACE_MS);
                        known.redeemed += 1;
                        prop_assert_eq!(known.redeemed, 1);
                    }
                }
                Step::Cancel(id) => {
                    if b.cancel(&id.to_string(), now) {
                        let known = seen.get_mut(&id).unwrap();
                        prop_assert!(known.decided.is_none() && !known.dead && now < known.expires);
                        known.dead = true;
                    }
                }
                Step::Expire(id) => {
                    if b.expire(&id.to_string(), now) {
                        prop_assert!(seen[&id].decided.is_none() && now >= seen[&id].expires);
                    }
                }
                Step::Restart => {
                    for id in b.restart() {
                        let known = seen.get_mut(&id.parse::<usize>().unwrap()).unwrap();
                        prop_assert!(known.decided.is_none() && !known.dead);
                        known.dead = true;
                    }
                    prop_assert_eq!(b.open(), 0);
                }
                Step::Pass(ms) => now += ms,
            }
        }
    }
}
