//! The chain of rules behind a judgement, for people and as JSON.

use std::fmt;

use serde::Serialize;

use crate::{
    EffectivePolicy, check_overrides,
    command::Tag,
    plan::{Grant, Launch, Miss, Segment},
    printable::printable,
    shell::quote,
    verdict::{Judgement, Reason, Verdict, not_allowed},
};

/// What the owner of a machine types there to see and change its rules. A caller who knows more flags that are needed
/// puts them in its place.
pub const OWNER_COMMAND: &str = "node-host policy";
/// Longest arguments for which an exact entry is proposed, in bytes.
const EXACT_ARGUMENTS: usize = 160;
/// Longest word that is shown, in characters.
const SHOWN_WORD: usize = 400;

/// A judgement, spelled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `run`, `needs-approval` or `denied`.
    pub verdict: &'static str,
    /// The stable reasons, the weightiest first; empty where it runs.
    pub reasons: Vec<&'static str>,
    /// The first reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the reader can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// `security` in force.
    pub security: &'static str,
    /// Whose `security` that is: `host` (exec-approvals.json), `config` (openclaw.json there) or `request`.
    pub decided_by: &'static str,
    /// `ask` in force.
    pub ask: &'static str,
    /// Whose `ask` that is.
    pub ask_decided_by: &'static str,
    /// `askFallback` in force.
    pub ask_fallback: &'static str,
    /// What each side says, for whoever knows all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Side>,
    /// Where the words that name programs stand in the text, in UTF-16 units (§8.4).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executable_spans: Vec<[usize; 2]>,
    /// What the reader should know about the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where and why the text cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<UnreadableText>,
    /// Each command; empty where the answer does not depend on them.
    pub segments: Vec<ExplainedSegment>,
    /// What is launched, or would be after a yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<String>,
}

/// What one side says. Absent words leave it to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// `host`, `config` or `request`.
    pub side: &'static str,
    /// Its `security`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<&'static str>,
    /// Its `ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<&'static str>,
}

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadableText {
    /// The label.
    pub label: &'static str,
    /// The byte in the text.
    pub at: usize,
}

/// One command of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedSegment {
    /// Variables that are set for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<String>,
    /// The words.
    pub argv: Vec<String>,
    /// The word that was judged.
    pub program: String,
    /// The path that it is started by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file behind that, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_path: Option<String>,
    /// Whether it is satisfied.
    pub satisfied: bool,
    /// The rule that decided, in words.
    pub rule: String,
    /// What would have to be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<String>,
    /// The narrowest entry for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_exact: Option<String>,
    /// Code that is handed to an interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline_eval: Option<String>,
    /// It belongs to the text of the shell above it.
    pub nested: bool,
}

/// Spells out a judgement.
#[must_use]
pub fn explain(judgement: &Judgement, policy: &EffectivePolicy) -> Explanation {
    let (verdict, reasons, message, hint, launch) = match &judgement.verdict {
        Verdict::Run(launch) => ("run", Vec::new(), None, None, Some(launch.clone())),
        Verdict::NeedsApproval(asked) => {
            let reasons = asked.reasons.iter().map(Reason::as_str).collect();
            let denied = judgement.clone().without_approver().verdict;
            let (message, hint) = match denied {
                Verdict::Denied(denial) => (Some(denial.message), Some(denial.hint)),
                Verdict::Run(_) | Verdict::NeedsApproval(_) => (None, None),
            };
            ("needs-approval", reasons, message, hint, asked.launch.clone())
        }
        Verdict::Denied(denial) => {
            ("denied", vec![denial.reason], Some(denial.message.clone()), Some(denial.hint.clone()), None)
        }
    };
    let mut segments = Vec::new();
    for segment in judgement.plan.iter().flat_map(|plan| &plan.segments) {
        segments.push(explained(segment, false));
        let inner = segment.payload.iter().flat_map(|(_, inner)| inner);
        segments.extend(inner.map(|segment| explained(segment, true)));
    }
    Explanation {
        verdict,
        reasons,
        message,
        hint,
        security: policy.security.as_str(),
        decided_by: policy.decided_by.as_str(),
        ask: policy.ask.as_str(),
        ask_decided_by: policy.ask_decided_by.as_str(),
        ask_fallback: policy.ask_fallback.as_str(),
        sides: Vec::new(),
        executable_spans: Vec::new(),
        notes: Vec::new(),
        unreadable: judgement
            .unreadable
            .map(|unreadable| UnreadableText { label: unreadable.label.as_str(), at: unreadable.at }),
        segments,
        launch: launch.map(|launch| match launch {
            Launch::AsSent => "as sent".to_owned(),
            Launch::Argv(words) => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
            Launch::Shell(text) => format!("/bin/sh -c {}", quote(&text)),
        }),
    }
}

fn explained(segment: &Segment, nested: bool) -> ExplainedSegment {
    let program = segment.programs.iter().find(|(at, _)| *at == segment.subject).map(|(_, program)| program);
    let path = program.map(|program| program.path.display().to_string());
    let real = program.map(|program| program.file.real.display().to_string());
    ExplainedSegment {
        assignments: segment
            .assignments
            .iter()
            .map(|assigned| format!("{}={}", assigned.name, assigned.value))
            .collect(),
        argv: segment.argv.clone(),
        program: segment.argv.get(segment.subject).cloned().unwrap_or_default(),
        real_path: real.filter(|real| Some(real) != path.as_ref()),
        path,
        satisfied: segment.decided.is_ok(),
        rule: rule(segment),
        add: to_add(segment),
        add_exact: exact(segment),
        inline_eval: segment.inline_eval.as_ref().map(|found| format!("{} {}", found.program, found.form)),
        nested,
    }
}

