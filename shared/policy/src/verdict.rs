//! The answer: it runs, a person must be asked, or it does not run; and why (policy spec §0, §1.8, §1.9).
//!
//! Reads a text only where the answer depends on it. An answer that cannot be worked out is a refusal.

use crate::{
    Ask, AskFallback, DecidedBy, EffectivePolicy, Security,
    analyse::{Rules, analyse},
    inline_eval::InlineEval,
    plan::{Grant, Invocation, Launch, Miss, Plan, Segment},
    printable::printable,
    resolve::Lookup,
    shell::{Expansion, Label, Unreadable},
};

/// Longest command name that a message repeats, in characters.
const SHOWN_NAME: usize = 80;

/// Which stable error code a denial bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialKind {
    /// `SYSTEM_RUN_DISABLED`: no command runs.
    Disabled,
    /// `SYSTEM_RUN_DENIED`: this one does not.
    Denied,
}

/// Why a command does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Which stable code it bears.
    pub kind: DenialKind,
    /// The rule that refused, stable.
    pub rule_id: &'static str,
    /// The reason as events carry it, stable (§10.1).
    pub reason: &'static str,
    /// The sentence for the caller; begins with the code (§10.1).
    pub message: String,
    /// What the reader can do about it.
    pub hint: String,
}

/// May it run?
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It may, now, as this.
    Run(Launch),
    /// Only after a person's yes.
    NeedsApproval(NeedsApproval),
    /// It may not.
    Denied(Denial),
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsApproval {
    /// Why; the first is the one to show.
    pub reasons: Vec<Reason>,
    /// What runs after a yes, where it can be pinned.
    pub launch: Option<Launch>,
    /// What holds where nobody can be asked.
    pub fallback: AskFallback,
    /// The rules satisfy it, or all commands are allowed.
    pub satisfied: bool,
}

/// Why a person must be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `ask` is `always`.
    AskAlways,
    /// Code for an interpreter, under `strictInlineEval`.
    InlineEval(InlineEval),
    /// Under `strictInlineEval`, a text that may hide one.
    UnreadableInStrict(Unreadable),
    /// The text cannot be read, so nothing can satisfy it.
    Unreadable(Unreadable),
    /// A word that the shell would expand cannot be pinned (§3.9).
    Expansion(Expansion),
    /// No rule satisfies some command.
    NotAllowed,
}

impl Reason {
    /// The stable word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AskAlways => "ask-always",
            Self::InlineEval(_) | Self::UnreadableInStrict(_) => "strict-inline-eval",
            Self::Unreadable(Unreadable { label: Label::Heredoc, .. }) => "heredoc",
            Self::Unreadable(_) => "unreadable",
            Self::Expansion(_) => "execution-plan-miss",
            Self::NotAllowed => "allowlist-miss",
        }
    }

    /// Whether only a decision about this command counts, and never a fallback (§1.9).
    #[must_use]
    pub const fn is_explicit(&self) -> bool {
        match self {
            Self::InlineEval(_) | Self::UnreadableInStrict(_) | Self::Expansion(_) => true,
            Self::Unreadable(unreadable) => matches!(unreadable.label, Label::Heredoc),
            Self::AskAlways | Self::NotAllowed => false,
        }
    }
}

/// A command, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// What was read, where the answer depended on it.
    pub plan: Option<Plan>,
    /// Why nothing was.
    pub unreadable: Option<Unreadable>,
}

/// What decides, besides the rules.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The policy in force.
    pub policy: &'a EffectivePolicy,
    /// Code for interpreters needs a person's yes (§5).
    pub strict_inline_eval: bool,
}

/// Judges a command.
pub fn judge(
    invocation: Invocation<'_>,
    lookup: Lookup<'_>,
    rules: Rules<'_>,
    terms: Terms<'_>,
) -> Judgement {
    let policy = terms.policy;
    let unread = |verdict| Judgement { verdict, plan: None, unreadable: None };
    let restricted = match policy.security {
        Security::Deny => return unread(Verdict::Denied(disabled(policy.decided_by))),
        Security::Full => false,
        Security::Allowlist => true,
    };
    let by_fallback = policy.ask == Ask::Always && policy.ask_fallback == AskFallback::Allowlist;
    if !restricted && !terms.strict_inline_eval && !by_fallback {
        let verdict = match policy.ask {
            Ask::Off | Ask::OnMiss => Verdict::Run(Launch::AsSent),
            Ask::Always => Verdict::NeedsApproval(NeedsApproval {
                reasons: vec![Reason::AskAlways],
                launch: Some(Launch::AsSent),
                fallback: policy.ask_fallback,
                satisfied: true,
            }),
        };
        return unread(verdict);
    }
    let (plan, unreadable) = match analyse(invocation, lookup, rules) {
        Ok(plan) => (Some(plan), None),
        Err(unreadable) => (None, Some(unreadable)),
    };
    let verdict = decide(plan.as_ref(), unreadable, restricted, terms);
    Judgement { verdict, plan, unreadable }
}

