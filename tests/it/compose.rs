//! `docker-compose.yml` passes on every setting that it does not decide itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sepal::config::table::{Definition, FAMILIES, SETTINGS};
use serde_json::Value;

/// How many MCP servers the environment can name: compose passes on names, not patterns.
const MCP_SERVERS: usize = 10;

/// Settings that compose or its image decides, and the reason.
const FIXED: &[(&str, &str)] = &[
    (
        "runtime.transports.http.host",
        "the container's own address; SEPAL_BIND is that of the machine",
    ),
    (
        "runtime.transports.http.port",
        "the container's own port; SEPAL_PORT is that of the machine",
    ),
    ("store.data_dir", "the volume `mcp-config`"),
    ("store.redis_url", "the service `redis`"),
    (
        "sandbox.driver",
        "the container has neither bubblewrap nor the rights that it needs",
    ),
    ("sandbox.image", "the service `sandbox` builds it"),
    (
        "sandbox.docker_host",
        "the socket of the service `docker-proxy`; DOCKER_HOST is for compose itself",
    ),
];

fn is_fixed(definition: &Definition) -> bool {
    FIXED.iter().any(|(key, _)| *key == definition.key)
}

fn names(definition: &'static Definition) -> impl Iterator<Item = &'static str> {
    let vendors = definition.vendor.iter().map(|(_, name)| name);
    definition.env.iter().chain(vendors).copied()
}

/// Every variable that the server gets from the environment of compose, in the table's order.
pub(crate) fn passed_on() -> Vec<String> {
    let settings = SETTINGS.iter().filter(|definition| !is_fixed(definition));
    let settings = settings.flat_map(names).map(str::to_owned);
    let members = FAMILIES.iter().flat_map(|family| {
        let is_counted = family.env.iter().any(|(name, _)| name.contains("<n>"));
        let members = if is_counted { MCP_SERVERS } else { 1 };
        (0..members).flat_map(|number| {
            let of_member = move |(name, _): &(&str, _)| name.replace("<n>", &number.to_string());
            family.env.iter().map(of_member)
        })
    });
    settings.chain(members).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// What the service `server` gets; null is what compose takes from its own environment.
fn environment() -> BTreeMap<String, Value> {
    let file: Value = serde_yaml_ng::from_str(&read("docker-compose.yml")).unwrap();
    serde_json::from_value(file["services"]["server"]["environment"].clone()).unwrap()
}

#[test]
fn compose_passes_on_every_setting_that_it_does_not_decide() {
    let environment = environment();
    for definition in SETTINGS.iter().filter(|definition| !is_fixed(definition)) {
        for name in names(definition) {
            assert_eq!(
                environment.get(name),
                Some(&Value::Null),
                "`{name}` of `{}` does not reach the server: `./run generate` lists it in \
                 docker-compose.yml",
                definition.key
            );
        }
    }
    for (name, _) in FAMILIES.iter().flat_map(|family| family.env) {
        for number in 0..MCP_SERVERS {
            let name = name.replace("<n>", &number.to_string());
            assert_eq!(environment.get(&name), Some(&Value::Null), "`{name}`");
        }
    }
    let known = passed_on();
    for (name, value) in environment {
        let is_known = known.contains(&name);
        assert_eq!(value.is_null(), is_known, "`{name}` is no such setting");
    }
}

#[test]
fn what_compose_decides_has_a_value_there_or_in_the_image() {
    let environment = environment();
    let image = read("docker/Dockerfile");
    let image: Vec<&str> = image
        .lines()
        .filter_map(|line| line.strip_prefix("ENV "))
        .flat_map(str::split_whitespace)
        .filter_map(|pair| Some(pair.split_once('=')?.0))
        .collect();
    for (key, reason) in FIXED {
        let definition = SETTINGS.iter().find(|definition| definition.key == *key);
        let definition = definition.unwrap_or_else(|| panic!("there is no setting `{key}`"));
        let is_decided = names(definition).any(|name| {
            let here = environment.get(name);
            here.is_some_and(|value| !value.is_null()) || image.contains(&name)
        });
        assert!(is_decided, "nothing decides `{key}` ({reason})");
    }
}
