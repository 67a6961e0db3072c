//! Collects the tools of a session: unique names, argument schemas, digests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sepal_schema::{Formats, Misfit, OverBudget};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::result::ToolAnswer;
use sepal_core::domain::{
    Digest, FIND_TOOLS, READ_MORE, READ_SKILL_FILE, Schema, Tool, ToolRef, USE_SKILL, USE_TOOL,
};

/// The longest name that all model vendors accept.
const MAX_NAME: usize = 64;
/// Most bytes of the input schemas of one server together: each schema is compiled for each list that it is
/// on.
const MAX_SCHEMAS: usize = 2 * 1024 * 1024;
/// The hex digits of the hash that distinguishes a shortened name.
const HASH_DIGITS: usize = 6;

/// The policy for adding the server's name to tool names (`settings.toolNamespacing` of `mcp-config.json`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Naming {
    /// Only if another server has a tool of the same name.
    #[default]
    Auto,
    /// Always.
    Prefix,
    /// Never; a tool whose name is taken is not offered.
    None,
}

/// The tools that a session's model may call.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<String, ToolboxTool>,
}

/// A server whose tools are added.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The server's name in the registry.
    pub server: &'a str,
    /// The prefix of the tools' names.
    pub prefix: &'a str,
    /// The policy for adding the server's name to the tools' names.
    pub naming: Naming,
    /// True if the operator trusts the server's hints.
    pub is_trusted: bool,
}

/// One tool, with its compiled schemas.
pub struct ToolboxTool {
    /// The definition, with the name that the model uses.
    pub tool: Tool,
    pub at: ToolRef,
    /// The hash of the definition.
    pub definition: Digest,
    /// True if the operator trusts its server's hints.
    pub is_trusted: bool,
    /// The schema of the arguments, as calls carry it.
    pub schema: Arc<Schema>,
    arguments: sepal_schema::Schema,
    /// The compiled schema of structured results; compiled at the first result.
    results: OnceLock<Result<sepal_schema::Schema, sepal_schema::Error>>,
}

/// The reason that a tool cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// The input schema is not a JSON Schema, or exceeds a bound.
    #[error("the input schema of tool `{tool}` of server `{server}` cannot be used: {reason}")]
    Schema {
        server: String,
        tool: String,
        reason: String,
    },
    /// The schemas of the server are too large together.
    #[error(
        "tool `{tool}` of server `{server}` is left out: the input schemas of one server may have \
         {MAX_SCHEMAS} bytes together"
    )]
    TooMuch { server: String, tool: String },
    /// Another tool has the same name.
    #[error("the name of tool `{tool}` of server `{server}` is taken; set a `toolPrefix`")]
    Name { server: String, tool: String },
}

impl Toolbox {
    /// Adds a server's tools, and returns an error for each tool that cannot be offered.
    pub fn add(&mut self, offer: Offer<'_>, tools: &[Tool]) -> Vec<ToolboxError> {
        let mut room = MAX_SCHEMAS;
        let added = tools.iter().map(|tool| {
            let bytes = tool.input_schema.to_string().len();
            let left = room.checked_sub(bytes);
            room = left.ok_or_else(|| ToolboxError::TooMuch {
                server: offer.server.to_owned(),
                tool: tool.name.clone(),
            })?;
            self.add_one(offer, tool)
        });
        added.filter_map(Result::err).collect()
    }

    fn add_one(&mut self, offer: Offer<'_>, tool: &Tool) -> Result<(), ToolboxError> {
        let at = ToolRef {
            server: offer.server.to_owned(),
            tool: tool.name.clone(),
        };
        let schema = |error: sepal_schema::Error| ToolboxError::Schema {
            server: at.server.clone(),
            tool: at.tool.clone(),
            reason: error.to_string(),
        };
        let arguments = sepal_schema::Schema::compile(&tool.input_schema, Formats::Remarks);
        let arguments = arguments.map_err(schema)?;
        let Some(name) = self.free_name(offer, &tool.name) else {
            let (server, tool) = (at.server, at.tool);
            return Err(ToolboxError::Name { server, tool });
        };
        let entry = ToolboxTool {
            tool: Tool {
                name: name.clone(),
                ..tool.clone()
            },
            at,
            definition: tool.hash(),
            is_trusted: offer.is_trusted,
            schema: Arc::new(tool.input_schema.clone().into()),
            arguments,
            results: OnceLock::new(),
        };
        self.tools.insert(name, entry);
        Ok(())
    }

