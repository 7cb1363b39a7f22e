//! What the words of one command start: the program behind wrappers, shells and runners (policy spec §3.4 to §3.7).
//!
//! Looks at words only. Which file a name stands for is the business of `resolve`.

mod assigned;
mod dispatch;
pub(crate) mod kind;
pub(crate) mod name;
mod runner;
mod shell_use;
#[cfg(test)]
mod tests;

use kind::{BuiltinWrapper, Kind, kind_of};
use shell_use::{Setting, Spelling};

pub use assigned::blocked_env_assignments;
pub use shell_use::ShellUse;

/// Longest chain of transparent wrappers (§3.1).
const MAX_WRAPPERS: usize = 4;

/// How the words came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From shell text: builtins count.
    Shell,
    /// As an argv that no shell sees.
    Argv,
}

/// What a command starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The wrappers, outermost first. They are started too.
    pub wrappers: Vec<Wrapper>,
    /// The index of the word that names the judged program.
    pub program: usize,
    /// What kind of program that is.
    pub subject: Subject,
}

/// A wrapper that starts its arguments and changes nothing else about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// The index of the word that names it.
    pub at: usize,
    /// A builtin of the shell (`command`, `builtin`, `exec`), no file.
    pub builtin: bool,
}

/// What is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A program with its arguments. A package runner is one too: its entry must name the runner (§11 gap 6).
    Program,
    /// A shell.
    Shell(ShellUse),
    /// Never satisfied by a rule for a program (§3.4): only a person can say yes, once.
    Held(Tag),
}

/// Why a command is held. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `eval`.
    Eval,
    /// `source`, `.`.
    Source,
    /// `alias`.
    Alias,
    /// An assignment before a command that changes what runs, or before something else than a program.
    ShellEnvAssignment,
    /// An assignment of its own (§11 gap 1).
    StandaloneAssignment,
    /// `find -exec`, `xargs`, a wrapper that changes who or where it runs, or a chain of wrappers that is too long.
    CommandCarrier,
    /// `env` with assignments or options before a shell.
    ShellWrapperThroughCarrier,
    /// A shell or a multiplexer's applet whose text cannot be split into commands (§3.5, §3.6).
    ExactCommand,
    /// A shell that reads start-up files (login, interactive, `--rcfile`).
    ShellStartup,
    /// A package runner with options that change what it starts.
    PackageRunner,
    /// A shell that reads its commands from a pipe (§11 gap 10).
    PipeIntoShell,
    /// A wrapper's name that is not the bare name of a trusted program (§11 gap 4).
    UntrustedWrapper,
    /// A relative program after a change of directory (§11 gap 3).
    RelativeAfterCd,
}

impl Tag {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eval => "eval",
            Self::Source => "source",
            Self::Alias => "alias",
            Self::ShellEnvAssignment => "shell-env-assignment",
            Self::StandaloneAssignment => "standalone-assignment",
            Self::CommandCarrier => "command-carrier",
            Self::ShellWrapperThroughCarrier => "shell-wrapper-through-carrier",
            Self::ExactCommand => "exact-command",
            Self::ShellStartup => "shell-startup",
            Self::PackageRunner => "package-runner",
            Self::PipeIntoShell => "pipe-into-shell",
            Self::UntrustedWrapper => "untrusted-wrapper",
            Self::RelativeAfterCd => "relative-after-cd",
        }
    }

    /// Whether the entry `*` satisfies it all the same. Those of §3.4 it does not; our own additions (§11) it does.
    #[must_use]
    pub const fn yields_to_star(self) -> bool {
        match self {
            Self::Eval
            | Self::Source
            | Self::Alias
            | Self::ShellEnvAssignment
            | Self::CommandCarrier
            | Self::ShellWrapperThroughCarrier
            | Self::PackageRunner => false,
            Self::StandaloneAssignment
            | Self::ExactCommand
            | Self::ShellStartup
            | Self::PipeIntoShell
            | Self::UntrustedWrapper
            | Self::RelativeAfterCd => true,
        }
    }
}