fn decide(
    plan: Option<&Plan>,
    unreadable: Option<Unreadable>,
    restricted: bool,
    terms: Terms<'_>,
) -> Verdict {
    let policy = terms.policy;
    let mut reasons = Vec::new();
    if terms.strict_inline_eval {
        if let Some(found) = plan.and_then(Plan::inline_eval) {
            reasons.push(Reason::InlineEval(found.clone()));
        }
        // What cannot be read may hand code to anything. Where only satisfied texts run it is a miss all the same.
        if let Some(unreadable) = unreadable.filter(|_| !restricted) {
            reasons.push(Reason::UnreadableInStrict(unreadable));
        }
    }
    let pinned = plan.map(Plan::launch);
    let satisfied = plan.is_some_and(Plan::is_satisfied);
    if restricted {
        match (unreadable, &pinned) {
            (Some(unreadable), _) => reasons.push(Reason::Unreadable(unreadable)),
            (None, _) if !satisfied => reasons.push(Reason::NotAllowed),
            (None, Some(Err(expansion))) => reasons.push(Reason::Expansion(*expansion)),
            (None, _) => {}
        }
    }
    if policy.ask == Ask::Always {
        reasons.push(Reason::AskAlways);
    }
    let launch = if restricted { pinned.and_then(Result::ok) } else { Some(Launch::AsSent) };
    let strict = reasons.iter().any(|reason| reason.as_str() == "strict-inline-eval");
    match (reasons.is_empty(), launch) {
        (true, Some(launch)) => Verdict::Run(launch),
        // Nobody is asked, and only a hit of strictInlineEval asks all the same (§5, §3.9).
        (false, _) if policy.ask == Ask::Off && !strict => {
            Verdict::Denied(miss(plan, &reasons, policy.decided_by))
        }
        (_, launch) => Verdict::NeedsApproval(NeedsApproval {
            reasons,
            launch,
            fallback: policy.ask_fallback,
            satisfied: satisfied || (!restricted && policy.ask_fallback == AskFallback::Full),
        }),
    }
}

impl Judgement {
    /// What holds where nobody can be asked: the fallback, at once (§1.9). A command that needs a decision of its own
    /// is denied.
    #[must_use]
    pub fn without_approver(self) -> Self {
        let Verdict::NeedsApproval(asked) = self.verdict else { return self };
        let plan = self.plan;
        let explicit = asked.reasons.iter().any(Reason::is_explicit);
        let allowed = !explicit
            && asked.satisfied
            && match asked.fallback {
                AskFallback::Deny => false,
                AskFallback::Allowlist | AskFallback::Full => true,
            };
        // A fallback to the allowlist runs what the allowlist was asked about.
        let launch = match asked.fallback {
            AskFallback::Allowlist => plan.as_ref().and_then(|plan| plan.launch().ok()),
            AskFallback::Deny | AskFallback::Full => asked.launch,
        };
        let verdict = match launch {
            Some(launch) if allowed => Verdict::Run(launch),
            _ => Verdict::Denied(unasked(plan.as_ref(), &asked.reasons)),
        };
        Self { verdict, plan, unreadable: self.unreadable }
    }
}

fn disabled(decided_by: DecidedBy) -> Denial {
    Denial {
        kind: DenialKind::Disabled,
        rule_id: "policy.security.deny",
        reason: "security=deny",
        message: "SYSTEM_RUN_DISABLED: security=deny".to_owned(),
        hint: format!("commands are switched off; {}", how_to_allow_all(decided_by)),
    }
}

/// Denied, and nobody would be asked.
fn miss(plan: Option<&Plan>, reasons: &[Reason], decided_by: DecidedBy) -> Denial {
    let (rule_id, reason) = match reasons.first() {
        Some(Reason::Expansion(_)) => ("policy.plan.expansion", "execution-plan-miss"),
        Some(Reason::Unreadable(_)) => ("policy.allowlist.unreadable", "allowlist-miss"),
        _ => ("policy.allowlist.miss", "allowlist-miss"),
    };
    let what = if reason == "allowlist-miss" { "allowlist miss" } else { "execution plan mismatch" };
    let mut hint = how_to_allow(plan, reasons.first());
    match decided_by {
        DecidedBy::Host => {}
        DecidedBy::Config => hint.push_str("; openclaw.json of that machine sets security=allowlist"),
        DecidedBy::Request => hint.push_str("; the gateway's side asked for security=allowlist"),
    }
    Denial {
        kind: DenialKind::Denied,
        rule_id,
        reason,
        message: format!("SYSTEM_RUN_DENIED: {what} ({})", because(plan, reasons)),
        hint,
    }
}

