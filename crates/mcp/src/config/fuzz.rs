//! Fuzzes `mcp-config.json` and single entries, in every spelling that other programs use.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::file::{parse, state_of};
use super::pasted::servers_of;
use super::{Author, References, as_image, entry_problems, expand, name_problem, read_pasted};
use sepal_core::domain::{McpServerConfig, McpTransport};

#[test]
fn mcp_config() {
    sepal_fuzz::check("mcp_config", |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        if let Ok(entry) = serde_json::from_str::<McpServerConfig>(text) {
            check_entry(&entry);
        }
        for server in read_pasted(text).servers {
            assert_eq!(name_problem(&server.name), None);
            check_entry(&server.config);
        }
        if let Ok(odd) = serde_json::from_str(text) {
            check_neighbours(&odd);
        }
        let Ok(root) = parse(text) else { return };
        let state = state_of(&root);
        assert!(state.problems.len() + state.servers.len() <= 1 + entries(&Value::Object(root)));
        for (name, entry) in &state.servers {
            assert_eq!(name_problem(name), None);
            assert!(entry_problems(entry, Author::Operator).is_empty());
            check_entry(entry);
        }
    });
}

/// One odd entry changes only itself, in a pasted text and in the installation's own file.
fn check_neighbours(odd: &Value) {
    let entry = |command: &str| json!({"command": command});
    let file = json!({"mcpServers": {"a": entry("one"), "odd": odd, "z": entry("two")}});
    let text = file.to_string();
    let pasted = read_pasted(&text).servers;
    let commands = |name: &str| {
        let server = pasted.iter().find(|server| server.name == name);
        server.and_then(|server| server.config.command.clone())
    };
    assert_eq!(commands("a").as_deref(), Some("one"), "{odd}");
    assert_eq!(commands("z").as_deref(), Some("two"), "{odd}");
    let state = state_of(&parse(&text).unwrap());
    let has = |name: &str| state.servers.contains_key(name);
    assert!(has("a") && has("z"), "{odd}: {:?}", state.problems);
}

fn entries(root: &Value) -> usize {
    let servers = root.as_object().and_then(servers_of);
    servers.map_or(0, |(_, servers)| servers.len())
}

/// Checks that an entry reads back as written, and that the part that runs is the part that was checked.
fn check_entry(entry: &McpServerConfig) {
    let again = serde_json::from_value::<McpServerConfig>(json!(entry)).unwrap();
    assert_eq!(again, *entry);
    let by_person = entry_problems(entry, Author::Person);
    let by_operator = entry_problems(entry, Author::Operator);
    assert!(
        by_operator.len() <= by_person.len(),
        "a person may not more"
    );
    if let Ok(image) = as_image(entry) {
        let is_docker = entry.args.first().is_some_and(|word| word == "run")
            && matches!(entry.command.as_deref(), Some("docker" | "podman"))
            && entry.transport() == McpTransport::Stdio;
        assert_eq!(
            is_docker,
            image != *entry,
            "only `docker run` becomes an image"
        );
        assert!(!is_docker || image.command.is_none());
    }
    if !by_person.is_empty() {
        return;
    }
    let secrets = [("A", "secret-a"), ("TOKEN", "secret-token")];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let from = References {
        environment: None,
        secrets: BTreeMap::from(secrets),
    };
    // An accepted entry of a person never reads the gateway's environment.
    match expand(entry, &from) {
        Ok(expanded) => {
            assert!(expanded.environment.len() <= entry.env.len() + entry.container_env.len());
        }
        Err(missing) => assert!(matches!(missing, super::Missing::Secret(_)), "{missing}"),
    }
}
