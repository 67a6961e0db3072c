//! The form that a server wants filled in (`elicitation/create`): what can be asked, and whether an
//! answer fits.

use rmcp::ErrorData;
use rmcp::model::ElicitRequestParams;
use serde_json::Value;

/// The longest words of a question, in bytes.
const MAX_MESSAGE: usize = 16 * 1024;
/// The largest form, in bytes of JSON.
const MAX_SCHEMA: usize = 64 * 1024;
/// Fields of a form.
const MAX_FIELDS: usize = 64;
/// The largest answer, in bytes of JSON.
const MAX_CONTENT: usize = 64 * 1024;

/// A form as a server wants it filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The server's words.
    pub message: String,
    /// JSON Schema of an object with flat fields.
    pub schema: Value,
    /// The names of its fields in the server's order, which the schema does not keep.
    pub order: Vec<String>,
}

impl Form {
    /// What is wrong with an answer, naming the field; `None` if it fits.
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
            return Some(format!("the form has no field `{name}`"));
        }
        let validator = match validator(schema) {
            Ok(validator) => validator,
            Err(reason) => return Some(reason),
        };
        let error = validator.iter_errors(content).next()?;
        let at = error.instance_path().to_string();
        let place = match at.strip_prefix('/') {
            Some(field) => format!("`{field}`: "),
            None => String::new(),
        };
        Some(format!("{place}{error}"))
    }

    /// Reads what a server asks; the refusal tells the server what is wrong.
    pub(super) fn read(asked: ElicitRequestParams) -> Result<Self, ErrorData> {
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = asked
        else {
            return Err(refused("only forms can be asked here (`mode: \"form\"`)"));
        };
        if message.len() > MAX_MESSAGE {
            return Err(refused(&format!("`message` may have {MAX_MESSAGE} bytes")));
        }
        let fields = requested_schema.properties.len();
        if fields == 0 || fields > MAX_FIELDS {
            return Err(refused(&format!("a form has 1 to {MAX_FIELDS} fields")));
        }
        let order = requested_schema.property_order.clone();
        let order = order.unwrap_or_else(|| requested_schema.properties.keys().cloned().collect());
        let schema = serde_json::to_value(&requested_schema)
            .map_err(|error| refused(&format!("`requestedSchema` cannot be read: {error}")))?;
        if schema.to_string().len() > MAX_SCHEMA {
            return Err(refused(&format!(
                "`requestedSchema` may have {MAX_SCHEMA} bytes"
            )));
        }
        validator(&schema).map_err(|reason| refused(&reason))?;
        Ok(Self {
            message,
            schema,
            order,
        })
    }
}

fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().should_validate_formats(true);
    let built = options.build(schema);
    built.map_err(|error| format!("`requestedSchema` is not valid: {error}"))
}

pub(super) fn refused(reason: &str) -> ErrorData {
    ErrorData::invalid_params(reason.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(params: Value) -> ElicitRequestParams {
        serde_json::from_value(params).unwrap()
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
        let form = Form::read(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(form.order, ["zip", "age"]);
        assert_eq!(form.message, "Who are you?");
    }

    #[test]
    fn an_answer_is_checked_field_by_field() {
        let form = Form::read(asked(form())).unwrap();
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
        check(json!({}), Some("zip"));
        check(json!({"zip": "1"}), Some("`zip`"));
        check(json!({"zip": 12}), Some("`zip`"));
        check(json!({"zip": "12", "mail": "no"}), Some("`mail`"));
        check(json!({"zip": "12", "age": 0.5}), Some("`age`"));
        check(json!({"zip": "12", "age": 121}), Some("`age`"));
        check(json!({"zip": "12", "colour": "green"}), Some("`colour`"));
        check(json!({"zip": "12", "tags": ["c"]}), Some("`tags"));
        check(json!({"zip": "12", "more": 1}), Some("`more`"));
        check(json!(["zip"]), Some("object"));
        let long = "x".repeat(MAX_CONTENT);
        check(json!({"zip": long}), Some("bytes"));
    }

    #[test]
    fn what_nobody_can_read_is_refused() {
        let check = |params: Value, expected: &str| {
            let refusal = Form::read(asked(params)).unwrap_err();
            assert!(refusal.message.contains(expected), "{}", refusal.message);
        };
        let mut long = form();
        long["message"] = "x".repeat(1024 * 1024).into();
        check(long, "`message` may have");
        let mut none = form();
        none["requestedSchema"]["properties"] = json!({});
        none["requestedSchema"]["required"] = json!([]);
        check(none, "fields");
        let link = json!({
            "mode": "url", "message": "Go", "url": "https://a.example", "elicitationId": "1",
        });
        check(link, "only forms");
    }
}
