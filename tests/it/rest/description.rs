//! Every answer that a test gets is held against the description of the REST door: a status, media
//! type or body that `docs/openapi.json` does not have fails the test that got it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use super::Answer;

/// The description as clients read it.
fn description() -> &'static Value {
    static DESCRIPTION: OnceLock<Value> = OnceLock::new();
    DESCRIPTION.get_or_init(|| serde_json::from_str(&sepal::gateway::openapi_json()).unwrap())
}

/// An answer as it is described: in place, or once for many operations.
fn resolved(response: &'static Value) -> &'static Value {
    let pointer = response["$ref"]
        .as_str()
        .and_then(|at| at.strip_prefix('#'));
    pointer.map_or(response, |at| description().pointer(at).unwrap())
}

/// The described operation at an address; `None` where there is none.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap_or_default();
    let fits = |template: &str| {
        let (have, want): (Vec<&str>, Vec<&str>) =
            (path.split('/').collect(), template.split('/').collect());
        let mut parts = have.iter().zip(&want);
        have.len() == want.len()
            && parts.all(|(have, want)| have == want || (want.starts_with('{') && !have.is_empty()))
    };
    let paths = description()["paths"].as_object()?;
    // `/api/mcp/add` is a name of its own before it is a server's.
    let exact = paths.get(path);
    let item = exact.or_else(|| paths.iter().find_map(|(at, item)| fits(at).then_some(item)))?;
    item.get(method.as_str().to_ascii_lowercase())
}

/// The validator of a schema, which is compiled once in a test run: the description is long.
fn validator(schema: &Value) -> &'static Validator {
    static KNOWN: LazyLock<Mutex<HashMap<String, &'static Validator>>> =
        LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(schema.to_string()).or_insert_with(|| {
        let root = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [schema],
            "components": description()["components"],
        });
        Box::leak(Box::new(jsonschema::validator_for(&root).unwrap()))
    })
}

/// Panics where an answer is not as the description says.
#[track_caller]
pub(super) fn check(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    let status = answer.status.to_string();
    let described = operation["responses"].get(&status).map(resolved);
    let described = described.unwrap_or_else(|| {
        panic!(
            "docs/openapi.json has no answer {status} to {method} {path}: {}",
            answer.text
        )
    });
    let Some(content) = described.get("content").and_then(Value::as_object) else {
        assert_eq!(answer.text, "", "{method} {path} {status} has a body");
        return;
    };
    let kind = answer.header("content-type").split(';').next();
    let kind = kind.unwrap_or_default();
    let schema = content.get(kind).map(|content| &content["schema"]);
    let schema = schema.unwrap_or_else(|| panic!("{method} {path} {status} is `{kind}`"));
    if !kind.ends_with("json") {
        return;
    }
    let body = answer.json();
    let wrong: Vec<String> = validator(schema)
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{method} {path} {status}: {wrong:?} in {body}"
    );
}

#[test]
fn every_answer_is_described_and_every_operation_can_refuse() {
    let paths = description()["paths"].as_object().unwrap();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            for (status, response) in responses {
                let text = resolved(response)["description"]
                    .as_str()
                    .unwrap_or_default();
                assert!(!text.is_empty(), "{method} {path} {status}");
            }
            let needs = |status: &str| {
                assert!(
                    responses.contains_key(status),
                    "{method} {path} lacks {status}"
                );
            };
            if operation.get("requestBody").is_some() {
                ["400", "413", "415"].into_iter().for_each(needs);
            }
            if !matches!(path.as_str(), "/healthz" | "/readyz") {
                ["403", "500", "503"].into_iter().for_each(needs);
            }
        }
    }
}
