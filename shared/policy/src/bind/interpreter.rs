//! Which word is the script of an interpreter (policy spec §7.4).

use std::path::{Component, Path, PathBuf};

use super::{
    Unbindable,
    files::{Place, no_script, shown},
    scan::Words,
    shape::{INTO_A_SCRIPT, is_information, no_code},
    syntax::syntax_of,
};
use crate::{
    command::name::{fold, versions},
    inline_eval::{Input, find_inline_eval},
    resolve::Lookup,
};

/// Runners of TypeScript and the like: their first operand is the script.
const SCRIPT_RUNNERS: [&str; 5] = ["esno", "jiti", "ts-node", "tsx", "vite-node"];
const SCRIPT_RUNNER_OPTIONS: [&str; 8] = [
    "--enable-source-maps",
    "--esm",
    "--no-cache",
    "--no-warnings",
    "--swc",
    "--trace-warnings",
    "--transpile-only",
    "-T",
];
/// Most words of such a runner: each may be a file, and exactly one must be.
const MAX_SCRIPT_RUNNER_WORDS: usize = 256;
/// They edit what they are given. Commands come by options, or from the keyboard.
const EDITORS: [&str; 18] = [
    "editor",
    "emacs",
    "emacsclient",
    "eview",
    "evim",
    "ex",
    "gview",
    "gvim",
    "gvimdiff",
    "nvim",
    "rgview",
    "rgvim",
    "rview",
    "rvim",
    "vi",
    "view",
    "vim",
    "vimdiff",
];
/// Options of `deno run` that load no code. Those that begin so only grant rights or take them away.
const DENO_OPTIONS: [&str; 7] =
    ["--allow-all", "--cached-only", "--check", "--no-check", "--quiet", "-A", "-q"];
const DENO_PREFIXES: [&str; 3] = ["--allow-", "--deny-", "--no-"];
/// Commands of programs that start others which do their own work alone.
const OWN_WORK: [&str; 16] = [
    "add",
    "build",
    "cache",
    "create",
    "info",
    "init",
    "install",
    "list",
    "lock",
    "remove",
    "search",
    "show",
    "sync",
    "uninstall",
    "update",
    "version",
];
/// Words behind which such a program starts another.
const STARTS: [&str; 8] = ["dlx", "exec", "x", "run", "script", "shell", "tool", "use"];

/// The argument that names the script of a program, if it is an interpreter and has one. None too where the words hold
/// the code itself: they are bound as they stand.
pub(super) fn script(word: &str, args: &[String], place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    let name = fold(word);
    // Found with care for pipes and `-`: no file is bound then.
    let code = || {
        let argv: Vec<String> = std::iter::once(word.to_owned()).chain(args.iter().cloned()).collect();
        find_inline_eval(&argv, place.input)
    };
    if let Some(syntax) = syntax_of(word) {
        return Words { word, syntax, lookup: place.lookup, input: place.input }.script(args);
    }
    if is_script_runner(word) {
        return script_runner(word, args, place);
    }
    if name == "deno" {
        return deno(args, place);
    }
    if name.starts_with("vim.") || versions(&name).any(|name| EDITORS.contains(&name)) {
        return match (
            args.iter().find(|arg| arg.starts_with(['-', '+']) && !matches!(arg.as_str(), "-" | "--")),
            code(),
        ) {
            (None, None) => Ok(None),
            (Some(option), _) => Err(option_refused(word, option)),
            (None, Some(_)) => Err(no_code(Some(&word.to_owned()), place.input)),
        };
    }
    if is_information(args) {
        return Ok(None);
    }
    if reads_code(word) {
        return other_interpreter(word, args, place);
    }
    if starts_words(word) {
        let first = args.first().map(String::as_str).unwrap_or_default();
        let own = args.is_empty()
            || OWN_WORK.contains(&first) && !args.iter().any(|arg| STARTS.contains(&arg.as_str()));
        return if own { Ok(None) } else { Err(starts_another(word)) };
    }
    match code() {
        None => Ok(None),
        Some(found) => Err(Unbindable::new(
            "starts-another",
            format!("{} may run something else by {}", shown(word), shown(&found.form)),
            INTO_A_SCRIPT,
        )),
    }
}

/// Whether a word names a program that can be handed code, or that starts what its words say.
pub(super) fn takes_code(word: &str) -> bool {
    // Something of everything that the table of inline code knows.
    const PROBE: [&str; 10] =
        ["-exec", "--eval", "--pre", "--checkpoint-action", "-e", "-c", "x", "python3", "-c", "x"];
    reads_code(word) || find_inline_eval(&with(word, &PROBE), Input::Pipe).is_some()
}

/// Whether it is an interpreter: alone it would run a piped input.
fn reads_code(word: &str) -> bool {
    find_inline_eval(&with(word, &[]), Input::Pipe).is_some()
}

/// Whether any word of its may be a program that it starts.
fn starts_words(word: &str) -> bool {
    find_inline_eval(&with(word, &["python3", "-c", "x"]), Input::Other).is_some()
}

pub(super) fn with(word: &str, args: &[&str]) -> Vec<String> {
    std::iter::once(&word).chain(args).map(|word| (*word).to_owned()).collect()
}

pub(super) fn is_script_runner(word: &str) -> bool {
    SCRIPT_RUNNERS.contains(&&*fold(word))
}

