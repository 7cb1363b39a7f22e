//! A plan that a person can say yes to: what would run, tied to the files that it would run (policy spec §7.1 to §7.4).

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fault::{ErrorCode, Fault};
use policy::analyse::{Rules, analyse};
use policy::bind::{Keepable, Role, ToBind, Unbindable, Width, bind, keepable};
use policy::plan::{Launch, Plan};
use policy::resolve::Lookup;
use policy::verdict::NeedsApproval;
use policy::{Verdict, shell};
use proto::v1 as pb;

use super::command::{self, SHELL};
use super::open_plans::PLAN_LIFE;
use super::{Asked, Considered, Door, ask_to_wire, content, invalid, security_to_wire};
use crate::facts;
use crate::process::shebang;
use crate::process::wire::{BOUND_FD, BOUND_MAX};
use crate::process::{Bound, BoundFile, BoundRole};
use crate::starter;

/// A plan, what it would keep, and how it is launched.
#[derive(Debug)]
pub(super) struct Binding {
    /// Without nonce and digest.
    pub(super) plan: pb::Plan,
    pub(super) keepable: Vec<Keepable>,
    /// The words that are launched, which name the bound files.
    pub(super) argv: Vec<String>,
    pub(super) bound: Bound,
}

impl Door {
    /// Ties a command that needs a yes to what it would run. Reads files: not for the thread that serves.
    ///
    /// # Errors
    /// It cannot be tied, and how it could be said otherwise.
    pub(super) fn bind(&self, asked: &Asked, considered: &Considered) -> Result<Binding, Fault> {
        self.check_workdir_is_canonical(asked)?;
        let plan = self.plan_to_bind(asked, considered)?;
        let found = considered.lookup(self);
        let files = bind(&plan, found, asked.input()).map_err(|unbindable| cannot(&unbindable))?;
        let mut wire_files = files.iter().map(on_disk).collect::<Result<Vec<_>, _>>()?;
        let (argv, exec, shell) = launch(&plan, &files)?;
        wire_files.extend(shell.clone());
        let interpreters = interpreters(&files, found)?;
        if wire_files.len() + interpreters.len() > BOUND_MAX {
            return Err(invalid(format!(
                "cannot safely bind this command: it uses more than {BOUND_MAX} files"
            ))
            .hint("put part of it into a script and run that: a script is bound by its content"));
        }
        let cwd = considered.cwd.metadata().map_err(|error| gone(&considered.cwd, &error))?;
        let bound = Bound {
            files: wire_files
                .iter()
                .enumerate()
                .map(|(index, file)| {
                    let by_path = files
                        .get(index)
                        .and_then(|file| interpreter_of(&plan, file.segment))
                        .is_some_and(|name| !shebang::reads_descriptors(name));
                    to_holder(file, by_path)
                })
                // Behind the others, whose places the words name.
                .chain(
                    interpreters
                        .iter()
                        .map(|(_, file)| BoundFile { role: BoundRole::Named, ..to_holder(file, true) }),
                )
                .collect(),
            exec,
            workdir: (cwd.dev(), cwd.ino()),
            starter: argv.iter().any(|word| word.contains(starter::WORD)),
        };
        let kept = keepable(
            &plan,
            &files,
            &|file| content::others_can_change(&file.path),
            &considered.cwd,
            considered.effective.ask,
            asked.strict_inline_eval || considered.rules.strict_inline_eval,
        );
        let (keepable, unavailable) = match kept {
            Ok(keepable) => (keepable, String::new()),
            Err(reason) => (Vec::new(), reason),
        };
        let mut plan = self.wire_plan(asked, considered, &plan, &files, wire_files)?;
        for (segment, file) in interpreters {
            plan.segments.get_mut(segment).ok_or_else(unexpected)?.files.push(file);
        }
        plan.shell = shell;
        plan.workdir_device = cwd.dev();
        plan.workdir_inode = cwd.ino();
        plan.always = keepable.iter().map(scope).collect();
        plan.always_unavailable = unavailable;
        Ok(Binding { plan, keepable, argv, bound })
    }

