//! `openclaw.json`: what this machine's owner configured about commands (policy spec §0.1, §1.6).
//!
//! Owns the file, its layers and its edits. It knows the keys that decide what may run and leaves all others alone. Where
//! one of them cannot be understood the whole file is refused, and the caller denies: half a policy could be the loose
//! half. What was requested here is still combined with the approvals document of the host that runs the command.

mod cursor;
mod edit;
mod error;
mod file;
mod layer;
mod reviewer;
#[cfg(test)]
mod tests;
mod tree;
mod webhook;

use std::{collections::BTreeMap, path::Path};

use policy::{Ask, AutoReview, MAIN_AGENT, Mode, Security, safe_bins::SafeBinsConfig};
use serde_json::Value;

use crate::{PrivateMode, private::real_path, read_private};

use cursor::Cursor;
use layer::{ExecLayer, Layering};

pub use error::ConfigError;
pub use file::ConfigFile;
pub use reviewer::{ReviewerConfig, ReviewerUrl};
pub use webhook::NotifyWebhook;

/// Longest file that is read, in bytes.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The older name of the main agent, as a caller may say it.
const OLD_MAIN_AGENT: &str = "default";

/// The configuration, as far as it decides what may run. The default one is that of a machine without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    global: ExecLayer,
    agents: BTreeMap<String, ExecLayer>,
    skill_bins: Vec<String>,
    require_signed: bool,
    notify_webhook: Option<NotifyWebhook>,
}

/// What is configured for the commands of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecConfig {
    /// What may run; none: the default of the host (§1.6).
    pub security: Option<Security>,
    /// When a person is asked; none: never.
    pub ask: Option<Ask>,
    /// Whether the automatic reviewer is asked first. Only while the ask in force is still the mode's own (§1.6).
    pub auto_review: AutoReview,
    /// Who reviews; none: nobody, and a person is asked (§8.2).
    pub reviewer: Option<ReviewerConfig>,
    /// The mode that `security` and `ask` come from, where no later layer changed one of them.
    pub mode: Option<Mode>,
    /// Where commands run: `auto`, `sandbox`, `gateway` or `node`.
    pub host: Option<String>,
    /// The node to use: id, name or address.
    pub node: Option<String>,
    /// Safe bins (§4).
    pub safe_bins: SafeBinsConfig,
    /// Inline code needs an explicit approval (§5).
    pub strict_inline_eval: bool,
    /// From the start of an approved command to the notice that it still runs, in milliseconds; 0: none.
    pub approval_running_notice_ms: Option<u64>,
    /// The end of a background command is told; none: yes (runtime spec §5.1).
    pub notify_on_exit: Option<bool>,
    /// Also where it succeeded without a word; none: no (runtime spec §5.1).
    pub notify_on_exit_empty_success: Option<bool>,
    /// Time limit of a command that brings none, in seconds, more than 0 (runtime spec §1.4).
    pub timeout_seconds: Option<u64>,
    /// From the start of a command to its going to the background, in milliseconds (runtime spec §1.3).
    pub background_ms: Option<u64>,
    /// Words that name programs are marked for display (§8.4).
    pub command_highlighting: bool,
    /// Names of the programs of skills (`skills.bins`), for `autoAllowSkills` (§8.1).
    pub skill_bins: Vec<String>,
}

