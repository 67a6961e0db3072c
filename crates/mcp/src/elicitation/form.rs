//! Validates the form that a server wants filled in (`elicitation/create`), and checks answers against it.

use rmcp::ErrorData;
use rmcp::model::ElicitationSchema;
use sepal_schema::{Formats, Schema};
use serde_json::Value;

use super::refused;

/// The longest message of a question, in bytes.
pub(super) const MAX_MESSAGE: usize = 16 * 1024;
/// The largest form, in bytes of JSON.
const MAX_SCHEMA: usize = 64 * 1024;
/// The most fields of a form.
const MAX_FIELDS: usize = 64;
/// The largest answer, in bytes of JSON.
const MAX_CONTENT: usize = 64 * 1024;

/// A form that a server wants filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The server's words.
    pub message: String,
    /// The JSON Schema of an object with flat fields.
    pub schema: Value,
    /// The names of the fields in the server's order, which the schema does not preserve.
    pub order: Vec<String>,
}

impl Form {
    /// Returns the problem of an answer, beginning with the field in backticks; `None` if the answer fits.
    pub fn problem_with(schema: &Value, content: &Value) -> Option<String> {
        let Value::Object(values) = content else {
            return Some("the answer is an object with a value for each field".to_owned());
        };
        if content.to_string().len() > MAX_CONTENT {
            return Some(format!("the answer may have {MAX_CONTENT} bytes"));
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &&String| known.is_some_and(|known| known.contains_key(*name));
        if let Some(name) = values.keys().find(|name| !is_known(name)) {
            return Some(format!("`{name}`: the form has no such field"));
        }
        let checked = match compiled(schema) {
            Ok(schema) => schema.check(content),
            Err(reason) => return Some(reason),
        };
        let misfit = match checked {
            Ok(misfit) => misfit?,
            Err(error) => return Some(format!("the answer is not taken: {error}")),
        };
        if let Some(field) = misfit.missing {
            return Some(format!("`{field}`: a value is needed"));
        }
        // For a multiple choice, names the field instead of the value in it.
        let (at, error) = (misfit.at, misfit.message);
        let field = values.keys().find(|name| {
            let rest = at
                .strip_prefix('/')
                .and_then(|at| at.strip_prefix(&escaped(name)));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        Some(match field {
            Some(field) => format!("`{field}`: {error}"),
            None => error,
        })
    }

    /// Validates the form that a server sends; the error tells the server what is wrong.
    pub(super) fn read(
        message: String,
        requested_schema: &ElicitationSchema,
    ) -> Result<Self, ErrorData> {
        if message.len() > MAX_MESSAGE {
            return Err(refused(&format!("`message` may have {MAX_MESSAGE} bytes")));
        }
        let fields = requested_schema.properties.len();
        if fields == 0 || fields > MAX_FIELDS {
            return Err(refused(&format!("a form has 1 to {MAX_FIELDS} fields")));
        }
        let order = requested_schema.property_order.clone();
        let order = order.unwrap_or_else(|| requested_schema.properties.keys().cloned().collect());
        let schema = serde_json::to_value(requested_schema)
            .map_err(|error| refused(&format!("`requestedSchema` cannot be read: {error}")))?;
        if schema.to_string().len() > MAX_SCHEMA {
            return Err(refused(&format!(
                "`requestedSchema` may have {MAX_SCHEMA} bytes"
            )));
        }
        compiled(&schema).map_err(|reason| refused(&reason))?;
        Ok(Self {
            message,
            schema,
            order,
        })
    }
}

fn compiled(schema: &Value) -> Result<Schema, String> {
    let compiled = Schema::compile(schema, Formats::Checked);
    compiled.map_err(|error| format!("`requestedSchema` is not valid: {error}"))
}

/// Escapes a name for a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(params: &Value) -> Result<Form, ErrorData> {
        let schema = serde_json::from_value(params["requestedSchema"].clone()).unwrap();
        Form::read(params["message"].as_str().unwrap().to_owned(), &schema)
    }

    fn form() -> Value {
        json!({
            "message": "Who are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "zip": {"type": "string", "minLength": 2, "maxLength": 5},
                    "mail": {"type": "string", "format": "email"},
                    "age": {"type": "integer", "minimum": 1, "maximum": 120},
                    "colour": {"type": "string", "oneOf": [
                        {"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"},
                    ]},
                    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                    "sure": {"type": "boolean", "default": true},
                },
                "required": ["zip"],
            },
        })
    }

    #[test]
    fn a_form_keeps_the_order_of_its_fields() {
        let text = r#"{"message": "Who are you?", "requestedSchema": {"type": "object",
            "properties": {"zip": {"type": "string"}, "age": {"type": "integer"}}}}"#;
        let params: rmcp::model::ElicitRequestParams = serde_json::from_str(text).unwrap();
        let rmcp::model::ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = params
        else {
            panic!("it is a form");
        };
        let form = Form::read(message, &requested_schema).unwrap();
        assert_eq!(form.order, ["zip", "age"]);
        assert_eq!(form.message, "Who are you?");
    }

    #[test]
    fn an_answer_is_checked_field_by_field() {
        let form = read(&form()).unwrap();
        let check = |content: Value, expected: Option<&str>| {
            let problem = Form::problem_with(&form.schema, &content);
            match (problem, expected) {
                (None, None) => {}
                (Some(problem), Some(expected)) if problem.contains(expected) => {}
                (problem, expected) => panic!("{content}: {problem:?}, not {expected:?}"),
            }
        };
        check(json!({"zip": "123"}), None);
        let all = json!({
            "zip": "12", "mail": "a@b.example", "age": 7, "colour": "r", "tags": ["a"], "sure": false,
        });
        check(all, None);
        check(json!({}), Some("`zip`: a value is needed"));
        check(json!({"zip": "1"}), Some("`zip`"));
        check(json!({"zip": 12}), Some("`zip`"));
        check(json!({"zip": "12", "mail": "no"}), Some("`mail`"));
        check(json!({"zip": "12", "age": 0.5}), Some("`age`"));
        check(json!({"zip": "12", "age": 121}), Some("`age`"));
        check(json!({"zip": "12", "colour": "green"}), Some("`colour`"));
        check(json!({"zip": "12", "tags": ["c"]}), Some("`tags`: "));
        check(json!({"zip": "12", "more": 1}), Some("`more`"));
        check(json!(["zip"]), Some("object"));
        let long = "x".repeat(MAX_CONTENT);
        check(json!({"zip": long}), Some("bytes"));
    }

    #[test]
    fn what_nobody_can_read_is_refused() {
        let check = |params: Value, expected: &str| {
            let refusal = read(&params).unwrap_err();
            assert!(refusal.message.contains(expected), "{}", refusal.message);
        };
        let mut long = form();
        long["message"] = "x".repeat(1024 * 1024).into();
        check(long, "`message` may have");
        let mut none = form();
        none["requestedSchema"]["properties"] = json!({});
        none["requestedSchema"]["required"] = json!([]);
        check(none, "fields");
    }
}
