//! Reads the settings file: parses it by its extension, flattens it to keys, and expands variables.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::check::Raw;
use crate::family::{Fields, Member, checked_field, path};
use crate::problem::did_you_mean;
use crate::table::{FAMILIES, Family, KEY_ALIASES, LATER, RULES, SETTINGS, find};
use crate::{Problem, Source, SourceFile};

/// A key of the file and its value.
pub(crate) struct Entry {
    /// The key as spelled in the table.
    pub(crate) key: &'static str,
    /// The value with variables expanded.
    pub(crate) raw: Raw,
    pub(crate) source: Source,
}

/// Reads as much of the file as possible, and reports problems with the rest.
pub(crate) fn read(
    file: &SourceFile,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) -> (Vec<Entry>, Vec<Member>) {
    let tree = match parse(file) {
        Ok(tree) => tree,
        Err(problem) => {
            problems.push(problem);
            return (Vec::new(), Vec::new());
        }
    };
    let mut reader = Reader {
        file: &file.name,
        env,
        entries: Vec::new(),
        members: Vec::new(),
        problems,
    };
    reader.section("", "", &tree);
    (reader.entries, reader.members)
}

fn parse(file: &SourceFile) -> Result<Value, Problem> {
    let problem = |what: String, accepted: &str| Problem {
        path: file.name.clone(),
        source: None,
        what,
        accepted: accepted.to_owned(),
    };
    let extension = std::path::Path::new(&file.name).extension();
    match extension.and_then(|extension| extension.to_str()) {
        // Parses into YAML's own value type first, because that refuses duplicate keys.
        Some("yaml" | "yml") => serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&file.text)
            .and_then(serde_yaml_ng::from_value::<Value>)
            .map_err(|error| problem(error.to_string(), "YAML with one mapping at the top")),
        Some("json") => serde_json::from_str(&file.text)
            .map_err(|error| problem(error.to_string(), "JSON with one object at the top")),
        _ => Err(problem(
            "the format is not known".to_owned(),
            "a name that ends in `.yaml`, `.yml` or `.json`",
        )),
    }
}

struct Reader<'a> {
    file: &'a str,
    env: &'a BTreeMap<String, String>,
    entries: Vec<Entry>,
    members: Vec<Member>,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    /// Reads one mapping; `path` is its normalized key, `spelled` the key as in the file.
    fn section(&mut self, path: &str, spelled: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                for (name, value) in members {
                    let normal = KEY_ALIASES
                        .iter()
                        .find(|(alias, _)| *alias == join(path, &snake(name)))
                        .map_or_else(|| join(path, &snake(name)), |(_, key)| (*key).to_owned());
                    self.member(&normal, &join(spelled, name), value);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let what = "a section is expected here, not a value".to_owned();
                self.refuse(path, spelled, what, "a mapping of settings".to_owned());
            }
        }
    }

    fn member(&mut self, path: &str, spelled: &str, value: &Value) {
        let below = format!("{path}.");
        if let Some(definition) = find(path) {
            self.leaf(definition.key, spelled, value);
        } else if let Some(family) = FAMILIES.iter().find(|family| family.key == path) {
            self.family(family, spelled, value);
        } else if is_later_key(path) {
            let what = "this setting is not in this version yet".to_owned();
            self.refuse(path, spelled, what, "leave it out".to_owned());
        } else if known_keys().any(|key| key.starts_with(&below)) {
            self.section(path, spelled, value);
        } else {
            let hint = did_you_mean(path, known_keys());
            let accepted =
                hint.unwrap_or_else(|| "the settings of docs/configuration.md".to_owned());
            self.refuse(path, spelled, "unknown setting".to_owned(), accepted);
        }
    }

    fn leaf(&mut self, key: &'static str, spelled: &str, value: &Value) {
        if value.is_null() {
            return;
        }
        if self.entries.iter().any(|entry| entry.key == key) {
            let what = "the setting stands twice, in two spellings".to_owned();
            self.refuse(key, spelled, what, format!("only `{key}`"));
            return;
        }
        if let Some(raw) = self.expanded(key, spelled, value) {
            let source = self.source(spelled);
            self.entries.push(Entry { key, raw, source });
        }
    }

    fn family(&mut self, family: &'static Family, spelled: &str, value: &Value) {
        if value.is_null() {
            return;
        }
        let Value::Object(members) = value else {
            let what = "a section is expected here, not a value".to_owned();
            self.refuse(family.key, spelled, what, format!("`{}`", family.shown));
            return;
        };
        for (name, value) in members {
            let spelled = join(spelled, name);
            match value {
                Value::Null => {}
                Value::Object(fields) => self.named(family, name, &spelled, fields),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    let what = "a section is expected here, not a value".to_owned();
                    let accepted = "a mapping of fields".to_owned();
                    self.refuse(&join(family.key, name), &spelled, what, accepted);
                }
            }
        }
    }

    fn named(
        &mut self,
        family: &'static Family,
        name: &str,
        spelled: &str,
        given: &Map<String, Value>,
    ) {
        let mut fields = Fields::new();
        for (field_name, value) in given {
            let spelled = join(spelled, field_name);
            let path = path(family, name, field_name);
            let known = || family.fields.iter();
            let found = known().find(|field| snake(field.name) == snake(field_name));
            let Some(field) = found else {
                let hint = did_you_mean(field_name, known().map(|field| field.name));
                let accepted = hint.unwrap_or_else(|| "the fields of docs/configuration.md".into());
                self.refuse(&path, &spelled, "unknown field".to_owned(), accepted);
                continue;
            };
            if fields.contains_key(field.name) {
                let what = "the field stands twice, in two spellings".to_owned();
                self.refuse(&path, &spelled, what, format!("only `{}`", field.name));
            } else if value.is_null() && family.key == RULES.key {
                // Ignoring an empty condition would make the rule wider than it looks.
                let accepted = "a value, or no such field".to_owned();
                self.refuse(&path, &spelled, "it is empty".to_owned(), accepted);
            } else if !value.is_null()
                && let Some(raw) = self.expanded(&path, &spelled, value)
            {
                let source = self.source(&spelled);
                let given = (&raw, &source);
                let checked = checked_field(family, name, field, given, self.problems);
                fields.extend(checked.map(|resolved| (field.name, resolved)));
            }
        }
        self.members.push(Member {
            family: family.key,
            name: name.to_owned(),
            source: self.source(spelled),
            fields,
        });
    }

    /// The value with its variables expanded; `None` after a problem.
    fn expanded(&mut self, path: &str, spelled: &str, value: &Value) -> Option<Raw> {
        match expand(value, self.env) {
            Ok(raw) => Some(raw),
            Err(name) => {
                let what = format!("the variable `{name}` is not set");
                let accepted = "a variable of the environment; `$$` stands for a dollar sign";
                self.refuse(path, spelled, what, accepted.to_owned());
                None
            }
        }
    }

    fn source(&self, spelled: &str) -> Source {
        Source::File {
            name: self.file.to_owned(),
            key: spelled.to_owned(),
        }
    }

    fn refuse(&mut self, path: &str, spelled: &str, what: String, accepted: String) {
        let (path, source) = if path.is_empty() {
            (self.file.to_owned(), None)
        } else {
            (path.to_owned(), Some(self.source(spelled)))
        };
        self.problems.push(Problem {
            path,
            source,
            what,
            accepted,
        });
    }
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    // A whole section is no useful hint for an unknown name.
    let aliases = KEY_ALIASES.iter().map(|(alias, _)| *alias);
    let aliases = aliases.filter(|alias| alias.contains('.'));
    let settings = SETTINGS.iter().map(|definition| definition.key);
    let families = FAMILIES.iter().map(|family| family.key);
    settings
        .chain(aliases)
        .chain(families)
        .chain(LATER.iter().map(|later| later.key.trim_end_matches(".*")))
}

