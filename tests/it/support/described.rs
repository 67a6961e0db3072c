//! Every event that a test gets is held against the description of the live doors: an argument that
//! `docs/asyncapi.json` does not have fails the test that got it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/asyncapi.json");
    let mut described: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for schema in described["components"]["schemas"]
        .as_object_mut()
        .unwrap()
        .values_mut()
    {
        close(schema);
    }
    described
});

/// The validators of events, by name.
static KNOWN: LazyLock<Mutex<HashMap<String, &'static Validator>>> = LazyLock::new(Mutex::default);

/// Clients have to accept more than what is described, and a test does not.
fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if object.contains_key("properties") && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
}

fn validator(name: &str) -> &'static Validator {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return found;
    }
    let messages = DESCRIPTION["components"]["messages"].as_object().unwrap();
    let is_event = |key: &str| !key.starts_with("command_");
    let message = messages
        .iter()
        .find(|(key, message)| is_event(key) && message["name"] == name);
    let (_, message) = message.unwrap_or_else(|| panic!("`{name}` is not described"));
    let root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "allOf": [message["payload"]],
        "components": DESCRIPTION["components"],
    });
    let compiled = Box::leak(Box::new(jsonschema::validator_for(&root).unwrap()));
    known.insert(name.to_owned(), compiled);
    compiled
}

/// Panics where an event is not as the description says.
#[track_caller]
pub(super) fn check(name: &str, args: &[Value]) {
    let args = Value::Array(args.to_vec());
    let errors = validator(name).iter_errors(&args);
    let wrong: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "`{name}`: {wrong:?} in {args}");
}
