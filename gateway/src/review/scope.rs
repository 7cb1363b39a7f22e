//! Which commands a reviewer is asked about (policy spec §8.2). All others go to a person at once.
//!
//! Looks at the node's plan again, with the same tables that the node has. What is not known for sure is not reviewed.

use policy::command::{Form, ShellUse, Subject, is_shell, read_command};
use policy::shell::{self, Dialect};
use proto::v1::{self as pb, bound_file::Role};

use super::text::is_invisible;

/// Most commands in one text.
const SEGMENTS_MAX: usize = 64;
/// Why the node asks, where a reviewer may answer. Words that are not here need a person.
const REVIEWED: [&str; 2] = ["allowlist-miss", "strict-inline-eval"];
/// Builtins that are no files and do no harm (§3.8).
const BUILTINS: [&str; 7] = [":", "[", "cd", "false", "pwd", "test", "true"];
/// Programs that start another one in their own way, or are many in one.
const DISPATCHERS: [&str; 7] = ["builtin", "busybox", "command", "coreutils", "exec", "toybox", "xcrun"];

/// All texts of a plan that the caller chose.
pub(super) fn texts(plan: &pb::Plan) -> impl Iterator<Item = String> {
    let segments = plan.segments.iter();
    let words = segments.clone().map(|segment| segment.argv.join(" "));
    let paths = segments.flat_map(|segment| &segment.files).flat_map(|file| [&file.path, &file.real_path]);
    [plan.command_text.clone(), plan.argv.join(" "), plan.workdir.clone(), plan.env_names.join(" ")]
        .into_iter()
        .chain(words)
        .chain(paths.cloned())
}

/// Why a person decides about this plan; none where a reviewer may.
pub(super) fn needs_person(plan: &pb::Plan) -> Option<&'static str> {
    let is_reviewed = |reason: &String| REVIEWED.contains(&reason.as_str());
    if plan.ask() == pb::Ask::Always || plan.reasons.iter().any(|reason| reason == "ask-always") {
        return Some("ask=always: a person sees every command");
    }
    if plan.reasons.is_empty() || !plan.reasons.iter().all(is_reviewed) {
        return Some("the node asks for a reason that only a person can judge");
    }
    if plan.signature_required {
        return Some("the node takes only decisions that an approver signed");
    }
    if plan.terminal || plan.stdin_open {
        return Some("what would be typed into the command is not known");
    }
    if plan.segments.is_empty() || plan.segments.len() > SEGMENTS_MAX {
        return Some("it has no commands or more than 64");
    }
    if texts(plan).any(|text| text.chars().any(is_hidden)) {
        return Some("it has characters that cannot be seen");
    }
    if texts(plan).any(|text| edits_suppressions(&text)) {
        return Some("it may edit security.audit.suppressions");
    }
    if !plan.argv.first().is_some_and(|program| program.starts_with('/')) {
        return Some("its program is not pinned");
    }
    text_needs_person(plan).or_else(|| plan.segments.iter().find_map(segment_needs_person))
}

fn is_hidden(letter: char) -> bool {
    is_invisible(letter) || (letter.is_control() && !matches!(letter, '\n' | '\t'))
}

/// In one word or in several.
fn edits_suppressions(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("audit") && text.contains("suppressions")
}

/// The plan does not show assignments before a command; the text does.
fn text_needs_person(plan: &pb::Plan) -> Option<&'static str> {
    let Ok(script) = shell::read(&plan.command_text, Dialect::Bash) else {
        return Some("its text cannot be read");
    };
    if script.commands.iter().any(|command| !command.assignments.is_empty()) {
        return Some("it sets variables before a command");
    }
    if plan.segments.iter().any(|segment| segment.nested) {
        return Some("it hands a text to a shell");
    }
    let read = script.commands.iter().map(|command| command.words.iter().map(|word| &word.text).collect());
    let planned = plan.segments.iter().map(|segment| segment.argv.iter().collect::<Vec<_>>());
    if !planned.eq::<Vec<Vec<_>>>(read.collect()) {
        return Some("its text and the node's plan differ");
    }
    None
}

fn segment_needs_person(segment: &pb::PlanSegment) -> Option<&'static str> {
    let Some(first) = segment.argv.first() else { return Some("it sets variables before a command") };
    let found = read_command(&segment.argv, Form::Shell, &|_| true);
    match found.subject {
        Subject::Program => {}
        // Right behind the shell's name: no options, so neither a login nor an interactive shell.
        Subject::Shell(ShellUse::Script { at }) if at == found.program + 1 => {
            if bound(segment, at, Role::Script).is_none() {
                return Some("its script is not pinned");
            }
        }
        Subject::Shell(_) => return Some("it starts a shell with options or a text"),
        Subject::Held(_) => return Some("what it starts is not known from its words"),
    }
    let starts = found.wrappers.iter().map(|wrapper| wrapper.at).chain([found.program]);
    for at in starts {
        let word = segment.argv.get(at).map(String::as_str).unwrap_or_default();
        if at == 0 && BUILTINS.contains(&first.as_str()) {
            continue;
        }
        if is_dispatcher(word) {
            return Some("it starts its program through another one");
        }
        let Some(file) = bound(segment, at, Role::Program) else { return Some("a program is not pinned") };
        if is_dispatcher(&file.path) || (is_shell(&file.real_path) && !is_shell(word)) {
            return Some("a program is another one than its name says");
        }
    }
    None
}

fn bound(segment: &pb::PlanSegment, word: usize, role: Role) -> Option<&pb::BoundFile> {
    let is_it = |file: &&pb::BoundFile| {
        usize::try_from(file.word) == Ok(word) && file.role() == role && file.path.starts_with('/')
    };
    segment.files.iter().find(is_it)
}

/// By its name; a longer one may still be one of them (`busybox.static`).
fn is_dispatcher(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let multi_call = ["busybox", "toybox"].iter().any(|prefix| name.starts_with(prefix));
    multi_call || DISPATCHERS.contains(&name.as_str())
}

#[cfg(test)]
mod tests;
