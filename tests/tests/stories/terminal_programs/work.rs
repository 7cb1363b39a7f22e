//! Real work in the background: a crate is built, watched to its end, and what was built runs.

use std::path::Path;

use e2e::{Desk, Tool, block_on};
use proto::v1::{self as pb, notice::Kind};
use serde_json::json;

/// The agent's session, where the ends of its work are told.
const SESSION_KEY: &str = "agent:main:build";

/// Cargo as the stories themselves are built with, for a machine where it is on no path.
fn cargo_build() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let bin = Path::new(&cargo).parent().unwrap().display();
    format!(
        "PATH='{bin}':\"$PATH\" CARGO_HOME=\"$PWD/cargo\" CARGO_TARGET_DIR=\"$PWD/out\" '{cargo}' build --offline"
    )
}

/// The ends that wait for the agent; those up to `taken` go.
fn ends(desk: &Desk, taken: u64, wait_ms: u64) -> Vec<pb::Notice> {
    let request =
        pb::TakeEventsRequest { session_key: SESSION_KEY.to_owned(), taken, wait_ms, ..Default::default() };
    block_on(async {
        let mut tools = desk.bed.tools().await;
        tools.take_events(request).await.unwrap().into_inner().notices
    })
}

#[test]
fn a_crate_is_built_in_the_background() {
    let desk = Desk::new();
    let tool: Tool = desk.tool.with(|call| call.session_key = SESSION_KEY.to_owned());
    let dir = desk.bed.path("tiny");
    std::fs::create_dir_all(dir.join("src")).unwrap();
    std::fs::write(dir.join("Cargo.toml"), "[package]\nname = \"tiny\"\nedition = \"2021\"\n").unwrap();
    let main = dir.join("src/main.rs");
    std::fs::write(&main, "fn main() { println!(\"built and run\"); }\n").unwrap();
    let dir = dir.display().to_string();
    let build = cargo_build();

    // Polled to its end: what was read is not told again.
    let id = tool.background(&build, json!({ "workdir": dir }));
    let mut output = String::new();
    let end = loop {
        let poll = tool.process("poll", &id, json!({ "timeout": 30_000 }));
        output.push_str(poll.string("aggregated"));
        if poll["status"] != "running" {
            break poll;
        }
        assert!(poll["retryInMs"].is_u64(), "{poll:?}");
    };
    end.has(json!({ "status": "completed", "exitCode": 0 }));
    assert_eq!(output.matches("Compiling tiny").count(), 1, "{output}");
    assert_eq!(output.matches("Finished").count(), 1, "{output}");
    assert_eq!(ends(&desk, 0, 0), []);
    let run = tool.exec("./out/debug/tiny", json!({ "workdir": dir }));
    run.has(json!({ "status": "completed", "exitCode": 0, "aggregated": "built and run" }));

    // Not polled: its end is told, once.
    std::fs::write(&main, "fn main() { undefined() }\n").unwrap();
    let id = tool.background(&build, json!({ "workdir": dir }));
    let notices = ends(&desk, 0, 30_000);
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!(
        (notice.kind(), notice.session_id.as_str()),
        (Kind::BackgroundEnded, id.as_str()),
        "{notice:?}"
    );
    assert!(notice.text.contains("code 101"), "{notice:?}");
    assert_eq!(ends(&desk, notice.seq, 0), []);
    let log = tool.process("search", &id, json!({ "pattern": "^error" }));
    assert!(log["hits"][0]["text"].as_str().unwrap().contains("E0425"), "{log:?}");
}
