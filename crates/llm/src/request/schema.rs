//! Lowers input schemas of tools to what vendors take. A vendor that refuses one schema refuses the whole
//! request, so one tool would end every turn. What a schema loses is told in its description. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The deepest nesting that is looked into; deeper values stay as they are.
const MAX_DEPTH: usize = 64;
/// The most bytes of a lost part that are told.
const MAX_TOLD: usize = 1_000;
/// The longest name of a property at Anthropic, in bytes.
const MAX_KEY: usize = 64;

/// Combinations and conditions, which vendors refuse at the top of a schema.
const COMBINED: [&str; 8] = [
    "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum",
];

/// The restrictions that a vendor puts on schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Names of properties are letters, digits, `_`, `.` and `-`.
    Anthropic,
    /// Each array says what it holds.
    OpenAi,
}

/// Returns the schema in a form that the vendor takes.
pub(crate) fn lowered(schema: Cow<'_, Value>, dialect: Dialect) -> Cow<'_, Value> {
    let is_combined = COMBINED.iter().any(|word| schema.get(word).is_some());
    if !is_combined && is_fit(&schema, dialect, 0) {
        return schema;
    }
    let mut schema = schema.into_owned();
    if let Value::Object(root) = &mut schema {
        join_top(root);
    }
    fit(&mut schema, dialect, 0);
    Cow::Owned(schema)
}

/// Joins the alternatives at the top into one object: each of their properties may be given, and only what all
/// of them require is required.
fn join_top(root: &mut Map<String, Value>) {
    let mut lost = Map::new();
    for word in COMBINED {
        if let Some(value) = root.remove(word) {
            lost.insert(word.to_owned(), value);
        }
    }
    if lost.is_empty() {
        return;
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        let Some(Value::Array(parts)) = lost.get(word) else {
            continue;
        };
        let parts: Vec<&Map<String, Value>> = parts.iter().filter_map(Value::as_object).collect();
        for part in &parts {
            add_properties(root, part);
        }
        let required: Vec<&Value> = parts
            .iter()
            .filter_map(|part| part.get("required").and_then(Value::as_array))
            .flatten()
            .collect();
        let is_in = |name: &Value, part: &Map<String, Value>| {
            let names = part.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.contains(name))
        };
        let common = required
            .iter()
            .filter(|name| word == "allOf" || parts.iter().all(|part| is_in(name, part)));
        let common: Vec<Value> = common.map(|name| (*name).clone()).collect();
        require(root, common);
    }
    for word in ["then", "else"] {
        if let Some(Value::Object(part)) = lost.get(word) {
            add_properties(root, part);
        }
    }
    tell(
        root,
        "The arguments also have to satisfy",
        &Value::Object(lost),
    );
}

fn add_properties(root: &mut Map<String, Value>, part: &Map<String, Value>) {
    let Some(Value::Object(more)) = part.get("properties") else {
        return;
    };
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else {
        return;
    };
    for (name, schema) in more {
        properties.entry(name).or_insert_with(|| schema.clone());
    }
}

fn require(root: &mut Map<String, Value>, names: Vec<Value>) {
    if names.is_empty() {
        return;
    }
    let required = root.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in names {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

/// Adds words to the description of a schema.
fn tell(schema: &mut Map<String, Value>, words: &str, what: &Value) {
    let what = what.to_string();
    let what = what
        .get(..what.floor_char_boundary(MAX_TOLD))
        .unwrap_or_default();
    let before = schema.get("description").and_then(Value::as_str);
    let before = before.map_or(String::new(), |before| format!("{before}\n"));
    let told = format!("{before}{words}: {what}");
    schema.insert("description".to_owned(), told.into());
}

/// Returns true if the vendor takes a schema, apart from its top.
fn is_fit(schema: &Value, dialect: Dialect, depth: usize) -> bool {
    let Value::Object(schema) = schema else {
        return true;
    };
    if depth > MAX_DEPTH {
        return true;
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let is_fit = |(name, value): (&String, &Value)| {
            is_schema(value) && is_name(name, dialect) && is_fit(value, dialect, depth + 1)
        };
        if !properties.iter().all(is_fit) {
            return false;
        }
    }
    !lacks_items(schema, dialect) && parts(schema).all(|part| is_fit(part, dialect, depth + 1))
}

fn fit(schema: &mut Value, dialect: Dialect, depth: usize) {
    let Value::Object(schema) = schema else {
        return;
    };
    if depth > MAX_DEPTH {
        return;
    }
    let mut left_out = Map::new();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, value| {
            let is_kept = is_name(name, dialect) || !is_schema(value);
            if !is_kept {
                left_out.insert(name.clone(), value.clone());
            }
            // A list of names that slipped in among the properties is no property.
            is_kept && is_schema(value)
        });
        for value in properties.values_mut() {
            fit(value, dialect, depth + 1);
        }
        let names: Vec<String> = properties.keys().cloned().collect();
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            let is_there = |name: &Value| {
                name.as_str()
                    .is_some_and(|it| names.iter().any(|n| n == it))
            };
            let is_left_out =
                |name: &Value| name.as_str().is_some_and(|it| left_out.contains_key(it));
            required.retain(|name| is_there(name) || !is_left_out(name));
        }
    }
    if !left_out.is_empty() {
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.remove("additionalProperties");
        }
        tell(
            schema,
            "It also takes these properties",
            &Value::Object(left_out),
        );
    }
    if lacks_items(schema, dialect) {
        schema.insert("items".to_owned(), json!({}));
    }
    for word in ["items", "additionalProperties"] {
        if let Some(part) = schema.get_mut(word) {
            fit(part, dialect, depth + 1);
        }
    }
    for word in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(all)) = schema.get_mut(word) {
            for part in all {
                fit(part, dialect, depth + 1);
            }
        }
    }
    for word in ["$defs", "definitions"] {
        if let Some(Value::Object(all)) = schema.get_mut(word) {
            for part in all.values_mut() {
                fit(part, dialect, depth + 1);
            }
        }
    }
}

