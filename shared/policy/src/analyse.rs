//! From an invocation to a plan: read the text, find what each command starts, ask the rules (policy spec §0 steps 6
//! and 7).

use crate::{
    allowlist::{Allowlist, Matched, Target},
    check_overrides,
    command::{Form, ShellUse, Started as Read, Subject, Tag, is_shell, read_command},
    inline_eval::{Input, find_inline_eval},
    plan::{Assigned, Grant, Invocation, Miss, Plan, Segment, Started},
    resolve::{Lookup, Program},
    safe_bins::{SafeBinMiss, SafeBins},
    shell::{self, Dialect, Expansion, Join, SimpleCommand, Unreadable},
    skills::Skills,
};

/// What may satisfy a command.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The entries of the host's document.
    pub allowlist: &'a Allowlist,
    /// The safe bins of the host's configuration.
    pub safe_bins: &'a SafeBins,
    /// The programs of skills; empty where they count for nothing.
    pub skills: &'a Skills,
    /// Where the standard input of the first command comes from.
    pub input: Input,
}

/// Builtins that are satisfied without an entry (§3.8).
const SAFE_BUILTINS: [&str; 7] = [":", "[", "cd", "false", "pwd", "test", "true"];
/// Programs that act by the name they are called by.
const MULTI_CALL: [&str; 3] = ["busybox", "coreutils", "toybox"];
/// Builtins after which the working directory is not known.
const MOVERS: [&str; 3] = ["cd", "popd", "pushd"];

/// Reads an invocation and judges each of its commands.
///
/// # Errors
/// The text cannot be read. An argv always can.
pub fn analyse(invocation: Invocation<'_>, lookup: Lookup<'_>, rules: Rules<'_>) -> Result<Plan, Unreadable> {
    match invocation {
        Invocation::Argv(argv) => {
            let reader = Reader { rules, form: Form::Argv, nested: false };
            let words = Words { argv: argv.to_vec(), ..Words::default() };
            Ok(Plan { segments: vec![reader.segment(words, lookup, rules.input)], direct: true })
        }
        Invocation::Shell(text) => {
            let script = shell::read(text, Dialect::Bash)?;
            let reader = Reader { rules, form: Form::Shell, nested: false };
            Ok(Plan { segments: reader.segments(script.commands, lookup, rules.input), direct: false })
        }
    }
}

/// The words of one command and what stands around them.
struct Words {
    join: Join,
    negated: bool,
    assignments: Vec<Assigned>,
    argv: Vec<String>,
    spans: Vec<std::ops::Range<usize>>,
    /// Of any word but the program's, or of an assigned value.
    expands: Option<Expansion>,
    /// The first word begins with `~` that the shell expands.
    home_program: bool,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            join: Join::Start,
            negated: false,
            assignments: Vec::new(),
            argv: Vec::new(),
            spans: Vec::new(),
            expands: None,
            home_program: false,
        }
    }
}

impl From<SimpleCommand> for Words {
    fn from(command: SimpleCommand) -> Self {
        let mut words = Self { join: command.join, negated: command.negated, ..Self::default() };
        for assignment in command.assignments {
            words.expands = words.expands.or(assignment.value.expands);
            words.assignments.push(Assigned { name: assignment.name, value: assignment.value.text });
        }
        for (at, word) in command.words.into_iter().enumerate() {
            if at == 0 && word.expands == Some(Expansion::Tilde) {
                words.home_program = true;
            } else {
                words.expands = words.expands.or(word.expands);
            }
            words.argv.push(word.text);
            words.spans.push(word.span);
        }
        words
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    rules: Rules<'a>,
    form: Form,
    /// The commands are those of a shell's text: a shell in it is not opened again.
    nested: bool,
}

impl Reader<'_> {
    fn segments(self, commands: Vec<SimpleCommand>, mut lookup: Lookup<'_>, input: Input) -> Vec<Segment> {
        let mut segments = Vec::with_capacity(commands.len());
        for command in commands {
            let input = if command.join.is_pipe() { Input::Pipe } else { input };
            let segment = self.segment(command.into(), lookup, input);
            if segment.argv.get(segment.subject).is_some_and(|word| MOVERS.contains(&word.as_str())) {
                lookup = lookup.without_cwd();
            }
            segments.push(segment);
        }
        segments
    }

