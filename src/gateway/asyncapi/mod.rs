//! Builds the description of the socket and of event streams (`/api/asyncapi.json`, in the form of `AsyncAPI`
//! 3): commands are those of the command table, with the schemas of REST; events are those of `events`.

mod events;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use self::events::{EventSpec, OF_LIST, OF_SESSION};
use super::openapi;
use super::wire::{COMMANDS, CommandSpec};

/// The beginning of a reference to a schema.
const SCHEMAS: &str = "#/components/schemas/";

/// Builds the description.
fn description() -> Value {
    let rest = openapi::value();
    let mut schemas = event_schemas();
    let of_session: Vec<Value> = OF_SESSION.iter().map(event_message).collect();
    let of_list: Vec<Value> = OF_LIST.iter().map(event_message).collect();
    let commands: Vec<Value> = COMMANDS
        .iter()
        .map(|spec| command_message(&rest, spec))
        .collect();
    let messages = of_session.iter().chain(&of_list).chain(&commands);
    let mut messages: Map<String, Value> = messages
        .map(|message| (key(message), message.clone()))
        .collect();
    messages.insert("acknowledgement".to_owned(), acknowledgement());
    schemas.insert("CommandRefusal".to_owned(), command_refusal());
    for message in messages.values_mut().filter_map(Value::as_object_mut) {
        message.remove("x-key");
    }
    take_schemas(&Value::Object(messages.clone()), &rest, &mut schemas);
    let session = keys(&of_session);
    let list = keys(&of_list);
    let mut of_socket = session.clone();
    of_socket.extend(keys_of_commands());
    of_socket.push("acknowledgement".to_owned());
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Sepal",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The live doors of Sepal: Socket.IO 5 (Engine.IO 4), and the same events as \
                server-sent events. The payload of a message is the list of its arguments: over Socket.IO \
                these follow the name, in an event stream they are `data`. docs/protocol.md says more.",
            "contact": { "name": "Whoever operates this installation" },
            "license": { "name": "MIT OR Apache-2.0" },
            "tags": [{ "name": "sessions" }],
        },
        "defaultContentType": "application/json",
        "servers": {
            "socket": server("wss", "/socket.io/"),
            "http": server("https", "/"),
        },
        "channels": {
            "session": channel("/", "socket", "A session, in the namespace `/`. `auth` of the handshake is \
                `{ token?, sessionId?, lastSeq?, journalId?, assistant?, tools?, skills? }`.", &of_socket),
            "person": channel("/person", "socket", "The person's session list, in the namespace `/person`.", &list),
            "sessionStream": with_id(channel("/api/sessions/{id}/stream", "http", "A session as server-sent \
                events: `event` is the name, `id` the position, and `Last-Event-ID` resumes.", &session)),
            "listStream": channel("/api/stream", "http", "The person's session list as server-sent events.", &list),
        },
        "operations": operations(&rest, &session, &list),
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "bearerFormat": "spl_…" },
            },
        },
    })
}

/// Describes the commands, and the events that each door sends.
fn operations(rest: &Value, session: &[String], list: &[String]) -> Map<String, Value> {
    let operations = COMMANDS.iter().map(|spec| {
        let message = command_key(spec.name);
        let operation = json!({
            "action": "receive",
            "channel": { "$ref": "#/channels/session" },
            "summary": summary(rest, spec),
            "description": about(rest, spec),
            "messages": [{ "$ref": format!("#/channels/session/messages/{message}") }],
            "reply": {
                "channel": { "$ref": "#/channels/session" },
                "messages": [{ "$ref": "#/channels/session/messages/acknowledgement" }],
            },
        });
        (format!("receive_{message}"), operation)
    });
    let mut operations: Map<String, Value> = operations.collect();
    for (name, channel, keys, summary) in [
        ("send_session", "session", session, "Shows a session."),
        (
            "send_list",
            "person",
            list,
            "Tells changes of the person's session list.",
        ),
        (
            "stream_session",
            "sessionStream",
            session,
            "Shows a session as server-sent events.",
        ),
        (
            "stream_sessions",
            "listStream",
            list,
            "Tells changes of the person's session list as server-sent events.",
        ),
    ] {
        let at = |key: &String| json!({ "$ref": format!("#/channels/{channel}/messages/{key}") });
        let operation = json!({
            "action": "send",
            "channel": { "$ref": format!("#/channels/{channel}") },
            "summary": summary,
            "description": summary,
            "messages": keys.iter().map(at).collect::<Vec<_>>(),
        });
        operations.insert(name.to_owned(), operation);
    }
    operations
}

