//! Decides when the secrets of an entry have to be given again: whenever its program does, sees or reaches
//! something else, because the person who makes that change may not know the secrets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use url::Url;

use super::masking::{is_secret, shown_text};
use crate::error::Error;
use crate::mcp_registry::FilledEntry;
use sepal_core::domain::{McpServerConfig, McpWorkspace};
use sepal_mcp::MASK;
use sepal_mcp::config::{EntryProblem, Reference, References, expand_text, references};

const AGAIN: &str =
    "it was given for another address or program: give it again, or `null` for none";

/// The fields that do not affect what a server does, sees or reaches: they change only what people read,
/// which of its tools sessions get, and the resources of a call. All other fields count, including fields
/// that are added later.
const HARMLESS: [&str; 10] = [
    "containerCpu",
    "containerMemory",
    "description",
    "enabled",
    "excludeTools",
    "includeTools",
    "sampling",
    "timeout",
    "toolPrefix",
    "trusted",
];

/// Returns true if a change affects what the server does, sees or reaches: its program and arguments,
/// variables, image, files, hosts, address with its path, headers and so on.
pub(crate) fn changes_reach(old: &McpServerConfig, new: &McpServerConfig) -> bool {
    let deciding = |config: &McpServerConfig| {
        let config = McpServerConfig {
            // Different spellings of the same value are equal.
            transport: Some(config.transport()),
            network: config.network.clone().filter(|it| !it.hosts().is_empty()),
            ..config.clone()
        };
        let mut fields = serde_json::to_value(config).unwrap_or_default();
        if let Value::Object(fields) = &mut fields {
            fields.retain(|name, _| !HARMLESS.contains(&name.as_str()));
        }
        fields
    };
    deciding(old) != deciding(new)
}

/// Returns the part of an address before its path.
fn before_path(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + "://".len());
    let rest = url.get(host..).unwrap_or_default();
    let length = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    url.get(..host + length).unwrap_or(url)
}

/// Returns the part of an address before its query.
fn before_query(url: &str) -> &str {
    let length = url.find(['?', '#']).unwrap_or(url.len());
    url.get(..length).unwrap_or(url)
}

/// The address of an entry once certain secrets are filled in; `None` while one of them is missing, because
/// then nothing is sent.
#[derive(Default)]
struct Lead {
    /// Scheme, host and port.
    origin: Option<String>,
    /// Everything up to the query.
    address: Option<String>,
}

fn lead(config: &McpServerConfig, from: &References<'_>) -> Lead {
    let Some(url) = &config.url else {
        return Lead::default();
    };
    let origin = expand_text(before_path(url), from).ok().map(|text| {
        let origin = Url::parse(&text).map(|url| url.origin()).ok();
        let origin = origin.filter(url::Origin::is_tuple);
        origin.map_or(text, |origin| origin.ascii_serialization())
    });
    let address = expand_text(before_query(url), from).ok().map(|text| {
        let parsed = Url::parse(&text).ok().filter(Url::has_host);
        parsed.map_or(text, |mut url| {
            url.set_query(None);
            url.set_fragment(None);
            url.into()
        })
    });
    Lead { origin, address }
}

/// Returns true if setting or replacing a secret changes the server's address, up to its query. A secret in a
/// header or a variable does not.
pub(crate) fn leads_elsewhere(
    config: &McpServerConfig,
    old: &References<'_>,
    new: &References<'_>,
) -> bool {
    let new = lead(config, new).address;
    // An incomplete address is sent nothing.
    new.is_some() && new != lead(config, old).address
}

/// Returns the values that the entry would send to the new address although they were given for another:
/// hidden values, and the other secrets that are set, except those that are part of the new address.
pub(crate) fn kept_for_another(
    config: &McpServerConfig,
    secret: &str,
    old: &References<'_>,
    new: &References<'_>,
) -> Vec<EntryProblem> {
    let url = config.url.as_deref().unwrap_or_default();
    let part = if lead(config, old).origin == lead(config, new).origin {
        before_query(url)
    } else {
        before_path(url)
    };
    // The part before the `@` is sent as credentials.
    let part = Some(part).filter(|part| !part.contains('@'));
    let parts = part.map(references).unwrap_or_default();
    let kept = old.secrets.keys().filter(|other| {
        other.as_str() != secret && !parts.contains(&Reference::Secret((*other).clone()))
    });
    let kept = kept.map(|other| format!("secrets.{other}"));
    let values = kept_values(config, config, &Value::Null);
    let values = values.into_iter().map(|value| value.field);
    let problem = |field| EntryProblem {
        field,
        message: format!(
            "it was given for another address than the one that the secret `{secret}` would lead \
             to: remove it, set `{secret}`, then give it again"
        ),
    };
    values.chain(kept).map(problem).collect()
}

