//! The approvals document: what the owner of a machine allows there (policy spec §1).
//!
//! Owns its form, its hash and how one agent's policy is read from it. Reading and writing the file is the caller's
//! job, and so is failing closed: a document that does not parse means [`HostPolicy::fail_closed`].

mod edit;
mod hash;
mod read;
mod write;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Number, Value};

use crate::{Ask, AskFallback, Security};

pub use edit::Usage;
pub use hash::{BaseHashError, check_base_hash, hash_of};

/// Longest document that is read, in bytes. Checked before parsing.
pub const MAX_DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Most examples of one kind that a rule may have.
pub(crate) const MAX_EXAMPLES: usize = 32;
/// Longest example, in characters.
pub(crate) const MAX_EXAMPLE_CHARS: usize = 4096;

/// The key of entries that hold for every agent.
const WILDCARD: &str = "*";
/// The agent that calls without an agent id belong to.
pub const MAIN_AGENT: &str = "main";
/// The older name of the main agent; its entry is folded into `main` when a document is read (§1.3).
const OLD_MAIN_AGENT: &str = "default";

/// Why a text is no approvals document. Its texts are bounded and hold no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is longer than [`MAX_DOCUMENT_BYTES`].
    #[error("the approvals document has {bytes} bytes, more than the {MAX_DOCUMENT_BYTES} allowed")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The text is no JSON, or JSON of another form. The parser's own error is not kept as a source: it may repeat
    /// long or unprintable parts of the text.
    #[error("the approvals document is malformed at line {line}, column {column}: {reason}")]
    Malformed {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
}

/// A parsed approvals document. The default value is the empty document, which a machine without a file has.
///
/// Members that this version does not know are kept in `extra` at each level and written back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalsDocument {
    /// The local approvals socket of app hosts.
    pub socket: Option<SocketEntry>,
    /// What holds where neither the agent nor the wildcard says anything.
    pub defaults: PolicyFields,
    /// By agent id; `*` holds for every agent.
    pub agents: BTreeMap<String, AgentEntry>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// Where app hosts listen for approvals. Not used by this product, kept for those that do.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SocketEntry {
    /// Path of the socket.
    pub path: Option<String>,
    /// A secret: never shown, see [`ApprovalsDocument::redacted`].
    pub token: Option<String>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

impl fmt::Debug for SocketEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "(secret)");
        f.debug_struct("SocketEntry").field("path", &self.path).field("token", &token).finish_non_exhaustive()
    }
}

/// The policy members that defaults and agents share; an absent one leaves the decision to the next level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFields {
    /// What may run.
    pub security: Option<Security>,
    /// When a person is asked.
    pub ask: Option<Ask>,
    /// What happens when nobody can be asked.
    pub ask_fallback: Option<AskFallback>,
    /// Whether programs of installed skills count as allowed.
    pub auto_allow_skills: Option<bool>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// What holds for one agent, or for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentEntry {
    /// The policy members, and the unknown members of the entry.
    pub fields: PolicyFields,
    /// Rules that satisfy a command.
    pub allowlist: Vec<AllowEntry>,
    /// Standing grants for MCP tools, kept as they are: they are no part of exec.
    pub mcp_tools: Vec<Value>,
}

/// Marks a rule that a person's `allow-always` created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllowAlways;

/// One rule of an allowlist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowEntry {
    /// What it matches; not blank, kept as given and trimmed when matched.
    pub pattern: String,
    /// What its arguments must match.
    pub arg_pattern: Option<String>,
    /// Whether a person's decision created it.
    pub source: Option<AllowAlways>,
    /// A name for it. Absent until a writer gives one: this crate has no randomness.
    pub id: Option<String>,
    /// When it last satisfied a command, in milliseconds since 1970.
    pub last_used_at: Option<Number>,
    /// The command it last satisfied.
    pub last_used_command: Option<String>,
    /// The executable that it last matched.
    pub last_resolved_path: Option<String>,
    /// Commands that it must match (`match`). Where one does not hold, the rule is out of force.
    pub examples_match: Vec<String>,
    /// Commands that it must not match (`noMatch`).
    pub examples_no_match: Vec<String>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// A document that came through the RPC, and what had to be dropped from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanitisedUpdate {
    /// The document.
    pub document: ApprovalsDocument,
    /// Paths such as `agents.main.security` whose word is unknown; they count as absent.
    pub unset: Vec<String>,
}

