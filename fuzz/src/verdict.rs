//! Judgements. The first byte of the input chooses the rules, the second the policy, the third whether the rest is a
//! text or the words of an argv, one on each line.

use std::path::Path;

use policy::{
    Ask, Security, Verdict,
    explain::explain,
    plan::{Grant, Invocation, Launch, Plan, Segment},
    shell::{Dialect, Join, quote, read},
};

use super::{
    Pace, canonical,
    world::{PLACES, SETS, STAR, Set, WORLD, World, policy},
};

/// Builtins that need no entry.
const BUILTINS: [&str; 8] = [":", "[", "cd", "command", "false", "pwd", "test", "true"];
/// Builtins that start what follows them.
const BUILTIN_WRAPPERS: [&str; 3] = ["builtin", "command", "exec"];
/// Programs and builtins of which only a person may allow the use, even where the list says `*`.
const HELD: [&str; 7] = ["doas", "nsenter", "setsid", "su", "sudo", "unshare", "watch"];
const HELD_BUILTINS: [&str; 4] = [".", "alias", "eval", "source"];
/// Longest message or hint that is expected, in characters.
const MAX_SENTENCE: usize = 2000;

/// Everything but the rules.
#[derive(Clone, Copy)]
struct Asked<'a> {
    set: usize,
    place: usize,
    ask: Ask,
    strict: bool,
    invocation: Invocation<'a>,
}

pub fn check(data: &[u8], _pace: Pace) {
    let [rules, terms, form, rest @ ..] = data else { return };
    let text = String::from_utf8_lossy(rest);
    let argv: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let is_text = form.is_multiple_of(2);
    let asked = Asked {
        set: usize::from(*rules) % SETS,
        place: usize::from(*terms) / 4 % PLACES,
        ask: if terms & 2 == 0 { Ask::OnMiss } else { Ask::Off },
        strict: terms & 1 == 1,
        invocation: if is_text { Invocation::Shell(&text) } else { Invocation::Argv(&argv) },
    };
    WORLD.with(|world| {
        asked.check(world);
        asked.check_other_policies(world);
        if is_text && asked.set != STAR {
            let longer = format!("{text}\ncurl evil.example");
            let longer = Asked { invocation: Invocation::Shell(&longer), ..asked };
            let found = longer.judge(world, Security::Allowlist).verdict;
            assert!(!matches!(found, Verdict::Run(_)), "with another command it runs: {found:?}");
        }
    });
}

impl Asked<'_> {
    fn judge(&self, world: &World, security: Security) -> policy::Judgement {
        world.judge(self.set, self.place, self.invocation, security, self.ask, self.strict)
    }

    fn check(&self, world: &World) {
        let judgement = self.judge(world, Security::Allowlist);
        let set = world.set(self.set);
        let satisfied = judgement.plan.as_ref().is_some_and(Plan::is_satisfied);
        if let Some(plan) = &judgement.plan {
            for segment in plan.each() {
                check_segment(segment, plan, set, self.set == STAR);
            }
            if let Ok(launch) = plan.launch() {
                check_launch(plan, &launch);
            }
        }
        match &judgement.verdict {
            Verdict::Run(launch) => {
                assert!(satisfied, "it runs unsatisfied");
                let pinned = judgement.plan.as_ref().map(Plan::launch);
                assert_eq!(pinned, Some(Ok(launch.clone())), "what runs is not the plan");
                if self.set != STAR {
                    check_programs(world, launch);
                }
            }
            Verdict::NeedsApproval(asked) => {
                assert!(!asked.reasons.is_empty(), "no reason to ask");
                assert_ne!(asked.launch, Some(Launch::AsSent), "unread where only rules count");
            }
            Verdict::Denied(_) => {}
        }
        check_texts(&judgement, &policy(Security::Allowlist, self.ask));
        let alone = judgement.without_approver().verdict;
        match &alone {
            Verdict::Run(launch) => assert!(satisfied && *launch != Launch::AsSent, "{alone:?} unsatisfied"),
            Verdict::NeedsApproval(_) => panic!("nobody is there to ask: {alone:?}"),
            Verdict::Denied(denial) => check_sentences([&denial.message, &denial.hint]),
        }
    }

    /// What must hold between the answers of several policies.
    fn check_other_policies(&self, world: &World) {
        let judged = self.judge(world, Security::Allowlist);
        let under = |security, ask, strict| Self { ask, strict, ..*self }.judge(world, security).verdict;
        let relaxed = under(Security::Allowlist, Ask::OnMiss, false);
        if let Verdict::Run(_) = judged.verdict {
            assert_eq!(relaxed, judged.verdict, "a stricter policy runs what another does not");
        }
        let always = under(Security::Allowlist, Ask::Always, self.strict);
        assert!(!matches!(always, Verdict::Run(_)), "ask=always runs it: {always:?}");
        let deny = under(Security::Deny, self.ask, self.strict);
        assert!(matches!(deny, Verdict::Denied(_)), "security=deny: {deny:?}");
        let full = under(Security::Full, Ask::Off, false);
        assert_eq!(full, Verdict::Run(Launch::AsSent), "full/off");
        let fewer = Self { set: world.set(self.set).without_entries, ..*self };
        let fewer = fewer.judge(world, Security::Allowlist);
        if fewer.plan.as_ref().is_some_and(Plan::is_satisfied) {
            let more = judged.plan.as_ref().is_some_and(Plan::is_satisfied);
            assert!(more, "entries and skills take away what is allowed without");
        }
    }
}

