//! Reads `agent.connections.mcpServers`: the file's servers, overridden by `SPL_MCPS_<n>_*` (S0.41, S1.24).

use std::collections::BTreeMap;

use super::{Fields, Member, Members, checked_field, has_problem, path};
use crate::check::{is_name, quote};
use crate::table::{Field, SERVERS};
use crate::value::variable;
use crate::{Problem, Source, Sources};
use sepal_core::domain::{McpServerConfig, McpTransport};

/// The suffixes of a server's variables, and the fields that they set.
const SUFFIXES: &[(&str, &str)] = &[
    ("COMMAND", "command"),
    ("ARGS", "args"),
    ("URL", "url"),
    ("INCLUDE_TOOLS", "includeTools"),
    ("EXCLUDE_TOOLS", "excludeTools"),
    ("NETWORK", "network"),
    ("SAMPLING", "sampling"),
];

/// The variables of the server with the index 0.
pub(crate) const FIRST_NAMES: &[&str] = &[
    "SPL_MCPS_0_ID",
    "SPL_MCPS_0_COMMAND",
    "SPL_MCPS_0_ARGS",
    "SPL_MCPS_0_URL",
    "SPL_MCPS_0_INCLUDE_TOOLS",
    "SPL_MCPS_0_EXCLUDE_TOOLS",
    "SPL_MCPS_0_NETWORK",
    "SPL_MCPS_0_SAMPLING",
];

/// Returns true if a variable belongs to this family.
pub(crate) fn is_variable(name: &str) -> bool {
    split(name).is_some()
}

/// Splits `SPL_MCPS_2_ARGS` or `MCPS_2_ARGS` into index and suffix.
fn split(name: &str) -> Option<(u32, &str)> {
    let rest = name.strip_prefix("SPL_").unwrap_or(name);
    let (index, suffix) = rest.strip_prefix("MCPS_")?.split_once('_')?;
    let is_known = suffix == "ID" || SUFFIXES.iter().any(|(known, _)| *known == suffix);
    let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
    let index = index.parse().ok().filter(|_| is_number && is_known)?;
    Some((index, suffix))
}

/// Reads the servers with their fields.
pub(crate) fn read(
    members: Vec<Member>,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> Members {
    let mut servers = Members::new();
    for member in members {
        if is_name(&member.name) {
            servers.insert(member.name, member.fields);
        } else {
            refuse_name(&member.name, member.source, problems);
        }
    }
    for (name, above) in of_variables(sources, problems) {
        overlay(servers.entry(name).or_default(), above);
    }
    for (name, fields) in &servers {
        check_server(name, fields, problems);
    }
    servers
}

/// A given value, even an empty list, replaces the old one; a missing value keeps it (S1.25, S1.26).
fn overlay(base: &mut Fields, above: Fields) {
    base.extend(above);
}

fn of_variables(sources: &Sources, problems: &mut Vec<Problem>) -> Members {
    let names = sources.env.iter();
    let set = names.filter(|(_, value)| !value.trim().is_empty());
    let mut indexes: Vec<u32> = set.filter_map(|(name, _)| Some(split(name)?.0)).collect();
    indexes.sort_unstable();
    indexes.dedup();
    let mut servers = Members::new();
    let mut named_by: BTreeMap<String, Source> = BTreeMap::new();
    for index in indexes {
        let Some((name, source)) = name_of(index, sources, problems) else {
            continue;
        };
        if let Some(first) = named_by.get(&name) {
            problems.push(Problem {
                path: format!("{}.{name}", SERVERS.key),
                source: Some(source),
                what: format!("{first} names the same server"),
                accepted: "another name".to_owned(),
            });
            continue;
        }
        let fields = fields_of(index, &name, sources, problems);
        named_by.insert(name.clone(), source);
        servers.insert(name, fields);
    }
    servers
}

fn given(index: u32, suffix: &str, sources: &Sources) -> Option<(super::Raw, Source)> {
    let names = [
        format!("SPL_MCPS_{index}_{suffix}"),
        format!("MCPS_{index}_{suffix}"),
    ];
    variable(names.iter().map(String::as_str), sources)
}

fn name_of(index: u32, sources: &Sources, problems: &mut Vec<Problem>) -> Option<(String, Source)> {
    let Some((raw, source)) = given(index, "ID", sources) else {
        problems.push(Problem {
            path: format!("SPL_MCPS_{index}_ID"),
            source: None,
            what: "it is not set, though other variables of this server are".to_owned(),
            accepted: "the server's name".to_owned(),
        });
        return None;
    };
    let super::Raw::Text(text) = raw else {
        return None;
    };
    let name = text.trim();
    if is_name(name) {
        return Some((name.to_owned(), source));
    }
    refuse_name(name, source, problems);
    None
}

fn refuse_name(name: &str, source: Source, problems: &mut Vec<Problem>) {
    problems.push(Problem {
        path: SERVERS.shown.to_owned(),
        source: Some(source),
        what: format!("{} is no name of a server", quote(&serde_json::json!(name))),
        accepted: "1 to 64 letters, digits, `_` or `-`".to_owned(),
    });
}

fn fields_of(index: u32, name: &str, sources: &Sources, problems: &mut Vec<Problem>) -> Fields {
    let mut fields = Fields::new();
    for (suffix, field) in SUFFIXES {
        let Some((raw, source)) = given(index, suffix, sources) else {
            continue;
        };
        let found = SERVERS.fields.iter().find(|known| known.name == *field);
        let checked = found.and_then(|field: &Field| {
            let checked = checked_field(&SERVERS, name, field, (&raw, &source), problems);
            Some((field.name, checked?))
        });
        fields.extend(checked);
    }
    fields
}

/// Refuses a server that can never start.
fn check_server(name: &str, fields: &Fields, problems: &mut Vec<Problem>) {
    if has_problem(&SERVERS, name, problems) {
        return;
    }
    let has = |field: &str| fields.contains_key(field);
    let mut refuse = |field: &str, what: String, accepted: &str| {
        problems.push(Problem {
            path: path(&SERVERS, name, field),
            source: None,
            what,
            accepted: accepted.to_owned(),
        });
    };
    if has("command") && has("url") && !has("transport") {
        let what = "`command` and `url` are both set".to_owned();
        refuse(
            "transport",
            what,
            "one of them, or a word that says which counts",
        );
        return;
    }
    let config = fields.iter();
    let config = config.map(|(name, field)| ((*name).to_owned(), field.value.clone()));
    let config = serde_json::Value::Object(config.collect());
    // Every field was checked, so this succeeds; if not, loading reports the error.
    let Ok(config) = serde_json::from_value::<McpServerConfig>(config) else {
        return;
    };
    let (needed, accepted) = match config.transport() {
        McpTransport::Stdio => ("command", "the program, or a `url`"),
        McpTransport::StdioDocker => ("containerImage", "the image"),
        McpTransport::Http | McpTransport::Sse => ("url", "the server's address"),
    };
    if !has(needed) {
        let transport = config.transport().as_str();
        let what = format!("a server of transport `{transport}` needs it");
        refuse(needed, what, accepted);
    }
}
