//! Which answers count.

use std::sync::Barrier;

use super::*;

#[tokio::test]
async fn each_end_has_its_own_code() {
    let bed = Bed::new();
    let _tickets: Vec<_> =
        ["card-1", "card-2", "other"].map(|id| bed.approvals.request(new(id, plan())).unwrap()).into();
    let resolve = |id: &str, decision| bed.approvals.resolve(answer(id, decision));
    assert_eq!(code(resolve("x", pb::Decision::Deny)), ErrorCode::ApprovalNotFound);
    assert_eq!(code(resolve("", pb::Decision::Deny)), ErrorCode::ApprovalNotFound);
    assert_eq!(code(resolve("card", pb::Decision::Deny)), ErrorCode::AmbiguousApproval);
    assert_eq!(code(resolve("other", pb::Decision::Unspecified)), ErrorCode::InvalidRequest);
    let first = resolve("CARD-1", pb::Decision::AllowOnce).unwrap();
    assert_eq!(resolve("card-1", pb::Decision::AllowOnce).unwrap(), first);
    for other in [pb::Decision::Deny, pb::Decision::AllowAlways] {
        let mut other = answer("card-1", other);
        if other.request.decision() == pb::Decision::AllowAlways {
            other.request.lasting = lasting(pb::Scope::Program, Until::Forever(true));
        }
        assert_eq!(code(bed.approvals.resolve(other)), ErrorCode::ApprovalAlreadyResolved);
    }
    // Also when nobody holds it any more, and when only the store knows it.
    drop(_tickets);
    let later = bed.restarted();
    for approvals in [&bed.approvals, &later] {
        let again = |decision| approvals.resolve(answer("card-1", decision));
        assert_eq!(again(pb::Decision::AllowOnce).unwrap(), first);
        assert_eq!(code(again(pb::Decision::Deny)), ErrorCode::ApprovalAlreadyResolved);
        let mut swapped = answer("card-1", pb::Decision::AllowOnce);
        swapped.request.plan_digest = vec![1; 32].into();
        assert_eq!(code(approvals.resolve(swapped)), ErrorCode::ApprovalRequestMismatch);
    }
}

