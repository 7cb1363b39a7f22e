//! What an end means, and how it is told (runtime spec §1.10, §5.1, §5.2).

use proto::v1::{self as pb, exit::How};
use session::StreamTag;
use session::view::{Cleaner, TextBuilder};

/// Output that is looked at for the text of an end, in characters.
pub(super) const TAIL_CHARS: usize = 400;
/// Output in the text, in characters.
const SNIPPET_CHARS: usize = 180;
/// Characters of a session's name in the text.
const NAME_CHARS: usize = 8;
/// A shell's codes for a program that cannot be executed, and for one that is not there.
const NOT_STARTED: [i32; 2] = [126, 127];

/// What an end makes of a command in the ledger.
pub(super) fn status(exit: &pb::Exit) -> pb::task::Status {
    use pb::task::Status;
    match &exit.how {
        _ if exit.timed_out => Status::TimedOut,
        Some(How::Code(_) | How::Signal(_)) if by_itself(exit) && exit.cancelled => Status::Cancelled,
        Some(How::Code(0)) if by_itself(exit) => Status::Succeeded,
        _ => Status::Failed,
    }
}

/// Whether an end is one to tell: not where somebody stopped the command and it is gone, nor, unless `empty_success`,
/// where it succeeded without a word.
pub(super) fn is_told(exit: &pb::Exit, empty_success: bool) -> bool {
    match status(exit) {
        pb::task::Status::Cancelled => false,
        pb::task::Status::Succeeded => exit.final_offset > 0 || empty_success,
        _ => true,
    }
}

/// No machinery of the session ended it.
fn by_itself(exit: &pb::Exit) -> bool {
    exit.note.is_empty() && exit.limit.is_none()
}

/// The text of an end. `tail` is the end of the output.
pub(super) fn text(session_id: &str, exit: &pb::Exit, tail: &str) -> String {
    let name: String = session_id.chars().take(NAME_CHARS).collect();
    let completed = !exit.timed_out
        && by_itself(exit)
        && matches!(exit.how, Some(How::Code(code)) if !NOT_STARTED.contains(&code));
    let verb = if completed { "completed" } else { "failed" };
    let mut text = format!("Exec {verb} ({name}, {})", how(exit));
    let snippet = match snippet(tail) {
        output if output.is_empty() => snippet(reason(exit)),
        output => output,
    };
    if !snippet.is_empty() {
        text.push_str(" :: ");
        text.push_str(&snippet);
    }
    if exit.timed_out {
        text.push_str(&format!(
            "\nIt was ended by its timeout after {} s. What it did until then is done: check the state before you repeat \
             it. Start long work with `background` or `yieldMs` and a longer `timeoutSeconds`, not with a shell `&`.",
            exit.duration_ms / 1000
        ));
    }
    text
}

fn how(exit: &pb::Exit) -> String {
    use pb::could_not_start::Kind;
    match &exit.how {
        Some(How::Code(code)) => format!("code {code}"),
        Some(How::Signal(signal)) => format!("signal {signal}"),
        // As a shell would say it.
        Some(How::CouldNotStart(failure)) => match failure.kind() {
            Kind::NotFound => "code 127".to_owned(),
            Kind::NotExecutable => "code 126".to_owned(),
            _ => "could not start".to_owned(),
        },
        Some(How::Lost(_) | How::Unreaped(_)) | None => "end unknown".to_owned(),
    }
}

/// Why it ended, where there is more to say than how.
fn reason(exit: &pb::Exit) -> &str {
    match &exit.how {
        _ if !exit.note.is_empty() => &exit.note,
        Some(How::CouldNotStart(failure)) => &failure.detail,
        Some(How::Unreaped(_)) => "it was still there after SIGKILL",
        _ => exit.limit.map_or("", |hit| match hit.kind() {
            pb::limit_hit::Kind::Memory => "it used more memory than it may",
            pb::limit_hit::Kind::Pids => "it had more processes than it may",
            pb::limit_hit::Kind::Cpu => "it used more processor time than it may",
            pb::limit_hit::Kind::FileSize => "it wrote a larger file than it may",
            pb::limit_hit::Kind::Unspecified => "it used more than it may",
        }),
    }
}

/// The last bytes of some output as text. They may begin inside a character.
pub(super) fn cleaned(tail: &[u8]) -> String {
    let rest = tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    let whole = tail.get(rest..).unwrap_or_default();
    // A byte is at most four characters: nothing is left out.
    let mut text = TextBuilder::new(whole.len().saturating_mul(4));
    let mut cleaner = Cleaner::default();
    let mut push = |glyph| text.push(glyph);
    cleaner.push(StreamTag::Stdout, 0, whole, &mut push);
    cleaner.finish(&mut push);
    text.finish().render()
}

/// The last characters of some output on one line, cut at its end; no control characters, and nothing that reorders
/// or hides text.
fn snippet(output: &str) -> String {
    let skip = output.chars().count().saturating_sub(TAIL_CHARS);
    let shown = |c: &char| {
        c.is_whitespace()
            || !(c.is_control()
                || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                    | '\u{2060}'..='\u{2069}' | '\u{feff}'))
    };
    let visible: String = output.chars().skip(skip).filter(shown).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SNIPPET_CHARS) {
        None => line,
        Some(_) => line.chars().take(SNIPPET_CHARS - 1).chain(['…']).collect(),
    }
}

