//! What results and pages show of a command's output: nothing unsaid, nothing broken, everything to be had.

use e2e::{Answer, Desk, helper, pattern};
use serde_json::{Value, json};

/// Characters of a text for a model, and of the details (runtime.md §1.11); marks of omissions come on top.
const TEXT_CHARS: usize = 16_000;
const AGGREGATED_CHARS: usize = 200_000;
const MARK: usize = 200;

/// The ranges that a text's own marks name.
fn marked(text: &str) -> Vec<(u64, u64)> {
    text.lines()
        .filter_map(|line| {
            let range = line.strip_prefix("[... ")?.split_once(" bytes omitted: offsets ")?.1;
            let (from, to) = range.strip_suffix(" ...]")?.split_once(" to ")?;
            Some((from.parse().unwrap(), to.parse().unwrap()))
        })
        .collect()
}

fn omitted(answer: &Answer) -> Vec<(u64, u64)> {
    let ranges = answer["omitted"].as_array().unwrap();
    ranges
        .iter()
        .map(|range| {
            assert_eq!(range["lost"], false, "{range}");
            (range["from"].as_u64().unwrap(), range["to"].as_u64().unwrap())
        })
        .collect()
}

/// The text with what was left out, fetched by bytes and as text.
#[track_caller]
fn completed(desk: &Desk, session: &str, shown: &str, (from, to): (u64, u64)) -> String {
    let (head, tail) = shown.split_once("[... ").expect("a mark");
    let tail = tail.split_once(" ...]").expect("the end of a mark").1;
    let raw = desk.tool.raw(session, from, to);
    let mut text = String::new();
    let mut at = from;
    while at < to {
        let end = to.min(at + 150_000);
        let page = desk.tool.process("log", session, json!({ "from": at, "to": end, "maxChars": 200_000 }));
        page.has(json!({ "truncated": false, "from": at, "to": end, "omitted": [] }));
        text.push_str(page.string("output"));
        at = end;
    }
    assert!(text.as_bytes() == raw, "text and bytes of the same range differ");
    // A mark stands on a line of its own.
    let head = if text.starts_with('\n') { head.trim_end_matches('\n') } else { head };
    let tail = if text.ends_with('\n') { tail.trim_start_matches('\n') } else { tail };
    format!("{head}{text}{tail}")
}

#[test]
fn head_and_tail_are_kept_and_what_is_left_out_can_be_had() {
    let desk = Desk::new();
    for (length, pty) in [(15_000, false), (150_000, false), (1_000_000, false), (100_000, true)] {
        // No line end conversion in the terminal, so that the bytes compare.
        let stty = if pty { "stty -opost; " } else { "" };
        let command = format!("{stty}exec {} {length}", helper("emit"));
        let result = desk.tool.exec(&command, json!({ "pty": pty }));
        let session = result.session();
        result.has(json!({ "status": "completed", "exitCode": 0, "outputBytes": length }));
        let whole = pattern(length);
        assert!(desk.tool.raw(&session, 0, length as u64) == whole, "{length} bytes came back changed");
        let whole = String::from_utf8(whole).unwrap();

        let aggregated = result.string("aggregated");
        assert!(aggregated.chars().count() <= AGGREGATED_CHARS + MARK, "{length}");
        assert_eq!(marked(aggregated), omitted(&result), "{length}");
        match omitted(&result)[..] {
            [] => assert!(aggregated == whole.trim(), "{length}"),
            [range] => {
                assert!(completed(&desk, &session, aggregated, range).trim() == whole.trim(), "{length}")
            }
            _ => panic!("more than one omission: {:?}", result["omitted"]),
        }
        let text = result.text.split_once('\n').unwrap().1;
        assert!(text.chars().count() <= TEXT_CHARS + MARK, "{length}");
        match marked(text)[..] {
            [] => assert!(length < TEXT_CHARS && text == whole.trim(), "{length}"),
            [range] => assert!(completed(&desk, &session, text, range).trim() == whole.trim(), "{length}"),
            _ => panic!("more than one mark: {text}"),
        }
    }
}

