//! Command by command: the programs, the scripts and the directories.

use std::path::{Component, Path, PathBuf};

use super::{MAX_FILES, MAX_SEGMENTS, Role, ToBind, Unbindable, shape};
use crate::{
    check_overrides,
    command::{Form, Tag, kind::kind_of, name::fold, read_command},
    inline_eval::Input,
    plan::{Grant, Miss, Plan, Segment},
    printable::printable,
    resolve::{File, Lookup},
};

/// Longest word that a message repeats, in characters.
const SHOWN: usize = 80;
/// Programs that act by the name they are called by: the name of the file says nothing.
const MULTI_CALL: [&str; 3] = ["busybox", "coreutils", "toybox"];
/// Builtins after which the working directory is not known.
const MOVERS: [&str; 3] = ["cd", "popd", "pushd"];

pub(super) fn bind(plan: &Plan, lookup: Lookup<'_>, input: Input) -> Result<Vec<ToBind>, Unbindable> {
    if plan.each().nth(MAX_SEGMENTS).is_some() {
        return Err(Unbindable::new(
            "too-many",
            format!("it has more than {MAX_SEGMENTS} commands"),
            "Run it in parts.",
        ));
    }
    let form = if plan.direct { Form::Argv } else { Form::Shell };
    let mut binder = Binder { bound: Vec::new(), next: 0 };
    binder.commands(&plan.segments, Place { lookup, input, form })?;
    Ok(binder.bound)
}

/// Whether the working directory is not known after this command.
pub(super) fn moves(segment: &Segment) -> bool {
    segment.argv.get(segment.subject).is_some_and(|word| MOVERS.contains(&word.as_str()))
}

/// A word or a path as a message shows it.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", printable(text, SHOWN))
}

/// What surrounds a command.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) lookup: Lookup<'a>,
    pub(super) input: Input,
    pub(super) form: Form,
}

struct Binder {
    bound: Vec<ToBind>,
    /// The index of the next segment.
    next: usize,
}

impl Binder {
    /// The commands of a text. A payload has none of its own (§3.6), so this goes one level deep.
    fn commands(&mut self, segments: &[Segment], mut place: Place<'_>) -> Result<(), Unbindable> {
        for segment in segments {
            let index = self.next;
            self.next += 1;
            let input = if segment.join.is_pipe() { Input::Pipe } else { place.input };
            self.command(index, segment, Place { input, ..place })?;
            if let Some((_, inner)) = &segment.payload {
                self.commands(inner, Place { input, form: Form::Shell, ..place })?;
            }
            if moves(segment) {
                place.lookup = place.lookup.without_cwd();
            }
        }
        Ok(())
    }

    fn command(&mut self, segment: usize, of: &Segment, place: Place<'_>) -> Result<(), Unbindable> {
        if let Some(expansion) = of.expands {
            return Err(Unbindable::new(
                "expansion",
                format!("the shell would still expand a word ({})", expansion.as_str()),
                "Write the names out, or quote the word where it is meant as it stands.",
            ));
        }
        assignments(of)?;
        if of.argv.is_empty() {
            return Ok(());
        }
        if of.decided == Ok(Grant::Builtin) {
            if of.argv.first().is_some_and(|word| word == "cd") {
                let (word, path, file) = directory(of, place.lookup)?;
                self.add(ToBind { segment, word, path, file, role: Role::Directory })?;
            }
            return Ok(());
        }
        let script = script(of, place)?;
        for (word, program) in &of.programs {
            let role = if script == Some(*word) { Role::Script } else { Role::Program };
            let (path, file) = (program.path.clone(), program.file.clone());
            self.add(ToBind { segment, word: *word, path, file, role })?;
        }
        let is_bound = |bound: &ToBind, word| bound.segment == segment && bound.word == word;
        if let Some(word) = script
            && !self.bound.iter().any(|bound| is_bound(bound, word))
        {
            let text = of.argv.get(word).map(String::as_str).unwrap_or_default();
            let found = place.lookup.find_script(text).ok_or_else(|| no_script(text))?;
            self.add(ToBind { segment, word, path: found.path, file: found.file, role: Role::Script })?;
        }
        Ok(())
    }

    fn add(&mut self, bound: ToBind) -> Result<(), Unbindable> {
        if bound.path.to_str().is_none() || bound.file.real.to_str().is_none() {
            return Err(Unbindable::new(
                "not-text",
                format!("the path {} is no UTF-8 text", shown(&bound.path.to_string_lossy())),
                "Give the file another name.",
            ));
        }
        if self.bound.len() == MAX_FILES {
            return Err(Unbindable::new(
                "too-many",
                format!("it uses more than {MAX_FILES} files"),
                "Run it in parts.",
            ));
        }
        self.bound.push(bound);
        Ok(())
    }
}

/// Variables set by the text: those that a request could not have either decide what runs.
fn assignments(of: &Segment) -> Result<(), Unbindable> {
    let pairs = of.assignments.iter().map(|assigned| (assigned.name.as_str(), assigned.value.as_str()));
    let Err(rejection) = check_overrides(pairs) else { return Ok(()) };
    Err(Unbindable::new(
        "assignment",
        format!("it sets variables that can change what runs: {rejection}"),
        "Leave the assignment out, or set the variable inside a script and run that.",
    ))
}

