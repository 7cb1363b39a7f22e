//! When rules were last used (policy spec §1.2, §1.10).

use policy::{ApprovalsDocument, Usage};

/// One use of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleUsage {
    /// The agent that ran the command; absent for a call without an agent id.
    pub agent: Option<String>,
    /// The rule's pattern.
    pub pattern: String,
    /// The rule's argument pattern.
    pub arg_pattern: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The command that it satisfied.
    pub command: String,
    /// The executable that it matched, if one was found.
    pub resolved_path: Option<String>,
}

/// Notes the uses at the rules that are still there, the latest use last. Says how many found their rule.
pub(super) fn record(document: &mut ApprovalsDocument, uses: &[RuleUsage]) -> usize {
    let mut uses: Vec<&RuleUsage> = uses.iter().collect();
    uses.sort_by_key(|used| used.at_ms);
    let found = uses.into_iter().filter(|used| {
        let usage =
            Usage { at_ms: used.at_ms, command: &used.command, resolved_path: used.resolved_path.as_deref() };
        document.record_usage(used.agent.as_deref(), &used.pattern, used.arg_pattern.as_deref(), &usage)
    });
    found.count()
}
