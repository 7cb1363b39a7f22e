//! Package runners (policy spec §3.7). The runner is what is judged (§11 gap 6); this finds the uses that no entry for
//! it covers.

use super::{
    Subject, Tag,
    kind::{Kind, Runner, kind_of},
    name::fold,
};

/// Most runners that may start each other (§3.1).
const MAX_RUNNERS: usize = 6;

/// Options that change nothing about what is started, and take no value.
const PLAIN_OPTIONS: [&str; 13] = [
    "--bun",
    "--no",
    "--no-install",
    "--offline",
    "--prefer-offline",
    "--prefer-online",
    "--quiet",
    "--silent",
    "--verbose",
    "--yes",
    "-q",
    "-s",
    "-y",
];
const INFORMATION: [&str; 4] = ["--help", "--version", "-h", "-v"];

/// Commands of `pnpm` and `yarn` that are their own; every other word is a script, or starts one.
const PNPM_COMMANDS: [&str; 34] = [
    "add",
    "audit",
    "bin",
    "cache",
    "config",
    "dedupe",
    "fetch",
    "help",
    "i",
    "import",
    "info",
    "init",
    "install",
    "la",
    "licenses",
    "link",
    "list",
    "ll",
    "ls",
    "outdated",
    "patch",
    "prune",
    "rebuild",
    "remove",
    "rm",
    "root",
    "store",
    "un",
    "uninstall",
    "unlink",
    "up",
    "update",
    "view",
    "why",
];
const YARN_COMMANDS: [&str; 22] = [
    "add", "audit", "bin", "cache", "check", "config", "dedupe", "help", "import", "info", "init", "install",
    "licenses", "link", "list", "outdated", "owner", "remove", "unlink", "up", "upgrade", "why",
];

/// What the arguments of a runner ask for.
enum Use {
    /// Something of its own.
    Own,
    /// The command at this index of the arguments.
    Command(usize),
    /// Something that is not known from the words.
    Unknown,
}

/// Reads the runner at `start`.
pub(super) fn read(argv: &[String], start: usize) -> Subject {
    let mut at = start;
    for _ in 0..MAX_RUNNERS {
        let kind = argv.get(at).and_then(|word| kind_of(&fold(package_name(word))));
        match kind {
            None | Some(Kind::ShellWord(_)) => return Subject::Program,
            Some(Kind::Runner(runner)) => match command_of(runner, argv.get(at + 1..).unwrap_or_default()) {
                Use::Own => return Subject::Program,
                Use::Command(offset) => at += 1 + offset,
                Use::Unknown => break,
            },
            Some(
                Kind::Transparent(_)
                | Kind::Builtin(_)
                | Kind::Blocked
                | Kind::Find
                | Kind::Xargs
                | Kind::Multiplexer
                | Kind::Shell(_),
            ) => break,
        }
    }
    Subject::Held(Tag::PackageRunner)
}

/// `rg` of `rg@14`, `npm:rg` and `@scope/rg@14`.
fn package_name(word: &str) -> &str {
    let name = word.rsplit(['/', ':']).next().unwrap_or(word);
    name.get(1..).and_then(|rest| rest.find('@')).and_then(|at| name.get(..=at)).unwrap_or(name)
}

fn command_of(runner: Runner, args: &[String]) -> Use {
    if let [only] = args
        && INFORMATION.contains(&only.as_str())
    {
        return Use::Own;
    }
    match runner {
        Runner::Npx => first_word(args),
        Runner::Npm => {
            let starts = |word: &str| matches!(word, "exec" | "exe" | "x");
            match verb(args, Scripts::BehindRun, starts) {
                // It reads its own options also behind the command, up to `--`.
                Verb::Starts(at) => match first_word(args.get(at + 1..).unwrap_or_default()) {
                    Use::Command(offset) if options_are_plain(args.get(at + 1..)) => {
                        Use::Command(at + 1 + offset)
                    }
                    Use::Command(_) | Use::Own | Use::Unknown => Use::Unknown,
                },
                Verb::Other("explore") | Verb::Unclear => Use::Unknown,
                Verb::Other(_) | Verb::None => Use::Own,
            }
        }
        Runner::Bun => match verb(args, Scripts::BehindRun, |word| word == "x") {
            Verb::Starts(at) => after(args, at),
            Verb::Unclear => Use::Unknown,
            Verb::Other(_) | Verb::None => Use::Own,
        },
        Runner::Pnpm => match verb(args, Scripts::Implicit, |word| matches!(word, "exec" | "dlx" | "node")) {
            Verb::Starts(at) => after(args, at),
            Verb::Other(word) if PNPM_COMMANDS.contains(&word) => Use::Own,
            Verb::None if args.is_empty() => Use::Own,
            Verb::Other(_) | Verb::None | Verb::Unclear => Use::Unknown,
        },
        Runner::Yarn => match verb(args, Scripts::Implicit, |word| matches!(word, "exec" | "dlx")) {
            Verb::Starts(at) => after(args, at),
            Verb::Other(word) if YARN_COMMANDS.contains(&word) => Use::Own,
            // It installs.
            Verb::None => Use::Own,
            Verb::Other(_) | Verb::Unclear => Use::Unknown,
        },
    }
}

/// The word that says what a package manager does.
enum Verb<'a> {
    None,
    /// It starts a command.
    Starts(usize),
    Other(&'a str),
    /// An option before it may have a value, so that another word may be the verb.
    Unclear,
}

/// Whether a script may be called like any other word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scripts {
    BehindRun,
    Implicit,
}

fn verb(args: &[String], scripts: Scripts, starts: impl Fn(&str) -> bool) -> Verb<'_> {
    let at = args.iter().position(|word| !word.starts_with('-')).unwrap_or(args.len());
    let plain = args.iter().take(at).all(|word| PLAIN_OPTIONS.contains(&word.as_str()));
    match args.get(at) {
        _ if !plain && args.iter().any(|word| starts(word)) => Verb::Unclear,
        None => Verb::None,
        Some(_) if !plain && scripts == Scripts::Implicit => Verb::Unclear,
        Some(word) if starts(word) => Verb::Starts(at),
        Some(word) => Verb::Other(word),
    }
}

fn after(args: &[String], verb: usize) -> Use {
    match first_word(args.get(verb + 1..).unwrap_or_default()) {
        Use::Command(offset) => Use::Command(verb + 1 + offset),
        other => other,
    }
}

/// The first word that is no option, where all before it are plain. Without one a runner reads a shell's commands.
fn first_word(args: &[String]) -> Use {
    let mut at = 0;
    while args.get(at).is_some_and(|word| PLAIN_OPTIONS.contains(&word.as_str())) {
        at += 1;
    }
    if args.get(at).is_some_and(|word| word == "--") {
        at += 1;
    }
    match args.get(at) {
        Some(word) if !word.is_empty() && !word.starts_with('-') => Use::Command(at),
        _ => Use::Unknown,
    }
}

fn options_are_plain(args: Option<&[String]>) -> bool {
    args.unwrap_or_default()
        .iter()
        .take_while(|word| *word != "--")
        .filter(|word| word.starts_with('-'))
        .all(|word| PLAIN_OPTIONS.contains(&word.as_str()))
}