/// The end of a command whose node has no such session any more.
pub(super) fn unknown_to_node(task: &pb::Task) -> pb::Exit {
    pb::Exit {
        how: Some(How::Lost(pb::Lost {})),
        started_unix_ms: task.started_unix_ms,
        note: "the node no longer knows it".to_owned(),
        ..pb::Exit::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(how: How) -> pb::Exit {
        pb::Exit { how: Some(how), final_offset: 5, duration_ms: 2500, ..pb::Exit::default() }
    }

    #[test]
    fn ends_and_what_they_mean() {
        use pb::task::Status::{Cancelled, Failed, Succeeded, TimedOut};
        let code = |code| exit(How::Code(code));
        let signal = || exit(How::Signal(15));
        let missing = |kind: pb::could_not_start::Kind| {
            let detail = "no `x` on its PATH".to_owned();
            let failure = pb::CouldNotStart { kind: kind.into(), errno: 2, detail };
            pb::Exit { final_offset: 0, ..exit(How::CouldNotStart(failure)) }
        };
        let limit = pb::LimitHit { kind: pb::limit_hit::Kind::Memory.into(), allowed: 1, used: 2 };
        let late = "\nIt was ended by its timeout after 2 s. What it did until then is done: check the state before you \
            repeat it. Start long work with `background` or `yieldMs` and a longer `timeoutSeconds`, not with a shell `&`.";
        // The end; its status; told, and told with empty success; its text.
        let table = [
            (code(0), Succeeded, (true, true), "completed (calm-ree, code 0) :: out"),
            (
                pb::Exit { final_offset: 0, ..code(0) },
                Succeeded,
                (false, true),
                "completed (calm-ree, code 0) :: out",
            ),
            (code(7), Failed, (true, true), "completed (calm-ree, code 7) :: out"),
            (
                pb::Exit { final_offset: 0, ..code(7) },
                Failed,
                (true, true),
                "completed (calm-ree, code 7) :: out",
            ),
            (code(126), Failed, (true, true), "failed (calm-ree, code 126) :: out"),
            (code(127), Failed, (true, true), "failed (calm-ree, code 127) :: out"),
            (signal(), Failed, (true, true), "failed (calm-ree, signal 15) :: out"),
            (
                pb::Exit { cancelled: true, ..signal() },
                Cancelled,
                (false, false),
                "failed (calm-ree, signal 15) :: out",
            ),
            (
                pb::Exit { cancelled: true, ..code(0) },
                Cancelled,
                (false, false),
                "completed (calm-ree, code 0) :: out",
            ),
            (
                pb::Exit { cancelled: true, ..exit(How::Unreaped(pb::Unreaped {})) },
                Failed,
                (true, true),
                "failed (calm-ree, end unknown) :: out",
            ),
            (
                pb::Exit { timed_out: true, ..signal() },
                TimedOut,
                (true, true),
                &format!("failed (calm-ree, signal 15) :: out{late}"),
            ),
            (
                pb::Exit { timed_out: true, final_offset: 0, ..code(0) },
                TimedOut,
                (true, true),
                &format!("failed (calm-ree, code 0) :: out{late}"),
            ),
            (
                missing(pb::could_not_start::Kind::NotFound),
                Failed,
                (true, true),
                "failed (calm-ree, code 127) :: out",
            ),
            (
                missing(pb::could_not_start::Kind::Workdir),
                Failed,
                (true, true),
                "failed (calm-ree, could not start) :: out",
            ),
            (
                pb::Exit { note: "disk full".to_owned(), ..code(0) },
                Failed,
                (true, true),
                "failed (calm-ree, code 0) :: out",
            ),
            (
                pb::Exit { limit: Some(limit), ..signal() },
                Failed,
                (true, true),
                "failed (calm-ree, signal 15) :: out",
            ),
            (exit(How::Lost(pb::Lost {})), Failed, (true, true), "failed (calm-ree, end unknown) :: out"),
            (pb::Exit::default(), Failed, (true, true), "failed (calm-ree, end unknown) :: out"),
        ];
        for (exit, want, told, words) in table {
            let found = (is_told(&exit, false), is_told(&exit, true));
            assert_eq!((status(&exit), found), (want, told), "{exit:?}");
            assert_eq!(text("calm-reef", &exit, "out\n"), format!("Exec {words}"), "{exit:?}");
        }
        let reasons = [
            (missing(pb::could_not_start::Kind::NotExecutable), "code 126) :: no `x` on its PATH"),
            (pb::Exit { limit: Some(limit), ..signal() }, "signal 15) :: it used more memory than it may"),
            (unknown_to_node(&pb::Task::default()), "end unknown) :: the node no longer knows it"),
            (signal(), "signal 15)"),
        ];
        for (exit, want) in reasons {
            assert_eq!(text("s", &exit, " \n"), format!("Exec failed (s, {want}"));
        }
    }

    #[test]
    fn the_end_of_some_output() {
        let table: [(&[u8], &str); 6] = [
            (b"", ""),
            (b"a\x1b[31mb\x1b[0m\n", "ab\n"),
            // Half a character, and a progress line.
            (b"\x9f\x98\x80x 1%\rx 9%\r\ny", "x 9%\ny"),
            (b"\x80\x80\x80\x80x", "\\x80x"),
            (b"\xff\x07", "\\xff\\x07"),
            ("\u{202e}x".as_bytes(), "\\u{202e}x"),
        ];
        for (tail, want) in table {
            assert_eq!(cleaned(tail), want, "{tail:?}");
        }
    }

    #[test]
    fn output_on_one_line() {
        let table = [
            ("", String::new()),
            ("a\r\n\tb\u{a0}c\n", "a b c".to_owned()),
            ("x\u{1b}\u{7}y\u{202e}z\u{9b}", "xyz".to_owned()),
            (&"ä".repeat(180), "ä".repeat(180)),
            (&"ä".repeat(181), "ä".repeat(179) + "…"),
            (&("b".repeat(300) + " " + &"a".repeat(399)), "a".repeat(179) + "…"),
        ];
        for (output, want) in table {
            assert_eq!(snippet(output), want, "{output}");
        }
    }
}