    /// What is read of the command. Under security=full nothing was so far.
    fn plan_to_bind(&self, asked: &Asked, considered: &Considered) -> Result<Plan, Fault> {
        let judgement = &considered.judgement;
        if let Some(plan) = &judgement.plan {
            return Ok(plan.clone());
        }
        let read = match judgement.unreadable {
            Some(unreadable) => Err(unreadable),
            None => {
                let lookup = considered.lookup(self);
                let skills = self.skills_for(&considered.effective, &lookup).unwrap_or_default();
                let rules = Rules {
                    allowlist: considered.allowlist(),
                    safe_bins: &considered.rules.safe_bins,
                    skills: &skills,
                    input: asked.input(),
                };
                analyse(asked.command.invocation(), lookup, rules)
            }
        };
        read.map_err(|unreadable| {
            cannot(&Unbindable {
                shape: unreadable.label.as_str(),
                message: unreadable.to_string(),
                hint: "write it without what stands there, or put it into a script and run that: a script is bound by its content"
                    .to_owned(),
            })
        })
    }

    fn wire_plan(
        &self,
        asked: &Asked,
        considered: &Considered,
        plan: &Plan,
        files: &[ToBind],
        wire_files: Vec<pb::BoundFile>,
    ) -> Result<pb::Plan, Fault> {
        let effective = &considered.effective;
        let (reasons, why) = match &considered.judgement.verdict {
            Verdict::NeedsApproval(NeedsApproval { reasons, .. }) => {
                let words = reasons.iter().map(|reason| reason.as_str().to_owned()).collect();
                (words, policy::verdict::because(Some(plan), reasons))
            }
            // Allowed meanwhile: a decision about it is redeemed all the same.
            Verdict::Run(_) | Verdict::Denied(_) => (Vec::new(), String::new()),
        };
        let mut segments: Vec<pb::PlanSegment> = Vec::new();
        for top in &plan.segments {
            let wire = |segment: &policy::plan::Segment, nested| pb::PlanSegment {
                argv: segment.argv.clone(),
                join: segment.join.canonical().to_owned(),
                nested,
                files: Vec::new(),
            };
            segments.push(wire(top, false));
            segments.extend(top.payload.iter().flat_map(|(_, inner)| inner).map(|inner| wire(inner, true)));
        }
        for (file, wire) in files.iter().zip(wire_files) {
            let segment = segments.get_mut(file.segment).ok_or_else(unexpected)?;
            segment.files.push(wire);
        }
        let created = facts::clock_unix_ms();
        let mut env_names: Vec<_> = asked.overrides.iter().map(|(name, _)| name.clone()).collect();
        env_names.sort_unstable();
        Ok(pb::Plan {
            argv: shown_launch(plan)?,
            workdir: considered.cwd.display().to_string(),
            command_text: asked.command.text.clone(),
            agent_id: asked.agent.clone().unwrap_or_default(),
            session_key: asked.session_key.clone(),
            security: security_to_wire(effective.security).into(),
            ask: ask_to_wire(effective.ask).into(),
            needs_approval: true,
            node_id: self.node_id.clone(),
            run_id: asked.run_id.to_string(),
            segments,
            env_names,
            env_hash: policy::allowlist::env_hash(&asked.overrides).unwrap_or_default(),
            policy_revision: considered.snapshot().revision(),
            created_unix_ms: created,
            expires_unix_ms: created.saturating_add_unsigned(millis(PLAN_LIFE)),
            reasons,
            why,
            asked_by: effective.ask_decided_by.as_str().to_owned(),
            input_digest: asked.input_digest.to_vec().into(),
            stdin_open: asked.takes_input(),
            terminal: asked.is_terminal(),
            ..pb::Plan::default()
        })
    }

