//! Reads command lines: the program of a server, or the command with which another program adds one.

use serde_json::{Map, Value};
use url::Url;

use super::entry::without_shell;
use super::{Pasted, PastedKind, of_json, transport_of};
use sepal_core::domain::McpTransport;

/// Prompts of shells, as documentation shows them.
const PROMPTS: [&str; 5] = ["$ ", "> ", "% ", "❯ ", "PS> "];

/// The options of `… mcp add` that take a value, with their short forms.
const SCOPED: [&str; 6] = [
    "-s",
    "--scope",
    "--client-id",
    "--callback-port",
    "--timeout",
    "--client",
];

/// Reads one command line, or several that each add a server.
pub(super) fn read(text: &str) -> Pasted {
    let mut pasted = Pasted {
        kind: PastedKind::Command,
        ..Pasted::default()
    };
    let mut env = Map::new();
    for line in lines(text) {
        let Some(mut words) = shlex::split(&line) else {
            pasted
                .problems
                .push(format!("`{line}` has a quote that does not end"));
            continue;
        };
        take_assignments(&mut words, &mut env);
        if words.is_empty() {
            continue;
        }
        let is_first = pasted.servers.is_empty() && pasted.problems.is_empty();
        if adds_server(&words) {
            match added(&words, env.clone()) {
                Ok((name, entry)) => pasted.take(Some(&name), &Value::Object(entry)),
                Err(problem) => pasted.problems.push(problem),
            }
        } else if let Some(json) = json_argument(&words) {
            let found = of_json(json);
            pasted.servers.extend(found.servers);
            pasted.problems.extend(found.problems);
        } else if is_first && is_command(&words) {
            let words = without_shell(words);
            let mut entry = Map::new();
            entry.insert("transport".to_owned(), "stdio".into());
            entry.insert("command".to_owned(), words.into());
            entry.insert("env".to_owned(), Value::Object(env.clone()));
            pasted.take(None, &Value::Object(entry));
        } else if !is_first {
            let text = format!("`{line}` is left out: paste one command at a time");
            pasted.problems.push(text);
        }
    }
    if pasted.servers.is_empty() {
        pasted.kind = PastedKind::Nothing;
    }
    pasted
}

/// Returns the lines without prompts and remarks; a line that ends with a backslash goes on below.
fn lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let lines = joined.lines().map(|line| {
        let mut line = line.trim();
        for prompt in PROMPTS {
            line = line.strip_prefix(prompt).unwrap_or(line).trim_start();
        }
        line
    });
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(ToOwned::to_owned).collect()
}

/// Takes the variables that are set before the program.
fn take_assignments(words: &mut Vec<String>, env: &mut Map<String, Value>) {
    loop {
        let Some(first) = words.first() else { return };
        if matches!(
            first.as_str(),
            "env" | "export" | "sudo" | "set" | "&&" | ";"
        ) {
            words.remove(0);
            continue;
        }
        let Some((name, value)) = assignment(first) else {
            return;
        };
        env.insert(name.to_owned(), value.trim_end_matches(';').into());
        words.remove(0);
    }
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (begins && is_name).then_some((name, value))
}

/// A single word is as likely the beginning of something else.
fn is_command(words: &[String]) -> bool {
    match words {
        [] => false,
        [only] => only.starts_with(['.', '/']) || only.contains(['-', '_']),
        [command, ..] => !command.ends_with([',', ':']),
    }
}

/// Returns true for `claude mcp add …` and the like.
fn adds_server(words: &[String]) -> bool {
    let is = |at: usize, word: &str| words.get(at).is_some_and(|it| it == word);
    is(1, "mcp") && (is(2, "add") || is(2, "add-json"))
}

/// Returns the entry in `code --add-mcp '{…}'`.
fn json_argument(words: &[String]) -> Option<&str> {
    let at = words.iter().position(|word| word == "--add-mcp")?;
    words.get(at + 1).map(String::as_str)
}

/// Reads `PROGRAM mcp add [options] NAME [options] ADDRESS|-- COMMAND…`.
fn added(
    words: &[String],
    mut env: Map<String, Value>,
) -> Result<(String, Map<String, Value>), String> {
    let is_json = words.get(2).is_some_and(|word| word == "add-json");
    let mut entry = Map::new();
    let mut headers = Map::new();
    let (mut name, mut rest): (Option<String>, Vec<String>) = (None, Vec::new());
    let mut words = words.iter().skip(3).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.extend(words.cloned());
            break;
        }
        // The program of the server has options of its own.
        if !rest.is_empty() && !is_address(&rest) {
            rest.push(word.clone());
            rest.extend(words.cloned());
            break;
        }
        let (option, attached) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut value = || attached.clone().or_else(|| words.next().cloned());
        match option {
            "-t" | "--transport" | "--type" => {
                let transport = value().unwrap_or_default();
                entry.insert("transport".to_owned(), transport.into());
            }
            "--url" => rest.extend(value()),
            "-e" | "--env" => {
                let first = value().unwrap_or_default();
                let (key, text) = assignment(&first)
                    .ok_or_else(|| format!("`{first}` has to be `NAME=value` after `{option}`"))?;
                env.insert(key.to_owned(), text.into());
                while let Some((key, text)) = words.peek().and_then(|next| assignment(next)) {
                    env.insert(key.to_owned(), text.into());
                    words.next();
                }
            }
            "-H" | "--header" => {
                let first = value().unwrap_or_default();
                let (key, text) = first
                    .split_once(':')
                    .ok_or_else(|| format!("`{first}` has to be `Name: value` after `{option}`"))?;
                headers.insert(key.trim().to_owned(), text.trim().into());
            }
            option if SCOPED.contains(&option) => drop(value()),
            option if option.starts_with('-') && rest.is_empty() => {}
            _ if name.is_none() => name = Some(word.clone()),
            _ => rest.push(word.clone()),
        }
    }
    let name = name.ok_or_else(|| "the command names no server: add its name".to_owned())?;
    if is_json {
        return of_added_json(name, &rest);
    }
    match rest.first() {
        None => {
            return Err(format!(
                "`{name}` has neither a command nor an address: add one"
            ));
        }
        Some(url) if is_address(&rest) => {
            let transport = Url::parse(url).map_or(McpTransport::Http, |url| transport_of(&url));
            let transport = transport.as_str().to_owned();
            entry.entry("transport").or_insert_with(|| transport.into());
            entry.insert("url".to_owned(), url.clone().into());
            entry.insert("headers".to_owned(), Value::Object(headers));
        }
        Some(_) => {
            // One text with the whole line, or its words.
            let line = shlex::split(rest.first().map_or("", String::as_str));
            let words = line.filter(|_| rest.len() == 1).unwrap_or(rest);
            entry.insert("command".to_owned(), words.into());
            entry.insert("env".to_owned(), Value::Object(env));
        }
    }
    Ok((name, entry))
}

fn is_address(words: &[String]) -> bool {
    let is_web = |word: &String| word.starts_with("http://") || word.starts_with("https://");
    words.first().is_some_and(is_web)
}

fn of_added_json(name: String, rest: &[String]) -> Result<(String, Map<String, Value>), String> {
    let text = rest.first().map_or("", String::as_str);
    match super::json::parse(text) {
        Ok(Value::Object(entry)) => Ok((name, entry)),
        Ok(_) | Err(_) => Err(format!("`{name}` has no valid JSON after its name")),
    }
}
