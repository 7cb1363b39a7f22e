//! From a wire invocation to an argv that the system can take.

use fault::{ErrorCode, Fault};
use policy::plan::Invocation;
use proto::v1 as pb;

use super::invalid;
use crate::process::EnvVar;

/// The node's shell: not a login shell, so that the service's PATH stays.
pub(super) const SHELL: &str = "/bin/sh";
/// Longest single argument, in bytes without its NUL (`MAX_ARG_STRLEN` of
/// Linux, 32 pages).
pub(super) const ARGUMENT_MAX: usize = 131_071;
/// Argument and environment space. Linux gives a quarter of the stack limit,
/// which is 8 MiB unless somebody changed it, and never less than this.
pub(super) const TOTAL_MAX: usize = 2 * 1024 * 1024 - 4096;

/// A command that can be given to the system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) argv: Vec<String>,
    /// For people; and what the shell gets, where it is one's.
    pub(super) text: String,
    /// The shell reads the text.
    pub(super) text_for_shell: bool,
}

impl Command {
    /// As the rules read it.
    pub(super) fn invocation(&self) -> Invocation<'_> {
        if self.text_for_shell { Invocation::Shell(&self.text) } else { Invocation::Argv(&self.argv) }
    }
}

/// The words that have the node's shell run a text.
pub(super) fn by_shell(text: String) -> Vec<String> {
    vec![SHELL.to_owned(), "-c".to_owned(), text]
}

/// Reads an invocation.
pub(super) fn parse(invocation: Option<&pb::Invocation>) -> Result<Command, Fault> {
    let command = match invocation.and_then(|i| i.form.as_ref()) {
        Some(pb::invocation::Form::Shell(text)) => {
            if text.trim().is_empty() {
                return Err(no_command());
            }
            Command { argv: by_shell(text.clone()), text: text.clone(), text_for_shell: true }
        }
        Some(pb::invocation::Form::Argv(argv)) => {
            if argv.words.first().is_none_or(|program| program.is_empty()) {
                return Err(no_command());
            }
            Command { argv: argv.words.clone(), text: display(&argv.words), text_for_shell: false }
        }
        None => return Err(no_command()),
    };
    for word in &command.argv {
        if word.contains('\0') {
            return Err(Fault::new(ErrorCode::CommandNul, "the command contains a NUL character")
                .hint("no system can pass one to a program; send it as input or in a file"));
        }
        if word.len() > ARGUMENT_MAX {
            return Err(Fault::new(
                ErrorCode::CommandTooLong,
                format!("one argument has {} bytes, the system takes {ARGUMENT_MAX}", word.len()),
            )
            .hint("send it as input (`--stdin`) or write it to a file first"));
        }
    }
    Ok(command)
}

/// Refuses what `execve` would refuse with E2BIG, before anything is started.
pub(super) fn check_size(argv: &[String], env: &[EnvVar]) -> Result<(), Fault> {
    // Each string takes its bytes, a NUL and a pointer.
    let overhead = 1 + size_of::<usize>();
    let arguments: usize = argv.iter().map(|word| word.len() + overhead).sum();
    let variables: usize = env.iter().map(|(key, value)| key.len() + 1 + value.len() + overhead).sum();
    if let Some((key, _)) = env.iter().find(|(key, value)| key.len() + 1 + value.len() > ARGUMENT_MAX) {
        return Err(Fault::new(
            ErrorCode::CommandTooLong,
            format!("the variable {} is longer than {ARGUMENT_MAX} bytes", String::from_utf8_lossy(key)),
        ));
    }
    if arguments + variables > TOTAL_MAX {
        return Err(Fault::new(
            ErrorCode::CommandTooLong,
            format!(
                "command and environment take {} bytes, the system takes {TOTAL_MAX}",
                arguments + variables
            ),
        )
        .hint("send the data as input (`--stdin`) or write it to a file first"));
    }
    Ok(())
}

/// An argv as one line, quoted where a shell would need it.
fn display(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&b) || !b.is_ascii())
    };
    let quoted: Vec<String> = words
        .iter()
        .map(|word| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) })
        .collect();
    quoted.join(" ")
}

fn no_command() -> Fault {
    invalid("no command was given").hint("gateway exec -- COMMAND…")
}
