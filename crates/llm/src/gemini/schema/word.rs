//! Converts the keywords of one value to Gemini's form, or to words if there is no such form. Pure.

use serde_json::{Map, Value, json};

/// Keywords that Gemini does not accept; they are put into the description.
const TOLD: &[&str] = &[
    "default",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "contains",
    "not",
];
/// The most characters of a value that are put into a description.
const MAX_TOLD: usize = 200;

pub(super) fn of_type(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(name))])
}

/// A value of unknown type.
pub(super) fn anything() -> Map<String, Value> {
    let types = json!([
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]);
    Map::from_iter([("anyOf".to_owned(), types)])
}

pub(super) fn is_null(schema: &Value) -> bool {
    schema.get("type") == Some(&json!("null")) || schema.get("const") == Some(&Value::Null)
}

/// The type that a schema implies without naming it.
pub(super) fn inferred(schema: &Map<String, Value>) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
    let choices = schema.get("enum").and_then(Value::as_array);
    let texts = choices.is_some_and(|choices| choices.iter().any(Value::is_string));
    if has(&["properties", "additionalProperties"]) {
        Some("object")
    } else if has(&["items", "prefixItems"]) {
        Some("array")
    } else if texts
        || schema.get("const").is_some_and(Value::is_string)
        || has(&["pattern", "minLength", "maxLength"])
    {
        Some("string")
    } else if choices.is_some_and(|choices| choices.iter().all(Value::is_number))
        || has(&["minimum", "maximum", "multipleOf"])
    {
        Some("number")
    } else {
        None
    }
}

pub(super) fn text(schema: &Map<String, Value>, told: &mut Vec<String>) -> Map<String, Value> {
    let mut lowered = of_type("string");
    let choices = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(choices)), _) => choices.clone(),
        (_, Some(only)) => vec![only.clone()],
        (_, None) => Vec::new(),
    };
    // Gemini accepts no empty text as a choice; then none of the choices can be listed.
    let is_text = |choice: &Value| choice.as_str().is_some_and(|text| !text.is_empty());
    let choices: Vec<Value> = choices.into_iter().filter(|c| !c.is_null()).collect();
    if choices.iter().all(is_text) {
        if !choices.is_empty() {
            lowered.insert("enum".to_owned(), Value::Array(choices));
        }
    } else {
        told.push(format!("One of: {}", short(&Value::Array(choices))));
    }
    keep(
        &mut lowered,
        schema,
        &["minLength", "maxLength"],
        Value::is_u64,
    );
    keep(&mut lowered, schema, &["pattern"], Value::is_string);
    format_of(&mut lowered, schema, &["date-time"], told);
    lowered
}

pub(super) fn number(
    name: &str,
    schema: &Map<String, Value>,
    told: &mut Vec<String>,
) -> Map<String, Value> {
    let mut lowered = of_type(name);
    keep(
        &mut lowered,
        schema,
        &["minimum", "maximum"],
        Value::is_number,
    );
    let known: &[&str] = if name == "integer" {
        &["int32", "int64"]
    } else {
        &["float", "double"]
    };
    format_of(&mut lowered, schema, known, told);
    lowered
}

fn format_of(
    lowered: &mut Map<String, Value>,
    schema: &Map<String, Value>,
    known: &[&str],
    told: &mut Vec<String>,
) {
    match schema.get("format").and_then(Value::as_str) {
        Some(format) if known.contains(&format) => {
            lowered.insert("format".to_owned(), json!(format));
        }
        Some(format) => told.push(format!("Format: {format}")),
        None => {}
    }
}

pub(super) fn keep(
    lowered: &mut Map<String, Value>,
    schema: &Map<String, Value>,
    names: &[&str],
    is_right: fn(&Value) -> bool,
) {
    for name in names {
        if let Some(value) = schema.get(*name).filter(|value| is_right(value)) {
            lowered.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Describes choices of a value that is not a text, because Gemini accepts only texts in `enum`.
pub(super) fn tell_choices(schema: &Map<String, Value>, told: &mut Vec<String>) {
    if let Some(choices) = schema.get("enum") {
        told.push(format!("One of: {}", short(choices)));
    }
    if let Some(only) = schema.get("const") {
        told.push(format!("Always {}", short(only)));
    }
}

pub(super) fn tell_keys(schema: &Map<String, Value>, told: &mut Vec<String>) {
    match schema.get("additionalProperties") {
        Some(Value::Object(values)) if !values.is_empty() => {
            let values = short(&Value::Object(values.clone()));
            told.push(format!("Any keys, with values: {values}"));
        }
        Some(Value::Bool(false)) => told.push("Always empty".to_owned()),
        Some(_) | None => told.push("Any keys".to_owned()),
    }
}

/// Sets the description, with the constraints that have no place in Gemini's form.
pub(super) fn describe(
    lowered: &mut Map<String, Value>,
    schema: &Map<String, Value>,
    mut told: Vec<String>,
) {
    let own = schema.get("description").or_else(|| schema.get("title"));
    let own = own.and_then(Value::as_str).unwrap_or_default().trim();
    for name in TOLD {
        if let Some(value) = schema.get(*name) {
            told.push(format!("{name}: {}", short(value)));
        }
    }
    let told = told.join("; ");
    let words = match (own, told.as_str()) {
        (own, "") => own.to_owned(),
        ("", told) => format!("({told})"),
        (own, told) => format!("{own} ({told})"),
    };
    if !words.is_empty() {
        lowered.insert("description".to_owned(), Value::String(words));
    }
}

pub(super) fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(MAX_TOLD) {
        text.truncate(at);
        text.push('…');
    }
    text
}