#[test]
fn a_poll_and_a_tail_are_bounded_and_say_so() {
    let desk = Desk::new();
    let command = format!("{} 100000; sleep 600", helper("emit"));
    let started = desk.tool.exec(&command, json!({ "yieldMs": 2000 }));
    let tail = started.string("tail");
    assert!(tail.chars().count() <= 2000 && pattern(100_000).ends_with(tail.as_bytes()), "{tail}");
    let id = started.session();
    let poll = desk.tool.process("poll", &id, json!({}));
    assert!(poll.string("aggregated").chars().count() <= 30_000 + MARK);
    poll.has(json!({ "status": "running", "offset": 0, "nextOffset": 100_000 }));
    let (from, to) = omitted(&poll)[0];
    assert_eq!(marked(poll.string("aggregated")), [(from, to)]);
    assert!(desk.tool.raw(&id, from, to) == pattern(100_000)[from as usize..to as usize]);
}

/// F103: all of a large output is there, and where a text does not show it, it says so.
#[test]
fn two_million_lines_have_their_last_one() {
    let desk = Desk::new();
    let result = desk.tool.exec("seq 1 2000000", json!({ "yieldMs": 100_000 }));
    result.has(json!({ "status": "completed", "exitCode": 0, "outputBytes": 14_888_896 }));
    assert!(result.text.starts_with("Node: n (") && result.text.ends_with("\n1999999\n2000000"));
    assert_eq!((marked(&result.text).len(), omitted(&result).len()), (1, 1));
    let id = result.session();
    let page = |offset: u64| {
        let page = desk.tool.process("log", &id, json!({ "offset": offset, "limit": 1 }));
        page.has(json!({ "totalLines": 2_000_000, "lines": 1 }));
        page.string("output").to_owned()
    };
    assert_eq!([page(0), page(999_999), page(1_999_999)], ["1", "1000000", "2000000"]);
    // A reader that takes it page by page.
    let mut bytes = desk.tool.raw(&id, 0, 14_888_896).into_iter();
    let mut number = String::new();
    for wanted in 1..=2_000_000 {
        number.clear();
        number.extend(bytes.by_ref().take_while(|b| *b != b'\n').map(char::from));
        assert!(number.parse() == Ok(wanted), "{number} instead of {wanted}");
    }
    assert_eq!(bytes.next(), None);
}

/// A program that writes its text byte by byte.
fn bytewise(bytes: &str) -> String {
    format!("import os,sys,time\nfor b in {bytes}:\n  os.write(1,bytes([b]))\n  time.sleep(0.002)\n")
}

/// F162: characters and escape sequences that come in pieces are whole in every view, also in those read on the way.
#[test]
fn split_characters_and_sequences_are_read_whole() {
    let desk = Desk::new();
    let script = desk.bed.path("bytewise.py");
    let text = r#""\u65e5\u672c\u8a9e \x1b[1;31mred\x1b[0m \x1b]0;title\x07\U0001f469\u200d\U0001f680 \x1b[38;5;208mend".encode()"#;
    std::fs::write(&script, bytewise(text)).unwrap();
    let wanted = "日本語 red 👩\u{200d}🚀 end";
    let command = format!("python3 {}", script.display());
    for pty in [false, true] {
        let id = desk.tool.background(&command, json!({ "pty": pty }));
        let mut seen = String::new();
        loop {
            let poll = desk.tool.process("poll", &id, json!({ "timeout": 20 }));
            seen.push_str(poll.string("aggregated"));
            if poll["status"] != "running" {
                break;
            }
        }
        assert_eq!(without_joiners(&seen), without_joiners(wanted), "pty {pty}, polled");
        let log = desk.tool.process("log", &id, json!({}));
        assert_eq!(without_joiners(log.string("output")), without_joiners(wanted), "pty {pty}");
        assert_eq!(
            desk.tool.exec(&command, json!({ "pty": pty })).string("aggregated"),
            log.string("output")
        );
    }
}

/// Format characters are shown, escaped or left out as the view pleases (runtime.md §1.11).
fn without_joiners(text: &str) -> String {
    text.replace('\u{200d}', "").replace("\\u{200d}", "")
}

