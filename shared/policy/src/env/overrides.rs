//! Variables that a caller asks for. One bad key fails the whole request, nothing is dropped silently (§6.2).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::table;

/// Most overrides that one request may bear.
pub const MAX_OVERRIDES: usize = 1024;
/// Longest name that an error repeats, in characters after escaping.
const MAX_SHOWN_NAME: usize = 96;
/// Most names of one kind that an error text lists.
const MAX_SHOWN_NAMES: usize = 32;

const PAGERS: [&str; 2] = ["GIT_PAGER", "PAGER"];

/// Why overrides were refused. Holds names only, never values; they are sorted, escaped and cut, so that they are safe
/// to log and to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct EnvRejection {
    /// Names (trimmed, upper case) that a caller may never set, or not to this value.
    pub blocked: Vec<String>,
    /// Keys that are no portable variable names.
    pub invalid: Vec<String>,
    /// Keys whose value holds a NUL byte, which no environment can carry.
    pub nul_values: Vec<String>,
    /// Names (trimmed, upper case) given more than once, perhaps in another letter case.
    pub repeated: Vec<String>,
    /// More than [`MAX_OVERRIDES`] were given; the others were not looked at.
    pub too_many: bool,
}

impl EnvRejection {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for EnvRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("environment override rejected (")?;
        let parts = [
            ("blocked override keys", &self.blocked),
            ("invalid non-portable override keys", &self.invalid),
            ("values with NUL", &self.nul_values),
            ("keys given more than once", &self.repeated),
        ];
        let mut separator = "";
        for (label, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "{separator}{label}: {}", names[..names.len().min(MAX_SHOWN_NAMES)].join(", "))?;
            if names.len() > MAX_SHOWN_NAMES {
                write!(f, " and {} more", names.len() - MAX_SHOWN_NAMES)?;
            }
            separator = "; ";
        }
        if self.too_many {
            write!(f, "{separator}more than {MAX_OVERRIDES} overrides")?;
        }
        f.write_str(")")
    }
}

/// Checks what a caller wants to set (§6.2) and yields it as it is to be stored: keys trimmed, in the given letter
/// case and order, pagers emptied.
///
/// # Errors
/// Any key is blocked, malformed or repeated, any value holds NUL, or there are too many. Callers put the prefix of
/// their side before the text: `SYSTEM_RUN_DENIED: ` on the node, `Security Violation: ` on the gateway.
pub fn check_overrides<'a>(
    overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<(String, String)>, EnvRejection> {
    let mut accepted = Vec::new();
    let mut blocked = BTreeSet::new();
    let mut invalid = BTreeSet::new();
    let mut nul_values = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut too_many = false;
    for (count, (key, value)) in overrides.into_iter().enumerate() {
        if count == MAX_OVERRIDES {
            too_many = true;
            break;
        }
        let key = key.trim();
        if !is_portable(key) {
            invalid.insert(shown(key));
            continue;
        }
        let name = key.to_ascii_uppercase();
        let pager = PAGERS.contains(&name.as_str());
        if pager && !matches!(value, "" | "cat") || !pager && is_blocked(&name) {
            blocked.insert(shown(&name));
        } else if value.contains('\0') {
            nul_values.insert(shown(key));
        } else {
            accepted.push((key.to_owned(), if pager { String::new() } else { value.to_owned() }));
        }
        *times.entry(name).or_default() += 1;
    }
    let repeated: BTreeSet<String> =
        times.into_iter().filter(|&(_, count)| count > 1).map(|(name, _)| shown(&name)).collect();
    let rejection = EnvRejection {
        blocked: blocked.into_iter().collect(),
        invalid: invalid.into_iter().collect(),
        nul_values: nul_values.into_iter().collect(),
        repeated: repeated.into_iter().collect(),
        too_many,
    };
    if rejection.is_empty() { Ok(accepted) } else { Err(rejection) }
}

/// What a text that starts a shell wrapper keeps of checked overrides (§6.4), and the names it leaves out, in order.
/// The caller tells the names to the person who asked.
#[must_use]
pub fn reduce_for_shell_wrapper(overrides: &[(String, String)]) -> (Vec<(String, String)>, Vec<String>) {
    let (kept, left_out): (Vec<_>, Vec<_>) = overrides.iter().cloned().partition(|(key, value)| {
        let name = key.trim().to_ascii_uppercase();
        table::contains(table::KEPT_BY_SHELL_WRAPPER, &name)
            || name.starts_with("LC_")
            || (PAGERS.contains(&name.as_str()) && value.is_empty())
    });
    (kept, left_out.into_iter().map(|(key, _)| key).collect())
}

/// Whether a trimmed, upper-case name may never come from a caller, whatever its value.
fn is_blocked(name: &str) -> bool {
    name == "PATH"
        || table::contains(table::BLOCKED_EVERYWHERE, name)
        || table::contains(table::BLOCKED_AS_OVERRIDE, name)
        || table::contains(table::ALSO_BLOCKED_AS_OVERRIDE, name)
        || table::contains(table::OWN_NAMES, name)
        || name.starts_with(table::OWN_PREFIX)
        || table::has_prefix(table::BLOCKED_PREFIXES, name)
        || table::has_prefix(table::OVERRIDE_PREFIXES, name)
        || table::has_prefix(table::ALSO_BLOCKED_PREFIXES, name)
        || table::has_suffix(table::ALSO_BLOCKED_SUFFIXES, name)
        || table::is_cargo_target_program(name)
}

/// A letter or underscore, then letters, digits and underscores; parentheses too, for Windows names (§6.1).
fn is_portable(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'(' | b')'))
}

/// A key as an error may show it: everything but printable ASCII escaped (control characters drive terminals, other
/// letters can pass for ASCII), and cut.
fn shown(key: &str) -> String {
    if key.is_empty() {
        return "(empty)".to_owned();
    }
    let mut text = String::new();
    for letter in key.chars() {
        if text.len() >= MAX_SHOWN_NAME {
            text.push_str("...");
            break;
        }
        if letter == ' ' || letter.is_ascii_graphic() {
            text.push(letter);
        } else {
            text.extend(letter.escape_default());
        }
    }
    text
}
