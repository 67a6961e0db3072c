//! A changed entry that goes elsewhere: what was given for one address or program is not handed to
//! another without the people who know it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use url::Url;

use super::masking::hidden;
use crate::domain::{McpServerConfig, McpWorkspace};
use crate::mcp::MASK;
use crate::mcp::config::{EntryProblem, Reference, References, expand_text, references};
use crate::servers::error::Error;
use crate::servers::mcp_registry::FilledEntry;

const AGAIN: &str =
    "it was given for another address or program: give it again, or `null` for none";

/// Whether what the entry sends, or what it runs with, would reach somebody else: another origin,
/// another program. Another path of the same origin is the same somebody.
pub(crate) fn goes_elsewhere(old: &McpServerConfig, new: &McpServerConfig) -> bool {
    let program = |config: &McpServerConfig| {
        let McpServerConfig {
            command,
            args,
            cwd,
            container_image,
            bundle,
            ..
        } = config.clone();
        let files = bundle.map(|bundle| bundle.sha256);
        (
            command,
            args,
            cwd,
            container_image,
            files,
            config.transport(),
        )
    };
    let origin = |config: &McpServerConfig| config.url.as_deref().map(origin);
    program(old) != program(new) || origin(old) != origin(new)
}

/// Scheme, host and port; the whole text where only its references decide them.
fn origin(url: &str) -> String {
    let known = if references(url).is_empty() {
        Some(url)
    } else {
        before_path(url).filter(|before| references(before).is_empty())
    };
    let parsed = known.and_then(|known| Url::parse(known).ok());
    let origin = parsed.map(|url| url.origin());
    match origin.filter(url::Origin::is_tuple) {
        Some(origin) => origin.ascii_serialization(),
        None => url.to_owned(),
    }
}

fn before_path(url: &str) -> Option<&str> {
    let host = url.find("://")? + "://".len();
    let rest = url.get(host..)?;
    let length = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    url.get(..host + length)
}

/// Whether a secret that is set or replaced sends the entry elsewhere: the address that its references
/// lead to has another origin with the new secrets than with the old ones.
pub(crate) fn leads_elsewhere(
    config: &McpServerConfig,
    (old, new): (&References<'_>, &References<'_>),
) -> bool {
    let lead = |from| {
        let url = config.url.as_deref()?;
        // What follows the host leads nowhere else, set or not.
        let address = before_path(url).and_then(|address| {
            let address = Url::parse(&expand_text(address, from).ok()?).ok()?;
            Some(address.origin()).filter(url::Origin::is_tuple)
        });
        match address {
            Some(origin) => Some(origin.ascii_serialization()),
            None => Some(origin(&expand_text(url, from).ok()?)),
        }
    };
    // What leads nowhere yet gets nothing.
    lead(new).is_some_and(|new| lead(old) != Some(new))
}

/// What an entry would hand to the address that a secret leads to, and that was given for another:
/// hidden values, and the other secrets that are set, but for those that are parts of the address.
pub(crate) fn kept_for_another(
    config: &McpServerConfig,
    (secret, others): (&str, &[String]),
) -> Vec<EntryProblem> {
    let address = config.url.as_deref().and_then(before_path);
    // What stands before the `@` is sent.
    let address = address.filter(|address| !address.contains('@'));
    let parts = address.map(references).unwrap_or_default();
    let kept = others.iter().filter(|other| {
        other.as_str() != secret && !parts.contains(&Reference::Secret((*other).clone()))
    });
    let kept = kept.map(|other| format!("secrets.{other}"));
    let values = kept_values((config, config), &Value::Null);
    let fields = values.into_iter().map(|value| value.field).chain(kept);
    let problem = |field| EntryProblem {
        field,
        message: format!(
            "it was given for another address than the one that the secret `{secret}` would lead \
             to: remove it, set `{secret}`, then give it again"
        ),
    };
    fields.map(problem).collect()
}

/// Values that nobody gets to see and that the change did not give again.
pub(crate) fn kept_values(
    (old, new): (&McpServerConfig, &McpServerConfig),
    patch: &Value,
) -> Vec<EntryProblem> {
    type Map = BTreeMap<String, String>;
    let maps: [(&str, &Map, &Map); 3] = [
        ("env", &old.env, &new.env),
        ("containerEnv", &old.container_env, &new.container_env),
        ("headers", &old.headers, &new.headers),
    ];
    let mut found = Vec::new();
    for (field, old, new) in maps {
        for (name, value) in new {
            let given = patch.get(field).and_then(|map| map.get(name));
            let is_given = given.is_some_and(|given| given != MASK);
            if !is_given && old.get(name) == Some(value) && hidden(value) == MASK {
                found.push(EntryProblem {
                    field: format!("{field}.{name}"),
                    message: AGAIN.to_owned(),
                });
            }
        }
    }
    let secret = |config: &McpServerConfig| config.oauth.as_ref()?.client_secret.clone();
    let given = patch
        .pointer("/oauth/clientSecret")
        .filter(|given| *given != MASK);
    let kept = secret(new).filter(|secret| hidden(secret) == MASK);
    if given.is_none() && kept.is_some() && kept == secret(old) {
        found.push(EntryProblem {
            field: "oauth.clientSecret".to_owned(),
            message: AGAIN.to_owned(),
        });
    }
    found
}

