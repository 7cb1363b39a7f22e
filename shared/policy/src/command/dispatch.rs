//! The syntax that transparent wrappers are accepted with (policy spec §3.5). Anything else blocks.

use super::{Tag, is_shell, kind::Transparent};

/// Options and operands before the command.
struct Syntax {
    /// Options that stand alone.
    flags: &'static [&'static str],
    /// Options with a value in the next word; long ones also take it after `=`.
    values: &'static [(&'static str, Value)],
    /// Other spellings.
    also: fn(&str) -> bool,
    /// What stands between options and command.
    operand: Option<Value>,
}

/// What a value must look like. One that the wrapper would refuse may hide that the words are read in another way.
#[derive(Clone, Copy)]
enum Value {
    Any,
    /// Of letters, digits, `+` and `-`, no option.
    Word,
    Integer,
    /// Seconds, or with a unit.
    Duration,
}

/// What no command needs.
const NO_OPTIONS: Syntax = Syntax { flags: &[], values: &[], also: |_| false, operand: None };

const CAFFEINATE: Syntax = Syntax {
    values: &[("-t", Value::Integer), ("-w", Value::Integer)],
    also: |word| is_cluster(word, "dimsu"),
    ..NO_OPTIONS
};
const FLOCK: Syntax = Syntax {
    flags: &[
        "--close",
        "--exclusive",
        "--nb",
        "--no-fork",
        "--nonblock",
        "--nonblocking",
        "--shared",
        "--unlock",
        "--verbose",
    ],
    values: &[
        ("-E", Value::Integer),
        ("--conflict-exit-code", Value::Integer),
        ("-w", Value::Duration),
        ("--timeout", Value::Duration),
        ("--wait", Value::Duration),
    ],
    also: |word| is_cluster(word, "Fenosux"),
    operand: Some(Value::Any),
};
const NICE: Syntax = Syntax {
    values: &[("-n", Value::Integer), ("--adjustment", Value::Integer), ("--priority", Value::Integer)],
    also: |word| {
        let number = word.strip_prefix("-n").or_else(|| word.strip_prefix('-'));
        number.is_some_and(|number| Value::Integer.accepts(number))
    },
    ..NO_OPTIONS
};
const SANDBOX_EXEC: Syntax = Syntax {
    values: &[("-D", Value::Any), ("-f", Value::Any), ("-n", Value::Any), ("-p", Value::Any)],
    ..NO_OPTIONS
};
const STDBUF: Syntax = Syntax {
    values: &[
        ("-e", Value::Word),
        ("-i", Value::Word),
        ("-o", Value::Word),
        ("--error", Value::Word),
        ("--input", Value::Word),
        ("--output", Value::Word),
    ],
    ..NO_OPTIONS
};
const TIME: Syntax = Syntax { flags: &["-p"], values: &[("-f", Value::Any)], ..NO_OPTIONS };
const TIMEOUT: Syntax = Syntax {
    flags: &["--foreground", "--preserve-status", "--verbose", "-v"],
    values: &[
        ("-k", Value::Duration),
        ("-s", Value::Word),
        ("--kill-after", Value::Duration),
        ("--signal", Value::Word),
    ],
    operand: Some(Value::Duration),
    ..NO_OPTIONS
};

/// Where the command stands among the arguments. None blocks: another syntax, or no command.
pub(super) fn command_of(wrapper: Transparent, args: &[String]) -> Option<usize> {
    let syntax = match wrapper {
        Transparent::Env | Transparent::Nohup => &NO_OPTIONS,
        Transparent::Caffeinate => &CAFFEINATE,
        Transparent::Flock => &FLOCK,
        Transparent::Nice => &NICE,
        Transparent::SandboxExec => &SANDBOX_EXEC,
        Transparent::Stdbuf => &STDBUF,
        Transparent::Time => &TIME,
        Transparent::Timeout => &TIMEOUT,
        // What the Mac's `arch` and `xcrun` start is not what PATH says; the transcript of `script` is a file.
        Transparent::Arch | Transparent::Script | Transparent::Xcrun => return None,
    };
    let at = syntax.command(args)?;
    let assigns = wrapper == Transparent::Env && args.get(at).is_some_and(|word| word.contains('='));
    (!assigns).then_some(at)
}

