//! The chain of rules behind a judgement, for people and as JSON.

use std::fmt;

use serde::Serialize;

use crate::{
    DecidedBy, EffectivePolicy,
    command::Tag,
    plan::{Grant, Launch, Miss, Segment},
    printable::printable,
    shell::quote,
    verdict::{Judgement, Reason, Verdict, not_allowed},
};

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
    /// Whose `security` that is: `host` or `request`.
    pub decided_by: &'static str,
    /// `ask` in force.
    pub ask: &'static str,
    /// `askFallback` in force.
    pub ask_fallback: &'static str,
    /// Where and why the text cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<UnreadableText>,
    /// Each command; empty where the answer does not depend on them.
    pub segments: Vec<ExplainedSegment>,
    /// What is launched, or would be after a yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<String>,
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
        decided_by: match policy.decided_by {
            DecidedBy::Host => "host",
            DecidedBy::Request => "request",
        },
        ask: policy.ask.as_str(),
        ask_fallback: policy.ask_fallback.as_str(),
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
        argv: segment.argv.clone(),
        program: segment.argv.get(segment.subject).cloned().unwrap_or_default(),
        real_path: real.filter(|real| Some(real) != path.as_ref()),
        path,
        satisfied: segment.decided.is_ok(),
        rule: rule(segment),
        add: to_add(segment),
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

/// What would have to be added for a command to be satisfied, where adding helps.
pub(crate) fn to_add(segment: &Segment) -> Option<String> {
    let allow = |at: usize| {
        let (_, program) = segment.programs.iter().find(|(index, _)| *index == at)?;
        let real = program.file.real.to_str()?;
        Some(format!("to allow it with any arguments: `node-host policy allow {}`", shown_word(real)))
    };
    match segment.decided.as_ref().err()? {
        // The last one found is what runs: a script, where a shell runs one.
        Miss::NoEntry { .. } => allow(segment.programs.last()?.0),
        Miss::NotFound => Some("install it, or write its absolute path".to_owned()),
        Miss::Held(Tag::RelativeAfterCd) => Some("write the program's absolute path".to_owned()),
        Miss::Held(Tag::ShellEnvAssignment | Tag::StandaloneAssignment) => {
            Some("give variables in the call's `env` instead".to_owned())
        }
        Miss::Held(_) | Miss::Payload => None,
    }
}

fn shown_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
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
            "policy: security={} (by the {}) ask={} askFallback={}",
            self.security, self.decided_by, self.ask, self.ask_fallback
        )?;
        if let Some(unreadable) = self.unreadable {
            writeln!(f, "cannot be read: {} at byte {}", unreadable.label, unreadable.at)?;
        }
        for (count, segment) in self.segments.iter().enumerate() {
            let words: Vec<_> = segment.argv.iter().map(|word| shown_word(word)).collect();
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
            if let Some(add) = &segment.add {
                writeln!(f, "{indent}   {add}")?;
            }
        }
        if let Some(launch) = &self.launch {
            writeln!(f, "runs: {}", printable(launch, 4 * SHOWN_WORD))?;
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
