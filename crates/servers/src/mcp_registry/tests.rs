//! Tests of the entries that records of a registry become.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::format::Item;
use super::{FilledEntry, published, way};

fn item(server: &Value) -> Item {
    serde_json::from_value(json!({ "server": server })).unwrap()
}

fn of_package(package: &Value) -> Item {
    item(&json!({
        "name": "io.github.me/weather-mcp", "description": "Weather", "version": "2.0.1",
        "packages": [package],
    }))
}

fn fill(item: &Item, way: &str, values: &[(&str, &str)]) -> Result<FilledEntry, Vec<String>> {
    let values: BTreeMap<String, String> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    way::fill(item.server(), way, &values)
        .expect("the way is there")
        .map_err(|problems| {
            let lines = problems
                .iter()
                .map(|p| format!("{}: {}", p.field, p.message));
            lines.collect()
        })
}

/// A package with arguments and variables of every kind.
fn weather() -> Item {
    of_package(&json!({
        "registryType": "npm", "identifier": "@me/weather", "version": "1.4.0",
        "transport": { "type": "stdio" },
        "runtimeArguments": [{ "type": "named", "name": "--loglevel", "value": "error" }],
        "packageArguments": [
            { "type": "positional", "value": "serve" },
            { "type": "named", "name": "--units", "default": "metric", "choices": ["metric", "imperial"] },
            { "type": "named", "name": "--city", "description": "Where", "isRepeated": true },
            { "type": "named", "name": "--left-out" },
        ],
        "environmentVariables": [
            { "name": "API_KEY", "isSecret": true, "isRequired": true, "description": "From the site" },
            { "name": "HOST", "value": "https://{region}.example.com", "variables": {
                "region": { "isRequired": true, "placeholder": "eu" },
            } },
            { "name": "DEBUG", "format": "boolean" },
        ],
    }))
}

#[test]
fn a_package_is_pinned_and_its_words_stand_in_order() {
    let item = weather();
    let shown = published(&item);
    let [way] = &shown.ways[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (way.kind.as_str(), way.target.as_str()),
        ("npm", "@me/weather@1.4.0")
    );
    assert_eq!(way.lack, None);
    let keys: Vec<&str> = way
        .questions
        .iter()
        .map(|question| question.key.as_str())
        .collect();
    assert_eq!(
        keys,
        [
            "env.API_KEY",
            "env.HOST.region",
            "env.DEBUG",
            "argument.1",
            "argument.2",
            "argument.3"
        ]
    );

    let values = [
        ("env.API_KEY", "k-123"),
        ("env.HOST.region", "us"),
        ("argument.2", "Bern\nBasel"),
    ];
    let entry = fill(&item, "package-0", &values).unwrap();
    assert_eq!(entry.name, "weather-mcp");
    assert_eq!(
        entry.config,
        json!({
            "transport": "stdio", "command": "npx", "description": "Weather",
            "args": [
                "-y", "--loglevel", "error", "@me/weather@1.4.0", "serve", "--units", "metric",
                "--city", "Bern", "--city", "Basel",
            ],
            "env": { "API_KEY": "${secret:API_KEY}", "HOST": "https://us.example.com" },
        })
    );
    assert_eq!(
        entry.secrets,
        BTreeMap::from([("API_KEY".to_owned(), "k-123".to_owned())])
    );
}

#[test]
fn every_wrong_answer_is_named() {
    let item = of_package(&json!({
        "registryType": "pypi", "identifier": "weather", "version": "1.0",
        "transport": { "type": "stdio" },
        "environmentVariables": [
            { "name": "KEY", "isRequired": true },
            { "name": "PORT", "format": "number" },
            { "name": "MODE", "choices": ["a", "b"] },
            { "name": "DEBUG", "format": "boolean" },
        ],
    }));
    let values = [
        ("env.PORT", "many"),
        ("env.MODE", "c"),
        ("env.DEBUG", "yes"),
    ];
    let problems = fill(&item, "package-0", &values).unwrap_err();
    assert_eq!(
        problems,
        [
            "values.env.KEY: the server needs this value",
            "values.env.PORT: `many` is not a number",
            "values.env.MODE: possible are: a, b",
            "values.env.DEBUG: possible are: true, false",
        ]
    );
    let fine = [
        ("env.KEY", "x"),
        ("env.PORT", "8080"),
        ("env.MODE", "b"),
        ("env.DEBUG", "true"),
    ];
    let entry = fill(&item, "package-0", &fine).unwrap();
    assert_eq!(entry.config["command"], "uvx");
    assert_eq!(entry.config["args"], json!(["weather@1.0"]));
}