/// Returns the hidden values that the change keeps and does not give again.
pub(crate) fn kept_values(
    old: &McpServerConfig,
    new: &McpServerConfig,
    patch: &Value,
) -> Vec<EntryProblem> {
    let (mut old, mut new) = (old.clone(), new.clone());
    let old: BTreeSet<(String, String)> = old
        .private_texts()
        .into_iter()
        .map(|(field, value)| (field, value.clone()))
        .collect();
    let mut found = Vec::new();
    for (field, value) in new.private_texts() {
        let given = field.split_once('.').map_or_else(
            || patch.get(&field),
            |(map, name)| patch.get(map).and_then(|map| map.get(name)),
        );
        let is_given = given.is_some_and(|given| {
            let shown = shown_text(&field, value);
            given != MASK && *given != shown
        });
        let is_kept = is_secret(&field, value) && old.contains(&(field.clone(), value.clone()));
        if is_kept && !is_given {
            found.push(EntryProblem {
                field,
                message: AGAIN.to_owned(),
            });
        }
    }
    found
}

/// The problem of a secret that is set. It counts even if the entry does not name it now, because it could
/// later.
pub(crate) fn kept_secret(server: &str, secret: &str) -> EntryProblem {
    EntryProblem {
        field: format!("secrets.{secret}"),
        message: format!(
            "it was given for another address or program: remove it (`DELETE \
             /api/mcp/{server}/secrets/{secret}`), make this change, then set it again"
        ),
    }
}

