//! Which node does a person mean? (`runtime.md` §6.6)
//!
//! Pure: candidates in, one of them or a typed refusal out.

use fault::{ErrorCode, Fault};

/// Shortest id prefix that counts as a reference.
const PREFIX_MIN: usize = 6;
/// Most names that an error lists.
const LISTED: usize = 20;

/// One node that might be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Full id, lower-case hex.
    pub id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// Address it is connected from, without port; empty when unknown.
    pub address: &'a str,
    /// Whether it has a live link.
    pub connected: bool,
}

/// Finds the node that `reference` names. Better kinds of match win over
/// worse ones, connected nodes over offline ones within a kind; an offline
/// match is still a match, so that nothing runs on another node instead.
pub fn resolve<'a>(reference: &str, candidates: &[Candidate<'a>]) -> Result<Candidate<'a>, Fault> {
    let wanted = reference.trim();
    if wanted.is_empty() {
        return only_one(candidates);
    }
    let lower = wanted.to_lowercase();
    let compact = compacted(wanted);
    let kinds: [&dyn Fn(&Candidate<'_>) -> bool; 5] = [
        &|c| c.id == lower,
        &|c| !c.address.is_empty() && c.address == wanted,
        &|c| c.name.trim().to_lowercase() == lower,
        &|c| !compact.is_empty() && compacted(c.name) == compact,
        &|c| lower.len() >= PREFIX_MIN && c.id.starts_with(&lower),
    ];
    for matches in kinds {
        let all: Vec<_> = candidates.iter().filter(|c| matches(c)).collect();
        let connected: Vec<_> = all.iter().copied().filter(|c| c.connected).collect();
        match (connected.as_slice(), all.as_slice()) {
            ([one], _) | ([], [one]) => return Ok(**one),
            ([], []) => {}
            ([], several) | (several, _) => {
                return Err(Fault::new(
                    ErrorCode::AmbiguousNode,
                    format!("`{wanted}` may be any of: {}", listed(several.iter().copied())),
                )
                .hint("use the full id, or give the nodes different names"));
            }
        }
    }
    Err(unknown(wanted, candidates))
}

/// No reference given: the only connected node, if there is just one.
fn only_one<'a>(candidates: &[Candidate<'a>]) -> Result<Candidate<'a>, Fault> {
    let connected: Vec<_> = candidates.iter().filter(|c| c.connected).collect();
    match connected.as_slice() {
        [one] => Ok(**one),
        [] if candidates.is_empty() => Err(Fault::new(ErrorCode::NoNode, "no node is paired").hint(
            "pair one: `gateway nodes invite`, then `node-host run --pair '<link>'` on the other machine",
        )),
        [] => Err(Fault::new(
            ErrorCode::NodeOffline,
            format!("no node is connected; known: {}", listed(candidates.iter())),
        )
        .hint("start `node-host run` there")),
        several => Err(Fault::new(
            ErrorCode::AmbiguousNode,
            format!("several nodes are connected and none was named: {}", listed(several.iter().copied())),
        )
        .hint("name one: `--node`, or the parameter `node` (later also tools.exec.node or /exec node=)")),
    }
}

fn unknown(wanted: &str, candidates: &[Candidate<'_>]) -> Fault {
    let known = if candidates.is_empty() {
        "no node is paired".to_owned()
    } else {
        format!("known: {}", listed(candidates.iter()))
    };
    Fault::new(ErrorCode::UnknownNode, format!("no node `{wanted}`; {known}"))
        .hint("a node is named by its id, its name, or the first six or more characters of its id")
}

fn listed<'a, 'b: 'a>(candidates: impl Iterator<Item = &'a Candidate<'b>>) -> String {
    let mut names: Vec<String> = candidates
        .map(|c| {
            let state = if c.connected { "connected" } else { "offline" };
            format!("{} ({}, {state})", c.name, &c.id[..c.id.len().min(12)])
        })
        .collect();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let mut text = names.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Lower-case letters and digits only: `Lab Box-2` is `labbox2`.
fn compacted(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaa1111";
    const B: &str = "aaaaaa2222";
    const C: &str = "cccccc3333";

    fn nodes() -> Vec<Candidate<'static>> {
        vec![
            Candidate { id: A, name: "Build Box", address: "10.0.0.1", connected: true },
            Candidate { id: B, name: "lab", address: "", connected: false },
            Candidate { id: C, name: "lab", address: "10.0.0.3", connected: true },
        ]
    }

    #[test]
    fn references() {
        let nodes = nodes();
        let id = |reference: &str| resolve(reference, &nodes).map(|c| c.id).map_err(|f| f.code);
        let table: [(&str, Result<&str, ErrorCode>); 13] = [
            (A, Ok(A)),
            ("AAAAAA1111", Ok(A)),
            ("10.0.0.3", Ok(C)),
            ("build box", Ok(A)),
            ("  Build Box ", Ok(A)),
            ("build-box", Ok(A)),
            ("BUILDBOX", Ok(A)),
            ("lab", Ok(C)),
            ("cccccc", Ok(C)),
            ("ccccc", Err(ErrorCode::UnknownNode)),
            ("aaaaaa", Ok(A)),
            ("aaaaaa2", Ok(B)),
            ("", Err(ErrorCode::AmbiguousNode)),
        ];
        for (reference, expected) in table {
            assert_eq!(id(reference), expected, "`{reference}`");
        }
    }

    #[test]
    fn ambiguous_and_unknown_list_the_nodes() {
        let mut nodes = nodes();
        nodes[1].connected = true;
        let fault = resolve("lab", &nodes).unwrap_err();
        assert_eq!(
            (fault.code, fault.message.as_str()),
            (
                ErrorCode::AmbiguousNode,
                "`lab` may be any of: lab (aaaaaa2222, connected), lab (cccccc3333, connected)"
            )
        );
        let fault = resolve("nope", &nodes[..1]).unwrap_err();
        assert_eq!(
            (fault.code, fault.message.as_str()),
            (ErrorCode::UnknownNode, "no node `nope`; known: Build Box (aaaaaa1111, connected)")
        );
    }

    #[test]
    fn nothing_named() {
        let nodes = nodes();
        assert_eq!(resolve("", &nodes[..2]).unwrap().id, A);
        assert_eq!(resolve("", &nodes[1..2]).unwrap_err().code, ErrorCode::NodeOffline);
        assert_eq!(resolve("", &[]).unwrap_err().code, ErrorCode::NoNode);
    }
}