#[test]
fn an_address_takes_its_variables_and_headers() {
    let item = item(&json!({
        "name": "com.example/mcp", "description": "", "version": "1",
        "remotes": [
            { "type": "streamable-http", "url": "https://{tenant}.example.com/mcp?key={key}",
              "variables": { "tenant": {}, "key": { "isSecret": true } },
              "headers": [{ "name": "Authorization", "value": "Bearer {token}", "variables": {
                  "token": { "isSecret": true, "isRequired": true },
              } }] },
            { "type": "sse", "url": "https://old.example.com/sse" },
            { "type": "carrier-pigeon", "url": "https://old.example.com" },
        ],
    }));
    let kinds: Vec<_> = published(&item)
        .ways
        .into_iter()
        .map(|way| (way.kind, way.lack))
        .collect();
    assert_eq!(kinds[0], ("http".to_owned(), None));
    assert_eq!(kinds[1], ("sse".to_owned(), None));
    assert!(kinds[2].1.is_some(), "{kinds:?}");

    // Variables of an address are required, whatever the registry says.
    let problems = fill(&item, "remote-0", &[]).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
    let values = [
        ("url.tenant", "acme"),
        ("url.key", "s3cret"),
        ("header.Authorization.token", "t0k"),
    ];
    let entry = fill(&item, "remote-0", &values).unwrap();
    assert_eq!(
        entry.config,
        json!({
            "transport": "http", "url": "https://acme.example.com/mcp?key=${secret:KEY}",
            "headers": { "Authorization": "${secret:AUTHORIZATION}" },
        })
    );
    assert_eq!(entry.secrets["AUTHORIZATION"], "Bearer t0k");
    assert_eq!(entry.secrets["KEY"], "s3cret");
    let old = fill(&item, "remote-1", &[]).unwrap();
    assert_eq!(
        old.config,
        json!({ "transport": "sse", "url": "https://old.example.com/sse" })
    );
}

#[test]
fn an_image_is_named_with_its_version() {
    let image = |identifier: &str, options: Value| {
        of_package(&json!({
            "registryType": "oci", "identifier": identifier, "version": "1.2.3",
            "transport": { "type": "stdio" }, "runtimeArguments": options,
            "environmentVariables": [{ "name": "TOKEN", "isSecret": true }],
        }))
    };
    let plain = json!([
        { "type": "named", "name": "--rm" },
        { "type": "named", "name": "-e", "value": "TOKEN={t}", "variables": { "t": {} } },
    ]);
    for (identifier, expected) in [
        ("ghcr.io/me/weather", "ghcr.io/me/weather:1.2.3"),
        ("ghcr.io/me/weather:9", "ghcr.io/me/weather:9"),
        ("host:5000/weather@sha256:00", "host:5000/weather@sha256:00"),
    ] {
        let item = image(identifier, plain.clone());
        let entry = fill(&item, "package-0", &[("env.TOKEN", "t")]).unwrap();
        assert_eq!(entry.config["containerImage"], expected);
        assert_eq!(entry.config["transport"], "stdio-docker");
        assert_eq!(published(&item).ways[0].lack, None);
    }
    let mounts =
        json!([{ "type": "named", "name": "--mount", "value": "type=bind,src=/,dst=/host" }]);
    assert!(published(&image("weather", mounts)).ways[0].lack.is_some());
}

/// A registry publishes what anybody wrote, so its texts are hostile.
#[test]
fn nothing_of_a_registry_becomes_an_option_or_fills_the_page() {
    for identifier in [
        "--call=evil",
        "-p",
        "weather; rm -rf /",
        "",
        "../weather",
        "a b",
    ] {
        for kind in ["npm", "pypi", "oci"] {
            let item = of_package(&json!({
                "registryType": kind, "identifier": identifier, "version": "1.0",
                "transport": { "type": "stdio" },
            }));
            assert!(
                published(&item).ways[0].lack.is_some(),
                "{kind} {identifier}"
            );
        }
    }
    let long = "x".repeat(100_000);
    let item = item(&json!({
        "name": format!("a/{long}"), "title": long, "description": long, "version": "1",
        "websiteUrl": "javascript:alert(1)", "repository": { "url": format!("https://a.example/{long}") },
        "packages": [{ "registryType": "npm", "identifier": "a", "version": "1",
            "transport": { "type": "stdio" },
            "environmentVariables": [{ "name": "A", "description": long, "placeholder": long }] }],
    }));
    let shown = published(&item);
    assert_eq!(shown.website, None);
    let words = [
        &shown.name,
        &shown.title.unwrap(),
        &shown.description,
        &shown.repository.unwrap(),
    ];
    assert!(words.iter().all(|text| text.chars().count() <= 1001));
    let question = &shown.ways[0].questions[0];
    assert!(question.description.as_ref().unwrap().chars().count() <= 1001);
    assert!(fill(&item, "package-0", &[]).unwrap().name.len() <= 64);
}

#[test]
fn ways_that_are_not_there_are_none() {
    let item = of_package(&json!({
        "registryType": "npm", "identifier": "a", "version": "1", "transport": { "type": "stdio" },
    }));
    for way in ["package-1", "remote-0", "package", "package-x", "other-0"] {
        assert!(
            way::fill(item.server(), way, &BTreeMap::new()).is_none(),
            "{way}"
        );
    }
}

#[test]
fn what_cannot_be_added_says_why() {
    let package = |change: Value| {
        let mut package = json!({
            "registryType": "npm", "identifier": "a", "version": "1", "transport": { "type": "stdio" },
        });
        for (name, value) in change.as_object().unwrap() {
            package[name] = value.clone();
        }
        published(&of_package(&package)).ways.remove(0).lack
    };
    assert_eq!(package(json!({})), None);
    for change in [
        json!({ "transport": { "type": "streamable-http", "url": "http://localhost:1" } }),
        json!({ "version": null }),
        json!({ "registryType": "nuget" }),
        json!({ "registryType": "mcpb" }),
        json!({ "registryType": "cargo" }),
    ] {
        assert!(package(change.clone()).is_some(), "{change}");
    }
}
