//! What of a command could be kept as rules (policy spec §3.10).
//!
//! Every rule that is offered was tried: compiled, and asked about the very command.

use std::path::Path;

use super::{
    Keepable, Role, ToBind, Width,
    files::{moves, shown},
    interpreter::takes_code,
};
use crate::{
    AllowAlways, AllowEntry, Ask,
    allowlist::{Allowlist, Target, cwd_argv_hash},
    check_overrides,
    command::{is_shell, kind::kind_of, name::fold},
    plan::{Miss, Plan, Segment, Started},
};

/// Programs that may start others by an option, and are no interpreters for all that.
const START_BY_OPTION: [&str; 4] = ["bsdtar", "gtar", "rg", "tar"];

pub(super) fn keepable(
    plan: &Plan,
    bound: &[ToBind],
    changeable: &dyn Fn(&ToBind) -> bool,
    workdir: &Path,
    ask: Ask,
    strict_inline_eval: bool,
) -> Result<Vec<Keepable>, String> {
    if ask == Ask::Always {
        return Err("`ask` is `always`, so a person is asked every time".to_owned());
    }
    if plan.each().any(|segment| segment.expands.is_some()) {
        return Err("the shell would still expand a word, so it may mean something else next time".to_owned());
    }
    if let Some(code) = plan.inline_eval() {
        return Err(format!("it hands code to {} ({})", shown(&code.program), shown(&code.form)));
    }
    let mut missing = Missing { bound, next: 0, found: Vec::new() };
    missing.commands(&plan.segments, false)?;
    if missing.found.is_empty() {
        return Err("the rules satisfy every command already".to_owned());
    }
    let narrow = missing.found.iter().any(|subject| subject.is_interpreter);
    let own = bound.iter().find(|file| file.role != Role::Directory && changeable(file)).map(|file| {
        let path = shown(&file.path.to_string_lossy());
        format!("{path} can be changed by the node's user, so the rule would cover whatever it becomes")
    });
    let not_durable = own.or_else(|| {
        (narrow && !strict_inline_eval).then(|| {
            "a rule for an interpreter is stored only where strictInlineEval is on, so that its inline code still asks"
                .to_owned()
        })
    });
    let workdir = workdir.to_str();
    let offered: Vec<_> = [Width::Exact, Width::ProgramArgs, Width::Program]
        .into_iter()
        .filter_map(|width| {
            let mut entries: Vec<AllowEntry> = Vec::new();
            for subject in &missing.found {
                let entry = subject.entry(width, workdir)?;
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
            let list = Allowlist::compile(&entries, None, &[]);
            let holds = list.problems().is_empty()
                && missing.found.iter().all(|subject| {
                    list.find(&subject.target(workdir))
                        .is_some_and(|by| !by.star && by.by_args == (width != Width::Program))
                });
            holds.then(|| Keepable { width, entries, not_durable: not_durable.clone() })
        })
        .collect();
    if offered.is_empty() { Err("no rule can name exactly this".to_owned()) } else { Ok(offered) }
}

/// What an entry would be about: a program or the script of a shell, with its arguments.
struct Subject<'a> {
    /// As rules look at it: a script goes by its path.
    word: &'a str,
    path: &'a Path,
    real: &'a str,
    args: &'a [String],
    /// A command before may have changed the directory.
    moved: bool,
    /// It, or what it is started by, can be handed code.
    is_interpreter: bool,
    /// A rule for it with any arguments would cover other programs too.
    starts_others: bool,
}

impl Subject<'_> {
    fn target<'a>(&'a self, workdir: Option<&'a str>) -> Target<'a> {
        Target {
            word: self.word,
            path: Some(self.path),
            real: Some(Path::new(self.real)),
            args: self.args,
            cwd: workdir.filter(|_| !self.moved),
        }
    }

    fn entry(&self, width: Width, workdir: Option<&str>) -> Option<AllowEntry> {
        let (arg_pattern, source) = match width {
            Width::Exact => {
                let workdir = workdir.filter(|_| !self.moved)?;
                (Some(cwd_argv_hash(workdir, self.args)), Some(AllowAlways))
            }
            Width::ProgramArgs => (Some(these_arguments(self.args)?), None),
            Width::Program if self.starts_others => return None,
            Width::Program => (None, None),
        };
        Some(AllowEntry { pattern: exact_path(self.real)?, arg_pattern, source, ..AllowEntry::default() })
    }
}

/// Collects the commands that are not satisfied.
struct Missing<'a> {
    bound: &'a [ToBind],
    /// The index of the next segment.
    next: usize,
    found: Vec<Subject<'a>>,
}

impl<'a> Missing<'a> {
    fn commands(&mut self, segments: &'a [Segment], mut moved: bool) -> Result<(), String> {
        for segment in segments {
            let index = self.next;
            self.next += 1;
            self.command(index, segment, moved)?;
            if let Some((_, inner)) = &segment.payload {
                self.commands(inner, moved)?;
            }
            moved |= moves(segment);
        }
        Ok(())
    }