    /// Returns a free name that every vendor accepts. The name depends on previously added tools only if
    /// names clash.
    fn free_name(&self, offer: Offer<'_>, tool: &str) -> Option<String> {
        let own = fitting(&format!("{}{tool}", offer.prefix));
        let long = fitting(&format!("{}__{}{tool}", offer.server, offer.prefix));
        let wanted = match offer.naming {
            Naming::Auto => [Some(own), Some(long)],
            Naming::Prefix => [Some(long), None],
            Naming::None => [Some(own), None],
        };
        let mut wanted = wanted.into_iter().flatten();
        let ours = [FIND_TOOLS, READ_MORE, READ_SKILL_FILE, USE_SKILL, USE_TOOL];
        let is_ours = |name: &str| ours.contains(&name);
        wanted.find(|name| !is_ours(name) && !self.tools.contains_key(name))
    }

    /// Finds a tool by the name that the model uses.
    pub fn find(&self, name: &str) -> Option<&ToolboxTool> {
        self.tools.get(name)
    }

    /// Returns all tools, in the order of the names that the model uses.
    pub fn tools(&self) -> impl Iterator<Item = &ToolboxTool> {
        self.tools.values()
    }

    /// Returns all definitions, ordered by name: the order is the same from turn to turn.
    pub fn definitions(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values().map(|entry| &entry.tool)
    }
}

/// Returns the name in the form that every vendor accepts: `[a-zA-Z0-9_-]{1,64}`. A changed name gets a hash
/// of the original.
fn fitting(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed) {
        return name.to_owned();
    }
    let kept = name.chars().take(MAX_NAME - HASH_DIGITS - 1);
    let kept: String = kept.map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let hash = Digest::of_json(&Value::from(name));
    let hash: String = hash.as_str().chars().take(HASH_DIGITS).collect();
    format!("{kept}_{hash}")
}

impl ToolboxTool {
    /// Checks the structured result of a call against the tool's output schema. A mismatch is added as a
    /// remark for the model and for people. If the texts do not contain the structured result, it is added
    /// for the model.
    pub fn check_answer(&self, answer: &mut ToolAnswer) {
        let Some(schema) = self.tool.output_schema.as_deref() else {
            return;
        };
        if answer.is_error {
            return;
        }
        let compile = || sepal_schema::Schema::compile(schema, Formats::Remarks);
        let results = self.results.get_or_init(compile);
        let problem = match (&answer.structured, results) {
            (_, Err(error)) => Some(format!(
                "the tool's own output schema cannot be used: {error}"
            )),
            (None, Ok(_)) => Some(
                "the tool gave no structured result, which its output schema promises".to_owned(),
            ),
            (Some(value), Ok(results)) => told(results.check(value)).map(|(place, reason)| {
                format!(
                    "the structured result does not fit the tool's output schema{place}: {reason}"
                )
            }),
        };
        answer.add_structured();
        if let Some(problem) = problem {
            tracing::warn!(mcp.server = %self.at.server, tool.name = %self.at.tool, problem, "An odd structured result");
            answer.remark(&problem);
        }
    }

    /// Returns the problem of the arguments, naming the field; `None` if they fit the schema.
    pub fn problem_with(&self, args: &Value) -> Option<String> {
        let (place, reason) = told(self.arguments.check(args))?;
        Some(format!(
            "the arguments of `{}` are not valid{place}: {reason}",
            self.tool.name
        ))
    }
}