impl Config {
    /// Reads the file, normally [`StateDir::openclaw_json`](crate::StateDir::openclaw_json). A missing one is the
    /// default; links are followed where nobody else can turn them.
    ///
    /// # Errors
    /// The file cannot be read, others can write it, or it cannot be understood. Then nothing may run.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = match read_private(&real_path(path)?, MAX_CONFIG_BYTES, PrivateMode::Readable) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| ConfigError::not_text(&bytes, error));
        text.and_then(Self::parse).map_err(|error| error.in_file(path))
    }

    /// Reads JSON5 text.
    ///
    /// # Errors
    /// The text cannot be understood (see [`ConfigError`]).
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let root = tree::parse(text)?;
        Self::read(&Cursor::new(&root)).map_err(|refusal| refusal.locate(text))
    }

    fn read(root: &Cursor<'_>) -> Result<Self, cursor::Refusal> {
        let global = exec_of(root)?;
        let notify_webhook = match webhook_of(root)? {
            Some(webhook) => Some(NotifyWebhook::read(&webhook)?),
            None => None,
        };
        let mut agents = BTreeMap::new();
        if let Some(section) = root.member("agents")? {
            let entries = section.member("entries")?.map_or(Ok(Vec::new()), |entries| entries.members())?;
            for (id, agent) in entries {
                agents.insert(id.to_owned(), agent_exec_of(&agent)?);
            }
            // The older form of the same.
            for agent in section.member("list")?.map_or(Ok(Vec::new()), |list| list.items())? {
                let id = agent.member("id")?.ok_or_else(|| agent.refuse("the agent has no `id`"))?;
                if agents.insert(id.text()?.to_owned(), agent_exec_of(&agent)?).is_some() {
                    return Err(id.refuse("this agent is there twice"));
                }
            }
        }
        let skill_bins = match root.member("skills")? {
            Some(skills) => skills.member("bins")?.map_or(Ok(Vec::new()), |bins| bins.texts())?,
            None => Vec::new(),
        };
        let require_signed = match root.member("approvals")? {
            Some(approvals) => approvals.member("requireSigned")?.map(|flag| flag.flag()).transpose()?,
            None => None,
        };
        Ok(Self { global, agents, skill_bins, require_signed: require_signed == Some(true), notify_webhook })
    }

    /// Whether this machine, as a node, takes only decisions that an enrolled approver signed
    /// (`approvals.requireSigned`).
    #[must_use]
    pub fn require_signed(&self) -> bool {
        self.require_signed
    }

    /// Whom to ask to wake an agent when the end of a background command waits for it (`tools.exec.notifyWebhook`).
    #[must_use]
    pub fn notify_webhook(&self) -> Option<&NotifyWebhook> {
        self.notify_webhook.as_ref()
    }

    /// What is configured for an agent: the global layer, then the agent's own (§1.6). No id means the main agent.
    #[must_use]
    pub fn exec(&self, agent: Option<&str>) -> ExecConfig {
        let mut layering = Layering::default();
        layering.put(&self.global);
        let id = match agent {
            None | Some(OLD_MAIN_AGENT) => MAIN_AGENT,
            Some(id) => id,
        };
        if let Some(own) = self.agents.get(id) {
            layering.put(own);
        }
        layering.finish(&self.skill_bins)
    }

    /// What is configured for all agents, without the words of any of them.
    #[must_use]
    pub fn exec_for_all(&self) -> ExecConfig {
        let mut layering = Layering::default();
        layering.put(&self.global);
        layering.finish(&self.skill_bins)
    }

    /// The agents whose own `security`, `ask` or `mode` goes before the words for all agents, and those words as they
    /// are written: `security=full ask=off`. What comes of them is in [`Config::exec`].
    pub fn agents_with_policy(&self) -> impl Iterator<Item = (&str, String)> {
        // Nothing asks for the older name of the main agent, so its words hold for nobody.
        let asked = self.agents.iter().filter(|(id, _)| id.as_str() != OLD_MAIN_AGENT);
        asked.filter_map(|(id, layer)| Some((id.as_str(), layer.policy_words()?)))
    }

    /// The text with one member set, or removed where `value` is null; everything else, comments and layout too, stays
    /// as it is. Objects on the way are made, other things there are not replaced. An empty text counts as `{}`.
    ///
    /// Whether the whole still makes sense is for [`Config::parse`] to say, after the last of several edits.
    ///
    /// # Errors
    /// The text is no JSON5, or cannot be edited in place; the message says what to do.
    pub fn edit(text: &str, path: &[&str], value: Value) -> Result<String, ConfigError> {
        edit::edit(text, path, value)
    }
}

fn exec_of(owner: &Cursor<'_>) -> Result<ExecLayer, cursor::Refusal> {
    let Some(tools) = owner.member("tools")? else { return Ok(ExecLayer::default()) };
    tools.member("exec")?.map_or(Ok(ExecLayer::default()), |exec| ExecLayer::read(&exec))
}

fn agent_exec_of(agent: &Cursor<'_>) -> Result<ExecLayer, cursor::Refusal> {
    match webhook_of(agent)? {
        Some(webhook) => {
            Err(webhook.refuse("there is one webhook for all agents: put it into the global `tools.exec`"))
        }
        None => exec_of(agent),
    }
}

fn webhook_of<'a>(owner: &Cursor<'a>) -> Result<Option<Cursor<'a>>, cursor::Refusal> {
    let Some(tools) = owner.member("tools")? else { return Ok(None) };
    let Some(exec) = tools.member("exec")? else { return Ok(None) };
    exec.member("notifyWebhook")
}
