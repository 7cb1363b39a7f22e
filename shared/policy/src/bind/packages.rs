//! Package managers (policy spec §7.4): a script of the project can be approved as it stands, like a target of `make`; what
//! is fetched, or found in a package, is not pinned.

use super::{
    Unbindable,
    files::{Place, shown},
    interpreter::{self, check_script, is_script_runner, option_refused, script_runner, starts_another},
    shape::{is_information, no_code},
};
use crate::{
    command::{
        kind::{Runner, kind_of},
        name::fold,
    },
    printable::printable,
};

/// Options before the command that change nothing about what runs.
const PLAIN_OPTIONS: [&str; 12] = [
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
/// Options that say which project, which shell or which code is used, wherever they stand.
const OTHER_CODE: [&str; 13] = [
    "-C",
    "--call",
    "--cwd",
    "--dir",
    "--globalconfig",
    "--import",
    "--node-options",
    "--prefix",
    "--preload",
    "--require",
    "--script-shell",
    "--shell-mode",
    "--userconfig",
];
/// Commands of `bun` that run no file.
const BUN_COMMANDS: [&str; 19] = [
    "a", "add", "audit", "build", "i", "info", "init", "install", "link", "outdated", "patch", "pm",
    "publish", "remove", "rm", "test", "unlink", "update", "why",
];
const BUN_FILES: [&str; 8] = [".cjs", ".cts", ".js", ".jsx", ".mjs", ".mts", ".ts", ".tsx"];

/// The word that names the file that is run by way of the package manager at `start`.
pub(super) fn script(
    runner: Runner,
    argv: &[String],
    start: usize,
    place: Place<'_>,
) -> Result<Option<usize>, Unbindable> {
    let manager = Manager { runner, argv, start, place };
    let args = argv.get(start + 1..).unwrap_or_default();
    if is_information(args) || matches!(args, [only] if matches!(only.as_str(), "-h" | "-v")) {
        return Ok(None);
    }
    if let Some(option) = args.iter().take_while(|arg| *arg != "--").find(|arg| is_other_code(arg)) {
        return Err(option_refused(manager.name(), option));
    }
    let verb = manager.skip_options(start + 1)?;
    let Some(word) = argv.get(verb).map(String::as_str) else {
        // Bare `yarn` installs; bare `npm` and the others say how they are used.
        return if runner == Runner::Npx { Err(starts_another(manager.name())) } else { Ok(None) };
    };
    match runner {
        Runner::Npx => manager.starts(verb),
        Runner::Npm => match npm_command(word) {
            // It reads its own options also behind the command, up to `--`.
            NpmCommand::Exec => match args.iter().take_while(|arg| *arg != "--").find(|arg| !is_plain(arg)) {
                Some(option) => Err(option_refused(manager.name(), option)),
                None => manager.starts(verb + 1),
            },
            NpmCommand::Explore => Err(manager.not_pinned(word)),
            NpmCommand::Create if argv.len() > verb + 1 => Err(manager.not_pinned(word)),
            NpmCommand::Create | NpmCommand::Own => Ok(None),
        },
        Runner::Pnpm | Runner::Yarn => match word {
            "exec" => manager.starts(verb + 1),
            "create" | "dlx" | "m" | "multi" | "recursive" | "workspace" | "workspaces" => {
                Err(manager.not_pinned(word))
            }
            "node" => manager.interpreter("node", verb),
            // A program of a package goes by its name there.
            "run" => manager.named(manager.skip_options(verb + 1)?),
            _ => manager.named(verb),
        },
        Runner::Bun => match word {
            "x" => manager.starts(verb + 1),
            "c" | "create" | "exec" => Err(manager.not_pinned(word)),
            "run" => manager.bun_file(verb + 1),
            _ if BUN_COMMANDS.contains(&word) => Ok(None),
            _ => manager.bun_file(verb),
        },
    }
}

fn is_plain(arg: &str) -> bool {
    !arg.starts_with('-') || PLAIN_OPTIONS.contains(&arg)
}

/// Whether an option, perhaps abbreviated, brings other code in.
fn is_other_code(arg: &str) -> bool {
    let key = arg.split_once('=').map_or(arg, |(key, _)| key);
    arg.starts_with("-C")
        || key.len() > 2 && !is_plain(key) && OTHER_CODE.iter().any(|option| option.starts_with(key))
}

/// What a word means to `npm`.
enum NpmCommand {
    /// It starts a program.
    Exec,
    /// It starts a program, or a shell, inside of a package.
    Explore,
    /// It begins a new project from something that is fetched.
    Create,
    /// Its own work, or a script of the project.
    Own,
}

/// `npm` takes abbreviations as long as they are clear.
fn npm_command(word: &str) -> NpmCommand {
    let is = |command: &str, least: usize| word.len() >= least && command.starts_with(word);
    if word == "x" || is("exec", 2) {
        NpmCommand::Exec
    } else if is("explore", 3) {
        NpmCommand::Explore
    } else if is("create", 2) || is("init", 3) || is("innit", 3) {
        NpmCommand::Create
    } else {
        NpmCommand::Own
    }
}

/// Whether the name of a project's script may rather be a program that starts what follows.
fn may_start(word: &str) -> bool {
    is_script_runner(word) || kind_of(&fold(word)).is_some() || interpreter::takes_code(word)
}

struct Manager<'a> {
    runner: Runner,
    argv: &'a [String],
    start: usize,
    place: Place<'a>,
}