    fn command(&mut self, index: usize, segment: &'a Segment, moved: bool) -> Result<(), String> {
        let word = segment.argv.get(segment.subject).map(String::as_str).unwrap_or_default();
        let name = shown(word);
        let program =
            segment.programs.iter().find(|(at, _)| *at == segment.subject).map(|(_, program)| program);
        let names_shell = is_shell(word) || program.and_then(real_name).is_some_and(is_shell);
        if names_shell && segment.join.is_pipe() {
            return Err(format!("{name} is a shell and reads from a pipe"));
        }
        if names_shell
            && let Some((at, _)) = &segment.payload
            && segment.argv.get(*at).is_none_or(|text| text.contains(['$', '`']))
        {
            return Err(format!("the text for {name} holds `$` or a backtick"));
        }
        let is_bound = |at: usize| self.bound.iter().any(|bound| bound.segment == index && bound.word == at);
        match &segment.decided {
            Ok(_) => return Ok(()),
            // Its commands are looked at by themselves.
            Err(Miss::Payload) if is_bound(segment.subject) => return unassigned(segment),
            Err(Miss::Payload) => return Err(format!("the program {name} is not bound")),
            Err(Miss::Held(tag)) => {
                return Err(format!("no rule can satisfy {name} as it is used here ({})", tag.as_str()));
            }
            Err(Miss::NotFound) => return Err(format!("no program {name} was found")),
            Err(Miss::NoScript { script }) => {
                return Err(format!("the script {} was not found", shown(script)));
            }
            Err(Miss::NoEntry { .. }) => {}
        }
        unassigned(segment)?;
        let Some(program) = program.filter(|_| is_bound(segment.subject)) else {
            return Err(format!("the program {name} is not bound"));
        };
        // A shell is judged by its script.
        let script = segment.programs.iter().find(|(at, _)| *at > segment.subject);
        let (at, judged) = match script {
            Some((at, script)) => (*at, script),
            None if segment.shell_wrapper || names_shell => {
                return Err(format!("what {name} runs is not one file"));
            }
            None => (segment.subject, program),
        };
        let real = judged.file.real.to_str().filter(|_| is_bound(at));
        let real = real.ok_or_else(|| format!("the file of {name} is not bound"))?;
        let names = || std::iter::once(word).chain(real_name(program));
        let starts_others = names().any(|name| kind_of(&fold(name)).is_some() || takes_code(name));
        let ordinary = names().all(|name| {
            START_BY_OPTION.contains(&&*fold(name)) || kind_of(&fold(name)).is_none() && !takes_code(name)
        });
        self.found.push(Subject {
            word: if script.is_some() { real } else { word },
            path: &judged.path,
            real,
            args: segment.argv.get(at + 1..).unwrap_or_default(),
            moved,
            is_interpreter: !ordinary,
            starts_others,
        });
        Ok(())
    }
}

fn real_name(program: &Started) -> Option<&str> {
    program.file.real.file_name()?.to_str()
}

/// Assignments that would hold the command once its program is allowed (§3.4).
fn unassigned(segment: &Segment) -> Result<(), String> {
    if segment.assignments.is_empty() {
        return Ok(());
    }
    let pairs = segment.assignments.iter().map(|assigned| (assigned.name.as_str(), assigned.value.as_str()));
    let plain = segment.programs.iter().any(|(at, _)| *at == 0) && !segment.shell_wrapper;
    if plain && check_overrides(pairs).is_ok() {
        Ok(())
    } else {
        Err("no rule can satisfy these assignments before a command".to_owned())
    }
}

/// A pattern that means this path alone.
fn exact_path(real: &str) -> Option<String> {
    let special = real.contains(['*', '?', '\\', '~']) || real.trim() != real;
    (!special && real.starts_with('/')).then(|| real.to_owned())
}

/// The expression for exactly these arguments, in the form that keeps them apart (§2.5). None where it would stand for
/// others too: that form cannot tell two empty arguments from none.
fn these_arguments(args: &[String]) -> Option<String> {
    if matches!(args, [one, other] if one.is_empty() && other.is_empty())
        || args.iter().any(|arg| arg.contains('\0'))
    {
        return None;
    }
    let mut pattern = String::from("^");
    for arg in args {
        for letter in arg.chars() {
            match letter {
                '\\' | '^' | '$' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => {
                    pattern.extend(['\\', letter]);
                }
                ' '..='~' => pattern.push(letter),
                _ if letter.is_alphanumeric() => pattern.push(letter),
                _ => {
                    let mut units = [0; 2];
                    for unit in letter.encode_utf16(&mut units) {
                        pattern.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        pattern.push_str("\\x00");
    }
    if args.is_empty() {
        pattern.push_str("\\x00\\x00");
    }
    pattern.push('$');
    Some(pattern)
}
