//! Long texts, made of a short one that repeats itself: what grows faster than the text shows here.
//!
//! The first two bytes say how many bytes of the rest come once before (`0` none, `1` one, and so on through the
//! character set) and how many are repeated; what remains comes once after.

use policy::{highlight::executable_spans, plan::Invocation};

use super::{
    Pace, reader,
    world::{SETS, WORLD},
};

/// How long the texts get, in bytes: enough for the square of it to stand out.
const LENGTH: usize = 16 * 1024;

pub fn check(data: &[u8], pace: Pace) {
    let [first, second, rest @ ..] = data else { return };
    let count = |byte: u8| usize::from(byte.wrapping_sub(b'0'));
    let (head, rest) = rest.split_at(count(*first).min(rest.len()));
    let (unit, tail) = rest.split_at(count(*second).min(rest.len()));
    if unit.is_empty() {
        return;
    }
    let times = LENGTH.saturating_sub(head.len() + tail.len()) / unit.len();
    let bytes = [head, &unit.repeat(times), tail].concat();
    let text = String::from_utf8_lossy(&bytes);
    reader::check(text.as_bytes(), pace);
    pace.timed("highlight", text.len(), || executable_spans(&text, &text));
    let argv: Vec<String> = text.split('\n').map(str::to_owned).collect();
    WORLD.with(|world| {
        for set in [SETS - 2, SETS - 1] {
            for invocation in [Invocation::Shell(&text), Invocation::Argv(&argv)] {
                let what = format!("judge by rules {set}");
                pace.timed(&what, text.len(), || world.judge_by(set, invocation));
            }
        }
    });
}