    fn segment(self, words: Words, lookup: Lookup<'_>, input: Input) -> Segment {
        let Words { join, negated, assignments, mut argv, spans, expands, home_program } = words;
        if home_program
            && let Some(word) = argv.first_mut()
            && let Some(path) = lookup.expand_home(word)
        {
            *word = path;
        }
        let mut segment = Segment {
            join,
            negated,
            assignments,
            argv,
            omitted: Vec::new(),
            expands,
            spans,
            programs: Vec::new(),
            subject: 0,
            payload: None,
            shell_wrapper: false,
            inline_eval: None,
            decided: Err(Miss::Held(Tag::StandaloneAssignment)),
        };
        if segment.argv.is_empty() {
            segment.decided = self.held(Tag::StandaloneAssignment);
            return segment;
        }
        segment.inline_eval = find_inline_eval(&segment.argv, input);
        let trusted = |name: &str| {
            lookup.find(name).is_some_and(|program| {
                self.rules.safe_bins.is_trusted_program(&program.path, &program.file.real)
            })
        };
        let read = read_command(&segment.argv, self.form, &trusted);
        segment.subject = read.program;
        // What is started on the way is pinned too.
        for wrapper in &read.wrappers {
            let Some(word) = segment.argv.get(wrapper.at) else { continue };
            if !wrapper.builtin {
                let found = lookup.find(word).map(|found| (wrapper.at, self.started(found, false)));
                segment.programs.extend(found);
            } else if word == "builtin" {
                segment.omitted.push(wrapper.at);
            }
        }
        let found = segment.argv.get(read.program).and_then(|word| lookup.find(word));
        let mut subject = self.by_real_name(&mut segment, &read, found.as_ref(), input);
        if self.creates_lock(&segment, &read, lookup) {
            subject = Subject::Held(Tag::CommandCarrier);
        }
        let unwrapped = read.wrappers.is_empty();
        segment.decided = self.subject(&mut segment, &subject, found, unwrapped, lookup, input);
        // A wrapper would take such a path for an assignment.
        let is_assignment =
            |(_, started): &(usize, Started)| started.path.as_os_str().as_encoded_bytes().contains(&b'=');
        if !read.wrappers.is_empty() && segment.programs.iter().any(is_assignment) {
            segment.decided = self.held(Tag::CommandCarrier);
        }
        if let Some(tag) = assignment_tag(&segment)
            && segment.decided.is_ok()
        {
            segment.decided = self.held(tag);
        }
        segment
    }