fn rule(segment: &Segment) -> String {
    match &segment.decided {
        Ok(Grant::Entry { index, pattern, by_args }) => {
            let with = if *by_args { " with its argPattern" } else { "" };
            format!("entry {} of the allowlist, `{}`{with}", index + 1, printable(pattern, SHOWN_WORD))
        }
        Ok(Grant::SafeBin) => "a safe bin with arguments that name no file".to_owned(),
        Ok(Grant::Builtin) => "a builtin of the shell that does no harm".to_owned(),
        Ok(Grant::Skill) => "the program of a skill".to_owned(),
        Ok(Grant::Payload) => "every command in its text is allowed".to_owned(),
        Err(_) => not_allowed(segment).unwrap_or_default(),
    }
}

/// What would have to be added or changed for a command to be satisfied.
pub(crate) fn to_add(segment: &Segment) -> Option<String> {
    let advice = match segment.decided.as_ref().err()? {
        Miss::NoEntry { .. } => {
            // The last one found is what runs: a script, where a shell runs one.
            let (_, program) = segment.programs.last()?;
            let real = shown_word(program.file.real.to_str()?);
            return Some(format!("to allow it with any arguments: `{OWNER_COMMAND} allow {real}`"));
        }
        Miss::NotFound => "install it, or write its absolute path",
        Miss::NoScript { .. } => "write the path of a script that is there",
        Miss::Payload => return None,
        Miss::Held(tag) => match tag {
            Tag::Eval | Tag::Source | Tag::Alias => "write the commands themselves",
            Tag::ShellEnvAssignment | Tag::StandaloneAssignment => {
                let names = segment.assignments.iter().map(|assigned| (assigned.name.as_str(), ""));
                return Some(match check_overrides(names) {
                    Ok(_) => "give variables in the call's `env` instead".to_owned(),
                    Err(rejected) => format!("leave the assignment out: {rejected}"),
                });
            }
            Tag::CommandCarrier | Tag::ShellWrapperThroughCarrier => "run what stands behind it by itself",
            Tag::ExactCommand => {
                "write its commands out, or put them into a script and allow the script's path"
            }
            Tag::ShellStartup => "leave the options out that read start-up files",
            Tag::PackageRunner => "install the program and run it by its name",
            Tag::PipeIntoShell => "put the commands into a script and allow the script's path",
            Tag::UntrustedWrapper => "call it by its bare name, from a trusted directory",
            Tag::RelativeAfterCd => "write the program's absolute path",
        },
    };
    Some(advice.to_owned())
}

/// The entry that allows a program with just these arguments, where it can be said in few words.
fn exact(segment: &Segment) -> Option<String> {
    let Err(Miss::NoEntry { .. }) = segment.decided else { return None };
    let (at, program) = segment.programs.last()?;
    let args = segment.argv.get(at + 1..).filter(|args| !args.is_empty())?.join(" ");
    let plain = |letter: char| letter == ' ' || letter.is_ascii_graphic() && !matches!(letter, '\'' | '`');
    if args.len() > EXACT_ARGUMENTS || !args.chars().all(plain) {
        return None;
    }
    let mut pattern = String::new();
    for letter in args.chars() {
        if r"\^$.*+?()[]{}|/".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    let real = shown_word(program.file.real.to_str()?);
    Some(format!("or with these only: `{OWNER_COMMAND} allow {real} --arg-pattern '^{pattern}$'`"))
}

fn shown_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@=:,%".contains(letter);
    let shown = printable(word, SHOWN_WORD);
    if shown.chars().all(plain) { shown } else { quote(&shown) }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}",
            self.verdict,
            if self.reasons.is_empty() { "allowed".to_owned() } else { self.reasons.join(", ") }
        )?;
        writeln!(
            f,
            "policy: security={} (by the {}) ask={} (by the {}) askFallback={}",
            self.security, self.decided_by, self.ask, self.ask_decided_by, self.ask_fallback
        )?;
        for side in &self.sides {
            let word = |word: Option<&'static str>| word.unwrap_or("-");
            writeln!(f, "  {}: security={} ask={}", side.side, word(side.security), word(side.ask))?;
        }
        if let Some(unreadable) = self.unreadable {
            writeln!(f, "cannot be read: {} at byte {}", unreadable.label, unreadable.at)?;
        }
        for (count, segment) in self.segments.iter().enumerate() {
            let words = segment.assignments.iter().chain(&segment.argv).map(|word| shown_word(word));
            let words: Vec<_> = words.collect();
            let indent = if segment.nested { "    " } else { "  " };
            writeln!(f, "{indent}{}. {}", count + 1, printable(&words.join(" "), SHOWN_WORD))?;
            if let Some(path) = &segment.path {
                let real =
                    segment.real_path.as_ref().map(|real| format!(" -> {}", printable(real, SHOWN_WORD)));
                writeln!(
                    f,
                    "{indent}   program: {}{}",
                    printable(path, SHOWN_WORD),
                    real.unwrap_or_default()
                )?;
            }
            let mark = if segment.satisfied { "yes" } else { "no" };
            writeln!(f, "{indent}   {mark}: {}", segment.rule)?;
            if let Some(code) = &segment.inline_eval {
                writeln!(f, "{indent}   code for an interpreter: {}", printable(code, SHOWN_WORD))?;
            }
            for add in segment.add.iter().chain(&segment.add_exact) {
                writeln!(f, "{indent}   {add}")?;
            }
        }
        if let Some(launch) = &self.launch {
            let runs = if self.verdict == "run" { "runs" } else { "after a yes it runs" };
            writeln!(f, "{runs}: {}", printable(launch, 4 * SHOWN_WORD))?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        if let Some(message) = &self.message {
            writeln!(f, "{message}")?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {hint}")?;
        }
        Ok(())
    }
}
