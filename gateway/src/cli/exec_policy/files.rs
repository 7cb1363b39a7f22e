//! The two files of a machine's policy.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use config::{
    ApprovalsFile, Config, ConfigError, ExecConfig, MAX_CONFIG_BYTES, PrivateMode, read_private,
    write_private,
};
use fault::{ErrorCode, Fault};
use policy::ApprovalsDocument;
use serde_json::Value;

use super::change::PolicyFile;
use super::values::Values;

/// Where the configuration's part is.
const EXEC: [&str; 2] = ["tools", "exec"];

/// `tools.exec.{host,security,ask}` of `openclaw.json`, the layer that holds for all agents.
#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
}

/// `defaults.{security,ask,askFallback}` of `exec-approvals.json`.
#[derive(Debug)]
pub(super) struct DocumentFile {
    file: ApprovalsFile,
}

impl ConfigFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The text and where it lies, links followed; an empty one where there is no file.
    fn text(&self) -> Result<(PathBuf, String), Fault> {
        // Looks at the links and at who can write the file, and refuses what means nothing.
        Config::load(&self.path).map_err(|error| Fault::from(&error))?;
        let real = match fs::canonicalize(&self.path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((self.path.clone(), String::new()));
            }
            Err(error) => return Err(self.failed(&error)),
        };
        let bytes = read_private(&real, MAX_CONFIG_BYTES, PrivateMode::Readable)
            .map_err(|error| Fault::from(&ConfigError::from(error)))?;
        let text = String::from_utf8(bytes).map_err(|error| self.failed(&error))?;
        Ok((real, text))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Fault {
        Fault::new(ErrorCode::ConfigInvalid, format!("{}: {error}", self.path.display()))
    }
}

impl PolicyFile for ConfigFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn part_of(&self, values: &Values) -> Values {
        values.without_fallback()
    }

    fn read(&self) -> Result<Values, Fault> {
        let (_, text) = self.text()?;
        global(&text).map(|exec| values_of(&exec)).map_err(|error| Fault::from(&error))
    }

    fn swap(&self, old: &Values, new: &Values) -> Result<(), Fault> {
        let (real, text) = self.text()?;
        let exec = global(&text).map_err(|error| Fault::from(&error))?;
        if values_of(&exec) != *old {
            return Err(changed(&self.name()));
        }
        let text = edited(text, &exec, old, new).map_err(|error| Fault::from(&error))?;
        if let Ok(metadata) = fs::symlink_metadata(&real)
            && metadata.nlink() > 1
        {
            let message = format!(
                "{} has {} names (hard links), so it is not replaced",
                real.display(),
                metadata.nlink()
            );
            return Err(Fault::new(ErrorCode::StoreUnreadable, message).hint("keep one name of it"));
        }
        write_private(&real, text.as_bytes()).map_err(|error| {
            // For the text with its causes; what was configured is in order.
            let told = Fault::from(&ConfigError::from(error));
            Fault::new(ErrorCode::StoreUnreadable, told.message)
        })
    }
}

/// The layer that holds for all agents. A file that is not there says nothing.
fn global(text: &str) -> Result<ExecConfig, ConfigError> {
    let config = if text.is_empty() { Config::default() } else { Config::parse(text)? };
    Ok(config.exec_for_all())
}

fn values_of(exec: &ExecConfig) -> Values {
    Values { host: exec.host.clone(), security: exec.security, ask: exec.ask, ask_fallback: None }
}

/// The text with the new values. A mode stands for the two words, and one object may not have both (§1.6): it gives way
/// to the pair.
fn edited(mut text: String, exec: &ExecConfig, old: &Values, new: &Values) -> Result<String, ConfigError> {
    let mut set = |name: &str, word: Option<&str>| {
        let [tools, section] = EXEC;
        text = Config::edit(&text, &[tools, section, name], word.map_or(Value::Null, Value::from))?;
        Ok::<_, ConfigError>(())
    };
    if (new.security, new.ask) != (old.security, old.ask) {
        if exec.mode.is_some() {
            set("mode", None)?;
        }
        set("security", new.security.map(|word| word.as_str()))?;
        set("ask", new.ask.map(|word| word.as_str()))?;
    }
    if new.host != old.host {
        set("host", new.host.as_deref())?;
    }
    Config::parse(&text)?;
    Ok(text)
}

impl DocumentFile {
    pub(super) fn new(file: ApprovalsFile) -> Self {
        Self { file }
    }
}

impl PolicyFile for DocumentFile {
    fn name(&self) -> String {
        self.file.path().display().to_string()
    }

    fn part_of(&self, values: &Values) -> Values {
        values.without_host()
    }

    fn read(&self) -> Result<Values, Fault> {
        Ok(defaults(&self.file.load()?.document))
    }

    fn swap(&self, old: &Values, new: &Values) -> Result<(), Fault> {
        self.file.edit(|document| {
            if defaults(document) != *old {
                return Err(changed(&self.name()));
            }
            document.defaults.security = new.security;
            document.defaults.ask = new.ask;
            document.defaults.ask_fallback = new.ask_fallback;
            Ok(true)
        })?;
        Ok(())
    }
}

fn defaults(document: &ApprovalsDocument) -> Values {
    let defaults = &document.defaults;
    Values { host: None, security: defaults.security, ask: defaults.ask, ask_fallback: defaults.ask_fallback }
}

fn changed(name: &str) -> Fault {
    Fault::new(ErrorCode::ApprovalsConflict, format!("{name} was changed by someone else meanwhile"))
        .hint("see `gateway exec-policy show`, then try again")
}
