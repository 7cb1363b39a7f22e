//! What a command's words say about what runs (policy spec §7.4).

use super::{
    Unbindable,
    files::{Place, shown},
    interpreter, packages,
};
use crate::{
    command::{
        ShellUse, Started, Subject, Tag,
        kind::{Kind, Transparent, kind_of},
        name::fold,
    },
    inline_eval::Input,
};

/// The way out that nearly always exists.
pub(super) const INTO_A_SCRIPT: &str =
    "Write it into a script and run that: a script is bound by its content.";

/// The word that names the file that a shell or an interpreter reads, if one does. `payload` is the word whose commands
/// the plan holds.
pub(super) fn script(
    argv: &[String],
    read: &Started,
    payload: Option<usize>,
    place: Place<'_>,
) -> Result<Option<usize>, Unbindable> {
    match &read.subject {
        Subject::Program => program(argv, read.program, place),
        Subject::Shell(ShellUse::Bare) => Err(no_code(argv.get(read.program), place.input)),
        Subject::Shell(ShellUse::Script { at }) => {
            interpreter::check_script(argv.get(*at).map(String::as_str).unwrap_or_default(), place.lookup)?;
            Ok(Some(*at))
        }
        Subject::Shell(ShellUse::Payload { at, .. }) if payload == Some(*at) => Ok(None),
        Subject::Shell(ShellUse::Payload { .. }) => Err(Unbindable::new(
            "shell-text",
            "the text of the shell cannot be taken apart into commands",
            INTO_A_SCRIPT,
        )),
        Subject::Held(tag) => held(*tag, argv, read.program, place),
    }
}

fn program(argv: &[String], at: usize, place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    let Some((word, args)) = argv.get(at..).and_then(<[String]>::split_first) else { return Ok(None) };
    match kind_of(&fold(word)) {
        Some(Kind::Runner(runner)) => packages::script(runner, argv, at, place),
        // Without a command of their own.
        Some(
            Kind::Transparent(_)
            | Kind::Builtin(_)
            | Kind::Blocked
            | Kind::ShellWord(_)
            | Kind::Find
            | Kind::Xargs
            | Kind::Multiplexer
            | Kind::Shell(_),
        ) => Ok(None),
        None => Ok(interpreter::script(word, args, place)?.map(|script| at + 1 + script)),
    }
}

/// What no rule satisfies. A person may say yes to it where the words say all the same what runs.
fn held(tag: Tag, argv: &[String], at: usize, place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    let word = argv.get(at).map(String::as_str).unwrap_or_default();
    let args = argv.get(at + 1..).unwrap_or_default();
    let name = shown(word);
    let kind = kind_of(&fold(word));
    let (message, hint) = match (tag, kind) {
        (Tag::PackageRunner, Some(Kind::Runner(runner))) => {
            return packages::script(runner, argv, at, place);
        }
        (Tag::ExactCommand, Some(Kind::Shell(_))) if is_information(args) => return Ok(None),
        (Tag::ExactCommand, Some(Kind::Multiplexer)) => match args.first() {
            Some(applet) if is_plain_applet(applet) => return Ok(None),
            _ => (format!("what this applet of {name} runs is not taken apart"), "Run the program itself."),
        },
        (Tag::ExactCommand, _) => {
            (format!("{name} is used in a way that does not say which file or text it runs"), INTO_A_SCRIPT)
        }
        (Tag::ShellStartup, _) => (
            format!("{name} would read start-up files first"),
            "Leave `-l`, `-i`, `--rcfile` and the like out; what they set up belongs into the script itself.",
        ),
        (Tag::Eval | Tag::Source, _) => {
            (format!("{name} runs a text that is made, or a file that is read, only then"), INTO_A_SCRIPT)
        }
        (Tag::Alias, _) => (format!("{name} gives later words another meaning"), "Write the command out."),
        (Tag::CommandCarrier, Some(Kind::Xargs)) => (
            "what `xargs` runs comes from its input".to_owned(),
            "Write the names out in one command, or write a script that reads them and run that.",
        ),
        (Tag::CommandCarrier, Some(Kind::Find)) => {
            ("what `find` runs depends on what it finds".to_owned(), INTO_A_SCRIPT)
        }
        (
            Tag::CommandCarrier | Tag::ShellWrapperThroughCarrier,
            Some(Kind::Transparent(Transparent::Env)),
        ) => (
            "`env` is used with assignments or options".to_owned(),
            "Set variables and the working directory by the request; harmless variables may also stand before the command.",
        ),
        (Tag::CommandCarrier, Some(Kind::Transparent(_) | Kind::Builtin(_))) => (
            format!("{name} is used with options that are not followed, or too deep inside other wrappers"),
            "Run the inner command itself.",
        ),
        (Tag::CommandCarrier, _) => (
            format!("{name} looks for the program that it starts in its own way"),
            "Run the command without it, or let the node's owner allow it by a rule.",
        ),
        (
            Tag::ShellWrapperThroughCarrier
            | Tag::PackageRunner
            | Tag::ShellEnvAssignment
            | Tag::StandaloneAssignment
            | Tag::PipeIntoShell
            | Tag::UntrustedWrapper
            | Tag::RelativeAfterCd,
            _,
        ) => (format!("what {name} starts is not known from its words"), INTO_A_SCRIPT),
    };
    Err(Unbindable::new(tag.as_str(), message, hint))
}

/// A shell or an interpreter with neither text nor file.
pub(super) fn no_code(word: Option<&String>, input: Input) -> Unbindable {
    let name = shown(word.map(String::as_str).unwrap_or_default());
    match input {
        Input::Pipe => Unbindable::new(
            "standard-input",
            format!("the code that {name} runs comes from its input"),
            INTO_A_SCRIPT,
        ),
        Input::Other => Unbindable::new(
            "no-code",
            format!("{name} has no code to run: its input is empty"),
            "Name the script that it is to run.",
        ),
    }
}

/// A question about the program itself.
pub(super) fn is_information(args: &[String]) -> bool {
    matches!(args, [only] if matches!(only.as_str(), "--help" | "--version"))
}

/// Whether a multiplexer does its applet's work with the words alone.
fn is_plain_applet(applet: &str) -> bool {
    match applet {
        "--help" | "--list" | "--list-full" => true,
        _ => !applet.starts_with('-') && kind_of(&fold(applet)).is_none() && !interpreter::takes_code(applet),
    }
}