/// Returns an entry with the configuration that a newer bundle gives; people's decisions about the server are
/// kept.
pub(super) fn replaced(
    old: &McpServerConfig,
    entry: &FilledEntry,
) -> Result<McpServerConfig, Error> {
    let filled: McpServerConfig = serde_json::from_value(entry.config.clone())
        .map_err(|error| Error::invalid("config", error.to_string()))?;
    // The hosts of secrets that the new bundle does not use are dropped.
    let mut secret_hosts = old.secret_hosts.clone();
    secret_hosts.retain(|secret, _| entry.secrets.contains_key(secret));
    let workspace = match old.workspace {
        McpWorkspace::None => filled.workspace,
        kept @ (McpWorkspace::Ro | McpWorkspace::Rw) => kept,
    };
    Ok(McpServerConfig {
        command: filled.command,
        args: filled.args,
        env: filled.env,
        bundle: filled.bundle,
        // The packages differ, and nobody allowed scripts for them.
        allow_scripts: false,
        description: filled.description,
        container_env: BTreeMap::new(),
        network: filled.network.or_else(|| old.network.clone()),
        secret_hosts,
        workspace,
        ..old.clone()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::{HARMLESS, changes_reach, kept_values, replaced};
    use crate::mcp_registry::FilledEntry;
    use sepal_core::domain::{
        McpBundle, McpNetwork, McpOAuth, McpServerConfig, McpTransport, McpWorkspace,
    };

    fn config(config: Value) -> McpServerConfig {
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn a_newer_bundle_keeps_limits_and_has_to_be_allowed_its_scripts_again() {
        let old = config(json!({
            "command": "python3", "bundle": {"sha256": "a"}, "allowScripts": true, "timeout": 9,
        }));
        assert!(old.allow_scripts);
        let entry = FilledEntry {
            name: "it".to_owned(),
            config: json!({"command": "python3", "bundle": {"sha256": "b"}}),
            secrets: BTreeMap::new(),
        };
        let new = replaced(&old, &entry).unwrap();
        assert_eq!(new.bundle.unwrap().sha256, "b");
        assert_eq!((new.allow_scripts, new.timeout), (false, old.timeout));
    }

    #[test]
    fn a_newer_bundle_keeps_the_hosts_unless_others_or_none_are_named() {
        let check = |filled: Value, expected: &[&str]| {
            let old = config(json!({
                "command": "node", "bundle": {"sha256": "a"}, "network": ["old.test"],
            }));
            let mut entry = json!({"command": "node", "bundle": {"sha256": "b"}});
            if !filled.is_null() {
                entry["network"] = filled;
            }
            let entry = FilledEntry {
                name: "it".to_owned(),
                config: entry,
                secrets: BTreeMap::new(),
            };
            let new = replaced(&old, &entry).unwrap();
            let hosts = new.network.as_ref().map_or(&[][..], McpNetwork::hosts);
            assert_eq!(hosts, expected);
        };
        check(Value::Null, &["old.test"]);
        check(json!(["new.test"]), &["new.test"]);
        check(json!([]), &[]);
    }

    /// For each field of an entry, another value, and true if it affects what the server does, sees or
    /// reaches.
    fn changes() -> Vec<(&'static str, Value, bool)> {
        vec![
            ("allowScripts", json!(true), true),
            ("args", json!(["other"]), true),
            ("bundle", json!({"sha256": "a", "values": {"k": "v"}}), true),
            ("command", json!("other"), true),
            ("containerCpu", json!(2.0), false),
            ("containerEnv", json!({"A": "one", "B": "two"}), true),
            ("containerImage", json!("other"), true),
            ("containerMemory", json!(2), false),
            ("cwd", json!("other"), true),
            ("description", json!("other"), false),
            ("enabled", json!(false), false),
            (
                "env",
                json!({"A": "one", "NODE_OPTIONS": "--import=data:,"}),
                true,
            ),
            ("excludeTools", json!(["other"]), false),
            ("headers", json!({"A": "one", "Host": "evil.test"}), true),
            ("includeTools", json!(["other"]), false),
            ("network", json!(["evil.test"]), true),
            (
                "oauth",
                json!({"clientId": "other", "clientSecret": "one"}),
                true,
            ),
            ("sampling", json!(true), false),
            ("secretHosts", json!({"S": ["other.test"]}), true),
            ("timeout", json!(2), false),
            ("toolPrefix", json!("other"), false),
            ("transport", json!("sse"), true),
            ("trusted", json!(true), false),
            ("url", json!("https://e.test/other"), true),
            ("workspace", json!("rw"), true),
        ]
    }

    /// An entry in which every field is set; a new field does not compile until it is added here.
    fn full() -> McpServerConfig {
        let map = || BTreeMap::from([("A".to_owned(), "one".to_owned())]);
        McpServerConfig {
            transport: Some(McpTransport::Http),
            enabled: true,
            description: Some("d".to_owned()),
            tool_prefix: Some("p".to_owned()),
            include_tools: Some(vec!["i".to_owned()]),
            exclude_tools: Some(vec!["e".to_owned()]),
            timeout: Some(1),
            trusted: false,
            sampling: false,
            command: Some("c".to_owned()),
            args: vec!["a".to_owned()],
            allow_scripts: false,
            bundle: Some(McpBundle {
                sha256: "a".to_owned(),
                values: BTreeMap::new(),
            }),
            env: map(),
            cwd: Some("w".to_owned()),
            container_image: Some("i".to_owned()),
            container_env: map(),
            container_memory: Some(1),
            container_cpu: Some(1.0),
            network: Some(McpNetwork::Hosts(vec!["e.test".to_owned()])),
            secret_hosts: BTreeMap::from([("S".to_owned(), vec!["e.test".to_owned()])]),
            workspace: McpWorkspace::Ro,
            url: Some("https://e.test/mcp?key=k".to_owned()),
            headers: map(),
            oauth: Some(McpOAuth {
                client_secret: Some("one".to_owned()),
                ..McpOAuth::default()
            }),
        }
    }

    /// Asserts that each field of an entry is classified, and that a change of each field that affects what
    /// the server does, sees or reaches requires every hidden value again.
    #[test]
    fn every_field_is_classed_and_a_change_of_one_that_decides_wants_the_secrets_again() {
        let old = full();
        let mut fields: BTreeSet<String> = BTreeSet::new();
        let mut all = serde_json::to_value(&old).unwrap();
        // Serialized only if set.
        for name in ["allowScripts", "sampling"] {
            all[name] = json!(true);
        }
        fields.extend(all.as_object().unwrap().keys().cloned());
        let classed: BTreeSet<String> = changes().iter().map(|it| it.0.to_owned()).collect();
        assert_eq!(fields, classed, "a field of the entry is not classed here");
        let hidden = [
            "containerEnv.A",
            "env.A",
            "headers.A",
            "oauth.clientSecret",
            "url",
        ];
        for (field, value, decides) in changes() {
            let mut changed = serde_json::to_value(&old).unwrap();
            changed[field] = value.clone();
            let new = config(changed);
            assert_ne!(old, new, "{field}");
            assert_eq!(changes_reach(&old, &new), decides, "{field}");
            assert_eq!(HARMLESS.contains(&field), !decides, "{field}");
            // The changed field itself is given with the change.
            let patch = json!({ field: if value.is_object() { json!({}) } else { value } });
            let kept = kept_values(&old, &new, &patch);
            let kept: BTreeSet<&str> = kept.iter().map(|it| it.field.as_str()).collect();
            let expected = hidden
                .into_iter()
                .filter(|it| field != "url" || *it != "url");
            assert_eq!(kept, expected.collect(), "{field}");
        }
    }

    #[test]
    fn spellings_of_the_same_entry_change_nothing() {
        let check = |old: Value, new: Value| {
            assert!(!changes_reach(&config(old), &config(new)));
        };
        let url = "https://e.test/mcp";
        check(
            json!({"url": url}),
            json!({"url": url, "transport": "http"}),
        );
        check(
            json!({"command": "x"}),
            json!({"command": "x", "network": "none"}),
        );
        check(
            json!({"command": "x"}),
            json!({"command": "x", "network": [], "env": {}, "args": [], "workspace": "none"}),
        );
    }

    #[test]
    fn a_hidden_value_is_kept_unless_it_is_given_again() {
        let old = config(json!({
            "url": "https://e.test", "headers": {"A": "one", "B": "two", "C": "", "D": "four"},
        }));
        let mut new = old.clone();
        new.headers.remove("D");
        let patch = json!({ "headers": {"A": "one", "B": "••••", "D": null} });
        let found = kept_values(&old, &new, &patch);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["headers.B"]);
        let found = kept_values(&old, &old, &json!({ "url": "https://evil" }));
        assert_eq!(found.len(), 3);
    }
}
