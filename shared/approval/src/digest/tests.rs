use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// One with something in every list, so that a change inside can be seen.
fn plan() -> pb::Plan {
    pb::Plan {
        argv: words(&["/bin/ls", "-l"]),
        segments: vec![pb::PlanSegment {
            argv: words(&["ls", "-l"]),
            files: vec![pb::BoundFile { path: "/bin/ls".to_owned(), ..pb::BoundFile::default() }],
            ..pb::PlanSegment::default()
        }],
        env_names: words(&["A"]),
        reasons: words(&["allowlist-miss"]),
        always: vec![pb::AlwaysScope { rules: vec![pb::ScopeRule::default()], ..pb::AlwaysScope::default() }],
        shell: Some(pb::BoundFile::default()),
        ..pb::Plan::default()
    }
}

type Change = fn(&mut pb::Plan);

/// One for every field, those of the messages inside included.
const CHANGES: &[(&str, Change)] = &[
    ("argv", |p| p.argv.push(String::new())),
    ("argv, cut elsewhere", |p| p.argv = words(&["/bin/ls-", "l"])),
    ("workdir", |p| p.workdir.push('x')),
    ("command_text", |p| p.command_text.push('x')),
    ("agent_id", |p| p.agent_id.push('x')),
    ("session_key", |p| p.session_key.push('x')),
    ("security", |p| p.security = 1),
    ("ask", |p| p.ask = 1),
    ("ask, unknown", |p| p.ask = -1),
    ("needs_approval", |p| p.needs_approval = true),
    ("node_id", |p| p.node_id.push('x')),
    ("run_id", |p| p.run_id.push('x')),
    ("segments", |p| p.segments.clear()),
    ("segment.argv", |p| p.segments[0].argv[1].push('a')),
    ("segment.join", |p| p.segments[0].join.push('x')),
    ("segment.nested", |p| p.segments[0].nested = true),
    ("segment.files", |p| p.segments[0].files.clear()),
    ("file.role", |p| p.segments[0].files[0].role = 1),
    ("file.word", |p| p.segments[0].files[0].word = 1),
    ("file.path", |p| p.segments[0].files[0].path.push('x')),
    ("file.real_path", |p| p.segments[0].files[0].real_path.push('x')),
    ("file.device", |p| p.segments[0].files[0].device = 1),
    ("file.inode", |p| p.segments[0].files[0].inode = 1),
    ("file.sha256", |p| p.segments[0].files[0].sha256 = vec![1].into()),
    ("workdir_device", |p| p.workdir_device = 1),
    ("workdir_inode", |p| p.workdir_inode = 1),
    ("env_names", |p| p.env_names.push(String::new())),
    ("env_hash", |p| p.env_hash.push('x')),
    ("policy_revision", |p| p.policy_revision.push('x')),
    ("created_unix_ms", |p| p.created_unix_ms = 1),
    ("expires_unix_ms", |p| p.expires_unix_ms = 1),
    ("nonce", |p| p.nonce = vec![1].into()),
    ("reasons", |p| p.reasons.push(String::new())),
    ("why", |p| p.why.push('x')),
    ("asked_by", |p| p.asked_by.push('x')),
    ("always", |p| p.always.clear()),
    ("always.scope", |p| p.always[0].scope = 1),
    ("always.rules", |p| p.always[0].rules.clear()),
    ("rule.pattern", |p| p.always[0].rules[0].pattern.push('x')),
    ("rule.arg_pattern", |p| p.always[0].rules[0].arg_pattern.push('x')),
    ("rule.text", |p| p.always[0].rules[0].text.push('x')),
    ("always.not_durable", |p| p.always[0].not_durable.push('x')),
    ("always_unavailable", |p| p.always_unavailable.push('x')),
    ("input_digest", |p| p.input_digest = vec![1].into()),
    ("stdin_open", |p| p.stdin_open = true),
    ("terminal", |p| p.terminal = true),
    ("signature_required", |p| p.signature_required = true),
    ("shell", |p| p.shell = None),
    ("shell.path", |p| p.shell = Some(pb::BoundFile { path: "x".to_owned(), ..pb::BoundFile::default() })),
];

#[test]
fn every_field_is_covered() {
    let mut seen = BTreeMap::from([(plan_digest(&plan()), "nothing")]);
    for (what, change) in CHANGES {
        let mut changed = plan();
        change(&mut changed);
        let other = seen.insert(plan_digest(&changed), what);
        assert_eq!(other, None, "{what} looks like that");
    }
}

#[test]
fn a_sealed_plan_has_its_digest_and_keeps_it() {
    let sealed = seal(plan());
    assert_eq!(sealed.digest.as_ref(), plan_digest(&plan()));
    // The digest is not about itself.
    assert_eq!(seal(sealed.clone()), sealed);
}

/// Nodes and approvers of other versions must come to the same bytes.
#[test]
fn the_form_does_not_change_unnoticed() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(&plan_digest(&plan())),
        "bd7bb6594ceb50b492f5f14b16fce8c1e225ae11cb21e423e201c1a16ab82dff"
    );
    let lasting = pb::Lasting { scope: 2, until: Some(pb::lasting::Until::ForMs(3)) };
    assert_eq!(
        hex(&permit_statement(&[0xaa, 0xbb], pb::Decision::AllowAlways, Some(&lasting))),
        concat!(
            // The name, with its length before it.
            "1000000000000000",
            "66617272756e207065726d6974207631",
            // The digest.
            "0200000000000000",
            "aabb",
            // The decision.
            "0200000000000000",
            // There is a time: the scope, which kind of end, and how long.
            "0100000000000000",
            "0200000000000000",
            "0200000000000000",
            "0300000000000000",
        )
    );
}

#[test]
fn no_two_decisions_have_one_statement() {
    use pb::lasting::Until;
    let untils = [
        None,
        Some(Until::Forever(true)),
        Some(Until::Forever(false)),
        Some(Until::ForMs(0)),
        Some(Until::ForMs(1)),
        Some(Until::Session(true)),
        Some(Until::Session(false)),
    ];
    let lastings: Vec<_> = (0..=3)
        .flat_map(|scope| untils.map(|until| Some(pb::Lasting { scope, until })))
        .chain([None])
        .collect();
    let decisions =
        [pb::Decision::Unspecified, pb::Decision::AllowOnce, pb::Decision::AllowAlways, pb::Decision::Deny];
    let mut seen = BTreeMap::new();
    for digest in [[0; 32], [1; 32]] {
        for decision in decisions {
            for lasting in &lastings {
                let what = (digest, decision, *lasting);
                let other = seen.insert(permit_statement(&digest, decision, lasting.as_ref()), what);
                assert_eq!(other, None, "{what:?}");
            }
        }
    }
}

proptest! {
    /// Where one word ends and the next begins is part of what is approved.
    #[test]
    fn other_words_are_another_digest(
        a in proptest::collection::vec("[ab]{0,3}", 0..4),
        b in proptest::collection::vec("[ab]{0,3}", 0..4),
    ) {
        let of = |words: &[String], env: &[String]| {
            plan_digest(&pb::Plan { argv: words.to_vec(), env_names: env.to_vec(), ..pb::Plan::default() })
        };
        prop_assert_eq!(of(&a, &[]) == of(&b, &[]), a == b);
        prop_assert_eq!(of(&a, &b) == of(&b, &a), a == b);
    }
}
