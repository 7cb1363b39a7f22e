//! One `tools.exec` object, and what two of them make together (policy spec §1.6, §4.1, §4.4, §5; runtime
//! spec §0.4).

use std::{collections::BTreeMap, path::PathBuf};

use policy::{
    Ask, AutoReview, Mode, Security,
    safe_bins::{CustomProfile, SafeBinsConfig},
};

use super::{
    ExecConfig,
    cursor::{Cursor, Refusal},
    reviewer::ReviewerConfig,
};

/// Spellings of the time limit, the newest first; where several are there it holds.
const TIMEOUT: [&str; 3] = ["timeoutSeconds", "timeoutSec", "timeout"];

const HOSTS: [&str; 4] = ["auto", "sandbox", "gateway", "node"];

/// What one layer says. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExecLayer {
    policy: LayerPolicy,
    host: Option<String>,
    node: Option<String>,
    safe_bins: Option<Vec<String>>,
    trusted_dirs: Vec<PathBuf>,
    profiles: BTreeMap<String, CustomProfile>,
    strict_inline_eval: Option<bool>,
    command_highlighting: Option<bool>,
    reviewer: Option<ReviewerConfig>,
    approval_running_notice_ms: Option<u64>,
    notify_on_exit: Option<bool>,
    notify_on_exit_empty_success: Option<bool>,
    timeout_seconds: Option<u64>,
    background_ms: Option<u64>,
}

/// The two ways to write a policy. One object uses one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayerPolicy {
    /// One word for all.
    Mode(Mode),
    /// The older form; each of the two may be missing.
    Pair { security: Option<Security>, ask: Option<Ask> },
}

impl Default for LayerPolicy {
    fn default() -> Self {
        Self::Pair { security: None, ask: None }
    }
}

impl ExecLayer {
    pub(super) fn read(exec: &Cursor<'_>) -> Result<Self, Refusal> {
        let host = exec.member("host")?.map(|host| read_host(&host)).transpose()?;
        let node = exec.member("node")?.map(|node| node.text().map(str::to_owned)).transpose()?;
        let dirs = exec.member("safeBinTrustedDirs")?.map_or(Ok(Vec::new()), |dirs| dirs.texts())?;
        Ok(Self {
            policy: read_policy(exec)?,
            host,
            node,
            safe_bins: exec.member("safeBins")?.map(|names| names.texts()).transpose()?,
            trusted_dirs: dirs.into_iter().map(PathBuf::from).collect(),
            profiles: exec
                .member("safeBinProfiles")?
                .map_or(Ok(BTreeMap::new()), |all| read_profiles(&all))?,
            strict_inline_eval: exec.member("strictInlineEval")?.map(|flag| flag.flag()).transpose()?,
            command_highlighting: exec.member("commandHighlighting")?.map(|flag| flag.flag()).transpose()?,
            approval_running_notice_ms: exec
                .member("approvalRunningNoticeMs")?
                .map(|ms| ms.count().map(|ms| ms as u64))
                .transpose()?,
            notify_on_exit: exec.member("notifyOnExit")?.map(|flag| flag.flag()).transpose()?,
            notify_on_exit_empty_success: exec
                .member("notifyOnExitEmptySuccess")?
                .map(|flag| flag.flag())
                .transpose()?,
            timeout_seconds: read_timeout(exec)?,
            background_ms: exec
                .member("backgroundMs")?
                .map(|ms| ms.count().map(|ms| ms as u64))
                .transpose()?,
            reviewer: exec.member("reviewer")?.map(|reviewer| ReviewerConfig::read(&reviewer)).transpose()?,
        })
    }

    /// The policy as it is written; none where this layer says nothing about it.
    pub(super) fn policy_words(&self) -> Option<String> {
        match self.policy {
            LayerPolicy::Mode(mode) => Some(format!("mode={mode}")),
            LayerPolicy::Pair { security: None, ask: None } => None,
            LayerPolicy::Pair { security: Some(security), ask: None } => Some(format!("security={security}")),
            LayerPolicy::Pair { security: None, ask: Some(ask) } => Some(format!("ask={ask}")),
            LayerPolicy::Pair { security: Some(security), ask: Some(ask) } => {
                Some(format!("security={security} ask={ask}"))
            }
        }
    }
}

fn read_policy(exec: &Cursor<'_>) -> Result<LayerPolicy, Refusal> {
    let security = exec.member("security")?.map(|word| word.word()).transpose()?;
    let ask = exec.member("ask")?.map(|word| word.word()).transpose()?;
    let Some(mode) = exec.member("mode")? else { return Ok(LayerPolicy::Pair { security, ask }) };
    if security.is_some() || ask.is_some() {
        return Err(mode.refuse("`mode` stands for `security` and `ask`: write the one or the other two"));
    }
    mode.word().map(LayerPolicy::Mode)
}

fn read_host(host: &Cursor<'_>) -> Result<String, Refusal> {
    let word = host.text()?.to_ascii_lowercase();
    if HOSTS.contains(&word.as_str()) {
        Ok(word)
    } else {
        Err(host.refuse(format!("expected one of {}", HOSTS.join(", "))))
    }
}

