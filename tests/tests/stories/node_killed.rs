//! Sessions and the death of those who look after them.

use std::time::Duration;

use e2e::{PATIENCE, Reading, Sig, TestBed, eventually, helper, pattern, proc};

#[test]
fn sessions_outlive_their_node_host() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let mut ids = Vec::new();
    // One that ends while nobody is there, one that goes on, one that waits
    // for its caller.
    for (name, text) in [
        ("ends", format!("{} 500000 --chunk 4096 --every-ms 4; exit 5", helper("emit"))),
        ("goes-on", format!("{} 2000000 --chunk 4096 --every-ms 4; exit 6", helper("emit"))),
        ("waits", "echo up; read line; echo got $line; exit 7".to_owned()),
    ] {
        let outcome = bed.exec(["--detach", "--stdin", "--run-id", name, "--shell", "--", &text]);
        ids.push(outcome.ok().stdout_text().trim().to_owned());
    }
    let mut follower = bed.spawn_cli(["attach", "goes-on"], Reading::Now);
    follower.wait_stdout("000000000000100\n");
    node.stop(Sig::Kill);
    node.restart();
    node.wait_connected(1);

    let listed = bed.gateway_cli(["sessions", "--json"]).json();
    let listed: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|s| s["sessionId"].clone()).collect();
    for id in &ids {
        assert!(listed.contains(&id.as_str().into()), "{id} is missing in {listed:?}");
    }
    let outcome = follower.finish(Duration::from_secs(60));
    assert_eq!(outcome.code(), 6, "{}", outcome.stderr);
    assert!(outcome.stdout == pattern(2_000_000), "{} bytes", outcome.stdout.len());
    let outcome = bed.gateway_cli(["attach", "ends"]);
    assert_eq!(outcome.code(), 5, "{}", outcome.stderr);
    assert!(outcome.stdout == pattern(500_000), "{} bytes", outcome.stdout.len());
    let mut writer = bed.spawn_cli(["attach", "waits", "--stdin"], Reading::Now);
    writer.wait_stdout("up\n");
    writer.write(b"line\n");
    let outcome = writer.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (7, "up\ngot line\n"), "{outcome:?}");
}

#[test]
fn an_end_that_nobody_watched_is_still_known() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let done = bed.path("done");
    let text = format!("echo out; read line < {}; echo last; exit 3", done.display());
    let made = std::process::Command::new("mkfifo").arg(&done).status().unwrap();
    assert!(made.success());
    bed.exec(["--detach", "--run-id", "alone", "--shell", "--", &text]).ok();
    node.stop(Sig::Kill);
    // Opening the other end of the pipe waits for the command's side.
    std::fs::write(&done, "go\n").unwrap();
    eventually(PATIENCE, || {
        let left = proc::with_argument(&text);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    node.restart();
    node.wait_connected(1);
    let outcome = bed.gateway_cli(["attach", "alone"]);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (3, "out\nlast\n"), "{outcome:?}");
}

#[test]
fn a_dead_holder_takes_its_command_along_and_is_called_lost() {
    let bed = TestBed::new();
    let node = bed.node("n");
    let sleep = format!("301.{}", bed.address().port());
    let mut run =
        bed.spawn_cli(["exec", "--", "sh", "-c", &format!("echo up; sleep {sleep} & wait")], Reading::Now);
    run.wait_stdout("up\n");
    let command = eventually(PATIENCE, || {
        proc::with_argument(&sleep).into_iter().find(|p| p.name == "sleep").ok_or("no command yet".to_owned())
    });
    let holder = proc::of(proc::of(command.parent).unwrap().parent).unwrap();
    assert_eq!(holder.name, "farrun-hold");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(holder.pid as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let outcome = run.finish(PATIENCE);
    assert_eq!((outcome.code(), outcome.stdout_text().as_str()), (74, "up\n"), "{outcome:?}");
    eventually(PATIENCE, || {
        let left = proc::with_argument(&sleep);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    let listed = bed.gateway_cli(["sessions"]).ok().stdout_text();
    assert!(listed.contains("lost"), "{listed}");
    // The node goes on.
    assert_eq!(bed.exec(["--", "printf", "hi"]).ok().stdout_text(), "hi");
    assert_eq!(node.connections(), 1);
}