/// Returns true if the key is reserved for a later version ([`LATER`]).
fn is_later_key(path: &str) -> bool {
    LATER
        .iter()
        .any(|later| match later.key.strip_suffix(".*") {
            Some(family) => path == family || path.starts_with(&format!("{family}.")),
            None => path == later.key,
        })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Converts to snake case: `maxTokens` and `baseURL` become `max_tokens` and `base_url`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    let mut follows_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && follows_lower {
            text.push('_');
        }
        follows_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Expands the strings of a value; the error is the name of a variable that is not set.
fn expand(value: &Value, env: &BTreeMap<String, String>) -> Result<Raw, String> {
    if let Value::String(text) = value {
        let expanded = expand_text(text, env)?;
        return Ok(if expanded == *text {
            Raw::Json(value.clone())
        } else {
            Raw::Text(expanded)
        });
    }
    let inner = |item: &Value| match item {
        Value::String(text) => expand_text(text, env).map(Value::String),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Ok(item.clone())
        }
    };
    let expanded = match value {
        Value::Array(items) => Value::Array(items.iter().map(inner).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| Ok((name.clone(), inner(value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    };
    Ok(Raw::Json(expanded))
}

/// Expands `$NAME` and `${NAME}`. `$$` stands for a dollar sign; so does a `$` before anything else.
fn expand_text(text: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, tail) = match after.strip_prefix('{').and_then(|a| a.split_once('}')) {
            Some((name, tail)) if is_name(name) => (name, tail),
            _ => after.split_at(name_length(after)),
        };
        if name.is_empty() {
            expanded.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        } else {
            expanded.push_str(env.get(name).ok_or_else(|| name.to_owned())?);
            rest = tail;
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// The length in bytes of the variable name at the start of the text.
fn name_length(text: &str) -> usize {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return 0;
    }
    text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{expand_text, snake};

    #[test]
    fn camel_case_becomes_snake_case() {
        for (camel, expected) in [
            ("systemPrompt", "system_prompt"),
            ("apiKey", "api_key"),
            ("baseURL", "base_url"),
            ("max_tokens", "max_tokens"),
            ("scriptedPaceMs", "scripted_pace_ms"),
            ("cpus", "cpus"),
        ] {
            assert_eq!(snake(camel), expected);
        }
    }

    /// Asserts S3.37.
    #[test]
    fn variables_are_expanded() {
        let env = BTreeMap::from([("A".to_owned(), "x".to_owned())]);
        for (text, expected) in [
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("$A", Ok("x")),
            ("${A}b", Ok("xb")),
            ("$A-$A", Ok("x-x")),
            ("$$A", Ok("$A")),
            ("5$ and $5", Ok("5$ and $5")),
            ("${not a name}", Ok("${not a name}")),
            ("${A", Ok("${A")),
            ("$B", Err("B")),
            ("${B}", Err("B")),
            ("$AB", Err("AB")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(expand_text(text, &env), expected, "{text}");
        }
    }
}