/// Denied, since nobody could be asked.
fn unasked(plan: Option<&Plan>, reasons: &[Reason]) -> Denial {
    let (rule_id, reason) = match reasons.first() {
        Some(Reason::AskAlways) | None => ("policy.ask.always", "approval-required"),
        Some(Reason::InlineEval(_) | Reason::UnreadableInStrict(_)) => {
            ("policy.strict-inline-eval", "approval-required")
        }
        Some(Reason::Expansion(_)) => ("policy.plan.expansion", "execution-plan-miss"),
        Some(Reason::Unreadable(_)) => ("policy.allowlist.unreadable", "allowlist-miss"),
        Some(Reason::NotAllowed) => ("policy.allowlist.miss", "allowlist-miss"),
    };
    Denial {
        kind: DenialKind::Denied,
        rule_id,
        reason,
        message: format!(
            "SYSTEM_RUN_DENIED: approval required ({}), and nobody can be asked",
            because(plan, reasons)
        ),
        hint: how_to_allow(plan, reasons.first()),
    }
}

/// The first reason in words.
#[must_use]
pub fn because(plan: Option<&Plan>, reasons: &[Reason]) -> String {
    match reasons.first() {
        Some(Reason::AskAlways) | None => "ask=always".to_owned(),
        Some(Reason::InlineEval(found)) => {
            format!("{} {} requires explicit approval in strictInlineEval mode", found.program, found.form)
        }
        Some(Reason::UnreadableInStrict(unreadable)) => {
            format!("the text cannot be read in strictInlineEval mode: {unreadable}")
        }
        Some(Reason::Unreadable(unreadable)) => unreadable.to_string(),
        Some(Reason::Expansion(expansion)) => {
            format!("shell expansion in enforced arguments: {}", expansion.as_str())
        }
        Some(Reason::NotAllowed) => plan
            .and_then(|plan| plan.each().filter(|segment| segment.payload.is_none()).find_map(not_allowed))
            .unwrap_or_else(|| "not every command is allowed".to_owned()),
    }
}

/// Why a segment is not satisfied, in words.
pub(crate) fn not_allowed(segment: &Segment) -> Option<String> {
    let miss = match &segment.decided {
        Ok(Grant::Entry { .. } | Grant::SafeBin | Grant::Builtin | Grant::Skill | Grant::Payload) => {
            return None;
        }
        Err(miss) => miss,
    };
    let name = segment.argv.get(segment.subject).map_or("", String::as_str);
    let name = printable(name, SHOWN_NAME);
    Some(match miss {
        Miss::NotFound => format!("`{name}` was not found on this machine"),
        Miss::NoScript { script } => {
            format!("the script `{}` was not found on this machine", printable(script, SHOWN_NAME))
        }
        Miss::NoEntry { safe_bin: Some(why) } => format!("no entry allows `{name}`, and as a safe bin {why}"),
        Miss::NoEntry { safe_bin: None } => format!("no entry allows `{name}`"),
        Miss::Held(tag) => format!("`{name}` needs a person's yes: {}", tag.as_str()),
        Miss::Payload => format!("not every command in the text of `{name}` is allowed"),
    })
}

fn how_to_allow(plan: Option<&Plan>, reason: Option<&Reason>) -> String {
    let explain = "`node-host policy explain -- COMMAND` on that machine says what each part needs";
    match reason {
        Some(Reason::AskAlways) | None => {
            "set `ask` to `off` or `on-miss` in exec-approvals.json of the machine that runs the command and in \
             tools.exec of the gateway, if commands may run there unasked"
                .to_owned()
        }
        Some(Reason::InlineEval(_)) => {
            "put the code into a file and run that, or switch strictInlineEval off on both sides".to_owned()
        }
        Some(Reason::UnreadableInStrict(_) | Reason::Unreadable(_)) => format!(
            "write it without what stands there (one command per call, no redirection, variables or substitution), or \
             put it into a script and allow that; {explain}"
        ),
        Some(Reason::Expansion(_)) => {
            "write the names out, or quote the word if the character is meant itself".to_owned()
        }
        Some(Reason::NotAllowed) => {
            let add = plan.and_then(|plan| plan.each().find_map(crate::explain::to_add));
            let expands = plan.is_some_and(|plan| plan.launch().is_err());
            let also = if expands { "; its wildcards have to be written out too" } else { "" };
            add.map_or_else(|| explain.to_owned(), |add| format!("{add}{also}; {explain}"))
        }
    }
}

const fn how_to_allow_all(decided_by: DecidedBy) -> &'static str {
    match decided_by {
        DecidedBy::Host => {
            "to let every command run, set `security` to `full` in exec-approvals.json in the state directory of the \
             machine that runs the command"
        }
        DecidedBy::Config => {
            "to let every command run, set `tools.exec.security` to `full` in openclaw.json in the state directory of \
             the machine that runs the command"
        }
        DecidedBy::Request => {
            "the gateway's side asked for this; to let every command run, set `security` to `full` in tools.exec of \
             the gateway and leave it out of the call"
        }
    }
}

#[cfg(test)]
mod tests;
