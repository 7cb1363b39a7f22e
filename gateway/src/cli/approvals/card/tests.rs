use proto::v1::bound_file::Role;

use super::*;

const PLAIN: Style = Style { bold: false, columns: None };

fn file(role: Role, path: &str, real: &str, hashed: bool) -> pb::BoundFile {
    let sha256 = if hashed { vec![0xab; 32] } else { Vec::new() };
    pb::BoundFile {
        role: role.into(),
        path: path.to_owned(),
        real_path: real.to_owned(),
        sha256: sha256.into(),
        ..pb::BoundFile::default()
    }
}

fn segment(argv: &[&str], join: &str, nested: bool, files: Vec<pb::BoundFile>) -> pb::PlanSegment {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    pb::PlanSegment { argv, join: join.to_owned(), nested, files }
}

fn scope(scope: pb::Scope, text: &str, not_durable: &str) -> pb::AlwaysScope {
    let rule = pb::ScopeRule { text: text.to_owned(), ..pb::ScopeRule::default() };
    pb::AlwaysScope { scope: scope.into(), rules: vec![rule], not_durable: not_durable.to_owned() }
}

fn plan() -> pb::Plan {
    pb::Plan {
        workdir: "/home/ann/work".to_owned(),
        command_text: "python3 rep.py 'a b' |\n\thead -n 1".to_owned(),
        agent_id: "main".to_owned(),
        session_key: "s1".to_owned(),
        node_id: "0123456789abcdef0123".to_owned(),
        segments: vec![
            segment(
                &["python3", "rep.py", "a b"],
                "",
                false,
                vec![
                    file(Role::Program, "/usr/bin/python3", "/usr/bin/python3.12", false),
                    file(Role::Script, "/home/ann/work/rep.py", "/home/ann/work/rep.py", true),
                ],
            ),
            segment(
                &["head", "-n", "1"],
                "| ",
                false,
                vec![file(Role::Program, "/usr/bin/head", "/usr/bin/head", false)],
            ),
        ],
        shell: Some(file(Role::Program, "/bin/sh", "/usr/bin/dash", false)),
        env_names: vec!["A".to_owned(), "B_C".to_owned()],
        reasons: vec!["allowlist-miss".to_owned()],
        why: "`python3` is not allowed".to_owned(),
        asked_by: "host".to_owned(),
        always: vec![
            scope(pb::Scope::Exact, "python3 with exactly these arguments, in this directory", ""),
            scope(pb::Scope::Program, "python3 with any arguments", "it runs any code"),
        ],
        ..pb::Plan::default()
    }
}

fn pending(plan: pb::Plan) -> pb::Approval {
    pb::Approval {
        approval_id: "ab12cd34ef56".to_owned(),
        node_id: plan.node_id.clone(),
        node_name: "build-1".to_owned(),
        plan: Some(approval::seal(plan)),
        allowed: vec![
            pb::Decision::AllowOnce.into(),
            pb::Decision::AllowAlways.into(),
            pb::Decision::Deny.into(),
        ],
        expires_unix_ms: 1_800_000,
        requested_by: "agent-7".to_owned(),
        status: pb::ApprovalStatus::Pending.into(),
        ..pb::Approval::default()
    }
}

fn digest(approval: &pb::Approval) -> String {
    hex(&approval.plan.as_ref().unwrap().digest)[..PLAN_DIGITS].to_owned()
}

