//! Rewrites what a server declares about itself, in the handshake or when it is discovered.

use serde_json::{Map, Value, json};

use super::{object, put, simple_text, truth};

/// The revision of a server that names none: the oldest that is spoken.
const OLDEST: &str = "2024-11-05";

/// Capabilities of which only the presence matters, beside their flags.
const CAPABILITIES: [&str; 5] = ["tools", "resources", "prompts", "completions", "logging"];

/// Capabilities that hold one object for each name.
const NAMED: [&str; 2] = ["experimental", "extensions"];

/// Rewrites the answer to a handshake. A result that is no object is no handshake and stays as it is.
pub(super) fn declared(result: Value) -> Value {
    let Value::Object(mut said) = result else {
        return result;
    };
    let capabilities = capabilities(said.get("capabilities"));
    said.insert("capabilities".to_owned(), capabilities.into());
    for odd in ["instructions", "title"] {
        if said.get(odd).is_some_and(|words| !words.is_string()) {
            said.remove(odd);
        }
    }
    if said.get("_meta").is_some_and(|meta| !meta.is_object()) {
        said.remove("_meta");
    }
    // Only the answer to `server/discover` lists revisions.
    if said.contains_key("supportedVersions") {
        return Value::Object(said);
    }
    let version = said.get("protocolVersion").and_then(Value::as_str);
    let version = version.map(str::trim).filter(|version| !version.is_empty());
    let version = version.unwrap_or(OLDEST).to_owned();
    said.insert("protocolVersion".to_owned(), version.into());
    let info = info(said.get("serverInfo"));
    said.insert("serverInfo".to_owned(), info);
    Value::Object(said)
}

fn info(said: Option<&Value>) -> Value {
    let name = simple_text(said).or_else(|| simple_text(said?.get("name")));
    let version = simple_text(said.and_then(|said| said.get("version")));
    let mut info = Map::new();
    put(
        &mut info,
        "name",
        Some(name.unwrap_or_else(|| "unnamed".to_owned())),
    );
    put(&mut info, "version", Some(version.unwrap_or_default()));
    put(
        &mut info,
        "title",
        simple_text(said.and_then(|said| said.get("title"))),
    );
    Value::Object(info)
}

/// Rewrites capabilities: flags instead of objects, and a list of names instead of an object.
fn capabilities(said: Option<&Value>) -> Map<String, Value> {
    let mut said = match said {
        Some(Value::Object(said)) => said.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| Some((name.as_str()?.to_owned(), json!({}))))
            .collect(),
        _ => Map::new(),
    };
    for name in CAPABILITIES {
        let Some(value) = said.remove(name) else {
            continue;
        };
        if value.is_null() || truth(Some(&value)) == Some(false) {
            continue;
        }
        // Some list the operations instead, or say only that they are there.
        let flags = object(Some(&value)).unwrap_or_default();
        said.insert(name.to_owned(), Value::Object(read_flags(flags)));
    }
    for name in NAMED {
        let Some(Value::Object(mut named)) = said.remove(name) else {
            continue;
        };
        named.retain(|_, settings| settings.is_object() || truth(Some(settings)) == Some(true));
        let named = named.into_iter();
        let named = named.map(|(name, settings)| {
            let settings = object(Some(&settings)).unwrap_or_default();
            (name, Value::Object(settings))
        });
        said.insert(name.to_owned(), named.collect());
    }
    said
}

fn read_flags(mut flags: Map<String, Value>) -> Map<String, Value> {
    for flag in ["listChanged", "subscribe"] {
        if let Some(value) = flags.remove(flag) {
            put(&mut flags, flag, truth(Some(&value)));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use rmcp::model::InitializeResult;
    use serde_json::{Value, json};

    use super::declared;

    fn read(said: Value) -> Value {
        let read = declared(said);
        serde_json::from_value::<InitializeResult>(read.clone()).unwrap();
        read
    }

    #[test]
    fn capabilities_are_read_in_any_form() {
        for (said, expected) in [
            (
                json!({"tools": {"listChanged": true}}),
                json!({"tools": {"listChanged": true}}),
            ),
            (
                json!({"tools": {"listChanged": "true"}}),
                json!({"tools": {"listChanged": true}}),
            ),
            (
                json!({"tools": {"listChanged": null}}),
                json!({"tools": {}}),
            ),
            (json!({"tools": true}), json!({"tools": {}})),
            (json!({"tools": "yes"}), json!({"tools": {}})),
            (
                json!({"tools": ["list", "call"], "prompts": []}),
                json!({"tools": {}, "prompts": {}}),
            ),
            (
                json!({"tools": {}, "resources": false}),
                json!({"tools": {}}),
            ),
            (
                json!({"tools": {}, "resources": null}),
                json!({"tools": {}}),
            ),
            (
                json!(["tools", "resources", 5]),
                json!({"tools": {}, "resources": {}}),
            ),
            (
                json!({"resources": {"subscribe": 1}}),
                json!({"resources": {"subscribe": true}}),
            ),
            (
                json!({"tools": {}, "experimental": []}),
                json!({"tools": {}}),
            ),
            (
                json!({"experimental": {"a": {}, "b": true, "c": null}, "extensions": "none"}),
                json!({"experimental": {"a": {}, "b": {}}}),
            ),
            (
                json!({"logging": true, "completions": null}),
                json!({"logging": {}}),
            ),
            (json!(null), json!({})),
            (json!(true), json!({})),
            (json!("tools"), json!({})),
        ] {
            let read = read(json!({
                "protocolVersion": "2025-06-18", "capabilities": said,
                "serverInfo": {"name": "s", "version": "1"},
            }));
            assert_eq!(read["capabilities"], expected, "{said}");
        }
    }

    #[test]
    fn a_server_that_says_little_of_itself_is_used() {
        let info = json!({"name": "s", "version": "1"});
        let unnamed = json!({"name": "unnamed", "version": ""});
        for (said, version, expected) in [
            (
                json!({"protocolVersion": "2025-06-18", "serverInfo": info}),
                "2025-06-18",
                &info,
            ),
            (
                json!({"protocolVersion": "2025-06-18"}),
                "2025-06-18",
                &unnamed,
            ),
            (json!({"serverInfo": info}), "2024-11-05", &info),
            (
                json!({"protocolVersion": 2, "serverInfo": info}),
                "2024-11-05",
                &info,
            ),
            (
                json!({"protocolVersion": "", "serverInfo": info}),
                "2024-11-05",
                &info,
            ),
            (
                json!({"serverInfo": {"name": "s", "version": 1}}),
                "2024-11-05",
                &info,
            ),
            (
                json!({"serverInfo": {"name": "s"}}),
                "2024-11-05",
                &json!({"name": "s", "version": ""}),
            ),
            (
                json!({"serverInfo": "s"}),
                "2024-11-05",
                &json!({"name": "s", "version": ""}),
            ),
            (
                json!({"serverInfo": null, "instructions": ["a"], "_meta": 5}),
                "2024-11-05",
                &unnamed,
            ),
            (json!({}), "2024-11-05", &unnamed),
        ] {
            let read = read(said.clone());
            assert_eq!(
                (&read["protocolVersion"], &read["serverInfo"]),
                (&json!(version), expected),
                "{said}"
            );
        }
    }
}
