//! Decisions that a gateway forged, repeats, moves or widens.

use approval::permit_statement;
use e2e::{FakeGateway, FakeLink, GatewayOptions, Sig, full_run};
use identity::PrivateKey;
use proto::v1 as pb;
use proto::v1::lasting::Until;

use super::*;

/// Somebody with a key.
struct Person(PrivateKey);

impl Person {
    fn new() -> Self {
        Self(PrivateKey::generate().unwrap())
    }

    fn enrol(&self, bed: &TestBed, node: &Node, name: &str) {
        node_host(bed, &["approvers", "add", name, &self.0.public().unwrap().to_string()], node).ok();
    }

    /// The permit with their signature under what it says.
    fn sign(&self, permit: pb::Permit) -> pb::Permit {
        let statement = permit_statement(&permit.plan_digest, permit.decision(), permit.lasting.as_ref());
        pb::Permit {
            key: self.0.public().unwrap().as_bytes().to_vec().into(),
            signature: self.0.sign(&statement).unwrap().into(),
            ..permit
        }
    }
}

fn once(plan: &pb::Plan) -> pb::Permit {
    pb::Permit {
        approval_id: "a1".to_owned(),
        plan_digest: plan.digest.clone(),
        decision: pb::Decision::AllowOnce.into(),
        decided_by: "whoever the gateway says".to_owned(),
        ..pb::Permit::default()
    }
}

fn lasting(scope: pb::Scope, until: Until) -> Option<pb::Lasting> {
    Some(pb::Lasting { scope: scope.into(), until: Some(until) })
}

fn always(plan: &pb::Plan, scope: pb::Scope, until: Until) -> pb::Permit {
    let decision = pb::Decision::AllowAlways.into();
    pb::Permit { decision, lasting: lasting(scope, until), ..once(plan) }
}

/// A node in the hands of a hostile gateway.
struct Hostile {
    bed: TestBed,
    fake: FakeGateway,
    node: Node,
    link: FakeLink,
    /// Writes its argument behind `ran`.
    tool: String,
    ran: PathBuf,
    asked: u32,
}

impl Hostile {
    fn new(config: &str) -> Self {
        let bed = TestBed::dark(GatewayOptions::default());
        let fake = FakeGateway::start();
        let node = Node::of_fake(&bed, "n", &fake, NodeOptions::default());
        let link = fake.link();
        replace(&node.approvals(), ASKS, 0o600);
        replace(&node.dir().join("openclaw.json"), config, 0o600);
        let (tool, ran) = (bed.path("tool"), bed.path("ran"));
        replace(&tool, &format!("#!/bin/sh\necho \"$1\" >> {}\n", ran.display()), 0o755);
        let tool = tool.display().to_string();
        Self { bed, fake, node, link, tool, ran, asked: 0 }
    }

    /// A run of the tool that was not asked for before.
    fn run(&mut self, word: &str) -> pb::RunRequest {
        self.asked += 1;
        full_run(&format!("run-{}", self.asked), &[&self.tool, word])
    }

    /// The same, and the plan that a person would see.
    #[track_caller]
    fn planned(&mut self, word: &str) -> (pb::RunRequest, pb::Plan) {
        let run = self.run(word);
        let plan = self.link.plan(run.clone()).unwrap();
        (run, plan)
    }

    fn send(&mut self, run: &pb::RunRequest, permit: pb::Permit) -> Result<pb::RunStarted, pb::Fault> {
        self.link.run(with(run, permit))
    }

    #[track_caller]
    fn refused(&mut self, run: &pb::RunRequest, permit: pb::Permit, code: &str, what: &str) {
        let sessions = self.link.sessions();
        match self.send(run, permit) {
            Err(fault) => assert_eq!(fault.code, code, "{what}: {fault:?}"),
            Ok(started) => panic!("{what}: {started:?}"),
        }
        assert_eq!(self.link.sessions(), sessions, "{what}: something was started");
    }
}

fn with(run: &pb::RunRequest, permit: pb::Permit) -> pb::RunRequest {
    pb::RunRequest { can_ask: true, permit: Some(permit), ..run.clone() }
}

