//! What is typed into a session: every byte, once, or an error that says what would help.

use e2e::{Desk, pattern};
use serde_json::json;

/// F114: input that was not asked for is refused, and the error names what opens it.
#[test]
fn closed_input_says_which_option_opens_it() {
    let desk = Desk::new();
    let id = desk.tool.background("sleep 600", json!({}));
    desk.tool.process("poll", &id, json!({})).has(json!({ "stdinWritable": false }));
    for (action, more) in [
        ("write", json!({ "data": "x" })),
        ("write", json!({ "eof": true })),
        ("submit", json!({})),
        ("paste", json!({ "text": "x" })),
        ("send-keys", json!({ "literal": "x" })),
    ] {
        let refused = desk.tool.process(action, &id, more);
        refused.has(json!({ "status": "failed", "code": "STDIN_CLOSED" }));
        assert!(
            refused.text.contains("`stdin: true`") && refused.text.contains("`pty: true`"),
            "{refused:?}"
        );
    }
}

/// F115: input ends when that is said, and then it is over.
#[test]
fn the_end_of_input_is_the_end() {
    let desk = Desk::new();
    for split in [true, false] {
        let id = desk.tool.background("wc -c; sleep 600", json!({ "stdin": true }));
        desk.tool.process("poll", &id, json!({})).has(json!({ "stdinWritable": true }));
        let closed = if split {
            let wrote = desk.tool.process("write", &id, json!({ "data": "12345" }));
            assert!(wrote.text.starts_with(&format!("Wrote 5 characters to session {id}")), "{wrote:?}");
            desk.tool.process("write", &id, json!({ "eof": true }))
        } else {
            desk.tool.process("write", &id, json!({ "data": "12345", "eof": true }))
        };
        closed.has(json!({ "status": "running", "sessionId": id }));
        assert!(closed.text.contains("closed its input"), "{closed:?}");
        desk.tool.wait_for(&id, r"(?m)^\s*5\s*$");
        let late = desk.tool.process("write", &id, json!({ "data": "6" }));
        late.has(json!({ "status": "failed", "code": "STDIN_CLOSED" }));
        desk.tool.process("poll", &id, json!({})).has(json!({ "status": "running", "stdinWritable": false }));
    }
    // A terminal's end of input is typed; in the middle of a line it takes two (F156).
    let id = desk.tool.background("cat; echo over; cat", json!({ "pty": true }));
    let typed = desk.tool.process("write", &id, json!({ "data": "abc", "eof": true }));
    assert!(typed.text.contains("typed the end of input"), "{typed:?}");
    desk.tool.wait_for(&id, "abc.*over");
    desk.tool.process("write", &id, json!({ "eof": true }));
    desk.tool.end(&id).has(json!({ "status": "completed", "exitCode": 0 }));
}

/// F116: four megabytes go in and come out while nobody reads.
#[test]
fn input_and_output_do_not_block_each_other() {
    const PIECE: usize = 200_000;
    let desk = Desk::new();
    let sent = pattern(4 << 20);
    let id = desk.tool.background("cat", json!({ "stdin": true }));
    for piece in sent.chunks(PIECE) {
        let data = std::str::from_utf8(piece).unwrap();
        let wrote = desk.tool.process("write", &id, json!({ "data": data }));
        wrote.has(json!({ "status": "running" }));
    }
    desk.tool.process("write", &id, json!({ "eof": true }));
    desk.tool.end(&id).has(json!({ "status": "completed", "exitCode": 0, "outputBytes": 4 << 20 }));
    assert!(desk.tool.raw(&id, 0, 4 << 20) == sent, "4 MiB came back changed");
    let too_much = desk.tool.background("cat", json!({ "stdin": true }));
    let refused = desk.tool.process("write", &too_much, json!({ "data": "x".repeat(300_000) }));
    refused.has(json!({ "status": "failed", "code": "INVALID_REQUEST" }));
    assert!(refused.text.contains("in parts"), "{refused:?}");
    desk.tool.process("poll", &too_much, json!({ "timeout": 200 })).has(json!({ "nextOffset": 0 }));
}

#[test]
fn writers_take_turns() {
    let desk = Desk::new();
    let id = desk.tool.background("cat", json!({ "stdin": true }));
    let call = |letter: &str| {
        let data = letter.repeat(50_000) + "\n";
        desk.tool.begin(json!({ "tool": "process", "action": "write", "sessionId": id, "data": data }))
    };
    let letters = ["a", "b", "c", "d"];
    for calling in letters.map(call) {
        calling.finish().has(json!({ "status": "running" }));
    }
    desk.tool.process("write", &id, json!({ "eof": true }));
    desk.tool.end(&id).has(json!({ "exitCode": 0, "outputBytes": 200_004 }));
    let bytes = String::from_utf8(desk.tool.raw(&id, 0, 200_004)).unwrap();
    let mut lines: Vec<&str> = bytes.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, letters.map(|letter| letter.repeat(50_000)), "lines are mixed");
}

/// Input is bytes: what JSON can hold arrives as its UTF-8, and hex as it is.
#[test]
fn characters_and_bytes_arrive_as_they_are() {
    let desk = Desk::new();
    let id = desk.tool.background("od -An -v -tx1 -w1", json!({ "stdin": true }));
    let wrote = desk.tool.process("write", &id, json!({ "data": "é日👩\u{0}\u{7f}" }));
    assert!(wrote.text.starts_with("Wrote 5 characters"), "{wrote:?}");
    let keys = json!({ "literal": "x", "hex": ["0xff", "0", "g7"], "keys": ["Enter", "M-a"] });
    let sent = desk.tool.process("send-keys", &id, keys);
    sent.has(json!({ "status": "running", "bytes": 6 }));
    assert_eq!(sent["warnings"].as_array().unwrap().len(), 1, "{sent:?}");
    assert!(sent.text.contains("Sent 6 bytes") && sent.text.contains("Warning: "), "{sent:?}");
    desk.tool.process("submit", &id, json!({}));
    desk.tool.process("paste", &id, json!({ "text": "p" }));
    desk.tool.process("write", &id, json!({ "eof": true }));
    let ended = desk.tool.end(&id);
    let bytes: Vec<&str> = ended.string("aggregated").split_whitespace().collect();
    assert_eq!(bytes.join(" "), "c3 a9 e6 97 a5 f0 9f 91 a9 00 7f 78 ff 00 0d 1b 61 0a 70", "{ended:?}");
}
