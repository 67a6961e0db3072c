//! Tests schemas at their bounds, and the worst cases within them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Error, Formats, MAX_BYTES, MAX_DEPTH, OverBudget, Schema};

fn compile(schema: &Value) -> Result<Schema, Error> {
    Schema::compile(schema, Formats::Remarks)
}

#[track_caller]
fn refused(schema: &Value, expected: &str) {
    let error = compile(schema).expect_err("it is above a bound");
    assert!(error.to_string().contains(expected), "{error}");
}

/// `{a: {a: {a: …}}}`.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
}

#[test]
fn a_misfit_names_its_place_and_what_is_missing() {
    let schema = json!({
        "type": "object", "required": ["path"],
        "properties": { "path": { "type": "string", "pattern": "^[a-z]+$" } },
    });
    let schema = compile(&schema).unwrap();
    assert_eq!(schema.check(&json!({ "path": "abc" })), Ok(None));
    let misfit = schema.check(&json!({ "path": "A" })).unwrap().unwrap();
    assert_eq!((misfit.at.as_str(), misfit.missing), ("/path", None));
    let misfit = schema.check(&json!({})).unwrap().unwrap();
    assert_eq!(misfit.missing.as_deref(), Some("path"));
    let long = "x".repeat(100_000) + "A";
    let misfit = schema.check(&json!({ "path": long })).unwrap().unwrap();
    assert!(misfit.message.len() < 5_000);
}

#[test]
fn formats_are_conditions_only_where_they_are_asked_for() {
    let schema = json!({ "format": "email" });
    let check = |formats, valid| {
        let schema = Schema::compile(&schema, formats).unwrap();
        assert_eq!(schema.is_valid(&json!("no")), Ok(valid));
    };
    check(Formats::Remarks, true);
    check(Formats::Checked, false);
}

#[test]
fn what_is_above_a_bound_is_refused_with_the_bound() {
    refused(&json!({ "title": "x".repeat(MAX_BYTES) }), "bytes");
    let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({ "not": { "not": inner } }));
    refused(&deep, "nested");
    let many: Vec<Value> = (0..4_001).map(|_| json!({})).collect();
    refused(&json!({ "anyOf": many }), "schemas");
    let patterns: Vec<Value> = (0..257)
        .map(|n| json!({ "pattern": format!("{n}") }))
        .collect();
    refused(&json!({ "anyOf": patterns }), "patterns");
    refused(&json!({ "pattern": "x".repeat(1_025) }), "1024 bytes");
    refused(
        &json!({ "pattern": "((a{100}){100}){100}" }),
        "too large together",
    );
    refused(
        &json!({ "patternProperties": { "^(?!x)": {} } }),
        "looks around",
    );
    refused(&json!({ "pattern": r"^(a+)\1$" }), "looks around");
    refused(&json!({ "pattern": "(" }), "regex");
    let refs: Vec<Value> = (0..1_001).map(|_| json!({ "$ref": "#" })).collect();
    refused(
        &json!({ "properties": { "a": { "anyOf": refs } } }),
        "references",
    );
    for reference in [
        "https://example.com/x",
        "#/x",
        "#name",
        "other.json#/$defs/a",
        "#/enum/0",
    ] {
        let schema = json!({ "properties": { "a": { "$ref": reference } }, "enum": [{}] });
        refused(&schema, "leads to no schema");
    }
    refused(
        &json!({ "items": { "$dynamicRef": "#x" } }),
        "`$dynamicRef`",
    );
    refused(&json!({ "items": { "$id": "x" } }), "`$id`");
    refused(&json!({ "type": "nothing" }), "nothing");
}

#[test]
fn references_that_are_used_in_earnest_are_followed() {
    let tree = json!({
        "$id": "https://example.com/tree", "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object", "additionalProperties": { "$ref": "#/$defs/a%25b~1c" },
            },
            "a%b/c": { "anyOf": [{ "$ref": "#/$defs/node" }, { "$ref": "#leaf" }] },
            "leaf": { "$anchor": "leaf", "type": "integer" },
        },
    });
    let tree = compile(&tree).unwrap();
    assert_eq!(tree.is_valid(&json!({ "a": { "b": 1 } })), Ok(true));
    assert_eq!(tree.is_valid(&json!({ "a": { "b": "x" } })), Ok(false));
    assert_eq!(tree.is_valid(&nested(100)), Ok(true));
}

/// The 19 KiB schema that once blocked a gateway for seconds, and similar ones.
#[test]
fn patterns_that_would_go_back_take_no_longer_than_others() {
    let all: Vec<Value> = (0..250)
        .map(|n| json!({ "pattern": format!("^(a+)+{n}$") }))
        .collect();
    let schema = compile(&json!({ "anyOf": all })).unwrap();
    assert_eq!(schema.is_valid(&json!("a".repeat(30))), Ok(false));
    // More characters need more steps, until the evaluation exceeds its budget and is stopped.
    let heavy = compile(&json!({ "pattern": "^(a?){1000}a{1000}b$" })).unwrap();
    assert_eq!(heavy.check(&json!("a".repeat(200_000))), Err(OverBudget));
}