#[tokio::test]
async fn of_many_answers_at_once_one_counts() {
    let bed = Bed::new();
    for round in 0..20 {
        let id = format!("round-{round:02}");
        let mut ticket = bed.approvals.request(new(&id, plan())).unwrap();
        let barrier = Barrier::new(4);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = [pb::Decision::AllowOnce, pb::Decision::Deny]
                .into_iter()
                .cycle()
                .take(4)
                .map(|decision| {
                    let (approvals, barrier, id) = (&bed.approvals, &barrier, &id);
                    scope.spawn(move || {
                        barrier.wait();
                        approvals.resolve(answer(id, decision)).map_err(|fault| fault.code)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(lost, [Err(ErrorCode::ApprovalAlreadyResolved), Err(ErrorCode::ApprovalAlreadyResolved)]);
        assert_eq!(won[0], won[1]);
        let allowed = won[0].as_ref().unwrap().status() == pb::ApprovalStatus::Allowed;
        assert_eq!(matches!(ticket.decided().await, Outcome::Allowed(_)), allowed);
    }
}

#[tokio::test]
async fn another_plan_than_the_one_that_was_shown_is_not_decided() {
    let bed = Bed::new();
    let _ticket = bed.approvals.request(new("a", plan())).unwrap();
    let mut shown = answer("a", pb::Decision::AllowOnce);
    shown.request.plan_digest = vec![1; 32].into();
    assert_eq!(code(bed.approvals.resolve(shown)), ErrorCode::ApprovalRequestMismatch);
    let mut shown = answer("a", pb::Decision::AllowOnce);
    shown.request.plan_digest = plan().digest;
    bed.approvals.resolve(shown).unwrap();
}

fn lasting(scope: pb::Scope, until: Until) -> Option<pb::Lasting> {
    Some(pb::Lasting { scope: scope.into(), until: Some(until) })
}

#[tokio::test]
async fn allow_always_is_offered_as_far_as_it_can_hold() {
    use pb::Scope::{Exact, Program, ProgramArgs};
    const DAY: u64 = 24 * 3600 * 1000;
    let program_for_ever = lasting(Program, Until::Forever(true));
    let unavailable = Err(ErrorCode::AllowAlwaysUnavailable);
    let invalid = Err(ErrorCode::InvalidRequest);
    let always = pb::Decision::AllowAlways;
    let none = || pb::Plan { always: vec![], always_unavailable: "a pipe".to_owned(), ..plan() };
    let table = [
        // The narrowest one here cannot be kept for ever.
        (plan(), always, None, unavailable),
        (plan(), always, program_for_ever, Ok(program_for_ever)),
        (plan(), always, lasting(Exact, Until::Forever(true)), unavailable),
        (plan(), always, lasting(Exact, Until::ForMs(1)), Ok(lasting(Exact, Until::ForMs(1)))),
        (plan(), always, lasting(Exact, Until::ForMs(30 * DAY)), Ok(lasting(Exact, Until::ForMs(30 * DAY)))),
        (plan(), always, lasting(Exact, Until::ForMs(30 * DAY + 1)), invalid),
        (plan(), always, lasting(Exact, Until::ForMs(0)), invalid),
        (plan(), always, lasting(Exact, Until::Session(true)), Ok(lasting(Exact, Until::Session(true)))),
        (plan(), always, lasting(Exact, Until::Session(false)), invalid),
        (plan(), always, lasting(Program, Until::Forever(false)), invalid),
        (plan(), always, Some(pb::Lasting { scope: Program.into(), until: None }), invalid),
        (plan(), always, lasting(ProgramArgs, Until::Forever(true)), unavailable),
        (plan(), always, Some(pb::Lasting { scope: 9, until: Some(Until::Session(true)) }), unavailable),
        (
            pb::Plan { session_key: String::new(), ..plan() },
            always,
            lasting(Exact, Until::Session(true)),
            unavailable,
        ),
        (none(), always, None, unavailable),
        (none(), always, program_for_ever, unavailable),
        (none(), pb::Decision::AllowOnce, None, Ok(None)),
        (plan(), pb::Decision::AllowOnce, program_for_ever, invalid),
        (plan(), pb::Decision::Deny, program_for_ever, invalid),
    ];
    for (number, (plan, decision, asked, want)) in table.into_iter().enumerate() {
        let bed = Bed::new();
        let mut ticket = bed.approvals.request(new("a", plan)).unwrap();
        let mut resolution = answer("a", decision);
        resolution.request.lasting = asked;
        let got = bed.approvals.resolve(resolution);
        assert_eq!(got.as_ref().map(|a| a.lasting).map_err(|fault| fault.code), want, "row {number}");
        match want {
            Ok(lasting) => {
                let Outcome::Allowed(permit) = ticket.decided().await else { panic!("row {number}") };
                assert_eq!((permit.decision(), permit.lasting), (decision, lasting), "row {number}");
            }
            Err(_) => assert_eq!(bed.approvals.get("a").unwrap(), *ticket.approval(), "row {number}"),
        }
    }
}

#[tokio::test]
async fn without_a_scope_it_is_the_narrowest() {
    let bed = Bed::new();
    let mut durable = plan();
    durable.always.iter_mut().for_each(|scope| scope.not_durable.clear());
    let _ticket = bed.approvals.request(new("a", durable)).unwrap();
    let always = || bed.approvals.resolve(answer("a", pb::Decision::AllowAlways)).unwrap();
    let first = always();
    assert_eq!(first.lasting, lasting(pb::Scope::Exact, Until::Forever(true)));
    assert_eq!(always(), first);
}

#[tokio::test]
async fn a_plan_that_requires_a_signature_takes_no_bare_yes() {
    let sizes = |key: usize, signature: usize, decision| {
        let mut resolution = answer("a", decision);
        resolution.request.key = vec![1; key].into();
        resolution.request.signature = vec![2; signature].into();
        resolution
    };
    let (yes, no) = (pb::Decision::AllowOnce, pb::Decision::Deny);
    let invalid = Some(ErrorCode::ApprovalSignatureInvalid);
    let table = [
        (true, sizes(0, 0, yes), Some(ErrorCode::ApprovalSignatureRequired)),
        (true, sizes(32, 0, yes), invalid),
        (true, sizes(0, 64, yes), invalid),
        (true, sizes(31, 64, yes), invalid),
        (true, sizes(32, 65, yes), invalid),
        (true, sizes(32, 64, yes), None),
        // Nothing runs: nothing to prove.
        (true, sizes(0, 0, no), None),
        (false, sizes(0, 0, yes), None),
        (false, sizes(32, 64, yes), None),
        (false, sizes(1, 1, yes), invalid),
    ];
    for (number, (signature_required, resolution, want)) in table.into_iter().enumerate() {
        let bed = Bed::new();
        let mut ticket = bed.approvals.request(new("a", pb::Plan { signature_required, ..plan() })).unwrap();
        let (key, signature) = (resolution.request.key.clone(), resolution.request.signature.clone());
        let got = bed.approvals.resolve(resolution);
        assert_eq!(got.err().map(|fault| fault.code), want, "row {number}");
        if want.is_none()
            && let Outcome::Allowed(permit) = ticket.decided().await
        {
            assert_eq!((permit.key, permit.signature), (key, signature), "row {number}");
        }
    }
}