    /// A link could lead elsewhere by then, and the path that was shown would not (policy spec §7.3). Links further up
    /// do no harm: the canonical path is what is shown, and the directory is entered by its identity.
    fn check_workdir_is_canonical(&self, asked: &Asked) -> Result<(), Fault> {
        let given = &asked.workdir;
        let leaf = match (given.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.default_dir.join(given),
        };
        // Without `/` and `/.` at its end.
        let leaf: PathBuf = leaf.components().collect();
        if !given.is_empty() && leaf.is_symlink() {
            return Err(invalid(format!("cannot safely bind this command: the workdir {given} is a link"))
                .hint("name the directory itself; no approval was requested"));
        }
        Ok(())
    }
}

/// The words that are launched, which of the files they begin with, and the shell where one runs them.
fn launch(plan: &Plan, files: &[ToBind]) -> Result<(Vec<String>, usize, Option<pb::BoundFile>), Fault> {
    let by_shell = matches!(plan.launch().map_err(expands)?, Launch::Shell(_));
    let direct =
        |file: &ToBind| !by_shell && file.role == Role::Program && (file.segment, file.word) == (0, 0);
    let mut words = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let named = match file.role {
            Role::Program if direct(file) => continue,
            Role::Program => starter::words(index, &file.path.display().to_string()),
            Role::Script => match interpreter_of(plan, file.segment) {
                Some(shell) if shebang::is_shell(shell) => {
                    shebang::shell_words(BOUND_FD + i32::try_from(index).unwrap_or(0), &word_of(plan, file))
                        .to_vec()
                }
                Some(name) if shebang::reads_descriptors(name) => vec![descriptor(index)],
                // Checked by the holder at the last moment, and opened by its path.
                Some(_) | None => continue,
            },
            // A relative one would start at whatever PWD says.
            Role::Directory => vec![file.path.display().to_string()],
        };
        words.insert((file.segment, file.word), named);
    }
    match plan.launch_bound(&words).map_err(expands)? {
        Launch::Argv(argv) => {
            let exec = files.iter().position(direct).ok_or_else(unexpected)?;
            Ok((argv, exec, None))
        }
        Launch::Shell(text) => Ok((
            command::by_shell(text),
            files.len(),
            Some(bound_file(Path::new(SHELL), pb::bound_file::Role::Program, 0)?),
        )),
        Launch::AsSent => Err(unexpected()),
    }
}

/// The programs that scripts name in their first lines, which the system or a shell starts for them; by segment.
fn interpreters(files: &[ToBind], lookup: Lookup<'_>) -> Result<Vec<(usize, pb::BoundFile)>, Fault> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.role == Role::Program) {
        let Some(name) = content::interpreter(&file.path) else { continue };
        // One that is not there is for the start to say.
        if let Some(program) = lookup.find(&name) {
            let word = u32::try_from(file.word).map_err(|_| unexpected())?;
            found.push((file.segment, bound_file(&program.path, pb::bound_file::Role::Program, word)?));
        }
    }
    Ok(found)
}

/// The path of the k-th bound file in the command.
fn descriptor(index: usize) -> String {
    format!("/proc/self/fd/{}", BOUND_FD + i32::try_from(index).unwrap_or(0))
}

/// The program of a segment that reads its script.
fn interpreter_of(plan: &Plan, segment: usize) -> Option<&str> {
    let segment = plan.each().nth(segment)?;
    segment.argv.get(segment.subject).map(String::as_str)
}

/// The word that names a file, as the caller wrote it.
fn word_of(plan: &Plan, file: &ToBind) -> String {
    let segment = plan.each().nth(file.segment);
    segment.and_then(|segment| segment.argv.get(file.word)).cloned().unwrap_or_default()
}

/// What is launched, as people read it: programs by their paths.
fn shown_launch(plan: &Plan) -> Result<Vec<String>, Fault> {
    match plan.launch().map_err(expands)? {
        Launch::Argv(argv) => Ok(argv),
        Launch::Shell(text) => Ok(command::by_shell(text)),
        Launch::AsSent => Err(unexpected()),
    }
}

