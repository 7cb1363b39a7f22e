//! A request as a person reads it before they decide: everything that the plan binds, and how to answer.
//!
//! All text of it comes from elsewhere. It is escaped, and every line of the command begins with a mark, so that a
//! command can neither hide a part nor look like another line of the card.

mod decide;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal as _, stdout};

use policy::highlight::executable_spans;
use proto::v1 as pb;

use super::super::{output::moment, terminal};
use super::record::{cut, hex, one_line, outcome, quoted, role_word, slug, time_left};

pub(super) use decide::PLAN_DIGITS;

/// Before each line of the command, and before what is left of one that is too long for the terminal.
const LINE: &str = "  | ";
const REST: &str = "  + ";
/// Column at which the values begin.
const VALUES: usize = 12;
/// The words of one command, in characters: a summary, the command stands above in full.
const WORDS_MAX: usize = 160;
/// No terminal is taken to be narrower: a card would be all margin.
const COLUMNS_MIN: usize = 40;
/// Columns of a tab, at most.
const TAB: usize = 8;

/// How a card is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// Names of programs are bold.
    pub(super) bold: bool,
    /// Longer lines are broken here, with a mark: a terminal would begin the rest where a card's own lines begin.
    pub(super) columns: Option<usize>,
}

impl Style {
    /// As this process's output can show it.
    pub(super) fn of_stdout() -> Self {
        let is_terminal = stdout().is_terminal();
        let columns = usize::try_from(terminal::size().columns).unwrap_or(COLUMNS_MIN);
        Self { bold: is_terminal, columns: is_terminal.then_some(columns.max(COLUMNS_MIN)) }
    }
}

/// The card, with a line end after each line.
pub(super) fn card(approval: &pb::Approval, now_ms: i64, style: Style) -> String {
    let mut card = Card { style, text: String::new() };
    let plan = approval.plan.clone().unwrap_or_default();
    card.line(&format!("Approval {} ({})", slug(approval), one_line(&approval.approval_id)));
    card.command(&plan.command_text);
    card.runs(&plan);
    card.field("In", &one_line(&plan.workdir));
    card.field("Node", &format!("{} ({})", one_line(&approval.node_name), cut(&approval.node_id, 12)));
    card.some_field("Agent", &plan.agent_id);
    card.some_field("Session", &plan.session_key);
    card.some_field("Caller", &approval.requested_by);
    if !plan.env_names.is_empty() {
        let names: Vec<_> = plan.env_names.iter().map(|name| one_line(name)).collect();
        card.field("Variables", &names.join(", "));
    }
    card.field("Why", &why(&plan));
    for warning in warnings(approval, &plan) {
        card.field("Warning", warning);
    }
    if approval.status() == pb::ApprovalStatus::Pending {
        card.field("Time left", &time_left(approval, now_ms));
        decide::decisions(&mut card, approval, &plan);
    } else {
        let at = moment(approval.closed_unix_ms);
        card.field("Closed", &format!("{}, {at}", outcome(approval)));
        card.some_field("From", &approval.decided_from);
        card.some_field("Outcome", &approval.outcome);
    }
    card.text
}

/// The plan is the one that its digest stands for. A gateway that shows one plan and asks about another is found by it.
pub(super) fn is_sealed(plan: &pb::Plan) -> bool {
    approval::plan_digest(plan).as_slice() == plan.digest.as_ref()
}

/// Why it asks, and whose setting that is.
fn why(plan: &pb::Plan) -> String {
    let why = if plan.why.is_empty() { plan.reasons.join(", ") } else { plan.why.clone() };
    let by = match plan.asked_by.as_str() {
        "host" => "the node's exec-approvals.json",
        "config" => "the node's openclaw.json",
        "request" => "the gateway's configuration or the caller",
        other => return format!("{} (by {})", one_line(&why), one_line(other)),
    };
    format!("{} (asked for by {by})", one_line(&why))
}

fn warnings(approval: &pb::Approval, plan: &pb::Plan) -> Vec<&'static str> {
    let shown = approval::shown(&plan.command_text);
    let hidden = |text: &String| approval::shown(text).is_none_or(|shown| shown.altered);
    let files = plan.segments.iter().flat_map(|segment| &segment.files);
    let mut paths = files.flat_map(|file| [&file.path, &file.real_path]).chain([&plan.workdir]);
    let table = [
        (shown.is_none(), "the command is longer than can be shown: do not allow it"),
        (
            !is_sealed(plan) || approval.cut,
            "the gateway shows another plan than it asks about: it cannot be allowed",
        ),
        (approval.node_id != plan.node_id, "the plan is of another node than the gateway says"),
        (
            shown.as_ref().is_some_and(|shown| shown.mixed_scripts),
            "a word mixes letters of alphabets that look alike; they are shown as \\u{…}",
        ),
        (
            shown.as_ref().is_some_and(|shown| shown.altered),
            "the command has characters that mislead; they are shown as \\u{…}",
        ),
        (paths.any(hidden), "a path has characters that mislead; they are shown as \\u{…}"),
        (plan.terminal, "it runs in a terminal: the caller can type into it"),
        (plan.stdin_open && !plan.terminal, "its input is open: the caller can type into it"),
        (
            plan.signature_required,
            "the node takes only decisions that an enrolled approver signed; `resolve` signs with your key",
        ),
    ];
    table.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect()
}