/// What the owner of the machine allows one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// What may run.
    pub security: Security,
    /// When a person is asked.
    pub ask: Ask,
    /// What happens when nobody can be asked.
    pub ask_fallback: AskFallback,
    /// Whether programs of installed skills count as allowed.
    pub auto_allow_skills: bool,
    /// The wildcard's rules, then the agent's own.
    pub allowlist: Vec<AllowEntry>,
}

impl HostPolicy {
    /// What holds while the document cannot be read (§1.3): nothing runs and nobody is asked.
    #[must_use]
    pub const fn fail_closed() -> Self {
        Self {
            security: Security::Deny,
            ask: Ask::Off,
            ask_fallback: AskFallback::Deny,
            auto_allow_skills: false,
            allowlist: Vec::new(),
        }
    }
}

impl ApprovalsDocument {
    /// Reads the stored form (§1.2): strict about version, types and words, tolerant of unknown members.
    ///
    /// # Errors
    /// The text is too long, no JSON or of another form. Repeated members and `__proto__` are refused too: readers
    /// differ in what they make of them, and this is a policy.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        read::read(text, read::Form::Stored).map(|read| read.document)
    }

    /// Reads the form of an update through the RPC (§1.2): unknown members are refused, unknown words of `security`
    /// and `ask` count as absent and are listed.
    ///
    /// # Errors
    /// As [`ApprovalsDocument::parse`], and for unknown members.
    pub fn parse_update(text: &str) -> Result<SanitisedUpdate, DocumentError> {
        read::read(text, read::Form::Update)
    }

    /// The text to store: JSON indented by two spaces, and a newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{:#}\n", write::document(self))
    }

    /// The document without `socket.token`, as it may be shown.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        if let Some(socket) = &mut shown.socket {
            socket.token = None;
        }
        shown
    }

    /// This document with the socket members that it leaves out taken from `current` (§1.4): an update comes from
    /// someone who was never shown the token.
    #[must_use]
    pub fn keeping_socket_of(mut self, current: &Self) -> Self {
        if let Some(old) = &current.socket {
            let socket = self.socket.get_or_insert_default();
            socket.path = socket.path.take().or_else(|| old.path.clone());
            socket.token = socket.token.take().or_else(|| old.token.clone());
        }
        self
    }

    /// What holds for an agent (§1.5): its own value, else the wildcard's, else the defaults', else the built-in one
    /// (full, off, deny, no skills). No agent id means the main agent, where `agents.default` was folded.
    #[must_use]
    pub fn resolve(&self, agent: Option<&str>) -> HostPolicy {
        let key = match agent {
            None | Some(OLD_MAIN_AGENT) => MAIN_AGENT,
            Some(key) => key,
        };
        let wildcard = self.agents.get(WILDCARD);
        // An agent that calls itself `*` must not count its rules twice.
        let own = if key == WILDCARD { None } else { self.agents.get(key) };
        let levels =
            [own.map(|entry| &entry.fields), wildcard.map(|entry| &entry.fields), Some(&self.defaults)];
        let levels = || levels.into_iter().flatten();
        HostPolicy {
            security: levels().find_map(|level| level.security).unwrap_or(Security::Full),
            ask: levels().find_map(|level| level.ask).unwrap_or(Ask::Off),
            ask_fallback: levels().find_map(|level| level.ask_fallback).unwrap_or(AskFallback::Deny),
            auto_allow_skills: levels().find_map(|level| level.auto_allow_skills).unwrap_or(false),
            allowlist: wildcard
                .into_iter()
                .chain(own)
                .flat_map(|entry| entry.allowlist.iter().cloned())
                .collect(),
        }
    }

    /// Renames `agents.default` to `agents.main`; where both are there, the values of `main` win and the lists join.
    fn fold_old_main(&mut self) {
        let Some(old) = self.agents.remove(OLD_MAIN_AGENT) else { return };
        let main = self.agents.entry(MAIN_AGENT.to_owned()).or_default();
        let fields = &mut main.fields;
        fields.security = fields.security.or(old.fields.security);
        fields.ask = fields.ask.or(old.fields.ask);
        fields.ask_fallback = fields.ask_fallback.or(old.fields.ask_fallback);
        fields.auto_allow_skills = fields.auto_allow_skills.or(old.fields.auto_allow_skills);
        for (name, value) in old.fields.extra {
            fields.extra.entry(name).or_insert(value);
        }
        main.allowlist.extend(old.allowlist);
        let mut seen = BTreeSet::new();
        main.allowlist.retain(|rule| seen.insert((rule.pattern.to_lowercase(), rule.arg_pattern.clone())));
        main.mcp_tools.extend(old.mcp_tools);
    }
}
