//! Files that are written from the code stand in the repository as the code would write them.

use std::fs;
use std::path::Path;

use sepal::config::docs;
use sepal::domain::Code;
use sepal::gateway;
use sepal::gateway::wire::COMMANDS;

use crate::compose;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default()
}

/// Compares a file, or writes it for `./run generate`.
fn check(path: &str, expected: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "`./run generate` has no other way to tell a test that it should write"
    )]
    let writes = std::env::var_os("SEPAL_GENERATE").is_some();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if writes {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
    }
    let found = read(path);
    assert!(
        found == expected,
        "`{path}` differs from what the code says; run `./run generate` and commit it"
    );
}

#[test]
fn the_documentation_of_the_settings_is_current() {
    check("docs/configuration.md", &docs::markdown());
}

#[test]
fn the_example_environment_is_current() {
    check(".env.example", &docs::env_example());
}

#[test]
fn the_description_of_the_rest_door_is_current() {
    check("docs/openapi.json", &gateway::openapi_json());
}

#[test]
fn the_description_of_the_live_doors_is_current() {
    check("docs/asyncapi.json", &gateway::asyncapi_json());
}

/// Every code with its cause and remedy.
fn errors() -> String {
    let mut text = String::from(
        "# Error codes\n\n<!-- Written by `./run generate` from crates/core/src/domain/code.rs; do not edit. -->\n\n\
         `category` says who has to act: `validation` the caller, `transient` nobody (the same may work\n\
         later), `external` somebody else's server or tool, `internal` us.\n\n\
         | code | category | cause | what to do |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (name, category) = (code.as_str(), code.fault().as_str());
        let (cause, remedy) = (code.cause(), code.remedy());
        text.push_str(
            &[
                "| `", name, "` | ", category, " | ", cause, " | ", remedy, " |\n",
            ]
            .concat(),
        );
    }
    text
}

#[test]
fn the_documentation_of_the_error_codes_is_current() {
    check("docs/errors.md", &errors());
}

#[test]
fn the_documentation_of_the_scopes_of_keys_is_current() {
    check("docs/key-scopes.md", &gateway::key_scopes_page());
}

#[test]
fn the_settings_that_compose_passes_on_are_current() {
    const BEGIN: &str =
        "      # Written by `./run generate` from crates/config/src/table; do not edit.\n";
    const END: &str = "      # The end of what is written.\n";
    let found = read("docker-compose.yml");
    let (before, rest) = found.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let names = compose::passed_on();
    let names: Vec<[&str; 3]> = names.iter().map(|name| ["      ", name, ":\n"]).collect();
    let expected = [before, BEGIN, &names.concat().concat(), END, after].concat();
    check("docker-compose.yml", &expected);
}

#[test]
fn the_documentation_of_the_protocol_names_every_command() {
    let text = read("docs/protocol.md");
    for spec in COMMANDS {
        assert!(
            text.contains(&format!("| `{}` |", spec.name)),
            "`{}` is missing",
            spec.name
        );
    }
}
