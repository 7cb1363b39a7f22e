//! The setup column of a command case: what differs from the default machine and policy.

use std::path::{Path, PathBuf};

use policy::{
    AllowAlways, AllowEntry, Ask, AskFallback, EffectivePolicy, HostPolicy, Judgement, Requested, Security,
    Terms,
    allowlist::{Allowlist, cwd_argv_hash, node_command_marker},
    analyse::{Rules, analyse},
    inline_eval::Input,
    judge,
    plan::{Invocation, Plan},
    resolve::Lookup,
    safe_bins::{SafeBins, SafeBinsConfig},
    skills::Skills,
};

use crate::{machine::Machine, unescape};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const DEFAULT_SAFE_BINS: [&str; 6] = ["cut", "uniq", "head", "tail", "tr", "wc"];

/// Everything but the command.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    machine: Machine,
    path: String,
    pub(crate) cwd: PathBuf,
    home: PathBuf,
    allowlist: Vec<AllowEntry>,
    safe_bins: SafeBinsConfig,
    skills: Vec<String>,
    pub(crate) requested: Requested,
    pub(crate) host: HostPolicy,
    pub(crate) strict: bool,
    /// The command is a JSON array of words that no shell sees.
    pub(crate) argv: bool,
    /// Where the first command's input comes from.
    pub(crate) input: Input,
    /// Files that the node's user could change.
    pub(crate) changeable: Vec<String>,
}

impl Setup {
    /// Reads the words of the column.
    pub(crate) fn read(column: &str) -> Result<Self, String> {
        let mut setup = Self {
            machine: Machine::default(),
            path: PATH.to_owned(),
            cwd: PathBuf::from("/srv/app"),
            home: PathBuf::from("/home/u"),
            allowlist: Vec::new(),
            safe_bins: SafeBinsConfig::default(),
            skills: Vec::new(),
            requested: Requested { security: Security::Full, ask: Ask::Off },
            host: HostPolicy {
                security: Security::Allowlist,
                ask: Ask::OnMiss,
                ask_fallback: AskFallback::Deny,
                auto_allow_skills: false,
                allowlist: Vec::new(),
            },
            strict: false,
            argv: false,
            input: Input::Other,
            changeable: Vec::new(),
        };
        for word in column.split(' ').filter(|word| !word.is_empty() && *word != "-") {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            setup.set(key, &unescape(value)?).map_err(|error| format!("setup word `{word}`: {error}"))?;
        }
        Ok(setup)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "allow" => self.allowlist.push(entry(value, None)),
            "always" => self.allowlist.push(entry(value, Some(AllowAlways))),
            "bound" => self.allowlist.push(bound(value)?),
            "marker" => self.allowlist.push(entry(&node_command_marker(value), Some(AllowAlways))),
            "security" => self.host.security = parse(value)?,
            "ask" => self.host.ask = parse(value)?,
            "fallback" => self.host.ask_fallback = parse(value)?,
            "asked-security" => self.requested.security = parse(value)?,
            "asked-ask" => self.requested.ask = parse(value)?,
            "strict" => self.strict = true,
            "argv" => self.argv = true,
            "stdin" => self.input = Input::Pipe,
            "changeable" => self.changeable.push(value.to_owned()),
            "cwd" => self.cwd = value.into(),
            "path" => self.path = value.to_owned(),
            "plant" => self.machine.plant(value),
            "file" => self.machine.write(value),
            "remove" => self.machine.remove(value),
            "link" => {
                let (path, target) = value.split_once('>').ok_or("no `>`")?;
                self.machine.link(path, target);
            }
            "safebins" => {
                let (start, names) = match value.strip_prefix('+') {
                    Some(names) => (DEFAULT_SAFE_BINS.as_slice(), names),
                    None => (&[] as &[&str], value),
                };
                let names = names.split(',').filter(|name| *name != "none");
                self.safe_bins.names = Some(start.iter().copied().chain(names).map(str::to_owned).collect());
            }
            "trusted" => self.safe_bins.trusted_dirs.push(value.into()),
            "profile" => {
                let (name, rules) = value.split_once(':').ok_or("no `:`")?;
                let rules = serde_json::from_str(rules).map_err(|error| error.to_string())?;
                self.safe_bins.profiles.insert(name.to_owned(), rules);
            }
            "skills" => self.skills = value.split(',').map(str::to_owned).collect(),
            _ => return Err("not known".to_owned()),
        }
        Ok(())
    }

    /// The judgement of a command under this setup.
    pub(crate) fn judge(&self, command: &Command) -> Judgement {
        let policy = EffectivePolicy::combine(self.requested, &self.host);
        let terms = Terms { policy: &policy, strict_inline_eval: self.strict };
        self.with_rules(|rules| judge(command.invocation(), self.lookup(&self.path), rules, terms))
    }

    /// The plan of a command, with more rules than there are.
    pub(crate) fn plan(&self, command: &Command, more: &[AllowEntry]) -> Result<Plan, String> {
        let mut setup = self.clone();
        setup.allowlist.extend_from_slice(more);
        setup
            .with_rules(|rules| analyse(command.invocation(), setup.lookup(&setup.path), rules))
            .map_err(|unreadable| format!("unreadable: {}", unreadable.label.as_str()))
    }

    /// Where names are looked up by default.
    pub(crate) fn usual_lookup(&self) -> Lookup<'_> {
        self.lookup(&self.path)
    }

    fn lookup<'a>(&'a self, path: &'a str) -> Lookup<'a> {
        Lookup { files: &self.machine, path, cwd: Some(&self.cwd), home: Some(&self.home) }
    }

    fn with_rules<T>(&self, decide: impl FnOnce(Rules<'_>) -> T) -> T {
        let merged = [("/bin", "/usr/bin"), ("/sbin", "/usr/bin")].map(|(a, b)| (a.into(), b.into()));
        let allowlist = Allowlist::compile(&self.allowlist, Some(Path::new(&self.home)), &merged);
        let (safe_bins, _) = SafeBins::new(&self.safe_bins);
        // The list was made when PATH was the ordinary one.
        let skills =
            Skills::find(self.skills.iter().map(String::as_str), &self.lookup("/opt/tools:/usr/bin"));
        decide(Rules { allowlist: &allowlist, safe_bins: &safe_bins, skills: &skills, input: self.input })
    }
}

