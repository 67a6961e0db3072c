//! Brings the entry of a server into our form, whichever program wrote it.

use serde_json::{Map, Value};

use crate::wire::lenient::{simple_text, truth};
use sepal_core::domain::McpServerConfig;

/// The members of an entry that we write.
pub(in crate::config) const MEMBERS: [&str; 25] = [
    "transport",
    "enabled",
    "description",
    "toolPrefix",
    "includeTools",
    "excludeTools",
    "timeout",
    "trusted",
    "sampling",
    "command",
    "args",
    "allowScripts",
    "bundle",
    "env",
    "cwd",
    "containerImage",
    "containerEnv",
    "containerMemory",
    "containerCpu",
    "network",
    "secretHosts",
    "workspace",
    "url",
    "headers",
    "oauth",
];

/// Other names of members, with ours.
const NAMES: [(&str, &str); 13] = [
    ("serverUrl", "url"),
    ("serverURL", "url"),
    ("httpUrl", "url"),
    ("sseUrl", "url"),
    ("environment", "env"),
    ("environmentVariables", "env"),
    ("arguments", "args"),
    ("workingDirectory", "cwd"),
    ("transportType", "transport"),
    ("type", "transport"),
    ("http_headers", "headers"),
    ("image", "containerImage"),
    ("server_url", "url"),
];

/// Flags of an entry.
const FLAGS: [&str; 4] = ["enabled", "trusted", "sampling", "allowScripts"];

/// Programs that Windows knows with an ending.
const ENDINGS: [&str; 3] = [".cmd", ".exe", ".bat"];

/// Returns true for a member that an entry of any program may have in place of one of ours.
pub(in crate::config) fn is_ours(member: &str) -> bool {
    let is_alias = NAMES.iter().any(|(other, _)| *other == member);
    MEMBERS.contains(&member) || is_alias || member == "disabled"
}

/// Reads an entry of any program, or says what to change. Unknown members are ignored.
pub(in crate::config) fn config_of(entry: &Value) -> Result<McpServerConfig, String> {
    let Value::Object(said) = entry else {
        return Err("has to be an object".to_owned());
    };
    let mut entry = said.clone();
    for (other, ours) in NAMES {
        if let Some(value) = entry.remove(other)
            && !entry.contains_key(ours)
        {
            entry.insert(ours.to_owned(), value);
        }
    }
    entry.retain(|_, value| !value.is_null());
    read_transport(said, &mut entry)?;
    read_command(&mut entry)?;
    for member in ["env", "containerEnv", "headers"] {
        if let Some(value) = entry.remove(member) {
            let texts = texts_by_name(member, value)?;
            if !texts.is_empty() {
                entry.insert(member.to_owned(), Value::Object(texts));
            }
        }
    }
    for flag in FLAGS {
        if let Some(value) = entry.remove(flag) {
            let value =
                truth(Some(&value)).ok_or_else(|| format!("`{flag}` has to be true or false"))?;
            entry.insert(flag.to_owned(), value.into());
        }
    }
    if truth(said.get("disabled")) == Some(true) {
        entry.insert("enabled".to_owned(), false.into());
    }
    entry.retain(|member, _| MEMBERS.contains(&member.as_str()));
    serde_json::from_value(Value::Object(entry)).map_err(|error| error.to_string())
}

/// Translates the transport, which programs spell in many ways.
fn read_transport(said: &Map<String, Value>, entry: &mut Map<String, Value>) -> Result<(), String> {
    let Some(transport) = entry.remove("transport") else {
        if said.contains_key("httpUrl") {
            entry.insert("transport".to_owned(), "http".into());
        } else if said.contains_key("sseUrl") {
            entry.insert("transport".to_owned(), "sse".into());
        }
        return Ok(());
    };
    // Some write an object with the kind inside.
    let word = transport
        .as_str()
        .or_else(|| transport.get("type")?.as_str());
    let word = word.ok_or_else(|| "`transport` has to be a text".to_owned())?;
    let plain = word.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let ours = match plain.as_str() {
        "stdio" | "local" | "command" => "stdio",
        "http" | "https" | "streamable" | "streamablehttp" | "httpstream" | "remote" => "http",
        "sse" | "httpsse" => "sse",
        "stdiodocker" | "docker" => "stdio-docker",
        "ws" | "websocket" => {
            return Err(format!(
                "has the transport `{word}`, which is not supported: give the address of its HTTP"
            ));
        }
        _ => {
            return Err(format!(
                "has the unknown transport `{word}`: it is `stdio`, `stdio-docker`, `http` or `sse`"
            ));
        }
    };
    entry.insert("transport".to_owned(), ours.into());
    Ok(())
}