/// As [`command_of`]. `exec -a` blocks: the name decides what a program of many names does.
pub(super) fn command_of_builtin(args: &[String]) -> Option<usize> {
    NO_OPTIONS.command(args)
}

/// Whether the wrapper's name alone is an ordinary program.
pub(super) const fn runs_alone(wrapper: Transparent) -> bool {
    matches!(wrapper, Transparent::Arch | Transparent::Env | Transparent::Nice | Transparent::Time)
}

/// Why a blocked use of a wrapper is held.
pub(super) fn blocked_tag(wrapper: Transparent, args: &[String]) -> Tag {
    if wrapper == Transparent::Env && env_starts_shell(args) {
        Tag::ShellWrapperThroughCarrier
    } else {
        Tag::CommandCarrier
    }
}

/// Whether a shell follows the options and assignments of `env`.
fn env_starts_shell(args: &[String]) -> bool {
    let mut args = args.iter();
    while let Some(word) = args.next() {
        match split_text(word) {
            Some("") => return args.next().is_some_and(|text| text.split_ascii_whitespace().any(is_shell)),
            Some(text) => {
                return text.split_ascii_whitespace().any(is_shell) || args.any(|word| is_shell(word));
            }
            None if env_takes_value(word) => drop(args.next()),
            None if word.starts_with('-') || word.contains('=') => {}
            None => return is_shell(word),
        }
    }
    false
}

/// Whether an option of `env` takes the next word for its value.
pub(super) fn env_takes_value(word: &str) -> bool {
    matches!(word, "-C" | "-P" | "-a" | "-u" | "--argv0" | "--chdir" | "--unset")
}

/// The text that `env -S` (also as the last letter of a cluster) splits into words; empty where it is the next word.
pub(super) fn split_text(word: &str) -> Option<&str> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, text) = long.split_once('=').unwrap_or((long, ""));
        return (name.starts_with('s') && "split-string".starts_with(name)).then_some(text);
    }
    let letters = word.strip_prefix('-')?;
    let at = letters.find(|letter| !matches!(letter, '0' | 'i' | 'v'))?;
    letters.get(at..)?.strip_prefix('S')
}

impl Syntax {
    fn command(&self, args: &[String]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = args.get(at).filter(|word| word.starts_with('-')) {
            at += 1;
            if word == "--" {
                break;
            }
            if let Some((_, value)) = self.values.iter().find(|(name, _)| name == word) {
                args.get(at).filter(|given| value.accepts(given))?;
                at += 1;
            } else if !(self.flags.contains(&word.as_str()) || self.has_attached(word) || (self.also)(word)) {
                return None;
            }
        }
        if let Some(value) = self.operand {
            args.get(at).filter(|given| !given.starts_with('-') && value.accepts(given))?;
            at += 1;
        }
        // No command begins so: it would be an option that the wrapper reads in its own way.
        args.get(at).is_some_and(|word| !word.starts_with('-')).then_some(at)
    }

    fn has_attached(&self, word: &str) -> bool {
        word.starts_with("--")
            && word.split_once('=').is_some_and(|(name, given)| {
                self.values.iter().any(|(known, value)| *known == name && value.accepts(given))
            })
    }
}

impl Value {
    fn accepts(self, text: &str) -> bool {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Self::Any => !text.is_empty(),
            Self::Word => {
                !text.is_empty()
                    && !text.starts_with('-')
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
            }
            Self::Integer => digits(text.strip_prefix(['+', '-']).unwrap_or(text)),
            Self::Duration => {
                let number = text.strip_suffix(['d', 'h', 'm', 's']).unwrap_or(text);
                let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
                digits(whole) && digits(part)
            }
        }
    }
}

fn is_cluster(word: &str, letters: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|given| !given.is_empty() && given.chars().all(|l| letters.contains(l)))
}
