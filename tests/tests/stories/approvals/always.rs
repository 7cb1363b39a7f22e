//! What an allow-always covers, for how long, and what cannot be kept.

use super::*;

#[test]
fn always_is_as_wide_as_was_said_and_says_what_it_stores() {
    let (bed, node, tool) = asking();
    let dirs = ["here", "there"].map(|name| {
        std::fs::create_dir(bed.path(name)).unwrap();
        bed.path(name).display().to_string()
    });
    let [here, there] = &dirs;
    // Who is not asked: the exit code in each of these cases.
    let silent = || {
        [(here, "one"), (there, "one"), (here, "two")].map(|(dir, word)| {
            bed.exec(["--no-ask", "--workdir", dir, "--session-key", "s", "--", &tool.path, word]).code()
        })
    };
    let always = |flags: &[&str]| {
        let exec = ["--json", "exec", "--workdir", here, "--session-key", "s", "--", &tool.path, "one"];
        let waiting = bed.spawn_cli(exec, Reading::Now);
        let [card] = bed.cards();
        let answer = ["--json", "approvals", "resolve", id(&card), "allow-always"];
        let said = bed.gateway_cli(answer.into_iter().chain(flags.iter().copied())).json();
        let run = waiting.finish(PATIENCE);
        let started = run.json_lines().into_iter().find(|event| event["event"] == "started").unwrap();
        assert_eq!((run.code(), &started["notStored"]), (3, &Value::Null), "{started}");
        // What the answer promised is what the node stored.
        let texts = |rules: &Value| rules.as_array().unwrap().len();
        assert_eq!((texts(&said["rules"]), texts(&started["stored"])), (1, 1), "{said} {started}");
        let (promised, stored) = (said["rules"][0].as_str().unwrap(), started["stored"][0].as_str().unwrap());
        assert!(stored.starts_with(promised), "{promised}, not {stored}");
        stored.to_owned()
    };
    let rules = || bed.policy(&node, ["show", "--json"]).json()["allowlist"].as_array().unwrap().len();
    let forget = || {
        bed.policy(&node, ["disallow", "--agent", "main", &tool.path]).ok();
        assert_eq!((silent(), rules()), ([77; 3], 0));
    };

    assert_eq!(silent(), [77; 3]);
    let stored = always(&[]);
    assert_eq!(stored, format!("{} with exactly these arguments, in this directory", tool.path));
    assert_eq!((silent(), rules()), ([3, 77, 77], 1));
    forget();
    always(&["--scope", "args"]);
    assert_eq!((silent(), rules()), ([3, 3, 77], 1));
    forget();
    always(&["--scope", "program"]);
    assert_eq!((silent(), rules()), ([3, 3, 3], 1));
    forget();
    // For a session: no rule, nothing for another session, and forgotten with the node host.
    let stored = always(&["--scope", "program", "--session"]);
    assert_eq!(stored, format!("{} with any arguments, for this session", tool.path));
    assert_eq!((silent(), rules()), ([3; 3], 0));
    bed.exec(["--no-ask", "--session-key", "t", "--", &tool.path, "one"]).refused(77, "SYSTEM_RUN_DENIED");
    bed.exec(["--no-ask", "--", &tool.path, "one"]).refused(77, "SYSTEM_RUN_DENIED");
    node.stop(Sig::Term);
    node.restart();
    node.wait_connected(1);
    assert_eq!(silent(), [77; 3]);
}

#[test]
fn always_that_cannot_be_kept_says_why_and_what_can_is() {
    let (bed, node, tool) = asking();
    let cd = format!("cd {} && {} x", bed.path("home").display(), tool.path);
    let always = "`ask` is `always`, so a person is asked every time";
    let interpreter = "a rule for an interpreter is stored only where strictInlineEval is on, so that its inline code still asks";
    let table: [(&[&str], &[&str], &str); 5] = [
        (&["--ask", "always", "--", &tool.path, "x"], &["--for", "1h"], always),
        (&["--", "awk", "1"], &[], "it hands code to `awk` (`program text`)"),
        (&["--", "sh", &tool.path, "x"], &[], interpreter),
        (&["--", &tool.path, "x"], &["--session"], "the run names no session"),
        // Another directory by then: which one is not the rule's to know.
        (&["--shell", "--", &cd], &[], "this scope is not offered"),
    ];
    for (exec, flags, why) in table {
        bed.exec(["--no-wait"].iter().chain(exec).copied()).ok();
        let [card] = bed.cards();
        let answer: Vec<_> = ["allow-always"].iter().chain(flags).copied().collect();
        let refused = resolve(&bed, &card, &answer);
        refused.refused(77, "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE").hinted();
        let text = format!(": allow-always is not to be had: {why}\n");
        assert!(refused.stderr.contains(&text), "{refused:?}");
        // That was no answer.
        let [still] = bed.cards();
        assert_eq!(still, card);
        resolve(&bed, &card, &["deny"]).ok();
    }
    assert_eq!(bed.policy(&node, ["show", "--json"]).json()["allowlist"], json!([]));
    assert_eq!(tool.wrote(), [""; 0]);

    let waiting = bed.spawn_cli(["exec", "--shell", "--", &cd], Reading::Now);
    let [card] = bed.cards();
    resolve(&bed, &card, &["allow-always", "--scope", "args"]).ok();
    assert_eq!(waiting.finish(PATIENCE).code(), 3);
    assert_eq!(bed.exec(["--no-ask", "--shell", "--", &cd]).code(), 3);
    assert_eq!(tool.wrote(), ["x", "x"]);
}

#[test]
fn a_script_that_is_edited_while_a_grant_holds_is_asked_about_once() {
    let bed = TestBed::new();
    let node = bed.invited("n", NodeOptions { user: RunAs::plain(), ..NodeOptions::default() });
    node.wait_connected(1);
    write(&node, ASKS);
    let job = node.dir().join("job").display().to_string();
    let edit = |word: &str| {
        let text = bed.script("edited", &format!("#!/bin/sh\necho {word}\n"));
        // In place, as an editor would as the node's user.
        assert!(bed.command(Path::new("cp")).args([&text, &job]).status().unwrap().success());
    };
    edit("first");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(node.dir()).unwrap());
    std::os::unix::fs::chown(&job, Some(owner), None).unwrap();

    let waiting = bed.spawn_cli(["exec", "--", &job], Reading::Now);
    let [card] = bed.cards();
    let refused = resolve(&bed, &card, &["allow-always", "--scope", "program"]);
    refused.refused(77, "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE").hinted();
    let why =
        format!("`{job}` can be changed by the node's user, so the rule would cover whatever it becomes");
    assert!(refused.stderr.contains(&why) && refused.stderr.contains("`--for 1h`"), "{refused:?}");
    resolve(&bed, &card, &["allow-always", "--scope", "program", "--for", "1h"]).ok();
    assert_eq!(waiting.finish(PATIENCE).ok().stdout_text(), "first\n");
    for number in 0..10 {
        edit(&number.to_string());
        assert_eq!(bed.exec(["--", &job]).ok().stdout_text(), format!("{number}\n"));
    }
    let history = bed.gateway_cli(["approvals", "history", "--json"]).json();
    assert_eq!(history["approvals"].as_array().unwrap().len(), 1, "{history}");
}