    fn subject(
        self,
        segment: &mut Segment,
        subject: &Subject,
        found: Option<Program>,
        unwrapped: bool,
        lookup: Lookup<'_>,
        input: Input,
    ) -> Result<Grant, Miss> {
        let at = segment.subject;
        let Some(word) = segment.argv.get(at).cloned() else { return Err(Miss::NotFound) };
        if *subject == Subject::Program && self.is_safe_builtin(segment, &word, unwrapped) {
            return Ok(Grant::Builtin);
        }
        if let Some(program) = &found {
            let named = lookup.is_named(&word, program);
            segment.programs.push((at, self.started(program.clone(), named)));
        }
        let args = segment.argv.get(at + 1..).unwrap_or_default();
        let cwd = lookup.cwd.and_then(|cwd| cwd.to_str());
        let target = Target {
            word: &word,
            path: found.as_ref().map(|program| program.path.as_path()),
            real: found.as_ref().map(|program| program.file.real.as_path()),
            args,
            cwd,
        };
        let entry = self.rules.allowlist.find(&target);
        match subject {
            Subject::Held(tag) => {
                segment.shell_wrapper =
                    matches!(tag, Tag::ExactCommand | Tag::ShellStartup | Tag::ShellWrapperThroughCarrier);
                match entry.filter(|entry| entry.by_args && *tag == Tag::ExactCommand) {
                    Some(entry) => Ok(self.grant(entry)),
                    None => self.held(*tag),
                }
            }
            Subject::Program => {
                let decided = self.program(&word, found.as_ref(), entry, args, lookup.cwd.is_none());
                // Its rules are those of the file in the trusted directory.
                if let (Ok(Grant::SafeBin), Some(program)) = (&decided, found) {
                    segment.programs.pop();
                    segment.programs.push((at, self.started(program, false)));
                }
                decided
            }
            Subject::Shell(ShellUse::Bare) => match (entry, input) {
                (Some(entry), Input::Other) => Ok(self.grant(entry)),
                (_, Input::Pipe) => self.held(Tag::PipeIntoShell),
                (None, Input::Other) => Err(missing(found.as_ref(), None)),
            },
            Subject::Shell(ShellUse::Script { at }) => {
                segment.shell_wrapper = true;
                if let Some(entry) = entry.filter(|entry| entry.star || entry.by_args) {
                    return Ok(self.grant(entry));
                }
                let word = segment.argv.get(*at).map(String::as_str).unwrap_or_default();
                let Some(script) = lookup.find_script(word) else {
                    return Err(Miss::NoScript { script: word.to_owned() });
                };
                let allowed = script.file.real.to_str().and_then(|real| {
                    self.rules.allowlist.find(&Target {
                        // A script is named by its path, whatever its word looks like.
                        word: real,
                        path: Some(&script.path),
                        real: Some(&script.file.real),
                        args: segment.argv.get(at + 1..).unwrap_or_default(),
                        cwd,
                    })
                });
                let Program { file, .. } = script;
                segment.programs.push((*at, Started { path: file.real.clone(), file }));
                allowed.map(|entry| self.grant(entry)).ok_or(Miss::NoEntry { safe_bin: None })
            }
            Subject::Shell(ShellUse::Payload { at, dialect }) => {
                segment.shell_wrapper = true;
                let by_args = entry.filter(|entry| entry.by_args);
                let opaque = |reader: Self| match by_args {
                    Some(entry) => Ok(reader.grant(entry)),
                    None => reader.held(Tag::ExactCommand),
                };
                let text = segment.argv.get(*at).map(String::as_str).unwrap_or_default();
                // `$` may also come from the shell's own arguments, and a shell inside is not opened (§3.6).
                if self.nested || text.contains(['$', '`']) {
                    return opaque(self);
                }
                let Ok(script) = shell::read(text, *dialect) else { return opaque(self) };
                if script.commands.iter().any(|command| {
                    command.words.first().is_none_or(|word| {
                        word.text.contains(['/', '~'])
                            || word.text.ends_with("-wrapper")
                            || is_shell(&word.text)
                    })
                }) {
                    return opaque(self);
                }
                let inner = Self { form: Form::Shell, nested: true, ..self };
                let commands = inner.segments(script.commands, lookup, input);
                let satisfied = commands.iter().all(|command| command.decided.is_ok());
                segment.payload = Some((*at, commands));
                match by_args {
                    Some(entry) => Ok(self.grant(entry)),
                    None if satisfied && found.is_some() => Ok(Grant::Payload),
                    None => Err(Miss::Payload),
                }
            }
        }
    }

    /// What a command is by the name of the file behind its program's, where that is another: a link is no way round
    /// the rules for shells and wrappers. A multi-call program is what it is called by.
    fn by_real_name(
        self,
        segment: &mut Segment,
        read: &Read,
        found: Option<&Program>,
        input: Input,
    ) -> Subject {
        let as_written = read.subject.clone();
        let Some(word) = segment.argv.get(read.program) else { return as_written };
        let Some(program) = found else { return as_written };
        let Some(real) = program.file.real.file_name().and_then(|name| name.to_str()) else {
            return as_written;
        };
        if word.rsplit('/').next() == Some(real) || MULTI_CALL.contains(&real) {
            return as_written;
        }
        let mut argv = segment.argv.clone();
        if let Some(word) = argv.get_mut(read.program) {
            real.clone_into(word);
        }
        if segment.inline_eval.is_none() {
            segment.inline_eval = find_inline_eval(&argv, input);
        }
        let by_name = read_command(&argv, Form::Argv, &|_| true);
        if by_name.program != read.program {
            // It is a wrapper.
            return stricter(as_written, Tag::UntrustedWrapper);
        }
        match (by_name.subject, &as_written) {
            (Subject::Program, _) | (Subject::Shell(_), Subject::Shell(_)) => as_written,
            (Subject::Shell(ShellUse::Bare), Subject::Program) => Subject::Shell(ShellUse::Bare),
            (Subject::Shell(_), _) => stricter(as_written, Tag::ExactCommand),
            (Subject::Held(tag), _) => stricter(as_written, tag),
        }
    }

    /// Whether `flock` would make its file: then it does something that no rule for the program behind it allows.
    fn creates_lock(self, segment: &Segment, read: &Read, lookup: Lookup<'_>) -> bool {
        let behind = read.wrappers.iter().map(|wrapper| wrapper.at).skip(1).chain([read.program]);
        read.wrappers.iter().zip(behind).any(|(wrapper, behind)| {
            let word = |at: Option<usize>| at.and_then(|at| segment.argv.get(at)).map(String::as_str);
            word(Some(wrapper.at)) == Some("flock")
                && !word(behind.checked_sub(1)).is_some_and(|file| lookup.exists(file))
        })
    }