/// The secrets that would go in on the way to other hosts than before, or that the program itself would
/// get.
pub(crate) fn sent_elsewhere(old: &McpServerConfig, new: &McpServerConfig) -> BTreeSet<String> {
    let (old, new) = (&old.secret_hosts, &new.secret_hosts);
    let names = old.keys().chain(new.keys());
    let moved = names.filter(|name| old.get(*name) != new.get(*name));
    moved.cloned().collect()
}

/// A secret that is set. Whether the entry names it now does not matter: it could later.
pub(crate) fn kept_secret(server: &str, secret: &str) -> EntryProblem {
    EntryProblem {
        field: format!("secrets.{secret}"),
        message: format!(
            "it was given for another address or program: remove it (`DELETE \
             /api/mcp/{server}/secrets/{secret}`), make this change, then set it again"
        ),
    }
}

/// An entry with what a newer bundle became; what people decided about it stays.
pub(super) fn replaced(
    old: &McpServerConfig,
    entry: &FilledEntry,
) -> Result<McpServerConfig, Error> {
    let filled: McpServerConfig = serde_json::from_value(entry.config.clone())
        .map_err(|error| Error::invalid("config", error.to_string()))?;
    // What the program was not to have, it does not get now.
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
        // Other packages, to whose code nobody said yes.
        allow_scripts: false,
        description: filled.description,
        network: filled.network.or_else(|| old.network.clone()),
        secret_hosts,
        workspace,
        ..old.clone()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{goes_elsewhere, kept_values, replaced};
    use crate::domain::McpServerConfig;
    use crate::servers::mcp_registry::FilledEntry;

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
    fn another_origin_or_program_is_elsewhere_and_another_path_is_not() {
        let check = |old: Value, new: Value, expected: bool| {
            let moved = goes_elsewhere(&config(old.clone()), &config(new.clone()));
            assert_eq!(moved, expected, "{old} {new}");
        };
        let at = |url: &str| json!({ "url": url });
        let old = at("https://e.test/mcp?k=1");
        check(old.clone(), at("https://E.test:443/other"), false);
        check(old.clone(), at("https://e.test/${secret:A}"), false);
        for url in [
            "http://e.test/mcp",
            "https://e.test:444/mcp",
            "https://e.test.evil.test/mcp",
            "https://e.test@evil.test/mcp",
            "https://e.test${secret:A}/mcp",
            "https:///evil.test/${secret:A}",
            "https://evil.test\\e.test/${secret:A}",
            "${secret:A}://e.test/mcp",
        ] {
            check(old.clone(), at(url), true);
        }
        let hidden = at("https://${secret:HOST}/mcp");
        check(hidden.clone(), hidden.clone(), false);
        check(hidden.clone(), at("https://${secret:HOST}.evil/mcp"), true);
        check(hidden, at("https://evil.test/${secret:HOST}"), true);
        check(old, json!({ "command": "x" }), true);
        let old = json!({ "command": "x", "args": ["a"] });
        check(
            old.clone(),
            json!({ "command": "x", "args": ["a"], "timeout": 5, "description": "d" }),
            false,
        );
        check(old.clone(), json!({ "command": "y", "args": ["a"] }), true);
        check(old.clone(), json!({ "command": "x", "args": ["b"] }), true);
        check(old, json!({ "containerImage": "x", "args": ["a"] }), true);
        let image = json!({ "containerImage": "x" });
        check(image.clone(), image.clone(), false);
        check(image, json!({ "containerImage": "y" }), true);
    }

    #[test]
    fn a_hidden_value_is_kept_unless_it_is_given_again() {
        let old = config(json!({
            "url": "https://e.test", "headers": {"A": "one", "B": "two", "C": "", "D": "four"},
        }));
        let mut new = old.clone();
        new.headers.remove("D");
        let patch = json!({ "headers": {"A": "one", "B": "••••", "D": null} });
        let found = kept_values((&old, &new), &patch);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["headers.B"]);
        let found = kept_values((&old, &old), &json!({ "url": "https://evil" }));
        assert_eq!(found.len(), 3);
    }
}