#[test]
fn what_no_enrolled_approver_signed_does_not_run() {
    let mut h = Hostile::new(SIGNED);
    let (ann, bob, mallory) = (Person::new(), Person::new(), Person::new());
    ann.enrol(&h.bed, &h.node, "ann");
    bob.enrol(&h.bed, &h.node, "bob");
    let (other, other_plan) = h.planned("other");
    let (run, plan) = h.planned("asked");
    assert!(plan.signature_required);
    let by_ann = || ann.sign(once(&plan));
    let flipped = |at: usize| {
        let mut signature = by_ann().signature.to_vec();
        signature[at] ^= 1;
        signature.into()
    };
    let exact = || ann.sign(always(&plan, pb::Scope::Exact, Until::ForMs(1000)));
    let forever = || Some(Until::Forever(true));
    let wider = |scope: pb::Scope, until: Option<Until>| Some(pb::Lasting { scope: scope.into(), until });
    const INVALID: &str = "APPROVAL_SIGNATURE_INVALID";
    const REQUIRED: &str = "APPROVAL_SIGNATURE_REQUIRED";
    let table: Vec<(&str, pb::Permit, &str)> = vec![
        ("unsigned", once(&plan), REQUIRED),
        ("only a key", pb::Permit { signature: Vec::new().into(), ..by_ann() }, REQUIRED),
        ("no key", pb::Permit { key: Vec::new().into(), ..by_ann() }, INVALID),
        ("made up", pb::Permit { signature: vec![7; 64].into(), ..by_ann() }, INVALID),
        ("flipped first", pb::Permit { signature: flipped(0), ..by_ann() }, INVALID),
        ("flipped last", pb::Permit { signature: flipped(63), ..by_ann() }, INVALID),
        ("cut", pb::Permit { signature: by_ann().signature.slice(..63), ..by_ann() }, INVALID),
        ("a stranger's", mallory.sign(once(&plan)), INVALID),
        ("a stranger's as ann", pb::Permit { key: by_ann().key, ..mallory.sign(once(&plan)) }, INVALID),
        ("ann's as bob", pb::Permit { key: bob.sign(once(&plan)).key, ..by_ann() }, INVALID),
        (
            "for another plan",
            pb::Permit { plan_digest: plan.digest.clone(), ..ann.sign(once(&other_plan)) },
            INVALID,
        ),
        ("for no plan", pb::Permit { plan_digest: vec![9; 32].into(), ..by_ann() }, INVALID),
        (
            "once as always",
            pb::Permit { decision: pb::Decision::AllowAlways.into(), lasting: exact().lasting, ..by_ann() },
            INVALID,
        ),
        (
            "always as once",
            pb::Permit { decision: pb::Decision::AllowOnce.into(), lasting: None, ..exact() },
            INVALID,
        ),
        (
            "a deny as once",
            pb::Permit {
                decision: pb::Decision::AllowOnce.into(),
                ..ann.sign(pb::Permit { decision: pb::Decision::Deny.into(), ..once(&plan) })
            },
            INVALID,
        ),
        (
            "wider",
            pb::Permit { lasting: wider(pb::Scope::Program, Some(Until::ForMs(1000))), ..exact() },
            INVALID,
        ),
        (
            "longer",
            pb::Permit { lasting: wider(pb::Scope::Exact, Some(Until::ForMs(1001))), ..exact() },
            INVALID,
        ),
        ("for ever", pb::Permit { lasting: wider(pb::Scope::Exact, forever()), ..exact() }, INVALID),
        (
            "a deny",
            ann.sign(pb::Permit { decision: pb::Decision::Deny.into(), ..once(&plan) }),
            "SYSTEM_RUN_DENIED",
        ),
    ];
    for (what, permit, code) in table {
        h.refused(&run, permit, code, what);
    }
    // A yes of hers to the one is none to the other.
    let swapped = ann.sign(once(&other_plan));
    h.refused(&run, swapped, "APPROVAL_REQUEST_MISMATCH", "another plan's permit");
    let by_other = ann.sign(once(&other_plan));
    h.refused(&other, by_other, "APPROVAL_ALREADY_USED", "after the swap");

    // None of all that used the plan up, and what she signed runs.
    node_host(&h.bed, &["approvers", "remove", "bob"], &h.node).ok();
    h.refused(&run, bob.sign(once(&plan)), INVALID, "a removed approver's");
    h.send(&run, by_ann()).unwrap();
    wait_wrote(&h.ran, &["asked"]);
}

