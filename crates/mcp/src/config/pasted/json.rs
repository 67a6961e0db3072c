//! Parses JSON as people write and paste it, and finds the servers in the files of other programs.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

/// The members that hold the servers, in the files of different programs: Claude, Cursor and most others; VS
/// Code; Zed; opencode; Codex.
const SERVERS: [&str; 6] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp",
    "mcp_servers",
    "mcp.servers",
];

/// Returns true if the text is meant as JSON: an object, a list, or members without their braces.
pub(super) fn is_json(text: &str) -> bool {
    if text.starts_with(['{', '[']) || text.starts_with("//") || text.starts_with("/*") {
        return true;
    }
    is_fragment(text)
}

/// Returns true for members without the braces around them.
fn is_fragment(text: &str) -> bool {
    let name = text.trim_start_matches(['"', '\'', '“', '”', '„', '‘', '’']);
    let end = name.find(|c: char| !(c.is_alphanumeric() || "_-. @/".contains(c)));
    let (name, rest) = name.split_at(end.unwrap_or(0));
    let rest = rest
        .trim_start_matches(['"', '\'', '“', '”', '‟', '‘', '’'])
        .trim_start();
    let rest = rest.strip_prefix(':').map(str::trim_start);
    !name.is_empty() && rest.is_some_and(|rest| rest.starts_with(['{', '[', '"', '“', '\'', '‘']))
}

/// Parses JSON with comments, trailing commas, typographic quotes, or without the braces around it.
pub(in crate::config) fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let plain = match relaxed(text) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let unquoted = straight_quotes(text);
    let candidates = [
        unquoted.clone(),
        format!("{{{}}}", text.trim_end_matches(',')),
        format!("{{{}}}", unquoted.trim_end_matches(',')),
    ];
    candidates
        .iter()
        .find_map(|text| relaxed(text).ok())
        .ok_or(plain)
}

fn relaxed(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let options = ParseOptions {
        // With a comma missing, a word too much would be read as another member.
        allow_missing_commas: false,
        allow_non_finite_numbers: false,
        ..ParseOptions::default()
    };
    let value: Value = parse_to_serde_value(text, &options).map_err(|error| error.to_string())?;
    if value.is_object() || value.is_array() {
        Ok(value)
    } else {
        Err("it has to be an object".to_owned())
    }
}

/// Replaces the quotes that word processors and chat programs write.
fn straight_quotes(text: &str) -> String {
    let quote = |c: char| match c {
        '“' | '”' | '„' | '‟' | '«' | '»' => '"',
        '‘' | '’' | '‚' | '‛' => '\'',
        c => c,
    };
    text.chars().map(quote).collect()
}

/// Returns the servers in a file, with the members that lead to them.
pub(in crate::config) fn servers_of(
    root: &Map<String, Value>,
) -> Option<(Vec<String>, &Map<String, Value>)> {
    for member in SERVERS {
        let Some(Value::Object(found)) = root.get(member) else {
            continue;
        };
        // VS Code's settings have `mcp.servers`.
        if let Some(Value::Object(inner)) = found.get("servers").filter(|_| member == "mcp") {
            return Some((vec![member.to_owned(), "servers".to_owned()], inner));
        }
        if !is_entry(found) {
            return Some((vec![member.to_owned()], found));
        }
    }
    // Some programs put their own name before it.
    let mut named = root
        .iter()
        .filter(|(member, _)| member.ends_with(".mcpServers"));
    named.find_map(|(member, found)| Some((vec![member.clone()], found.as_object()?)))
}

/// Returns the entries of a pasted value, each with its name if it has one.
pub(super) fn entries(value: &Value) -> Vec<(Option<String>, Value)> {
    let root = match value {
        Value::Object(root) => root,
        Value::Array(all) => return all.iter().flat_map(entries).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Vec::new(),
    };
    if is_entry(root) {
        let name = root.get("name").and_then(Value::as_str);
        return vec![(name.map(ToOwned::to_owned), value.clone())];
    }
    let listed = servers_of(root).map(|(_, servers)| servers);
    let named = listed.unwrap_or(root).iter();
    let named = named.filter(|(_, entry)| {
        let is_entry = entry.as_object().is_some_and(is_entry);
        is_entry || listed.is_some()
    });
    named
        .map(|(name, entry)| (Some(name.clone()), entry.clone()))
        .collect()
}

/// Returns true for the entry of a server.
fn is_entry(object: &Map<String, Value>) -> bool {
    let says = |member: &&str| {
        object.get(*member).is_some_and(|value| match value {
            Value::String(_) | Value::Array(_) => true,
            // Zed has an object as its command.
            Value::Object(command) => command.get("path").is_some_and(Value::is_string),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        })
    };
    [
        "command",
        "url",
        "serverUrl",
        "httpUrl",
        "sseUrl",
        "containerImage",
    ]
    .iter()
    .any(says)
}