impl Manager<'_> {
    fn name(&self) -> &str {
        self.argv.get(self.start).map(String::as_str).unwrap_or_default()
    }

    /// The first word from `at` on that is no option.
    fn skip_options(&self, at: usize) -> Result<usize, Unbindable> {
        for (index, word) in self.argv.iter().enumerate().skip(at) {
            if word == "--" {
                return Ok(index + 1);
            }
            let plain = is_plain(word)
                || self.runner == Runner::Bun && matches!(word.as_str(), "--bun" | "--smol" | "-b");
            if !word.starts_with('-') {
                return Ok(index);
            }
            if !plain {
                return Err(option_refused(self.name(), word));
            }
        }
        Ok(self.argv.len())
    }

    /// It starts a program of a package: a runner of scripts, whose file is then bound.
    fn starts(&self, at: usize) -> Result<Option<usize>, Unbindable> {
        let at = self.skip_options(at)?;
        match self.argv.get(at) {
            // By its plain name: `tsx@1` is fetched.
            Some(word) if is_script_runner(word) && *word == *fold(word) => {
                let script = script_runner(word, self.argv.get(at + 1..).unwrap_or_default(), self.place)?;
                Ok(script.map(|script| at + 1 + script))
            }
            Some(word) => Err(self.not_pinned(word)),
            None => Err(starts_another(self.name())),
        }
    }

    /// A script of the project, unless the name is rather that of a program that runs what follows.
    fn named(&self, at: usize) -> Result<Option<usize>, Unbindable> {
        match self.argv.get(at) {
            Some(word) if may_start(word) => self.starts(at),
            _ => Ok(None),
        }
    }

    fn interpreter(&self, word: &str, at: usize) -> Result<Option<usize>, Unbindable> {
        let script = interpreter::script(word, self.argv.get(at + 1..).unwrap_or_default(), self.place)?;
        Ok(script.map(|script| at + 1 + script))
    }

    /// The file that `bun` runs. Without an ending, the word may be a script of the project.
    fn bun_file(&self, at: usize) -> Result<Option<usize>, Unbindable> {
        let at = self.skip_options(at)?;
        let Some(word) = self.argv.get(at) else {
            return Err(no_code(self.argv.get(self.start), self.place.input));
        };
        if !word.starts_with(['/', '.']) && !BUN_FILES.iter().any(|end| word.ends_with(end)) {
            return Err(self.not_pinned(word));
        }
        check_script(word, self.place.lookup).map(|()| Some(at))
    }

    fn not_pinned(&self, word: &str) -> Unbindable {
        Unbindable::new(
            "package-runner",
            format!(
                "what {} fetches or starts by `{}` cannot be pinned",
                shown(self.name()),
                printable(word, 40)
            ),
            "Install the package first, and run its program by its path, such as `./node_modules/.bin/NAME`.",
        )
    }
}