#[test]
fn a_signed_yes_is_good_once_for_what_it_says_and_until_the_node_host_ends() {
    let mut h = Hostile::new(SIGNED);
    let ann = Person::new();
    ann.enrol(&h.bed, &h.node, "ann");
    let (first, plan) = h.planned("one");
    let permit = ann.sign(always(&plan, pb::Scope::ProgramArgs, Until::ForMs(3_600_000)));
    assert_eq!(h.send(&first, permit.clone()).unwrap().stored.len(), 1);
    wait_wrote(&h.ran, &["one"]);

    // The same again is the session that there is; any other run finds the yes used.
    assert!(h.send(&first, permit.clone()).unwrap().existing);
    for word in ["one", "two"] {
        let run = h.run(word);
        h.refused(&run, permit.clone(), "APPROVAL_ALREADY_USED", word);
    }
    // It covers these arguments and no others, without and with somebody to ask.
    let (same, other) = (h.run("one"), h.run("two"));
    h.link.run(same).unwrap();
    assert_eq!(h.link.run(other.clone()).unwrap_err().code, "SYSTEM_RUN_DENIED");
    let open = h.link.plan(other.clone()).unwrap();
    wait_wrote(&h.ran, &["one", "one"]);

    h.node.stop(Sig::Kill);
    h.node.restart();
    h.link = h.fake.link();
    h.refused(&other, ann.sign(once(&open)), "APPROVAL_NOT_FOUND", "a permit from before");
    let same = h.run("one");
    assert_eq!(h.link.run(same).unwrap_err().code, "SYSTEM_RUN_DENIED", "the grant outlived the node host");
    // The run that had been started is known by its receipt still, and starts nothing.
    assert!(h.send(&first, permit.clone()).unwrap().existing);
    let fresh = h.run("two");
    h.refused(&fresh, permit, "APPROVAL_NOT_FOUND", "a used permit from before");
    assert_eq!(wrote(&h.ran), ["one", "one"]);
}

#[test]
fn a_permit_that_comes_many_times_at_once_starts_one_run() {
    let mut h = Hostile::new("{}");
    for round in 0..8 {
        let (run, plan) = h.planned(&round.to_string());
        assert!(!plan.signature_required);
        let answers = h.link.run_together(vec![with(&run, once(&plan)); 16]);
        let fresh = answers.iter().flatten().filter(|started| !started.existing).count();
        assert_eq!(fresh, 1, "{answers:?}");
        let mut faults = answers.iter().filter_map(|answer| answer.as_ref().err());
        assert!(faults.all(|fault| fault.code == "APPROVAL_ALREADY_USED"), "{answers:?}");
        assert_eq!(h.link.sessions(), round + 1);
    }
    eventually(PATIENCE, || {
        let mut lines = wrote(&h.ran);
        lines.sort();
        if lines == ["0", "1", "2", "3", "4", "5", "6", "7"] { Ok(()) } else { Err(format!("{lines:?}")) }
    });
}