/// Returns the place and the reason of a mismatch; `None` if the value fits.
fn told(checked: Result<Option<Misfit>, OverBudget>) -> Option<(String, String)> {
    match checked {
        Ok(None) => None,
        Ok(Some(misfit)) if misfit.at.is_empty() => Some((String::new(), misfit.message)),
        Ok(Some(misfit)) => Some((format!(" at `{}`", misfit.at), misfit.message)),
        Err(error) => Some((String::new(), error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Naming, Offer, Toolbox};
    use sepal_core::domain::{Tool, ToolAnnotations};

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
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }
    }

    fn offer(server: &str) -> Offer<'_> {
        Offer {
            server,
            prefix: "",
            naming: Naming::Auto,
            is_trusted: true,
        }
    }

    fn names(toolbox: &Toolbox) -> Vec<&str> {
        toolbox
            .definitions()
            .map(|tool| tool.name.as_str())
            .collect()
    }

    /// Asserts S3.16, S3.42.
    #[test]
    fn the_tool_set_gives_each_name_its_description_and_parameters() {
        let mut toolbox = Toolbox::default();
        let mut read = tool("read");
        read.description = "Reads a file".into();
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        read.input_schema = parameters.clone();
        toolbox.add(offer("a"), &[read, tool("list")]);
        let set: Vec<_> = toolbox
            .definitions()
            .map(|tool| {
                (
                    tool.name.as_str(),
                    tool.description.as_str(),
                    &tool.input_schema,
                )
            })
            .collect();
        assert_eq!(set.len(), 2);
        assert!(
            set.contains(&("read", "Reads a file", &parameters)),
            "{set:?}"
        );
    }

    /// Asserts S3.4, S3.42.
    #[test]
    fn names_are_unique_and_lead_to_their_server() {
        let mut toolbox = Toolbox::default();
        toolbox.add(offer("a"), &[tool("read")]);
        toolbox.add(offer("b"), &[tool("read")]);
        assert_eq!(toolbox.find("read").unwrap().at.server, "a");
        assert_eq!(toolbox.find("b__read").unwrap().at.server, "b");
        assert_eq!(toolbox.find("b__read").unwrap().at.tool, "read");
        let same = toolbox.add(offer("b"), &[tool("read")]);
        assert!(same[0].to_string().contains("is taken"), "{same:?}");
    }

    #[test]
    fn the_naming_and_the_prefix_decide_what_the_model_reads() {
        let check = |naming, prefix, expected: &[&str]| {
            let mut toolbox = Toolbox::default();
            toolbox.add(offer("a"), &[tool("read")]);
            let offer = Offer {
                prefix,
                naming,
                ..offer("b")
            };
            toolbox.add(offer, &[tool("read"), tool("list")]);
            assert_eq!(names(&toolbox), expected, "{naming:?} {prefix}");
        };
        check(Naming::Auto, "", &["b__read", "list", "read"]);
        check(Naming::Prefix, "", &["b__list", "b__read", "read"]);
        check(Naming::None, "", &["list", "read"]);
        check(Naming::Auto, "x_", &["read", "x_list", "x_read"]);
    }

    #[test]
    fn names_fit_every_vendor_and_stay_apart() {
        let long = |end: &str| format!("{}{end}", "x".repeat(80));
        let mut toolbox = Toolbox::default();
        let odd = [tool(&long("1")), tool(&long("2")), tool("a.b"), tool("a/b")];
        assert!(toolbox.add(offer("a"), &odd).is_empty());
        let names = names(&toolbox);
        assert_eq!(names.len(), 4);
        let is_fit = |name: &&str| name.len() <= 64 && !name.contains(['.', '/']);
        assert!(names.iter().all(is_fit), "{names:?}");
    }

    #[test]
    fn a_problem_names_the_field() {
        let mut toolbox = Toolbox::default();
        toolbox.add(offer("a"), &[tool("read")]);
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
    fn a_broken_schema_is_refused_by_name_and_the_rest_is_offered() {
        let mut broken = tool("read");
        broken.input_schema = json!({"type": "no such type"});
        let mut toolbox = Toolbox::default();
        let problems = toolbox.add(offer("a"), &[broken, tool("list")]);
        assert!(
            problems[0].to_string().contains("`read` of server `a`"),
            "{problems:?}"
        );
        assert_eq!(names(&toolbox), ["list"]);
    }
}
