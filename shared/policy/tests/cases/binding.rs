//! What a yes binds, and what could be kept as rules: setup, command, answer, what.

use policy::{
    AllowAlways, Ask,
    bind::{Keepable, Role, ToBind, Unbindable, Width, bind, keepable},
    plan::{Miss, Plan},
    shell::quote,
};
use proptest::prelude::*;

use crate::{
    Case,
    setup::{Command, Setup},
};

/// `bind.txt`: `yes` and the files (`SEGMENT.WORD=ROLE:PATH`), or `no` and the shape.
pub(crate) fn check_bind(case: &Case<'_>) -> Result<(), String> {
    let [setup, command, answer, what] = case.columns.as_slice() else {
        return Err("four columns are wanted after the id".to_owned());
    };
    let setup = Setup::read(setup)?;
    let command = Command::read(command, &setup)?;
    let found = match bound(&setup, &command)? {
        (_, Ok(files)) => format!("yes\t{}", files.iter().map(shown).collect::<Vec<_>>().join(" ")),
        (_, Err(refused)) => format!("no\t{}", refused.shape),
    };
    let wanted = format!("{answer}\t{}", crate::unescape(what)?);
    if found == wanted { Ok(()) } else { Err(format!("expected {wanted:?}, found {found:?}")) }
}

/// `keep.txt`: `yes` and the widths, each with `~` where it cannot be stored for good and with its rules; or `no` and a
/// part of the reason.
pub(crate) fn check_keep(case: &Case<'_>) -> Result<(), String> {
    let [setup, command, answer, what] = case.columns.as_slice() else {
        return Err("four columns are wanted after the id".to_owned());
    };
    let setup = Setup::read(setup)?;
    let command = Command::read(command, &setup)?;
    let wanted = crate::unescape(what)?;
    match (kept(&setup, &command)?, *answer) {
        (Ok(offered), "yes") => {
            let found = offered.iter().map(shown_width).collect::<Vec<_>>().join(" ");
            if found != wanted {
                return Err(format!("expected `{wanted}`, found `{found}`"));
            }
            round_trip(&setup, &command, &offered)
        }
        (Err(reason), "no") if reason.contains(&wanted) => Ok(()),
        (found, _) => Err(format!("expected {answer} `{wanted}`, found {found:?}")),
    }
}

type Bound = (Plan, Result<Vec<ToBind>, Unbindable>);

/// The plan of a command and what it is bound to, with what must hold of every answer.
fn bound(setup: &Setup, command: &Command) -> Result<Bound, String> {
    let plan = setup.plan(command, &[])?;
    let bound = bind(&plan, setup.usual_lookup(), setup.input);
    match &bound {
        Ok(files) => {
            for (at, file) in files.iter().enumerate() {
                let before = files.iter().take(at);
                if before.into_iter().any(|other| (other.segment, other.word) == (file.segment, file.word)) {
                    return Err(format!("{} is there twice", shown(file)));
                }
                if plan.each().nth(file.segment).and_then(|segment| segment.argv.get(file.word)).is_none() {
                    return Err(format!("{} is no word", shown(file)));
                }
            }
            if plan.launch().is_err() {
                return Err("it is bound and cannot be launched".to_owned());
            }
            for (index, segment) in plan.each().enumerate() {
                for (word, _) in &segment.programs {
                    if !files.iter().any(|file| (file.segment, file.word) == (index, *word)) {
                        return Err(format!("the program {index}.{word} is not bound"));
                    }
                }
            }
        }
        Err(refused) => {
            let clause = !refused.message.is_empty() && !refused.message.ends_with('.');
            if !clause || !refused.hint.ends_with('.') || refused.shape.is_empty() {
                return Err(format!("no clause, no way out, or no shape: {refused:?}"));
            }
        }
    }
    Ok((plan, bound))
}

fn shown(file: &ToBind) -> String {
    let role = match file.role {
        Role::Program => "program",
        Role::Script => "script",
        Role::Directory => "directory",
    };
    format!("{}.{}={role}:{}", file.segment, file.word, file.path.display())
}

