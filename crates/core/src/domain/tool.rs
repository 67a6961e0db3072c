//! Tools as every layer sees them.

use std::sync::{Arc, LazyLock, OnceLock};

use sepal_policy::{NamedShell, ShellTool};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Digest, ToolView};

/// The tool by which a model finds those whose definitions it is not sent. No server may offer one of
/// that name.
pub const FIND_TOOLS: &str = "find_tools";
/// The tool by which it calls one that it found: `{ "tool": …, "arguments": … }`. The call is one of the
/// tool that it names, for people, rules and digests.
pub const USE_TOOL: &str = "use_tool";

/// The tool by which it reads on what of a result was left out. No server may offer one of that name.
pub const READ_MORE: &str = "read_more";

/// The tool by which it reads a skill's body. No server may offer one of that name.
pub const USE_SKILL: &str = "use_skill";
/// The tool by which it reads a file of a skill. No server may offer one of that name.
pub const READ_SKILL_FILE: &str = "read_skill_file";

/// Hints of an MCP server about a tool: a claim, believed only of trusted servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating it changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches beyond its own place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A JSON Schema. It is written with every card and every record of a call, so its text is kept.
#[derive(Debug, Default)]
pub struct Schema {
    value: Value,
    text: OnceLock<Option<Box<RawValue>>>,
}

impl Schema {
    /// The schema itself.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self {
            value,
            text: OnceLock::new(),
        }
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.text.get_or_init(|| to_raw_value(&self.value).ok());
        match text {
            Some(text) => text.serialize(serializer),
            None => self.value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// A tool's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name that the model uses; unique in a session.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, as the model reads it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result. Nobody decides by it, so it is no part of what a tool is
    /// known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// Hints of its server.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// Whether it works only as a task, which its server does not declare that it has. It is not
    /// offered to models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_tasks: bool,
    /// What it says of views: its own, and whether only views may call it. Nobody says yes to it, so it is
    /// no part of what a tool is known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Arc<ToolView>>,
    /// Whether it is called as a task, so that its calls outlive a restart. Nobody decides by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_as_task: bool,
}

impl Tool {
    /// Names this very definition; the name in it is the server's own, not the model's.
    pub fn hash(&self) -> Digest {
        Digest::of_json(&serde_json::json!(self.known()))
    }

    /// Whether somebody who said yes to the other said yes to this one.
    pub fn is_known_as(&self, other: &Self) -> bool {
        self.known_parts() == other.known_parts()
    }

    fn known_parts(&self) -> KnownParts<'_> {
        let Self {
            name,
            title,
            description,
            input_schema,
            output_schema: _,
            annotations,
            needs_tasks: _,
            view: _,
            runs_as_task: _,
        } = self;
        (
            name,
            title.as_deref(),
            description,
            input_schema,
            annotations,
        )
    }

    /// Whether only views may call it: models are not told of it.
    pub fn is_app_only(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_app_only)
    }

    /// Whether views of its server may call it: all tools that do not say otherwise.
    pub fn is_for_apps(&self) -> bool {
        self.view
            .as_ref()
            .is_none_or(|view| !view.is_hidden_from_apps)
    }

    /// What it is known by.
    #[must_use]
    pub fn known(&self) -> Self {
        let (name, title, description, input_schema, annotations) = self.known_parts();
        Self {
            name: name.to_owned(),
            title: title.map(str::to_owned),
            description: description.to_owned(),
            input_schema: input_schema.clone(),
            output_schema: None,
            annotations: annotations.clone(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }
    }
}

/// What a tool is known by: name, title, description, schema of the arguments, hints.
type KnownParts<'a> = (
    &'a str,
    Option<&'a str>,
    &'a str,
    &'a Value,
    &'a ToolAnnotations,
);

/// Where a tool lives: the server and the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolRef {
    /// The MCP server's name in the registry.
    pub server: String,
    /// The tool's name at that server.
    pub tool: String,
}

/// The server that runs in every sandbox.
pub const BUNDLED_SERVER: &str = "sandbox";

/// The argument of the bundled shell tool that is its command, and those that do not change what runs.
static SHELL: LazyLock<ShellTool> = LazyLock::new(|| ShellTool {
    argument: "command".to_owned(),
    harmless: vec!["timeout_s".to_owned()],
});

/// The tool that runs what a shell reads.
pub fn named_shell() -> NamedShell<'static> {
    NamedShell {
        server: BUNDLED_SERVER,
        tool: "execute_command",
        shell: &SHELL,
    }
}

/// How a tool that runs commands takes them; none for all other tools.
pub fn shell_tool(tool: &ToolRef) -> Option<&'static ShellTool> {
    let named = named_shell();
    (tool.server == named.server && tool.tool == named.tool).then_some(named.shell)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Schema;

    #[test]
    fn a_schema_is_written_as_its_value_each_time_and_read_again() {
        let value = json!({"type": "object", "properties": {"a\n": {"type": ["null", "number"]}}});
        let schema = Schema::from(value.clone());
        for _ in 0..2 {
            assert_eq!(serde_json::to_string(&schema).unwrap(), value.to_string());
            assert_eq!(serde_json::to_value(&schema).unwrap(), value);
        }
        let read: Schema = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!((&read, read.value()), (&schema, &value));
        assert_ne!(Schema::from(Value::Null), schema);
    }
}
