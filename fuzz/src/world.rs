//! The machine and the rules that commands are judged by.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
};

use policy::{
    AllowAlways, AllowEntry, Ask, AskFallback, DecidedBy, EffectivePolicy, Judgement, Security, Terms,
    allowlist::{Allowlist, cwd_argv_hash},
    analyse::Rules,
    judge,
    plan::Invocation,
    resolve::{File, Files, Lookup},
    safe_bins::{SafeBins, SafeBinsConfig},
    skills::Skills,
};

// The machine that the cases speak of.
#[allow(dead_code, reason = "the cases also change it")]
#[path = "../../shared/policy/tests/cases/machine.rs"]
mod machine;

/// How many sets of rules there are.
pub const SETS: usize = 8;
/// The set whose list holds `*`.
pub const STAR: usize = SETS - 1;
/// How many places commands can be looked up from.
pub const PLACES: usize = 4;

const HOME: &str = "/home/u";
const CWD: &str = "/srv/app";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Answers that are kept.
const MAX_KEPT: usize = 8192;

thread_local! {
    pub static WORLD: World = World::new();
}

pub struct World {
    files: Kept,
    sets: [Set; SETS],
}

/// A set of rules.
pub struct Set {
    allowlist: Allowlist,
    safe_bins: SafeBins,
    skills: Skills,
    /// The names of the safe bins.
    pub bins: Vec<String>,
    /// The same without entries and skills.
    pub without_entries: usize,
}

/// A machine that remembers what was looked at, as a node does.
struct Kept {
    machine: machine::Machine,
    files: RefCell<HashMap<PathBuf, Option<File>>>,
}

impl Files for Kept {
    fn look(&self, path: &Path) -> Option<File> {
        let mut files = self.files.borrow_mut();
        if let Some(file) = files.get(path) {
            return file.clone();
        }
        if files.len() >= MAX_KEPT {
            files.clear();
        }
        let file = self.machine.look(path);
        files.insert(path.to_owned(), file.clone());
        file
    }
}

impl Set {
    /// Its entries.
    pub fn entries(&self) -> &[AllowEntry] {
        self.allowlist.entries()
    }

    /// Whether it names programs of skills.
    pub fn has_skills(&self) -> bool {
        !self.skills.is_empty()
    }
}

impl World {
    fn new() -> Self {
        let files = Kept { machine: machine::Machine::default(), files: RefCell::default() };
        let usual = "cut uniq head tail tr wc";
        let more = "cut uniq head tail tr wc grep sort";
        let plain = ["git", "rg", "ls", "cat"].map(|pattern| entry(pattern, None));
        let paths =
            ["/usr/bin/?at", "/opt/**/rg", "/srv/app/*.sh", "~/bin/*"].map(|pattern| entry(pattern, None));
        let carriers =
            "env nohup bash sh dash sudo find xargs npx npm pnpm busybox docker python3 perl awk sed make";
        let bound = |pattern: &str, args: &[&str]| AllowEntry {
            source: Some(AllowAlways),
            ..entry(
                pattern,
                Some(&cwd_argv_hash(CWD, &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())),
            )
        };
        let by_args = vec![
            entry("python3", Some(r"^safe\.py$")),
            entry("bash", Some("^-c ls$")),
            entry("rg", Some("^a\0b\0$")),
            bound("/usr/bin/git", &["log", "-n", "3"]),
        ];
        let set = |entries: Vec<AllowEntry>, bins: &str, skills: &str, without_entries| {
            Set::new(&files, &entries, bins, skills, without_entries)
        };
        let sets = [
            set(Vec::new(), "", "", 0),
            set(Vec::new(), usual, "", 1),
            set(Vec::new(), more, "", 2),
            set(vec![entry("git", None)], "", "", 0),
            set(plain.into(), more, "deploy rg", 2),
            set(paths.into_iter().chain(by_args).collect(), usual, "", 1),
            set(carriers.split(' ').map(|pattern| entry(pattern, None)).collect(), usual, "", 1),
            set(vec![entry("git", None), entry("*", None)], more, "", 2),
        ];
        Self { files, sets }
    }

    /// A set of rules; the last where there are fewer.
    pub fn set(&self, at: usize) -> &Set {
        &self.sets[at.min(SETS - 1)]
    }

    /// What lies at a path.
    pub fn look(&self, path: &str) -> Option<File> {
        self.files.look(Path::new(path))
    }

    /// The judgement of the usual policy: what no rule satisfies, a person is asked about.
    pub fn judge_by(&self, set: usize, invocation: Invocation<'_>) -> Judgement {
        self.judge(set, 0, invocation, Security::Allowlist, Ask::OnMiss, false)
    }

    /// A judgement, with the commands looked up from one of [`PLACES`].
    pub fn judge(
        &self,
        set: usize,
        place: usize,
        invocation: Invocation<'_>,
        security: Security,
        ask: Ask,
        strict_inline_eval: bool,
    ) -> Judgement {
        let set = self.set(set);
        let rules = Rules {
            allowlist: &set.allowlist,
            safe_bins: &set.safe_bins,
            skills: &set.skills,
            input: policy::inline_eval::Input::Other,
        };
        let policy = policy(security, ask);
        judge(invocation, self.files.lookup(place), rules, Terms { policy: &policy, strict_inline_eval })
    }
}

/// A policy whose fallback is the widest that it can be.
pub fn policy(security: Security, ask: Ask) -> EffectivePolicy {
    EffectivePolicy {
        security,
        decided_by: DecidedBy::Host,
        ask_decided_by: DecidedBy::Host,
        ask,
        ask_fallback: AskFallback::Full.within(security),
        auto_allow_skills: true,
    }
}

impl Kept {
    fn lookup(&self, place: usize) -> Lookup<'_> {
        let (path, cwd) = match place % PLACES {
            0 => (PATH, Some(Path::new(CWD))),
            // Where nobody knows the directory.
            1 => (PATH, None),
            // The directory itself is searched first, then one that others can write.
            2 => (":/opt/planted:/usr/bin", Some(Path::new(CWD))),
            _ => ("sub:/tmp/x:/usr/bin", Some(Path::new(CWD))),
        };
        Lookup { files: self, path, cwd, home: Some(Path::new(HOME)) }
    }
}

impl Set {
    fn new(files: &Kept, entries: &[AllowEntry], bins: &str, skills: &str, without_entries: usize) -> Self {
        let merged =
            [("/bin", "/usr/bin"), ("/sbin", "/usr/bin")].map(|(link, real)| (link.into(), real.into()));
        let allowlist = Allowlist::compile(entries, Some(Path::new(HOME)), &merged);
        assert!(allowlist.problems().is_empty(), "{:?}", allowlist.problems());
        let bins: Vec<String> = bins.split_whitespace().map(str::to_owned).collect();
        let config = SafeBinsConfig { names: Some(bins.clone()), ..SafeBinsConfig::default() };
        let (safe_bins, _) = SafeBins::new(&config);
        let skills = Skills::find(
            skills.split_whitespace(),
            &Lookup { path: "/opt/tools:/usr/bin", ..files.lookup(0) },
        );
        Self { allowlist, safe_bins, skills, bins, without_entries }
    }
}

fn entry(pattern: &str, arg_pattern: Option<&str>) -> AllowEntry {
    AllowEntry {
        pattern: pattern.to_owned(),
        arg_pattern: arg_pattern.map(str::to_owned),
        ..AllowEntry::default()
    }
}
