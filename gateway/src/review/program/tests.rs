//! Real programs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use super::*;

fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

async fn run(script: &str, request: &str) -> Result<String, String> {
    ask(&shell(script), Some(("REVIEW_KEY", "k")), request).await.map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn what_it_prints_is_the_answer() {
    let large = "x".repeat(1 << 20);
    let table = [
        ("cat", "request", Ok("request")),
        ("exit 0", "request", Ok("")),
        // It does not read all of a large request, or does so late.
        ("echo yes", large.as_str(), Ok("yes\n")),
        ("cat >/dev/null; echo yes; echo no >&2", large.as_str(), Ok("yes\n")),
        ("echo yes; exit 3", "", Err("the reviewer's program ended with exit status: 3")),
        ("echo yes; kill -9 $$", "", Err("the reviewer's program ended with signal: 9 (SIGKILL)")),
        ("printf '\\377'", "", Err("the reviewer's program gave no answer")),
        ("exec cat", large.as_str(), Err("the reviewer's answer is longer than 65536 bytes")),
        ("yes", "", Err("the reviewer's answer is longer than 65536 bytes")),
    ];
    for (script, request, want) in table {
        let want = want.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(run(script, request).await, want, "{script}");
    }
    let missing = ask(&["/nonexistent/review".to_owned()], None, "").await;
    assert!(matches!(missing, Err(Failure::NotStarted(_))));
    assert!(matches!(ask(&[], None, "").await, Err(Failure::NoReviewer)));
}

#[tokio::test]
async fn it_sees_little_of_the_environment() {
    let seen = run("pwd; env", "").await.unwrap();
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("/"));
    let mut names: Vec<_> = lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.retain(|name| !PASSED.contains(name) && !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["PATH", "REVIEW_KEY"]);
    assert!(seen.lines().any(|line| line == format!("PATH={PATH}")));
}

/// Whoever gives up waiting ends the program and what it started.
#[tokio::test]
async fn it_ends_with_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = format!("(echo up; exec sleep 1000) >'{}' & wait", pipe.display());
    let (up, is_up) = tokio::sync::oneshot::channel();
    let reader = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(std::fs::File::open(pipe).unwrap());
        let mut line = String::new();
        pipe.read_line(&mut line).unwrap();
        up.send(line).unwrap();
        // Comes to its end when the last writer is gone.
        pipe.read_to_end(&mut Vec::new()).unwrap()
    });
    let command = shell(&script);
    tokio::select! {
        answer = ask(&command, None, "") => panic!("{answer:?}"),
        line = is_up => assert_eq!(line.unwrap(), "up\n"),
    }
    let read = tokio::time::timeout(Duration::from_secs(60), reader).await.expect("it still runs");
    assert_eq!(read.unwrap(), 0);
}
