//! What a reviewer sees, and what it does not.

use super::super::tests::plans::plan;
use super::*;

#[test]
fn commands() {
    const VARIABLES: Option<&str> = Some("it sets variables before a command");
    const SHELL: Option<&str> = Some("it starts a shell with options or a text");
    const OTHER: Option<&str> = Some("it starts its program through another one");
    const UNKNOWN: Option<&str> = Some("what it starts is not known from its words");
    const AUDIT: Option<&str> = Some("it may edit security.audit.suppressions");
    const HIDDEN: Option<&str> = Some("it has characters that cannot be seen");
    let table = [
        ("ls -l", None),
        ("cd /srv && git status | grep -v '^??'", None),
        ("! test -e a || true", None),
        ("timeout 5 nice git fetch", None),
        ("sh deploy.sh --now", None),
        ("python3 -c 'print(1)'", None),
        ("grep bash -i notes", None),
        ("cat audit.log", None),
        ("echo 'ä ß 漢'", None),
        ("A=1 ls", VARIABLES),
        ("true; A=1 ls", VARIABLES),
        ("env A=1 ls", UNKNOWN),
        ("env -i ls", UNKNOWN),
        ("env A=1 sh x", UNKNOWN),
        ("sh -c ls", SHELL),
        ("timeout 5 bash -c ls", UNKNOWN),
        ("bash", SHELL),
        ("bash -l x.sh", UNKNOWN),
        ("bash --login", UNKNOWN),
        ("bash -i", UNKNOWN),
        ("zsh -lc ls", UNKNOWN),
        ("bash -e x.sh", SHELL),
        ("command ls", OTHER),
        ("command -v ls", OTHER),
        ("builtin cd /", OTHER),
        ("exec ls", OTHER),
        ("busybox ls", UNKNOWN),
        ("/opt/busybox-static ls", OTHER),
        ("coreutils ls", OTHER),
        ("xcrun git", UNKNOWN),
        ("eval ls", UNKNOWN),
        (". ./x", UNKNOWN),
        ("find . -exec rm x ';'", UNKNOWN),
        ("xargs rm", UNKNOWN),
        ("sudo ls", UNKNOWN),
        ("openclaw config set security.audit.suppressions '[]'", AUDIT),
        ("openclaw config set Security.Audit.Supp\"\"ressions x", AUDIT),
        ("openclaw config set security.audit '{\"suppressions\":[]}'", AUDIT),
        ("echo 'a\u{202e}b'", HIDDEN),
        ("echo 'a\u{1b}[2Jb'", HIDDEN),
        ("echo 'a\u{e0041}'", HIDDEN),
    ];
    for (text, want) in table {
        assert_eq!(needs_person(&plan(text)), want, "{text}");
    }
    assert_eq!(needs_person(&plan(&["true"; 64].join(";"))), None);
    assert_eq!(needs_person(&plan(&["true"; 65].join(";"))), Some("it has no commands or more than 64"));
}

#[test]
fn plans() {
    type Change = fn(&mut pb::Plan);
    const REASON: Option<&str> = Some("the node asks for a reason that only a person can judge");
    const TYPED: Option<&str> = Some("what would be typed into the command is not known");
    let table: [(&str, Change, Option<&str>); 22] = [
        ("nothing", |_| {}, None),
        ("inline", |plan| plan.reasons.push("strict-inline-eval".into()), None),
        ("ask", |plan| plan.ask = pb::Ask::Always.into(), Some("ask=always: a person sees every command")),
        (
            "ask-always",
            |plan| plan.reasons.push("ask-always".into()),
            Some("ask=always: a person sees every command"),
        ),
        ("heredoc", |plan| plan.reasons.push("heredoc".into()), REASON),
        ("unreadable", |plan| plan.reasons.push("unreadable".into()), REASON),
        ("miss", |plan| plan.reasons.push("execution-plan-miss".into()), REASON),
        ("new", |plan| plan.reasons = vec!["of-a-later-release".into()], REASON),
        ("none", |plan| plan.reasons.clear(), REASON),
        (
            "signature",
            |plan| plan.signature_required = true,
            Some("the node takes only decisions that an approver signed"),
        ),
        ("terminal", |plan| plan.terminal = true, TYPED),
        ("stdin", |plan| plan.stdin_open = true, TYPED),
        ("no segments", |plan| plan.segments.clear(), Some("it has no commands or more than 64")),
        ("nested", |plan| plan.segments[0].nested = true, Some("it hands a text to a shell")),
        ("no argv", |plan| plan.argv.clear(), Some("its program is not pinned")),
        ("relative", |plan| plan.argv[0] = "git".into(), Some("its program is not pinned")),
        (
            "other words",
            |plan| plan.segments[0].argv[1] = "push".into(),
            Some("its text and the node's plan differ"),
        ),
        (
            "more segments",
            |plan| plan.segments.push(plan.segments[0].clone()),
            Some("its text and the node's plan differ"),
        ),
        ("text", |plan| plan.command_text = "git status <<x".into(), Some("its text cannot be read")),
        ("no file", |plan| plan.segments[0].files.clear(), Some("a program is not pinned")),
        (
            "a link to a shell",
            |plan| plan.segments[0].files[0].real_path = "/bin/bash".into(),
            Some("a program is another one than its name says"),
        ),
        (
            "a file of another role",
            |plan| plan.segments[0].files[0].role = Role::Script.into(),
            Some("a program is not pinned"),
        ),
    ];
    for (name, change, want) in table {
        let mut plan = plan("git status");
        change(&mut plan);
        assert_eq!(needs_person(&plan), want, "{name}");
    }
    let mut script = plan("sh deploy.sh");
    script.segments[0].files.retain(|file| file.role() == Role::Program);
    assert_eq!(needs_person(&script), Some("its script is not pinned"));
}
