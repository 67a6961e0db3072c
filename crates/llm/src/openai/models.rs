//! Reads the answer to `GET /models`, entry by entry: one odd entry hides no other.

use serde_json::{Map, Value};

use crate::ListedModel;

/// The names that servers have for the window of a model, the best first.
const WINDOWS: [&str; 6] = [
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_context_tokens",
    "max_input_tokens",
];

/// Returns the models of a list, which by the specification is inside an object; `None` if there is no list.
pub(super) fn listed(body: &[u8]) -> Option<Vec<ListedModel>> {
    let text = String::from_utf8_lossy(body);
    let list: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let entries = match list {
        Value::Array(entries) => entries,
        Value::Object(mut members) => {
            match members.remove("data").or_else(|| members.remove("models")) {
                Some(Value::Array(entries)) => entries,
                Some(Value::Null) => Vec::new(),
                _ => return None,
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    Some(entries.iter().filter_map(model).collect())
}

/// Reads an entry; `None` if it has no id.
fn model(entry: &Value) -> Option<ListedModel> {
    let Value::Object(entry) = entry else {
        // Some list only the ids.
        let id = text(Some(entry))?;
        return Some(ListedModel {
            id,
            ..ListedModel::default()
        });
    };
    let id = text(entry.get("id")).or_else(|| text(entry.get("name")))?;
    Some(ListedModel {
        id,
        name: text(entry.get("name")),
        context_window: window(entry),
        ..ListedModel::default()
    })
}

fn window(entry: &Map<String, Value>) -> Option<u64> {
    WINDOWS.iter().find_map(|name| tokens(entry.get(*name)?))
}

/// Reads a number of tokens, which some write as a text.
fn tokens(said: &Value) -> Option<u64> {
    let said = match said {
        Value::Number(number) => return number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().replace(['_', ','], ""),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    said.parse().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are checked"
)]
fn whole(number: f64) -> Option<u64> {
    (1.0..1e12).contains(&number).then_some(number as u64)
}

/// Reads a text that is not empty; a number is one too.
fn text(said: Option<&Value>) -> Option<String> {
    let text = match said? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::listed;

    #[test]
    fn one_odd_model_hides_no_other() {
        for (entry, expected) in [
            (json!({"id": "m"}), Some(("m", None))),
            (json!({"id": "m", "name": 5}), Some(("m", None))),
            (json!({"id": "m", "name": null}), Some(("m", None))),
            (json!({"id": 5}), Some(("5", None))),
            (json!({"name": "m"}), Some(("m", None))),
            (json!("m"), Some(("m", None))),
            (
                json!({"id": "m", "context_length": 8192}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "max_model_len": 8192}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "context_length": 8192, "max_model_len": 4096}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "context_length": null, "context_window": 8192}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "context_length": "8192"}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "context_length": 8192.0}),
                Some(("m", Some(8192))),
            ),
            (
                json!({"id": "m", "context_length": "large"}),
                Some(("m", None)),
            ),
            (json!({"id": "m", "context_length": -1}), Some(("m", None))),
            (json!({"object": "model"}), None),
            (json!({"id": ""}), None),
            (json!({"id": {}}), None),
            (json!(null), None),
        ] {
            let body = json!({"data": [{"id": "a"}, entry, {"id": "b"}]}).to_string();
            let found = listed(body.as_bytes()).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.id.as_str(), it.context_window))
                .collect();
            let expected = [Some(("a", None)), expected, Some(("b", None))];
            let expected: Vec<_> = expected.into_iter().flatten().collect();
            assert_eq!(found, expected, "{entry}");
        }
    }

    #[test]
    fn a_list_is_one_in_any_form() {
        let one = json!([{"id": "a"}]);
        for (body, expected) in [
            (json!({ "data": one }), Some(1)),
            (json!({ "models": one }), Some(1)),
            (one.clone(), Some(1)),
            (json!({"data": null}), Some(0)),
            (json!({"data": "none"}), None),
            (json!({}), None),
            (Value::Null, None),
        ] {
            let found = listed(body.to_string().as_bytes());
            assert_eq!(found.map(|it| it.len()), expected, "{body}");
        }
        assert_eq!(listed("\u{feff}[]".as_bytes()).map(|it| it.len()), Some(0));
    }
}