#[test]
fn references_that_double_each_time_are_refused() {
    let mut parts = serde_json::Map::new();
    for n in 0..40 {
        let next = format!("#/$defs/p{}", n + 1);
        let twice = json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
        parts.insert(format!("p{n}"), twice);
    }
    parts.insert("p40".to_owned(), json!({ "type": "string" }));
    refused(
        &json!({ "$ref": "#/$defs/p0", "$defs": parts }),
        "references followed",
    );
}

#[test]
fn an_evaluation_that_doubles_with_each_level_of_the_value_is_stopped() {
    let twice = json!({ "properties": { "a": { "$ref": "#" } } });
    let schema = json!({
        "anyOf": [
            { "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "required": ["b"] }] },
            { "allOf": [twice, twice, { "not": { "required": ["b"] } }] },
        ],
    });
    let schema = compile(&schema).unwrap();
    // The evaluation either ends within its steps or is stopped.
    for depth in [2, 20, 100] {
        let _ = schema.check(&nested(depth));
    }
    let schema = json!({
        "$defs": { "n": { "not": { "allOf": [
            { "properties": { "a": { "not": { "$ref": "#/$defs/n" } } } },
            { "additionalProperties": { "not": { "not": { "$ref": "#/$defs/n" } } } },
        ] } } },
        "$ref": "#/$defs/n",
    });
    let _ = compile(&schema).unwrap().check(&nested(100));
}

/// A thread of the runtime has 2 MiB of stack, and a stack overflow ends the process.
#[test]
fn the_deepest_schemas_and_values_fit_on_the_stack_of_a_thread() {
    let work = || {
        let depth = MAX_DEPTH / 2 - 2;
        let deep = (0..depth).fold(
            json!({ "$ref": "#" }),
            |inner, _| json!({ "allOf": [inner] }),
        );
        let within = json!({ "properties": { "a": deep } });
        let schema = compile(&within).unwrap();
        let _ = schema.check(&nested(120));
        // Cycles of references to the same value.
        for round in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "$ref": "#/$defs/a", "$defs": {
                "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "not": { "$ref": "#/$defs/a" } },
            } }),
            json!({ "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": { "a": { "$ref": "#/definitions/b" }, "b": { "$ref": "#/definitions/a" } },
                "properties": { "a": { "$ref": "#/definitions/a" } },
            }),
        ] {
            if let Ok(schema) = compile(&round) {
                let _ = schema.check(&nested(3));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn large_values_that_fit_are_finished() {
    let schema = json!({
        "type": "object", "properties": { "rows": { "type": "array", "items": {
            "type": "object", "required": ["name", "age"], "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "minLength": 1, "maxLength": 100 },
                "age": { "type": "integer", "minimum": 0 },
                "id": { "type": "string", "pattern": "^[0-9a-f]{8}$" },
            },
        } }, "text": { "type": "string" } },
    });
    let schema = compile(&schema).unwrap();
    let row = json!({ "name": "Ana", "age": 7, "id": "0123abcd" });
    let rows: Vec<Value> = (0..5_000).map(|_| row.clone()).collect();
    let value = json!({ "rows": rows, "text": "x".repeat(1_000_000) });
    assert_eq!(schema.check(&value), Ok(None));
}

#[test]
fn a_schema_as_large_as_it_may_be_is_compiled() {
    let mut properties = serde_json::Map::new();
    let mut name = String::new();
    for n in 0..1_200 {
        name.clear();
        write!(name, "property_{n}").unwrap();
        let part = json!({ "type": "string", "description": "What it is for, in a few words." });
        properties.insert(name.clone(), part);
    }
    let schema = compile(&json!({ "type": "object", "properties": properties })).unwrap();
    assert_eq!(schema.is_valid(&json!({ "property_7": 1 })), Ok(false));
}

#[test]
fn broken_bounds_are_told_in_words_and_without_the_value() {
    let schema = json!({ "properties": {
        "period": { "type": "string", "pattern": "^(day|week|month)$" },
        "name": { "oneOf": [{ "type": "null" }, { "type": "string", "maxLength": 3, "pattern": "^[a-z]*$" }] },
        "n": { "type": "integer", "minimum": 1, "maximum": 5 },
        "ids": { "type": "array", "minItems": 1 },
    } });
    let schema = Schema::compile(&schema, Formats::Remarks).unwrap();
    let told = |value: serde_json::Value| {
        let broken = schema.broken_bounds(&value, 8).unwrap();
        let broken = broken
            .into_iter()
            .map(|it| format!("{} {}", it.at, it.words));
        broken.collect::<Vec<_>>()
    };
    assert_eq!(
        told(json!({ "period": "day", "name": null, "n": 5, "ids": [1] })),
        [""; 0]
    );
    assert_eq!(
        told(json!({ "period": "year" })),
        ["/period is not `day`, `week` or `month`"]
    );
    assert_eq!(
        told(json!({ "name": "abcd" })),
        ["/name has more than 3 characters"]
    );
    assert_eq!(
        told(json!({ "name": "A" })),
        ["/name does not match `^[a-z]*$`"]
    );
    assert_eq!(told(json!({ "n": 6, "ids": [] })).len(), 2);
    // Wrong types and missing fields are not bounds.
    assert_eq!(told(json!({ "n": "x", "ids": null })), [""; 0]);
}
