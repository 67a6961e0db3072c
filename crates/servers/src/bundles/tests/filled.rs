//! Tests that answers become entries, and that secrets stay apart.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::facts::BundleFacts;
use super::super::filling;
use super::{MOST, facts, inspect, manifest, pack, with};

fn wanting() -> BundleFacts {
    let mut manifest = with(
        "/server/mcp_config",
        json!({
            "command": "node",
            "args": ["server/index.js", "${user_config.folders}", "--limit=${user_config.limit}", "${user_config.extra}"],
            "env": {
                "API_KEY": "${user_config.api_key}", "AUTH": "Bearer ${user_config.api_key}",
                "MODE": "${user_config.mode}", "DEBUG": "${user_config.debug}", "ALL": "${user_config.folders}",
            },
        }),
    );
    manifest["user_config"] = json!({
        "folders": {"type": "directory", "title": "Folders", "multiple": true, "default": ["${HOME}/a", "${DESKTOP}"]},
        "limit": {"type": "number", "title": "Limit", "min": 1, "max": 10, "default": 5},
        "api_key": {"type": "string", "title": "Key", "sensitive": true, "required": true, "default": "x"},
        "mode": {"type": "string", "title": "Mode"},
        "debug": {"type": "boolean", "title": "Debug", "default": false},
        "extra": {"type": "string", "title": "Extra"},
    });
    facts(&manifest)
}

fn answers(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    let given = given.iter();
    given
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn values_come_into_words_and_variables_and_secrets_stay_apart() {
    let facts = wanting();
    let given = answers(&[
        ("folders", "docs\n/workspace/src/\n"),
        ("api_key", "sesame"),
        ("limit", "7"),
    ]);
    let filled = filling::fill(&facts, "ab", &given, Some(&["api.test".to_owned()])).unwrap();
    assert_eq!(filled.name, "notes");
    assert_eq!(filled.secrets["API_KEY"], "sesame");
    assert_eq!(
        filled.config,
        json!({
            "transport": "stdio", "command": "node", "description": "Keeps notes.",
            "args": ["/packages/bundle/server/index.js", "/workspace/docs", "/workspace/src", "--limit=7"],
            "env": {
                "API_KEY": "${secret:API_KEY}", "AUTH": "Bearer ${secret:API_KEY}", "DEBUG": "false",
                "ALL": "/workspace/docs,/workspace/src",
            },
            "bundle": {"sha256": "ab", "values": {
                "folders": "/workspace/docs\n/workspace/src", "limit": "7", "debug": "false",
            }},
            "network": ["api.test"], "workspace": "rw",
        })
    );
    assert!(!filled.config.to_string().contains("sesame"));
    let key = answers(&[("api_key", "k")]);
    let least = filling::fill(&facts, "ab", &key, None).unwrap();
    assert_eq!(least.config["args"][1], "/workspace");
    assert_eq!(least.config["args"][2], "--limit=5");
    assert_eq!(least.config.get("network"), None);
    let closed = filling::fill(&facts, "ab", &key, Some(&[])).unwrap();
    assert_eq!(closed.config["network"], json!([]));
}

#[test]
fn values_are_asked_for_in_the_order_of_their_author() {
    let text = manifest().to_string();
    let values =
        r#""user_config":{"z":{"type":"string"},"a":{"type":"file"},"m":{"type":"number"}}"#;
    let text = text.replacen('{', &format!("{{{values},"), 1);
    let files: [(&str, &[u8], u32); 2] = [
        ("manifest.json", text.as_bytes(), 0o644),
        ("server/index.js", b"1", 0o644),
    ];
    let facts = inspect(&pack(&files), MOST).unwrap();
    let keys: Vec<&str> = facts.values.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["z", "a", "m"]);
}

#[test]
fn answers_that_do_not_fit_are_all_named() {
    let facts = wanting();
    let check = |given: &[(&str, &str)], expected: &[(&str, &str)]| {
        let found = filling::fill(&facts, "ab", &answers(given), None).unwrap_err();
        for (field, words) in expected {
            let said = found
                .iter()
                .any(|it| it.field == *field && it.message.contains(words));
            assert!(said, "{field} {words}: {found:?}");
        }
        assert_eq!(found.len(), expected.len(), "{found:?}");
    };
    check(&[], &[("values.api_key", "needs this value")]);
    check(
        &[
            ("api_key", "k"),
            ("limit", "11"),
            ("debug", "yes"),
            ("folders", "ok\n/etc"),
            ("other", "x"),
        ],
        &[
            ("values.limit", "10 at most"),
            ("values.debug", "true, false"),
            ("values.folders", "below `/workspace`"),
            ("values.other", "does not ask"),
        ],
    );
    for (limit, words) in [
        ("0", "1 at least"),
        ("many", "not a number"),
        ("NaN", "not a number"),
    ] {
        check(
            &[("api_key", "k"), ("limit", limit)],
            &[("values.limit", words)],
        );
    }
    for folder in ["../x", "~/x", "/workspaces", "a/../../b"] {
        let given = [("api_key", "k"), ("folders", folder)];
        check(&given, &[("values.folders", "below `/workspace`")]);
    }
    check(&[("api_key", "k\0")], &[("values.api_key", "NUL")]);
}

#[test]
fn a_secret_on_the_command_line_comes_by_a_variable() {
    let mut manifest = with(
        "/server/mcp_config/args",
        json!(["server/index.js", "it's", "--token=${user_config.token}!"]),
    );
    manifest["user_config"] =
        json!({"token": {"type": "string", "title": "Token", "sensitive": true}});
    let facts = facts(&manifest);
    let given = answers(&[("token", "sesame")]);
    let filled = filling::fill(&facts, "ab", &given, None).unwrap();
    assert_eq!(filled.config["command"], "/bin/sh");
    let script = r#"exec 'node' '/packages/bundle/server/index.js' 'it'\''s' '--token='"${BUNDLE_TOKEN}"'!'"#;
    assert_eq!(filled.config["args"], json!(["-c", script]));
    assert_eq!(
        filled.config["env"],
        json!({"BUNDLE_TOKEN": "${secret:TOKEN}"})
    );
    let without = filling::fill(&facts, "ab", &BTreeMap::new(), None).unwrap();
    assert_eq!(without.config["args"][2], "--token=!");
}
