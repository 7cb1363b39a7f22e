//! Command cases: setup, command, verdict, why.

use policy::{
    Ask, AskFallback, DenialKind, Judgement, Security, Verdict,
    plan::{Grant, Launch, Miss, Plan, Segment},
    shell::quote,
};

use crate::{
    Case,
    setup::{Command, Setup},
};

pub(crate) fn check(case: &Case<'_>) -> Result<(), String> {
    let [setup, command, verdict, why @ ..] = case.columns.as_slice() else {
        return Err("a column is missing".to_owned());
    };
    if why.len() > 1 {
        return Err("a column too many".to_owned());
    }
    let setup = Setup::read(setup)?;
    let command = Command::read(command, &setup)?;
    let judgement = setup.judge(&command);
    let found = Found::of(&judgement);
    let mut wanted = vec![("verdict", (*verdict).to_owned())];
    wanted.extend(read_why(why.first().copied().unwrap_or_default())?);
    if let Some((key, value)) = wanted.iter().find(|(key, value)| !found.has(key, value)) {
        let wish = if *key == "verdict" { value.clone() } else { format!("{key}={value}") };
        return Err(format!("expected {wish}, found {}", found.shown()));
    }
    let default = setup.host.security == Security::Allowlist
        && setup.host.ask == Ask::OnMiss
        && setup.host.ask_fallback == AskFallback::Deny
        && setup.requested.security == Security::Full
        && setup.requested.ask == Ask::Off;
    if default { other_policies(&setup, &command, &judgement) } else { Ok(()) }
}

/// What must hold of any command that was judged by the default policy when the policy is another.
fn other_policies(setup: &Setup, command: &Command, judged: &Judgement) -> Result<(), String> {
    let under = |security, ask, strict| {
        let mut other = setup.clone();
        other.host.security = security;
        other.host.ask = ask;
        other.strict = strict;
        other.judge(command)
    };
    let expect = |what: &str, holds: bool, found: &Judgement| {
        if holds { Ok(()) } else { Err(format!("{what}: found {}", Found::of(found).shown())) }
    };
    let off = under(Security::Allowlist, Ask::Off, setup.strict);
    let inline = matches!(&judged.verdict, Verdict::NeedsApproval(asked)
        if asked.reasons.iter().any(|reason| reason.as_str() == "strict-inline-eval"));
    let same = match &judged.verdict {
        Verdict::Run(_) => off.verdict == judged.verdict,
        Verdict::NeedsApproval(_) if inline => matches!(off.verdict, Verdict::NeedsApproval(_)),
        Verdict::NeedsApproval(_) => matches!(off.verdict, Verdict::Denied(_)),
        Verdict::Denied(_) => false,
    };
    expect("with ask=off what is not asked for is denied", same, &off)?;
    let alone = judged.clone().without_approver();
    let denied = matches!(judged.verdict, Verdict::Run(_)) || matches!(alone.verdict, Verdict::Denied(_));
    expect("with askFallback=deny nobody's answer is a no", denied, &alone)?;
    let always = under(Security::Allowlist, Ask::Always, setup.strict);
    let asked = matches!(&always.verdict, Verdict::NeedsApproval(asked)
        if asked.reasons.iter().any(|reason| reason.as_str() == "ask-always"));
    expect("with ask=always a person is asked", asked, &always)?;
    let full = under(Security::Full, Ask::Off, false);
    expect("full/off runs everything as sent", full.verdict == Verdict::Run(Launch::AsSent), &full)?;
    let deny = under(Security::Deny, Ask::Always, true);
    let disabled = matches!(&deny.verdict, Verdict::Denied(denial) if denial.kind == DenialKind::Disabled);
    expect("deny runs nothing", disabled, &deny)
}