    /// How a program is launched. `named`: its name was looked up on PATH.
    fn started(self, program: Program, named: bool) -> Started {
        let Program { path, file } = program;
        let keeps_name = named || self.rules.safe_bins.is_trusted(&path);
        Started { path: if keeps_name { path } else { file.real.clone() }, file }
    }

    fn program(
        self,
        word: &str,
        found: Option<&Program>,
        entry: Option<Matched>,
        args: &[String],
        moved: bool,
    ) -> Result<Grant, Miss> {
        if let Some(entry) = entry {
            return Ok(self.grant(entry));
        }
        let Some(program) = found else {
            let relative = word.contains('/') && !word.starts_with('/');
            return Err(if moved && relative { Miss::Held(Tag::RelativeAfterCd) } else { Miss::NotFound });
        };
        if self.rules.skills.allow(word, &program.file.real) {
            return Ok(Grant::Skill);
        }
        match self.rules.safe_bins.check(&program.path, &program.file.real, args) {
            Ok(()) => Ok(Grant::SafeBin),
            Err(SafeBinMiss::NotListed) => Err(missing(found, None)),
            Err(miss) => Err(missing(found, Some(miss.to_string()))),
        }
    }

    fn is_safe_builtin(self, segment: &Segment, word: &str, unwrapped: bool) -> bool {
        if self.form != Form::Shell || !unwrapped || !segment.assignments.is_empty() {
            return false;
        }
        // `command -v` only looks a name up; `read_command` takes every other use of it for a wrapper.
        if word == "command" {
            return segment.argv.len() > 1;
        }
        // Bash evaluates a subscript in the operand of `-v` and `-R`, and with it any substitution in there.
        let evaluates = matches!(word, "test" | "[")
            && segment.argv.iter().any(|arg| matches!(arg.as_str(), "-v" | "-R") || arg.contains(['$', '`']));
        SAFE_BUILTINS.contains(&word) && !evaluates && !(word != "cd" && computes(&segment.argv))
    }

    /// A command that no rule satisfies, but perhaps `*`.
    fn held(self, tag: Tag) -> Result<Grant, Miss> {
        match self.rules.allowlist.star().filter(|_| tag.yields_to_star()) {
            Some(star) => Ok(self.grant(star)),
            None => Err(Miss::Held(tag)),
        }
    }

    fn grant(self, entry: Matched) -> Grant {
        let pattern = self.rules.allowlist.entries().get(entry.index).map(|entry| entry.pattern.clone());
        Grant::Entry { index: entry.index, pattern: pattern.unwrap_or_default(), by_args: entry.by_args }
    }
}

/// Whether `test` is to compare something else than plain numbers: ksh and its kin take an operand for arithmetic, in
/// which a name stands for a variable's value, and that for more.
fn computes(argv: &[String]) -> bool {
    let number = |at: Option<usize>| {
        let digits = |word: &String| word.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        at.and_then(|at| argv.get(at)).is_none_or(digits)
    };
    argv.iter().enumerate().any(|(at, word)| match word.as_str() {
        "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => !number(at.checked_sub(1)) || !number(Some(at + 1)),
        "-t" => !number(Some(at + 1)),
        _ => false,
    })
}

/// The stricter of what is known and a tag.
fn stricter(subject: Subject, tag: Tag) -> Subject {
    match subject {
        Subject::Held(known) if !known.yields_to_star() => Subject::Held(known),
        Subject::Held(_) | Subject::Program | Subject::Shell(_) => Subject::Held(tag),
    }
}

fn missing(found: Option<&Program>, safe_bin: Option<String>) -> Miss {
    if found.is_some() { Miss::NoEntry { safe_bin } } else { Miss::NotFound }
}

/// Why the assignments before a command hold it: a name that no caller may set, or something else than a plain
/// program behind them (§3.4). Other names are as harmless here as in a request's variables (F012).
fn assignment_tag(segment: &Segment) -> Option<Tag> {
    if segment.assignments.is_empty() {
        return None;
    }
    let pairs = segment.assignments.iter().map(|assigned| (assigned.name.as_str(), assigned.value.as_str()));
    let plain = segment.programs.iter().any(|(at, _)| *at == 0) && !segment.shell_wrapper;
    (!plain || check_overrides(pairs).is_err()).then_some(Tag::ShellEnvAssignment)
}