fn values(card: &str, name: &str) -> Vec<String> {
    let lines = card.lines().filter_map(|line| line.strip_prefix(&format!("{name:<VALUES$}")));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_card_has_everything_that_a_yes_is_about() {
    let approval = pending(plan());
    let digest = digest(&approval);
    let want = format!(
        "\
Approval ab12cd34 (ab12cd34ef56)
  | python3 rep.py 'a b' |
  | \thead -n 1
Runs        1. python3 rep.py 'a b'
               program /usr/bin/python3 -> /usr/bin/python3.12
               script /home/ann/work/rep.py, sha256:abababab…
            2. | head -n 1
               program /usr/bin/head
            by the shell program /bin/sh -> /usr/bin/dash
In          /home/ann/work
Node        build-1 (0123456789ab…)
Agent       main
Session     s1
Caller      agent-7
Variables   A, B_C
Why         `python3` is not allowed (asked for by the node's exec-approvals.json)
Time left   29 min 59 s
Decide      gateway approvals resolve ab12cd34 allow-once --plan {digest}
            gateway approvals resolve ab12cd34 deny
Always      gateway approvals resolve ab12cd34 allow-always --scope exact --plan {digest}
              stores: python3 with exactly these arguments, in this directory
            gateway approvals resolve ab12cd34 allow-always --scope program --for 1h --plan {digest}
              allows: python3 with any arguments
              for a time or a session only: it runs any code
            add --for 1h for an hour only, or --session for this session
"
    );
    assert_eq!(card(&approval, 1000, PLAIN), want);
}

#[test]
fn a_closed_one_says_how_and_offers_nothing() {
    let approval = pb::Approval {
        status: pb::ApprovalStatus::Denied.into(),
        decided_by: "ann".to_owned(),
        decided_from: "unix socket".to_owned(),
        closed_unix_ms: 2000,
        outcome: "Exec denied".to_owned(),
        ..pending(pb::Plan { segments: Vec::new(), shell: None, ..plan() })
    };
    let text = card(&approval, 1000, PLAIN);
    let want = "\
Closed      denied by ann, 1970-01-01T00:00:02Z
From        unix socket
Outcome     Exec denied
";
    assert!(text.ends_with(want) && !text.contains("resolve"), "{text}");
}

#[test]
fn warnings_name_what_misleads() {
    let with = |change: fn(&mut pb::Plan)| {
        let mut plan = plan();
        change(&mut plan);
        values(&card(&pending(plan), 0, PLAIN), "Warning")
    };
    let table: [(fn(&mut pb::Plan), &[&str]); 7] = [
        (|_| {}, &[]),
        (|plan| plan.terminal = true, &["it runs in a terminal: the caller can type into it"]),
        (|plan| plan.stdin_open = true, &["its input is open: the caller can type into it"]),
        (
            |plan| plan.signature_required = true,
            &[
                "the node takes only decisions that an enrolled approver signed; `resolve` signs with your key",
            ],
        ),
        (
            |plan| plan.command_text = "\u{441}at x".to_owned(),
            &[
                "a word mixes letters of alphabets that look alike; they are shown as \\u{…}",
                "the command has characters that mislead; they are shown as \\u{…}",
            ],
        ),
        (
            |plan| plan.workdir = "/w\u{202e}".to_owned(),
            &["a path has characters that mislead; they are shown as \\u{…}"],
        ),
        (
            |plan| plan.command_text = "x".repeat(20_000),
            &["the command is longer than can be shown: do not allow it"],
        ),
    ];
    for (at, (change, want)) in table.into_iter().enumerate() {
        assert_eq!(with(change), want, "{at}");
    }
}

#[test]
fn nothing_can_be_allowed_that_is_not_what_is_shown() {
    let mut forged = pending(plan());
    forged.plan.as_mut().unwrap().command_text = "true".to_owned();
    let listed = pb::Approval { cut: true, ..forged.clone() };
    let long = pending(pb::Plan { command_text: "x".repeat(20_000), ..plan() });
    for approval in [forged, listed, long] {
        let text = card(&approval, 0, PLAIN);
        assert_eq!(values(&text, "Decide"), ["gateway approvals resolve ab12cd34 deny"]);
        assert!(!text.contains("allow-"), "{text}");
    }
}

#[test]
fn always_that_is_not_offered_says_why() {
    let plan =
        pb::Plan { always: Vec::new(), always_unavailable: "ask=always asks each time".to_owned(), ..plan() };
    let approval = pb::Approval {
        allowed: vec![pb::Decision::AllowOnce.into(), pb::Decision::Deny.into()],
        ..pending(plan)
    };
    let text = card(&approval, 0, PLAIN);
    assert_eq!(values(&text, "Always"), ["not offered: ask=always asks each time"]);
}

#[test]
fn no_text_can_leave_its_line_or_look_like_a_line_of_the_card() {
    let narrow = Style { bold: false, columns: Some(40) };
    let evil = pb::Plan {
        command_text: format!("true{}Why         fine\nWhy         fine\r\u{1b}[1A", " ".repeat(60)),
        workdir: format!("/w{}/Why         fine", " ".repeat(60)),
        agent_id: "a\nWhy         fine".to_owned(),
        env_names: vec!["A\nWhy         fine".to_owned()],
        why: "because\nDecide      nothing".to_owned(),
        ..plan()
    };
    let approval = pb::Approval { node_name: "n\nDecide".to_owned(), ..pending(evil) };
    for style in [PLAIN, narrow] {
        let text = card(&approval, 0, style);
        let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((starting("Why"), starting("Decide"), starting("In")), (1, 1, 1), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
    let text = card(&approval, 0, narrow);
    for line in text.lines().filter(|line| !line.contains("gateway approvals resolve ab12cd34")) {
        assert!(line.chars().count() <= 40, "{line}");
    }
}

#[test]
fn programs_are_bold_where_the_text_is_shown_as_it_is() {
    let bold = Style { bold: true, columns: Some(40) };
    let lines = |text: &str, style| {
        let plan = pb::Plan { command_text: text.to_owned(), ..plan() };
        let text = card(&pending(plan), 0, style);
        text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let (on, off) = ("\u{1b}[1m", "\u{1b}[22m");
    assert_eq!(
        lines("git log 'é𝄞' |\nhead -n 1", bold),
        [format!("  | {on}git{off} log 'é𝄞' |"), format!("  | {on}head{off} -n 1")]
    );
    assert_eq!(lines("git a\u{200b}", bold), ["  | git a\\u{200b}"]);
    assert_eq!(lines("git log", PLAIN), ["  | git log"]);
    let long = format!("git {}", "x".repeat(40));
    assert_eq!(
        lines(&long, bold),
        [format!("  | {on}git{off} {}", "x".repeat(32)), format!("  + {}", "x".repeat(8))]
    );
}

#[test]
fn pieces_fit_and_lose_nothing() {
    let table: [(&str, usize, &[(usize, usize)]); 6] = [
        ("", 4, &[(0, 0)]),
        ("abcd", 4, &[(0, 4)]),
        ("abcde", 4, &[(0, 4), (4, 5)]),
        ("日本語", 4, &[(0, 2), (2, 3)]),
        ("a\tb", 8, &[(0, 1), (1, 2), (2, 3)]),
        ("日", 1, &[(0, 1)]),
    ];
    for (text, room, want) in table {
        let letters: Vec<char> = text.chars().collect();
        let found: Vec<_> =
            pieces(&letters, room).into_iter().map(|piece| (piece.start, piece.end)).collect();
        assert_eq!(found, want, "{text:?}");
    }
}