/// The command column.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Text(String),
    Words(Vec<String>),
}

impl Command {
    pub(crate) fn read(column: &str, setup: &Setup) -> Result<Self, String> {
        if setup.argv {
            return Ok(Self::Words(serde_json::from_str(column).map_err(|error| error.to_string())?));
        }
        Ok(Self::Text(unescape(column)?))
    }

    fn invocation(&self) -> Invocation<'_> {
        match self {
            Self::Text(text) => Invocation::Shell(text),
            Self::Words(words) => Invocation::Argv(words),
        }
    }
}

/// `PATTERN` or `PATTERN@ARGPATTERN`.
fn entry(value: &str, source: Option<AllowAlways>) -> AllowEntry {
    let (pattern, arg_pattern) = match value.split_once('@') {
        Some((pattern, arguments)) => (pattern, Some(arguments.to_owned())),
        None => (value, None),
    };
    AllowEntry { pattern: pattern.to_owned(), arg_pattern, source, ..AllowEntry::default() }
}

/// `PATTERN@CWD@ARG@ARG`: what a person's `allow-always` stores.
fn bound(value: &str) -> Result<AllowEntry, String> {
    let mut parts = value.split('@').map(str::to_owned);
    let pattern = parts.next().ok_or("no pattern")?;
    let cwd = parts.next().ok_or("no cwd")?;
    let arguments: Vec<String> = parts.collect();
    Ok(AllowEntry {
        pattern,
        arg_pattern: Some(cwd_argv_hash(&cwd, &arguments)),
        source: Some(AllowAlways),
        ..AllowEntry::default()
    })
}

pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T, String> {
    word.parse().map_err(|error: T::Err| format!("`{word}`: {error}"))
}