/// Reads the words of a command; they are not empty. `is_trusted` says whether a bare name, or an absolute path, stands
/// for a program in a trusted directory: only such a name is taken for the wrapper or shell it says it is (§11 gap 4).
///
/// The commands in the text of a shell ([`ShellUse::Payload`]) are read by another call for each. A shell among them is
/// not to be opened again (§3.6).
#[must_use]
pub fn read_command(argv: &[String], form: Form, is_trusted: &dyn Fn(&str) -> bool) -> Started {
    let mut walk = Walk { form, wrappers: Vec::new(), program: 0, untrusted: None };
    let subject = loop {
        match walk.step(argv, is_trusted) {
            Step::Inner(program) => walk.program = program,
            Step::End(subject) => break subject,
        }
    };
    let Walk { mut wrappers, program, untrusted, .. } = walk;
    match untrusted {
        // What a wrapper may not start, one that may be any program may not start either.
        Some(at) if !matches!(subject, Subject::Held(tag) if !tag.yields_to_star()) => {
            wrappers.retain(|wrapper| wrapper.at < at);
            Started { wrappers, program: at, subject: Subject::Held(Tag::UntrustedWrapper) }
        }
        _ => Started { wrappers, program, subject },
    }
}

/// Whether a word names a shell, by any path and in any spelling.
#[must_use]
pub fn is_shell(word: &str) -> bool {
    matches!(kind_of(&name::fold(word)), Some(Kind::Shell(_)))
}

/// How far the chain of wrappers is read.
struct Walk {
    /// How the words at `program` are looked up.
    form: Form,
    wrappers: Vec<Wrapper>,
    program: usize,
    /// The first wrapper that may be another program than its name says.
    untrusted: Option<usize>,
}

enum Step {
    Inner(usize),
    End(Subject),
}

impl Walk {
    fn step(&mut self, argv: &[String], is_trusted: &dyn Fn(&str) -> bool) -> Step {
        let held = |tag| Step::End(Subject::Held(tag));
        let at = self.program;
        let Some((word, args)) = argv.get(at..).and_then(<[String]>::split_first) else {
            return held(Tag::ExactCommand);
        };
        let folded = name::fold(word);
        let exact = *word == folded;
        let builtins = self.form == Form::Shell && exact;
        let Some(kind) = kind_of(&folded) else { return Step::End(Subject::Program) };
        match kind {
            Kind::Transparent(wrapper) if args.is_empty() && dispatch::runs_alone(wrapper) => {
                Step::End(Subject::Program)
            }
            Kind::Transparent(wrapper) => match dispatch::command_of(wrapper, args) {
                None => held(dispatch::blocked_tag(wrapper, args)),
                Some(_) if self.wrappers.len() == MAX_WRAPPERS => held(Tag::CommandCarrier),
                Some(offset) => {
                    if !(exact && is_trusted(word)) {
                        self.untrusted.get_or_insert(at);
                    }
                    self.wrappers.push(Wrapper { at, builtin: false });
                    self.form = Form::Argv;
                    Step::Inner(at + 1 + offset)
                }
            },
            Kind::Builtin(BuiltinWrapper::Command)
                if builtins && args.first().is_some_and(|arg| matches!(arg.as_str(), "-v" | "-V")) =>
            {
                // It looks names up and starts nothing.
                Step::End(Subject::Program)
            }
            Kind::Builtin(_) if args.is_empty() && !builtins => Step::End(Subject::Program),
            Kind::Builtin(builtin) => match dispatch::command_of_builtin(args) {
                Some(offset) if self.wrappers.len() < MAX_WRAPPERS => {
                    if !builtins {
                        self.untrusted.get_or_insert(at);
                    }
                    self.wrappers.push(Wrapper { at, builtin: builtins });
                    if builtin == BuiltinWrapper::Exec || !builtins {
                        self.form = Form::Argv;
                    }
                    Step::Inner(at + 1 + offset)
                }
                _ => held(Tag::CommandCarrier),
            },
            Kind::ShellWord(tag) if builtins => held(tag),
            Kind::ShellWord(_) => Step::End(Subject::Program),
            Kind::Blocked | Kind::Xargs => held(Tag::CommandCarrier),
            Kind::Find => {
                let starts = |arg: &String| matches!(arg.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
                if args.iter().any(starts) { held(Tag::CommandCarrier) } else { Step::End(Subject::Program) }
            }
            Kind::Multiplexer if args.is_empty() => Step::End(Subject::Program),
            Kind::Multiplexer => held(Tag::ExactCommand),
            Kind::Runner(_) => Step::End(runner::read(argv, at)),
            Kind::Shell(shell) => {
                let spelling = if exact && is_trusted(word) {
                    Spelling::Bare
                } else if word.starts_with('/') && word.ends_with(&*folded) && is_trusted(word) {
                    Spelling::TrustedPath
                } else {
                    Spelling::Other
                };
                let wrapped = !self.wrappers.is_empty();
                Step::End(shell_use::read(shell, args, &Setting { first: at + 1, spelling, wrapped }))
            }
        }
    }
}
