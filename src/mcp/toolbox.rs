//! The tools of a session: unique names, argument schemas, digests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::{Digest, Tool, ToolRef};

/// The tools that a session's model may ask for.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<String, ToolboxTool>,
}

/// One tool, ready to be asked about.
pub struct ToolboxTool {
    /// The definition, with the name that the model uses.
    pub tool: Tool,
    /// Where it lives.
    pub at: ToolRef,
    /// Hash of the definition.
    pub definition: Digest,
    /// Whether the operator trusts its server's hints.
    pub is_trusted: bool,
    validator: jsonschema::Validator,
}

/// A tool cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// Its schema is not a JSON Schema.
    #[error("the input schema of tool `{tool}` of server `{server}` is not valid: {reason}")]
    Schema {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
}

impl Toolbox {
    /// Adds a server's tools. A name that is taken gets the server's name in front.
    pub fn add(
        &mut self,
        server: &str,
        tools: Vec<Tool>,
        is_trusted: bool,
    ) -> Result<(), ToolboxError> {
        for mut tool in tools {
            let at = ToolRef {
                server: server.to_owned(),
                tool: tool.name.clone(),
            };
            let definition = Digest::of_json(&serde_json::json!(tool));
            let validator = jsonschema::validator_for(&tool.input_schema).map_err(|error| {
                ToolboxError::Schema {
                    server: server.to_owned(),
                    tool: tool.name.clone(),
                    reason: error.to_string(),
                }
            })?;
            if self.tools.contains_key(&tool.name) {
                tool.name = format!("{server}__{}", tool.name);
            }
            let name = tool.name.clone();
            self.tools.insert(
                name,
                ToolboxTool {
                    tool,
                    at,
                    definition,
                    is_trusted,
                    validator,
                },
            );
        }
        Ok(())
    }

    /// The tool that the model calls so.
    pub fn find(&self, name: &str) -> Option<&ToolboxTool> {
        self.tools.get(name)
    }

    /// All definitions, in the order of their names: the same from turn to turn.
    pub fn definitions(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values().map(|entry| &entry.tool)
    }
}

impl ToolboxTool {
    /// What is wrong with the arguments, naming the field; `None` if they fit the schema.
    pub fn problem_with(&self, args: &Value) -> Option<String> {
        let error = self.validator.iter_errors(args).next()?;
        let at = error.instance_path().to_string();
        let place = if at.is_empty() {
            String::new()
        } else {
            format!(" at `{at}`")
        };
        Some(format!(
            "the arguments of `{}` are not valid{place}: {error}",
            self.tool.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Toolbox;
    use crate::domain::{Tool, ToolAnnotations};

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: String::new(),
            input_schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            }),
            annotations: ToolAnnotations::default(),
        }
    }

    #[test]
    fn names_are_unique_and_lead_to_their_server() {
        let mut toolbox = Toolbox::default();
        toolbox.add("a", vec![tool("read")], true).unwrap();
        toolbox.add("b", vec![tool("read")], false).unwrap();
        assert_eq!(toolbox.find("read").unwrap().at.server, "a");
        assert_eq!(toolbox.find("b__read").unwrap().at.server, "b");
        assert_eq!(toolbox.find("b__read").unwrap().at.tool, "read");
    }

    #[test]
    fn a_problem_names_the_field() {
        let mut toolbox = Toolbox::default();
        toolbox.add("a", vec![tool("read")], true).unwrap();
        let read = toolbox.find("read").unwrap();
        assert_eq!(read.problem_with(&json!({"path": "x"})), None);
        assert!(
            read.problem_with(&json!({"path": 1}))
                .unwrap()
                .contains("/path")
        );
        assert!(read.problem_with(&json!({})).unwrap().contains("path"));
        assert!(read.problem_with(&json!([])).is_some());
    }

    #[test]
    fn a_broken_schema_is_refused_by_name() {
        let mut broken = tool("read");
        broken.input_schema = json!({"type": "no such type"});
        let error = Toolbox::default().add("a", vec![broken], true).unwrap_err();
        assert!(
            error.to_string().contains("`read` of server `a`"),
            "{error}"
        );
    }
}
