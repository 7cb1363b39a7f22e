//! Variables that a command inherits from the service that starts it: cleaned silently (§6.3, field case F086).

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
};

use super::table;

/// Transports that `git` may use by an inherited setting.
const GIT_PROTOCOLS: [&str; 4] = ["git", "http", "https", "ssh"];

/// Names that an operator wants commands to inherit although they look like secrets or are kept back by the rules.
/// Loader, start-up and tool-hook names (list A and its prefixes) cannot be brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassList {
    names: BTreeSet<String>,
}

impl PassList {
    /// A list of names in any letter case.
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { names: names.into_iter().map(|name| name.as_ref().trim().to_ascii_uppercase()).collect() }
    }

    /// Passes nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }
}

/// What a command inherits (§6.3). The caller adds [`super::CHILD_MARKERS`] and checked overrides afterwards.
pub fn clean_inherited(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &PassList,
) -> Vec<(OsString, OsString)> {
    variables.into_iter().filter_map(|(key, value)| clean(key, value, pass)).collect()
}

fn clean(key: OsString, value: OsString, pass: &PassList) -> Option<(OsString, OsString)> {
    // Odd bytes become replacement characters: enough to compare, the key itself stays as it is.
    let name = key.to_string_lossy().trim().to_ascii_uppercase();
    match name.as_str() {
        "GIT_ALLOW_PROTOCOL" => return Some((key, safe_protocols(&value))),
        "GIT_PROTOCOL_FROM_USER" => return Some((key, never_from_user(value))),
        _ => {}
    }
    if table::contains(table::BLOCKED_EVERYWHERE, &name) || table::has_prefix(table::BLOCKED_PREFIXES, &name)
    {
        return None;
    }
    // List C wins over the look of a name: it holds paths of credential files that the specification keeps.
    let kept = table::contains(table::KEPT_WHEN_INHERITED, &name)
        || pass.names.contains(&name)
        || !(table::contains(table::BLOCKED_AS_OVERRIDE, &name)
            || table::has_prefix(table::SERVICE_PREFIXES, &name)
            || looks_secret(&name));
    kept.then_some((key, value))
}

fn looks_secret(name: &str) -> bool {
    table::SECRET_ENDINGS.iter().any(|end| name.ends_with(end))
        || table::SECRET_PARTS.iter().any(|part| name.contains(part))
        || table::has_prefix(table::SECRET_STARTS, name)
}

/// The known-harmless members of a colon-separated list. An empty result allows `git` nothing, which is the safe end.
fn safe_protocols(value: &OsStr) -> OsString {
    let value = value.to_string_lossy();
    let kept: Vec<&str> = value.split(':').filter(|name| GIT_PROTOCOLS.contains(name)).collect();
    kept.join(":").into()
}

/// Anything that `git` could read as true, or that cannot be read, becomes `0`.
fn never_from_user(value: OsString) -> OsString {
    let text = value.to_string_lossy().trim().to_ascii_lowercase();
    if matches!(text.as_str(), "" | "0" | "false" | "no" | "off") { value } else { "0".into() }
}
