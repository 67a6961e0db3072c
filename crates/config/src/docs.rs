//! Writes texts from the table: the documentation, `.env.example`, `sepal config show`.

use std::fmt::Write as _;

use serde_json::Value;

use super::check::accepts;
use super::family::{Fields, Members, field_accepts, path};
use super::table::{Definition, FAMILIES, Fallback, Family, FieldKind, Kind, SETTINGS};
use super::value::Values;

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `./run generate` from crates/config/src/table; do not edit. -->

The command line wins over the environment, the environment over the file, the file over the defaults.
The file is named by `--config`; YAML (`.yaml`, `.yml`) and JSON (`.json`) are read.
A `.env` file in the current folder is read as if it were the environment; the environment wins over it.
An empty variable counts as not set.

`$NAME` and `${NAME}` in texts of the file stand for variables of the environment; `$$` is a dollar sign.
Keys of the file may be written in camelCase (`apiKey` for `api_key`).
A section `llm` at the top of the file is read as `agent.llm`, as files of Saiki have it: `llm: { provider: openai, model: gpt-4o, systemPrompt: …, apiKey: $OPENAI_API_KEY }`. A key in the file itself is better left to the environment.
Of several variables for one key the first that is set wins.

An unknown key, a value of the wrong type or an impossible value stops the start, and all of them are named at once.
`sepal agent` has defaults of its own: `agent.chat.max_tokens` and `agent.chat.max_messages` are 0, and with `--daemon` the log goes to `stdout`.
`sepal config check` does only that; `sepal config show` prints every value with its source, and no secret.
";

/// The text of `docs/configuration.md`.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut section = "";
    for definition in SETTINGS {
        let of = definition.key.rsplit_once('.').map_or("", |(of, _)| of);
        if of != section {
            section = of;
            let _ = write!(
                text,
                "\n## `{of}`\n\n\
                 | key | environment | default | accepted | meaning | since |\n\
                 |---|---|---|---|---|---|\n"
            );
        }
        let names = definition.env.iter().chain(vendor_names(definition));
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            definition.key,
            names.join(", "),
            default_words(definition),
            accepts(definition.kind),
            definition.doc,
            definition.since,
        );
    }
    for family in FAMILIES {
        family_markdown(&mut text, family);
    }
    text
}

fn family_markdown(text: &mut String, family: &Family) {
    let _ = write!(
        text,
        "\n## `{}`\n\n{}\n\n| field | accepted | meaning |\n|---|---|---|\n",
        family.shown, family.doc
    );
    for field in family.fields {
        let accepted = field_accepts(field.kind);
        let _ = writeln!(text, "| `{}` | {accepted} | {} |", field.name, field.doc);
    }
    if !family.env.is_empty() {
        let is_counted = family.env.iter().any(|(name, _)| name.contains("<n>"));
        let counted = if is_counted { ", `<n>` from 0" } else { "" };
        let _ = write!(text, "\n| environment{counted} | sets |\n|---|---|\n");
    }
    for (name, meaning) in family.env {
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
}

/// The text of `.env.example`: every variable with its default, commented out.
pub fn env_example() -> String {
    let mut text = "\
# Settings of Sepal; copy this file to `.env` and uncomment what you change.
# Written by `./run generate` from crates/config/src/table; do not edit. All about them: docs/configuration.md
"
    .to_owned();
    for definition in SETTINGS {
        let _ = write!(text, "\n# {}\n", definition.doc.replace('`', ""));
        let (first, others) = definition.env.split_at(definition.env.len().min(1));
        if !others.is_empty() {
            let _ = writeln!(text, "# Also: {}", others.join(", "));
        }
        let names = first.iter();
        match definition.fallback {
            Fallback::Is(value) => {
                let quote = if value.contains(' ') { "'" } else { "" };
                for name in names {
                    let _ = writeln!(text, "# {name}={quote}{value}{quote}");
                }
            }
            Fallback::Words(words) => {
                let _ = writeln!(text, "# Default: {}", words.replace('`', ""));
                for name in names.chain(vendor_names(definition)) {
                    let _ = writeln!(text, "# {name}=");
                }
            }
        }
    }
    for (name, meaning) in FAMILIES.iter().flat_map(|family| family.env) {
        let of = if name.contains("<n>") {
            "MCP server 0, 1, …"
        } else {
            "OpenID provider"
        };
        let (name, meaning) = (name.replace("<n>", "0"), meaning.replace('`', ""));
        let _ = write!(text, "\n# {of}: {meaning}\n# {name}=\n");
    }
    text
}

fn vendor_names(definition: &Definition) -> impl Iterator<Item = &'static &'static str> {
    definition.vendor.iter().map(|(_, name)| name)
}

fn default_words(definition: &Definition) -> String {
    match definition.fallback {
        Fallback::Is(value) => format!("`{value}`"),
        Fallback::Words(words) => words.to_owned(),
    }
}

/// Every value with its source, one per line.
pub(super) fn show(values: &Values, families: &[(&Family, &Members)]) -> String {
    let mut text = String::new();
    for definition in SETTINGS {
        if let Some(resolved) = values.get(definition.key) {
            let value = shown(definition.kind, &resolved.value);
            let _ = writeln!(text, "{} = {value}  ({})", definition.key, resolved.source);
        }
    }
    for (family, members) in families {
        for (name, fields) in *members {
            show_member(&mut text, family, name, fields);
        }
    }
    text
}

fn show_member(text: &mut String, family: &Family, name: &str, fields: &Fields) {
    for field in family.fields {
        if let Some(resolved) = fields.get(field.name) {
            let value = match field.kind {
                FieldKind::Map => shown(Kind::Secret, &resolved.value),
                FieldKind::One(kind) => shown(kind, &resolved.value),
                FieldKind::Texts | FieldKind::Arguments => resolved.value.to_string(),
            };
            let path = path(family, name, field.name);
            let _ = writeln!(text, "{path} = {value}  ({})", resolved.source);
        }
    }
}

fn shown(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Null) => "none".to_owned(),
        (Kind::Secret | Kind::Redis | Kind::Smtp | Kind::Headers, _) => {
            "(set, not shown)".to_owned()
        }
        (Kind::Database, Value::String(url)) if !url.starts_with("sqlite:") => {
            "(set, not shown)".to_owned()
        }
        _ => value.to_string(),
    }
}
