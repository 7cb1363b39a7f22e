//! Which member of a document means what (policy spec §1.2).

use std::{collections::BTreeMap, marker::PhantomData, str::FromStr};

use serde::de::{IgnoredAny, MapAccess};
use serde_json::{Map, Number, Value};

use super::{
    Form, Reading,
    object::{Examples, Member, Members, Object, Rules, UnknownWord, Word},
};
use crate::{
    AgentEntry, AllowAlways, AllowEntry, ApprovalsDocument, PolicyFields, SocketEntry, UnknownPolicyWord,
};

const VERSION: f64 = 1.0;
const MCP_TOOL_MEMBERS: [&str; 5] = ["server", "tool", "source", "addedAt", "lastUsedAt"];

/// The document while it is read: it knows whether the version was there.
#[derive(Default)]
pub(super) struct Whole {
    document: ApprovalsDocument,
    versioned: bool,
}

impl From<Whole> for ApprovalsDocument {
    fn from(whole: Whole) -> Self {
        whole.document
    }
}

impl Members for Whole {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        match name {
            "version" => {
                if map.next_value::<Number>()?.as_f64() != Some(VERSION) {
                    return Err(reading.refuse("only version 1 is known"));
                }
                self.versioned = true;
            }
            "socket" => self.document.socket = Some(map.next_value_seed(Object::new(reading))?),
            "defaults" => self.document.defaults = map.next_value_seed(Object::new(reading))?,
            "agents" => self.document.agents = map.next_value_seed(Object::<Agents>::new(reading))?.0,
            _ => return Ok(Member::Unknown),
        }
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        Some(&mut self.document.extra)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.versioned { Ok(()) } else { Err("the member `version` is missing") }
    }
}

/// Every member is an agent's entry.
#[derive(Default)]
struct Agents(BTreeMap<String, AgentEntry>);

impl Members for Agents {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        self.0.insert(name.to_owned(), map.next_value_seed(Object::new(reading))?);
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        None
    }
}

impl Members for SocketEntry {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        _reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        match name {
            "path" => self.path = Some(map.next_value()?),
            "token" => self.token = Some(map.next_value()?),
            _ => return Ok(Member::Unknown),
        }
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        Some(&mut self.extra)
    }
}

impl Members for PolicyFields {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        match name {
            "security" => self.security = word(map, reading, UnknownWord::Unset)?,
            "ask" => self.ask = word(map, reading, UnknownWord::Unset)?,
            "askFallback" => self.ask_fallback = word(map, reading, UnknownWord::Refused)?,
            "autoAllowSkills" => self.auto_allow_skills = Some(map.next_value()?),
            _ => return Ok(Member::Unknown),
        }
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        Some(&mut self.extra)
    }
}

fn word<'de, T: FromStr<Err = UnknownPolicyWord>, A: MapAccess<'de>>(
    map: &mut A,
    reading: &mut Reading,
    in_updates: UnknownWord,
) -> Result<Option<T>, A::Error> {
    map.next_value_seed(Word { reading, in_updates, into: PhantomData })
}

impl Members for AgentEntry {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        match name {
            "allowlist" => self.allowlist = map.next_value_seed(Rules(reading))?,
            "mcpTools" => {
                self.mcp_tools = map.next_value()?;
                if !self.mcp_tools.iter().all(|tool| is_mcp_tool(tool, reading.form)) {
                    return Err(reading.refuse("a grant is an object with the texts `server` and `tool`"));
                }
            }
            _ => return self.fields.read(name, map, reading),
        }
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        Some(&mut self.fields.extra)
    }
}

fn is_mcp_tool(tool: &Value, form: Form) -> bool {
    let Some(members) = tool.as_object() else { return false };
    ["server", "tool"].iter().all(|name| members.get(*name).is_some_and(Value::is_string))
        && (form == Form::Stored || members.keys().all(|name| MCP_TOOL_MEMBERS.contains(&name.as_str())))
}

impl Members for AllowEntry {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        reading: &mut Reading,
    ) -> Result<Member, A::Error> {
        match name {
            "pattern" => self.pattern = map.next_value()?,
            "argPattern" => self.arg_pattern = Some(map.next_value()?),
            "source" => {
                let source: Value = map.next_value()?;
                self.source = (source == "allow-always").then_some(AllowAlways);
            }
            "id" => self.id = Some(map.next_value()?),
            // Older writers left `null` in these two.
            "lastUsedAt" => self.last_used_at = map.next_value()?,
            "lastUsedCommand" => self.last_used_command = map.next_value()?,
            "lastResolvedPath" => self.last_resolved_path = Some(map.next_value()?),
            "match" => self.examples_match = map.next_value_seed(Examples(reading))?,
            "noMatch" => self.examples_no_match = map.next_value_seed(Examples(reading))?,
            // Legacy: the text says nothing that the pattern does not.
            "commandText" => {
                map.next_value::<IgnoredAny>()?;
            }
            _ => return Ok(Member::Unknown),
        }
        Ok(Member::Known)
    }

    fn extra(&mut self) -> Option<&mut Map<String, Value>> {
        Some(&mut self.extra)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.pattern.trim().is_empty() { Err("a rule needs a pattern that is not blank") } else { Ok(()) }
    }
}