fn server(protocol: &str, path: &str) -> Value {
    json!({
        "host": "{host}",
        "protocol": protocol,
        "pathname": path,
        "variables": { "host": { "default": "localhost:3000", "description": "Where Sepal lives." } },
        "security": [{ "$ref": "#/components/securitySchemes/key" }],
    })
}

fn channel(address: &str, server: &str, about: &str, keys: &[String]) -> Value {
    let message = |key: &String| {
        let of = json!({ "$ref": format!("#/components/messages/{key}") });
        (key.clone(), of)
    };
    json!({
        "address": address,
        "description": about,
        "servers": [{ "$ref": format!("#/servers/{server}") }],
        "messages": keys.iter().map(message).collect::<Map<_, _>>(),
    })
}

fn with_id(mut channel: Value) -> Value {
    if let Some(channel) = channel.as_object_mut() {
        let id = json!({ "id": { "description": "The session's id." } });
        channel.insert("parameters".to_owned(), id);
    }
    channel
}

/// Returns the key of a message among the components, which has no colon.
fn key_of(name: &str) -> String {
    name.replace(':', ".")
}

fn command_key(name: &str) -> String {
    format!("command.{}", key_of(name)).replace('.', "_")
}

fn key(message: &Value) -> String {
    message["x-key"].as_str().unwrap_or_default().to_owned()
}

fn keys(messages: &[Value]) -> Vec<String> {
    messages.iter().map(key).collect()
}

fn keys_of_commands() -> impl Iterator<Item = String> {
    COMMANDS.iter().map(|spec| command_key(spec.name))
}

/// Describes the list of arguments of a message.
fn arguments(arguments: &[Value], least: usize) -> Value {
    json!({
        "type": "array",
        "items": arguments,
        "minItems": least,
        "maxItems": arguments.len(),
    })
}

fn event_message(spec: &EventSpec) -> Value {
    let payload = json!({ "$ref": format!("{SCHEMAS}{}", (spec.name_of_schema)()) });
    let text = json!({ "type": "string" });
    let list = if spec.has_text {
        vec![text, payload]
    } else {
        vec![payload]
    };
    json!({
        "x-key": key_of(spec.name),
        "name": spec.name,
        "summary": spec.about.trim(),
        "payload": arguments(&list, list.len()),
    })
}

/// Describes a command by the operation of REST that does the same.
fn command_message(rest: &Value, spec: &CommandSpec) -> Value {
    let body = body(rest, spec);
    let payload = match spec.name {
        // The text may stand before the rest.
        "message" => json!({ "oneOf": [
            arguments(std::slice::from_ref(&body), 1),
            arguments(&[json!({ "type": "string" }), json!({ "type": "object" })], 1),
        ] }),
        "agent:cancel" | "turn:retry" | "history:reset" | "session:assistant" => {
            arguments(&[body], 0)
        }
        _ => arguments(&[body], 1),
    };
    json!({
        "x-key": command_key(spec.name),
        "name": spec.name,
        "summary": summary(rest, spec),
        "payload": payload,
    })
}

/// Returns the operation of REST with this id, and its path.
fn operation<'r>(rest: &'r Value, id: &str) -> Option<(&'r str, &'r Value)> {
    let paths = rest.get("paths")?.as_object()?.iter();
    let all = paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(_, operation)| (path.as_str(), operation))
    });
    let mut all = all.filter(|(_, operation)| operation["operationId"] == id);
    all.next()
}

fn summary(rest: &Value, spec: &CommandSpec) -> String {
    let found = operation(rest, spec.operation);
    let summary = found.and_then(|(_, operation)| operation["summary"].as_str());
    match spec.name {
        "session:resume" => "Sends the events after a `seq` again.".to_owned(),
        "tool:approval" => "Decides one call.".to_owned(),
        "tool:approval_all" => "Decides several calls at once.".to_owned(),
        _ => summary.unwrap_or_default().to_owned(),
    }
}

fn about(rest: &Value, spec: &CommandSpec) -> String {
    let found = operation(rest, spec.operation);
    let about = found.and_then(|(_, operation)| operation["description"].as_str());
    let summary = summary(rest, spec);
    let is_own = found.is_some_and(|(_, operation)| operation["summary"] == summary);
    about.filter(|_| is_own).unwrap_or(&summary).to_owned()
}

