use proto::v1::bound_file::Role;

use super::*;

/// `sh job.sh | grep x`, started by a shell.
fn plan() -> pb::Plan {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    pb::Plan {
        argv: words(&["/bin/sh", "-c", "sh job.sh | grep x"]),
        workdir: "/w".to_owned(),
        workdir_device: 1,
        workdir_inode: 2,
        command_text: "sh job.sh | grep x".to_owned(),
        agent_id: "main".to_owned(),
        session_key: "s".to_owned(),
        node_id: "n".to_owned(),
        run_id: "r".to_owned(),
        env_names: vec!["A".to_owned()],
        env_hash: "h".to_owned(),
        input_digest: vec![1; 32].into(),
        shell: Some(file(Role::Program, "/bin/sh", 0)),
        segments: vec![
            pb::PlanSegment {
                argv: words(&["sh", "job.sh"]),
                files: vec![file(Role::Program, "/usr/bin/sh", 0), file(Role::Script, "/w/job.sh", 1)],
                ..pb::PlanSegment::default()
            },
            pb::PlanSegment {
                argv: words(&["grep", "x"]),
                join: "| ".to_owned(),
                files: vec![file(Role::Program, "/usr/bin/grep", 0), file(Role::Directory, "/w/d", 1)],
                ..pb::PlanSegment::default()
            },
        ],
        ..pb::Plan::default()
    }
}

fn file(role: Role, path: &str, word: u32) -> pb::BoundFile {
    pb::BoundFile {
        role: role.into(),
        word,
        path: path.to_owned(),
        real_path: path.to_owned(),
        device: 1,
        inode: 7,
        sha256: vec![9; 32].into(),
    }
}

/// A plan after a change.
fn with(change: impl FnOnce(&mut pb::Plan)) -> pb::Plan {
    let mut plan = plan();
    change(&mut plan);
    plan
}

type Change = fn(&mut pb::Plan);

#[test]
fn what_is_bound_is_compared_and_the_first_difference_is_named() {
    let understood = || Drift::Plan("the command is understood otherwise now".to_owned());
    let shell = || Drift::Plan("the shell is used otherwise now".to_owned());
    let program = |path: &str| Drift::Program(path.to_owned());
    let script = || Drift::Script("/w/job.sh".to_owned());
    let workdir = |path: &str| Drift::Workdir(path.to_owned());
    let table: &[(Change, Option<Drift>)] = &[
        (|_| {}, None),
        (|p| p.workdir = "/v".to_owned(), Some(workdir("/w"))),
        (|p| p.workdir_device = 9, Some(workdir("/w"))),
        (|p| p.workdir_inode = 9, Some(workdir("/w"))),
        (|p| p.segments[1].files[1].inode = 9, Some(workdir("/w/d"))),
        (|p| p.segments[0].files[1].sha256 = vec![8; 32].into(), Some(script())),
        (|p| p.segments[0].files[1].sha256 = vec![].into(), Some(script())),
        (|p| p.segments[0].files[1].real_path = "/w/other.sh".to_owned(), Some(script())),
        (|p| p.segments[0].files[1].device = 9, Some(script())),
        (|p| p.segments[0].files[1].role = Role::Program.into(), Some(script())),
        (|p| p.segments[1].files[0].inode = 9, Some(program("/usr/bin/grep"))),
        (|p| p.segments[1].files[0].word = 1, Some(program("/usr/bin/grep"))),
        // Another program of the same name, earlier on PATH.
        (
            |p| p.segments[1].files[0].path = "/opt/grep".to_owned(),
            Some(program("/usr/bin/grep is now /opt/grep")),
        ),
        (|p| p.shell.as_mut().unwrap().inode = 9, Some(program("/bin/sh"))),
        (|p| p.shell = None, Some(shell())),
        (|p| p.segments[1].argv[1] = "y".to_owned(), Some(understood())),
        (|p| p.segments[1].join = "; ".to_owned(), Some(understood())),
        (|p| p.segments[1].nested = true, Some(understood())),
        (|p| drop(p.segments.pop()), Some(understood())),
        (|p| p.segments.swap(0, 1), Some(understood())),
        (|p| drop(p.segments[0].files.pop()), Some(understood())),
        (
            |p| p.argv.push("more".to_owned()),
            Some(Drift::Plan("other words would be launched now".to_owned())),
        ),
        // Set anew each time, or the caller's.
        (
            |p| {
                p.nonce = vec![3].into();
                p.expires_unix_ms = 5;
                p.created_unix_ms = 5;
                p.reasons = vec!["x".to_owned()];
                p.why = "x".to_owned();
                p.digest = vec![4].into();
                p.run_id = "other".to_owned();
            },
            None,
        ),
    ];
    for (number, (change, want)) in table.iter().enumerate() {
        let changed = with(change);
        assert_eq!(drift(&plan(), &changed), *want, "row {number}");
        assert_eq!(drift(&changed, &plan()).is_some(), want.is_some(), "row {number}, the other way");
    }
}

#[test]
fn of_several_differences_the_one_that_tells_most_comes_first() {
    let mut now = plan();
    let mut expect = |change: Change, want: Drift| {
        change(&mut now);
        assert_eq!(drift(&plan(), &now), Some(want));
    };
    expect(|p| p.argv.clear(), Drift::Plan("other words would be launched now".to_owned()));
    expect(|p| p.segments[0].files[0].inode = 9, Drift::Program("/usr/bin/sh".to_owned()));
    expect(|p| p.segments[0].files[1].inode = 9, Drift::Script("/w/job.sh".to_owned()));
    expect(|p| p.workdir_inode = 9, Drift::Workdir("/w".to_owned()));
}

#[test]
fn a_request_that_is_another_one_is_named() {
    let table: &[(Change, Option<&str>)] = &[
        (|_| {}, None),
        (|p| p.node_id.clear(), Some("the node")),
        (|p| p.agent_id.clear(), Some("the agent")),
        (|p| p.session_key.clear(), Some("the session")),
        (|p| p.run_id.clear(), Some("the run id")),
        (|p| p.command_text.push(' '), Some("the command")),
        (|p| p.env_names.clear(), Some("the variables")),
        (|p| p.env_hash.clear(), Some("the variables")),
        (|p| p.stdin_open = true, Some("what the caller may type")),
        (|p| p.terminal = true, Some("what the caller may type")),
        (|p| p.input_digest = vec![].into(), Some("the request")),
        // The world's, not the caller's.
        (|p| p.segments.clear(), None),
        // The digest covers all; the field says more.
        (
            |p| {
                p.input_digest = vec![].into();
                p.env_hash.clear();
            },
            Some("the variables"),
        ),
    ];
    for (number, (change, want)) in table.iter().enumerate() {
        let want = want.map(|what| Mismatch { what, env: what == "the variables" });
        assert_eq!(mismatch(&plan(), &with(change)), want, "row {number}");
        assert_eq!(mismatch(&with(change), &plan()), want, "row {number}, the other way");
    }
}