fn kept(setup: &Setup, command: &Command) -> Result<Result<Vec<Keepable>, String>, String> {
    let (plan, bound) = bound(setup, command)?;
    let files = match bound {
        Ok(files) => files,
        Err(refused) => return Ok(Err(format!("unbindable: {}", refused.shape))),
    };
    let changeable = |file: &ToBind| {
        assert_ne!(file.role, Role::Directory);
        setup.changeable.iter().any(|path| file.file.real.starts_with(path))
    };
    Ok(keepable(&plan, &files, &changeable, &setup.cwd, setup.host.ask, setup.strict))
}

fn shown_width(keepable: &Keepable) -> String {
    let word = match keepable.width {
        Width::Exact => "exact",
        Width::ProgramArgs => "args",
        Width::Program => "program",
    };
    let durable = if keepable.not_durable.is_some() { "~" } else { "" };
    let rules = keepable.entries.iter().map(|entry| {
        let arguments = entry.arg_pattern.as_deref().filter(|_| keepable.width == Width::ProgramArgs);
        arguments.map_or_else(|| entry.pattern.clone(), |arguments| format!("{}@{arguments}", entry.pattern))
    });
    format!("{word}{durable}={}", rules.collect::<Vec<_>>().join(","))
}

/// What a kept rule must do: satisfy the same command, and no other than its width says.
fn round_trip(setup: &Setup, command: &Command, offered: &[Keepable]) -> Result<(), String> {
    let mut widths: Vec<_> = offered.iter().map(|keepable| keepable.width).collect();
    widths.dedup();
    if widths.len() != offered.len() || !widths.is_sorted() {
        return Err(format!("not from narrow to wide: {widths:?}"));
    }
    for keepable in offered {
        let width = keepable.width;
        let satisfied = |setup: &Setup, command: &Command| {
            setup.plan(command, &keepable.entries).map(|plan| plan.is_satisfied())
        };
        if !satisfied(setup, command)? {
            return Err(format!("{width:?} does not satisfy the command itself"));
        }
        let bound = keepable.entries.iter().all(|entry| match width {
            Width::Exact => entry.source == Some(AllowAlways) && entry.arg_pattern.is_some(),
            Width::ProgramArgs => entry.source.is_none() && entry.arg_pattern.is_some(),
            Width::Program => entry.source.is_none() && entry.arg_pattern.is_none(),
        });
        if !bound {
            return Err(format!("{width:?} has {:?}", keepable.entries));
        }
        // Only absolute names: what the directory holds must not decide.
        let mut elsewhere = setup.clone();
        elsewhere.cwd = "/srv".into();
        if width == Width::Exact && satisfied(&elsewhere, command)? {
            return Err("the narrowest holds in another directory".to_owned());
        }
        for other in with_other_arguments(setup, command)? {
            if width < Width::Program && satisfied(setup, &other)? {
                return Err(format!("{width:?} holds for {other:?}"));
            }
        }
    }
    Ok(())
}

/// The command with one argument more, for each of its programs that is not satisfied.
fn with_other_arguments(setup: &Setup, command: &Command) -> Result<Vec<Command>, String> {
    if let Command::Words(words) = command {
        let longer = |more: &str| Command::Words(words.iter().cloned().chain([more.to_owned()]).collect());
        return Ok(vec![longer("more"), longer("")]);
    }
    let plan = setup.plan(command, &[])?;
    let texts = |more: &str| {
        // What another command of the text may have for arguments is kept too, and the form that keeps arguments apart
        // cannot tell two empty ones from none.
        let is_other = |longer: usize| {
            plan.segments.iter().enumerate().all(|(index, segment)| {
                let last = segment.argv.last().map(String::as_str);
                if index == longer { !(more.is_empty() && last == Some("")) } else { last != Some(more) }
            })
        };
        let missing = plan.segments.iter().enumerate().filter(|(index, segment)| {
            matches!(segment.decided, Err(Miss::NoEntry { .. })) && is_other(*index)
        });
        let text = |longer: usize| {
            let mut text = String::new();
            for (index, segment) in plan.segments.iter().enumerate() {
                text += segment.join.canonical();
                for assigned in &segment.assignments {
                    text += &format!("{}={} ", assigned.name, quote(&assigned.value));
                }
                let words = segment.argv.iter().map(|word| quote(word));
                text += &words.chain((index == longer).then(|| quote(more))).collect::<Vec<_>>().join(" ");
            }
            Command::Text(text)
        };
        missing.map(|(index, _)| text(index)).collect::<Vec<_>>()
    };
    Ok([texts("more"), texts("")].concat())
}