/// Translates the command and its arguments.
fn read_command(entry: &mut Map<String, Value>) -> Result<(), String> {
    let mut words = Vec::new();
    match entry.remove("command") {
        None => {}
        // Zed's first form.
        Some(Value::Object(mut command)) => {
            words.extend(simple_text(command.get("path")));
            for member in ["args", "env"] {
                if let Some(value) = command.remove(member) {
                    entry.entry(member).or_insert(value);
                }
            }
        }
        // opencode's form.
        Some(Value::Array(all)) => words = texts("command", &all)?,
        Some(value) => {
            let text = simple_text(Some(&value)).unwrap_or_default();
            let is_line = text.contains(char::is_whitespace) && !entry.contains_key("args");
            let line = shlex::split(&text).filter(|_| is_line);
            words = line.unwrap_or_else(|| vec![text.trim().to_owned()]);
        }
    }
    match entry.remove("args") {
        None => {}
        Some(Value::Array(all)) => words.extend(texts("args", &all)?),
        Some(Value::String(line)) => {
            let split = shlex::split(&line);
            words.extend(split.ok_or_else(|| "`args` has a quote that does not end".to_owned())?);
        }
        Some(_) => return Err("`args` has to be a list of texts".to_owned()),
    }
    let words = without_shell(words);
    let mut words = words.into_iter();
    let has_program = !entry.contains_key("url") && !entry.contains_key("containerImage");
    if has_program && let Some(command) = words.next().filter(|word| !word.is_empty()) {
        entry.insert("command".to_owned(), command.into());
    }
    let args: Vec<String> = words.collect();
    if !args.is_empty() {
        entry.insert("args".to_owned(), args.into());
    }
    Ok(())
}

/// Removes the shell of Windows, with which editors start a runner there, and the ending of the runner.
pub(super) fn without_shell(mut words: Vec<String>) -> Vec<String> {
    let program = words.first().map(|word| {
        let last = word.rsplit(['/', '\\']).next().unwrap_or(word);
        last.to_ascii_lowercase()
    });
    if matches!(program.as_deref(), Some("cmd" | "cmd.exe")) {
        let is_switch = |word: &String| word.len() == 2 && word.starts_with('/');
        let switches = words
            .iter()
            .skip(1)
            .take_while(|word| is_switch(word))
            .count();
        let runs = words
            .iter()
            .skip(1)
            .take(switches)
            .any(|word| word.eq_ignore_ascii_case("/c"));
        if runs && words.len() > 1 + switches {
            words.drain(..=switches);
        }
    }
    if let Some(program) = words.first_mut()
        && !program.contains(['/', '\\'])
    {
        let lower = program.to_ascii_lowercase();
        let ending = ENDINGS.iter().find(|ending| lower.ends_with(*ending));
        if let Some(ending) = ending {
            program.truncate(program.len() - ending.len());
        }
    }
    words
}

/// Reads a list of texts; numbers and truth values are texts too.
fn texts(member: &str, all: &[Value]) -> Result<Vec<String>, String> {
    let all = all.iter().filter(|value| !value.is_null());
    let texts: Option<Vec<String>> = all.map(|value| simple_text(Some(value))).collect();
    texts.ok_or_else(|| format!("`{member}` has to be a list of texts"))
}

/// Reads variables or headers: an object, or a list of `NAME=value` or of objects with name and value.
fn texts_by_name(member: &str, said: Value) -> Result<Map<String, Value>, String> {
    let wrong = || format!("`{member}` has to be an object of texts");
    let mut read = Map::new();
    match said {
        Value::Object(all) => {
            for (name, value) in all {
                if value.is_null() {
                    continue;
                }
                let text = simple_text(Some(&value));
                let text = text.ok_or_else(|| format!("`{member}.{name}` has to be a text"))?;
                read.insert(name, text.into());
            }
        }
        Value::Array(all) => {
            for value in all {
                let pair = if let Some(pair) = value.as_str() {
                    let (first, second) = if member == "headers" {
                        (':', '=')
                    } else {
                        ('=', ':')
                    };
                    let pair = pair.split_once(first).or_else(|| pair.split_once(second));
                    pair.map(|(name, text)| (name.trim().to_owned(), text.trim().to_owned()))
                } else {
                    simple_text(value.get("name").or_else(|| value.get("key")))
                        .zip(simple_text(value.get("value")))
                };
                let (name, text) = pair.ok_or_else(wrong)?;
                read.insert(name, text.into());
            }
        }
        Value::String(line) if line.trim().is_empty() => {}
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(wrong()),
    }
    Ok(read)
}

/// Turns what editors ask for when they start a server (`${input:api-key}`, `${env:API_KEY}`) into secrets of
/// the entry.
pub(super) fn ask_for_inputs(config: &mut McpServerConfig) {
    let values = config.env.values_mut().chain(config.headers.values_mut());
    for text in values.chain(config.url.as_mut()) {
        for begin in ["${input:", "${env:"] {
            while let Some((before, rest)) = text.split_once(begin) {
                let Some((name, after)) = rest.split_once('}') else {
                    break;
                };
                let name: String = name
                    .chars()
                    .map(|c| {
                        if c.is_ascii_alphanumeric() {
                            c.to_ascii_uppercase()
                        } else {
                            '_'
                        }
                    })
                    .collect();
                *text = format!("{before}${{secret:{name}}}{after}");
            }
        }
    }
}