/// Returns the schemas inside of a schema, apart from its properties.
fn parts(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let single = ["items", "additionalProperties"].into_iter();
    let single = single.filter_map(move |word| schema.get(word));
    let lists = ["oneOf", "anyOf", "allOf", "prefixItems"].into_iter();
    let lists = lists
        .filter_map(move |word| schema.get(word)?.as_array())
        .flatten();
    let named = ["$defs", "definitions"].into_iter();
    let named = named.filter_map(move |word| schema.get(word)?.as_object());
    single.chain(lists).chain(named.flat_map(Map::values))
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_name(name: &str, dialect: Dialect) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_plain = !name.is_empty() && name.len() <= MAX_KEY && name.bytes().all(is_plain);
    dialect != Dialect::Anthropic || is_plain
}

fn lacks_items(schema: &Map<String, Value>, dialect: Dialect) -> bool {
    let is_array = match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    let has_items = schema.contains_key("items") || schema.contains_key("prefixItems");
    dialect == Dialect::OpenAi && is_array && !has_items
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::{Value, json};

    use super::{Dialect, lowered};

    /// Checks a schema at both vendors, without its description.
    fn check(schema: &Value, anthropic: &Value, openai: &Value) {
        for (dialect, expected) in [(Dialect::Anthropic, anthropic), (Dialect::OpenAi, openai)] {
            let mut lowered = lowered(Cow::Borrowed(schema), dialect).into_owned();
            lowered.as_object_mut().unwrap().remove("description");
            assert_eq!(lowered, *expected, "{dialect:?} {schema}");
        }
    }

    #[test]
    fn what_a_vendor_takes_stays_as_it_is() {
        for schema in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": true}, "additionalProperties": false, "$schema": "x"}),
        ] {
            for dialect in [Dialect::Anthropic, Dialect::OpenAi] {
                let lowered = lowered(Cow::Borrowed(&schema), dialect);
                assert!(matches!(lowered, Cow::Borrowed(_)), "{schema}");
            }
        }
    }

    #[test]
    fn one_construct_that_is_refused_is_lowered() {
        let text = json!({"type": "string"});
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        // Alternatives and conditions at the top.
        for (word, parts) in [
            (
                "oneOf",
                json!([{"required": ["id"]}, {"required": ["name"]}]),
            ),
            (
                "anyOf",
                json!([{"required": ["id"]}, {"required": ["name"]}]),
            ),
            (
                "allOf",
                json!([{"if": {"properties": {"id": {"const": "a"}}}, "then": {"required": ["name"]}}]),
            ),
            ("not", json!({"required": ["id", "name"]})),
            ("if", json!({"required": ["id"]})),
            ("enum", json!([{}])),
        ] {
            let mut schema = object(json!({"id": text, "name": text}));
            schema[word] = parts;
            let expected = object(json!({"id": text, "name": text}));
            check(&schema, &expected, &expected);
        }
        let schema = json!({"type": "object", "oneOf": [
            {"properties": {"kind": text, "a": text}, "required": ["kind", "a"]},
            {"properties": {"kind": text, "b": text}, "required": ["kind", "b"]},
        ]});
        let mut expected = object(json!({"kind": text, "a": text, "b": text}));
        expected["required"] = json!(["kind"]);
        check(&schema, &expected, &expected);
        let schema = json!({"type": "object", "allOf": [
            {"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text}, "required": ["b"]},
        ]});
        let mut expected = object(json!({"a": text, "b": text}));
        expected["required"] = json!(["a", "b"]);
        check(&schema, &expected, &expected);
        // A list among the properties.
        let mut schema = object(json!({"coin": text}));
        schema["properties"]["required"] = json!(["coin"]);
        let expected = object(json!({"coin": text}));
        check(&schema, &expected, &expected);
        // Arrays that do not say what they hold.
        let list =
            |list: Value| object(json!({"a": {"type": "object", "properties": {"b": list}}}));
        let bare = list(json!({"type": "array"}));
        check(&bare, &bare, &list(json!({"type": "array", "items": {}})));
        let maybe = list(json!({"type": ["array", "null"]}));
        check(
            &maybe,
            &maybe,
            &list(json!({"type": ["array", "null"], "items": {}})),
        );
        // Odd names.
        let long = "x".repeat(65);
        for name in ["filter[name]", "größe", "a b", "$top", "", long.as_str()] {
            let mut schema = object(json!({"fine": text}));
            schema["properties"][name] = text.clone();
            schema["required"] = json!([name, "fine"]);
            schema["additionalProperties"] = json!(false);
            let mut expected = object(json!({"fine": text}));
            expected["required"] = json!(["fine"]);
            check(&schema, &expected, &schema);
        }
    }

    #[test]
    fn what_a_schema_loses_is_told() {
        let schema = json!({"type": "object", "description": "Finds.", "properties": {"a b": {"type": "string"}},
            "oneOf": [{"required": ["a b"]}]});
        let lowered = lowered(Cow::Borrowed(&schema), Dialect::Anthropic);
        let told = lowered["description"].as_str().unwrap();
        assert!(
            told.starts_with("Finds.\nThe arguments also have to satisfy: {\"oneOf\""),
            "{told}"
        );
        assert!(
            told.contains("It also takes these properties: {\"a b\""),
            "{told}"
        );
    }
}
