//! Decides whether a schema can be marked `strict`, so that the vendor makes the model follow it exactly. The
//! vendor supports only a subset of JSON Schema, in which every object requires all of its properties and
//! allows no others. A schema whose meaning would have to change is not marked. Pure.

use serde_json::{Map, Value, json};

/// The most levels of objects and lists below the top.
const MOST_LEVELS: usize = 9;
/// The most properties of all objects together.
const MOST_PROPERTIES: usize = 5_000;
/// The most values of all `enum` lists together.
const MOST_CHOICES: usize = 1_000;
/// The most bytes of all names and `enum` values together.
const MOST_BYTES: usize = 120_000;

/// Keywords that strict schemas may have and that are sent unchanged.
const PLAIN: &[&str] = &[
    "$ref",
    "const",
    "description",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "title",
    "type",
];
/// Text formats that the vendor supports.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];

/// The schema in the vendor's strict form; `None` if that would change its meaning.
pub(super) fn made_strict(schema: &Value) -> Option<Value> {
    let mut object = schema.as_object()?.clone();
    // The vendor ignores the version of JSON Schema.
    object.remove("$schema");
    if object.get("type") != Some(&json!("object")) || object.contains_key("anyOf") {
        return None;
    }
    let mut schema = Value::Object(object);
    let mut size = Size::default();
    (is_made(&mut schema, 0, &mut size) && size.fits()).then_some(schema)
}

#[derive(Default)]
struct Size {
    properties: usize,
    choices: usize,
    bytes: usize,
}

impl Size {
    fn fits(&self) -> bool {
        self.properties <= MOST_PROPERTIES
            && self.choices <= MOST_CHOICES
            && self.bytes <= MOST_BYTES
    }
}

fn is_made(schema: &mut Value, level: usize, size: &mut Size) -> bool {
    let Value::Object(schema) = schema else {
        return false;
    };
    // A schema without any of these keywords allows any value, which strict mode cannot express.
    let says = ["type", "anyOf", "$ref", "enum", "const"];
    if level > MOST_LEVELS || !says.iter().any(|word| schema.contains_key(*word)) {
        return false;
    }
    if may_be_object(schema) && !is_closed(schema, size) {
        return false;
    }
    schema
        .iter_mut()
        .all(|(word, value)| is_part_made(word, value, level, size))
}

fn is_part_made(word: &str, value: &mut Value, level: usize, size: &mut Size) -> bool {
    match word {
        "properties" | "$defs" | "definitions" => value.as_object_mut().is_some_and(|parts| {
            parts.iter_mut().all(|(name, part)| {
                size.bytes += name.len();
                is_made(part, level + 1, size)
            })
        }),
        "items" => is_made(value, level + 1, size),
        "anyOf" => value
            .as_array_mut()
            .is_some_and(|parts| parts.iter_mut().all(|part| is_made(part, level, size))),
        "enum" => value.as_array().is_some_and(|choices| {
            size.choices += choices.len();
            let texts = choices.iter().filter_map(Value::as_str);
            size.bytes += texts.map(str::len).sum::<usize>();
            !choices.is_empty()
        }),
        "format" => value
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format)),
        "required" | "additionalProperties" => true,
        word => PLAIN.contains(&word),
    }
}

fn may_be_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            schema.contains_key("properties")
        }
    }
}

/// Returns true if an object requires all of its properties and allows no others. An object without
/// properties may omit `required`; the vendor expects the keyword, so it is added.
fn is_closed(schema: &mut Map<String, Value>, size: &mut Size) -> bool {
    if schema.get("additionalProperties") != Some(&json!(false)) {
        return false;
    }
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return false;
    };
    size.properties += properties.len();
    if properties.is_empty() {
        schema.entry("required").or_insert_with(|| json!([]));
    }
    let (Some(Value::Object(properties)), Some(Value::Array(required))) =
        (schema.get("properties"), schema.get("required"))
    else {
        return false;
    };
    required.len() == properties.len()
        && properties
            .keys()
            .all(|name| required.iter().any(|required| required == name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::made_strict;

    /// A closed object with one property of the given schema.
    fn holding(schema: &Value) -> Value {
        json!({"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": false})
    }

    #[test]
    fn a_schema_that_says_all_stays_as_it_is() {
        for part in [
            json!({"type": "string", "description": "d", "pattern": "^x", "format": "uuid"}),
            json!({"type": ["integer", "null"], "minimum": 1}),
            json!({"type": "array", "items": {"enum": ["x", 1]}, "maxItems": 3}),
            json!({"anyOf": [{"type": "string"}, holding(&json!({"const": 1}))]}),
            json!({"$ref": "#/$defs/x"}),
            holding(&json!({"type": "boolean"})),
        ] {
            let schema = holding(&part);
            assert_eq!(made_strict(&schema), Some(schema), "{part}");
        }
    }

    #[test]
    fn what_changes_no_meaning_is_mended() {
        let empty = json!({"$schema": "x", "type": "object", "properties": {}, "additionalProperties": false});
        let strict = json!({"type": "object", "properties": {}, "additionalProperties": false, "required": []});
        assert_eq!(made_strict(&empty), Some(strict));
    }

    #[test]
    fn a_schema_that_would_mean_something_else_is_not_strict() {
        let text = json!({"type": "string"});
        let whole = holding(&text);
        let without = |field: &str| {
            let mut schema = whole.clone();
            schema.as_object_mut().unwrap().remove(field);
            schema
        };
        for schema in [
            without("required"),
            without("additionalProperties"),
            without("type"),
            json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["a"], "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "string"}),
            json!(true),
        ] {
            assert_eq!(made_strict(&schema), None, "{schema}");
        }
        for part in [
            json!(true),
            json!({}),
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string", "default": "x"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"b": text}, "required": ["b"]}),
            json!({"oneOf": [text]}),
            json!({"allOf": [text]}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"enum": []}),
        ] {
            assert_eq!(made_strict(&holding(&part)), None, "{part}");
        }
        let deep = (0..20).fold(text.clone(), |schema, _| holding(&schema));
        assert_eq!(made_strict(&deep), None);
        let choices: Vec<Value> = (0..1_001).map(|n| json!(n)).collect();
        assert_eq!(made_strict(&holding(&json!({ "enum": choices }))), None);
    }
}