/// A card that is being written.
struct Card {
    style: Style,
    text: String,
}

impl Card {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A name and its value; what does not fit is indented below.
    fn field(&mut self, name: &str, value: &str) {
        self.broken(&format!("{name:<VALUES$}"), &" ".repeat(VALUES), value);
    }

    /// A name and a command line, which stays in one piece: people copy it. No text from elsewhere is in it.
    fn command_line(&mut self, name: &str, words: &str) {
        self.line(&format!("{name:<VALUES$}{words}"));
    }

    /// One of the values of the field above.
    fn more(&mut self, value: &str) {
        self.field("", value);
    }

    fn some_field(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(name, &one_line(value));
        }
    }

    fn broken(&mut self, first: &str, rest: &str, value: &str) {
        let letters: Vec<char> = value.chars().collect();
        let mut prefix = first;
        for piece in pieces(&letters, self.room(first)) {
            let piece: String = letters.get(piece).unwrap_or_default().iter().collect();
            self.line(&format!("{prefix}{piece}"));
            prefix = rest;
        }
    }

    fn room(&self, prefix: &str) -> usize {
        self.style.columns.map_or(usize::MAX, |columns| columns.saturating_sub(prefix.len()).max(1))
    }

    /// The command in full. Programs are bold where the reader sees the text as it is.
    fn command(&mut self, text: &str) {
        let Some(shown) = approval::shown(text) else {
            return self.line(&format!("{LINE}(too long to be shown)"));
        };
        let spans = if self.style.bold { executable_spans(text, &shown.text) } else { Vec::new() };
        let mut unit = 0;
        for line in shown.text.split('\n') {
            let mut letters = Vec::new();
            let mut bold = Vec::new();
            for letter in line.chars() {
                letters.push(letter);
                bold.push(spans.iter().any(|span| span.contains(&unit)));
                unit += letter.len_utf16();
            }
            // The line end.
            unit += 1;
            let mut prefix = LINE;
            for piece in pieces(&letters, self.room(LINE)) {
                let letters = letters.get(piece.clone()).unwrap_or_default();
                let bold = bold.get(piece).unwrap_or_default();
                self.line(&format!("{prefix}{}", marked(letters, bold)));
                prefix = REST;
            }
        }
    }

    /// Every command of the text, and the files that it is tied to.
    fn runs(&mut self, plan: &pb::Plan) {
        let mut name = "Runs";
        for (number, segment) in (1..).zip(&plan.segments) {
            let nested = if segment.nested { "in its text: " } else { "" };
            let join = segment.join.trim();
            let join = if join.is_empty() { String::new() } else { format!("{} ", one_line(join)) };
            let words = cut(&quoted(&segment.argv), WORDS_MAX);
            self.field(name, &format!("{number}. {nested}{join}{words}"));
            name = "";
            for file in &segment.files {
                self.more(&format!("   {}", bound(file)));
            }
        }
        if let Some(shell) = &plan.shell {
            self.field(name, &format!("by the shell {}", bound(shell)));
        }
    }
}

/// A file that the plan is tied to.
fn bound(file: &pb::BoundFile) -> String {
    let real = if file.real_path == file.path {
        String::new()
    } else {
        format!(" -> {}", one_line(&file.real_path))
    };
    let content = match file.sha256.get(..4) {
        Some(start) => format!(", sha256:{}…", hex(start)),
        None => String::new(),
    };
    format!("{} {}{real}{content}", role_word(file.role()), one_line(&file.path))
}

/// A line in pieces of at most `room` columns; at least one piece.
fn pieces(letters: &[char], room: usize) -> Vec<std::ops::Range<usize>> {
    let (mut start, mut columns) = (0, 0);
    let mut pieces = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        // Whatever is not ASCII may take two columns.
        let width = match letter {
            '\t' => TAB,
            letter if letter.is_ascii() => 1,
            _ => 2,
        };
        if columns + width > room && at > start {
            pieces.push(start..at);
            (start, columns) = (at, 0);
        }
        columns += width;
    }
    pieces.push(start..letters.len());
    pieces
}

/// Text with its bold letters made so.
fn marked(letters: &[char], bold: &[bool]) -> String {
    let mut text = String::new();
    let mut on = false;
    for (letter, want) in letters.iter().zip(bold) {
        if on != *want {
            text.push_str(if *want { "\u{1b}[1m" } else { "\u{1b}[22m" });
            on = *want;
        }
        text.push(*letter);
    }
    if on {
        text.push_str("\u{1b}[22m");
    }
    text
}