/// Words that a command may have behind its program.
fn argument() -> impl Strategy<Value = String> {
    const TRICKY: [&str; 17] = [
        "", " ", "a b", "-c", "a.b", "^a$", "(", "[", "x|y", "\\", "\n", "é", "\u{202e}", "😀", "*", "$x",
        "-",
    ];
    prop_oneof![proptest::sample::select(&TRICKY[..]).prop_map(str::to_owned), "[ -~]{0,6}", "\\PC{0,3}"]
}

/// Commands of which some can be bound and kept.
fn command() -> impl Strategy<Value = String> {
    const HEADS: &[&str] = &[
        "git",
        "rg",
        "ls",
        "nice git",
        "env ls",
        "timeout 9 rg",
        "A=1 git",
        "PATH=/x git",
        "python3 tool.py",
        "python3",
        "bash ok.sh",
        "sh ./ok.sh",
        "bash",
        "./run.sh",
        "cd sub",
        "cd /srv/app && ls",
        "make",
        "awk -f notes.txt",
        "sed",
        "npm run x",
        "npx tsx ./tool.py",
        "find",
        "xargs ls",
        "sudo git",
        "bash -c 'git log; rg x'",
        "head -n 1",
        "nosuch",
        "busybox wget",
        "tool",
        "A=1",
    ];
    const JOINS: [&str; 4] = ["; ", " && ", " || ", " | "];
    let segment = || (proptest::sample::select(HEADS), proptest::collection::vec(argument(), 0..3));
    let more = (proptest::sample::select(&JOINS[..]), segment());
    let write = |(head, args): (&str, Vec<String>)| {
        args.iter().fold(head.to_owned(), |text, arg| format!("{text} {}", quote(arg)))
    };
    (segment(), proptest::collection::vec(more, 0..3)).prop_map(move |(first, rest)| {
        rest.into_iter().fold(write(first), |text, (join, segment)| format!("{text}{join}{}", write(segment)))
    })
}

proptest! {
    #[test]
    fn a_kept_rule_satisfies_its_own_command_and_nothing_wider(text in command(), strict in any::<bool>()) {
        let mut setup = Setup::read("").map_err(TestCaseError::fail)?;
        setup.strict = strict;
        let command = Command::Text(text);
        // A quoted text may hold what the reader refuses, such as NUL.
        if setup.plan(&command, &[]).is_ok() {
            let offered = kept(&setup, &command).map_err(TestCaseError::fail)?;
            if let Ok(offered) = offered {
                round_trip(&setup, &command, &offered).map_err(TestCaseError::fail)?;
            }
            setup.host.ask = Ask::Always;
            prop_assert!(kept(&setup, &command).map_err(TestCaseError::fail)?.is_err());
        }
    }

    #[test]
    fn nothing_wider_is_bound_under_a_star(text in command()) {
        // What `*` satisfies is bound by the same rules as what nothing satisfies.
        let plain = Setup::read("").map_err(TestCaseError::fail)?;
        let star = Setup::read("allow=*").map_err(TestCaseError::fail)?;
        let command = Command::Text(text);
        if let (Ok((_, plain)), Ok((_, star))) = (bound(&plain, &command), bound(&star, &command)) {
            let words = |bound: Result<Vec<ToBind>, Unbindable>| {
                bound.map(|files| files.iter().map(|file| (file.segment, file.word, file.file.clone())).collect::<Vec<_>>())
                    .map_err(|_| ())
            };
            prop_assert_eq!(words(plain), words(star));
        }
    }
}