fn body(rest: &Value, spec: &CommandSpec) -> Value {
    let named = |name: &str| json!({ "$ref": format!("{SCHEMAS}{name}") });
    match spec.name {
        "tool:approval" => return named("DecideOne"),
        "tool:approval_all" => return named("DecideSeveral"),
        "session:resume" => {
            return json!({
                "type": "object",
                "required": ["lastSeq"],
                "properties": {
                    "lastSeq": { "type": "integer", "minimum": 0, "description": "The last `seq` that the client has." },
                    "journalId": { "type": ["string", "null"], "description": "The journal of that `seq`." },
                },
            });
        }
        _ => {}
    }
    let found = operation(rest, spec.operation);
    let (path, operation) = found.unwrap_or(("", &Value::Null));
    let schema = operation
        .pointer("/requestBody/content/application~1json/schema")
        .cloned();
    // What REST has in the address is a field here.
    let is_of_call = path.contains("{call}") || path.contains("{callId}");
    let call = json!({
        "type": "object",
        "required": ["callId"],
        "properties": { "callId": { "type": "string", "description": "The call's id." } },
    });
    match (schema, is_of_call) {
        (Some(schema), true) => json!({ "allOf": [call, schema] }),
        (Some(schema), false) => schema,
        (None, true) => call,
        (None, false) => json!({ "type": "object" }),
    }
}

fn acknowledgement() -> Value {
    let accepted = json!({
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": { "const": true },
            "seq": { "type": "integer", "description": "The `seq` of the first event that the command caused." },
            "sessionId": { "type": "string", "description": "The new session, of a fork." },
        },
    });
    let refused = json!({
        "type": "object",
        "required": ["ok", "error"],
        "properties": {
            "ok": { "const": false },
            "error": { "$ref": format!("{SCHEMAS}CommandRefusal") },
        },
    });
    json!({
        "x-key": "acknowledgement",
        "name": "acknowledgement",
        "summary": "Answers a command: what was accepted is durable.",
        "payload": arguments(&[json!({ "oneOf": [accepted, refused] })], 1),
    })
}

fn command_refusal() -> Value {
    json!({
        "type": "object",
        "description": "A refused command.",
        "required": ["code", "category", "message", "retryable", "requestId"],
        "properties": {
            "code": { "type": "string", "description": "The stable code (docs/errors.md)." },
            "category": { "$ref": format!("{SCHEMAS}ErrorCategory") },
            "message": { "type": "string", "description": "The reason, in words." },
            "field": { "type": "string", "description": "The wrong field." },
            "retryable": { "type": "boolean", "description": "True if the same command may work later." },
            "requestId": { "type": "string", "description": "The id in the log." },
        },
    })
}

/// Returns the schemas of all events.
fn event_schemas() -> Map<String, Value> {
    let mut all = Vec::new();
    for spec in OF_SESSION.iter().chain(OF_LIST) {
        all.push(((spec.name_of_schema)(), (spec.schema)()));
        (spec.schemas)(&mut all);
    }
    let value = |schema| serde_json::to_value(schema).unwrap_or_default();
    all.into_iter()
        .map(|(name, schema)| (name, value(schema)))
        .collect()
}

/// Adds the schemas of REST that `within` refers to, and those that they refer to.
fn take_schemas(within: &Value, rest: &Value, schemas: &mut Map<String, Value>) {
    let mut wanted = BTreeSet::new();
    refer(within, &mut wanted);
    let own = Value::Object(schemas.clone());
    refer(&own, &mut wanted);
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let schema = rest.pointer(&format!("/components/schemas/{name}"));
        let schema = schema.cloned().unwrap_or_default();
        refer(&schema, &mut wanted);
        schemas.insert(name, schema);
    }
}

/// Collects the names of the schemas that a value refers to.
fn refer(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str);
            let name = target.and_then(|target| target.strip_prefix(SCHEMAS));
            names.extend(name.map(ToOwned::to_owned));
            members.values().for_each(|member| refer(member, names));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| refer(entry, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Answers `GET /api/asyncapi.json` with the description, which is built at the first request and cached.
pub(super) async fn read_description() -> impl IntoResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(CONTENT_TYPE, "application/json")], text.as_str())
}

/// Returns the content of `docs/asyncapi.json`.
pub fn asyncapi_json() -> String {
    let mut text = serde_json::to_string_pretty(&description()).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{description, operation, refer};
    use crate::gateway::openapi;
    use crate::gateway::wire::COMMANDS;

    #[test]
    fn every_command_is_described_by_an_operation_of_rest() {
        let rest = openapi::value();
        for spec in COMMANDS {
            assert!(operation(&rest, spec.operation).is_some(), "{}", spec.name);
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let all = description();
        let mut names = BTreeSet::new();
        refer(&all, &mut names);
        for name in names {
            let schema = &all["components"]["schemas"][&name];
            assert!(schema.is_object(), "{name}");
        }
    }
}
