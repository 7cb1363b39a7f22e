//! What changed between a plan that was approved and the world now (policy spec §7.6), and whether a request is the one
//! that the plan was made for (§7.9).

#[cfg(test)]
mod tests;

use proto::v1 as pb;

/// Something that was approved is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Drift {
    /// The working directory is another one.
    #[error("approval cwd changed before execution: {0}")]
    Workdir(String),
    /// A script has other content, or is another file.
    #[error("approval script operand changed before execution: {0}")]
    Script(String),
    /// A program is another file, or has other content.
    #[error("approval executable changed before execution: {0}")]
    Program(String),
    /// The command is understood otherwise, or a file is bound that was not.
    #[error("execution plan mismatch: {0}")]
    Plan(String),
}

/// A request that is not the one which was approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} differs from what was approved")]
pub struct Mismatch {
    /// The field, for people: `the command`, `the working directory`, …
    pub what: &'static str,
    /// It is about the variables.
    pub env: bool,
}

/// The first thing that differs between the plan that was approved and the same made now. Fields that the node sets
/// anew each time (nonce, times, reasons, scopes) do not count.
#[must_use]
pub fn drift(approved: &pb::Plan, now: &pb::Plan) -> Option<Drift> {
    let place = |plan: &pb::Plan| (plan.workdir.clone(), plan.workdir_device, plan.workdir_inode);
    if place(approved) != place(now) {
        return Some(Drift::Workdir(approved.workdir.clone()));
    }
    let otherwise = || Some(Drift::Plan("the command is understood otherwise now".to_owned()));
    let shape = |plan: &pb::Plan| -> Vec<_> {
        plan.segments.iter().map(|s| (s.argv.clone(), s.join.clone(), s.nested)).collect()
    };
    if shape(approved) != shape(now) {
        return otherwise();
    }
    let segments = approved.segments.iter().zip(&now.segments);
    let files = segments.clone().flat_map(|(then, today)| then.files.iter().zip(&today.files));
    let files = files.chain(approved.shell.iter().zip(&now.shell));
    // A script is what people expect to be named before its program, which seldom changes.
    let order = |role| match role {
        pb::bound_file::Role::Directory => 0,
        pb::bound_file::Role::Script => 1,
        pb::bound_file::Role::Program | pb::bound_file::Role::Unspecified => 2,
    };
    // A program that became a script has a file more, behind the others: what became of it is what to say.
    let changed = files.filter(|(then, today)| then != today);
    if let Some((then, today)) = changed.min_by_key(|(then, _)| order(then.role())) {
        let what = if then.path == today.path {
            then.path.clone()
        } else {
            format!("{} is now {}", then.path, today.path)
        };
        return Some(match then.role() {
            pb::bound_file::Role::Script => Drift::Script(what),
            pb::bound_file::Role::Directory => Drift::Workdir(what),
            pb::bound_file::Role::Program | pb::bound_file::Role::Unspecified => Drift::Program(what),
        });
    }
    if segments.into_iter().any(|(then, today)| then.files != today.files) {
        return otherwise();
    }
    if approved.shell != now.shell {
        return Some(Drift::Plan("the shell is used otherwise now".to_owned()));
    }
    (approved.argv != now.argv).then(|| Drift::Plan("other words would be launched now".to_owned()))
}

/// The first field of the caller's that differs.
#[must_use]
pub fn mismatch(approved: &pb::Plan, now: &pb::Plan) -> Option<Mismatch> {
    let fields = [
        ("the node", approved.node_id == now.node_id),
        ("the agent", approved.agent_id == now.agent_id),
        ("the session", approved.session_key == now.session_key),
        ("the run id", approved.run_id == now.run_id),
        ("the command", approved.command_text == now.command_text),
        (VARIABLES, (&approved.env_names, &approved.env_hash) == (&now.env_names, &now.env_hash)),
        (
            "what the caller may type",
            (approved.stdin_open, approved.terminal) == (now.stdin_open, now.terminal),
        ),
        ("the request", approved.input_digest == now.input_digest),
    ];
    fields.into_iter().find(|(_, same)| !same).map(|(what, _)| Mismatch { what, env: what == VARIABLES })
}

const VARIABLES: &str = "the variables";