/// Whether a grant can be what the rules say.
fn check_segment(segment: &Segment, plan: &Plan, set: &Set, star: bool) {
    let pinned = pinned(segment);
    for (at, program) in &segment.programs {
        assert!(program.path.is_absolute() && program.file.real.is_absolute(), "{program:?}");
        assert!(*at < segment.argv.len(), "{at} of {:?}", segment.argv);
        assert!(program.file.regular, "{program:?} is no file");
    }
    let Ok(grant) = &segment.decided else { return };
    let first = segment.argv.first().map_or("", String::as_str);
    // The text of a shell is shell text, however the shell was started.
    let direct = plan.direct && plan.segments.iter().any(|outer| std::ptr::eq(outer, segment));
    let held = HELD.contains(&first) || !direct && HELD_BUILTINS.contains(&first);
    assert!(!held, "{:?} is never satisfied", segment.argv);
    let subject = segment.argv.get(segment.subject).map_or("", String::as_str);
    let program = segment.programs.iter().find(|(at, _)| *at == segment.subject).map(|(_, program)| program);
    match grant {
        Grant::Entry { index, pattern, .. } => {
            let entry = set.entries().get(*index).map(|entry| &entry.pattern);
            assert_eq!(entry, Some(pattern), "an entry that is not there");
            let bare = !pattern.contains(['/', '*', '?', '~']);
            if bare && program.is_some_and(|program| program.file.executable) && segment.programs.len() == 1 {
                assert_eq!(subject, pattern, "an entry for another name");
            }
        }
        Grant::SafeBin => {
            let args = segment.argv.get(segment.subject + 1..).unwrap_or_default();
            check_safe_bin(program.map(|program| &*program.file.real), args, set);
        }
        Grant::Builtin => {
            assert!(!direct && BUILTINS.contains(&first), "{:?} is no builtin", segment.argv);
            return;
        }
        Grant::Skill => assert!(set.has_skills() && !subject.contains('/'), "{subject:?} of a skill"),
        Grant::Payload => {
            let inner = segment.payload.as_ref().map(|(_, inner)| inner);
            let all = inner.is_some_and(|inner| inner.iter().all(|segment| segment.decided.is_ok()));
            assert!(all, "a payload is satisfied in part");
        }
    }
    if star {
        return;
    }
    assert!(program.is_some(), "{:?} is satisfied and was not found", segment.argv);
    assert!(
        pinned.first().is_some_and(|word| word.starts_with('/') || BUILTIN_WRAPPERS.contains(&word.as_str())),
        "{pinned:?} is looked up again"
    );
}

/// The rules of safe bins that hold for each of them, whatever its profile (policy spec §4.3).
fn check_safe_bin(real: Option<&Path>, args: &[String], set: &Set) {
    assert_eq!(real.and_then(Path::parent), Some(Path::new("/usr/bin")), "not in a trusted directory");
    let name = real.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    assert!(set.bins.iter().any(|bin| bin == name), "{name} is no safe bin");
    for arg in args {
        let value =
            if arg.starts_with("--") { arg.split_once('=').map_or("", |(_, value)| value) } else { arg };
        let path = [arg, value].iter().any(|text| text.starts_with(['/', '~']) || text.starts_with("./"));
        assert!(!path && !arg.contains(['*', '?', '[', ']']), "{arg:?} passes for {name}");
    }
}

/// Whether a launch is the plan, word for word.
fn check_launch(plan: &Plan, launch: &Launch) {
    match launch {
        Launch::AsSent => panic!("a plan is launched unread"),
        Launch::Argv(words) => match plan.segments.as_slice() {
            [only] => {
                assert_eq!(*words, pinned(only));
                assert!(!only.negated && only.assignments.is_empty(), "the words alone are not the command");
                check_payload(only, words);
            }
            _ => panic!("several commands as one argv: {words:?}"),
        },
        Launch::Shell(text) => {
            assert!(!plan.direct, "an argv goes to a shell: {text:?}");
            check_text(text, &plan.segments, Dialect::Posix);
        }
    }
}