/// F167: what could steer a reader's terminal, or turn its text around, does not get there.
#[test]
fn nothing_of_a_view_steers_a_terminal() {
    let desk = Desk::new();
    let result = desk.tool.exec(r"printf 'a\302\23331mb\342\200\256c\001d\177e\033[2Jf\007\tg'", json!({}));
    let text = result.string("aggregated");
    let harmful = |c: &char| (c.is_control() && *c != '\t' && *c != '\n') || *c == '\u{202e}';
    assert_eq!(text.chars().chain(result.text.chars()).filter(harmful).count(), 0, "{text:?}");
    assert!(text.starts_with('a') && text.ends_with("\tg"), "{text:?}");
    let bytes = desk.tool.raw(&result.session(), 0, result.number("outputBytes"));
    assert_eq!(bytes, b"a\xc2\x9b31mb\xe2\x80\xaec\x01d\x7fe\x1b[2Jf\x07\tg");
}

/// F168: bytes that are no text come back as they are.
#[test]
fn binary_output_survives() {
    let desk = Desk::new();
    let copy = desk.bed.path("copy");
    for pty in [false, true] {
        let stty = if pty { "stty raw; " } else { "" };
        let command = format!("{stty}head -c 4096 /dev/urandom | tee {}; printf '\\0\\377'", copy.display());
        let result = desk.tool.exec(&command, json!({ "pty": pty }));
        let mut wanted = std::fs::read(&copy).unwrap();
        wanted.extend(b"\0\xff");
        assert_eq!(result.number("outputBytes"), wanted.len() as u64);
        assert!(desk.tool.raw(&result.session(), 0, wanted.len() as u64) == wanted, "pty {pty}");
    }
}

/// F169: raw bytes keep the terminal's line ends; the text has lines, and of a progress line its last state.
#[test]
fn line_ends_and_progress_lines() {
    let desk = Desk::new();
    let progress = "for i in 1 2 3 100; do printf '\\r%s%%' $i; done; printf '\\nok\\n'";
    let table = [
        ("printf 'a\\nb\\n'", true, "a\r\nb\r\n", "a\nb", 2),
        ("printf 'a\\nb\\n'", false, "a\nb\n", "a\nb", 2),
        ("printf 'a\\r\\nb\\r\\n'", false, "a\r\nb\r\n", "a\nb", 2),
        (progress, false, "\r1%\r2%\r3%\r100%\nok\n", "100%\nok", 2),
        (progress, true, "\r1%\r2%\r3%\r100%\r\nok\r\n", "100%\nok", 2),
        ("printf 'no end'", false, "no end", "no end", 1),
        ("true", false, "", "", 0),
        ("true", true, "", "", 0),
    ];
    for (command, pty, raw, text, lines) in table {
        let result = desk.tool.exec(command, json!({ "pty": pty }));
        result.has(json!({ "aggregated": text, "outputBytes": raw.len() }));
        let id = result.session();
        assert_eq!(desk.tool.raw(&id, 0, raw.len() as u64), raw.as_bytes(), "{command}");
        let log = desk.tool.process("log", &id, json!({}));
        log.has(
            json!({ "totalLines": lines, "total": lines, "lines": lines, "truncated": false, "omitted": [] }),
        );
        assert_eq!(log.string("output").trim_end_matches('\n'), text, "{command}");
        let shown: Value = if text.is_empty() { "(no output)".into() } else { text.into() };
        assert!(result.text.ends_with(shown.as_str().unwrap()), "{result:?}");
    }
}

/// F160: a terminal is there exactly when it was asked for, whoever waits.
#[test]
fn a_terminal_is_there_when_asked_for() {
    let desk = Desk::new();
    let command =
        "test -t 0 && test -t 1 && test -t 2 && echo tty; echo TERM=$TERM; stty size 2>/dev/null; true";
    for (pty, wanted) in [(true, "tty\nTERM=xterm-256color\n30 120"), (false, "TERM=")] {
        let front = desk.tool.exec(command, json!({ "pty": pty }));
        let behind = desk.tool.end(&desk.tool.background(command, json!({ "pty": pty })));
        let behind = behind.string("aggregated").trim_end();
        assert_eq!((front.string("aggregated"), behind), (wanted, wanted), "pty {pty}");
    }
    let sized = desk.tool.exec("stty size", json!({ "pty": true, "cols": 77, "rows": 11 }));
    sized.has(json!({ "aggregated": "11 77" }));
    let unused = desk.tool.exec("true", json!({ "cols": 77 }));
    assert!(unused.text.contains("Warning: `cols` and `rows` have no meaning without `pty`"), "{unused:?}");
}
