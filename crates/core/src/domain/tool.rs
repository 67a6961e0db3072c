//! Defines tools as every layer sees them.

use std::sync::{Arc, LazyLock, OnceLock};

use sepal_policy::{NamedShell, ShellTool};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Digest, ToolView};

/// The tool with which a model searches tools whose definitions it was not sent. No server may offer a tool
/// of this name.
pub const FIND_TOOLS: &str = "find_tools";
/// The tool with which a model calls a tool that it found: `{ "tool": …, "arguments": … }`. People, rules
/// and digests see a call of the named tool.
pub const USE_TOOL: &str = "use_tool";

/// The tool with which a model reads the omitted parts of a result. No server may offer a tool of this
/// name.
pub const READ_MORE: &str = "read_more";

/// The tool with which a model reads a skill's body. No server may offer a tool of this name.
pub const USE_SKILL: &str = "use_skill";
/// The tool with which a model reads a file of a skill. No server may offer a tool of this name.
pub const READ_SKILL_FILE: &str = "read_skill_file";

/// Annotations of a tool by its MCP server: claims, trusted only from trusted servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A repeated call has no further effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with the outside world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A JSON Schema. Its serialized text is cached, because every card and every record of a call contains it.
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
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description that the model reads.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result. No decision depends on it, so it is not part of the tool's
    /// identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// Annotations that the server gave.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// True if the tool only works as a task but its server does not declare support for tasks. The tool is
    /// not offered to models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_tasks: bool,
    /// The tool's declaration of its view. No decision depends on it, so it is not part of the tool's
    /// identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Arc<ToolView>>,
    /// True if the tool is called as a task, so that its calls survive a restart. No decision depends on
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_as_task: bool,
}

impl Tool {
    /// The hash of this definition's identity, with the server's own name of the tool, not the model's.
    pub fn hash(&self) -> Digest {
        Digest::of_json(&serde_json::json!(self.known()))
    }

    /// Returns true if both definitions have the same identity, so that a decision about one applies to the
    /// other.
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

    /// Returns true if only views may call the tool, so that models are not offered it.
    pub fn is_app_only(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_app_only)
    }

    /// Returns true if views of its server may call the tool, which is the default.
    pub fn is_for_apps(&self) -> bool {
        self.view
            .as_ref()
            .is_none_or(|view| !view.is_hidden_from_apps)
    }

    /// A copy with only the fields of the tool's identity.
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

/// A tool's identity: name, title, description, schema of the arguments, annotations.
type KnownParts<'a> = (
    &'a str,
    Option<&'a str>,
    &'a str,
    &'a Value,
    &'a ToolAnnotations,
);

/// The address of a tool: its server and the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolRef {
    /// The MCP server's name in the registry.
    pub server: String,
    /// The tool's name at that server.
    pub tool: String,
}

/// The name of the server that runs in every sandbox.
pub const BUNDLED_SERVER: &str = "sandbox";

/// The command argument of the bundled shell tool, and the arguments that do not change what runs.
static SHELL: LazyLock<ShellTool> = LazyLock::new(|| ShellTool {
    argument: "command".to_owned(),
    harmless: vec!["timeout_s".to_owned()],
});

/// The tool that executes shell commands.
pub fn named_shell() -> NamedShell<'static> {
    NamedShell {
        server: BUNDLED_SERVER,
        tool: "execute_command",
        shell: &SHELL,
    }
}

/// The shell arguments of a tool that executes shell commands; `None` for other tools.
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
