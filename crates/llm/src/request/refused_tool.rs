//! Finds the tool that a provider refuses: one refused schema would end every turn. Pure.

use crate::request::names;
use crate::{Error, Request};
use sepal_core::domain::Tool;

/// The words by which an error tells that it is about a tool.
const ABOUT_TOOLS: [&str; 4] = ["tool", "function", "schema", "parameter"];
/// The lists of tools in a request, by the names of all vendors; those inside `tools` come first.
const LISTS: [&str; 4] = [
    "function_declarations",
    "functionDeclarations",
    "functions",
    "tools",
];
/// The characters between the name of a list and a position in it: `tools.3`, `tools[3]`, `'tools', 3`.
const BETWEEN: [char; 7] = ['.', '[', ' ', ',', '\'', '"', '/'];

impl Request {
    /// The tool that the error of this request names, by its name or by its place in the request. `None` if
    /// the error is no refusal of the request, or is about something else.
    pub fn refused_tool(&self, error: &Error) -> Option<&Tool> {
        let said = error.refused_request()?;
        self.tool_quoted(said).or_else(|| self.tool_at(said))
    }

    /// The tool that the text quotes first.
    fn tool_quoted(&self, said: &str) -> Option<&Tool> {
        let lower = said.to_lowercase();
        if !ABOUT_TOOLS.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let place = |tool: &Tool| {
            let name = names::fit(&tool.name);
            let quotes = ['\'', '`', '"'].into_iter();
            quotes
                .filter_map(|quote| said.find(&format!("{quote}{name}{quote}")))
                .min()
        };
        let named = self
            .all_tools()
            .filter_map(|tool| Some((place(tool)?, tool)));
        named.min_by_key(|(at, _)| *at).map(|(_, tool)| tool)
    }

    /// The tool at the place that the text names. Where the vendor searches, the places are those of another
    /// list.
    fn tool_at(&self, said: &str) -> Option<&Tool> {
        if self.deferral.is_some() {
            return None;
        }
        let index = LISTS.iter().find_map(|list| index_in(said, list))?;
        // A second tool of the same name is not sent.
        let mut sent: Vec<&Tool> = Vec::with_capacity(self.tools.len());
        for tool in &*self.tools {
            if !sent
                .iter()
                .any(|other| names::fit(&other.name) == names::fit(&tool.name))
            {
                sent.push(tool);
            }
        }
        sent.get(index).copied()
    }
}

/// The number that follows the name of a list.
fn index_in(said: &str, list: &str) -> Option<usize> {
    said.match_indices(list).find_map(|(at, _)| {
        let rest = said.get(at + list.len()..)?;
        let number = rest.trim_start_matches(BETWEEN);
        if number.len() == rest.len() {
            return None;
        }
        let end = number.find(|letter: char| !letter.is_ascii_digit());
        number.get(..end.unwrap_or(number.len()))?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Error, Refusal, Request};
    use sepal_core::domain::{Tool, ToolAnnotations};

    fn request() -> Request {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: json!({ "type": "object" }),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        };
        Request {
            tools: ["read_file", "tags", "tags", "search", "odd.name"]
                .map(tool)
                .into(),
            ..Request::default()
        }
    }

    fn refused(said: &str) -> Error {
        Error::Rejected {
            provider: "p".to_owned(),
            refusal: Refusal::Request,
            said: said.to_owned(),
        }
    }

    #[test]
    fn a_refused_tool_is_found_by_its_name_or_its_place() {
        let odd = crate::request::names::fit("odd.name");
        let of_odd = format!("Invalid schema for function '{odd}': no");
        for (said, expected) in [
            // OpenAI, and servers that copy it.
            (
                "Invalid schema for function 'search': In context=('properties', 'tags'), array schema missing items.",
                Some("search"),
            ),
            (
                "Invalid 'tools[2].function.parameters': bad (tools[2].function.parameters)",
                Some("search"),
            ),
            (of_odd.as_str(), Some("odd.name")),
            // Anthropic.
            (
                "tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
                Some("search"),
            ),
            (
                "tools.0.custom.input_schema.type: Input should be 'object'",
                Some("read_file"),
            ),
            // Gemini.
            (
                "Invalid value at 'tools[0].function_declarations[1].parameters.properties[0].value' (type), \"null\"",
                Some("tags"),
            ),
            (
                "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be non-empty for OBJECT type",
                Some("search"),
            ),
            // Servers that check with Pydantic.
            (
                "[{'type': 'dict_type', 'loc': ('body', 'tools', 1, 'function', 'parameters'), 'msg': 'bad'}]",
                Some("tags"),
            ),
            (
                "body/tools/1/function/parameters must be object",
                Some("tags"),
            ),
            (
                "Tool \"read_file\" has a schema that cannot be compiled to a grammar",
                Some("read_file"),
            ),
            ("function `search`: unsupported keyword", Some("search")),
            // Errors about something else.
            ("tools.99.custom.input_schema: no", None),
            ("tools: too many", None),
            ("messages.1: 'search' is unexpected", None),
            ("This model does not support tools", None),
            ("", None),
        ] {
            let request = request();
            let found = request.refused_tool(&refused(said)).map(|tool| &*tool.name);
            assert_eq!(found, expected, "{said}");
        }
        let overflow = Error::Overflow {
            provider: "p".to_owned(),
            said: "function 'search'".to_owned(),
        };
        assert_eq!(request().refused_tool(&overflow), None);
    }
}
