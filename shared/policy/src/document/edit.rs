//! Changes to the rules of a document (policy spec §1.4, §1.10). The caller holds its lock, and stores the document where
//! it changed.

use super::{AgentEntry, AllowEntry, ApprovalsDocument, MAIN_AGENT, OLD_MAIN_AGENT, WILDCARD};

/// Longest command that a rule remembers, in characters. A document must not outgrow what can be read.
const MAX_REMEMBERED: usize = 1024;

/// How a rule was used.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The command that it satisfied.
    pub command: &'a str,
    /// The executable that it matched, if one was found.
    pub resolved_path: Option<&'a str>,
}

impl ApprovalsDocument {
    /// Adds a rule to an agent (`*`: to all), its pattern trimmed. False, and nothing changed, where the agent has it
    /// already, or where the document could not be read again with it: a blank pattern, an agent `__proto__`.
    ///
    /// Whether the rule can be in force is checked before, with [`crate::allowlist::check_entry`]. A rule from
    /// `allow-always` does not stand for the same rule by hand: it may be inactive.
    pub fn add_entry(&mut self, agent: &str, mut entry: AllowEntry) -> bool {
        entry.pattern = entry.pattern.trim().to_owned();
        if entry.pattern.is_empty() || agent == "__proto__" {
            return false;
        }
        let is_there = self.agents.get(key(agent)).is_some_and(|known| {
            known.allowlist.iter().any(|rule| {
                is_rule(rule, &entry.pattern, entry.arg_pattern.as_deref())
                    && (rule.source.is_none() || rule.source == entry.source)
            })
        });
        if !is_there {
            self.agents.entry(key(agent).to_owned()).or_default().allowlist.push(entry);
        }
        !is_there
    }

    /// Removes the rules of an agent that have this pattern and argument pattern; without an argument pattern, all that
    /// have this pattern, so that what was removed is not allowed in part. False where there are none.
    pub fn remove_entry(&mut self, agent: &str, pattern: &str, arg_pattern: Option<&str>) -> bool {
        let Some(AgentEntry { allowlist, .. }) = self.agents.get_mut(key(agent)) else { return false };
        let before = allowlist.len();
        allowlist.retain(|rule| {
            let arg_pattern = arg_pattern.or(rule.arg_pattern.as_deref());
            !is_rule(rule, pattern, arg_pattern)
        });
        allowlist.len() != before
    }

    /// Notes at a rule of an agent that it was used: at the wildcard's if it is there, as in the list that decided, else
    /// at the agent's own. A rule that is bound to one invocation does not repeat the command. False where there is none.
    pub fn record_usage(
        &mut self,
        agent: Option<&str>,
        pattern: &str,
        arg_pattern: Option<&str>,
        usage: &Usage<'_>,
    ) -> bool {
        let own = key(agent.unwrap_or(MAIN_AGENT));
        for key in [WILDCARD, own] {
            let Some(known) = self.agents.get_mut(key) else { continue };
            let Some(rule) = known.allowlist.iter_mut().find(|rule| is_rule(rule, pattern, arg_pattern))
            else {
                continue;
            };
            rule.last_used_at = Some(usage.at_ms.into());
            let is_bound = rule.arg_pattern.as_deref().is_some_and(|args| args.starts_with("sha256:"));
            rule.last_used_command =
                (!is_bound).then(|| usage.command.chars().take(MAX_REMEMBERED).collect());
            rule.last_resolved_path = usage.resolved_path.map(str::to_owned);
            return true;
        }
        false
    }
}

/// Where the rules of an agent stand.
fn key(agent: &str) -> &str {
    if agent == OLD_MAIN_AGENT { MAIN_AGENT } else { agent }
}

/// Whether a rule has this pattern and argument pattern; an empty argument pattern is none (§2.5).
fn is_rule(rule: &AllowEntry, pattern: &str, arg_pattern: Option<&str>) -> bool {
    let known = rule.arg_pattern.as_deref().unwrap_or_default();
    rule.pattern.trim() == pattern.trim() && known == arg_pattern.unwrap_or_default()
}
