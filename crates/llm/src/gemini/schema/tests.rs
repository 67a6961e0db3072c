//! Tables for this file.

use serde_json::{Value, json};

use super::lower;

/// Checks the converted schema of one argument.
fn check(schema: &Value, expected: &Value) {
    let whole = json!({"type": "object", "properties": {"a": schema}});
    let lowered = lower(&whole).unwrap();
    assert_eq!(&lowered["properties"]["a"], expected, "{schema}");
    assert_taken(&lowered);
}

/// Asserts that a schema has only what Gemini's reference allows.
pub(in crate::gemini) fn assert_taken(schema: &Value) {
    const KNOWN: &[&str] = &[
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "anyOf",
    ];
    let object = schema.as_object().unwrap();
    for name in object.keys() {
        assert!(KNOWN.contains(&name.as_str()), "{name} in {schema}");
    }
    if let Some(variants) = object.get("anyOf") {
        assert_eq!(object.len(), 1, "{schema}");
        variants.as_array().unwrap().iter().for_each(assert_taken);
        return;
    }
    let kind = object["type"].as_str().unwrap();
    assert!(["object", "array", "string", "integer", "number", "boolean"].contains(&kind));
    if let Some(choices) = object.get("enum") {
        assert!(kind == "string" && choices.as_array().unwrap().iter().all(Value::is_string));
    }
    assert_eq!(kind == "array", object.contains_key("items"), "{schema}");
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        assert!(!properties.is_empty(), "{schema}");
        properties.values().for_each(assert_taken);
    }
    object.get("items").into_iter().for_each(assert_taken);
}

#[test]
fn plain_types_keep_what_gemini_knows_and_say_the_rest() {
    check(
        &json!({"type": "string", "description": "A path"}),
        &json!({"type": "string", "description": "A path"}),
    );
    check(
        &json!({"type": "string", "format": "uri", "minLength": 1, "pattern": "^h", "$comment": "x"}),
        &json!({"type": "string", "minLength": 1, "pattern": "^h", "description": "(Format: uri)"}),
    );
    check(
        &json!({"type": "string", "format": "date-time"}),
        &json!({"type": "string", "format": "date-time"}),
    );
    check(
        &json!({"type": "integer", "minimum": 0, "exclusiveMaximum": 9, "default": 3, "description": "How many"}),
        &json!({"type": "integer", "minimum": 0, "description": "How many (default: 3; exclusiveMaximum: 9)"}),
    );
    check(
        &json!({"type": "number", "format": "double"}),
        &json!({"type": "number", "format": "double"}),
    );
    check(
        &json!({"type": "boolean", "title": "On"}),
        &json!({"type": "boolean", "description": "On"}),
    );
    check(
        &json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": true}),
        &json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "description": "(uniqueItems: true)"}),
    );
    check(
        &json!({"type": "array"}),
        &json!({"type": "array", "items": {"type": "string"}}),
    );
}

#[test]
fn choices_are_texts_or_words() {
    check(
        &json!({"enum": ["a", "b"]}),
        &json!({"type": "string", "enum": ["a", "b"]}),
    );
    check(
        &json!({"const": "a"}),
        &json!({"type": "string", "enum": ["a"]}),
    );
    check(
        &json!({"type": "integer", "enum": [1, 2]}),
        &json!({"type": "integer", "description": "(One of: [1,2])"}),
    );
    check(
        &json!({"type": "boolean", "const": true}),
        &json!({"type": "boolean", "description": "(Always true)"}),
    );
    check(
        &json!({"type": "string", "enum": ["", "a"]}),
        &json!({"type": "string", "description": "(One of: [\"\",\"a\"])"}),
    );
    check(
        &json!({"type": ["string", "null"], "enum": ["a", null]}),
        &json!({"type": "string", "enum": ["a"], "nullable": true}),
    );
}