/// The time limit of commands; 0 or less is none (runtime spec §0.4).
fn read_timeout(exec: &Cursor<'_>) -> Result<Option<u64>, Refusal> {
    let mut read = None;
    // A spelling that does not hold must still make sense.
    for name in TIMEOUT {
        if let Some(seconds) = exec.member(name)? {
            read = read.or(Some(seconds.integer()?));
        }
    }
    Ok(read.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0))
}

/// Profiles by their lower-cased name, as names of safe bins are compared.
fn read_profiles(all: &Cursor<'_>) -> Result<BTreeMap<String, CustomProfile>, Refusal> {
    let mut profiles = BTreeMap::new();
    for (name, profile) in all.members()? {
        let mut read = CustomProfile::default();
        for (member, value) in profile.members()? {
            match member {
                "minPositional" => read.min_positional = Some(value.count()?),
                "maxPositional" => read.max_positional = Some(value.count()?),
                "allowedValueFlags" => read.allowed_value_flags = value.texts()?,
                "deniedFlags" => read.denied_flags = value.texts()?,
                // A misspelt limit is none.
                _ => return Err(value.refuse("a profile has no such member")),
            }
        }
        if profiles.insert(name.trim().to_ascii_lowercase(), read).is_some() {
            return Err(profile.refuse("this profile is there twice"));
        }
    }
    Ok(profiles)
}

/// Layers, put one over the other.
#[derive(Debug, Default)]
pub(super) struct Layering {
    security: Option<Security>,
    ask: Option<Ask>,
    mode: Option<Mode>,
    rest: ExecLayer,
}

impl Layering {
    pub(super) fn put(&mut self, layer: &ExecLayer) {
        match layer.policy {
            LayerPolicy::Mode(mode) => {
                let policy = mode.policy();
                (self.security, self.ask) = (Some(policy.security), Some(policy.ask));
                self.mode = Some(mode);
            }
            LayerPolicy::Pair { security: None, ask: None } => {}
            LayerPolicy::Pair { security, ask } => {
                // The mode is no more, the value of it that was not replaced stays: else a layer that only asks more
                // often would lift the limits of the one below.
                self.security = security.or(self.security);
                self.ask = ask.or(self.ask);
                self.mode = None;
            }
        }
        let rest = &mut self.rest;
        replace(&mut rest.host, layer.host.as_ref());
        replace(&mut rest.node, layer.node.as_ref());
        replace(&mut rest.safe_bins, layer.safe_bins.as_ref());
        replace(&mut rest.command_highlighting, layer.command_highlighting.as_ref());
        replace(&mut rest.approval_running_notice_ms, layer.approval_running_notice_ms.as_ref());
        replace(&mut rest.notify_on_exit, layer.notify_on_exit.as_ref());
        replace(&mut rest.notify_on_exit_empty_success, layer.notify_on_exit_empty_success.as_ref());
        replace(&mut rest.timeout_seconds, layer.timeout_seconds.as_ref());
        replace(&mut rest.background_ms, layer.background_ms.as_ref());
        // As a whole: the key for one endpoint must not go to another.
        replace(&mut rest.reviewer, layer.reviewer.as_ref());
        for dir in &layer.trusted_dirs {
            if !rest.trusted_dirs.contains(dir) {
                rest.trusted_dirs.push(dir.clone());
            }
        }
        rest.profiles.extend(layer.profiles.iter().map(|(name, profile)| (name.clone(), profile.clone())));
        // Either layer can ask for it, none can lift it (§5).
        let strict = rest.strict_inline_eval == Some(true) || layer.strict_inline_eval == Some(true);
        rest.strict_inline_eval = Some(strict);
    }

    pub(super) fn finish(self, skill_bins: &[String]) -> ExecConfig {
        let rest = self.rest;
        ExecConfig {
            security: self.security,
            ask: self.ask,
            auto_review: self.mode.map_or(AutoReview::Off, |mode| mode.policy().auto_review),
            reviewer: rest.reviewer,
            approval_running_notice_ms: rest.approval_running_notice_ms,
            notify_on_exit: rest.notify_on_exit,
            notify_on_exit_empty_success: rest.notify_on_exit_empty_success,
            timeout_seconds: rest.timeout_seconds,
            background_ms: rest.background_ms,
            mode: self.mode,
            host: rest.host,
            node: rest.node,
            safe_bins: SafeBinsConfig {
                names: rest.safe_bins,
                trusted_dirs: rest.trusted_dirs,
                profiles: rest.profiles,
            },
            strict_inline_eval: rest.strict_inline_eval == Some(true),
            command_highlighting: rest.command_highlighting == Some(true),
            skill_bins: skill_bins.to_vec(),
        }
    }
}

fn replace<T: Clone>(value: &mut Option<T>, by: Option<&T>) {
    if let Some(by) = by {
        *value = Some(by.clone());
    }
}