/// The last column, as keys and values.
fn read_why(column: &str) -> Result<Vec<(&str, String)>, String> {
    let mut wanted = Vec::new();
    let mut rest = column;
    while !rest.is_empty() {
        if let Some((key @ ("launch" | "sh"), text)) = rest.split_once('=') {
            wanted.push((key, crate::unescape(text)?));
            break;
        }
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        wanted.push(match word.split_once('=') {
            Some(("reason", value)) => ("reason", value.to_owned()),
            Some((key @ ("label" | "tag" | "by" | "eval" | "vars" | "alone"), value)) => {
                (key, value.to_owned())
            }
            Some((key, _)) => return Err(format!("`{key}` is no word of the last column")),
            None if word == "as-sent" => ("launch", word.to_owned()),
            None => ("reason", word.to_owned()),
        });
    }
    Ok(wanted)
}

/// A judgement in the words of the last column.
struct Found {
    facts: Vec<(&'static str, String)>,
}

impl Found {
    fn of(judgement: &Judgement) -> Self {
        let mut found = Self { facts: Vec::new() };
        let verdict = match &judgement.verdict {
            Verdict::Run(launch) => {
                found.launch(launch);
                "run"
            }
            Verdict::NeedsApproval(asked) => {
                found.facts.extend(asked.reasons.iter().map(|reason| ("reason", reason.as_str().to_owned())));
                if let Some(launch) = &asked.launch {
                    found.launch(launch);
                }
                let alone = matches!(judgement.clone().without_approver().verdict, Verdict::Run(_));
                found.add("alone", if alone { "run" } else { "denied" });
                "ask"
            }
            Verdict::Denied(denial) => {
                found.add("reason", denial.reason);
                "denied"
            }
        };
        found.add("verdict", verdict);
        if let Some(unreadable) = judgement.unreadable {
            found.add("label", &unreadable.label.as_str().replace(' ', "-"));
        }
        if let Some(plan) = &judgement.plan {
            found.plan(plan);
        }
        found
    }

    fn add(&mut self, key: &'static str, value: &str) {
        self.facts.push((key, value.to_owned()));
    }

    fn plan(&mut self, plan: &Plan) {
        self.add("by", &decided(&plan.segments));
        for segment in plan.each() {
            if let Err(Miss::Held(tag)) = &segment.decided {
                self.add("tag", tag.as_str());
            }
        }
        self.add("vars", if plan.starts_shell_wrapper() { "reduced" } else { "all" });
        let code = plan.inline_eval();
        self.add(
            "eval",
            &code.map_or_else(|| "none".to_owned(), |code| format!("{}:{}", code.program, code.form)),
        );
        if code.is_some() {
            self.add("eval", "some");
        }
    }

    fn launch(&mut self, launch: &Launch) {
        match launch {
            Launch::AsSent => self.add("launch", "as-sent"),
            Launch::Argv(words) => {
                let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
                self.add("launch", &words.join(" "));
            }
            Launch::Shell(text) => self.add("sh", text),
        }
    }

    /// Whether a fact is there. Of reasons the first counts, the one that is shown.
    fn has(&self, key: &str, value: &str) -> bool {
        let mut facts = self.facts.iter().filter(|(name, _)| *name == key).map(|(_, value)| value);
        if key == "reason" {
            facts.next().is_some_and(|first| first == value)
        } else {
            facts.any(|fact| fact == value)
        }
    }

    fn shown(&self) -> String {
        let facts: Vec<_> = self.facts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.join(" ")
    }
}

/// What decided each command, with those of a shell's text in brackets.
fn decided(segments: &[Segment]) -> String {
    let words = segments.iter().map(|segment| {
        let word = match &segment.decided {
            Ok(Grant::Entry { .. }) => "entry",
            Ok(Grant::SafeBin) => "safe-bin",
            Ok(Grant::Builtin) => "builtin",
            Ok(Grant::Skill) => "skill",
            Ok(Grant::Payload) => "payload",
            Err(Miss::NotFound | Miss::NoScript { .. }) => "not-found",
            Err(Miss::NoEntry { .. }) => "no-entry",
            Err(Miss::Held(_)) => "held",
            Err(Miss::Payload) => "payload-miss",
        };
        match &segment.payload {
            Some((_, inner)) => format!("{word}({})", decided(inner)),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(",")
}