#[test]
fn unions_have_one_type_each() {
    check(
        &json!({"type": ["string", "null"]}),
        &json!({"type": "string", "nullable": true}),
    );
    check(
        &json!({"type": ["string", "integer"], "description": "d"}),
        &json!({"anyOf": [{"type": "string", "description": "d"}, {"type": "integer", "description": "d"}]}),
    );
    check(
        &json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d", "default": null}),
        &json!({"type": "string", "nullable": true, "description": "d (default: null)"}),
    );
    check(
        &json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}], "description": "d"}),
        &json!({"anyOf": [{"type": "string", "description": "d"}, {"type": "array", "items": {"type": "string"}}]}),
    );
    check(
        &json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "boolean"}]}),
        &json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}),
    );
    let free = json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]});
    check(&json!({}), &free);
    check(&json!(true), &free);
    check(&json!({"type": "file"}), &free);
}

#[test]
fn objects_lose_what_gemini_refuses_and_nothing_else() {
    check(
        &json!({"type": "object", "additionalProperties": false, "required": ["b", "gone"], "properties": {"b": {"type": "string"}, "": {}}}),
        &json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}),
    );
    check(
        &json!({"type": "object", "additionalProperties": {"type": "string"}, "description": "Headers"}),
        &json!({"type": "object", "description": "Headers (Any keys, with values: {\"type\":\"string\"})"}),
    );
    check(
        &json!({"type": "object"}),
        &json!({"type": "object", "description": "(Any keys)"}),
    );
    check(
        &json!({"properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}),
        &json!({"type": "object", "properties": {"b": {"type": "string"}},
            "description": "(One of: [{\"required\":[\"b\"]},{\"required\":[\"c\"]}])"}),
    );
    check(
        &json!({"allOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}, {"properties": {"c": {"type": "boolean"}}, "required": ["c"]}]}),
        &json!({"type": "object", "required": ["b", "c"], "properties": {"b": {"type": "string"}, "c": {"type": "boolean"}}}),
    );
}

#[test]
fn references_stand_where_they_pointed() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {"$ref": "#/$defs/P", "description": "mine"}, "b": {"$ref": "#/$defs/P"}, "c": {"$ref": "#/gone"}},
        "$defs": {"P": {"type": "string", "description": "theirs"}},
    });
    let lowered = lower(&schema).unwrap();
    assert_taken(&lowered);
    assert_eq!(
        lowered["properties"]["a"],
        json!({"type": "string", "description": "mine"})
    );
    assert_eq!(lowered["properties"]["b"]["description"], "theirs");
    assert!(lowered["properties"]["c"]["anyOf"].is_array());

    let tree = json!({"$ref": "#/definitions/N", "definitions": {"N": {"type": "object", "properties": {
        "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/definitions/N"}}}}}});
    let lowered = lower(&tree).unwrap();
    assert_taken(&lowered);
    assert_eq!(lowered["properties"]["children"]["items"]["type"], "object");
}

#[test]
fn arguments_are_one_object_or_none() {
    for schema in [
        json!(null),
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!([]),
    ] {
        assert_eq!(lower(&schema), None, "{schema}");
    }
    let either = json!({"description": "d", "oneOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}]});
    let expected = json!({"type": "object", "description": "d", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(lower(&either), Some(expected));
}

#[test]
fn depth_and_number_have_an_end() {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert_taken(&lower(&deep).unwrap());
    // Each of twenty definitions refers to the next one twice: expanded, that is a million places.
    let definitions: serde_json::Map<String, Value> = (0..20)
        .map(|at| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            let two = json!({"type": "object", "properties": {"x": next, "y": next}});
            (format!("d{at}"), two)
        })
        .collect();
    let wide = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let lowered = lower(&wide).unwrap();
    assert_taken(&lowered);
    assert!(lowered.to_string().len() < 400_000);
    let circle = json!({"properties": {"a": {"allOf": [{"$ref": "#/$defs/c"}]}}, "$defs": {"c": {"allOf": [{"$ref": "#/$defs/c"}]}}});
    assert_taken(&lower(&circle).unwrap());
}
