//! Document cases: kind, what it needs, the answer.

use policy::{
    ApprovalsDocument, Ask, AskFallback, AutoReview, BaseHashError, EffectivePolicy, HostPolicy, Mode,
    Requested, Security,
    allowlist::{cwd_argv_hash, env_hash, node_command_marker},
    check_base_hash, hash_of,
};
use serde_json::Value;

use crate::{Case, setup::parse, unescape};

pub(crate) fn check(case: &Case<'_>) -> Result<(), String> {
    let (found, wanted) = match case.columns.as_slice() {
        ["mode", mode, wanted] => {
            let found = parse::<Mode>(mode)?.policy();
            let reviewed = if found.auto_review == AutoReview::On { "reviewed" } else { "not-reviewed" };
            (format!("{} {} {reviewed}", found.security, found.ask), *wanted)
        }
        ["shown", pair, wanted] => {
            let (security, ask) = pair.split_once('/').ok_or("no `/`")?;
            let found = Mode::of(parse(security)?, parse(ask)?);
            (format!("{} {}", found.shown, found.exact.map_or("none", Mode::as_str)), *wanted)
        }
        ["word", scale, word, wanted] => (known(scale, word)?.to_owned(), *wanted),
        ["stricter", scale, pair, wanted] => (stricter(scale, pair)?, *wanted),
        ["combine", requested, host, wanted] => (combine(requested, host)?, *wanted),
        ["resolve", agent, document, wanted] => {
            let document = ApprovalsDocument::parse(document).map_err(|error| error.to_string())?;
            let agent = (*agent != "-").then_some(*agent);
            (host_policy(&document.resolve(agent)), *wanted)
        }
        ["stored", document, wanted] => {
            let found = stored(document)?;
            let equal = serde_json::from_str::<Value>(wanted).is_ok_and(|value| sorted(value) == found);
            (if equal { (*wanted).to_owned() } else { found }, *wanted)
        }
        ["update", document, wanted] => {
            let found = match ApprovalsDocument::parse_update(&unescape(document)?) {
                Ok(update) if update.unset.is_empty() => "ok".to_owned(),
                Ok(update) => format!("unset {}", update.unset.join(" ")),
                Err(_) => "malformed".to_owned(),
            };
            (found, *wanted)
        }
        ["base", stored, base, wanted] => {
            let stored = (*stored != "absent").then_some(*stored);
            let base = match *base {
                "none" => None,
                "current" => Some(hash_of(stored)),
                "missing" => Some(hash_of(None)),
                _ => Some(hash_of(Some("another"))),
            };
            let found = match check_base_hash(stored, base.as_deref()) {
                Ok(()) => "accepted",
                Err(BaseHashError::Required) => "required",
                Err(BaseHashError::Changed) => "changed",
            };
            (found.to_owned(), *wanted)
        }
        ["document-hash", "absent", wanted] => (hash_of(None), *wanted),
        ["document-hash", text, wanted] => (hash_of(Some(&unescape(text)?)), *wanted),
        ["argv-hash", cwd, arguments, wanted] => {
            let arguments: Vec<String> =
                serde_json::from_str(arguments).map_err(|error| error.to_string())?;
            (cwd_argv_hash(cwd, &arguments), *wanted)
        }
        ["marker", text, wanted] => (node_command_marker(text), *wanted),
        ["env-hash", pairs, wanted] => {
            let pairs: Vec<(String, String)> =
                serde_json::from_str(pairs).map_err(|error| error.to_string())?;
            (env_hash(&pairs).unwrap_or_else(|| "none".to_owned()), *wanted)
        }
        _ => return Err("the kind, or the number of its columns, is not known".to_owned()),
    };
    if found == wanted { Ok(()) } else { Err(format!("expected {wanted}, found {found}")) }
}

fn known(scale: &str, word: &str) -> Result<&'static str, String> {
    let known = match scale {
        "security" => word.parse::<Security>().is_ok(),
        "ask" => word.parse::<Ask>().is_ok(),
        "fallback" => word.parse::<AskFallback>().is_ok(),
        "mode" => word.parse::<Mode>().is_ok(),
        _ => return Err("no such scale".to_owned()),
    };
    Ok(if known { "known" } else { "unknown" })
}

fn stricter(scale: &str, pair: &str) -> Result<String, String> {
    let (one, other) = pair.split_once('/').ok_or("no `/`")?;
    Ok(match scale {
        "security" => parse::<Security>(one)?.stricter(parse(other)?).to_string(),
        "ask" => parse::<Ask>(one)?.stricter(parse(other)?).to_string(),
        "fallback" => parse::<AskFallback>(one)?.stricter(parse(other)?).to_string(),
        "within" => parse::<AskFallback>(one)?.within(parse(other)?).to_string(),
        _ => return Err("no such scale".to_owned()),
    })
}

fn combine(requested: &str, host: &str) -> Result<String, String> {
    let [security, ask] = parts(requested)?;
    let requested = Requested { security: parse(security)?, ask: parse(ask)? };
    let [security, ask, ask_fallback, skills] = parts(host)?;
    let host = HostPolicy {
        security: parse(security)?,
        ask: parse(ask)?,
        ask_fallback: parse(ask_fallback)?,
        auto_allow_skills: skills == "skills",
        allowlist: Vec::new(),
    };
    let found = EffectivePolicy::combine(requested, &host);
    let skills = if found.auto_allow_skills { "skills" } else { "no-skills" };
    let by = found.decided_by.as_str();
    Ok(format!("{}/{}/{}/{skills} by {by}", found.security, found.ask, found.ask_fallback))
}

fn parts<const N: usize>(text: &str) -> Result<[&str; N], String> {
    let parts: Vec<&str> = text.split('/').collect();
    parts.try_into().map_err(|parts: Vec<_>| format!("{} parts instead of {N}", parts.len()))
}

fn host_policy(policy: &HostPolicy) -> String {
    let skills = if policy.auto_allow_skills { "skills" } else { "no-skills" };
    let patterns = policy.allowlist.iter().map(|entry| match &entry.arg_pattern {
        Some(arguments) => format!(" {}@{arguments}", entry.pattern),
        None => format!(" {}", entry.pattern),
    });
    let patterns: String = patterns.collect();
    format!("{}/{}/{}/{skills}{patterns}", policy.security, policy.ask, policy.ask_fallback)
}

/// What is written back of a document, in one line.
fn stored(document: &str) -> Result<String, String> {
    let Ok(document) = ApprovalsDocument::parse(&unescape(document)?) else {
        return Ok("malformed".to_owned());
    };
    let text = document.to_text();
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if !text.ends_with("}\n") || format!("{value:#}\n") != text {
        return Err(format!("not indented by two, with one line end: {text}"));
    }
    Ok(sorted(value))
}

fn sorted(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}
