//! What ought to happen: what the stubs see when a script's commands run in their order.

use policy::shell::{Join, Script, SimpleCommand, quote};

use crate::machine::{Run, Runs, STUBS};

/// What the stubs see when the commands run in their order.
pub(crate) fn expected_runs(script: &Script) -> Runs {
    let mut runs = Vec::new();
    let mut succeeded = true;
    for pipeline in pipelines(&script.commands) {
        let (first, last) = (pipeline.first().unwrap(), pipeline.last().unwrap());
        let goes_ahead = match first.join {
            Join::And => succeeded,
            Join::Or => !succeeded,
            Join::Start | Join::Then | Join::Pipe | Join::PipeBoth => true,
        };
        if !goes_ahead {
            continue;
        }
        let mut seen: Vec<Run> = pipeline.iter().filter_map(seen_by_stub).collect();
        seen.sort();
        runs.push(seen);
        succeeded = match last.words.first() {
            None => true,
            Some(program) => STUBS.contains(&(program.text.as_str(), true)),
        } != first.negated;
    }
    runs
}

fn pipelines(commands: &[SimpleCommand]) -> Vec<&[SimpleCommand]> {
    commands.chunk_by(|_, next| next.join.is_pipe()).collect()
}

fn seen_by_stub(command: &SimpleCommand) -> Option<Run> {
    let argv: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
    let known = STUBS.iter().any(|(name, _)| Some(*name) == argv.first().map(String::as_str));
    known.then(|| Run { argv, a: assigned(command) })
}

/// The value of `A` after the command's assignments, if there is one to it.
fn assigned(command: &SimpleCommand) -> Option<String> {
    let mut to_a = command.assignments.iter().filter(|assignment| assignment.name == "A");
    to_a.next_back().map(|assignment| assignment.value.text.clone())
}

/// Whether running the script is harmless and its words are all known.
pub(crate) fn comparable(script: &Script) -> bool {
    script.commands.iter().all(|command| {
        let values = command.assignments.iter().map(|assignment| &assignment.value);
        values.chain(&command.words).all(|word| word.expands.is_none())
            // The only builtins that the characters of the test can spell.
            && !command.words.first().is_some_and(|word| matches!(word.text.as_str(), ":" | "." | "["))
    })
}

/// The text that is launched: every word quoted.
pub(crate) fn canonical(script: &Script) -> String {
    let mut text = String::new();
    for command in &script.commands {
        text.push_str(command.join.canonical());
        text.push_str(if command.negated { "! " } else { "" });
        let assignments = command
            .assignments
            .iter()
            .map(|assignment| format!("{}={}", assignment.name, quote(&assignment.value.text)));
        let words = command.words.iter().map(|word| quote(&word.text));
        text.push_str(&assignments.chain(words).collect::<Vec<_>>().join(" "));
    }
    text
}
