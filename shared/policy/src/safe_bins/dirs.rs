//! Trusted directories: which are in force and which are a risk (policy spec §4.1, §4.5).

use std::path::{Component, Path, PathBuf};

use super::{SafeBinWarning, TRUSTED_DIRS_RISKY};

/// On a machine where `/bin` is a link to `/usr/bin` these are the same; both stay, for others.
const ALWAYS: [&str; 2] = ["/bin", "/usr/bin"];

/// Everybody can write there.
const TEMPORARY: [&str; 8] = [
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run/user",
    "/var/run/user",
    "/private/tmp",
    "/private/var/tmp",
    "/var/folders",
];
/// Their owner, who may be the agent's user, can write there.
const HOMES: [&str; 4] = ["/home", "/root", "/Users", "/var/home"];
/// What is installed there comes from somewhere else, often with the rights of a user.
const PACKAGES: [&str; 7] =
    ["/usr/local", "/opt/homebrew", "/opt/local", "/snap", "/nix", "/var/lib/flatpak", "/opt/conda"];
/// The same, as a part anywhere in the path.
const PACKAGE_PARTS: [&str; 8] =
    ["node_modules", ".cargo", ".local", ".npm", ".npm-global", ".linuxbrew", ".nix-profile", "venv"];

/// The directories in force. What is not absolute, or climbs, is left out: it would mean something else each time.
pub(super) fn trusted(extra: &[PathBuf], warnings: &mut Vec<SafeBinWarning>) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = ALWAYS.iter().map(PathBuf::from).collect();
    for dir in extra {
        let fixed = dir.is_absolute() && !dir.components().any(|part| part == Component::ParentDir);
        let problem =
            if fixed { risk(dir) } else { Some("it is ignored: write an absolute path without `..`") };
        if let Some(problem) = problem {
            let message = format!("`{}` in safeBinTrustedDirs: {problem}", dir.display());
            warnings.push(SafeBinWarning { id: TRUSTED_DIRS_RISKY, message });
        }
        if fixed && !dirs.contains(dir) {
            dirs.push(dir.clone());
        }
    }
    dirs
}

fn risk(dir: &Path) -> Option<&'static str> {
    let is_below = |roots: &[&str]| roots.iter().any(|root| dir.starts_with(root));
    if is_below(&TEMPORARY) {
        return Some("it is a temporary directory, anybody can put programs there");
    }
    if is_below(&HOMES) {
        return Some("it lies in a home, its user can put programs there");
    }
    let is_package_part = |part: Component<'_>| PACKAGE_PARTS.iter().any(|name| part.as_os_str() == *name);
    if is_below(&PACKAGES) || dir.components().any(is_package_part) {
        return Some("a package manager fills it, often with the rights of a user");
    }
    None
}
