//! Safe bins: narrow filters of standard input that run without an entry (policy spec §4).
//!
//! Owns the names, the trusted directories and the rules for arguments. Looks at no file: which file a name stands for is
//! found by `resolve`, and whether an argument names one that exists must not matter.

mod dirs;
mod names;
mod profile;
mod table;
#[cfg(test)]
mod tests;
mod tokens;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use names::Unfit;
use profile::Profile;

/// What the configuration says (`tools.exec.safeBins` and its siblings).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafeBinsConfig {
    /// The names; none: the default ones. Empty: no safe bins.
    pub names: Option<Vec<String>>,
    /// Trusted directories besides `/bin` and `/usr/bin`, as they are without links.
    pub trusted_dirs: Vec<PathBuf>,
    /// Rules for the arguments of programs that have no built-in ones, or instead of them.
    pub profiles: BTreeMap<String, CustomProfile>,
}

/// Rules for the arguments of a program (§4.4). Flags are written with their dashes; one that is not listed is refused,
/// there are none without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CustomProfile {
    /// Fewest positional arguments.
    pub min_positional: Option<usize>,
    /// Most positional arguments; none: any number. Raised to the fewest.
    pub max_positional: Option<usize>,
    /// Flags that take a value.
    pub allowed_value_flags: Vec<String>,
    /// Flags that are refused, also where they are allowed above.
    pub denied_flags: Vec<String>,
}

/// Something in the configuration that is not what its writer may think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeBinWarning {
    /// A stable id (§4.5).
    pub id: &'static str,
    /// The sentence.
    pub message: String,
}

/// An interpreter was listed.
pub const INTERPRETER_UNPROFILED: &str = "tools.exec.safe_bins_interpreter_unprofiled";
/// A program was listed that no profile makes safe.
pub const BROAD_BEHAVIOR: &str = "tools.exec.safe_bins_broad_behavior";
/// A trusted directory that others can fill.
pub const TRUSTED_DIRS_RISKY: &str = "tools.exec.safe_bin_trusted_dirs_risky";
/// A program was listed that has no profile. Ours: the source only logs it.
pub const UNPROFILED: &str = "tools.exec.safe_bins_unprofiled";
/// A profile has flags that are none. Ours.
pub const PROFILE_FLAGS: &str = "tools.exec.safe_bin_profile_flags";

/// Why arguments do not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SafeBinMiss {
    /// The program is no safe bin.
    #[error("it is no safe bin")]
    NotListed,
    /// The file lies elsewhere.
    #[error("it does not lie in a trusted directory")]
    UntrustedDirectory,
    /// An argument does not pass.
    #[error("the argument {index} does not pass: {reason}")]
    Argument {
        /// Its place among the arguments, from 1.
        index: usize,
        /// Why.
        reason: &'static str,
    },
    /// Arguments are missing.
    #[error("it needs at least {min} positional arguments")]
    TooFew {
        /// The fewest.
        min: usize,
    },
}

/// The safe bins in force.
#[derive(Debug)]
pub struct SafeBins {
    bins: Vec<Bin>,
    trusted_dirs: Vec<PathBuf>,
}

#[derive(Debug)]
struct Bin {
    /// Lower-cased.
    name: String,
    /// The profile came with the program, so it holds for the program of exactly this name.
    built_in: bool,
    profile: Profile,
}

impl SafeBins {
    /// Makes a configuration ready, and says what in it has no effect or is risky.
    #[must_use]
    pub fn new(config: &SafeBinsConfig) -> (Self, Vec<SafeBinWarning>) {
        let mut warnings = Vec::new();
        let trusted_dirs = dirs::trusted(&config.trusted_dirs, &mut warnings);
        let mut made = Self { bins: Vec::new(), trusted_dirs };
        let Some(listed) = &config.names else {
            for data in table::BUILT_IN.iter().filter(|data| data.by_default) {
                made.add(data.name, config, &mut warnings);
            }
            return (made, warnings);
        };
        for name in listed {
            made.add(&name.trim().to_ascii_lowercase(), config, &mut warnings);
        }
        (made, warnings)
    }

