//! The entries in force, arranged so that a long list costs little: plain names and paths are looked up, only patterns
//! with wildcards are tried one by one.

use std::collections::HashMap;

use super::{
    Matched, Target,
    arg_pattern::ArgPattern,
    glob::Glob,
    rule::{Args, Program, Rule},
    seen::Seen,
};

/// The entries in force, each with its place in the list.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The first `*`.
    star: Option<usize>,
    /// By base name.
    names: HashMap<String, Group>,
    /// By real path.
    paths: HashMap<String, Group>,
    /// With wildcards, in the order of the list.
    wild: Vec<(usize, Rule)>,
}

/// The entries for one plain name or path.
#[derive(Debug, Default)]
struct Group {
    /// The first that is content with the program.
    path_only: Option<usize>,
    /// The first of each binding.
    bound: HashMap<String, usize>,
    /// With an expression, in the order of the list.
    patterns: Vec<(usize, ArgPattern)>,
}

/// The earliest entries found so far.
struct Earliest {
    by_args: Option<usize>,
    path_only: Option<usize>,
}

impl Index {
    /// Adds an entry; later ones must have a later place.
    pub(super) fn insert(&mut self, at: usize, rule: Rule) {
        match &rule.program {
            Program::Any => {
                self.star.get_or_insert(at);
            }
            Program::Name(Glob::Literal(name)) => {
                self.names.entry(name.clone()).or_default().insert(at, &rule.args);
            }
            Program::Path(globs) if globs.iter().all(|glob| matches!(glob, Glob::Literal(_))) => {
                for glob in globs {
                    if let Glob::Literal(path) = glob {
                        self.paths.entry(path.clone()).or_default().insert(at, &rule.args);
                    }
                }
            }
            Program::Name(Glob::Wild { .. }) | Program::Path(_) => self.wild.push((at, rule)),
        }
    }

    pub(super) fn star(&self) -> Option<Matched> {
        self.star.map(|index| Matched { index, star: true, by_args: false })
    }

    pub(super) fn find(&self, target: &Target<'_>) -> Option<Matched> {
        let seen = Seen::new(target);
        let mut earliest = Earliest { by_args: None, path_only: self.star };
        for group in
            [seen.name.and_then(|name| self.names.get(name)), seen.real.and_then(|real| self.paths.get(real))]
                .into_iter()
                .flatten()
        {
            group.find(&seen, &mut earliest);
        }
        for (at, rule) in &self.wild {
            let slot = match rule.args {
                Args::Any => &mut earliest.path_only,
                Args::Invocation(_) | Args::Pattern(_) => &mut earliest.by_args,
            };
            if is_earlier(*at, *slot) && rule.matches(&seen) {
                *slot = Some(*at);
            }
        }
        let by_args = earliest.by_args.map(|index| Matched { index, star: false, by_args: true });
        by_args.or_else(|| {
            let index = earliest.path_only?;
            Some(Matched { index, star: Some(index) == self.star, by_args: false })
        })
    }
}

impl Group {
    fn insert(&mut self, at: usize, args: &Args) {
        match args {
            Args::Any => {
                self.path_only.get_or_insert(at);
            }
            Args::Invocation(hash) => {
                self.bound.entry(hash.clone()).or_insert(at);
            }
            Args::Pattern(pattern) => self.patterns.push((at, pattern.clone())),
        }
    }

    fn find(&self, seen: &Seen<'_>, earliest: &mut Earliest) {
        if let Some(at) = self.path_only
            && is_earlier(at, earliest.path_only)
        {
            earliest.path_only = Some(at);
        }
        if !self.bound.is_empty()
            && let Some(&at) = seen.invocation().and_then(|hash| self.bound.get(hash))
            && is_earlier(at, earliest.by_args)
        {
            earliest.by_args = Some(at);
        }
        for (at, pattern) in &self.patterns {
            if !is_earlier(*at, earliest.by_args) {
                break;
            }
            if pattern.matches(seen.subject(pattern)) {
                earliest.by_args = Some(*at);
                break;
            }
        }
    }
}

fn is_earlier(at: usize, found: Option<usize>) -> bool {
    found.is_none_or(|found| at < found)
}
