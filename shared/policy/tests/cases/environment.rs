//! Environment cases: kind, input, what becomes of it.

use std::ffi::OsString;

use policy::{
    CHILD_MARKERS, EnvRejection, PassList, check_overrides, clean_inherited,
    command::blocked_env_assignments, reduce_for_shell_wrapper,
};
use serde_json::Value;

use crate::Case;

type Pairs = Vec<(String, String)>;

pub(crate) fn check(case: &Case<'_>) -> Result<(), String> {
    let [kind, input, wanted] = case.columns.as_slice() else { return Err("not four columns".to_owned()) };
    let lists = ["blocked", "accepted", "dropped", "kept", "passed", "never-passed"];
    if lists.contains(kind) && (input.is_empty() || !wanted.is_empty()) {
        return Err("a list of names needs names, and nothing after them".to_owned());
    }
    let names = || input.split(' ');
    match *kind {
        "override" => same(&override_answer(&pairs(input)?), wanted),
        "blocked" => names().try_for_each(blocked),
        "accepted" => names()
            .try_for_each(|name| same(&override_answer(&[pair(name, "x")]), &stored(&[pair(name, "x")]))),
        "dropped" => names().try_for_each(|name| inherited(name, &PassList::none(), false)),
        "kept" => names().try_for_each(|name| inherited(name, &PassList::none(), true)),
        "passed" => names().try_for_each(|name| inherited(name, &PassList::new([name]), true)),
        "never-passed" => names().try_for_each(|name| inherited(name, &PassList::new([name]), false)),
        "inherited" => {
            let given =
                pairs(input)?.into_iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
            let text = |part: OsString| part.to_string_lossy().into_owned();
            let left: Pairs = clean_inherited(given, &PassList::none())
                .into_iter()
                .map(|(key, value)| (text(key), text(value)))
                .collect();
            same(&stored(&left), wanted)
        }
        "wrapper" => {
            let (kept, left_out) = reduce_for_shell_wrapper(&pairs(input)?);
            same(&format!("{} without {}", stored(&kept), left_out.join(" ")), wanted)
        }
        "argv" => {
            let words: Vec<String> = serde_json::from_str(input).map_err(|error| error.to_string())?;
            same(
                &blocked_env_assignments(&words).map_or_else(|| "none".to_owned(), |why| rejected(&why)),
                wanted,
            )
        }
        "markers" => same(&stored(&CHILD_MARKERS.map(|(key, value)| pair(key, value))), wanted),
        _ => Err(format!("the kind {kind} is not known")),
    }
}

fn same(found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("expected {wanted}, found {found}")) }
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// `{"A":"x"}`, or `[["A","x"],["A","y"]]` where a key comes twice.
fn pairs(input: &str) -> Result<Pairs, String> {
    match serde_json::from_str(input).map_err(|error| error.to_string())? {
        Value::Object(members) => {
            let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a value is no string");
            members.iter().map(|(key, value)| Ok((key.clone(), text(value)?))).collect()
        }
        list => serde_json::from_value(list).map_err(|error| error.to_string()),
    }
}

fn stored(pairs: &[(String, String)]) -> String {
    pairs
        .iter()
        .map(|(key, value)| format!("{key}={}", value.replace('\n', "\\u{a}")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn override_answer(pairs: &[(String, String)]) -> String {
    match check_overrides(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))) {
        Ok(accepted) => stored(&accepted),
        Err(why) => rejected(&why),
    }
}

fn rejected(why: &EnvRejection) -> String {
    let parts = [
        ("blocked", &why.blocked),
        ("invalid", &why.invalid),
        ("nul", &why.nul_values),
        ("repeated", &why.repeated),
    ];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let mut words: Vec<_> = parts.map(|(word, names)| format!("{word}: {}", names.join(" "))).collect();
    if why.too_many {
        words.push("too many".to_owned());
    }
    words.join("; ")
}

/// In any spelling and with any value, but for the pagers' harmless ones.
fn blocked(name: &str) -> Result<(), String> {
    let pager = matches!(name, "PAGER" | "GIT_PAGER");
    let spellings = [name.to_owned(), name.to_lowercase(), format!(" {name} ")];
    for spelling in spellings {
        for value in ["x", ""] {
            if pager && value.is_empty() {
                continue;
            }
            same(&override_answer(&[(spelling.clone(), value.to_owned())]), &format!("blocked: {name}"))?;
        }
    }
    Ok(())
}

fn inherited(name: &str, pass: &PassList, kept: bool) -> Result<(), String> {
    for spelling in [name.to_owned(), name.to_lowercase()] {
        let left = clean_inherited([(OsString::from(&spelling), OsString::from("x"))], pass);
        if left.len() != usize::from(kept) {
            return Err(format!("{spelling} is {}", if kept { "dropped" } else { "kept" }));
        }
    }
    Ok(())
}