    /// Adds a name that is fit and has a profile. Lower-cased before.
    fn add(&mut self, name: &str, config: &SafeBinsConfig, warnings: &mut Vec<SafeBinWarning>) {
        if self.bins.iter().any(|bin| bin.name == name) {
            return;
        }
        let shown = name.escape_debug();
        let mut warn = |id, message| warnings.push(SafeBinWarning { id, message });
        let custom = config.profiles.iter().find(|(profiled, _)| profiled.trim().eq_ignore_ascii_case(name));
        if let Some(unfit) = names::unfit(name) {
            let (id, what) = match unfit {
                Unfit::Interpreter if custom.is_none() => {
                    (INTERPRETER_UNPROFILED, "it runs what its input says")
                }
                Unfit::Interpreter => (BROAD_BEHAVIOR, "it runs what its input says, whatever its profile"),
                Unfit::Programmable => {
                    (BROAD_BEHAVIOR, "its program text can reach files and the environment")
                }
                Unfit::Carrier => (BROAD_BEHAVIOR, "it starts other programs"),
            };
            warn(id, format!("`{shown}` in safeBins is ignored: {what}; use an allowlist entry"));
            return;
        }
        let built_in = table::BUILT_IN.iter().find(|data| data.name == name);
        let profile = match (custom, built_in) {
            (Some((_, data)), _) => {
                let (profile, malformed) = Profile::custom(data);
                if !malformed.is_empty() {
                    let flags = malformed.join("`, `").escape_debug().to_string();
                    let message = format!(
                        "the profile of `{shown}` in safeBinProfiles has entries that are no flags (write `-x` or \
                         `--name`) and have no effect: `{flags}`"
                    );
                    warn(PROFILE_FLAGS, message);
                }
                profile
            }
            (None, Some(data)) => Profile::built_in(data),
            (None, None) => {
                let hint =
                    if name.contains('/') { "write the bare name" } else { "add it to safeBinProfiles" };
                warn(UNPROFILED, format!("`{shown}` in safeBins is ignored: it has no profile; {hint}"));
                return;
            }
        };
        self.bins.push(Bin { name: name.to_owned(), built_in: custom.is_none(), profile });
    }

    /// Whether `path` lies directly in a trusted directory. For a file without links; see [`Self::is_trusted_program`]
    /// for one that is started by another path.
    #[must_use]
    pub fn is_trusted(&self, path: &Path) -> bool {
        path.parent().is_some_and(|dir| self.trusted_dirs.iter().any(|trusted| trusted == dir))
    }

    /// Whether a program is what its name says: the file lies in a trusted directory, and so does the path that it is
    /// started by where that has another name. A link `head` to `/usr/bin/python3` that anybody can make is no `head`
    /// (§11 gap 18); a link that lies in `/usr/bin` was put there by the machine's owner.
    #[must_use]
    pub fn is_trusted_program(&self, path: &Path, real: &Path) -> bool {
        self.is_trusted(real) && (path.file_name() == real.file_name() || self.is_trusted(path))
    }

    /// The trusted directories, so that the caller can look whether others may write them.
    #[must_use]
    pub fn trusted_dirs(&self) -> &[PathBuf] {
        &self.trusted_dirs
    }

    /// Whether a program may run with these arguments. Looks at no file: the answer does not depend on which files
    /// exist (§4, F031). `path` is what it is started by, `real` the file behind it.
    ///
    /// # Errors
    /// See [`SafeBinMiss`].
    pub fn check(&self, path: &Path, real: &Path, args: &[String]) -> Result<(), SafeBinMiss> {
        // Rights of files mean something else there (§4.1).
        if cfg!(windows) {
            return Err(SafeBinMiss::NotListed);
        }
        let (Some(name), Some(target)) = (base_name(path), base_name(real)) else {
            return Err(SafeBinMiss::NotListed);
        };
        let bin = self.bins.iter().find(|bin| bin.is_named(name)).ok_or(SafeBinMiss::NotListed)?;
        // The name itself was found fit when it was added.
        if target != name && names::is_unfit_target(target) {
            return Err(SafeBinMiss::NotListed);
        }
        if !self.is_trusted_program(path, real) {
            return Err(SafeBinMiss::UntrustedDirectory);
        }
        tokens::check(&bin.profile, args)
    }
}

impl Bin {
    /// Case is ignored for a custom profile only: `/usr/bin/HEAD` of libwww-perl is not `head`.
    fn is_named(&self, name: &str) -> bool {
        if self.built_in { self.name == name } else { self.name.eq_ignore_ascii_case(name) }
    }
}

fn base_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
