//! Prepares the tools of a request for both APIs. Pure.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tracing::warn;

use crate::RequestCache;
use crate::request::names;
use crate::request::schema::{Dialect, lowered};
use sepal_core::domain::Tool;

mod strict;

/// Tells whether tools may be marked strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// A tool is strict if its schema allows it.
    Possible,
    /// No tool is strict, because the server does not support it.
    Off,
}

impl Strictness {
    /// Strict tools are possible if `is_possible`.
    pub(super) fn possible_if(is_possible: bool) -> Self {
        if is_possible {
            Self::Possible
        } else {
            Self::Off
        }
    }
}

/// A tool in the form in which the vendor gets it.
#[derive(Debug)]
pub(super) struct Offered<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    /// True if the arguments must follow the schema strictly.
    pub(super) is_strict: bool,
}

/// The serialized tools of a request; `None` if there are none.
pub(super) type Written = Option<Arc<RawValue>>;

/// Serialized tools, cached for the next request: they are most of a short request.
#[derive(Debug, Default)]
pub(super) struct WrittenTools {
    possible: RequestCache<Written>,
    /// The cache for models that do not support strict schemas.
    off: RequestCache<Written>,
}

impl WrittenTools {
    /// The serialized tools, from the cache or from `write`.
    pub(super) fn get(
        &self,
        tools: &Arc<[Tool]>,
        strictness: Strictness,
        write: impl FnOnce(&[Tool], Strictness) -> serde_json::Result<Written>,
    ) -> serde_json::Result<Written> {
        let cache = match strictness {
            Strictness::Possible => &self.possible,
            Strictness::Off => &self.off,
        };
        cache.get(tools, |tools| write(tools, strictness))
    }
}

/// Serializes the tools, each converted by `form`.
pub(super) fn write<'a, T: Serialize>(
    tools: &'a [Tool],
    strictness: Strictness,
    form: impl Fn(Offered<'a>) -> T,
) -> serde_json::Result<Written> {
    if tools.is_empty() {
        return Ok(None);
    }
    let forms: Vec<T> = offered(tools, strictness).into_iter().map(form).collect();
    Ok(Some(to_raw_value(&forms)?.into()))
}

/// The tools under valid names, without a second tool of the same name.
pub(super) fn offered(tools: &[Tool], strictness: Strictness) -> Vec<Offered<'_>> {
    let mut taken = HashSet::new();
    let mut offered = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = names::fit(&tool.name);
        if !taken.insert(name.clone()) {
            warn!(tool.name = %tool.name, "Leave out a second tool `{}`", tool.name);
            continue;
        }
        let parameters = lowered(parameters(&tool.input_schema), Dialect::OpenAi);
        let strict = match strictness {
            Strictness::Possible => strict::made_strict(&parameters),
            Strictness::Off => None,
        };
        offered.push(Offered {
            name,
            description: &tool.description,
            is_strict: strict.is_some(),
            parameters: strict.map_or(parameters, Cow::Owned),
        });
    }
    offered
}

/// Returns true if the model supports the vendor's tool search (OpenAI, tool search, 2026-10).
pub(super) fn has_tool_search(model: &str) -> bool {
    let Some((_, name)) = model.split_once("gpt-") else {
        return false;
    };
    let end = name.find(|c: char| !c.is_ascii_digit() && c != '.');
    let version = name.split_at(end.unwrap_or(name.len())).0;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    version >= (5, 4)
}

/// Ensures that a schema has `type` and `properties`, because vendors refuse other schemas (S3.31).
fn parameters(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(object)
            if object.contains_key("type") && object.contains_key("properties") =>
        {
            Cow::Borrowed(schema)
        }
        Value::Object(object) => {
            let mut whole = object.clone();
            whole.entry("type").or_insert_with(|| json!("object"));
            whole.entry("properties").or_insert_with(|| json!({}));
            Cow::Owned(Value::Object(whole))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Cow::Owned(json!({"type": "object", "properties": {}}))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Strictness, has_tool_search, offered, parameters};
    use sepal_core::domain::{Tool, ToolAnnotations};

    #[test]
    fn models_since_gpt_5_4_load_what_they_find() {
        for (model, expected) in [
            ("gpt-5.4", true),
            ("gpt-5.4-2026-03-05", true),
            ("gpt-5.10-mini", true),
            ("gpt-6-luna", true),
            ("openai/gpt-5.6", true),
            ("gpt-5.3-codex", false),
            ("gpt-5", false),
            ("gpt-5-2025-08-07", false),
            ("gpt-4o", false),
            ("gpt-oss-120b", false),
            ("o3", false),
            ("qwen3", false),
        ] {
            assert_eq!(has_tool_search(model), expected, "{model}");
        }
    }

    /// Asserts S3.31.
    #[test]
    fn schemas_are_always_objects() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!(null), json!({}), json!({"type": "object"}), json!([])] {
            assert_eq!(*parameters(&schema), empty, "{schema}");
        }
        let whole = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
        assert_eq!(*parameters(&whole), whole);
    }

    #[test]
    fn a_name_stands_once_and_strictness_can_be_off() {
        let tool = |name: &str, input_schema: Value| Tool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        };
        let strict = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let tools = [
            tool("a.b", Value::Null),
            tool("a.b", Value::Null),
            tool("c", strict),
        ];
        let strictness = |strictness| {
            let offered = offered(&tools, strictness);
            offered
                .iter()
                .map(|tool| tool.is_strict)
                .collect::<Vec<_>>()
        };
        assert_eq!(strictness(Strictness::Possible), [false, true]);
        assert_eq!(strictness(Strictness::Off), [false, false]);
    }
}
