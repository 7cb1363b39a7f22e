//! How a shell is used (policy spec §2.4, §3.6).

use super::{Subject, Tag, kind::ShellKind};
use crate::shell::Dialect;

/// How a shell is started. Indexes are into the words of the whole command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellUse {
    /// Without arguments: an entry for the shell itself allows it, unless it reads from a pipe.
    Bare,
    /// `-c` with a text whose commands can be judged one by one.
    Payload {
        /// The index of the text.
        at: usize,
        /// How the shell reads it.
        dialect: Dialect,
    },
    /// A script: an entry for the script's path allows it. Where its word has no `/`, shells look for it in the
    /// working directory first, some then on PATH.
    Script {
        /// The index of the script.
        at: usize,
    },
}

/// What stands around the arguments of a shell.
pub(super) struct Setting {
    /// The index of the first argument.
    pub(super) first: usize,
    /// How sure it is that the word starts the shell that it names.
    pub(super) spelling: Spelling,
    /// Another program or a builtin starts it.
    pub(super) wrapped: bool,
}

/// How a shell is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// By its bare name, which stands for a file in a trusted directory.
    Bare,
    /// By an absolute path into a trusted directory.
    TrustedPath,
    /// Otherwise: it may be any program.
    Other,
}

/// A word of letters after `-`.
enum Letters {
    Harmless,
    /// With `c` among them: the next word is the text.
    Text,
    /// Login or interactive.
    Startup,
    Unknown,
}

pub(super) fn read(kind: ShellKind, args: &[String], setting: &Setting) -> Subject {
    let dialect = match kind {
        _ if args.is_empty() => return Subject::Shell(ShellUse::Bare),
        ShellKind::Bash => Dialect::Bash,
        ShellKind::Posix => Dialect::Posix,
        ShellKind::Opaque => return Subject::Held(Tag::ExactCommand),
    };
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        match word.as_str() {
            "--" => break,
            "--norc" | "--noprofile" | "+x" => {}
            "-o" if args.get(at).is_some_and(|option| option == "posix") => at += 1,
            long if long.starts_with("--") => {
                let name = long.split_once('=').map_or(long, |(name, _)| name);
                let startup =
                    ["--init-file", "--interactive", "--login", "--rcfile", "--startup-file"].contains(&name);
                return Subject::Held(if startup { Tag::ShellStartup } else { Tag::ExactCommand });
            }
            short if short.starts_with(['-', '+']) => match letters(short) {
                Letters::Harmless => {}
                Letters::Text => return payload(args, at, dialect, setting),
                Letters::Startup => return Subject::Held(Tag::ShellStartup),
                Letters::Unknown => return Subject::Held(Tag::ExactCommand),
            },
            _ => {
                at -= 1;
                break;
            }
        }
    }
    let script = args.get(at).is_some_and(|word| !word.is_empty() && !word.starts_with(['-', '+']));
    if script && setting.spelling != Spelling::Other {
        Subject::Shell(ShellUse::Script { at: setting.first + at })
    } else {
        // Options alone make it read its input.
        Subject::Held(Tag::ExactCommand)
    }
}

fn letters(word: &str) -> Letters {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return Letters::Unknown;
    };
    let harmless = |letter: char| matches!(letter, 'e' | 'u' | 'x');
    if letters.chars().all(harmless) {
        Letters::Harmless
    } else if letters.chars().all(|letter| letter == 'c' || harmless(letter))
        && letters.matches('c').count() == 1
    {
        Letters::Text
    } else if letters.contains(['i', 'l']) && !letters.starts_with('c') {
        Letters::Startup
    } else {
        // `-cls` too: an older reading takes `ls` for the text.
        Letters::Unknown
    }
}

fn payload(args: &[String], at: usize, dialect: Dialect, setting: &Setting) -> Subject {
    // After `-c` come more options, if any: shells do not agree on which word is the text then.
    let text = args.get(at).is_some_and(|word| !word.starts_with(['-', '+']));
    if text && !setting.wrapped && setting.spelling == Spelling::Bare {
        Subject::Shell(ShellUse::Payload { at: setting.first + at, dialect })
    } else {
        Subject::Held(Tag::ExactCommand)
    }
}