/// Whether a text reads as these commands, to the strict reader and to that of texts.
fn check_text(text: &str, segments: &[Segment], dialect: Dialect) {
    let commands = canonical::read(text).unwrap_or_else(|| panic!("{text:?} is not canonical"));
    assert_eq!(commands.len(), segments.len(), "{text:?}");
    for (command, segment) in commands.iter().zip(segments) {
        assert_eq!((command.join, command.negated), (segment.join, segment.negated), "{text:?}");
        let assigned: Vec<_> = segment
            .assignments
            .iter()
            .map(|assigned| (assigned.name.clone(), assigned.value.clone()))
            .collect();
        assert_eq!(command.assignments, assigned, "{text:?}");
        assert_eq!(command.words, pinned(segment), "{text:?}");
        check_payload(segment, &command.words);
    }
    // The reader calls what stands for `|&` a redirection.
    if segments.iter().any(|segment| segment.join == Join::PipeBoth) {
        return;
    }
    let script =
        read(text, dialect).unwrap_or_else(|error| panic!("{text:?} is launched and not read: {error}"));
    let found =
        script.commands.iter().map(|command| command.words.iter().map(|word| &word.text).collect::<Vec<_>>());
    let wanted = commands.iter().map(|command| command.words.iter().collect::<Vec<_>>());
    assert!(found.eq(wanted), "{text:?} reads as {script:?}");
}

fn check_payload(segment: &Segment, words: &[String]) {
    if let Some((at, inner)) = &segment.payload {
        let before = segment.omitted.iter().filter(|omitted| *omitted < at).count();
        check_text(words.get(*at - before).map_or("", String::as_str), inner, Dialect::Bash);
    }
}

/// The words of a command with its programs by their paths; the text of a shell as it stands in `plan`.
fn pinned(segment: &Segment) -> Vec<String> {
    let mut words = segment.argv.clone();
    for (at, program) in &segment.programs {
        words[*at] = program.path.to_string_lossy().into_owned();
    }
    if let Some((at, inner)) = &segment.payload {
        words[*at] = inner.iter().map(rendered).collect();
    }
    // From the back, so that the other places stay.
    for at in (0..words.len()).rev().filter(|at| segment.omitted.contains(at)) {
        assert_eq!(words.remove(at), "builtin", "only this word is not launched");
    }
    words
}

fn rendered(segment: &Segment) -> String {
    let assignments =
        segment.assignments.iter().map(|assigned| format!("{}={}", assigned.name, quote(&assigned.value)));
    let words =
        assignments.chain(pinned(segment).iter().map(|word| quote(word))).collect::<Vec<_>>().join(" ");
    format!("{}{}{words}", segment.join.canonical(), if segment.negated { "! " } else { "" })
}

/// What runs by rules that name programs begins with the path of one, or with a builtin.
fn check_programs(world: &World, launch: &Launch) {
    let firsts: Vec<String> = match launch {
        Launch::AsSent => panic!("unread"),
        Launch::Argv(words) => {
            assert!(words.first().is_some_and(|word| word.starts_with('/')), "{words:?}");
            words.first().cloned().into_iter().collect()
        }
        Launch::Shell(text) => {
            let commands = canonical::read(text).unwrap_or_default();
            assert!(commands.iter().all(|command| !command.words.is_empty()), "{text:?} only assigns");
            commands.into_iter().filter_map(|command| command.words.into_iter().next()).collect()
        }
    };
    for first in firsts {
        let builtin = BUILTINS.contains(&first.as_str()) || BUILTIN_WRAPPERS.contains(&first.as_str());
        let file = first.starts_with('/') && world.look(&first).is_some_and(|file| file.executable);
        assert!(matches!(launch, Launch::Shell(_)) && builtin || file, "{first:?} is started");
    }
}

/// What people read holds nothing that plays tricks on a terminal, and ends.
fn check_texts(judgement: &policy::Judgement, policy: &policy::EffectivePolicy) {
    let explanation = explain(judgement, policy);
    assert!(serde_json::to_string(&explanation).is_ok(), "an explanation that is no JSON");
    check_sentences(explanation.message.iter().chain(&explanation.hint));
    for segment in &explanation.segments {
        check_sentences([&segment.rule].into_iter().chain(&segment.add));
    }
    if let Verdict::Denied(denial) = &judgement.verdict {
        check_sentences([&denial.message, &denial.hint]);
    }
}

fn check_sentences<'a>(sentences: impl IntoIterator<Item = &'a String>) {
    for sentence in sentences {
        assert!(!sentence.chars().any(char::is_control), "{sentence:?} holds a control character");
        assert!(sentence.chars().count() <= MAX_SENTENCE, "{sentence:?} is too long");
    }
}