/// A script must be one file that everybody finds there.
pub(super) fn check_script(word: &str, lookup: Lookup<'_>) -> Result<(), Unbindable> {
    let scheme = word.split_once(':').is_some_and(|(scheme, rest)| {
        rest.starts_with("//")
            || matches!(scheme, "blob" | "data" | "file" | "http" | "https" | "jsr" | "node" | "npm")
    });
    if scheme {
        return Err(Unbindable::new(
            "remote-script",
            format!("what {} names is fetched or looked up, and no file", shown(word)),
            "Save it into a file and run that: a script is bound by its content.",
        ));
    }
    let own = || {
        Unbindable::new(
            "standard-input",
            format!("{} is another file for each process", shown(word)),
            INTO_A_SCRIPT,
        )
    };
    if word == "-" {
        return Err(own());
    }
    let found = lookup.find_script(word).ok_or_else(|| no_script(word))?;
    let plain = without_parents(&found.path);
    let devices = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
    if devices(&plain) || devices(&found.file.real) { Err(own()) } else { Ok(()) }
}

fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// `tsx` and those like it: exactly one existing file.
pub(super) fn script_runner(
    word: &str,
    args: &[String],
    place: Place<'_>,
) -> Result<Option<usize>, Unbindable> {
    if is_information(args) {
        return Ok(None);
    }
    let at = args.iter().position(|arg| !SCRIPT_RUNNER_OPTIONS.contains(&arg.as_str()));
    let Some((at, first)) = at.and_then(|at| Some((at, args.get(at)?))) else {
        return Err(no_code(Some(&word.to_owned()), place.input));
    };
    if matches!(first.as_str(), "-e" | "--eval" | "-p" | "--print")
        && !args.iter().skip(at + 1).any(|arg| arg.starts_with('-'))
    {
        return Ok(None);
    }
    if first.starts_with('-') && first != "-" {
        return Err(option_refused(word, first));
    }
    script_path(word, first, place.lookup)?;
    let others = args.get(at + 1..).unwrap_or_default();
    if others.len() > MAX_SCRIPT_RUNNER_WORDS
        || others.iter().any(|arg| place.lookup.find_script(arg).is_some())
    {
        return Err(Unbindable::new(
            "two-scripts",
            format!("more than one word of {} may be the file that it runs", shown(word)),
            "Give it one file only, or compile the script and run it by `node`.",
        ));
    }
    Ok(Some(at))
}

/// A script whose word cannot be taken for a command of the program's own.
pub(super) fn script_path(program: &str, word: &str, lookup: Lookup<'_>) -> Result<(), Unbindable> {
    if word.contains(['/', '.']) {
        return check_script(word, lookup);
    }
    Err(Unbindable::new(
        "no-script",
        format!("{} may be a command of {} and no file", shown(word), shown(program)),
        "Name the script by its path, such as `./script`.",
    ))
}

fn deno(args: &[String], place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    let word = "deno";
    if is_information(args) {
        return Ok(None);
    }
    let verb = args.first().map(String::as_str).unwrap_or_default();
    if !matches!(verb, "run" | "eval") {
        return Err(Unbindable::new(
            "code-loading",
            format!("what `deno {verb}` loads is not bound", verb = crate::printable::printable(verb, 40)),
            "Use `deno run` with one file.",
        ));
    }
    for (at, arg) in args.iter().enumerate().skip(1) {
        let harmless = DENO_OPTIONS.contains(&arg.as_str())
            || DENO_PREFIXES.iter().any(|prefix| arg.starts_with(prefix))
                && !arg.starts_with("--allow-scripts");
        if !arg.starts_with('-') || arg == "-" {
            let later = args.iter().skip(at + 1).find(|arg| arg.starts_with('-'));
            return match (verb, later) {
                ("eval", Some(option)) => Err(option_refused(word, option)),
                ("eval", None) => Ok(None),
                _ => check_script(arg, place.lookup).map(|()| Some(at)),
            };
        }
        if !harmless {
            return Err(option_refused(word, arg));
        }
    }
    Err(no_code(Some(&word.to_owned()), place.input))
}

/// An interpreter whose options are not known here: one file, or one piece of code, before everything else.
fn other_interpreter(word: &str, args: &[String], place: Place<'_>) -> Result<Option<usize>, Unbindable> {
    match args {
        [] => Err(no_code(Some(&word.to_owned()), place.input)),
        [option, code, rest @ ..] if matches!(option.as_str(), "-e" | "--eval") => {
            if std::iter::once(code).chain(rest).any(|arg| arg.starts_with('-')) {
                return Err(option_refused(word, option));
            }
            Ok(None)
        }
        [option, ..] if option.starts_with(['-', '+']) && option != "-" => Err(option_refused(word, option)),
        [file, ..] => script_path(word, file, place.lookup).map(|()| Some(0)),
    }
}

pub(super) fn option_refused(word: &str, option: &str) -> Unbindable {
    Unbindable::new(
        "code-loading",
        format!(
            "the option {} of {} may load code that is not bound, or is not followed here",
            shown(option),
            shown(word)
        ),
        "Leave the option out, or write what it does into the script.",
    )
}

pub(super) fn starts_another(word: &str) -> Unbindable {
    Unbindable::new(
        "starts-another",
        format!("which program {} starts is not pinned", shown(word)),
        "Run the program that it would start by its path.",
    )
}