/// The word that names the script of a command, after a look at everything that it starts.
fn script(of: &Segment, place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    // Which file a wrapper's name stands for was decided when the plan was made: it then judged the wrapper itself.
    let read = read_command(&of.argv, place.form, &|_| true);
    if read.program != of.subject || matches!(of.decided, Err(Miss::Held(Tag::UntrustedWrapper))) {
        return Err(untrusted(of));
    }
    let script = shape::script(&of.argv, &read, of.payload.as_ref().map(|(at, _)| *at), place)?;
    let by_name = real_name(of).map(|name| by_real_name(of, name, read.program, place)).transpose()?;
    let script = match (script, by_name.flatten()) {
        (Some(one), Some(other)) if one != other => return Err(untrusted(of)),
        (one, other) => one.or(other),
    };
    for wrapper in read
        .wrappers
        .iter()
        .filter(|wrapper| !wrapper.builtin)
        .map(|wrapper| wrapper.at)
        .chain([read.program])
    {
        if !of.programs.iter().any(|(at, _)| *at == wrapper) {
            return Err(not_found(of, wrapper, place));
        }
    }
    match &of.decided {
        // Held for a reason that the words do not show, such as a lock that would be made.
        Err(Miss::Held(tag)) if !is_covered(*tag) => Err(Unbindable::new(
            tag.as_str(),
            format!("{} may do more than the command that it starts", shown_program(of)),
            "Run the command without it.",
        )),
        _ => Ok(script),
    }
}

/// Whether what a tag is about was looked at here: assignments by their names, and shells, multiplexers and package
/// runners by their shape.
const fn is_covered(tag: Tag) -> bool {
    match tag {
        Tag::ExactCommand | Tag::PackageRunner | Tag::ShellEnvAssignment | Tag::StandaloneAssignment => true,
        Tag::Eval
        | Tag::Source
        | Tag::Alias
        | Tag::CommandCarrier
        | Tag::ShellWrapperThroughCarrier
        | Tag::ShellStartup
        | Tag::PipeIntoShell
        | Tag::UntrustedWrapper
        | Tag::RelativeAfterCd => false,
    }
}

/// The name of the file behind the judged program, where that is another than the word's.
fn real_name(of: &Segment) -> Option<&str> {
    let (_, program) = of.programs.iter().find(|(at, _)| *at == of.subject)?;
    let name = program.file.real.file_name()?.to_str()?;
    let word = of.argv.get(of.subject)?;
    (word.rsplit('/').next() != Some(name) && !MULTI_CALL.contains(&name)).then_some(name)
}

/// The same look at a command under its file's name: a link is no way round it.
fn by_real_name(
    of: &Segment,
    name: &str,
    program: usize,
    place: Place<'_>,
) -> Result<Option<usize>, Unbindable> {
    let mut argv = of.argv.clone();
    if let Some(word) = argv.get_mut(program) {
        name.clone_into(word);
    }
    let read = read_command(&argv, place.form, &|_| true);
    if read.program != program {
        return Err(untrusted(of));
    }
    shape::script(&argv, &read, of.payload.as_ref().map(|(at, _)| *at), place)
}

/// The directory that `cd` changes to.
fn directory(of: &Segment, lookup: Lookup<'_>) -> Result<(usize, PathBuf, File), Unbindable> {
    let hint =
        "Change to one directory by its absolute path, or give it as the working directory of the request.";
    let word = match of.argv.as_slice() {
        [_, dir] if !dir.starts_with('-') => 1,
        [_, dashes, _] if dashes == "--" => 2,
        _ => return Err(Unbindable::new("directory", "where `cd` leads is not in its words", hint)),
    };
    let text = of.argv.get(word).map(String::as_str).unwrap_or_default();
    let absolute = || {
        let mut path = if text.starts_with('/') { PathBuf::new() } else { lookup.cwd?.to_path_buf() };
        let mut up = !text.starts_with('/');
        for part in Path::new(text).components() {
            match part {
                Component::ParentDir if up => drop(path.pop()),
                // A shell drops the part before `..` unread; behind a link the system comes elsewhere.
                Component::ParentDir => return None,
                Component::CurDir => {}
                Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                    up = false;
                    path.push(part);
                }
            }
        }
        Some(path)
    };
    let found = (!text.is_empty() && text != "-" && !text.contains('\0'))
        .then(absolute)
        .flatten()
        .and_then(|path| Some((lookup.files.look(&path).filter(|file| !file.regular)?, path)));
    let Some((file, path)) = found else {
        return Err(Unbindable::new(
            "directory",
            format!("the directory {} is not found", shown(text)),
            hint,
        ));
    };
    Ok((word, path, file))
}

fn untrusted(of: &Segment) -> Unbindable {
    Unbindable::new(
        "untrusted-wrapper",
        format!("{} may start another program than its words say", shown_program(of)),
        "Run the inner command itself, or name the wrapper as the system has it.",
    )
}

fn not_found(of: &Segment, at: usize, place: Place<'_>) -> Unbindable {
    let word = of.argv.get(at).map(String::as_str).unwrap_or_default();
    let relative = word.contains('/') && !word.starts_with('/');
    if place.lookup.cwd.is_none() && relative {
        return Unbindable::new(
            Tag::RelativeAfterCd.as_str(),
            format!("{} is looked for after a change of directory", shown(word)),
            "Write the absolute path, or give the directory as the working directory of the request.",
        );
    }
    Unbindable::new(
        "not-found",
        format!("no program {} was found", shown(word)),
        "Check the name and PATH; for a builtin of the shell, write the text into a script and run that.",
    )
}

pub(super) fn no_script(word: &str) -> Unbindable {
    Unbindable::new(
        "no-script",
        format!("the script {} was not found", shown(word)),
        "Name one existing file, by its absolute path where the command changes its directory.",
    )
}

fn shown_program(of: &Segment) -> String {
    let word = of.argv.get(of.subject).map(String::as_str).unwrap_or_default();
    shown(if kind_of(&fold(word)).is_some() { word } else { of.argv.first().map_or(word, String::as_str) })
}