#[test]
fn a_permit_lets_nothing_run_but_the_request_that_was_asked_about() {
    const REQUEST: &str = "APPROVAL_REQUEST_MISMATCH";
    const ENV: &str = "APPROVAL_ENV_MISMATCH";
    let mut h = Hostile::new("{}");
    let elsewhere = h.bed.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let elsewhere = elsewhere.display().to_string();
    let other_tool = h.bed.path("other-tool");
    std::fs::copy(&h.tool, &other_tool).unwrap();
    let argv = |words: &[&str]| full_run("", words).invocation;
    let here = h.bed.path("").display().to_string();
    let asked = |h: &mut Hostile| {
        let run = h.run("asked");
        let env = [("COLOR".to_owned(), "red".to_owned())].into();
        let session_key = "s".to_owned();
        pb::RunRequest { env, session_key, agent_id: "main".to_owned(), workdir: here.clone(), ..run }
    };
    type Change<'a> = Box<dyn Fn(&mut pb::RunRequest) + 'a>;
    let table: Vec<(&str, &str, Change<'_>)> = vec![
        ("arguments", REQUEST, Box::new(|run| run.invocation = argv(&[&program_of(run), "more"]))),
        ("a further one", REQUEST, Box::new(|run| run.invocation = argv(&[&program_of(run), "asked", "x"]))),
        (
            "another program",
            REQUEST,
            Box::new(|run| {
                run.invocation = argv(&[other_tool.to_str().unwrap(), "asked"]);
            }),
        ),
        (
            "a shell",
            REQUEST,
            Box::new(|run| {
                let text = format!("{} asked", program_of(run));
                run.invocation = Some(pb::Invocation { form: Some(pb::invocation::Form::Shell(text)) });
            }),
        ),
        ("directory", REQUEST, Box::new(|run| run.workdir = elsewhere.clone())),
        ("session", REQUEST, Box::new(|run| run.session_key = "t".to_owned())),
        ("agent", REQUEST, Box::new(|run| run.agent_id = "other".to_owned())),
        ("run id", REQUEST, Box::new(|run| run.run_id.push('x'))),
        ("open input", REQUEST, Box::new(|run| run.stdin = pb::Stdin::Open.into())),
        (
            "a terminal",
            REQUEST,
            Box::new(|run| {
                run.stdin = pb::Stdin::Open.into();
                run.terminal = Some(pb::WindowSize { columns: 80, rows: 24 });
            }),
        ),
        (
            "a longer deadline",
            REQUEST,
            Box::new(|run| {
                run.deadline = Some(pb::Deadline { limit: Some(pb::deadline::Limit::None(true)) });
            }),
        ),
        ("a value", ENV, Box::new(|run| _ = run.env.insert("COLOR".to_owned(), "blue".to_owned()))),
        ("a variable more", ENV, Box::new(|run| _ = run.env.insert("MORE".to_owned(), "x".to_owned()))),
        ("no variables", ENV, Box::new(|run| run.env.clear())),
    ];
    for (what, code, change) in &table {
        let run = asked(&mut h);
        let plan = h.link.plan(run.clone()).unwrap();
        let mut other = run.clone();
        change(&mut other);
        h.refused(&other, once(&plan), code, what);
        // The yes is gone with it.
        h.refused(&run, once(&plan), "APPROVAL_ALREADY_USED", what);
    }

    // Permits that are about nothing.
    let run = asked(&mut h);
    let plan = h.link.plan(run.clone()).unwrap();
    let about = |digest: Vec<u8>| pb::Permit { plan_digest: digest.into(), ..once(&plan) };
    let mut near = plan.digest.to_vec();
    near[31] ^= 1;
    h.refused(&run, about(near), "APPROVAL_NOT_FOUND", "a digest beside it");
    h.refused(&run, about(vec![0; 32]), "APPROVAL_NOT_FOUND", "a digest of nothing");
    h.refused(&run, about(plan.digest[..31].to_vec()), "INVALID_REQUEST", "a short digest");
    h.refused(&run, about(Vec::new()), "INVALID_REQUEST", "no digest");
    let once_for_ever =
        pb::Permit { lasting: lasting(pb::Scope::Program, Until::Forever(true)), ..once(&plan) };
    h.refused(&run, once_for_ever, "INVALID_REQUEST", "allow-once that lasts");
    let unsaid = pb::Permit { decision: pb::Decision::AllowAlways.into(), ..once(&plan) };
    h.refused(&run, unsaid, "INVALID_REQUEST", "allow-always that does not say how long");
    for decision in [pb::Decision::Unspecified as i32, 17] {
        h.refused(&run, pb::Permit { decision, ..once(&plan) }, "INVALID_REQUEST", "no decision");
    }
    h.refused(
        &run,
        pb::Permit { decision: pb::Decision::Deny.into(), ..once(&plan) },
        "SYSTEM_RUN_DENIED",
        "deny",
    );
    h.send(&run, once(&plan)).unwrap();
    wait_wrote(&h.ran, &["asked"]);
}

/// The program of a run.
fn program_of(run: &pb::RunRequest) -> String {
    match &run.invocation.as_ref().unwrap().form {
        Some(pb::invocation::Form::Argv(argv)) => argv.words[0].clone(),
        other => panic!("{other:?}"),
    }
}