fn on_disk(file: &ToBind) -> Result<pb::BoundFile, Fault> {
    let role = match file.role {
        Role::Program => pb::bound_file::Role::Program,
        Role::Script => pb::bound_file::Role::Script,
        Role::Directory => pb::bound_file::Role::Directory,
    };
    bound_file(&file.path, role, u32::try_from(file.word).map_err(|_| unexpected())?)
}

/// A file as it is now.
fn bound_file(path: &Path, role: pb::bound_file::Role, word: u32) -> Result<pb::BoundFile, Fault> {
    let found = path.metadata().map_err(|error| gone(path, &error))?;
    let real = path.canonicalize().map_err(|error| gone(path, &error))?;
    let by_content = role != pb::bound_file::Role::Directory && content::user_can_change(path);
    let sha256 = if by_content {
        content::sha256(&real).map_err(|error| gone(path, &error))?.to_vec()
    } else {
        Vec::new()
    };
    Ok(pb::BoundFile {
        role: role.into(),
        word,
        path: path.display().to_string(),
        real_path: real.display().to_string(),
        device: found.dev(),
        inode: found.ino(),
        sha256: sha256.into(),
    })
}

/// `by_path`: a script is opened by its path.
fn to_holder(file: &pb::BoundFile, by_path: bool) -> BoundFile {
    BoundFile {
        path: file.path.clone().into(),
        device: file.device,
        inode: file.inode,
        sha256: <[u8; 32]>::try_from(file.sha256.as_ref()).ok(),
        role: match file.role() {
            pb::bound_file::Role::Script if by_path => BoundRole::Named,
            pb::bound_file::Role::Script => BoundRole::Script,
            pb::bound_file::Role::Directory => BoundRole::Directory,
            pb::bound_file::Role::Program | pb::bound_file::Role::Unspecified => BoundRole::Program,
        },
    }
}

fn scope(kept: &Keepable) -> pb::AlwaysScope {
    pb::AlwaysScope {
        scope: match kept.width {
            Width::Exact => pb::Scope::Exact,
            Width::ProgramArgs => pb::Scope::ProgramArgs,
            Width::Program => pb::Scope::Program,
        }
        .into(),
        rules: kept
            .entries
            .iter()
            .map(|entry| pb::ScopeRule {
                pattern: entry.pattern.clone(),
                arg_pattern: entry.arg_pattern.clone().unwrap_or_default(),
                text: rule_text(kept.width, entry),
            })
            .collect(),
        not_durable: kept.not_durable.clone().unwrap_or_default(),
    }
}

/// A rule for people.
pub(super) fn rule_text(width: Width, entry: &policy::AllowEntry) -> String {
    match (width, &entry.arg_pattern) {
        (Width::Exact, _) => format!("{} with exactly these arguments, in this directory", entry.pattern),
        (_, Some(args)) => format!("{} with arguments that match {args}", entry.pattern),
        (_, None) => format!("{} with any arguments", entry.pattern),
    }
}

fn cannot(unbindable: &Unbindable) -> Fault {
    tracing::info!(shape = unbindable.shape, "a command cannot be bound");
    invalid(format!("cannot safely bind this command: {}; no approval was requested", unbindable.message))
        .hint(unbindable.hint.clone())
}

fn expands(expansion: shell::Expansion) -> Fault {
    cannot(&Unbindable {
        shape: "expansion",
        message: format!("the shell would still expand a word ({})", expansion.as_str()),
        hint: "write the names out, or quote the word if the character is meant itself".to_owned(),
    })
}

fn gone(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(
        ErrorCode::SystemRunDenied,
        format!("SYSTEM_RUN_DENIED: {} cannot be bound: {error}", path.display()),
    )
    .hint("no approval was requested; try again when the file is in place")
}

fn unexpected() -> Fault {
    Fault::new(ErrorCode::Internal, "the plan and its files do not fit together")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
